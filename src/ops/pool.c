// ops/pool: max pooling, written as a fold over the window's positions.
//
// For each position (u, v) of a window the padded image is sliced with the
// stride, which lines the position's elements up with the results. The maximum
// is a fold of these slices, and "the first that equals the maximum" a fold of
// comparisons in row-major order: it gives the indices, the gradient and the
// gradient's gradient, supports dilation, and fuses into one loop. The maximum
// of windows of many positions is a stablehlo.reduce_window, and the gradient
// without padding and dilation a stablehlo.select_and_scatter (decision 002).
#include <string.h>

#include "base/dtype.h"
#include "ops/autocast.h"
#include "ops/ops.h"

typedef struct pool_attrs {
  int64_t kernel[2], stride[2], dilation[2];
  int64_t low[2], high[2];  // padding; high with what ceil_mode adds
} pool_attrs;

enum { FOLD_POSITIONS = 16 };  // windows up to this many positions are folded
enum { SCATTER_POSITIONS = 256 };  // the CPU engine unrolls as many

// ---- shape rules: x (N, C, H, W) --------------------------------------------

static int64_t result_size(const pool_attrs *a, int i, int64_t in)
{
  return (in + a->low[i] + a->high[i] - a->dilation[i] * (a->kernel[i] - 1) -
          1) /
             a->stride[i] +
         1;
}

static calx_status *infer_pool(cx_graph_node *node)
{
  const pool_attrs *a = node->attrs;
  cx_graph_shape *out = &node->out[0].shape;
  *out = *cx_in(node, 0);
  for (int i = 0; i < 2; i++) {
    out->dims[2 + i] = result_size(a, i, out->dims[2 + i]);
  }
  return NULL;
}

static calx_status *infer_indices(cx_graph_node *node)
{
  CALX_TRY(infer_pool(node));
  node->out[0].shape.dtype = CALX_I64;
  return NULL;
}

// ---- gradients --------------------------------------------------------------

static calx_tensor *with(const cx_graph_op *op, const cx_lazy_tape *t,
                         calx_tensor *g)
{
  calx_tensor *in[2] = { cx_lazy_tape_in(t, 0), g };
  return cx_ops_record(op, in, 2, t->attrs);
}

static void grad_max_pool2d(cx_lazy_tape *t)
{
  t->in_grads[0] = with(&cx_ops_max_pool2d_backward, t, t->out_grads[0]);
}

// The result is linear in g. It does not depend on x but for the positions of
// the maxima, whose derivative is 0.
static void grad_backward(cx_lazy_tape *t)
{
  if (cx_tape_needs(t, 0))
    t->in_grads[0] = cx_ops_zeros_like(cx_lazy_tape_in(t, 0));
  if (cx_tape_needs(t, 1)) {
    t->in_grads[1] = with(&cx_ops_max_pool2d_pick, t, t->out_grads[0]);
  }
}

static void grad_pick(cx_lazy_tape *t)
{
  if (cx_tape_needs(t, 0))
    t->in_grads[0] = cx_ops_zeros_like(cx_lazy_tape_in(t, 0));
  if (cx_tape_needs(t, 1)) {
    t->in_grads[1] = with(&cx_ops_max_pool2d_backward, t, t->out_grads[0]);
  }
}

// ---- emission: the fold -----------------------------------------------------

typedef struct fold {
  cx_graph_emit *e;
  const pool_attrs *a;
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

static bool is_padded(const pool_attrs *a)
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
  const pool_attrs *a = f->a;
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
  const pool_attrs *a = f->a;
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
    f.out.dims[2 + i] = result_size(f.a, i, in->dims[2 + i]);
  }
  f.padded =
      padded(&f, e->in[0], cx_hlo_lowest(e->b, cx_hlo_elem_of(in->dtype)));
  f.best = window_maximum(&f);
  return f;
}

