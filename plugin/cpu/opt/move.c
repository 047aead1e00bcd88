// opt/move: folds transposes into the dimension numbers of contractions, and
// moves broadcasts, reshapes and transposes that all operands of an elementwise
// operation have in common behind it. It then works on fewer elements, or is
// next to others that it can be fused with.
//
// Everything moves toward the results, so no two rules undo each other. A
// transpose of a contraction's result is folded only if the result has no other
// use: else the contraction would be computed twice.
#include <string.h>

#include "base/alloc.h"
#include "hlo/infer.h"
#include "opt/passes.h"
#include "opt/shapes.h"

typedef struct mover {
  uint32_t *uses;  // by number, of the values that existed before the pass
  uint32_t n;
} mover;

// Values that this pass made count as used more than once.
static bool is_used_once(const mover *m, const cx_hlo_value *v)
{
  return v->number < m->n && m->uses[v->number] == 1;
}

// Replaces the visited operation by one like `like` on other operands, with one
// attribute changed, and by one like `then` on its result unless that is NULL.
static void replace_by(cpu_opt_walk *w, cx_hlo_op *op, const cx_hlo_op *like,
                       cx_hlo_value *const *operands, cx_hlo_attr_id id,
                       const cx_hlo_attr *attr, const cx_hlo_op *then)
{
  cx_hlo_type type = op->results[0].type.tensor;
  type.elem = like->results[0].type.tensor.elem;
  cx_hlo_op *r = cpu_opt_begin_like(&w->b, like, operands);
  cx_hlo_build_attr(&w->b, r, id, attr);
  cx_hlo_build_declare(&w->b, r, 0, &type);
  cx_hlo_value *result = cx_hlo_build_end(&w->b, r);
  if (then != NULL) {
    r = cpu_opt_begin_like(&w->b, then, &result);
    cx_hlo_build_declare(&w->b, r, 0, &op->results[0].type.tensor);
    result = cx_hlo_build_end(&w->b, r);
  }
  cpu_opt_replace(w, op, result);
}

// ---- dot_general ----

// Whether the dimensions that are in neither list keep their order.
static bool keeps_order(cx_hlo_ints p, cx_hlo_ints batch, cx_hlo_ints contract)
{
  int64_t last = -1;
  for (size_t i = 0; i < p.n; i++) {
    if (cx_hlo_ints_have(batch, (int64_t)i) ||
        cx_hlo_ints_have(contract, (int64_t)i))
      continue;
    if (p.v[i] < last) return false;
    last = p.v[i];
  }
  return true;
}

// Folds transposes of the operands.
static void fold_into_dot(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_dot_numbers n;
  memcpy(&n, cx_hlo_op_struct(op, CX_HLO_A_DOT_DIMENSION_NUMBERS), sizeof n);
  cx_hlo_value *operands[2] = { op->operands[0], op->operands[1] };
  bool change = false;
  for (int i = 0; i < 2; i++) {
    const cx_hlo_op *t = cpu_opt_made_by(operands[i], CX_HLO_OP_TRANSPOSE);
    if (t == NULL) continue;
    const cx_hlo_ints p = cx_hlo_op_ints(t, CX_HLO_A_PERMUTATION);
    cx_hlo_ints *batch = i == 0 ? &n.lhs_batch : &n.rhs_batch;
    cx_hlo_ints *contract = i == 0 ? &n.lhs_contract : &n.rhs_contract;
    if (!keeps_order(p, *batch, *contract)) continue;
    *batch = cpu_opt_through(w, p, *batch);
    *contract = cpu_opt_through(w, p, *contract);
    operands[i] = t->operands[0];
    change = true;
  }
  if (!change) return;
  replace_by(w, op, op, operands, CX_HLO_A_DOT_DIMENSION_NUMBERS,
             cx_hlo_attr_struct(w->b.module, CX_HLO_STRUCT_DOT, &n), NULL);
}

