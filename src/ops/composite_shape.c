// ops/composite_shape: other arrangements of the same elements, composed of
// public ops.
#include <string.h>

#include "base/dtype.h"
#include "ops/composite.h"

// False: *out is what the function returns.
static bool take_dim(const char *op, const char *which, const calx_tensor *x,
                     int64_t dim, uint32_t *out_dim, calx_tensor **out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (s->rank != 0 && cx_ops_dim(dim, s->rank, out_dim)) return true;
  *out = cx_ops_no_dim(op, which, dim, s->rank, s);
  return false;
}

// ---- repetition -------------------------------------------------------------

// Each dimension `repeats[i]` times; `inner`: each element, not the whole.
static calx_tensor *repeat_dim(calx_tensor *x, uint32_t dim, int64_t n,
                               bool inner)
{
  if (n == 1 || cx_lazy_tensor_poisoned(x)) return x;
  cx_graph_shape s = *cx_lazy_tensor_shape(x);
  // (a, d, b) as (a, 1, d b), or (a d, 1, b), expanded along the middle.
  int64_t before = 1, after = 1;
  for (uint32_t i = 0; i < s.rank; i++) {
    bool first = i < dim || (i == dim && inner);
    *(first ? &before : &after) *= s.dims[i];
  }
  int64_t flat[3] = { before, 1, after }, wide[3] = { before, n, after };
  x = calx_expand(calx_reshape(x, calx_dims_of(flat, 3)),
                  calx_dims_of(wide, 3));
  s.dims[dim] *= n;
  return cx_ops_reshape_to(x, &s);
}

calx_tensor *calx_repeat(calx_tensor *x, calx_dims repeats)
{
  CX_OPS_COMPOSITE_COMPLEX("repeat");
  calx_tensor *bad;
  if (cx_ops_unfit("repeat", &x, 1, &bad)) return bad;
  const cx_graph_shape *own = cx_lazy_tensor_shape(x);
  if (repeats.count < own->rank || repeats.count > CALX_MAX_RANK) {
    return cx_ops_invalid(
        "repeat: %zu numbers for %s: one for each dimension "
        "is wanted, and at most %d",
        repeats.count, cx_graph_shape_str(own), CALX_MAX_RANK);
  }
  cx_graph_shape s = { .rank = (uint32_t)repeats.count };
  uint32_t lead = s.rank - own->rank;
  for (uint32_t i = 0; i < s.rank; i++) {
    s.dims[i] = i < lead ? 1 : own->dims[i - lead];
    if (repeats.values[i] < 0) {
      return cx_ops_invalid("repeat: %lld times", (long long)repeats.values[i]);
    }
  }
  x = cx_ops_reshape_to(x, &s);
  for (uint32_t i = 0; i < s.rank; i++) {
    x = repeat_dim(x, i, repeats.values[i], false);
  }
  return x;
}

calx_tensor *calx_tile(calx_tensor *x, calx_dims repeats)
{
  CX_OPS_COMPOSITE_COMPLEX("tile");
  calx_tensor *bad;
  if (cx_ops_unfit("tile", &x, 1, &bad)) return bad;
  uint32_t rank = cx_lazy_tensor_shape(x)->rank;
  if (repeats.count >= rank) return calx_repeat(x, repeats);
  int64_t all[CALX_MAX_RANK];
  size_t lead = rank - repeats.count;
  for (uint32_t i = 0; i < rank; i++) {
    all[i] = i < lead ? 1 : repeats.values[i - lead];
  }
  return calx_repeat(x, calx_dims_of(all, rank));
}

calx_tensor *calx_repeat_interleave(calx_tensor *x, int64_t repeats, int dim)
{
  CX_OPS_COMPOSITE_COMPLEX("repeat_interleave");
  calx_tensor *bad;
  uint32_t d;
  if (cx_ops_unfit("repeat_interleave", &x, 1, &bad) ||
      !take_dim("repeat_interleave", "dim", x, dim, &d, &bad)) {
    return bad;
  }
  if (repeats < 0) {
    return cx_ops_invalid("repeat_interleave: %lld times", (long long)repeats);
  }
  return repeat_dim(x, d, repeats, true);
}

// ---- order of dimensions ----------------------------------------------------