// i1, true where position (u, v) of a window lies inside the image.
static cx_hlo_value *inside(const fold *f, int64_t u, int64_t v)
{
  const pool_attrs *a = f->a;
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

static void emit_max_pool2d(cx_graph_emit *e)
{
  e->out[0] = fold_begin(e).best;
}

// ---- emission: indices, gradient, pick --------------------------------------

// Row-major position in the H x W plane of (u, v) of every window.
static cx_hlo_value *plane_index(const fold *f, int64_t u, int64_t v)
{
  const pool_attrs *a = f->a;
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

static void emit_max_pool2d_indices(cx_graph_emit *e)
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
  const pool_attrs *a = f->a;
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

// Whether select_and_scatter is the gradient. Of padding it could choose -inf,
// where the image has nothing greater.
static bool is_plain(const pool_attrs *a)
{
  return !is_padded(a) && a->dilation[0] == 1 && a->dilation[1] == 1 &&
         a->kernel[0] * a->kernel[1] <= SCATTER_POSITIONS;
}

// Whether v[0], the maximum so far, stays one beside v[1]: it is the first of
// equals or a NaN.
static void stays(cx_hlo_builder *b, void *user, cx_hlo_value *const *v,
                  cx_hlo_value **out)
{
  const bool *is_float = user;
  *out = cx_hlo_compare(b, CX_HLO_GE, v[0], v[1]);
  if (!*is_float) return;
  cx_hlo_value *nan = cx_hlo_compare(b, CX_HLO_NE, v[0], v[0]);
  *out = cx_hlo_binary(b, CX_HLO_OP_OR, *out, nan);
}

static void add(cx_hlo_builder *b, void *user, cx_hlo_value *const *v,
                cx_hlo_value **out)
{
  (void)user;
  *out = cx_hlo_binary(b, CX_HLO_OP_ADD, v[0], v[1]);
}

static cx_hlo_value *scatter_to_maxima(cx_graph_emit *e)
{
  const pool_attrs *a = e->node->attrs;
  const calx_dtype dtype = cx_in(e->node, 0)->dtype;
  const cx_hlo_type type = { .elem = cx_hlo_elem_of(dtype) };
  int64_t dims[4] = { 1, 1, a->kernel[0], a->kernel[1] };
  int64_t strides[4] = { 1, 1, a->stride[0], a->stride[1] };
  const cx_hlo_window w = { .dimensions = dims, .strides = strides };
  bool is_float = cx_dtype_is_float(dtype);
  return cx_hlo_select_and_scatter(e->b, e->in[0], e->in[1],
                                   cx_hlo_splat(e->b, type, 0), &w, stays, add,
                                   &is_float);
}

static void emit_max_pool2d_backward(cx_graph_emit *e)
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

static void emit_max_pool2d_pick(cx_graph_emit *e)
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

static void describe_pool(const void *attrs, cx_text *out)
{
  const pool_attrs *a = attrs;
  cx_text_format(out,
                 "kernel (%lld, %lld), stride (%lld, %lld), padding (%lld, "
                 "%lld), dilation (%lld, %lld)",
                 (long long)a->kernel[0], (long long)a->kernel[1],
                 (long long)a->stride[0], (long long)a->stride[1],
                 (long long)a->low[0], (long long)a->low[1],
                 (long long)a->dilation[0], (long long)a->dilation[1]);
}

#define OP(op, rule, gradient)                                      \
  CX_OPS_DEFINE(op, .attr_size = sizeof(pool_attrs), .infer = rule, \
                .grad = gradient, .emit = emit_##op,                \
                .describe = describe_pool)

OP(max_pool2d, infer_pool, grad_max_pool2d)
OP(max_pool2d_indices, infer_indices, NULL)
OP(max_pool2d_backward, cx_ops_infer_same, grad_backward)
OP(max_pool2d_pick, infer_pool, grad_pick)

// ---- entry ------------------------------------------------------------------

// With ceil_mode a last window may begin inside the image or its left padding
// and run over the end (PyTorch's rule).
static void add_ceil(pool_attrs *a, int i, int64_t in)
{
  int64_t room = in + 2 * a->low[i] - a->dilation[i] * (a->kernel[i] - 1) - 1;
  int64_t n = (room + a->stride[i] - 1) / a->stride[i] + 1;
  if ((n - 1) * a->stride[i] >= in + a->low[i]) n--;
  int64_t reach = (n - 1) * a->stride[i] + a->dilation[i] * (a->kernel[i] - 1);
  int64_t high = reach + 1 - in - a->low[i];
  if (high > a->high[i]) a->high[i] = high;
}

// False: `why` says what is wrong.
static bool read_options(const calx_max_pool2d_options *o, int64_t kernel,
                         const cx_graph_shape *x, pool_attrs *a, cx_text *why)
{
  static const calx_max_pool2d_options none = { .size = sizeof none };
  if (o == NULL) o = &none;
  memset(a, 0, sizeof *a);
  if (o->size > sizeof *o) {
    cx_text_append(why, "its options are of a newer version");
    return false;
  }
  a->kernel[0] = kernel;
  a->kernel[1] = o->kernel_width == 0 ? kernel : o->kernel_width;
  for (int i = 0; i < 2; i++) {
    a->stride[i] = cx_ops_pair(o->stride, i, a->kernel[i]);
    a->dilation[i] = cx_ops_pair(o->dilation, i, 1);
    a->low[i] = a->high[i] = cx_ops_pair(o->padding, i, 0);
    int64_t in = x->dims[x->rank - 2 + (uint32_t)i];
    if (!cx_ops_in_range(why, "kernel_size", a->kernel[i], 1, INT32_MAX) ||
        !cx_ops_in_range(why, "stride", a->stride[i], 1, INT32_MAX) ||
        !cx_ops_in_range(why, "dilation", a->dilation[i], 1, INT32_MAX) ||
        !cx_ops_in_range(why, "padding, at most half the kernel,", a->low[i], 0,
                         a->kernel[i] / 2)) {
      return false;
    }
    if (o->ceil_mode) add_ceil(a, i, in);
    if (in + a->low[i] + a->high[i] < a->dilation[i] * (a->kernel[i] - 1) + 1) {
      cx_text_format(why,
                     "the window, of %lld %s with its dilation, is larger than "
                     "the padded image",
                     (long long)(a->dilation[i] * (a->kernel[i] - 1) + 1),
                     i == 0 ? "rows" : "columns");
      return false;
    }
  }
  return true;
}

calx_tensor *calx_max_pool2d_with(calx_tensor *x, int64_t kernel_size,
                                  const calx_max_pool2d_options *o)
{
  CX_OPS_AUTOCAST(CX_OPS_LOWER, &x);
  calx_tensor *bad;
  calx_tensor **indices = o != NULL ? o->out_indices : NULL;
  if (indices != NULL) *indices = NULL;
  if (cx_ops_unfit("max_pool2d", &x, 1, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if ((s->rank != 4 && s->rank != 3) || s->dtype == CALX_BOOL) {
    return cx_ops_invalid(
        "max_pool2d: images (N,C,H,W) or (C,H,W) are wanted, got %s",
        cx_graph_shape_str(s));
  }
  pool_attrs a;
  cx_text why = { 0 };
  if (!read_options(o, kernel_size, s, &a, &why)) {
    bad = cx_ops_invalid("max_pool2d: %s; got %s", cx_text_str(&why),
                         cx_graph_shape_str(s));
    cx_text_free(&why);
    return bad;
  }
  bool single = s->rank == 3;
  if (single) x = calx_unsqueeze(x, 0);
  calx_tensor *y = cx_ops_record(&cx_ops_max_pool2d, &x, 1, &a);
  if (indices != NULL) {
    calx_tensor *i = cx_ops_record(&cx_ops_max_pool2d_indices, &x, 1, &a);
    *indices = single && !cx_lazy_tensor_poisoned(i) ? calx_squeeze(i, 0) : i;
  }
  return single && !cx_lazy_tensor_poisoned(y) ? calx_squeeze(y, 0) : y;
}
