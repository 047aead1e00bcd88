// ops/gamma: the regularised incomplete gamma functions: a series where x is at
// most a or 1, a continued fraction elsewhere (W. Press et al., Numerical
// Recipes, 6.2), until no element changes. They are computed in f64, so that
// the powers before them keep the digits of f32.
#include <float.h>
#include <math.h>

#include "base/dtype.h"
#include "ops/composite.h"

// Of a near x the series take some 9 sqrt(a) steps.
enum { MOST_STEPS = 100000 };

// ---- the loops --------------------------------------------------------------

// a and x, f64 (n), become the sum of x^k / ((a + 1) … (a + k)), and the
// fraction 1 / (x + 1 - a - (1 - a) / (x + 3 - a - …)).
static calx_status *infer_gamma_series(cx_graph_node *node)
{
  node->out[0].shape = *cx_in(node, 0);
  return NULL;
}

typedef struct gamma_loop {
  cx_hlo_builder *b;
  int64_t n;
} gamma_loop;

enum { STEP, GOES_ON, A, X, SUM, TERM, N_SERIES, B = SUM, C, D, H, N_FRACTION };

static cx_hlo_value *two(const gamma_loop *l, cx_hlo_op_kind kind,
                         cx_hlo_value *x, cx_hlo_value *y)
{
  return cx_hlo_binary(l->b, kind, x, y);
}

static cx_hlo_value *like(const gamma_loop *l, double v)
{
  return cx_hlo_splat(l->b, (cx_hlo_type){ CX_HLO_F64, 1, &l->n }, v);
}

static void goes_on(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                    cx_hlo_value **out)
{
  (void)b, (void)user;
  out[0] = args[GOES_ON];
}

// The next step's number, and whether there is one: some `change` is greater
// than the rounding error of `whole`.
static void count(const gamma_loop *l, cx_hlo_value *const *args,
                  cx_hlo_value *change, cx_hlo_value *whole, cx_hlo_value **out)
{
  cx_hlo_builder *b = l->b;
  const cx_hlo_type number = { CX_HLO_I32, 0, NULL };
  const int64_t dim = 0;
  cx_hlo_value *least = two(l, CX_HLO_OP_MULTIPLY, like(l, DBL_EPSILON / 2),
                            cx_hlo_unary(b, CX_HLO_OP_ABS, whole));
  cx_hlo_value *open = cx_hlo_compare(
      b, CX_HLO_GT, cx_hlo_unary(b, CX_HLO_OP_ABS, change), least);
  cx_hlo_value *no =
      cx_hlo_splat_int(b, (cx_hlo_type){ CX_HLO_I1, 0, NULL }, 0);
  cx_hlo_value *any = cx_hlo_reduce_with(b, CX_HLO_OP_OR, open, no, &dim, 1);
  cx_hlo_value *few = cx_hlo_compare(b, CX_HLO_LT, args[STEP],
                                     cx_hlo_splat_int(b, number, MOST_STEPS));
  out[STEP] = two(l, CX_HLO_OP_ADD, args[STEP], cx_hlo_splat_int(b, number, 1));
  out[GOES_ON] = two(l, CX_HLO_OP_AND, any, few);
  out[A] = args[A];
  out[X] = args[X];
}

// The number of the step, as f64 (n).
static cx_hlo_value *step_number(const gamma_loop *l, cx_hlo_value *step)
{
  step = cx_hlo_convert(l->b, step, CX_HLO_F64);
  return cx_hlo_broadcast_in_dim(l->b, step, &l->n, 1, NULL);
}

static void series_step(cx_hlo_builder *b, void *user,
                        cx_hlo_value *const *args, cx_hlo_value **out)
{
  (void)b;
  const gamma_loop *l = user;
  cx_hlo_value *n = two(l, CX_HLO_OP_ADD, args[A], step_number(l, args[STEP]));
  out[TERM] = two(l, CX_HLO_OP_MULTIPLY, args[TERM],
                  two(l, CX_HLO_OP_DIVIDE, args[X], n));
  out[SUM] = two(l, CX_HLO_OP_ADD, args[SUM], out[TERM]);
  count(l, args, out[TERM], out[SUM], out);
}

