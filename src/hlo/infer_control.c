// hlo/infer: control flow, calls, tuples and tokens.
#include "hlo/infer.h"

#include <string.h>

// ---- control flow ----

calx_status *cx_hlo_infer_while(cx_hlo_infer *in)
{
  const size_t n = in->op->n_operands;
  const cx_hlo_any predicate = { .tensor.elem = CX_HLO_I1 };
  CALX_TRY(cx_hlo_same_results(in, "operands", n));
  CALX_TRY(cx_hlo_need_body(in, 0, in->results, n, &predicate, 1));
  return cx_hlo_need_body(in, 1, in->results, n, in->results, n);
}

// The regions have no arguments and return the types that the first one does.
calx_status *cx_hlo_infer_branches(cx_hlo_infer *in)
{
  const cx_hlo_elem selector =
      in->op->kind == CX_HLO_OP_IF ? CX_HLO_I1 : CX_HLO_I32;
  const cx_hlo_type *s = cx_hlo_operand(in, 0);
  if (s->rank != 0 || s->elem != selector) {
    return cx_hlo_bad(in, "the operand must be %s[], got %s",
                      cx_hlo_elem_name(selector), CX_HLO_SHAPE(s));
  }
  const size_t n = in->op->n_results;
  CALX_TRY(cx_hlo_need_body(in, 0, NULL, 0, NULL, n));
  for (size_t i = 0; i < n; i++) in->results[i] = *cx_hlo_returned(in, 0, i);
  for (size_t r = 1; r < in->op->n_regions; r++) {
    CALX_TRY(cx_hlo_need_body(in, r, NULL, 0, in->results, n));
  }
  return NULL;
}

// The rule of the operation that has the region checks the returned types.
calx_status *cx_hlo_infer_return(cx_hlo_infer *in)
{
  const cx_hlo_block *block = in->op->block;
  if (block == NULL) return NULL;  // not appended yet
  const bool in_func = block->region->op == NULL;
  if (in->op->next != NULL) {
    return cx_hlo_bad(in, "must be the last operation of its block");
  }
  // JAX ends the comparators of its custom calls with stablehlo.return.
  const bool is_entry = in_func && cx_hlo_entry(in->module) != NULL &&
                        cx_hlo_entry(in->module)->body.first == block;
  if (is_entry && in->op->kind != CX_HLO_OP_FUNC_RETURN) {
    return cx_hlo_bad(in, "a function ends with func.return");
  }
  if (!in_func && in->op->kind == CX_HLO_OP_FUNC_RETURN) {
    return cx_hlo_bad(in, "a region ends with stablehlo.return");
  }
  return NULL;
}

// ---- calls ----

calx_status *cx_hlo_infer_declared(cx_hlo_infer *in)
{
  for (size_t i = 0; i < in->op->n_results; i++) {
    const cx_hlo_any *type = &in->results[i];
    if (type->non_tensor == NULL && type->tensor.elem == CX_HLO_INVALID) {
      return cx_hlo_bad(in, "result %zu has no type", i);
    }
  }
  return NULL;
}

calx_status *cx_hlo_infer_call(cx_hlo_infer *in)
{
  const cx_hlo_op *op = in->op;
  const cx_hlo_str name = cx_hlo_op_callee(op);
  const cx_hlo_func *f = cx_hlo_func_find(in->module, name);
  if (f == NULL) {
    return cx_hlo_bad(in, "there is no function '%.*s'", (int)name.n, name.s);
  }
  if (f->n_params != op->n_operands || f->n_results != op->n_results) {
    return cx_hlo_bad(in,
                      "'%.*s' takes %zu and returns %zu values, this has "
                      "%u operands and %u results",
                      (int)name.n, name.s, f->n_params, f->n_results,
                      op->n_operands, op->n_results);
  }
  for (size_t i = 0; i < f->n_params; i++) {
    if (cx_hlo_any_equal(&op->operands[i]->type, &f->params[i])) continue;
    return cx_hlo_bad(in, "operand %zu is %s, '%.*s' takes %s", i,
                      CX_HLO_ANY(&op->operands[i]->type), (int)name.n, name.s,
                      CX_HLO_ANY(&f->params[i]));
  }
  for (size_t i = 0; i < f->n_results; i++) in->results[i] = f->results[i];
  return NULL;
}

calx_status *cx_hlo_infer_optimization_barrier(cx_hlo_infer *in)
{
  return cx_hlo_same_results(in, "operands", in->op->n_operands);
}

// ---- tuples and tokens ----