calx_tensor *calx_movedim(calx_tensor *x, int source, int destination)
{
  CX_OPS_COMPOSITE_COMPLEX("movedim");
  calx_tensor *bad;
  uint32_t from, to;
  if (cx_ops_unfit("movedim", &x, 1, &bad)) return bad;
  bool scalar = cx_lazy_tensor_shape(x)->rank == 0;
  if (scalar && cx_ops_dim(source, 0, &from) &&
      cx_ops_dim(destination, 0, &to)) {
    return calx_permute(x, CALX_SCALAR);
  }
  if (!take_dim("movedim", "source", x, source, &from, &bad) ||
      !take_dim("movedim", "destination", x, destination, &to, &bad)) {
    return bad;
  }
  int64_t dims[CALX_MAX_RANK];
  uint32_t rank = cx_lazy_tensor_shape(x)->rank;
  for (uint32_t i = 0, next = 0; i < rank; i++) {
    if (next == from) next++;
    dims[i] = i == to ? from : next++;
  }
  return calx_permute(x, calx_dims_of(dims, rank));
}

calx_tensor *calx_unflatten(calx_tensor *x, int dim, calx_dims sizes)
{
  CX_OPS_COMPOSITE_COMPLEX("unflatten");
  calx_tensor *bad;
  uint32_t d;
  if (cx_ops_unfit("unflatten", &x, 1, &bad) ||
      !take_dim("unflatten", "dim", x, dim, &d, &bad)) {
    return bad;
  }
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  int64_t dims[2 * CALX_MAX_RANK];
  size_t n = 0;
  if (sizes.count + s->rank > CALX_MAX_RANK + 1) {
    return cx_ops_invalid(
        "unflatten: %zu sizes for dimension %u of %s, at most "
        "%d dimensions are possible",
        sizes.count, d, cx_graph_shape_str(s), CALX_MAX_RANK);
  }
  for (uint32_t i = 0; i < s->rank; i++) {
    for (size_t k = 0; i == d && k < sizes.count; k++) {
      dims[n++] = sizes.values[k];
    }
    if (i != d) dims[n++] = s->dims[i];
  }
  return calx_reshape(x, calx_dims_of(dims, n));
}

// ---- parts ------------------------------------------------------------------

calx_tensor *calx_narrow(calx_tensor *x, int dim, int64_t start, int64_t length)
{
  CX_OPS_COMPOSITE_COMPLEX("narrow");
  calx_tensor *bad;
  uint32_t d;
  if (cx_ops_unfit("narrow", &x, 1, &bad) ||
      !take_dim("narrow", "dim", x, dim, &d, &bad)) {
    return bad;
  }
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  int64_t n = s->dims[d], from = start < 0 ? start + n : start;
  if (from < 0 || length < 0 || from > n || length > n - from) {
    return cx_ops_poison(CALX_OUT_OF_RANGE,
                         "narrow: %lld elements from %lld on: dimension %u of "
                         "%s has %lld",
                         (long long)length, (long long)start, d,
                         cx_graph_shape_str(s), (long long)n);
  }
  return calx_slice(x, (int)d, from, from + length, 1);
}

// Cuts x into n parts of these sizes, which add up to the dimension's.
static void cut(calx_tensor *x, uint32_t dim, const int64_t *sizes, size_t n,
                calx_tensor **out)
{
  int64_t at = 0;
  for (size_t i = 0; i < n; i++) {
    out[i] = calx_slice(x, (int)dim, at, at + sizes[i], 1);
    at += sizes[i];
  }
}

// All parts are this tensor, an error.
static void all_parts(calx_tensor *error, calx_tensor **out, size_t n)
{
  for (size_t i = 0; i < n; i++) out[i] = error;
}