// Lentz's method. The denominators of x > a are positive.
static void fraction_step(cx_hlo_builder *b, void *user,
                          cx_hlo_value *const *args, cx_hlo_value **out)
{
  (void)b;
  const gamma_loop *l = user;
  cx_hlo_value *i = step_number(l, args[STEP]), *one = like(l, 1);
  cx_hlo_value *an =
      two(l, CX_HLO_OP_MULTIPLY, i, two(l, CX_HLO_OP_SUBTRACT, args[A], i));
  out[B] = two(l, CX_HLO_OP_ADD, args[B], like(l, 2));
  out[D] =
      two(l, CX_HLO_OP_ADD, two(l, CX_HLO_OP_MULTIPLY, an, args[D]), out[B]);
  out[D] = two(l, CX_HLO_OP_DIVIDE, one, out[D]);
  out[C] = two(l, CX_HLO_OP_ADD, out[B], two(l, CX_HLO_OP_DIVIDE, an, args[C]));
  cx_hlo_value *factor = two(l, CX_HLO_OP_MULTIPLY, out[D], out[C]);
  out[H] = two(l, CX_HLO_OP_MULTIPLY, args[H], factor);
  count(l, args, two(l, CX_HLO_OP_SUBTRACT, factor, one), one, out);
}

static void begin(cx_graph_emit *e, gamma_loop *l, cx_hlo_value **vars)
{
  *l = (gamma_loop){ .b = e->b, .n = cx_in(e->node, 0)->dims[0] };
  vars[A] = e->in[0];
  vars[X] = e->in[1];
  vars[STEP] = cx_hlo_splat_int(e->b, (cx_hlo_type){ CX_HLO_I32, 0, NULL }, 1);
  vars[GOES_ON] =
      cx_hlo_splat_int(e->b, (cx_hlo_type){ CX_HLO_I1, 0, NULL }, 1);
}

static void emit_gamma_series(cx_graph_emit *e)
{
  gamma_loop l;
  cx_hlo_value *vars[N_SERIES], *out[N_SERIES];
  begin(e, &l, vars);
  vars[SUM] = vars[TERM] = like(&l, 1);
  cx_hlo_while(e->b, N_SERIES, vars, goes_on, series_step, &l, out);
  e->out[0] = out[SUM];
}

static void emit_gamma_fraction(cx_graph_emit *e)
{
  gamma_loop l;
  cx_hlo_value *vars[N_FRACTION], *out[N_FRACTION];
  begin(e, &l, vars);
  vars[B] = two(&l, CX_HLO_OP_SUBTRACT,
                two(&l, CX_HLO_OP_ADD, vars[X], like(&l, 1)), vars[A]);
  vars[C] = like(&l, 1 / DBL_MIN);
  vars[D] = vars[H] = two(&l, CX_HLO_OP_DIVIDE, like(&l, 1), vars[B]);
  cx_hlo_while(e->b, N_FRACTION, vars, goes_on, fraction_step, &l, out);
  e->out[0] = out[H];
}

CX_OPS_DEFINE(gamma_series, .infer = infer_gamma_series,
              .emit = emit_gamma_series)
CX_OPS_DEFINE(gamma_fraction, .infer = infer_gamma_series,
              .emit = emit_gamma_fraction)

// ---- the gradient -----------------------------------------------------------

// Operands: a, x and the result, which was computed without gradient.
static calx_status *infer_igamma(cx_graph_node *node)
{
  node->out[0].shape = *cx_in(node, 2);
  return NULL;
}

static void emit_igamma(cx_graph_emit *e)
{
  e->out[0] = e->in[2];
}

// x^(a - 1) e^-x / gamma(a), negative of the upper function.
static void grad_igamma(cx_lazy_tape *t)
{
  const uint32_t *upper = t->attrs;
  calx_tensor *a = cx_lazy_tape_in(t, 0), *x = cx_lazy_tape_in(t, 1);
  if (cx_tape_needs(t, 0)) {
    t->in_grads[0] =
        cx_ops_invalid("%s: a has no gradient; detach it (calx_detach)",
                       *upper ? "igammac" : "igamma");
  }
  if (!cx_tape_needs(t, 1)) return;
  calx_tensor *power = calx_mul(cx_ops_minus(a, cx_ops_number(1)), calx_log(x));
  power = cx_ops_minus(cx_ops_minus(power, x), calx_lgamma(a));
  calx_tensor *g = calx_mul(t->out_grads[0], calx_exp(power));
  t->in_grads[1] = *upper ? calx_neg(g) : g;
}

CX_OPS_DEFINE(igamma, .attr_size = sizeof(uint32_t), .infer = infer_igamma,
              .grad = grad_igamma, .emit = emit_igamma)

