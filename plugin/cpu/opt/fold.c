// opt/fold: computes operations on constants while compiling, with the
// reference interpreter, whose result is correct by definition.
//
// A result without elements becomes an empty constant, so that a reduction over
// it can be folded too.
//
// Constants do not grow: a result has at most 64 KiB or is no larger than the
// operands. If all elements of each operand are equal, one element is computed,
// and the result stays a splat. Iota and broadcasts are never folded, nor are
// loops and operations that would take long.
#include <string.h>

#include "base/alloc.h"
#include "hlo/ops.h"
#include "opt/edit.h"
#include "opt/passes.h"
#include "ref/ref.h"

#define SMALL ((size_t)64 << 10)
#define MOST_BYTES ((size_t)1 << 20)
#define MOST_WORK ((double)(4 << 20))

// ---- what is folded ----

static bool is_candidate(const cx_hlo_op *op)
{
  switch (op->kind) {
    case CX_HLO_OP_CONSTANT:
    case CX_HLO_OP_IOTA:
    case CX_HLO_OP_BROADCAST:
    case CX_HLO_OP_BROADCAST_IN_DIM:
    case CX_HLO_OP_WHILE:
    case CX_HLO_OP_IF:
    case CX_HLO_OP_CASE:
    case CX_HLO_OP_RETURN:
    case CX_HLO_OP_FUNC_RETURN:
    case CX_HLO_OP_CUSTOM_CALL:
    case CX_HLO_OP_TUPLE:
    case CX_HLO_OP_GET_TUPLE_ELEMENT:
    case CX_HLO_OP_OPTIMIZATION_BARRIER:
    case CX_HLO_OP_AFTER_ALL:
    case CX_HLO_OP_CREATE_TOKEN:
    case CX_HLO_OP_REPLICA_ID:
    case CX_HLO_OP_PARTITION_ID: return false;
    default: break;
  }
  if (op->n_operands == 0 || op->n_results == 0) return false;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (cpu_opt_literal(op->operands[i]) == NULL) return false;
  }
  return cpu_opt_pure(op);
}

// Whether the regions use no values from outside.
static bool is_closed(const cx_hlo_op *op)
{
  const cx_hlo_op *inner = cpu_opt_inner(op);
  for (; inner != op; inner = cpu_opt_next(inner)) {
    for (uint32_t i = 0; i < inner->n_operands; i++) {
      if (!cpu_opt_is_inside(op, inner->operands[i])) return false;
    }
  }
  return true;
}

static size_t bytes_of(const cx_hlo_type *t)
{
  const int64_t n = cx_hlo_type_elements(t);
  size_t bytes = 0;
  if (n < 0 || !cx_mul_size((size_t)n, cx_hlo_elem_bytes(t->elem), &bytes)) {
    return SIZE_MAX;
  }
  return bytes;
}

static double product_of(cx_hlo_ints list)
{
  double r = 1;
  for (size_t i = 0; i < list.n; i++) r *= (double)list.v[i];
  return r;
}

// Iterations of the innermost loop, roughly.
static double work_of(const cx_hlo_op *op)
{
  double work = (double)cx_hlo_type_elements(&op->results[0].type.tensor);
  const cx_hlo_type *x = &op->operands[0]->type.tensor;
  switch (op->kind) {
    case CX_HLO_OP_DOT_GENERAL:
    case CX_HLO_OP_DOT:
    case CX_HLO_OP_CONVOLUTION: {
      const cx_hlo_type *y = &op->operands[1]->type.tensor;
      const double a = (double)cx_hlo_type_elements(x);
      const double b = (double)cx_hlo_type_elements(y);
      return work * (a < b ? a : b);
    }
    case CX_HLO_OP_REDUCE_WINDOW:
    case CX_HLO_OP_SELECT_AND_SCATTER:
      return work * product_of(cx_hlo_op_ints(op, CX_HLO_A_WINDOW_DIMENSIONS));
    case CX_HLO_OP_CHOLESKY:
    case CX_HLO_OP_TRIANGULAR_SOLVE: return work * (double)x->dims[x->rank - 1];
    case CX_HLO_OP_FFT: return work * 64;
    default: return work;
  }
}

static bool is_worth_it(const cx_hlo_op *op)
{
  size_t from = 0;
  size_t literals = 0;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const size_t n = bytes_of(&op->operands[i]->type.tensor);
    if (n > MOST_BYTES) return false;
    from += n;
    literals += cpu_opt_literal(op->operands[i])->size;
  }
  size_t to = 0;
  for (uint32_t i = 0; i < op->n_results; i++) {
    if (op->results[i].type.non_tensor != NULL ||
        cx_hlo_elem_class(op->results[i].type.tensor.elem) == 0) {
      return false;
    }
    const size_t n = bytes_of(&op->results[i].type.tensor);
    if (n > MOST_BYTES) return false;
    to += n;
  }
  return from <= 4 * MOST_BYTES && (to <= SMALL || to <= literals) &&
         work_of(op) <= MOST_WORK;
}

// ---- folding ----

// The constant as a tensor with all elements in memory.
static bool dense(const cx_hlo_elements *e, cx_arena *arena,
                  cpu_ref_tensor *out)
{
  const size_t bytes = bytes_of(&e->type.tensor);
  const size_t one = cx_hlo_elem_bytes(e->type.tensor.elem);
  char *data = cx_arena_alloc(arena, bytes + 1);
  if (data == NULL) return false;
  if (e->size == bytes) {
    if (bytes != 0) memcpy(data, e->data, bytes);
  } else {
    for (size_t at = 0; at < bytes; at += one) memcpy(data + at, e->data, one);
  }
  *out = (cpu_ref_tensor){ e->type.tensor, data };
  return true;
}

