// ops/triangular: triangular factors of matrices and systems with them.
#include "ops/factor.h"

// ---- cholesky ---------------------------------------------------------------

// The half of a matrix below the diagonal, and half of the diagonal.
static calx_tensor *lower_half(calx_tensor *x)
{
  calx_tensor *low = calx_tril(x, 0);
  calx_tensor *diagonal = calx_triu(low, 0);
  return cx_ops_minus(low, calx_mul(diagonal, cx_ops_number(0.5)));
}

// I. Murray, Differentiation of the Cholesky decomposition (2016), eq. 10.
static void grad_cholesky(cx_lazy_tape *t)
{
  calx_tensor *l = cx_lazy_tape_out(t, 0);
  calx_tensor *g = calx_tril(t->out_grads[0], 0);
  calx_tensor *p = lower_half(calx_matmul(calx_transpose(l, -2, -1), g));
  const cx_ops_triangle up = { .lower = true, .transpose = true };
  p = cx_ops_solve_with(l, p, &up);
  p = cx_ops_solve_with(l, calx_transpose(p, -2, -1), &up);
  p = cx_ops_plus(p, calx_transpose(p, -2, -1));
  t->in_grads[0] = calx_mul(p, cx_ops_number(0.5));
}

static void emit_cholesky(cx_graph_emit *e)
{
  const cx_graph_shape *s = cx_in(e->node, 0);
  cx_hlo_value *l = cx_hlo_cholesky(e->b, e->in[0]);
  // What the plugin leaves above the diagonal is not defined.
  const cx_hlo_type index = { CX_HLO_I32, s->rank, s->dims };
  cx_hlo_value *row = cx_hlo_iota(e->b, index, s->rank - 2);
  cx_hlo_value *column = cx_hlo_iota(e->b, index, s->rank - 1);
  cx_hlo_value *below = cx_hlo_compare(e->b, CX_HLO_GE, row, column);
  e->out[0] = cx_hlo_select(e->b, below, l,
                            cx_hlo_splat(e->b, cx_ops_out_type(e, 0), 0));
}

CX_OPS_DEFINE(cholesky, .infer = cx_ops_infer_same, .grad = grad_cholesky,
              .emit = emit_cholesky)

// ---- systems ----------------------------------------------------------------

static calx_status *infer_solve(cx_graph_node *node)
{
  node->out[0].shape = *cx_in(node, 1);
  return NULL;
}

// Of A x = b: db = A^-T g, dA = -db x^T, in the triangle that is read.
static void grad_solve(cx_lazy_tape *t)
{
  const cx_ops_triangle *a = t->attrs;
  cx_ops_triangle other = *a;
  other.transpose = !a->transpose;
  calx_tensor *matrix = cx_lazy_tape_in(t, 0);
  calx_tensor *db = cx_ops_solve_with(matrix, t->out_grads[0], &other);
  t->in_grads[1] = db;
  if (!cx_tape_needs(t, 0)) return;
  calx_tensor *x = cx_lazy_tape_out(t, 0);
  calx_tensor *left = a->transpose ? x : db, *right = a->transpose ? db : x;
  calx_tensor *da = calx_neg(calx_matmul(left, calx_transpose(right, -2, -1)));
  t->in_grads[0] = a->lower ? calx_tril(da, a->unit ? -1 : 0)
                            : calx_triu(da, a->unit ? 1 : 0);
}

static void emit_solve(cx_graph_emit *e)
{
  const cx_ops_triangle *a = e->attrs;
  e->out[0] = cx_hlo_triangular_solve(e->b, e->in[0], e->in[1], a->lower,
                                      a->unit, a->transpose);
}

static void describe_solve(const void *attrs, cx_text *out)
{
  const cx_ops_triangle *a = attrs;
  cx_text_format(out, "%s%s%s", a->lower ? "lower" : "upper",
                 a->unit ? ", unit" : "", a->transpose ? ", transposed" : "");
}

CX_OPS_DEFINE(solve_triangular, .attr_size = sizeof(cx_ops_triangle),
              .infer = infer_solve, .grad = grad_solve, .emit = emit_solve,
              .describe = describe_solve)

calx_tensor *cx_ops_solve_with(calx_tensor *a, calx_tensor *b,
                               const cx_ops_triangle *how)
{
  calx_tensor *in[2] = { a, b };
  if (cx_lazy_tensor_poisoned(a)) return a;
  if (cx_lazy_tensor_poisoned(b)) return b;
  return cx_ops_record(&cx_ops_solve_triangular, in, 2, how);
}
