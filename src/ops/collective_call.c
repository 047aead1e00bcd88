// ops/collective_call: the public functions. Groups are checked here, so that
// errors have the caller's line. A group of one member records no collective.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/options.h"
#include "calx/complex.h"
#include "ops/bucket.h"
#include "ops/collective.h"
#include "world/world.h"

// ---- who takes part ---------------------------------------------------------

// Marks a rank as seen. A rank that was seen before is `what`, such as
// "source", twice.
static calx_status *mark(const char *where, const char *what, int64_t rank,
                         bool *seen, uint32_t world)
{
  if (rank < 0 || rank >= (int64_t)world) {
    return cx_invalid("%s: rank %lld is none of the world's %u", where,
                      (long long)rank, world);
  }
  if (seen[rank]) {
    return cx_invalid("%s: rank %lld is %s twice", where, (long long)rank,
                      what);
  }
  seen[rank] = true;
  return NULL;
}

// Checks that every rank occurs exactly once.
static calx_status *check_ids(const char *op, const int64_t *ids, size_t n,
                              uint32_t world)
{
  bool *seen = cx_calloc(world + (size_t)1, sizeof *seen);
  if (seen == NULL) return cx_out_of_memory();
  char where[64];
  snprintf(where, sizeof where, "%s: groups", op);
  calx_status *status = NULL;
  for (size_t i = 0; status == NULL && i < n; i++) {
    status = mark(where, "named", ids[i], seen, world);
  }
  for (uint32_t r = 0; status == NULL && r < world; r++) {
    if (seen[r]) continue;
    status = cx_invalid("%s: groups: rank %u is in none", op, r);
  }
  cx_free(seen);
  return status;
}

static calx_status *check_groups(const char *op, const calx_groups *g,
                                 uint32_t world)
{
  size_t n = g->groups == 0 ? 1 : g->groups;
  if (g->count != 0 && g->ids == NULL) {
    return cx_invalid("%s: groups: the ids are NULL", op);
  }
  if (g->count % n != 0 || (g->count == 0 && n != 1)) {
    return cx_invalid(
        "%s: groups: %zu ids do not make %zu groups of equal size", op,
        g->count, n);
  }
  return g->count == 0 ? NULL : check_ids(op, g->ids, g->count, world);
}

// Attributes for n_ids ranks; freed with cx_free().
static cx_ops_coll_attrs *attrs_new(size_t n_ids, uint32_t world)
{
  size_t bytes = sizeof(cx_ops_coll_attrs) + n_ids * sizeof(int64_t);
  cx_ops_coll_attrs *a = cx_calloc(1, bytes);
  if (a == NULL) return NULL;
  a->bytes = (uint32_t)bytes;
  a->world = world;
  a->groups = 1;
  a->members = world;
  a->n_ids = (uint32_t)n_ids;
  return a;
}

// No groups means one group of all ranks in their order.
static bool is_default(const calx_groups *g)
{
  if (g->count == 0) return true;
  if (g->groups > 1) return false;
  for (size_t i = 0; i < g->count; i++) {
    if (g->ids[i] != (int64_t)i) return false;
  }
  return true;
}

// The world of the operand's device. A process may have more devices than
// ranks; the devices past its ranks belong to no rank.
static calx_status *find_world(const char *op, calx_device *device,
                               uint32_t *out)
{
  const cx_world_info *here = cx_world_self();
  int world = cx_world_size(here), end = (here->process + 1) * here->devices;
  *out = (uint32_t)world;
  if (world == 1 || cx_lazy_device_rank(device) < end) return NULL;
  return cx_error(CALX_FAILED_PRECONDITION,
                  "%s: %s is no rank of the world, which has %d, %d of them in "
                  "this process",
                  op, calx_device_name(device), world, here->devices);
}

static calx_status *check_options(const char *op,
                                  const calx_collective_options *o)
{
  if (o->size <= sizeof *o) return NULL;
  return cx_invalid("%s: the options have %zu bytes, this library knows %zu",
                    op, o->size, sizeof *o);
}

static calx_status *check_scale(const char *op, double scale, calx_dtype dtype)
{
  if (cx_is_default(scale)) return NULL;
  bool fits = cx_dtype_is_inexact(dtype) ||
              (cx_dtype_is_int(dtype) && fabs(scale) < 0x1p62 &&
               scale == nearbyint(scale));
  if (fits) return NULL;
  return cx_invalid("%s: %s is not scaled by %g", op, calx_dtype_name(dtype),
                    scale);
}

