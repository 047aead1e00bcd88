// ops/composite_list: several tensors or indices to one, and one to several,
// composed of public ops.
#include "calx/creation.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "ops/composite.h"

static calx_tensor *flat(calx_tensor *x)
{
  int64_t all = -1;
  return calx_reshape(x, calx_dims_of(&all, 1));
}

// The status in all of `out`.
static void fail_all(calx_tensor *bad, size_t n, calx_tensor **out)
{
  for (size_t i = 0; out != NULL && i < n; i++) out[i] = bad;
}

// ---- several to one ---------------------------------------------------------

// Whether the list can be used. False: *out is what the function returns.
static bool list_fits(const char *op, calx_tensor *const *tensors, size_t count,
                      calx_tensor **out)
{
  if (tensors != NULL && count > 0 && count <= CX_OPS_CAT_MOST) {
    return !cx_ops_unfit(op, tensors, (uint32_t)count, out);
  }
  *out = cx_ops_invalid("%s: %zu tensors%s, 1 to %d are wanted", op, count,
                        tensors == NULL ? " at NULL" : "", CX_OPS_CAT_MOST);
  return false;
}

void calx_broadcast_tensors(calx_tensor *const *tensors, size_t count,
                            calx_tensor **out)
{
  CX_OPS_COMPOSITE_COMPLEX("broadcast_tensors");
  calx_tensor *bad;
  if (!list_fits("broadcast_tensors", tensors, count, &bad)) {
    fail_all(bad, count <= CX_OPS_CAT_MOST ? count : 0, out);
    return;
  }
  // The comparison of all has the common shape.
  calx_tensor *common = calx_eq(tensors[0], tensors[0]);
  for (size_t i = 1; i < count; i++) {
    common = calx_logical_or(common, calx_eq(tensors[i], tensors[i]));
  }
  if (cx_lazy_tensor_poisoned(common)) {
    fail_all(common, count, out);
    return;
  }
  cx_graph_shape s = *cx_lazy_tensor_shape(common);
  for (size_t i = 0; i < count; i++) {
    out[i] = calx_expand(tensors[i], cx_ops_dims_of(&s));
  }
}

calx_tensor *calx_cartesian_prod(calx_tensor *const *tensors, size_t count)
{
  CX_OPS_COMPOSITE_COMPLEX("cartesian_prod");
  calx_tensor *bad, *out[CALX_MAX_RANK];
  if (!list_fits("cartesian_prod", tensors, count, &bad)) return bad;
  for (size_t i = 0; i < count; i++) {
    const cx_graph_shape *s = cx_lazy_tensor_shape(tensors[i]);
    if (s->rank == 1 && count <= CALX_MAX_RANK) continue;
    return cx_ops_invalid(
        "cartesian_prod: tensor %zu of %zu is %s; 1 to %d vectors are wanted",
        i, count, cx_graph_shape_str(s), CALX_MAX_RANK);
  }
  if (count == 1) return tensors[0];
  calx_meshgrid(tensors, count, CALX_INDEXING_IJ, out);
  for (size_t i = 0; i < count; i++) out[i] = flat(out[i]);
  return calx_stack(out, count, 1);
}

calx_tensor *calx_column_stack(calx_tensor *const *tensors, size_t count)
{
  CX_OPS_COMPOSITE_COMPLEX("column_stack");
  calx_tensor *bad;
  if (!list_fits("column_stack", tensors, count, &bad)) return bad;
  calx_tensor **all = cx_calloc(count, sizeof *all);
  if (all == NULL) return cx_lazy_tensor_poison(cx_out_of_memory());
  for (size_t i = 0; i < count; i++) {
    int64_t column[2] = { calx_tensor_numel(tensors[i]), 1 };
    bool is_matrix = cx_lazy_tensor_shape(tensors[i])->rank > 1;
    all[i] = is_matrix ? tensors[i]
                       : calx_reshape(tensors[i], calx_dims_of(column, 2));
  }
  bad = calx_cat(all, count, 1);
  cx_free(all);
  return bad;
}

// ---- combinations -----------------------------------------------------------

enum { COMBINED_MOST = 1 << 24 };

// The number of rows; -1: their elements are more than COMBINED_MOST.
static int64_t rows_of(int64_t n, int64_t r, bool repeated)
{
  int64_t top = repeated ? n + r - 1 : n;
  if (n == 0 || top < r) return 0;
  if (r > COMBINED_MOST) return -1;
  if (r > top - r) r = top - r;  // as many as of those left out
  double rows = 1;
  for (int64_t i = 1; i <= r && rows <= COMBINED_MOST; i++) {
    rows = rows * (double)(top - r + i) / (double)i;
  }
  return rows <= COMBINED_MOST ? (int64_t)(rows + 0.5) : -1;
}

// The rows of indices in order.
static void fill_rows(int64_t n, int64_t r, bool repeated, int64_t rows,
                      int64_t *out)
{
  for (int64_t i = 0; i < r; i++) out[i] = repeated ? 0 : i;
  for (int64_t row = 1; row < rows; row++) {
    int64_t *now = out + row * r, at = r - 1;
    for (int64_t i = 0; i < r; i++) now[i] = now[i - r];
    while (now[at] == (repeated ? n - 1 : n - r + at)) at--;
    now[at]++;
    for (int64_t i = at + 1; i < r; i++) {
      now[i] = now[i - 1] + (repeated ? 0 : 1);
    }
  }
}

