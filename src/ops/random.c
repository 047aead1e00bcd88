// ops/random: counter-based numbers. A draw has a key and a counter. Both are
// slots: another draw compiles nothing, and a node that is run again gives the
// same numbers.
//
// Bits come from THREE_FRY (J. Salmon et al., Parallel random numbers: as easy
// as 1, 2, 3, SC 2011) as rank-1 ui32, in row-major order of the result; so the
// numbers do not depend on the shape. A uniform takes as many of a word's high
// bits as the type's significand holds, so it never rounds up to 1.
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "calx/complex.h"
#include "ops/ops.h"

typedef struct random_attrs {
  cx_graph_shape shape;
} random_attrs;

static calx_status *infer_random(cx_graph_node *node)
{
  const random_attrs *a = node->attrs;
  node->out[0].shape = a->shape;
  return NULL;
}

static void describe_random(const void *attrs, cx_text *out)
{
  cx_graph_shape_print(out, &((const random_attrs *)attrs)->shape);
}

static cx_hlo_value *splat1(const cx_graph_emit *e, cx_hlo_elem elem, int64_t n,
                            double v)
{
  return cx_hlo_splat(e->b, (cx_hlo_type){ elem, 1, &n }, v);
}

// n words of `word` type: ui32, or ui64 for f64.
static cx_hlo_value *bits(const cx_graph_emit *e, cx_hlo_elem word, int64_t n)
{
  int64_t one = 1;
  cx_hlo_value *parts[2] = { cx_hlo_reshape(e->b, e->slots[0], &one, 1),
                             cx_hlo_reshape(e->b, e->slots[1], &one, 1) };
  cx_hlo_value *state = cx_hlo_concatenate(e->b, parts, 2, 0);
  cx_hlo_value *after, *words;
  int64_t even = n + (n & 1);  // ui32 comes in pairs
  cx_hlo_rng_bit_generator(e->b, state, (cx_hlo_type){ word, 1, &even }, &after,
                           &words);
  int64_t start = 0, stride = 1;
  return even == n ? words : cx_hlo_slice(e->b, words, &start, &n, &stride);
}

// Makes numbers of [0, 1), or of (0, 1] with `open_low`, from words: the top
// `keep` bits times 2^-keep.
static cx_hlo_value *uniform(const cx_graph_emit *e, cx_hlo_value *words,
                             cx_hlo_elem to, int keep, bool open_low)
{
  const cx_hlo_type *t = cx_hlo_value_type(words);
  int64_t n = t->rank == 1 ? t->dims[0] : 0;
  int width = t->elem == CX_HLO_UI64 ? 64 : 32;
  cx_hlo_value *by = splat1(e, t->elem, n, width - keep);
  cx_hlo_value *v =
      cx_hlo_binary(e->b, CX_HLO_OP_SHIFT_RIGHT_LOGICAL, words, by);
  if (open_low) {
    cx_hlo_value *one = splat1(e, cx_hlo_value_type(words)->elem, n, 1);
    v = cx_hlo_binary(e->b, CX_HLO_OP_ADD, v, one);
  }
  v = cx_hlo_convert(e->b, v, to);
  return cx_hlo_binary(e->b, CX_HLO_OP_MULTIPLY, v,
                       splat1(e, to, n, ldexp(1.0, -keep)));
}

static bool emit_empty(cx_graph_emit *e)
{
  const cx_graph_shape *s = &e->node->out[0].shape;
  if (cx_graph_shape_numel(s) != 0) return false;
  e->out[0] = cx_ops_emit_splat(e, cx_hlo_elem_of(s->dtype), s, 0);
  return true;
}

// ---- rand -------------------------------------------------------------------

static int kept_bits(calx_dtype d)
{
  switch (d) {
    case CALX_BF16: return 8;
    case CALX_F16: return 11;
    case CALX_F64: return 53;
    default: return 24;
  }
}

static void emit_rand(cx_graph_emit *e)
{
  const cx_graph_shape *s = &e->node->out[0].shape;
  if (emit_empty(e)) return;
  bool wide = s->dtype == CALX_F64;
  cx_hlo_value *words =
      bits(e, wide ? CX_HLO_UI64 : CX_HLO_UI32, cx_graph_shape_numel(s));
  cx_hlo_elem calc = wide ? CX_HLO_F64 : CX_HLO_F32;
  cx_hlo_value *u = uniform(e, words, calc, kept_bits(s->dtype), false);
  u = cx_ops_emit_cast(e, u, cx_hlo_elem_of(s->dtype));
  e->out[0] = cx_hlo_reshape(e->b, u, s->dims, s->rank);
}

CX_OPS_DEFINE(rand, .attr_size = sizeof(random_attrs), .infer = infer_random,
              .emit = emit_rand, .describe = describe_random)

// ---- randn ------------------------------------------------------------------

