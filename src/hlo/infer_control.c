// hlo/infer: control flow, calls, tuples and tokens.
#include "hlo/infer.h"

#include <string.h>

// ---- control flow ----

static calx_status *check_returned(const cx_hlo_infer *in, size_t region,
                                   cx_hlo_value *const *returned,
                                   const cx_hlo_any *want, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (cx_hlo_any_equal(&returned[i]->type, &want[i])) continue;
    return cx_hlo_bad(in, "region %zu returns %s as value %zu, it must be %s",
                      region, CX_HLO_ANY(&returned[i]->type), i,
                      CX_HLO_ANY(&want[i]));
  }
  return NULL;
}

calx_status *cx_hlo_infer_while(cx_hlo_infer *in)
{
  const size_t n = in->op->n_operands;
  if (in->op->n_results != n) {
    return cx_hlo_bad(in, "%zu operands need as many results, got %u", n,
                      in->op->n_results);
  }
  for (size_t i = 0; i < n; i++) in->results[i] = in->op->operands[i]->type;
  cx_hlo_value *const *returned = NULL;
  CALX_TRY(cx_hlo_need_body(in, 0, in->results, n, 1, &returned));
  const cx_hlo_any truth = { .tensor.elem = CX_HLO_I1 };
  CALX_TRY(check_returned(in, 0, returned, &truth, 1));
  CALX_TRY(cx_hlo_need_body(in, 1, in->results, n, n, &returned));
  return check_returned(in, 1, returned, in->results, n);
}

// Regions without arguments that all return the same types.
static calx_status *check_branches(cx_hlo_infer *in, cx_hlo_elem selector)
{
  const cx_hlo_type *s = cx_hlo_operand(in, 0);
  if (s->rank != 0 || s->elem != selector) {
    return cx_hlo_bad(in, "the operand must be %s[], got %s",
                      cx_hlo_elem_name(selector), CX_HLO_SHAPE(s));
  }
  const size_t n = in->op->n_results;
  for (size_t r = 0; r < in->op->n_regions; r++) {
    cx_hlo_value *const *returned = NULL;
    CALX_TRY(cx_hlo_need_body(in, r, NULL, 0, n, &returned));
    for (size_t i = 0; r == 0 && i < n; i++) {
      in->results[i] = returned[i]->type;
    }
    CALX_TRY(check_returned(in, r, returned, in->results, n));
  }
  return NULL;
}

calx_status *cx_hlo_infer_if(cx_hlo_infer *in)
{
  return check_branches(in, CX_HLO_I1);
}

calx_status *cx_hlo_infer_case(cx_hlo_infer *in)
{
  return check_branches(in, CX_HLO_I32);
}

