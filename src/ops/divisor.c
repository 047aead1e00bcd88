// ops/divisor: the greatest common divisor by Euclid's algorithm, a loop that
// ends when each element has its divisor.
#include "base/dtype.h"
#include "ops/composite.h"

// Promotes x and y to one integer type. False: *out is what the function
// returns.
static bool pair_of_integers(const char *op, calx_tensor *in[2],
                             calx_tensor **out)
{
  if (cx_ops_unfit(op, in, 2, out)) return false;
  calx_dtype dtype = cx_ops_promote(in, 2);
  if (cx_dtype_is_int(dtype)) return true;
  *out = cx_ops_invalid(
      "%s: %s, integers are wanted; convert with "
      "calx_to_dtype",
      op, cx_graph_shape_str(cx_lazy_tensor_shape(in[0])));
  return false;
}

static calx_tensor *magnitude(calx_tensor *x)
{
  return cx_lazy_tensor_shape(x)->dtype <= CALX_I64 ? calx_abs(x) : x;
}

// ---- the loop over x and y: the next are y and the rest of x / y ------------

// Whether an element of y is not 0.
static void goes_on(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                    cx_hlo_value **out)
{
  const cx_hlo_type *t = user;
  const int64_t dims[CALX_MAX_RANK] = { 0, 1, 2, 3, 4, 5, 6, 7 };
  cx_hlo_value *left =
      cx_hlo_compare(b, CX_HLO_NE, args[1], cx_hlo_splat_int(b, *t, 0));
  cx_hlo_value *none =
      cx_hlo_splat_int(b, (cx_hlo_type){ CX_HLO_I1, 0, NULL }, 0);
  out[0] = cx_hlo_reduce_with(b, CX_HLO_OP_OR, left, none, dims, t->rank);
}

static void step(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                 cx_hlo_value **out)
{
  const cx_hlo_type *t = user;
  cx_hlo_value *x = args[0], *y = args[1];
  cx_hlo_value *done =
      cx_hlo_compare(b, CX_HLO_EQ, y, cx_hlo_splat_int(b, *t, 0));
  cx_hlo_value *by = cx_hlo_select(b, done, cx_hlo_splat_int(b, *t, 1), y);
  cx_hlo_value *rest = cx_hlo_binary(b, CX_HLO_OP_REMAINDER, x, by);
  out[0] = cx_hlo_select(b, done, x, y);
  out[1] = cx_hlo_select(b, done, y, rest);
}

static void emit_gcd(cx_graph_emit *e)
{
  cx_hlo_type type = cx_ops_out_type(e, 0);
  cx_hlo_value *in[2], *out[2];
  for (int i = 0; i < 2; i++) {
    in[i] = cx_ops_emit_expand(e, e->in[i], &e->node->out[0].shape);
  }
  cx_hlo_while(e->b, 2, in, goes_on, step, &type, out);
  e->out[0] = out[0];
}

CX_OPS_DEFINE(gcd, .infer = cx_ops_infer_broadcast, .emit = emit_gcd)

static calx_tensor *divisor(calx_tensor *x, calx_tensor *y)
{
  calx_tensor *in[2] = { magnitude(x), magnitude(y) };
  return cx_ops_record(&cx_ops_gcd, in, 2, NULL);
}

// ---- entries ----------------------------------------------------------------

calx_tensor *calx_gcd(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_COMPOSITE("gcd");
  calx_tensor *in[2] = { x, y }, *bad;
  if (!pair_of_integers("gcd", in, &bad)) return bad;
  return divisor(in[0], in[1]);
}

calx_tensor *calx_lcm(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_COMPOSITE("lcm");
  calx_tensor *in[2] = { x, y }, *bad;
  if (!pair_of_integers("lcm", in, &bad)) return bad;
  calx_tensor *common = divisor(in[0], in[1]);
  common = calx_maximum(common, calx_scalar_int(1));
  calx_div_options cut = { .size = sizeof cut, .rounding = CALX_ROUND_TRUNC };
  return magnitude(calx_mul(calx_div_with(in[0], common, &cut), in[1]));
}