// Folds a transpose of the result that exchanges the free dimensions of the two
// operands, by exchanging the operands.
static void fold_dot_into(cpu_opt_walk *w, cx_hlo_op *op, const cx_hlo_op *dot,
                          const cx_hlo_op *then)
{
  cx_hlo_dot_numbers n;
  memcpy(&n, cx_hlo_op_struct(dot, CX_HLO_A_DOT_DIMENSION_NUMBERS), sizeof n);
  const cx_hlo_ints p = cx_hlo_op_ints(op, CX_HLO_A_PERMUTATION);
  const size_t batch = n.lhs_batch.n;
  const size_t left =
      dot->operands[0]->type.tensor.rank - batch - n.lhs_contract.n;
  const size_t right = p.n - batch - left;
  for (size_t i = 0; i < p.n; i++) {
    size_t from = i;
    if (i >= batch) from = i < batch + right ? i + left : i - right;
    if (p.v[i] != (int64_t)from) return;
  }
  const cx_hlo_attr *precision = cx_hlo_op_attr(dot, CX_HLO_A_PRECISION_CONFIG);
  if (cx_hlo_op_attr(dot, CX_HLO_A_ALGORITHM) != NULL ||
      (precision != NULL && precision->as.list.n == 2 &&
       precision->as.list.items[0]->as.integer !=
           precision->as.list.items[1]->as.integer)) {
    return;
  }
  const cx_hlo_dot_numbers swapped = { n.rhs_batch, n.lhs_batch, n.rhs_contract,
                                       n.lhs_contract };
  cx_hlo_value *const operands[2] = { dot->operands[1], dot->operands[0] };
  replace_by(w, op, dot, operands, CX_HLO_A_DOT_DIMENSION_NUMBERS,
             cx_hlo_attr_struct(w->b.module, CX_HLO_STRUCT_DOT, &swapped),
             then);
}

// ---- convolution ----

static bool flip_window(cpu_opt_walk *w, const cx_hlo_op *op,
                        const cx_hlo_conv_numbers *n, cx_hlo_ints dims,
                        const cx_hlo_attr **out)
{
  const size_t spatial = n->kernel_spatial.n;
  const cx_hlo_ints old = cx_hlo_op_ints(op, CX_HLO_A_WINDOW_REVERSAL);
  int64_t *flags = cpu_opt_list(w, spatial);
  if (flags == NULL) return false;
  size_t found = 0;
  for (size_t i = 0; i < spatial; i++) {
    const bool flip = cx_hlo_ints_have(dims, n->kernel_spatial.v[i]);
    const bool before = i < old.n && old.v[i] != 0;
    flags[i] = flip != before;
    found += flip;
  }
  *out = cx_hlo_attr_ints(w->b.module, CX_HLO_I1, flags, spatial);
  return found == dims.n;  // else a feature dimension is reversed
}