// Checks what all collectives share and makes their attributes. NULL: it
// failed, and the call returns *out_bad.
static cx_ops_coll_attrs *begin(const char *op, calx_tensor *x,
                                const calx_collective_options *o,
                                calx_tensor **out_bad)
{
  static const calx_collective_options none = { .size = sizeof none };
  if (o == NULL) o = &none;
  if (cx_ops_unfit(op, &x, 1, out_bad)) return NULL;
  uint32_t world = 1;
  calx_status *status = check_options(op, o);
  if (status == NULL) {
    status = check_scale(op, o->scale, cx_lazy_tensor_shape(x)->dtype);
  }
  if (status == NULL) status = find_world(op, calx_tensor_device(x), &world);
  if (status == NULL) status = check_groups(op, &o->groups, world);
  cx_ops_coll_attrs *a = NULL;
  if (status == NULL) {
    bool all = is_default(&o->groups);
    a = attrs_new(all ? 0 : o->groups.count, world);
    if (a == NULL) status = cx_out_of_memory();
    if (a != NULL && !all) {
      a->groups = (uint32_t)(o->groups.groups == 0 ? 1 : o->groups.groups);
      a->members = world / a->groups;
      memcpy(a->ids, o->groups.ids, o->groups.count * sizeof *a->ids);
    }
  }
  if (status != NULL) *out_bad = cx_lazy_tensor_poison(status);
  return a;
}

// The result of a collective of one member. It is a handle of its own, as with
// several members: a later in-place change of the operand does not change it.
static calx_tensor *same_value(calx_tensor *x)
{
  if (!cx_lazy_grad_mode() || !cx_lazy_tensor_requires_grad(x)) {
    return cx_lazy_tensor_detached(x);
  }
  if (!cx_lazy_tensor_is_leaf(x)) {
    return cx_lazy_tensor_of(cx_lazy_tensor_value(x), calx_tensor_device(x));
  }
  // A gradient reaches a leaf only through an op that has the leaf as operand.
  return cx_ops_record(&cx_ops_reshape, &x, 1, cx_lazy_tensor_shape(x));
}

// Records the op, unless the operand's rank is alone in its group; takes the
// attributes. Complex numbers go as their parts, a last dimension more.
static calx_tensor *end(const cx_graph_op *op, calx_tensor *x,
                        cx_ops_coll_attrs *a)
{
  calx_tensor *y;
  if (a->members > 1) {
    bool is_complex = cx_dtype_is_complex(cx_lazy_tensor_shape(x)->dtype);
    if (is_complex) x = calx_view_as_real(x);
    cx_lazy_call call = { .op = op,
                          .in = &x,
                          .n_in = 1,
                          .attrs = a,
                          .flags = CX_GRAPH_NODE_COLLECTIVE };
    y = cx_lazy_apply(&call, NULL);
    if (is_complex) y = calx_view_as_complex(y);
  } else {
    y = same_value(x);
  }
  cx_free(a);
  return y;
}

static calx_tensor *refuse(cx_ops_coll_attrs *a, calx_tensor *error)
{
  cx_free(a);
  return error;
}

// ---- what fits --------------------------------------------------------------

static const char *type_name(calx_reduce_type type)
{
  static const char *const names[] = {
    "SUM", "MIN", "MAX", "MUL", "AND", "OR"
  };
  return names[type];
}

static calx_status *check_type(const char *op, calx_reduce_type type,
                               calx_dtype dtype)
{
  if ((unsigned)type > CALX_REDUCE_OR) {
    return cx_invalid("%s: %d is no type of reduction", op, (int)type);
  }
  bool logical = type == CALX_REDUCE_AND || type == CALX_REDUCE_OR;
  if (cx_dtype_is_complex(dtype)) {
    if (type == CALX_REDUCE_SUM) return NULL;
    return cx_invalid("%s: %s of %s: complex numbers have only SUM", op,
                      type_name(type), calx_dtype_name(dtype));
  }
  if (logical ? !cx_dtype_is_float(dtype) : dtype != CALX_BOOL) return NULL;
  return cx_invalid("%s: %s of %s: it combines %s", op, type_name(type),
                    calx_dtype_name(dtype),
                    logical ? "bool and integers" : "numbers");
}

// Multiplies by a number of the user's. It is a slot, so it is not part of the
// key.
static calx_tensor *scaled(calx_tensor *x, double scale)
{
  if (cx_is_default(scale) || cx_lazy_tensor_poisoned(x)) return x;
  bool whole = cx_dtype_is_int(cx_lazy_tensor_shape(x)->dtype);
  return calx_mul(x,
                  whole ? calx_scalar_int((int64_t)scale) : calx_scalar(scale));
}

