// ops/sharding: meshes, and the marks that say how tensors are split on them.
//
// A pending value gets an op more, whose result is its operand, split so.
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "calx/scope.h"
#include "calx/spmd.h"
#include "ops/ops.h"

// ---- the op -----------------------------------------------------------------

static calx_status *infer_mark_sharding(cx_graph_node *node)
{
  node->out[0].shape = *cx_in(node, 0);
  return NULL;
}

static void grad_mark_sharding(cx_lazy_tape *t)
{
  t->in_grads[0] =
      cx_ops_record(&cx_ops_mark_sharding, &t->out_grads[0], 1, t->node->attrs);
}

static uint32_t placement_of(const void *attrs)
{
  return *(const uint32_t *)attrs;
}

static void emit_mark_sharding(cx_graph_emit *e)
{
  cx_text text = { 0 };
  if (!e->sharded) {
    e->out[0] = e->in[0];
    return;
  }
  cx_spmd_placement_attr(cx_spmd_placement_at(placement_of(e->attrs)), &text);
  if (cx_text_failed(&text)) {
    cx_hlo_builder_fail(e->b, cx_out_of_memory());
  } else {
    e->out[0] = cx_hlo_sharding_constraint(e->b, e->in[0], cx_text_str(&text));
  }
  cx_text_free(&text);
}

static void describe_mark_sharding(const void *attrs, cx_text *out)
{
  cx_spmd_placement_print(cx_spmd_placement_at(placement_of(attrs)), out);
}

CX_OPS_DEFINE(mark_sharding, .attr_size = sizeof(uint32_t),
              .infer = infer_mark_sharding, .grad = grad_mark_sharding,
              .emit = emit_mark_sharding, .describe = describe_mark_sharding,
              .placement = placement_of, .takes_complex = true)

// ---- meshes -----------------------------------------------------------------

struct calx_mesh {
  cx_spmd_mesh *mesh;
};

static calx_status *check_mode(const char *call)
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
  CALX_TRY(check_mode("mesh_new"));
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

// ---- marks ------------------------------------------------------------------

static calx_status *no_axis(const cx_spmd_mesh *mesh, const char *name,
                            size_t n)
{
  cx_text text = { 0 };
  cx_spmd_mesh_print(mesh, &text);
  calx_status *status =
      cx_invalid("mark_sharding: the mesh %s has no axis '%.*s'",
                 cx_text_str(&text), (int)n, name);
  cx_text_free(&text);
  return status;
}