// Folds transposes of input and kernel, and a reversal of the kernel's window.
static void fold_into_convolution(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_conv_numbers n = *cx_hlo_op_conv(op);
  cx_hlo_value *operands[2] = { op->operands[0], op->operands[1] };
  const cx_hlo_attr *reversal = NULL;
  bool change = false;
  const cx_hlo_op *flip = cpu_opt_made_by(operands[1], CX_HLO_OP_REVERSE);
  if (flip != NULL &&
      flip_window(w, op, &n, cx_hlo_op_ints(flip, CX_HLO_A_DIMENSIONS),
                  &reversal)) {
    operands[1] = flip->operands[0];
    change = true;
  } else {
    reversal = NULL;
  }
  const cx_hlo_op *t = cpu_opt_made_by(operands[0], CX_HLO_OP_TRANSPOSE);
  if (t != NULL) {
    const cx_hlo_ints p = cx_hlo_op_ints(t, CX_HLO_A_PERMUTATION);
    n.input_batch = p.v[n.input_batch];
    n.input_feature = p.v[n.input_feature];
    n.input_spatial = cpu_opt_through(w, p, n.input_spatial);
    operands[0] = t->operands[0];
    change = true;
  }
  t = cpu_opt_made_by(operands[1], CX_HLO_OP_TRANSPOSE);
  if (t != NULL) {
    const cx_hlo_ints p = cx_hlo_op_ints(t, CX_HLO_A_PERMUTATION);
    n.kernel_input = p.v[n.kernel_input];
    n.kernel_output = p.v[n.kernel_output];
    n.kernel_spatial = cpu_opt_through(w, p, n.kernel_spatial);
    operands[1] = t->operands[0];
    change = true;
  }
  if (!change) return;
  cx_hlo_op *r = cpu_opt_begin_like(&w->b, op, operands);
  cx_hlo_build_attr(&w->b, r, CX_HLO_A_CONV_DIMENSION_NUMBERS,
                    cx_hlo_attr_conv(w->b.module, &n));
  if (reversal != NULL) {
    cx_hlo_build_attr(&w->b, r, CX_HLO_A_WINDOW_REVERSAL, reversal);
  }
  cx_hlo_build_declare(&w->b, r, 0, &op->results[0].type.tensor);
  cpu_opt_replace(w, op, cx_hlo_build_end(&w->b, r));
}

// Folds a transpose of the result.
static void fold_convolution_into(cpu_opt_walk *w, cx_hlo_op *op,
                                  const cx_hlo_op *convolution,
                                  const cx_hlo_op *then)
{
  const cx_hlo_ints p = cx_hlo_op_ints(op, CX_HLO_A_PERMUTATION);
  cx_hlo_conv_numbers n = *cx_hlo_op_conv(convolution);
  const cx_hlo_ints inverse = cpu_opt_inverse(w, p);
  n.output_batch = inverse.v[n.output_batch];
  n.output_feature = inverse.v[n.output_feature];
  n.output_spatial = cpu_opt_through(w, inverse, n.output_spatial);
  replace_by(w, op, convolution, convolution->operands,
             CX_HLO_A_CONV_DIMENSION_NUMBERS, cx_hlo_attr_conv(w->b.module, &n),
             then);
}

// ---- behind elementwise operations ----

// Whether two operations move elements in the same way.
static bool same_motion(const cx_hlo_op *a, const cx_hlo_op *b)
{
  if (a->kind != b->kind || !cpu_opt_same_dims(&a->operands[0]->type.tensor,
                                               &b->operands[0]->type.tensor)) {
    return false;
  }
  if (a->kind == CX_HLO_OP_RESHAPE) return true;
  const cx_hlo_attr_id id = a->kind == CX_HLO_OP_TRANSPOSE
                                ? CX_HLO_A_PERMUTATION
                                : CX_HLO_A_BROADCAST_DIMENSIONS;
  return cpu_opt_same_ints(cx_hlo_op_ints(a, id), cx_hlo_op_ints(b, id));
}

// The motion that all operands have in common, except for splats; NULL: none.
static const cx_hlo_op *common_motion(const mover *m, const cx_hlo_op *op)
{
  const cx_hlo_op *motion = NULL;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const cx_hlo_value *v = op->operands[i];
    if (cpu_opt_splat(v) != NULL) continue;
    const cx_hlo_op *by = v->op;
    if (by == NULL ||
        (by->kind != CX_HLO_OP_BROADCAST_IN_DIM &&
         by->kind != CX_HLO_OP_RESHAPE && by->kind != CX_HLO_OP_TRANSPOSE)) {
      return NULL;
    }
    if (motion != NULL && !same_motion(motion, by)) return NULL;
    // A transpose that has other uses stays, so moving it would add one.
    if (by->kind == CX_HLO_OP_TRANSPOSE && !is_used_once(m, v)) return NULL;
    motion = by;
  }
  if (motion != NULL && motion->kind == CX_HLO_OP_BROADCAST_IN_DIM &&
      cx_hlo_type_elements(&motion->operands[0]->type.tensor) >=
          cx_hlo_type_elements(&motion->results[0].type.tensor)) {
    return NULL;
  }
  return motion;
}