static bool find_dim(const char *op, const char *which, calx_tensor *x,
                     int64_t dim, uint32_t *out, calx_tensor **out_bad)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (s->rank != 0 && cx_ops_dim(dim, s->rank, out)) return true;
  *out_bad = s->rank != 0 ? cx_ops_no_dim(op, which, dim, s->rank, s)
                          : cx_ops_invalid(
                                "%s: %s %lld: %s is a scalar, without dims", op,
                                which, (long long)dim, cx_graph_shape_str(s));
  return false;
}

// ---- all_reduce -------------------------------------------------------------

typedef struct rank_reduction {
  const char *op;
  calx_reduce_type type;
  const calx_collective_options *options;
} rank_reduction;

static double scale_of(const calx_collective_options *o)
{
  return o == NULL ? 0 : o->scale;
}

static calx_tensor *reduce(const rank_reduction *r, calx_tensor *x)
{
  calx_tensor *bad;
  cx_ops_coll_attrs *a = begin(r->op, x, r->options, &bad);
  if (a == NULL) return bad;
  calx_dtype dtype = cx_lazy_tensor_shape(x)->dtype;
  calx_status *status = check_type(r->op, r->type, dtype);
  if (status != NULL) return refuse(a, cx_lazy_tensor_poison(status));
  a->type = (uint32_t)r->type;
  return scaled(end(&cx_ops_all_reduce, x, a), scale_of(r->options));
}

calx_tensor *calx_all_reduce_with(calx_tensor *x, calx_reduce_type type,
                                  const calx_collective_options *o)
{
  return reduce(&(rank_reduction){ "all_reduce", type, o }, x);
}

static calx_tensor *reduce_bucket(void *user, calx_tensor *x)
{
  return reduce(user, x);
}

void cx_ops_all_reduce_bucket(calx_tensor *const *tensors, size_t n,
                              double scale, const calx_groups *groups,
                              calx_tensor **out)
{
  calx_collective_options o = { .size = sizeof o, .scale = scale };
  if (groups != NULL) o.groups = *groups;
  rank_reduction r = { "all_reduce", CALX_REDUCE_SUM, &o };
  cx_ops_bucketed(tensors, n, reduce_bucket, &r, out);
}

// ---- in place ---------------------------------------------------------------

// Replaces each tensor's value by what fn makes of it. If fn fails for one,
// none is replaced.
static void replace(const char *op, calx_tensor *const *tensors, size_t n,
                    cx_ops_bucket_fn *fn, void *user)
{
  if (n == 0) return;
  calx_tensor *bad;
  if (tensors == NULL) {
    cx_lazy_scope_pin(cx_invalid("%s: the tensors are NULL", op));
    return;
  }
  if (cx_ops_unfit(op, tensors, (uint32_t)n, &bad)) return;
  calx_tensor **out = cx_alloc(n * sizeof *out);
  if (out == NULL) {
    cx_lazy_scope_pin(cx_out_of_memory());
    return;
  }
  cx_lazy_no_grad_begin();
  cx_ops_bucketed(tensors, n, fn, user, out);
  bool whole = true;
  for (size_t i = 0; i < n; i++) whole &= !cx_lazy_tensor_poisoned(out[i]);
  for (size_t i = 0; whole && i < n; i++) {
    cx_lazy_tensor_set_value(tensors[i], out[i]);
  }
  cx_lazy_no_grad_end();
  cx_free(out);
}

void calx_all_reduce_list_with(calx_tensor *const *tensors, size_t count,
                               calx_reduce_type type,
                               const calx_collective_options *o)
{
  rank_reduction r = { "all_reduce_list", type, o };
  replace(r.op, tensors, count, reduce_bucket, &r);
}

typedef struct broadcast {
  int64_t root;
  const calx_collective_options *options;
} broadcast;

static calx_tensor *broadcast_bucket(void *user, calx_tensor *x)
{
  const broadcast *c = user;
  calx_tensor *bad;
  cx_ops_coll_attrs *a = begin("collective_broadcast", x, c->options, &bad);
  if (a == NULL) return bad;
  if (c->root < 0 || c->root >= (int64_t)a->members) {
    bad = cx_ops_invalid(
        "collective_broadcast: root %lld is no index in a group of %u",
        (long long)c->root, a->members);
    return refuse(a, bad);
  }
  if (scale_of(c->options) != 0) {
    bad = cx_ops_invalid("collective_broadcast: nothing is scaled");
    return refuse(a, bad);
  }
  a->root = (uint32_t)c->root;
  return end(&cx_ops_collective_broadcast, x, a);
}