// The types of values, in the arena; NULL: there is no memory.
static cx_hlo_any *types_of(const cx_hlo_infer *in, cx_hlo_value *const *values,
                            size_t n)
{
  cx_hlo_any *types = CX_ARENA_ARRAY(in->arena, cx_hlo_any, n);
  for (size_t i = 0; types != NULL && i < n; i++) types[i] = values[i]->type;
  return types;
}

// The result is a tuple or a future of the types of these values.
static calx_status *result_of_parts(cx_hlo_infer *in,
                                    cx_hlo_non_tensor_kind kind,
                                    cx_hlo_value *const *values, size_t n)
{
  cx_hlo_non_tensor *type = CX_ARENA_NEW(in->arena, cx_hlo_non_tensor);
  const cx_hlo_any *parts = types_of(in, values, n);
  if (type == NULL || parts == NULL) return cx_out_of_memory();
  *type = (cx_hlo_non_tensor){ .kind = kind, .parts = parts, .n_parts = n };
  in->results[0] = (cx_hlo_any){ .non_tensor = type };
  return NULL;
}

calx_status *cx_hlo_infer_tuple(cx_hlo_infer *in)
{
  return result_of_parts(in, CX_HLO_NON_TENSOR_TUPLE, in->op->operands,
                         in->op->n_operands);
}

calx_status *cx_hlo_infer_get_tuple_element(cx_hlo_infer *in)
{
  const cx_hlo_non_tensor *non_tensor = in->op->operands[0]->type.non_tensor;
  const int64_t i = cx_hlo_op_int(in->op, CX_HLO_A_INDEX);
  if (non_tensor == NULL || non_tensor->kind != CX_HLO_NON_TENSOR_TUPLE) {
    return cx_hlo_bad(in, "the operand is no tuple");
  }
  if (i < 0 || i >= (int64_t)non_tensor->n_parts) {
    return cx_hlo_bad(in, "index %lld of a tuple of %zu", (long long)i,
                      non_tensor->n_parts);
  }
  in->results[0] = non_tensor->parts[i];
  return NULL;
}

static calx_status *need_token(const cx_hlo_infer *in, const char *what,
                               size_t i, const cx_hlo_any *type)
{
  const cx_hlo_any token = { .tensor.elem = CX_HLO_TOKEN };
  if (cx_hlo_any_equal(type, &token)) return NULL;
  return cx_hlo_bad(in, "%s %zu must be a token, got %s", what, i,
                    CX_HLO_ANY(type));
}

// after_all takes tokens only. The others take one token, as the last operand.
calx_status *cx_hlo_infer_token(cx_hlo_infer *in)
{
  const size_t n = in->op->n_operands;
  const bool all = in->op->kind == CX_HLO_OP_AFTER_ALL;
  for (size_t i = all || n == 0 ? 0 : n - 1; i < n; i++) {
    CALX_TRY(need_token(in, "operand", i, &in->op->operands[i]->type));
  }
  return cx_hlo_result(in, 0, CX_HLO_TOKEN, 0, NULL);
}

// The operand is a token. The declared results end with a token.
calx_status *cx_hlo_infer_received(cx_hlo_infer *in)
{
  const size_t last = in->op->n_results - 1;
  CALX_TRY(need_token(in, "operand", 0, &in->op->operands[0]->type));
  CALX_TRY(cx_hlo_infer_declared(in));
  return need_token(in, "result", last, &in->results[last]);
}

// ---- asynchronous operations ----

// The region takes the operands. The result is a future of the values that the
// region returns.
calx_status *cx_hlo_infer_async_start(cx_hlo_infer *in)
{
  const size_t n = in->op->n_operands;
  const cx_hlo_any *args = types_of(in, in->op->operands, n);
  if (args == NULL) return cx_out_of_memory();
  const cx_hlo_block *block = in->op->regions[0].first;
  const cx_hlo_op *end = block == NULL ? NULL : block->last;
  const size_t n_out = end == NULL ? 0 : end->n_operands;
  CALX_TRY(cx_hlo_need_body(in, 0, args, n, NULL, n_out));
  return result_of_parts(in, CX_HLO_NON_TENSOR_FUTURE, end->operands, n_out);
}

calx_status *cx_hlo_infer_async_done(cx_hlo_infer *in)
{
  const cx_hlo_non_tensor *non_tensor = in->op->operands[0]->type.non_tensor;
  if (non_tensor == NULL || non_tensor->kind != CX_HLO_NON_TENSOR_FUTURE ||
      non_tensor->n_parts != in->op->n_results) {
    return cx_hlo_bad(in, "the operand is no future of %u values",
                      in->op->n_results);
  }
  for (size_t i = 0; i < non_tensor->n_parts; i++) {
    in->results[i] = non_tensor->parts[i];
  }
  return NULL;
}