// ---- the functions ----------------------------------------------------------

static calx_tensor *loop_of(const cx_graph_op *op, calx_tensor *use,
                            calx_tensor *a, calx_tensor *x, double safe)
{
  calx_tensor *in[2] = { calx_where(use, a, cx_ops_number(1)),
                         calx_where(use, x, cx_ops_number(safe)) };
  for (int i = 0; i < 2; i++) {
    if (cx_lazy_tensor_poisoned(in[i])) return in[i];
  }
  return cx_ops_record(op, in, 2, NULL);
}

// Of f64 vectors.
static calx_tensor *values_of(calx_tensor *a, calx_tensor *x, bool upper)
{
  calx_tensor *zero = cx_ops_number(0), *one = cx_ops_number(1);
  calx_tensor *nan = cx_ops_number((double)NAN);
  calx_tensor *inner =
      calx_logical_and(calx_logical_and(calx_gt(a, zero), calx_gt(x, zero)),
                       calx_logical_and(calx_isfinite(a), calx_isfinite(x)));
  calx_tensor *far = calx_logical_and(calx_gt(x, a), calx_gt(x, one));
  far = calx_logical_and(far, inner);
  calx_tensor *near = calx_logical_and(inner, calx_logical_not(far));
  calx_tensor *power = cx_ops_minus(calx_mul(a, calx_log(x)), x);
  power = calx_exp(cx_ops_minus(power, calx_lgamma(a)));
  calx_tensor *low = loop_of(&cx_ops_gamma_series, near, a, x, 0.5);
  calx_tensor *high = loop_of(&cx_ops_gamma_fraction, far, a, x, 2);
  low = calx_div(calx_mul(power, low), a);
  high = calx_mul(power, high);
  calx_tensor *other = upper ? low : high;
  calx_tensor *y = calx_where(upper ? near : far, cx_ops_minus(one, other),
                              upper ? high : low);
  // Where a is 0 or x infinite all of the integral lies below x, where x is 0
  // or a infinite none.
  calx_tensor *all = cx_ops_number(upper ? 0 : 1);
  calx_tensor *none = cx_ops_number(upper ? 1 : 0);
  y = calx_where(inner, y, nan);
  calx_tensor *ends = calx_logical_and(calx_ge(a, zero), calx_ge(x, zero));
  ends = calx_logical_and(ends, calx_logical_not(inner));
  calx_tensor *whole = calx_logical_or(calx_eq(a, zero), calx_isinf(x));
  calx_tensor *empty = calx_logical_or(calx_eq(x, zero), calx_isinf(a));
  y = calx_where(calx_logical_and(ends, whole), all, y);
  y = calx_where(calx_logical_and(ends, empty), none, y);
  return calx_where(calx_logical_and(calx_logical_and(ends, whole), empty), nan,
                    y);
}

static calx_tensor *incomplete_gamma(const char *op, calx_tensor *a,
                                     calx_tensor *x, uint32_t upper)
{
  calx_tensor *in[3] = { a, x }, *bad, *same[2];
  if (!cx_ops_floating(op, in, 2, &bad)) return bad;
  const calx_dtype dtype = cx_ops_promote(in, 2);
  calx_broadcast_tensors(in, 2, same);
  if (cx_lazy_tensor_poisoned(same[0])) return same[0];
  cx_lazy_no_grad_begin();
  calx_tensor *flat[2];
  for (int i = 0; i < 2; i++) {
    in[i] = same[i];
    flat[i] = calx_to_dtype(
        calx_reshape(cx_lazy_tensor_detached(same[i]), CALX_SHAPE(-1)),
        CALX_F64);
  }
  in[2] = calx_to_dtype(values_of(flat[0], flat[1], upper), dtype);
  in[2] = cx_ops_reshape_to(in[2], cx_lazy_tensor_shape(same[0]));
  cx_lazy_no_grad_end();
  if (cx_lazy_tensor_poisoned(in[2])) return in[2];
  return cx_ops_record(&cx_ops_igamma, in, 3, &upper);
}

calx_tensor *calx_igamma(calx_tensor *a, calx_tensor *x)
{
  CX_OPS_COMPOSITE("igamma");
  return incomplete_gamma("igamma", a, x, false);
}

calx_tensor *calx_igammac(calx_tensor *a, calx_tensor *x)
{
  CX_OPS_COMPOSITE("igammac");
  return incomplete_gamma("igammac", a, x, true);
}