void calx_split(calx_tensor *x, calx_dims sizes, int dim, calx_tensor **out)
{
  CX_OPS_COMPOSITE_COMPLEX("split");
  calx_tensor *bad;
  uint32_t d = 0;
  if (sizes.count > CALX_MAX_RANK) {
    bad = cx_ops_invalid(
        "split: %zu sizes, calx_dims holds %d: calx_chunk and "
        "calx_tensor_split make any number of parts",
        sizes.count, CALX_MAX_RANK);
    all_parts(bad, out, CALX_MAX_RANK);
    return;
  }
  if (cx_ops_unfit("split", &x, 1, &bad) ||
      !take_dim("split", "dim", x, dim, &d, &bad)) {
    all_parts(bad, out, sizes.count);
    return;
  }
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  int64_t sum = 0;
  bool fits = true;
  for (size_t i = 0; i < sizes.count; i++) {
    fits &= sizes.values[i] >= 0 &&
            !__builtin_add_overflow(sum, sizes.values[i], &sum);
  }
  if (!fits || sum != s->dims[d]) {
    bad = cx_ops_invalid(
        "split: the %zu sizes do not add up to dimension %u of "
        "%s",
        sizes.count, d, cx_graph_shape_str(s));
    all_parts(bad, out, sizes.count);
    return;
  }
  cut(x, d, sizes.values, sizes.count, out);
}

size_t calx_chunk(calx_tensor *x, size_t chunks, int dim, calx_tensor **out)
{
  CX_OPS_COMPOSITE_COMPLEX("chunk");
  calx_tensor *bad;
  uint32_t d = 0;
  if (cx_ops_unfit("chunk", &x, 1, &bad) ||
      !take_dim("chunk", "dim", x, dim, &d, &bad)) {
    all_parts(bad, out, chunks);
    return chunks;
  }
  int64_t n = cx_lazy_tensor_shape(x)->dims[d], at = 0;
  int64_t each = chunks == 0 ? n : (n + (int64_t)chunks - 1) / (int64_t)chunks;
  size_t made = 0;
  while (made < chunks && (at < n || n == 0)) {
    int64_t end = at + each < n ? at + each : n;
    out[made++] = calx_slice(x, (int)d, at, end, 1);
    at = end;
  }
  return made;
}

void calx_unbind(calx_tensor *x, int dim, calx_tensor **out)
{
  CX_OPS_COMPOSITE_COMPLEX("unbind");
  calx_tensor *bad;
  uint32_t d = 0;
  if (cx_ops_unfit("unbind", &x, 1, &bad) ||
      !take_dim("unbind", "dim", x, dim, &d, &bad)) {
    return;
  }
  int64_t n = cx_lazy_tensor_shape(x)->dims[d];
  for (int64_t i = 0; i < n; i++) out[i] = calx_select(x, (int)d, i);
}

// ---- rolling ----------------------------------------------------------------

calx_tensor *calx_roll(calx_tensor *x, calx_dims shifts, calx_dims dims)
{
  CX_OPS_COMPOSITE_COMPLEX("roll");
  calx_tensor *bad;
  if (cx_ops_unfit("roll", &x, 1, &bad)) return bad;
  cx_graph_shape s = *cx_lazy_tensor_shape(x);
  int64_t first = 0, all = -1;
  bool flat = dims.count == 0;
  if (flat) {
    dims = calx_dims_of(&first, 1);
    x = calx_reshape(x, calx_dims_of(&all, 1));
  }
  if (dims.count != shifts.count) {
    return cx_ops_invalid("roll: %zu shifts and %zu dims", shifts.count,
                          dims.count);
  }
  for (size_t i = 0; i < dims.count; i++) {
    uint32_t d;
    if (!take_dim("roll", "dim", x, dims.values[i], &d, &bad)) return bad;
    int64_t n = cx_lazy_tensor_shape(x)->dims[d];
    int64_t by = n != 0 ? (shifts.values[i] % n + n) % n : 0;
    if (by == 0) continue;
    calx_tensor *parts[2] = { calx_slice(x, (int)d, n - by, n, 1),
                              calx_slice(x, (int)d, 0, n - by, 1) };
    x = calx_cat(parts, 2, (int)d);
  }
  return flat && !cx_lazy_tensor_poisoned(x) ? cx_ops_reshape_to(x, &s) : x;
}

// ---- triangles and diagonals ------------------------------------------------

// Column minus row of each element of the last two dimensions: (n, m).
static calx_tensor *columns_minus_rows(const calx_tensor *x)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  int64_t n = s->dims[s->rank - 2], m = s->dims[s->rank - 1];
  calx_create_options o = { .size = sizeof o,
                            .dtype = CALX_I64,
                            .device = calx_tensor_device(x) };
  calx_tensor *rows = calx_unsqueeze(calx_arange_with(0, (double)n, 1, &o), 1);
  return cx_ops_minus(calx_arange_with(0, (double)m, 1, &o), rows);
}