// Adds the axis of this name to a dimension's list, and to those in use.
static calx_status *add_axis(const cx_spmd_mesh *mesh, const char *name,
                             size_t n, cx_spmd_axes *list, uint32_t *used)
{
  size_t i = 0;
  while (i < mesh->n_axes &&
         (mesh->names[i].n != n || memcmp(mesh->names[i].s, name, n) != 0)) {
    i++;
  }
  if (i == mesh->n_axes) return no_axis(mesh, name, n);
  if ((*used >> i & 1) != 0) {
    return cx_invalid(
        "mark_sharding: the axis '%.*s' is there twice; it splits "
        "one dimension",
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
static calx_status *read_axes(const cx_spmd_mesh *mesh, const char *text,
                              cx_spmd_axes *list, uint32_t *used)
{
  while (text != NULL) {
    const size_t n = strcspn(text, ",");
    CALX_TRY(add_axis(mesh, text, n, list, used));
    text = text[n] == ',' ? text + n + 1 : NULL;
  }
  return NULL;
}

static calx_status *read_spec(const calx_tensor *t, const cx_spmd_mesh *mesh,
                              calx_axes spec, const cx_spmd_placement **out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(t);
  cx_spmd_axes dims[CALX_MAX_RANK] = { 0 };
  uint32_t used = 0;
  if (spec.count != s->rank) {
    return cx_invalid(
        "mark_sharding: the spec has %zu entries, and %s has %u "
        "dimensions; NULL stands for one that is not split",
        spec.count, cx_graph_shape_str(s), s->rank);
  }
  for (uint32_t d = 0; d < s->rank; d++) {
    CALX_TRY(read_axes(mesh, spec.names[d], &dims[d], &used));
    const int64_t parts = cx_spmd_parts(mesh, dims[d]);
    if (s->dims[d] % parts == 0 && (s->dims[d] != 0 || parts == 1)) continue;
    return cx_invalid(
        "mark_sharding: '%s' splits dimension %u of %s into %" PRId64
        " parts, which would not be equal",
        spec.names[d], d, cx_graph_shape_str(s), parts);
  }
  *out = cx_spmd_placement_of(mesh, dims, s->rank);
  return *out != NULL ? NULL : cx_out_of_memory();
}

static calx_status *check_mark(const calx_tensor *t,
                               const cx_spmd_placement *placement)
{
  const cx_spmd_placement *before = cx_lazy_tensor_placement(t);
  if (before == NULL || before == placement) return NULL;
  cx_text text = { 0 };
  cx_spmd_placement_print(before, &text);
  calx_status *status = cx_error(
      CALX_FAILED_PRECONDITION,
      "mark_sharding: the tensor is marked %s; calx_clear_sharding() first",
      cx_text_str(&text));
  cx_text_free(&text);
  return status;
}

// The value that t has is split so. A leaf keeps its gradient, so what is
// recorded is none of its history; any other value keeps its history, also in a
// region without gradients. The scope is there so that no temporary keeps the
// value for as long as the caller's scope.
static calx_status *split(calx_tensor *t, const cx_spmd_placement *placement)
{
  bool done;
  CALX_TRY(cx_lazy_tensor_reshard(t, placement, &done));
  if (done) return NULL;
  const uint32_t number = placement->number;
  const bool leaf = cx_lazy_tensor_is_leaf(t);
  calx_scope *scope = calx_scope_begin();
  cx_lazy_grad_region_begin(!leaf);
  calx_tensor *value = cx_ops_record(&cx_ops_mark_sharding, &t, 1, &number);
  if (!cx_lazy_tensor_poisoned(value)) cx_lazy_tensor_set_value(t, value);
  cx_lazy_grad_region_end(!leaf);
  return calx_scope_end(scope);
}

static calx_status *mark(calx_tensor *t, const calx_mesh *mesh, calx_axes spec)
{
  const cx_spmd_placement *placement;
  CALX_TRY(check_mode("mark_sharding"));
  if (mesh == NULL) {
    const calx_status *why = calx_scope_error();
    return why != NULL ? cx_status_copy(why)
                       : cx_invalid("mark_sharding: the mesh is NULL");
  }
  // The client may be another one than that of the mesh.
  if (mesh->mesh->n_devices != (int64_t)cx_lazy_sharded_count()) {
    return cx_invalid("mark_sharding: the mesh has %" PRId64
                      " devices, and there are %zu now",
                      mesh->mesh->n_devices, cx_lazy_sharded_count());
  }
  const cx_spmd_mesh *kept = cx_spmd_mesh_keep(mesh->mesh);
  if (kept == NULL) return cx_out_of_memory();
  CALX_TRY(read_spec(t, kept, spec, &placement));
  CALX_TRY(check_mark(t, placement));
  if (cx_lazy_tensor_placement(t) == placement) {
    bool done;
    return cx_lazy_tensor_reshard(t, placement, &done);
  }
  CALX_TRY(split(t, placement));
  cx_lazy_tensor_set_placement(t, placement);
  return NULL;
}

calx_tensor *calx_mark_sharding(calx_tensor *tensor, const calx_mesh *mesh,
                                calx_axes partition_spec)
{
  calx_tensor *bad;
  if (cx_ops_unfit("mark_sharding", &tensor, 1, &bad)) return bad;
  cx_lazy_scope_pin(mark(tensor, mesh, partition_spec));
  return tensor;
}

calx_tensor *calx_clear_sharding(calx_tensor *tensor)
{
  calx_tensor *bad;
  if (cx_ops_unfit("clear_sharding", &tensor, 1, &bad)) return bad;
  const cx_spmd_placement *before = cx_lazy_tensor_placement(tensor);
  if (before == NULL) {  // it may be split as what it was computed from
    bool done;
    cx_lazy_scope_pin(cx_lazy_tensor_reshard(tensor, NULL, &done));
    return tensor;
  }
  const cx_spmd_axes none[CALX_MAX_RANK] = { 0 };
  const cx_spmd_placement *whole =
      cx_spmd_placement_of(before->mesh, none, before->rank);
  cx_lazy_scope_pin(whole != NULL ? split(tensor, whole) : cx_out_of_memory());
  cx_lazy_tensor_set_placement(tensor, NULL);
  return tensor;
}
