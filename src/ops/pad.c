// ops/pad: padding and cropping of dimensions, and reversal. Each is its own
// gradient's op.
#include <string.h>

#include "base/dtype.h"
#include "ops/autocast.h"
#include "ops/composite.h"

// ---- pad: in (x, value ()) --------------------------------------------------

typedef struct pad_attrs {
  int64_t low[CALX_MAX_RANK], high[CALX_MAX_RANK];  // negative: cropped
} pad_attrs;

static calx_status *infer_pad(cx_graph_node *node)
{
  const pad_attrs *a = node->attrs;
  cx_graph_shape *out = &node->out[0].shape;
  *out = *cx_in(node, 0);
  for (uint32_t i = 0; i < out->rank; i++) {
    int64_t size;
    if (__builtin_add_overflow(out->dims[i], a->low[i], &size) ||
        __builtin_add_overflow(size, a->high[i], &out->dims[i]) ||
        out->dims[i] < 0) {
      return cx_ops_error(node,
                          "dimension %u, of size %lld, cannot grow by %lld "
                          "and %lld",
                          i, (long long)cx_in(node, 0)->dims[i],
                          (long long)a->low[i], (long long)a->high[i]);
    }
  }
  return NULL;
}

static calx_tensor *record_pad(calx_tensor *x, calx_tensor *value,
                               const pad_attrs *a)
{
  calx_tensor *in[2] = { x, value };
  return cx_ops_record(&cx_ops_pad, in, 2, a);
}

static void grad_pad(cx_lazy_tape *t)
{
  const pad_attrs *a = t->attrs;
  pad_attrs back;
  memset(&back, 0, sizeof back);
  for (int i = 0; i < CALX_MAX_RANK; i++) {
    back.low[i] = -a->low[i];
    back.high[i] = -a->high[i];
  }
  calx_tensor *g = t->out_grads[0];
  calx_tensor *zero =
      cx_ops_weak_as(cx_ops_number(0), cx_lazy_tensor_shape(g)->dtype, NULL);
  if (cx_tape_needs(t, 0)) t->in_grads[0] = record_pad(g, zero, &back);
  if (cx_tape_needs(t, 1)) {
    calx_tensor *inside = record_pad(g, zero, &back);
    t->in_grads[1] =
        cx_ops_minus(calx_sum_with(g, NULL), calx_sum_with(inside, NULL));
  }
}

static void emit_pad(cx_graph_emit *e)
{
  static const int64_t none[CALX_MAX_RANK] = { 0 };
  const pad_attrs *a = e->attrs;
  e->out[0] = cx_hlo_pad(e->b, e->in[0], e->in[1], a->low, a->high, none);
}

static void describe_pad(const void *attrs, cx_text *out)
{
  const pad_attrs *a = attrs;
  for (int i = 0; i < CALX_MAX_RANK; i++) {
    if ((a->low[i] | a->high[i]) == 0) continue;
    cx_text_format(out, "%sdim %d by (%lld, %lld)", out->size != 0 ? ", " : "",
                   i, (long long)a->low[i], (long long)a->high[i]);
  }
}

CX_OPS_DEFINE(pad, .attr_size = sizeof(pad_attrs), .infer = infer_pad,
              .grad = grad_pad, .emit = emit_pad, .describe = describe_pad,
              .takes_complex = true)

static calx_tensor *pad_constant(calx_tensor *x, const pad_attrs *a,
                                 double value)
{
  calx_dtype dtype = cx_lazy_tensor_shape(x)->dtype;
  calx_status *status = cx_ops_check_number("pad", value, dtype);
  if (status != NULL) return cx_lazy_tensor_poison(status);
  return record_pad(x, cx_ops_weak_as(calx_scalar(value), dtype, NULL), a);
}

calx_tensor *cx_ops_pad_dim(calx_tensor *x, uint32_t dim, int64_t low,
                            int64_t high, double value)
{
  if (cx_lazy_tensor_poisoned(x)) return x;
  pad_attrs a;
  memset(&a, 0, sizeof a);
  a.low[dim] = low;
  a.high[dim] = high;
  return pad_constant(x, &a, value);
}

// ---- flip -------------------------------------------------------------------

typedef struct flip_attrs {
  uint32_t dims;  // bit i: dimension i is reversed
} flip_attrs;

static calx_tensor *record_flip(calx_tensor *x, uint32_t dims)
{
  flip_attrs a = { dims };
  return dims == 0 ? x : cx_ops_record(&cx_ops_flip, &x, 1, &a);
}

static void grad_flip(cx_lazy_tape *t)
{
  const flip_attrs *a = t->attrs;
  t->in_grads[0] = record_flip(t->out_grads[0], a->dims);
}

static void emit_flip(cx_graph_emit *e)
{
  const flip_attrs *a = e->attrs;
  int64_t dims[CALX_MAX_RANK];
  size_t n = 0;
  for (int i = 0; i < CALX_MAX_RANK; i++) {
    if ((a->dims >> i & 1) != 0) dims[n++] = i;
  }
  e->out[0] = cx_hlo_reverse(e->b, e->in[0], dims, n);
}

static void describe_flip(const void *attrs, cx_text *out)
{
  const flip_attrs *a = attrs;
  for (int i = 0; i < CALX_MAX_RANK; i++) {
    if ((a->dims >> i & 1) == 0) continue;
    cx_text_format(out, "%s%d", out->size != 0 ? ", " : "dims ", i);
  }
}

CX_OPS_DEFINE(flip, .attr_size = sizeof(flip_attrs), .infer = cx_ops_infer_same,
              .grad = grad_flip, .emit = emit_flip, .describe = describe_flip,
              .takes_complex = true)