// What it returns is checked by who owns the region.
calx_status *cx_hlo_infer_return(cx_hlo_infer *in)
{
  const cx_hlo_block *block = in->op->block;
  if (block == NULL) return NULL;  // not appended yet
  const bool in_func = block->region->op == NULL;
  if (in->op->next != NULL) {
    return cx_hlo_bad(in, "must be the last operation of its block");
  }
  if (in_func != (in->op->kind == CX_HLO_OP_FUNC_RETURN)) {
    return cx_hlo_bad(in, in_func ? "a function ends with func.return"
                                  : "a region ends with stablehlo.return");
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

static calx_status *check_callee(cx_hlo_infer *in, cx_hlo_attr_id id)
{
  const cx_hlo_op *op = in->op;
  const cx_hlo_str name = cx_hlo_op_attr(op, id)->as.text;
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

calx_status *cx_hlo_infer_call(cx_hlo_infer *in)
{
  return check_callee(in, CX_HLO_A_CALLEE);
}

calx_status *cx_hlo_infer_composite(cx_hlo_infer *in)
{
  return check_callee(in, CX_HLO_A_DECOMPOSITION);
}

calx_status *cx_hlo_infer_optimization_barrier(cx_hlo_infer *in)
{
  if (in->op->n_results != in->op->n_operands) {
    return cx_hlo_bad(in, "%u operands need as many results, got %u",
                      in->op->n_operands, in->op->n_results);
  }
  for (size_t i = 0; i < in->op->n_operands; i++) {
    in->results[i] = in->op->operands[i]->type;
  }
  return NULL;
}

// ---- tuples and tokens ----

calx_status *cx_hlo_infer_tuple(cx_hlo_infer *in)
{
  const size_t n = in->op->n_operands;
  cx_hlo_non_tensor *non_tensor = CX_ARENA_NEW(in->arena, cx_hlo_non_tensor);
  cx_hlo_any *parts = CX_ARENA_ARRAY(in->arena, cx_hlo_any, n);
  if (non_tensor == NULL || parts == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) parts[i] = in->op->operands[i]->type;
  *non_tensor = (cx_hlo_non_tensor){ .kind = CX_HLO_NON_TENSOR_TUPLE,
                                     .parts = parts,
                                     .n_parts = n };
  in->results[0] = (cx_hlo_any){ .non_tensor = non_tensor };
  return NULL;
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

static bool is_token(const cx_hlo_any *type)
{
  return type->non_tensor == NULL && type->tensor.elem == CX_HLO_TOKEN &&
         type->tensor.rank == 0;
}

static calx_status *need_token(const cx_hlo_infer *in, const char *what,
                               size_t i, const cx_hlo_any *type)
{
  if (is_token(type)) return NULL;
  return cx_hlo_bad(in, "%s %zu must be a token, got %s", what, i,
                    CX_HLO_ANY(type));
}

// after_all takes tokens only; the others take one, behind what they send.
calx_status *cx_hlo_infer_token(cx_hlo_infer *in)
{
  const size_t n = in->op->n_operands;
  const bool all = in->op->kind == CX_HLO_OP_AFTER_ALL;
  for (size_t i = all || n == 0 ? 0 : n - 1; i < n; i++) {
    CALX_TRY(need_token(in, "operand", i, &in->op->operands[i]->type));
  }
  return cx_hlo_result(in, 0, CX_HLO_TOKEN, 0, NULL);
}

// A token, and what is declared, behind which comes another.
calx_status *cx_hlo_infer_received(cx_hlo_infer *in)
{
  const size_t last = in->op->n_results - 1;
  CALX_TRY(need_token(in, "operand", 0, &in->op->operands[0]->type));
  CALX_TRY(cx_hlo_infer_declared(in));
  return need_token(in, "result", last, &in->results[last]);
}

// ---- what runs beside ----

static cx_hlo_non_tensor *new_future(const cx_hlo_infer *in, size_t n,
                                     cx_hlo_any **out_parts)
{
  cx_hlo_non_tensor *non_tensor = CX_ARENA_NEW(in->arena, cx_hlo_non_tensor);
  cx_hlo_any *parts = CX_ARENA_ARRAY(in->arena, cx_hlo_any, n);
  if (non_tensor == NULL || parts == NULL) return NULL;
  *non_tensor = (cx_hlo_non_tensor){ .kind = CX_HLO_NON_TENSOR_FUTURE,
                                     .parts = parts,
                                     .n_parts = n };
  *out_parts = parts;
  return non_tensor;
}

// The region takes the operands; the future has what it returns.
calx_status *cx_hlo_infer_async_start(cx_hlo_infer *in)
{
  const size_t n = in->op->n_operands;
  cx_hlo_any *args = CX_ARENA_ARRAY(in->arena, cx_hlo_any, n);
  if (args == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) args[i] = in->op->operands[i]->type;
  const cx_hlo_block *block = in->op->regions[0].first;
  const cx_hlo_op *end = block == NULL ? NULL : block->last;
  const size_t n_out = end == NULL ? 0 : end->n_operands;
  cx_hlo_value *const *returned = NULL;
  CALX_TRY(cx_hlo_need_body(in, 0, args, n, n_out, &returned));
  cx_hlo_any *parts = NULL;
  const cx_hlo_non_tensor *future = new_future(in, n_out, &parts);
  if (future == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n_out; i++) parts[i] = returned[i]->type;
  in->results[0] = (cx_hlo_any){ .non_tensor = future };
  return NULL;
}

calx_status *cx_hlo_infer_async_done(cx_hlo_infer *in)
{
  const cx_hlo_non_tensor *non_tensor = in->op->operands[0]->type.non_tensor;
  if (non_tensor == NULL || non_tensor->kind != CX_HLO_NON_TENSOR_FUTURE ||
      non_tensor->n_parts != in->op->n_results) {
    return cx_hlo_bad(in, "the operand is no future of %u values",
                      in->op->n_results);
  }
  for (size_t i = 0; i < non_tensor->n_parts; i++)
    in->results[i] = non_tensor->parts[i];
  return NULL;
}
