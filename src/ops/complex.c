// ops/complex: complex numbers and their parts.
//
// A gradient is PyTorch's: that of a real loss by the conjugate of the number,
// so its parts are the derivatives by the number's parts.
#include "base/dtype.h"
#include "ops/composite.h"

static bool is_complex(const calx_tensor *x)
{
  return cx_dtype_is_complex(cx_lazy_tensor_shape(x)->dtype);
}

// ---- what other ops need ----------------------------------------------------

void cx_ops_grad_holomorphic(cx_lazy_tape *t, void (*rule)(cx_lazy_tape *t))
{
  calx_tensor *g = t->out_grads[0];
  if (g == NULL || !is_complex(g)) {
    rule(t);
    return;
  }
  calx_tensor *conjugate = calx_conj(g);
  calx_tensor *const *grads = t->out_grads;
  t->out_grads = &conjugate;
  rule(t);
  t->out_grads = grads;
  for (uint32_t i = 0; i < t->node->n_in; i++) {
    if (t->in_grads[i] != NULL) t->in_grads[i] = calx_conj(t->in_grads[i]);
  }
}

cx_hlo_value *cx_ops_emit_complex(const cx_graph_emit *e, cx_hlo_value *re,
                                  cx_hlo_value *im, calx_dtype dtype)
{
  const cx_hlo_elem part = cx_hlo_elem_of(cx_dtype_part(dtype));
  re = cx_ops_emit_cast(e, re, part);
  if (im == NULL) {
    const cx_hlo_type *t = cx_hlo_value_type(re);
    im = cx_hlo_splat(e->b, (cx_hlo_type){ part, t->rank, t->dims }, 0);
  }
  im = cx_ops_emit_cast(e, im, part);
  return cx_hlo_binary(e->b, CX_HLO_OP_COMPLEX, re, im);
}

static calx_status *infer_part(cx_graph_node *node)
{
  node->out[0].shape = *cx_in(node, 0);
  node->out[0].shape.dtype = cx_dtype_part(cx_in(node, 0)->dtype);
  return NULL;
}

// ---- complex: of the real and the imaginary part ----------------------------

static calx_status *infer_complex(cx_graph_node *node)
{
  CALX_TRY(cx_ops_infer_broadcast(node));
  calx_dtype *dtype = &node->out[0].shape.dtype;
  *dtype = cx_dtype_complex_of(*dtype);
  return NULL;
}

static void grad_complex(cx_lazy_tape *t)
{
  calx_tensor *g = t->out_grads[0];
  if (cx_tape_needs(t, 0)) {
    t->in_grads[0] = cx_ops_sum_to(calx_real(g), cx_in(t->node, 0));
  }
  if (cx_tape_needs(t, 1)) {
    t->in_grads[1] = cx_ops_sum_to(calx_imag(g), cx_in(t->node, 1));
  }
}

static void emit_complex(cx_graph_emit *e)
{
  const cx_graph_shape *s = &e->node->out[0].shape;
  e->out[0] = cx_ops_emit_complex(e, cx_ops_emit_expand(e, e->in[0], s),
                                  cx_ops_emit_expand(e, e->in[1], s), s->dtype);
}

CX_OPS_DEFINE(complex, .infer = infer_complex, .grad = grad_complex,
              .emit = emit_complex, .takes_complex = true)

calx_tensor *calx_complex(calx_tensor *real, calx_tensor *imag)
{
  calx_tensor *in[2] = { real, imag }, *bad;
  if (cx_ops_unfit("complex", in, 2, &bad)) return bad;
  const cx_graph_shape *a = cx_lazy_tensor_shape(real);
  const cx_graph_shape *b = cx_lazy_tensor_shape(imag);
  const bool wide = a->dtype == CALX_F64;
  if (a->dtype != b->dtype || !(wide || a->dtype == CALX_F32)) {
    return cx_ops_invalid(
        "complex: %s and %s: both f32 or both f64 are wanted; convert with "
        "calx_to_dtype",
        cx_graph_shape_str(a), cx_graph_shape_str(b));
  }
  return cx_ops_record(&cx_ops_complex, in, 2, NULL);
}

// ---- real, imag, conj -------------------------------------------------------

static void grad_real(cx_lazy_tape *t)
{
  t->in_grads[0] = calx_to_dtype(t->out_grads[0], cx_in(t->node, 0)->dtype);
}