calx_tensor *calx_flip(calx_tensor *x, calx_dims dims)
{
  calx_tensor *bad;
  if (cx_ops_unfit("flip", &x, 1, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  uint32_t set = 0, d;
  for (size_t i = 0; i < dims.count; i++) {
    if (!cx_ops_dim(dims.values[i], s->rank, &d)) {
      return cx_ops_no_dim("flip", "dim", dims.values[i], s->rank, s);
    }
    if (s->rank != 0) set |= UINT32_C(1) << d;
  }
  return record_flip(x, set);
}

// ---- the modes of padding ---------------------------------------------------

// `count` slices of x along dim, the first at `start`, in reverse where `back`.
static calx_tensor *strip(calx_tensor *x, uint32_t dim, int64_t start,
                          int64_t count, bool back)
{
  x = calx_slice(x, (int)dim, start, start + count, 1);
  return back ? record_flip(x, UINT32_C(1) << dim) : x;
}

// One edge of the dimension, `count` times.
static calx_tensor *repeated(calx_tensor *x, uint32_t dim, int64_t at,
                             int64_t count)
{
  calx_tensor *edge = calx_slice(x, (int)dim, at, at + 1, 1);
  cx_graph_shape s = *cx_lazy_tensor_shape(edge);
  s.dims[dim] = count;
  return calx_expand(edge, cx_ops_dims_of(&s));
}

// Pads one dimension from x's own elements.
static calx_tensor *pad_from_self(calx_tensor *x, uint32_t dim, int64_t low,
                                  int64_t high, calx_pad_mode mode)
{
  int64_t n = cx_lazy_tensor_shape(x)->dims[dim];
  calx_tensor *parts[3];
  size_t count = 0;
  int64_t from = low < 0 ? -low : 0, to = high < 0 ? n + high : n;
  if (low > 0) {
    parts[count++] = mode == CALX_PAD_REFLECT ? strip(x, dim, 1, low, true)
                     : mode == CALX_PAD_CIRCULAR
                         ? strip(x, dim, n - low, low, false)
                         : repeated(x, dim, 0, low);
  }
  parts[count++] = calx_slice(x, (int)dim, from, to, 1);
  if (high > 0) {
    parts[count++] =
        mode == CALX_PAD_REFLECT    ? strip(x, dim, n - 1 - high, high, true)
        : mode == CALX_PAD_CIRCULAR ? strip(x, dim, 0, high, false)
                                    : repeated(x, dim, n - 1, high);
  }
  return calx_cat(parts, count, (int)dim);
}

// Why the sizes do not fit a mode; NULL: they do.
static const char *misfit(calx_pad_mode mode, int64_t n, int64_t low,
                          int64_t high)
{
  int64_t most = low > high ? low : high;
  // Each is cut off before the other edge's elements are repeated.
  if (low < -n || high < -n || n + low + high < 1) {
    return "nothing is left of it";
  }
  if (mode == CALX_PAD_REFLECT && most >= n) {
    return "reflection takes less than the dimension's size";
  }
  if (mode == CALX_PAD_CIRCULAR && most > n) {
    return "circular padding takes at most the dimension's size";
  }
  return mode == CALX_PAD_REPLICATE && n == 0 ? "there is no element to repeat"
                                              : NULL;
}

calx_tensor *calx_pad_with(calx_tensor *x, calx_dims pad,
                           const calx_pad_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("pad");
  calx_tensor *bad;
  if (cx_ops_unfit("pad", &x, 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(pad, o, bad);
  calx_tensor *none = NULL;
  const bool repeats =
      o->mode == CALX_PAD_REFLECT || o->mode == CALX_PAD_REPLICATE;
  CX_OPS_AUTOCAST(CX_OPS_F32, repeats ? &x : &none);
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (pad.count > CALX_MAX_RANK) {
    return cx_ops_invalid(
        "pad: %zu numbers, calx_dims holds %d: a pair for each of the last %d "
        "dimensions at most; calx_movedim brings others there",
        pad.count, CALX_MAX_RANK, CALX_MAX_RANK / 2);
  }
  if (pad.count % 2 != 0 || pad.count / 2 > s->rank ||
      (unsigned)o->mode > CALX_PAD_CIRCULAR) {
    return cx_ops_invalid(
        "pad: %zu numbers and mode %d for %s: a pair for each "
        "of its last dimensions and a mode of calx_pad_mode "
        "are wanted",
        pad.count, (int)o->mode, cx_graph_shape_str(s));
  }
  pad_attrs a;
  memset(&a, 0, sizeof a);
  for (size_t i = 0; i < pad.count; i += 2) {
    uint32_t dim = s->rank - 1 - (uint32_t)(i / 2);
    a.low[dim] = pad.values[i];
    a.high[dim] = pad.values[i + 1];
  }
  if (o->mode == CALX_PAD_CONSTANT) return pad_constant(x, &a, o->value);
  for (uint32_t dim = 0; dim < s->rank; dim++) {
    if ((a.low[dim] | a.high[dim]) == 0) continue;
    const char *why = misfit(o->mode, s->dims[dim], a.low[dim], a.high[dim]);
    if (why != NULL) {
      return cx_ops_invalid("pad: dimension %u of %s by %lld and %lld: %s", dim,
                            cx_graph_shape_str(s), (long long)a.low[dim],
                            (long long)a.high[dim], why);
    }
    x = pad_from_self(x, dim, a.low[dim], a.high[dim], o->mode);
    if (cx_lazy_tensor_poisoned(x)) return x;
    s = cx_lazy_tensor_shape(x);
  }
  return x;
}
