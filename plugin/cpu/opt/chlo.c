// opt/chlo: CHLO's operations become StableHLO, all but those functions of
// reals that the jit has; openxla/stablehlo, ChloOps.td, defines them. The
// custom calls ApproxTopK and those that stand for CHLO's operations do too.
#include "opt/chlo.h"

#include <string.h>

#include "opt/passes.h"

static const cx_hlo_attr *named(cx_hlo_named_list list, const char *name)
{
  return cx_hlo_named_attr(list.items, list.n, name);
}

// Whether the types and attributes are those of chlo.top_k: k elements of each
// row and their places.
static bool is_top_k(const cx_hlo_op *op, cx_hlo_named_list attrs)
{
  const cx_hlo_attr *k = named(attrs, "k"), *largest = named(attrs, "largest");
  if (op->n_operands != 1 || op->n_results != 2 || k == NULL ||
      k->kind != CX_HLO_ATTR_INT) {
    return false;
  }
  if (largest != NULL &&
      (largest->kind != CX_HLO_ATTR_BOOL || !largest->as.flag)) {
    return false;
  }
  const cx_hlo_any *x = &op->operands[0]->type;
  if (x->non_tensor != NULL || x->tensor.rank == 0) return false;
  const size_t last = x->tensor.rank - 1;
  for (uint32_t i = 0; i < 2; i++) {
    const cx_hlo_any *y = &op->results[i].type;
    if (y->non_tensor != NULL || y->tensor.rank != x->tensor.rank ||
        y->tensor.elem != (i == 0 ? x->tensor.elem : CX_HLO_I32) ||
        y->tensor.dims[last] != k->as.integer) {
      return false;
    }
    for (size_t d = 0; d < last; d++) {
      if (y->tensor.dims[d] != x->tensor.dims[d]) return false;
    }
  }
  return true;
}

static bool is_unary(const cx_hlo_op *op)
{
  return op->n_operands == 1 && op->n_results == 1 &&
         cx_hlo_any_equal(&op->operands[0]->type, &op->results[0].type);
}

// For a plugin, jaxlib before 0.9 writes CHLO's operations as custom calls:
// chlo.erf as @mhlo.erf, its attributes in mhlo.attributes. This makes such a
// call the operation again.
static void take_mhlo_call(cx_hlo_op *op, cx_hlo_str target)
{
  static const char *const unary[][2] = {
    { "mhlo.acos", "chlo.acos" },   { "mhlo.acosh", "chlo.acosh" },
    { "mhlo.asin", "chlo.asin" },   { "mhlo.asinh", "chlo.asinh" },
    { "mhlo.atanh", "chlo.atanh" }, { "mhlo.cosh", "chlo.cosh" },
    { "mhlo.erf", "chlo.erf" },     { "mhlo.sinh", "chlo.sinh" },
  };
  cx_hlo_named_list attrs = { NULL, 0 };
  const cx_hlo_attr *all = cpu_opt_attr(op, "mhlo.attributes");
  if (all != NULL && all->kind == CX_HLO_ATTR_DICT) {
    attrs = (cx_hlo_named_list){ all->as.dict.items, all->as.dict.n };
  }
  const char *name = NULL;
  if (cx_hlo_str_equal(target, "mhlo.topk") && is_top_k(op, attrs)) {
    name = "chlo.top_k";
  }
  for (size_t i = 0; i < sizeof unary / sizeof *unary && is_unary(op); i++) {
    if (cx_hlo_str_equal(target, unary[i][0])) name = unary[i][1];
  }
  if (name == NULL) return;
  op->kind = CX_HLO_OP_OTHER;
  op->name = (cx_hlo_str){ name, strlen(name) };
  op->extra = attrs.items;
  op->n_extra = (uint32_t)attrs.n;
}

static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *op)
{
  if (op->kind == CX_HLO_OP_CUSTOM_CALL) {
    const cx_hlo_str target =
        cx_hlo_op_attr(op, CX_HLO_A_CALL_TARGET_NAME)->as.text;
    if (cx_hlo_str_equal(target, "ApproxTopK")) {
      cpu_opt_approx_top_k(w, op);
      return NULL;
    }
    take_mhlo_call(op, target);
  }
  cx_hlo_str name = cpu_opt_name(op);
  if (name.n < 5 || memcmp(name.s, "chlo.", 5) != 0) return NULL;
  name.s += 5;
  name.n -= 5;
  cx_hlo_builder *b = &w->b;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (op->operands[i]->type.non_tensor != NULL) return NULL;
  }
  for (uint32_t i = 0; i < op->n_results; i++) {
    if (op->results[i].type.non_tensor != NULL) return NULL;
  }
  if (cpu_opt_chlo_is_kept(op)) return NULL;
  if (cx_hlo_str_equal(name, "top_k")) return cpu_opt_top_k(w, op);
  if (op->n_results != 1) return NULL;
  cpu_opt_value r = NULL;
  if (op->n_operands == 1) r = cpu_opt_chlo_one(b, name, op->operands[0]);
  if (op->n_operands == 2) {
    r = cpu_opt_chlo_two(b, name, op->operands[0], op->operands[1]);
  }
  if (r == NULL) r = cpu_opt_chlo_shaped(b, name, op);
  if (r != NULL) cpu_opt_replace(w, op, r);
  return NULL;
}

calx_status *cpu_opt_chlo(cx_hlo_module *m, bool *changed)
{
  return cpu_opt_walk_func(m, cx_hlo_entry(m), visit, NULL, changed);
}