// A pair of uniforms (u, v) gives r cos t and r sin t, with r = sqrt(-2 ln u)
// and t = 2 pi v (G. Box and M. Muller, 1958). All cosines come before all
// sines.
static void emit_randn(cx_graph_emit *e)
{
  const cx_graph_shape *s = &e->node->out[0].shape;
  if (emit_empty(e)) return;
  cx_hlo_builder *b = e->b;
  bool wide = s->dtype == CALX_F64;
  cx_hlo_elem calc = wide ? CX_HLO_F64 : CX_HLO_F32;
  int keep = wide ? 53 : 24;
  int64_t n = cx_graph_shape_numel(s), half = n / 2 + (n & 1), zero = 0,
          one = 1;
  int64_t all = 2 * half;
  cx_hlo_value *words = bits(e, wide ? CX_HLO_UI64 : CX_HLO_UI32, all);
  cx_hlo_value *first = cx_hlo_slice(b, words, &zero, &half, &one);
  cx_hlo_value *second = cx_hlo_slice(b, words, &half, &all, &one);
  cx_hlo_value *r =
      cx_hlo_unary(b, CX_HLO_OP_LOG, uniform(e, first, calc, keep, true));
  r = cx_hlo_binary(b, CX_HLO_OP_MULTIPLY, r, splat1(e, calc, half, -2.0));
  r = cx_hlo_unary(b, CX_HLO_OP_SQRT, r);
  cx_hlo_value *t = uniform(e, second, calc, keep, false);
  t = cx_hlo_binary(b, CX_HLO_OP_MULTIPLY, t,
                    splat1(e, calc, half, 6.283185307179586));
  cx_hlo_value *both[2] = { cx_hlo_binary(b, CX_HLO_OP_MULTIPLY, r,
                                          cx_hlo_unary(b, CX_HLO_OP_COSINE, t)),
                            cx_hlo_binary(b, CX_HLO_OP_MULTIPLY, r,
                                          cx_hlo_unary(b, CX_HLO_OP_SINE, t)) };
  cx_hlo_value *v = cx_hlo_concatenate(b, both, 2, 0);
  if (all != n) v = cx_hlo_slice(b, v, &zero, &n, &one);
  v = cx_ops_emit_cast(e, v, cx_hlo_elem_of(s->dtype));
  e->out[0] = cx_hlo_reshape(b, v, s->dims, s->rank);
}

CX_OPS_DEFINE(randn, .attr_size = sizeof(random_attrs), .infer = infer_random,
              .emit = emit_randn, .describe = describe_random)

// ---- entries ----------------------------------------------------------------

static calx_tensor *draw(const cx_graph_op *op, calx_dims dims,
                         const calx_create_options *o, bool common);

// Each part is a draw. Of randn each has half the variance, as in PyTorch.
static calx_tensor *draw_complex(const cx_graph_op *op, calx_dims dims,
                                 const calx_create_options *o, bool common)
{
  calx_create_options part = *o;
  part.size = sizeof part;
  part.dtype = cx_dtype_part(o->dtype);
  part.requires_grad = false;
  calx_tensor *re = draw(op, dims, &part, common);
  calx_tensor *z = calx_complex(re, draw(op, dims, &part, common));
  if (op == &cx_ops_randn) z = calx_mul(z, calx_scalar(0.70710678118654752));
  if (cx_lazy_tensor_poisoned(z) || !o->requires_grad) return z;
  z = cx_lazy_tensor_detached(z);
  if (!cx_lazy_tensor_poisoned(z)) cx_lazy_tensor_set_requires_grad(z, true);
  return z;
}

static calx_tensor *draw(const cx_graph_op *op, calx_dims dims,
                         const calx_create_options *o, bool common)
{
  calx_tensor *bad;
  const calx_dtype dtype =
      o != NULL && o->dtype != CALX_DTYPE_DEFAULT ? o->dtype : CALX_F32;
  if (!cx_ops_good_shape(op->name, dims, dtype, o, &bad)) return bad;
  if (cx_dtype_is_complex(dtype)) return draw_complex(op, dims, o, common);
  if (!cx_dtype_is_float(dtype)) {
    return cx_ops_invalid(
        "%s: %s is not floating; give a floating .dtype and convert the result "
        "with calx_to_dtype",
        op->name, calx_dtype_name(dtype));
  }
  random_attrs a;
  memset(&a, 0, sizeof a);
  a.shape.dtype = dtype;
  a.shape.rank = (uint32_t)dims.count;
  memcpy(a.shape.dims, dims.values, dims.count * sizeof *a.shape.dims);
  calx_device *device = cx_lazy_device_or_current(o != NULL ? o->device : NULL);
  if (device == NULL) {
    return cx_lazy_tensor_poison(cx_status_copy(calx_scope_error()));
  }
  uint64_t key, counter;
  cx_lazy_random_draw(device, common, &key, &counter);
  cx_graph_slot slots[2] = {
    { .dtype = CALX_U64, .value.integer = (int64_t)key },
    { .dtype = CALX_U64, .value.integer = (int64_t)counter }
  };
  cx_lazy_call call = {
    .op = op, .attrs = &a, .slots = slots, .n_slots = 2, .device = device
  };
  calx_tensor *t = cx_lazy_apply(&call, NULL);
  if (o != NULL && o->requires_grad && !cx_lazy_tensor_poisoned(t)) {
    cx_lazy_tensor_set_requires_grad(t, true);
  }
  return t;
}

calx_tensor *calx_rand_with(calx_dims shape, const calx_create_options *o)
{
  return draw(&cx_ops_rand, shape, o, false);
}

calx_tensor *cx_ops_rand_common(calx_dims shape, const calx_create_options *o)
{
  return draw(&cx_ops_rand, shape, o, true);
}

calx_tensor *cx_ops_randn_common(calx_dims shape, const calx_create_options *o)
{
  return draw(&cx_ops_randn, shape, o, true);
}

calx_tensor *calx_randn_with(calx_dims shape, const calx_create_options *o)
{
  return draw(&cx_ops_randn, shape, o, false);
}

void calx_manual_seed(uint64_t seed)
{
  calx_device *device = calx_device_current();
  if (device != NULL) cx_lazy_random_restore(device, seed, 0);
}