void calx_collective_broadcast_with(calx_tensor *const *tensors, size_t count,
                                    int64_t root,
                                    const calx_collective_options *o)
{
  broadcast c = { root, o };
  replace("collective_broadcast", tensors, count, broadcast_bucket, &c);
}

// ---- the others -------------------------------------------------------------

calx_tensor *calx_all_gather_with(calx_tensor *x, int64_t dim,
                                  const calx_collective_options *o)
{
  calx_tensor *bad;
  cx_ops_coll_attrs *a = begin("all_gather", x, o, &bad);
  if (a == NULL) return bad;
  if (cx_lazy_tensor_shape(x)->rank == 0) {
    int64_t one = 1;
    x = calx_reshape(x, calx_dims_of(&one, 1));
  }
  if (!find_dim("all_gather", "dim", x, dim, &a->dim, &bad)) {
    return refuse(a, bad);
  }
  return scaled(end(&cx_ops_all_gather, x, a), scale_of(o));
}

calx_tensor *calx_reduce_scatter_with(calx_tensor *x, calx_reduce_type type,
                                      int64_t dim,
                                      const calx_collective_options *o)
{
  calx_tensor *bad;
  cx_ops_coll_attrs *a = begin("reduce_scatter", x, o, &bad);
  if (a == NULL) return bad;
  calx_dtype dtype = cx_lazy_tensor_shape(x)->dtype;
  calx_status *status = check_type("reduce_scatter", type, dtype);
  if (status != NULL) bad = cx_lazy_tensor_poison(status);
  if (status != NULL ||
      !find_dim("reduce_scatter", "dim", x, dim, &a->dim, &bad)) {
    return refuse(a, bad);
  }
  a->type = (uint32_t)type;
  return scaled(end(&cx_ops_reduce_scatter, x, a), scale_of(o));
}

calx_tensor *calx_all_to_all_with(calx_tensor *x, int64_t split_dim,
                                  int64_t concat_dim,
                                  const calx_collective_options *o)
{
  calx_tensor *bad;
  cx_ops_coll_attrs *a = begin("all_to_all", x, o, &bad);
  if (a == NULL) return bad;
  if (!find_dim("all_to_all", "split_dim", x, split_dim, &a->dim, &bad) ||
      !find_dim("all_to_all", "concat_dim", x, concat_dim, &a->to_dim, &bad)) {
    return refuse(a, bad);
  }
  return scaled(end(&cx_ops_all_to_all, x, a), scale_of(o));
}

// ---- collective_permute -----------------------------------------------------

// `which` 0: the sources, 1: the targets.
static calx_status *check_ends(const int64_t *pairs, size_t n, size_t which,
                               uint32_t world)
{
  bool *seen = cx_calloc(world + (size_t)1, sizeof *seen);
  if (seen == NULL) return cx_out_of_memory();
  calx_status *status = NULL;
  for (size_t i = 0; status == NULL && i < n; i++) {
    char where[64];
    snprintf(where, sizeof where, "collective_permute: pair %zu", i);
    status = mark(where, which == 0 ? "source" : "target", pairs[2 * i + which],
                  seen, world);
  }
  cx_free(seen);
  return status;
}

calx_tensor *calx_collective_permute(calx_tensor *x, const int64_t *pairs,
                                     size_t n_pairs)
{
  calx_tensor *bad;
  if (cx_ops_unfit("collective_permute", &x, 1, &bad)) return bad;
  uint32_t world = 1;
  calx_status *status =
      find_world("collective_permute", calx_tensor_device(x), &world);
  if (status == NULL && n_pairs != 0 && pairs == NULL) {
    status = cx_invalid("collective_permute: the pairs are NULL");
  }
  if (status == NULL) status = check_ends(pairs, n_pairs, 0, world);
  if (status == NULL) status = check_ends(pairs, n_pairs, 1, world);
  if (status != NULL) return cx_lazy_tensor_poison(status);
  // Nothing is sent anywhere; or, in a world of one, to itself.
  if (n_pairs == 0) return cx_ops_zeros_like(x);
  if (world == 1) return same_value(x);
  cx_ops_coll_attrs *a = attrs_new(2 * n_pairs, world);
  if (a == NULL) return cx_lazy_tensor_poison(cx_out_of_memory());
  memcpy(a->ids, pairs, 2 * n_pairs * sizeof *pairs);
  return end(&cx_ops_collective_permute, x, a);
}