static cx_hlo_value *moved(cx_hlo_builder *b, const cx_hlo_op *motion,
                           cx_hlo_value *x, const cx_hlo_type *to)
{
  switch (motion->kind) {
    case CX_HLO_OP_RESHAPE: return cx_hlo_reshape(b, x, to->dims, to->rank);
    case CX_HLO_OP_TRANSPOSE:
      return cx_hlo_transpose(b, x,
                              cx_hlo_op_ints(motion, CX_HLO_A_PERMUTATION).v);
    default:
      return cpu_opt_broadcast(
          b, x, to, cx_hlo_op_ints(motion, CX_HLO_A_BROADCAST_DIMENSIONS).v);
  }
}

static void move_behind(cpu_opt_walk *w, cx_hlo_op *op)
{
  const cx_hlo_op *motion = common_motion(w->user, op);
  if (motion == NULL || op->n_operands > 3) return;
  cx_hlo_builder *b = &w->b;
  const cx_hlo_type *to = &op->results[0].type.tensor;
  cx_hlo_type from = motion->operands[0]->type.tensor;
  cx_hlo_value *operands[3] = { NULL, NULL, NULL };
  for (uint32_t i = 0; i < op->n_operands; i++) {
    cx_hlo_value *v = op->operands[i];
    const unsigned char *element = cpu_opt_splat(v);
    from.elem = v->type.tensor.elem;
    operands[i] = element == NULL ? v->op->operands[0]
                                  : cpu_opt_splat_like(b, &from, element);
  }
  from.elem = to->elem;
  cx_hlo_op *r = cpu_opt_begin_like(b, op, operands);
  cx_hlo_build_declare(b, r, 0, &from);
  cpu_opt_replace(w, op, moved(b, motion, cx_hlo_build_end(b, r), to));
}

// ---- the pass ----

// Whether nothing but the visited operation uses v.
static bool is_its_own(const cpu_opt_walk *w, const cx_hlo_op *op,
                       const cx_hlo_value *v)
{
  return v->op != NULL && is_used_once(w->user, v) && v->op->block == op->block;
}

// Of the result, or of an elementwise operation on the result: products in bf16
// are converted before their gradients are transposed.
static void visit_transpose(cpu_opt_walk *w, cx_hlo_op *op)
{
  const cx_hlo_value *x = op->operands[0];
  const cx_hlo_op *then = NULL;
  if (!is_its_own(w, op, x)) return;
  if (cpu_opt_is_elementwise(x->op) && x->op->n_operands == 1) {
    then = x->op;
    x = then->operands[0];
    if (!is_its_own(w, op, x)) return;
  }
  if (x->op->kind == CX_HLO_OP_DOT_GENERAL) fold_dot_into(w, op, x->op, then);
  if (x->op->kind == CX_HLO_OP_CONVOLUTION) {
    fold_convolution_into(w, op, x->op, then);
  }
}

static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *op)
{
  switch (op->kind) {
    case CX_HLO_OP_DOT_GENERAL: fold_into_dot(w, op); break;
    case CX_HLO_OP_CONVOLUTION: fold_into_convolution(w, op); break;
    case CX_HLO_OP_TRANSPOSE: visit_transpose(w, op); break;
    case CX_HLO_OP_MAP: break;
    default:
      if (cpu_opt_is_elementwise(op)) move_behind(w, op);
      break;
  }
  return NULL;
}

calx_status *cpu_opt_move(cx_hlo_module *m, bool *changed)
{
  mover state = { cpu_opt_uses(m, cx_hlo_entry(m)), m->n_values };
  if (state.uses == NULL) return cx_out_of_memory();
  calx_status *status =
      cpu_opt_walk_func(m, cx_hlo_entry(m), visit, &state, changed);
  cx_free(state.uses);
  return status;
}
