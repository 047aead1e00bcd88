// ops/pool: max pooling in StableHLO, a fold over the window's positions.
//
// For each position (u, v) of a window the padded image is sliced with the
// stride, which lines the position's elements up with the results. The maximum
// is a fold of these slices, and "the first that equals the maximum" a fold of
// comparisons in row-major order: it gives the indices, the gradient and the
// gradient's gradient, supports dilation, and fuses into one loop. The maximum
// of windows of many positions is a stablehlo.reduce_window, and the gradient
// without padding and dilation a stablehlo.select_and_scatter (decision 002).
#include "base/dtype.h"
#include "hlo/build_op.h"
#include "ops/pool.h"

enum { FOLD_POSITIONS = 16 };  // windows up to this many positions are folded
// The CPU engine interprets a select_and_scatter of larger windows.
enum { SCATTER_POSITIONS = 256 };

// ---- the fold ---------------------------------------------------------------

typedef struct fold {
  cx_graph_emit *e;
  const cx_ops_pool_attrs *a;
  const cx_graph_shape *in;  // (N, C, H, W)
  cx_graph_shape out;        // (N, C, OH, OW), of x's type
  cx_hlo_value *padded;
  cx_hlo_value *best;   // the maximum
  cx_hlo_value *taken;  // i1: a position was found already
} fold;

static cx_hlo_value *pad4(const cx_graph_emit *e, cx_hlo_value *x,
                          cx_hlo_value *with_value, const int64_t *low,
                          const int64_t *high, const int64_t *interior)
{
  int64_t l[4] = { 0, 0, low[0], low[1] }, h[4] = { 0, 0, high[0], high[1] };
  int64_t in[4] = { 0, 0, interior[0], interior[1] };
  return cx_hlo_pad(e->b, x, with_value, l, h, in);
}

static bool is_padded(const cx_ops_pool_attrs *a)
{
  return (a->low[0] | a->low[1] | a->high[0] | a->high[1]) != 0;
}

static cx_hlo_value *padded(const fold *f, cx_hlo_value *x,
                            cx_hlo_value *filler)
{
  static const int64_t none[2] = { 0, 0 };
  if (!is_padded(f->a)) return x;
  return pad4(f->e, x, filler, f->a->low, f->a->high, none);
}

// The elements at position (u, v) of every window: (N, C, OH, OW).
static cx_hlo_value *at_position(const fold *f, cx_hlo_value *image, int64_t u,
                                 int64_t v)
{
  const cx_ops_pool_attrs *a = f->a;
  int64_t at[2] = { u * a->dilation[0], v * a->dilation[1] };
  int64_t start[4] = { 0, 0, at[0], at[1] };
  int64_t limit[4] = { f->out.dims[0], f->out.dims[1], 0, 0 };
  int64_t stride[4] = { 1, 1, a->stride[0], a->stride[1] };
  for (int i = 0; i < 2; i++) {
    limit[2 + i] = at[i] + (f->out.dims[2 + i] - 1) * a->stride[i] + 1;
  }
  return cx_hlo_slice(f->e->b, image, start, limit, stride);
}

static cx_hlo_value *bigger(const fold *f, cx_hlo_value *x, cx_hlo_value *y)
{
  return cx_hlo_binary(f->e->b, CX_HLO_OP_MAXIMUM, x, y);
}

static cx_hlo_value *window_maximum(const fold *f)
{
  const cx_ops_pool_attrs *a = f->a;
  cx_hlo_elem elem = cx_hlo_elem_of(f->in->dtype);
  if (a->kernel[0] * a->kernel[1] > FOLD_POSITIONS) {
    int64_t dims[4] = { 1, 1, a->kernel[0], a->kernel[1] };
    int64_t strides[4] = { 1, 1, a->stride[0], a->stride[1] };
    int64_t dilations[4] = { 1, 1, a->dilation[0], a->dilation[1] };
    cx_hlo_window w = { .dimensions = dims,
                        .strides = strides,
                        .dilations = dilations };
    return cx_hlo_reduce_window_with(f->e->b, CX_HLO_OP_MAXIMUM, f->padded,
                                     cx_hlo_lowest(f->e->b, elem), &w);
  }
  cx_hlo_value *best = NULL;
  for (int64_t u = 0; u < a->kernel[0]; u++) {
    for (int64_t v = 0; v < a->kernel[1]; v++) {
      cx_hlo_value *x = at_position(f, f->padded, u, v);
      best = best == NULL ? x : bigger(f, best, x);
    }
  }
  return best;
}

static fold fold_begin(cx_graph_emit *e)
{
  const cx_graph_shape *in = cx_in(e->node, 0);
  fold f = { .e = e, .a = e->attrs, .in = in, .out = *in };
  for (int i = 0; i < 2; i++) {
    f.out.dims[2 + i] = cx_ops_pool_windows(f.a, i, in->dims[2 + i]);
  }
  f.padded =
      padded(&f, e->in[0], cx_hlo_lowest(e->b, cx_hlo_elem_of(in->dtype)));
  f.best = window_maximum(&f);
  return f;
}

