// data/input_sharding: see input_sharding.h. The loader has the mesh and not a
// placement, which lives until calx_shutdown() only.
#include "data/input_sharding.h"

#include <string.h>

#include "base/alloc.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "lazy/lazy.h"

static const char call[] = "loader: input_sharding";

calx_status *cx_data_sharding_copy(const cx_ops_spec *from, cx_ops_spec *out)
{
  *out = *from;
  if (from->mesh == NULL) return NULL;
  out->mesh = cx_spmd_mesh_copy(from->mesh);
  return out->mesh != NULL ? NULL : cx_out_of_memory();
}

calx_status *cx_data_sharding_read(const calx_input_sharding *given,
                                   cx_ops_spec *out)
{
  cx_ops_spec spec;
  *out = (cx_ops_spec){ .n_dims = 0 };
  if (given->mesh == NULL && given->partition_spec.count == 0) return NULL;
  CALX_TRY(cx_ops_spec_read(call, given->mesh, given->partition_spec, &spec));
  return cx_data_sharding_copy(&spec, out);
}

void cx_data_sharding_free(cx_ops_spec *spec)
{
  cx_free((void *)spec->mesh);
  spec->mesh = NULL;
}

static cx_graph_shape shape_of(const calx_field *field)
{
  cx_graph_shape shape = { .dtype = field->dtype,
                           .rank = (uint32_t)field->rank };
  memcpy(shape.dims, field->dims, field->rank * sizeof *shape.dims);
  return shape;
}

// Of batches of so many samples of the dataset, stacked.
static calx_status *check_batch(const cx_ops_spec *spec,
                                const calx_dataset *dataset, int64_t size)
{
  for (size_t k = 0; k < dataset->n_fields; k++) {
    calx_field field = dataset->fields[k];
    if (field.rank == CALX_MAX_RANK) continue;  // no batch can be made
    memmove(field.dims + 1, field.dims, field.rank++ * sizeof *field.dims);
    field.dims[0] = size;
    const cx_graph_shape shape = shape_of(&field);
    CALX_TRY(cx_annotate(cx_ops_spec_check(call, spec, &shape),
                         "in field %zu, '%s'", k,
                         field.name != NULL ? field.name : ""));
  }
  return NULL;
}

// A batch sampler or a collate function may make batches of any shape. These
// are checked when they are uploaded.
calx_status *cx_data_sharding_check(const calx_loader *loader, int64_t samples)
{
  const calx_loader_options *o = &loader->options;
  const cx_ops_spec *spec = &loader->sharding;
  const int64_t size = loader->batch_size;
  if (spec->mesh == NULL || size < 1 || o->collate_fn != NULL ||
      o->batch_sampler != NULL) {
    return NULL;
  }
  const bool endless = loader->dataset->iterable != NULL;
  if (endless || samples >= size) {
    CALX_TRY(check_batch(spec, loader->dataset, size));
  }
  const int64_t rest = endless || o->drop_last ? 0 : samples % size;
  if (rest == 0) return NULL;
  return cx_annotate(
      check_batch(spec, loader->dataset, rest),
      "in the last batch of %lld samples, which .drop_last leaves out",
      (long long)rest);
}

calx_status *cx_data_upload_field(calx_device *device, const cx_ops_spec *spec,
                                  const calx_field *field, const void *data,
                                  cx_data_block *block, calx_tensor **out)
{
  if (spec->mesh == NULL) {
    return cx_lazy_upload(device, field->dtype, field->dims, field->rank, data,
                          true, cx_data_block_release, block, out);
  }
  const cx_graph_shape shape = shape_of(field);
  const cx_spmd_placement *placement;
  calx_status *status = cx_ops_spec_placement(call, spec, &shape, &placement);
  if (status != NULL) {
    cx_data_block_release(block);
    return status;
  }
  return cx_lazy_upload_split(device, &shape, placement, data,
                              cx_data_block_release, block, out);
}