static calx_tensor *triangle(const char *op, calx_tensor *x, int64_t diagonal,
                             calx_tensor *(*inside)(calx_tensor *,
                                                    calx_tensor *))
{
  calx_tensor *bad;
  if (cx_ops_unfit(op, &x, 1, &bad)) return bad;
  if (cx_lazy_tensor_shape(x)->rank < 2) {
    return cx_ops_invalid("%s: a matrix is wanted, not %s", op,
                          cx_graph_shape_str(cx_lazy_tensor_shape(x)));
  }
  calx_tensor *mask = inside(columns_minus_rows(x), calx_scalar_int(diagonal));
  // A weak 0 would make f32 of integers.
  calx_tensor *zero =
      cx_ops_weak_as(cx_ops_number(0), cx_lazy_tensor_shape(x)->dtype, NULL);
  return calx_where(mask, x, zero);
}

calx_tensor *calx_tril(calx_tensor *x, int64_t diagonal)
{
  CX_OPS_COMPOSITE_COMPLEX("tril");
  return triangle("tril", x, diagonal, calx_le);
}

calx_tensor *calx_triu(calx_tensor *x, int64_t diagonal)
{
  CX_OPS_COMPOSITE_COMPLEX("triu");
  return triangle("triu", x, diagonal, calx_ge);
}

calx_tensor *calx_diagonal_with(calx_tensor *x, const calx_diagonal_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("diagonal");
  calx_tensor *bad;
  uint32_t d1 = 0, d2 = 0;
  if (cx_ops_unfit("diagonal", &x, 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(diagonal, o, bad);
  bool none = o->dim1 == 0 && o->dim2 == 0;
  if (!take_dim("diagonal", "dim1", x, o->dim1, &d1, &bad) ||
      !take_dim("diagonal", "dim2", x, none ? 1 : o->dim2, &d2, &bad)) {
    return bad;
  }
  cx_graph_shape s = *cx_lazy_tensor_shape(x);
  if (d1 == d2) {
    return cx_ops_invalid("diagonal: dim1 and dim2 are both %u", d1);
  }
  x = calx_movedim(calx_movedim(x, (int)d1, -1), (int)(d2 > d1 ? d2 - 1 : d2),
                   -1);
  int64_t n = s.dims[d1], m = s.dims[d2], down = o->offset < 0 ? -o->offset : 0,
          right = o->offset > 0 ? o->offset : 0;
  int64_t count = n - down < m - right ? n - down : m - right;
  if (count < 0) count = 0;
  // Along the rows laid end to end, the diagonal's elements are m + 1 apart.
  s = *cx_lazy_tensor_shape(x);
  s.dims[s.rank - 2] = n * m;
  s.dims[--s.rank] = 0;
  int64_t first = down * m + right;
  int64_t end = count > 0 ? first + (count - 1) * (m + 1) + 1 : first;
  return calx_slice(cx_ops_reshape_to(x, &s), -1, first, end, m + 1);
}

calx_tensor *calx_pixel_shuffle(calx_tensor *x, int64_t upscale_factor)
{
  CX_OPS_COMPOSITE_COMPLEX("pixel_shuffle");
  calx_tensor *bad;
  if (cx_ops_unfit("pixel_shuffle", &x, 1, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  int64_t r = upscale_factor;
  if (s->rank < 3 || s->rank > 6 || r < 1 || r > 32768 ||
      s->dims[s->rank - 3] % (r * r) != 0) {
    return cx_ops_invalid(
        "pixel_shuffle: %s by %lld: (…, C r^2, H, W) is wanted",
        cx_graph_shape_str(s), (long long)r);
  }
  cx_graph_shape out = *s;
  uint32_t c = s->rank - 3;
  int64_t n = 1;
  for (uint32_t i = 0; i < c; i++) n *= s->dims[i];
  out.dims[c] /= r * r;
  out.dims[c + 1] *= r;
  out.dims[c + 2] *= r;
  int64_t split[6] = { n * out.dims[c], r, r, s->dims[c + 1], s->dims[c + 2] };
  int64_t order[5] = { 0, 3, 1, 4, 2 };
  x = calx_permute(calx_reshape(x, calx_dims_of(split, 5)),
                   calx_dims_of(order, 5));
  return cx_ops_reshape_to(x, &out);
}