// i1, true where position (u, v) of a window lies inside the image.
static cx_hlo_value *inside(const fold *f, int64_t u, int64_t v)
{
  const cx_ops_pool_attrs *a = f->a;
  int64_t position[2] = { u, v };
  cx_hlo_builder *b = f->e->b;
  cx_hlo_value *all = NULL;
  cx_graph_shape ints = f->out;
  // What a window reaches beyond the image is less than the image.
  ints.dtype = cx_ops_index_dtype(
      2 * (f->in->dims[2] > f->in->dims[3] ? f->in->dims[2] : f->in->dims[3]));
  const cx_hlo_elem elem = cx_hlo_elem_of(ints.dtype);
  for (int i = 0; i < 2; i++) {
    cx_hlo_value *k = cx_hlo_iota(b, cx_hlo_type_of(&ints), 2 + i);
    cx_hlo_value *step =
        cx_ops_emit_splat(f->e, elem, &ints, (double)a->stride[i]);
    double first = (double)(position[i] * a->dilation[i] - a->low[i]);
    k = cx_hlo_binary(b, CX_HLO_OP_MULTIPLY, k, step);
    k = cx_hlo_binary(b, CX_HLO_OP_ADD, k,
                      cx_ops_emit_splat(f->e, elem, &ints, first));
    cx_hlo_value *zero = cx_ops_emit_splat(f->e, elem, &ints, 0);
    cx_hlo_value *end =
        cx_ops_emit_splat(f->e, elem, &ints, (double)f->in->dims[2 + i]);
    cx_hlo_value *in =
        cx_hlo_binary(b, CX_HLO_OP_AND, cx_hlo_compare(b, CX_HLO_GE, k, zero),
                      cx_hlo_compare(b, CX_HLO_LT, k, end));
    all = all == NULL ? in : cx_hlo_binary(b, CX_HLO_OP_AND, all, in);
  }
  return all;
}

// i1, true for the windows whose first maximum is at position (u, v).
static cx_hlo_value *is_first(fold *f, int64_t u, int64_t v)
{
  cx_hlo_builder *b = f->e->b;
  cx_hlo_value *x = at_position(f, f->padded, u, v);
  cx_hlo_value *hit = cx_hlo_compare(b, CX_HLO_EQ, x, f->best);
  if (cx_dtype_is_float(f->in->dtype)) {
    cx_hlo_value *nan = cx_hlo_compare(b, CX_HLO_NE, x, x);
    hit = cx_hlo_binary(b, CX_HLO_OP_OR, hit, nan);
  }
  if (is_padded(f->a)) {
    hit = cx_hlo_binary(b, CX_HLO_OP_AND, hit, inside(f, u, v));
  }
  if (f->taken == NULL) {
    f->taken = hit;
    return hit;
  }
  cx_hlo_value *open = cx_hlo_unary(b, CX_HLO_OP_NOT, f->taken);
  cx_hlo_value *first = cx_hlo_binary(b, CX_HLO_OP_AND, hit, open);
  f->taken = cx_hlo_binary(b, CX_HLO_OP_OR, f->taken, hit);
  return first;
}

void cx_ops_pool_emit(cx_graph_emit *e)
{
  e->out[0] = fold_begin(e).best;
}

// ---- indices, gradient, pick ------------------------------------------------

// Row-major position in the H x W plane of (u, v) of every window.
static cx_hlo_value *plane_index(const fold *f, int64_t u, int64_t v)
{
  const cx_ops_pool_attrs *a = f->a;
  cx_hlo_builder *b = f->e->b;
  cx_graph_shape ints = f->out;
  ints.dtype = CALX_I64;
  int64_t width = f->in->dims[3];
  int64_t first =
      (u * a->dilation[0] - a->low[0]) * width + v * a->dilation[1] - a->low[1];
  int64_t per[2] = { a->stride[0] * width, a->stride[1] };
  cx_hlo_value *k = cx_ops_emit_splat(f->e, CX_HLO_I64, &ints, (double)first);
  for (int i = 0; i < 2; i++) {
    cx_hlo_value *n = cx_hlo_iota(b, cx_hlo_type_of(&ints), 2 + i);
    n = cx_hlo_binary(
        b, CX_HLO_OP_MULTIPLY, n,
        cx_ops_emit_splat(f->e, CX_HLO_I64, &ints, (double)per[i]));
    k = cx_hlo_binary(b, CX_HLO_OP_ADD, k, n);
  }
  return k;
}

void cx_ops_pool_emit_indices(cx_graph_emit *e)
{
  fold f = fold_begin(e);
  cx_hlo_value *r = cx_ops_emit_splat(e, CX_HLO_I64, &e->node->out[0].shape, 0);
  for (int64_t u = 0; u < f.a->kernel[0]; u++) {
    for (int64_t v = 0; v < f.a->kernel[1]; v++) {
      r = cx_hlo_select(e->b, is_first(&f, u, v), plane_index(&f, u, v), r);
    }
  }
  e->out[0] = r;
}