// Runs the operation. False with *out_status NULL: it cannot be run.
static bool evaluate(cpu_opt_walk *w, const cx_hlo_op *op, cx_arena *arena,
                     cpu_ref_tensor *results, calx_status **out_status)
{
  cpu_ref_tensor *operands =
      CX_ARENA_ARRAY(arena, cpu_ref_tensor, op->n_operands);
  *out_status = cx_out_of_memory();
  if (operands == NULL) return false;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (!dense(cpu_opt_literal(op->operands[i]), arena, &operands[i])) {
      return false;
    }
  }
  for (uint32_t i = 0; i < op->n_results; i++) {
    results[i].type = op->results[i].type.tensor;
    results[i].data = cx_arena_alloc(arena, bytes_of(&results[i].type) + 1);
    if (results[i].data == NULL) return false;
  }
  *out_status = NULL;
  const cpu_ref_context context = { .memory_limit = 64 * MOST_BYTES };
  calx_status *failed =
      cpu_ref_op(w->b.module, op, operands, results, &context);
  calx_status_free(failed);  // it stays, and fails when the program runs
  return failed == NULL;
}

static calx_status *fold(cpu_opt_walk *w, cx_hlo_op *op, cx_arena *arena)
{
  cpu_ref_tensor *results =
      CX_ARENA_ARRAY(arena, cpu_ref_tensor, op->n_results);
  cx_hlo_value **out = cpu_opt_values(w, op->n_results);
  if (results == NULL || out == NULL) return cx_out_of_memory();
  calx_status *status = NULL;
  if (!evaluate(w, op, arena, results, &status)) return status;
  for (uint32_t i = 0; i < op->n_results; i++) {
    const cx_hlo_type *t = &results[i].type;
    out[i] = cx_hlo_constant(&w->b, *t, results[i].data, bytes_of(t));
  }
  cpu_opt_replace_all(w, op, out);
  return NULL;
}

// ---- splats ----

static bool all_splats(const cx_hlo_op *op)
{
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (cpu_opt_splat(op->operands[i]) == NULL) return false;
  }
  return op->results[0].type.tensor.rank != 0;
}

// Runs the same operation on scalars. What is built for that stays unused.
static calx_status *fold_splat(cpu_opt_walk *w, cx_hlo_op *op, cx_arena *arena)
{
  cx_hlo_builder *b = &w->b;
  cx_hlo_value *operands[3] = { NULL, NULL, NULL };
  for (uint32_t i = 0; i < op->n_operands && i < 3; i++) {
    const cx_hlo_type scalar = { op->operands[i]->type.tensor.elem, 0, NULL };
    operands[i] =
        cpu_opt_splat_like(b, &scalar, cpu_opt_splat(op->operands[i]));
  }
  const cx_hlo_type scalar = { op->results[0].type.tensor.elem, 0, NULL };
  cx_hlo_op *one = cpu_opt_begin_like(b, op, operands);
  cx_hlo_build_declare(b, one, 0, &scalar);
  if (cx_hlo_build_end(b, one) == NULL) return NULL;
  calx_status *status = NULL;
  cpu_ref_tensor result;
  if (evaluate(w, one, arena, &result, &status)) {
    cpu_opt_replace(
        w, op, cpu_opt_splat_like(b, &op->results[0].type.tensor, result.data));
  }
  return status;
}

// ---- empty results ----

static bool has_empty_results(const cx_hlo_op *op)
{
  if (op->kind == CX_HLO_OP_CONSTANT || op->n_results == 0) return false;
  for (uint32_t i = 0; i < op->n_results; i++) {
    const cx_hlo_any *t = &op->results[i].type;
    if (t->non_tensor != NULL || cx_hlo_type_elements(&t->tensor) != 0) {
      return false;
    }
    for (size_t d = 0; d < t->tensor.rank; d++) {
      if (t->tensor.dims[d] < 0) return false;
    }
  }
  return cpu_opt_pure(op);
}

static calx_status *empty(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_value **out = cpu_opt_values(w, op->n_results);
  if (out == NULL) return NULL;
  for (uint32_t i = 0; i < op->n_results; i++) {
    out[i] = cx_hlo_constant(&w->b, op->results[i].type.tensor, "", 0);
  }
  cpu_opt_replace_all(w, op, out);
  return NULL;
}

static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *op)
{
  if (has_empty_results(op)) return empty(w, op);
  if (!is_candidate(op) || !cpu_ref_can(op)) return NULL;
  const bool splat = cpu_opt_is_elementwise(op) && op->n_regions == 0 &&
                     op->n_operands <= 3 && all_splats(op);
  if (!splat && (!is_worth_it(op) || !is_closed(op))) return NULL;
  cx_arena arena = { 0 };
  calx_status *status = splat ? fold_splat(w, op, &arena) : fold(w, op, &arena);
  cx_arena_free(&arena);
  return status;
}

calx_status *cpu_opt_fold(cx_hlo_module *m, bool *changed)
{
  return cpu_opt_walk_func(m, cx_hlo_entry(m), visit, NULL, changed);
}