calx_tensor *calx_combinations_with(calx_tensor *x,
                                    const calx_combinations_options *o)
{
  CX_OPS_COMPOSITE("combinations");
  calx_tensor *bad;
  if (cx_ops_unfit("combinations", &x, 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(combinations, o, bad);
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  int64_t r = o->r == 0 ? 2 : o->r == CALX_ZERO_INT ? 0 : o->r;
  if (s->rank != 1 || r < 0) {
    return cx_ops_invalid(
        "combinations: %s, %lld at a time: a vector and 0 or more are wanted",
        cx_graph_shape_str(s), (long long)r);
  }
  if (r == 0) return calx_slice(x, 0, 0, 0, 1);
  int64_t rows = rows_of(s->dims[0], r, o->with_replacement);
  if (rows < 0 || rows * r > COMBINED_MOST) {
    return cx_ops_invalid(
        "combinations: %lld at a time of %s have more than %d elements",
        (long long)r, cx_graph_shape_str(s), COMBINED_MOST);
  }
  int64_t dims[2] = { rows, r };
  int64_t *at = cx_calloc((size_t)(rows * r) + 1, sizeof *at);
  if (at == NULL) return cx_lazy_tensor_poison(cx_out_of_memory());
  if (rows > 0) fill_rows(s->dims[0], r, o->with_replacement, rows, at);
  calx_tensor *index = calx_host_tensor(at, CALX_I64, calx_dims_of(dims, 2));
  cx_free(at);
  index = flat(calx_to(index, calx_tensor_device(x)));
  return calx_reshape(calx_index_select(x, 0, index), calx_dims_of(dims, 2));
}

// ---- one to several ---------------------------------------------------------

// The dimension that is split: 0 of a vector where hsplit is meant, else `dim`.
// False: out has the error n times.
static bool dim_to_split(const char *op, calx_tensor *x, uint32_t least,
                         int *dim, size_t n, calx_tensor **out)
{
  calx_tensor *bad;
  if (cx_ops_unfit(op, &x, 1, &bad)) {
    fail_all(bad, n, out);
    return false;
  }
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (s->rank < least) {
    fail_all(cx_ops_invalid("%s: %s, rank %u or more is wanted", op,
                            cx_graph_shape_str(s), least),
             n, out);
    return false;
  }
  if (s->rank == 1) *dim = 0;
  return true;
}

static void split_evenly(const char *op, calx_tensor *x, size_t sections,
                         uint32_t least, int dim, calx_tensor **out)
{
  if (!dim_to_split(op, x, least, &dim, sections, out)) return;
  int64_t n = calx_tensor_dim(x, dim);
  if (sections == 0 || (uint64_t)n % sections != 0) {
    fail_all(
        cx_ops_invalid("%s: dimension %d of %s does not make %zu equal "
                       "parts",
                       op, dim, cx_graph_shape_str(cx_lazy_tensor_shape(x)),
                       sections),
        sections, out);
    return;
  }
  calx_tensor_split(x, sections, dim, out);
}

static void split_at(const char *op, calx_tensor *x, calx_dims indices,
                     uint32_t least, int dim, calx_tensor **out)
{
  // A list of more than calx_dims holds is refused for as many results.
  const size_t most = CALX_MAX_RANK;
  const size_t n = 1 + (indices.count < most ? indices.count : most);
  if (!dim_to_split(op, x, least, &dim, n, out)) return;
  calx_tensor_split_at(x, indices, dim, out);
}

#define SPLIT(name, least, dim)                                               \
  void calx_##name(calx_tensor *x, size_t sections, calx_tensor **out)        \
  {                                                                           \
    CX_OPS_COMPOSITE_COMPLEX(#name);                                          \
    split_evenly(#name, x, sections, least, dim, out);                        \
  }                                                                           \
  void calx_##name##_at(calx_tensor *x, calx_dims indices, calx_tensor **out) \
  {                                                                           \
    CX_OPS_COMPOSITE_COMPLEX(#name);                                          \
    split_at(#name, x, indices, least, dim, out);                             \
  }
SPLIT(hsplit, 1, 1)
SPLIT(vsplit, 2, 0)
SPLIT(dsplit, 3, 2)

void calx_unravel_index(calx_tensor *index, calx_dims shape, calx_tensor **out)
{
  CX_OPS_COMPOSITE("unravel_index");
  calx_tensor *bad = NULL;
  size_t n = shape.count <= CALX_MAX_RANK ? shape.count : 0;
  bool fits = shape.count <= CALX_MAX_RANK;
  for (size_t i = 0; i < n; i++) fits = fits && shape.values[i] >= 0;
  if (cx_ops_unfit("unravel_index", &index, 1, &bad)) {
    fail_all(bad, n, out);
    return;
  }
  const cx_graph_shape *s = cx_lazy_tensor_shape(index);
  if (!fits || !cx_dtype_is_int(s->dtype)) {
    fail_all(cx_ops_invalid("unravel_index: %s and %zu sizes: integers, and at "
                            "most %d sizes of 0 or more, are wanted",
                            cx_graph_shape_str(s), shape.count, CALX_MAX_RANK),
             n, out);
    return;
  }
  calx_div_options down = { .size = sizeof down, .rounding = CALX_ROUND_FLOOR };
  calx_tensor *rest = calx_to_dtype(index, CALX_I64);
  for (size_t i = n; i-- > 0;) {
    calx_tensor *size =
        calx_scalar_int(shape.values[i] > 0 ? shape.values[i] : 1);
    out[i] = calx_remainder(rest, size);
    rest = calx_div_with(rest, size, &down);
  }
}

calx_tensor *calx_ravel(calx_tensor *x)
{
  CX_OPS_COMPOSITE_COMPLEX("ravel");
  return flat(x);
}
