// data/batches: loaders over a dataset.
//
// A loader opens nothing until its first batch is asked for. So a program can
// make it before it launches ranks, when no device may be open yet, and can
// make loaders for other devices from it.
#include "base/alloc.h"
#include "base/options.h"
#include "data/dataset.h"
#include "data/loader.h"

#define MOST_WORKERS 1024

// ---- an epoch ---------------------------------------------------------------

static int64_t least(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

static calx_status *open_prefetch(calx_loader *loader,
                                  calx_device *const *devices, int lanes)
{
  if (loader->prefetch != NULL) return NULL;
  calx_device *device = loader->options.device;
  if (devices == NULL) {
    if (device == NULL) CALX_TRY(calx_device_open("xla", &device));
    devices = &device;
  }
  int64_t batches = loader->batches;
  return cx_data_prefetch_open(
      &(cx_data_prefetch_options){
          .dataset = loader->dataset,
          .devices = devices,
          .lanes = lanes,
          .batch_size = least(loader->batch_size, loader->samples),
          .workers = (int)least(loader->options.num_workers, batches),
          .ahead = (int)least(loader->depth.uploaded, batches),
          .filled = (int)least(loader->depth.filled, batches),
          .uploads = loader->depth.uploads },
      &loader->prefetch);
}

// Makes the order of the epoch. Samples taken in sequence need none.
static calx_status *make_order(calx_loader *loader)
{
  if (loader->sampler->order == CX_DATA_SEQUENTIAL) return NULL;
  if (loader->order == NULL) {
    size_t bytes;
    if (!cx_mul_size((size_t)loader->samples, sizeof *loader->order, &bytes) ||
        (loader->order = cx_alloc(bytes)) == NULL) {
      return cx_out_of_memory();
    }
  }
  return cx_data_sampler_order(loader->sampler, loader->epoch, loader->order);
}

calx_status *cx_data_batches_start(calx_loader *loader,
                                   calx_device *const *devices, int lanes)
{
  if (loader->left == 0) return NULL;
  CALX_TRY(open_prefetch(loader, devices, lanes));
  CALX_TRY(make_order(loader));
  cx_data_prefetch_start(loader->prefetch,
                         &(cx_data_range){ .order = loader->order,
                                           .first = loader->done,
                                           .end = loader->samples,
                                           .epoch = loader->epoch },
                         loader->left);
  return NULL;
}

static calx_status *begin(calx_loader *loader)
{
  cx_data_loader_begin(loader);
  return cx_data_batches_start(loader, NULL, 1);
}

static calx_status *take(calx_loader *loader, cx_data_made *out_made)
{
  return cx_data_prefetch_take(loader->prefetch, 0, out_made);
}

static void end(calx_loader *loader)
{
  if (loader->prefetch != NULL) cx_data_prefetch_stop(loader->prefetch);
}

static void free_parts(calx_loader *loader)
{
  cx_data_prefetch_close(loader->prefetch);
  cx_free(loader->order);
}

const cx_data_kind cx_data_batches = { begin, take, end, free_parts };

// ---- making one -------------------------------------------------------------

calx_status *cx_data_number(const char *whose, const char *what, int64_t given,
                            int64_t otherwise, int64_t most, int64_t *out)
{
  if (given < 0 || given > most) {
    return cx_invalid("%s: %s is %lld, it must be 0 (the default) to %lld",
                      whose, what, (long long)given, (long long)most);
  }
  *out = given != 0 ? given : otherwise;
  return NULL;
}

static calx_status *take_options(const calx_loader_options *given,
                                 calx_loader_options *out)
{
  CALX_TRY(cx_options_take("loader", given, out, sizeof *out));
  static const char whose[] = "loader";
  int64_t workers = 0, ahead = 0;
  CALX_TRY(cx_data_number(whose, "batch_size", out->batch_size, 1, INT64_MAX,
                          &out->batch_size));
  CALX_TRY(cx_data_number(whose, "num_workers", out->num_workers, 2,
                          MOST_WORKERS, &workers));
  CALX_TRY(cx_data_number(whose, "prefetch", out->prefetch, 2,
                          CX_DATA_MOST_AHEAD, &ahead));
  out->num_workers = (int)workers;
  out->prefetch = (int)ahead;
  return NULL;
}

static calx_status *take_sampler(calx_loader *loader)
{
  const calx_loader_options *o = &loader->options;
  int64_t size = loader->dataset->size;
  cx_data_sampler_init(&loader->own, size, o->shuffle, o->seed);
  if (o->sampler == NULL) return NULL;
  const calx_status *error = calx_sampler_error(o->sampler);
  if (error != NULL) return cx_status_copy(error);
  if (o->shuffle) {
    return cx_invalid(
        "loader: a sampler decides the order, .shuffle is not for it");
  }
  if (o->sampler->size > size) {
    return cx_invalid("loader: a sampler of %lld samples, the dataset has %lld",
                      (long long)o->sampler->size, (long long)size);
  }
  loader->sampler = o->sampler;
  return NULL;
}

static calx_status *set_up(calx_loader *loader, const calx_dataset *dataset,
                           const calx_loader_options *given)
{
  if (dataset == NULL) {
    return cx_invalid("loader: the dataset is NULL");
  }
  const calx_status *error = calx_dataset_error(dataset);
  if (error != NULL) return cx_status_copy(error);
  calx_loader_options *o = &loader->options;
  CALX_TRY(take_options(given, o));
  loader->dataset = dataset;
  loader->n_fields = dataset->n_fields;
  CALX_TRY(take_sampler(loader));
  loader->samples = loader->sampler->count;
  loader->batch_size = o->batch_size;
  loader->depth = (cx_data_depth){ o->prefetch, o->num_workers, 1 };
  int64_t most = least(o->batch_size, loader->samples);
  for (size_t f = 0; f < dataset->n_fields; f++) {
    size_t bytes;
    if (cx_mul_size(dataset->field_bytes[f], (size_t)most, &bytes)) continue;
    return cx_invalid("loader: batches of %lld samples have too many bytes",
                      (long long)most);
  }
  loader->batches =
      cx_data_batch_count(loader->samples, o->batch_size, o->drop_last);
  return NULL;
}

calx_loader *calx_loader_new_with(calx_dataset *dataset,
                                  const calx_loader_options *options)
{
  calx_loader *loader = cx_data_loader_empty();
  if (calx_loader_error(loader) != NULL) return loader;
  loader->kind = &cx_data_batches;
  return cx_data_loader_fail(loader, set_up(loader, dataset, options));
}
