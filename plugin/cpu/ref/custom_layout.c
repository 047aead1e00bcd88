// ref/custom_layout: the layouts that a custom call wants its tensors in.
//
// A layout lists the dimensions, the fastest first. The engine's tensors are
// row-major: an operand of another layout is copied to memory of the call, and
// a result is copied from there.
#include "ref/handler.h"
#include "ref/inner.h"

// Steps in elements of tensor `i`. *row_major: those of the engine's own.
static calx_status *steps_of(const cpu_ref_call *c, cx_hlo_attr_id id, size_t i,
                             const cx_hlo_type *t, int64_t *steps,
                             bool *row_major)
{
  const cx_hlo_attr *list = cx_hlo_op_attr(c->op, id);
  *row_major = true;
  if (list == NULL || i >= list->as.list.n) return NULL;
  const cx_hlo_attr *a = list->as.list.items[i];
  const bool sized =
      a->kind == CX_HLO_ATTR_ELEMENTS &&
      cx_hlo_type_elements(&a->as.elements.type.tensor) == (int64_t)t->rank;
  for (size_t k = 0; k < t->rank; k++) steps[k] = -1;
  int64_t step = 1;
  for (size_t k = 0; sized && k < t->rank; k++) {
    const int64_t d = cx_hlo_elements_int(&a->as.elements, k);
    if (d < 0 || d >= (int64_t)t->rank || steps[d] >= 0) break;
    *row_major = *row_major && d == (int64_t)(t->rank - 1 - k);
    steps[d] = step;
    step *= t->dims[d];
  }
  bool whole = sized;
  for (size_t k = 0; k < t->rank; k++) whole = whole && steps[k] >= 0;
  if (whole) return NULL;
  return cx_invalid(
      "custom_call: layout %zu is no order of the dimensions of %s", i,
      cx_hlo_shape(t).s);
}

typedef enum copy_direction { TO_CALL, MEMORY, FROM_CALL } copy_direction;

// Copies the tensor, or gives the buffer memory of its own.
static calx_status *convert(cx_arena *arena, const cpu_ref_call *c,
                            cx_hlo_attr_id id, size_t i, copy_direction how,
                            const cpu_ref_tensor *t, XLA_FFI_Buffer *b)
{
  int64_t own[CPU_REF_RANK], steps[CPU_REF_RANK];
  bool row_major = true;
  CALX_TRY(steps_of(c, id, i, &t->type, steps, &row_major));
  const int64_t bytes = cx_hlo_type_bytes(&t->type);
  if (row_major || bytes <= 0) return NULL;
  const size_t each = cx_hlo_elem_bytes(t->type.elem);
  cpu_ref_strides(&t->type, own);
  if (how == FROM_CALL) {
    cpu_ref_copy(each, t->type.rank, t->type.dims, t->data, own, b->data,
                 steps);
    return NULL;
  }
  b->data = cx_arena_alloc(arena, (size_t)bytes);
  if (b->data == NULL) return cx_out_of_memory();
  if (how == TO_CALL) {
    cpu_ref_copy(each, t->type.rank, t->type.dims, b->data, steps, t->data,
                 own);
  }
  return NULL;
}

calx_status *cpu_ref_layouts_begin(cx_arena *arena, const cpu_ref_call *c,
                                   XLA_FFI_CallFrame *frame)
{
  for (size_t i = 0; i < c->op->n_operands; i++) {
    CALX_TRY(convert(arena, c, CX_HLO_A_OPERAND_LAYOUTS, i, TO_CALL, &c->in[i],
                     frame->args.args[i]));
  }
  for (size_t i = 0; i < c->op->n_results; i++) {
    CALX_TRY(convert(arena, c, CX_HLO_A_RESULT_LAYOUTS, i, MEMORY, &c->out[i],
                     frame->rets.rets[i]));
  }
  return NULL;
}

calx_status *cpu_ref_layouts_end(const cpu_ref_call *c,
                                 const XLA_FFI_CallFrame *frame)
{
  for (size_t i = 0; i < c->op->n_results; i++) {
    CALX_TRY(convert(NULL, c, CX_HLO_A_RESULT_LAYOUTS, i, FROM_CALL, &c->out[i],
                     frame->rets.rets[i]));
  }
  return NULL;
}