// Puts the gradient's share of one position back into the padded image: the
// inverse of at_position.
static cx_hlo_value *from_position(const fold *f, cx_hlo_value *share,
                                   cx_hlo_value *zero, int64_t u, int64_t v)
{
  const cx_ops_pool_attrs *a = f->a;
  int64_t position[2] = { u, v }, low[2], high[2], interior[2];
  for (int i = 0; i < 2; i++) {
    int64_t at = position[i] * a->dilation[i];
    int64_t span = (f->out.dims[2 + i] - 1) * a->stride[i] + 1;
    // Negative where it falls into the padding: cropped.
    low[i] = at - a->low[i];
    high[i] = f->in->dims[2 + i] - low[i] - span;
    interior[i] = a->stride[i] - 1;
  }
  return pad4(f->e, share, zero, low, high, interior);
}

// Whether select_and_scatter is the gradient. In a padded image it could choose
// an element of the padding, which is -inf, where the image has only -inf.
static bool is_plain(const cx_ops_pool_attrs *a)
{
  return !is_padded(a) && a->dilation[0] == 1 && a->dilation[1] == 1 &&
         a->kernel[0] * a->kernel[1] <= SCATTER_POSITIONS;
}

// Whether the maximum so far, v[0], is kept and not replaced by v[1]: it is
// greater, the first of equals, or NaN.
static void is_kept(cx_hlo_builder *b, void *user, cx_hlo_value *const *v,
                    cx_hlo_value **out)
{
  (void)user;
  *out = cx_hlo_compare(b, CX_HLO_GE, v[0], v[1]);
  if (!cx_hlo_elem_is_float(cx_hlo_value_type(v[0])->elem)) return;
  cx_hlo_value *nan = cx_hlo_compare(b, CX_HLO_NE, v[0], v[0]);
  *out = cx_hlo_binary(b, CX_HLO_OP_OR, *out, nan);
}

static cx_hlo_value *scatter_to_maxima(cx_graph_emit *e)
{
  const cx_ops_pool_attrs *a = e->node->attrs;
  const cx_hlo_elem elem = cx_hlo_elem_of(cx_in(e->node, 0)->dtype);
  int64_t dims[4] = { 1, 1, a->kernel[0], a->kernel[1] };
  int64_t strides[4] = { 1, 1, a->stride[0], a->stride[1] };
  const cx_hlo_window w = { .dimensions = dims, .strides = strides };
  cx_hlo_op_kind sum = CX_HLO_OP_ADD;
  cx_hlo_value *zero = cx_hlo_splat(e->b, (cx_hlo_type){ .elem = elem }, 0);
  return cx_hlo_select_and_scatter(e->b, e->in[0], e->in[1], zero, &w, is_kept,
                                   cx_hlo_build_one, &sum);
}

void cx_ops_pool_emit_backward(cx_graph_emit *e)
{
  if (is_plain(e->node->attrs)) {
    e->out[0] = scatter_to_maxima(e);
    return;
  }
  fold f = fold_begin(e);
  cx_hlo_elem elem = cx_hlo_elem_of(f.in->dtype);
  cx_hlo_value *zero = cx_hlo_splat(e->b, (cx_hlo_type){ .elem = elem }, 0);
  cx_hlo_value *zeros = cx_ops_emit_expand(e, zero, &f.out);
  cx_hlo_value *sum = NULL;
  for (int64_t u = 0; u < f.a->kernel[0]; u++) {
    for (int64_t v = 0; v < f.a->kernel[1]; v++) {
      cx_hlo_value *share =
          cx_hlo_select(e->b, is_first(&f, u, v), e->in[1], zeros);
      share = from_position(&f, share, zero, u, v);
      sum =
          sum == NULL ? share : cx_hlo_binary(e->b, CX_HLO_OP_ADD, sum, share);
    }
  }
  e->out[0] = sum;
}

void cx_ops_pool_emit_pick(cx_graph_emit *e)
{
  fold f = fold_begin(e);
  cx_hlo_elem elem = cx_hlo_elem_of(f.in->dtype);
  cx_hlo_value *zero = cx_hlo_splat(e->b, (cx_hlo_type){ .elem = elem }, 0);
  cx_hlo_value *image = padded(&f, e->in[1], zero);
  cx_hlo_value *r = cx_ops_emit_expand(e, zero, &f.out);
  for (int64_t u = 0; u < f.a->kernel[0]; u++) {
    for (int64_t v = 0; v < f.a->kernel[1]; v++) {
      r = cx_hlo_select(e->b, is_first(&f, u, v), at_position(&f, image, u, v),
                        r);
    }
  }
  e->out[0] = r;
}