static void grad_imag(cx_lazy_tape *t)
{
  calx_tensor *g = t->out_grads[0];
  t->in_grads[0] = calx_complex(cx_ops_zeros_like(g), g);
}

static void grad_conj(cx_lazy_tape *t)
{
  t->in_grads[0] = calx_conj(t->out_grads[0]);
}

static cx_hlo_value *part(const cx_graph_emit *e, cx_hlo_op_kind kind)
{
  return cx_hlo_unary(e->b, kind, e->in[0]);
}

static void emit_real(cx_graph_emit *e)
{
  e->out[0] = part(e, CX_HLO_OP_REAL);
}

static void emit_imag(cx_graph_emit *e)
{
  e->out[0] = part(e, CX_HLO_OP_IMAG);
}

static void emit_conj(cx_graph_emit *e)
{
  cx_hlo_value *im =
      cx_hlo_unary(e->b, CX_HLO_OP_NEGATE, part(e, CX_HLO_OP_IMAG));
  e->out[0] =
      cx_hlo_binary(e->b, CX_HLO_OP_COMPLEX, part(e, CX_HLO_OP_REAL), im);
}

CX_OPS_DEFINE(real, .infer = infer_part, .grad = grad_real, .emit = emit_real,
              .takes_complex = true)
CX_OPS_DEFINE(imag, .infer = infer_part, .grad = grad_imag, .emit = emit_imag,
              .takes_complex = true)
CX_OPS_DEFINE(conj, .infer = cx_ops_infer_same, .grad = grad_conj,
              .emit = emit_conj, .takes_complex = true)

calx_tensor *calx_real(calx_tensor *x)
{
  calx_tensor *bad;
  if (cx_ops_unfit("real", &x, 1, &bad)) return bad;
  return is_complex(x) ? cx_ops_record(&cx_ops_real, &x, 1, NULL) : x;
}

calx_tensor *calx_imag(calx_tensor *x)
{
  calx_tensor *bad;
  if (cx_ops_unfit("imag", &x, 1, &bad)) return bad;
  if (is_complex(x)) return cx_ops_record(&cx_ops_imag, &x, 1, NULL);
  return cx_ops_invalid("imag: %s has no imaginary part: it is not complex",
                        cx_graph_shape_str(cx_lazy_tensor_shape(x)));
}

calx_tensor *calx_conj(calx_tensor *x)
{
  calx_tensor *bad;
  if (cx_ops_unfit("conj", &x, 1, &bad)) return bad;
  return is_complex(x) ? cx_ops_record(&cx_ops_conj, &x, 1, NULL) : x;
}

calx_tensor *calx_conj_physical(calx_tensor *x)
{
  return calx_conj(x);
}

// ---- modulus: calx_abs of complex numbers -----------------------------------

static void grad_modulus(cx_lazy_tape *t)
{
  t->in_grads[0] = calx_mul(t->out_grads[0], calx_sgn(cx_lazy_tape_in(t, 0)));
}

static void emit_modulus(cx_graph_emit *e)
{
  e->out[0] = part(e, CX_HLO_OP_ABS);
}

const cx_graph_op cx_ops_abs_complex = { .name = "abs",
                                         .id = CX_OPS_ID_abs_complex,
                                         .infer = infer_part,
                                         .grad = grad_modulus,
                                         .emit = emit_modulus,
                                         .takes_complex = true };

calx_tensor *cx_ops_modulus(calx_tensor *x)
{
  calx_tensor *bad;
  if (cx_ops_unfit("abs", &x, 1, &bad)) return bad;
  return cx_ops_record(&cx_ops_abs_complex, &x, 1, NULL);
}

// ---- sgn, which the gradient needs -----------------------------------------

calx_tensor *calx_sgn(calx_tensor *x)
{
  CX_OPS_COMPOSITE_COMPLEX("sgn");
  calx_tensor *bad;
  if (cx_ops_unfit("sgn", &x, 1, &bad)) return bad;
  if (!is_complex(x)) return calx_sign(x);
  calx_tensor *none = calx_eq(x, cx_ops_number(0));
  calx_tensor *z = calx_where(none, cx_ops_number(1), x);
  return calx_where(none, cx_ops_number(0), calx_div(x, calx_abs(z)));
}
