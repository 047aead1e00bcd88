// ops/mesh: the devices as a grid with named axes, and what a partition spec
// says of a tensor's dimensions.
#include "ops/mesh.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "calx/scope.h"
#include "lazy/lazy.h"

// ---- meshes -----------------------------------------------------------------

struct calx_mesh {
  cx_spmd_mesh *mesh;
};

calx_status *cx_ops_need_spmd(const char *call)
{
  if (calx_is_spmd()) return NULL;
  return cx_error(CALX_FAILED_PRECONDITION,
                  "%s: call calx_use_spmd() first, before any device is used",
                  call);
}

static bool is_name(const char *s)
{
  static const char letters[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  return s != NULL && *s != '\0' && s[strspn(s, letters)] == '\0';
}

static calx_status *name_axes(calx_dims shape, calx_axes names,
                              cx_spmd_mesh *out)
{
  if (shape.count == 0 || shape.count > CALX_MAX_RANK ||
      names.count != shape.count) {
    return cx_invalid(
        "mesh_new: %zu sizes and %zu names of axes; each axis, of "
        "at least one and at most %d, has both",
        shape.count, names.count, CALX_MAX_RANK);
  }
  out->n_axes = shape.count;
  for (size_t i = 0; i < shape.count; i++) {
    const char *name = names.names[i];
    if (!is_name(name)) {
      return cx_invalid(
          "mesh_new: axis %zu has the name '%s'; letters, digits "
          "and _ make a name",
          i, name != NULL ? name : "");
    }
    for (size_t k = 0; k < i; k++) {
      if (strcmp(names.names[k], name) == 0) {
        return cx_invalid("mesh_new: two axes are named '%s'", name);
      }
    }
    out->names[i] = (cx_hlo_str){ name, strlen(name) };
    out->sizes[i] = shape.values[i];
  }
  return NULL;
}

static calx_status *check_sizes(const cx_spmd_mesh *mesh, int64_t n_devices)
{
  int64_t product = 1;
  for (size_t i = 0; i < mesh->n_axes; i++) {
    if (mesh->sizes[i] < 1 ||
        __builtin_mul_overflow(product, mesh->sizes[i], &product)) {
      return cx_invalid(
          "mesh_new: axis '%.*s' has size %" PRId64 "; sizes are 1 or more",
          (int)mesh->names[i].n, mesh->names[i].s, mesh->sizes[i]);
    }
  }
  if (product == n_devices) return NULL;
  return cx_invalid("mesh_new: a mesh of %" PRId64
                    " devices, and there %s %" PRId64
                    "; a mesh has all of them (CPU_NUM_DEVICES sets how many a "
                    "CPU has)",
                    product, n_devices == 1 ? "is" : "are", n_devices);
}

// Each device once.
static calx_status *take_ids(const int64_t *given, int64_t n, int64_t *ids)
{
  for (int64_t i = 0; i < n; i++) ids[i] = given != NULL ? given[i] : i;
  for (int64_t i = 0; i < n; i++) {
    if (ids[i] < 0 || ids[i] >= n) {
      return cx_invalid("mesh_new: device %" PRId64 " at place %" PRId64
                        "; devices are 0 to %" PRId64,
                        ids[i], i, n - 1);
    }
    for (int64_t k = 0; k < i; k++) {
      if (ids[k] == ids[i]) {
        return cx_invalid("mesh_new: device %" PRId64 " is there twice",
                          ids[i]);
      }
    }
  }
  return NULL;
}

static calx_status *keep_mesh(const cx_spmd_mesh *mesh, calx_mesh **out)
{
  *out = cx_alloc(sizeof **out);
  if (*out == NULL) return cx_out_of_memory();
  (*out)->mesh = cx_spmd_mesh_copy(mesh);
  if ((*out)->mesh != NULL) return NULL;
  cx_free(*out);
  *out = NULL;
  return cx_out_of_memory();
}

static calx_status *make_mesh(calx_dims shape, calx_axes names,
                              const calx_mesh_options *given, calx_mesh **out)
{
  calx_mesh_options o;
  cx_spmd_mesh mesh = { 0 };
  CALX_TRY(cx_options_take("mesh_new", given, &o, sizeof o));
  CALX_TRY(cx_ops_need_spmd("mesh_new"));
  CALX_TRY(name_axes(shape, names, &mesh));
  mesh.n_devices = calx_spmd_device_count();
  if (mesh.n_devices == 0) return cx_status_copy(calx_scope_error());
  CALX_TRY(check_sizes(&mesh, mesh.n_devices));
  int64_t *ids = cx_alloc((size_t)mesh.n_devices * sizeof *ids);
  if (ids == NULL) return cx_out_of_memory();
  calx_status *status = take_ids(o.device_ids, mesh.n_devices, ids);
  mesh.ids = ids;
  if (status == NULL) status = keep_mesh(&mesh, out);
  cx_free(ids);
  return status;
}

calx_mesh *calx_mesh_new_with(calx_dims mesh_shape, calx_axes axis_names,
                              const calx_mesh_options *options)
{
  calx_mesh *mesh = NULL;
  cx_lazy_scope_pin(make_mesh(mesh_shape, axis_names, options, &mesh));
  return mesh;
}

void calx_mesh_free(calx_mesh *mesh)
{
  if (mesh != NULL) cx_free(mesh->mesh);
  cx_free(mesh);
}

// ---- partition specs --------------------------------------------------------

static calx_status *no_axis(const char *call, const cx_spmd_mesh *mesh,
                            const char *name, size_t n)
{
  cx_text text = { 0 };
  cx_spmd_mesh_print(mesh, &text);
  calx_status *status = cx_invalid(
      "%s: the mesh %s has no axis '%.*s' (several axes of one dimension are "
      "written \"x,y\", without spaces)",
      call, cx_text_str(&text), (int)n, name);
  cx_text_free(&text);
  return status;
}

// Adds the axis of this name to a dimension's list, and to those in use.
static calx_status *add_axis(const char *call, const cx_spmd_mesh *mesh,
                             const char *name, size_t n, cx_spmd_axes *list,
                             uint32_t *used)
{
  size_t i = 0;
  while (i < mesh->n_axes &&
         (mesh->names[i].n != n || memcmp(mesh->names[i].s, name, n) != 0)) {
    i++;
  }
  if (i == mesh->n_axes) return no_axis(call, mesh, name, n);
  if ((*used >> i & 1) != 0) {
    return cx_invalid(
        "%s: the axis '%.*s' is there twice; it splits one dimension", call,
        (int)n, name);
  }
  *used |= UINT32_C(1) << i;
  // An axis of one device splits nothing.
  if (mesh->sizes[i] > 1) {
    *list = cx_spmd_axes_join(*list, (cx_spmd_axes)i + 1);
  }
  return NULL;
}

// "data", or "data,model", or NULL.
static calx_status *read_axes(const char *call, const cx_spmd_mesh *mesh,
                              const char *text, cx_spmd_axes *list,
                              uint32_t *used)
{
  while (text != NULL) {
    const size_t n = strcspn(text, ",");
    CALX_TRY(add_axis(call, mesh, text, n, list, used));
    text = text[n] == ',' ? text + n + 1 : NULL;
  }
  return NULL;
}

calx_status *cx_ops_spec_read(const char *call, const calx_mesh *mesh,
                              calx_axes spec, cx_ops_spec *out)
{
  uint32_t used = 0;
  *out = (cx_ops_spec){ .n_dims = spec.count };
  CALX_TRY(cx_ops_need_spmd(call));
  if (mesh == NULL) {
    const calx_status *why = calx_scope_error();
    return why != NULL ? cx_status_copy(why)
                       : cx_invalid("%s: the mesh is NULL", call);
  }
  if (spec.count > CALX_MAX_RANK) {
    return cx_invalid(
        "%s: a spec of %zu entries; tensors have at most %d "
        "dimensions",
        call, spec.count, CALX_MAX_RANK);
  }
  out->mesh = mesh->mesh;
  for (size_t d = 0; d < spec.count; d++) {
    CALX_TRY(read_axes(call, out->mesh, spec.names[d], &out->dims[d], &used));
  }
  return NULL;
}

// INVALID_ARGUMENT for a dimension that the axes do not divide.
static calx_status *not_equal(const char *call, const cx_ops_spec *spec,
                              const cx_graph_shape *shape, size_t d)
{
  cx_text names = { 0 };
  for (size_t i = 0; i < cx_spmd_axes_count(spec->dims[d]); i++) {
    const size_t axis = cx_spmd_axes_at(spec->dims[d], i);
    const cx_hlo_str name = spec->mesh->names[axis];
    if (i != 0) cx_text_char(&names, ',');
    cx_text_append_n(&names, name.s, name.n);
  }
  const int64_t parts = cx_spmd_parts(spec->mesh, spec->dims[d]);
  calx_status *status = cx_invalid(
      "%s: '%s' splits dimension %zu of %s into %" PRId64
      " parts, which would not be equal: choose a size that is a "
      "multiple of %" PRId64,
      call, cx_text_str(&names), d, cx_graph_shape_str(shape), parts, parts);
  cx_text_free(&names);
  return status;
}

calx_status *cx_ops_spec_check(const char *call, const cx_ops_spec *spec,
                               const cx_graph_shape *shape)
{
  if (spec->n_dims > shape->rank) {
    return cx_invalid(
        "%s: the spec has %zu entries, and %s has rank %u: each entry is for "
        "one dimension, from the first on; leave out those behind",
        call, spec->n_dims, cx_graph_shape_str(shape), shape->rank);
  }
  for (size_t d = 0; d < spec->n_dims; d++) {
    const int64_t parts = cx_spmd_parts(spec->mesh, spec->dims[d]);
    const int64_t size = shape->dims[d];
    if (size % parts != 0 || (size == 0 && parts != 1)) {
      return not_equal(call, spec, shape, d);
    }
  }
  return NULL;
}

calx_status *cx_ops_spec_placement(const char *call, const cx_ops_spec *spec,
                                   const cx_graph_shape *shape,
                                   const cx_spmd_placement **out)
{
  // The client may be another one than that of the mesh.
  if (spec->mesh->n_devices != (int64_t)cx_lazy_sharded_count()) {
    return cx_invalid("%s: the mesh has %" PRId64
                      " devices, and there are %zu now",
                      call, spec->mesh->n_devices, cx_lazy_sharded_count());
  }
  CALX_TRY(cx_ops_spec_check(call, spec, shape));
  const cx_spmd_mesh *kept = cx_spmd_mesh_keep(spec->mesh);
  if (kept == NULL) return cx_out_of_memory();
  *out = cx_spmd_placement_of(kept, spec->dims, shape->rank);
  return *out != NULL ? NULL : cx_out_of_memory();
}
