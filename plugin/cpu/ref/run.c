// ref/run: the walk through a block.
//
// Most operations are functions of tensors, which get their results' memory;
// those of control flow work on slots. A value's slot is emptied after its last
// use in its block.
#include <stdio.h>

#include "ref/inner.h"

calx_status *cpu_ref_bad(const cx_hlo_op *op, calx_code code,
                         const char *format, ...)
{
  va_list args;
  va_start(args, format);
  char sentence[512];
  vsnprintf(sentence, sizeof sentence, format, args);
  va_end(args);
  if (op->kind == CX_HLO_OP_OTHER) {
    return cx_error(code, "%.*s: %s", (int)op->name.n, op->name.s, sentence);
  }
  if (op->loc != NULL && op->loc->line != 0) {
    return cx_error(code, "%s at %.*s:%lld: %s", cx_hlo_op_short(op->kind),
                    (int)op->loc->file.n, op->loc->file.s,
                    (long long)op->loc->line, sentence);
  }
  return cx_error(code, "%s: %s", cx_hlo_op_short(op->kind), sentence);
}

calx_status *cpu_ref_interrupted(const cpu_ref_machine *m)
{
  const cpu_ref_context *c = m->context;
  return c->interrupt != NULL ? c->interrupt(c->user) : NULL;
}

// ---- one operation ----

calx_status *cpu_ref_check_type(const cx_hlo_op *op, const cx_hlo_any *type)
{
  const cx_hlo_type *t = &type->tensor;
  const bool plain = type->non_tensor == NULL ||
                     type->non_tensor->kind == CX_HLO_NON_TENSOR_ENCODED;
  if (plain && t->elem != CX_HLO_INVALID && t->rank <= CPU_REF_RANK) {
    bool fixed = true;
    for (size_t i = 0; i < t->rank; i++) fixed = fixed && t->dims[i] >= 0;
    if (fixed) return NULL;
  }
  return cpu_ref_bad(op, CALX_UNIMPLEMENTED,
                     "%s is no plain tensor of known sizes and of at most %d "
                     "dimensions",
                     plain ? cx_hlo_shape(t).s : "an operand or result",
                     (int)CPU_REF_RANK);
}

calx_status *cpu_ref_check(const cx_hlo_op *op)
{
  if (cpu_ref_fn_of(op->kind) == NULL) {
    return cpu_ref_bad(op, CALX_UNIMPLEMENTED,
                       "the reference interpreter does not have it");
  }
  for (size_t i = 0; i < cx_hlo_op_n_types(op); i++) {
    CALX_TRY(cpu_ref_check_type(op, cx_hlo_op_type(op, i)));
  }
  return NULL;
}

// Whether the first operand's memory may become the result's.
static bool in_place(const cpu_ref_machine *m, const cx_hlo_op *op)
{
  if (op->kind != CX_HLO_OP_DYNAMIC_UPDATE_SLICE &&
      (op->kind != CX_HLO_OP_SCATTER || op->n_results != 1)) {
    return false;
  }
  const cx_hlo_value *v = op->operands[0];
  const cpu_ref_buffer *b = cpu_ref_slot_of(m, v)->buffer;
  if (b == NULL || b->refs != 1 || *cpu_ref_last_of(m, v) != op ||
      !cx_hlo_type_equal(&v->type.tensor, &op->results[0].type.tensor)) {
    return false;
  }
  for (uint32_t i = 1; i < op->n_operands; i++) {
    if (op->operands[i] == v) return false;
  }
  return true;
}

static calx_status *make_results(cpu_ref_machine *m, const cx_hlo_op *op,
                                 cpu_ref_tensor *out)
{
  for (uint32_t i = 0; i < op->n_results; i++) {
    cpu_ref_slot *s = cpu_ref_slot_of(m, &op->results[i]);
    const cx_hlo_type *type = &op->results[i].type.tensor;
    cpu_ref_slot_clear(m, s);
    if (i == 0 && in_place(m, op)) {
      *s = cpu_ref_slot_share(cpu_ref_slot_of(m, op->operands[0]));
    } else if (op->kind == CX_HLO_OP_RESHAPE) {
      *s = cpu_ref_slot_share(cpu_ref_slot_of(m, op->operands[0]));
    } else {
      CALX_TRY(cpu_ref_buffer_new(m, op, type, &s->buffer));
      s->tensor.data = s->buffer->data;
    }
    s->tensor.type = *type;
    out[i] = s->tensor;
  }
  return NULL;
}

static calx_status *run_fn(cpu_ref_machine *m, const cx_hlo_op *op,
                           cpu_ref_fn *fn, cpu_ref_tensor *tensors)
{
  for (uint32_t i = 0; i < op->n_operands; i++) {
    tensors[i] = cpu_ref_slot_of(m, op->operands[i])->tensor;
  }
  cpu_ref_tensor *out = tensors + op->n_operands;
  CALX_TRY(make_results(m, op, out));
  return fn(&(cpu_ref_call){ m, op, tensors, out });
}

calx_status *cpu_ref_run_fn(cpu_ref_machine *m, const cx_hlo_op *op,
                            cpu_ref_fn *fn)
{
  enum { FEW = 12 };
  for (size_t i = 0; i < cx_hlo_op_n_types(op); i++) {
    CALX_TRY(cpu_ref_check_type(op, cx_hlo_op_type(op, i)));
  }
  const size_t n = (size_t)op->n_operands + op->n_results;
  cpu_ref_tensor few[FEW];
  if (n <= FEW) return run_fn(m, op, fn, few);
  cpu_ref_tensor *many = cx_calloc(n, sizeof *many);
  if (many == NULL) return cx_out_of_memory();
  calx_status *status = run_fn(m, op, fn, many);
  cx_free(many);
  return status;
}

static calx_status *run_op(cpu_ref_machine *m, const cx_hlo_op *op)
{
  cpu_ref_control_fn *control = cpu_ref_control_of(op->kind);
  CALX_TRY(cpu_ref_interrupted(m));
  if (control != NULL) return control(m, op);
  cpu_ref_fn *fn = cpu_ref_fn_of(op->kind);
  return fn == NULL ? cpu_ref_check(op) : cpu_ref_run_fn(m, op, fn);
}

// ---- a block ----

// What the regions of `op` saw of the block around them, for the last time.
static void drop_captured(cpu_ref_machine *m, const cx_hlo_op *op,
                          const cx_hlo_block *block)
{
  const cx_hlo_op *inner = block == NULL ? NULL : block->first;
  for (; inner != NULL; inner = inner->next) {
    for (uint32_t i = 0; i < inner->n_operands; i++) {
      const cx_hlo_value *v = inner->operands[i];
      if (*cpu_ref_last_of(m, v) == op)
        cpu_ref_slot_clear(m, cpu_ref_slot_of(m, v));
    }
    for (uint32_t i = 0; i < inner->n_regions; i++) {
      drop_captured(m, op, inner->regions[i].first);
    }
  }
}

static void drop_dead(cpu_ref_machine *m, const cx_hlo_op *op)
{
  for (uint32_t i = 0; i < op->n_regions; i++) {
    drop_captured(m, op, op->regions[i].first);
  }
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const cx_hlo_value *v = op->operands[i];
    if (*cpu_ref_last_of(m, v) == op)
      cpu_ref_slot_clear(m, cpu_ref_slot_of(m, v));
  }
  for (uint32_t i = 0; i < op->n_results; i++) {
    const cx_hlo_value *v = &op->results[i];
    if (*cpu_ref_last_of(m, v) == NULL) {
      cpu_ref_slot_clear(m, cpu_ref_slot_of(m, v));
    }
  }
}

static void leave(cpu_ref_machine *m, const cx_hlo_block *block)
{
  for (size_t i = 0; i < block->n_args; i++) {
    cpu_ref_slot_clear(m, cpu_ref_slot_of(m, &block->args[i]));
  }
  for (const cx_hlo_op *op = block->first; op != NULL; op = op->next) {
    for (uint32_t i = 0; i < op->n_results; i++) {
      cpu_ref_slot_clear(m, cpu_ref_slot_of(m, &op->results[i]));
    }
  }
}

calx_status *cpu_ref_block(cpu_ref_machine *m, const cx_hlo_block *block,
                           cpu_ref_slot *out)
{
  const cx_hlo_op *end = cx_hlo_terminator(block);
  if (end == NULL) {
    return cx_invalid("a block does not end with return");
  }
  calx_status *status = NULL;
  for (const cx_hlo_op *op = block->first; op != end && status == NULL;
       op = op->next) {
    status = run_op(m, op);
    if (status == NULL) drop_dead(m, op);
  }
  for (uint32_t i = 0; i < end->n_operands; i++) {
    out[i] = (cpu_ref_slot){ 0 };
    if (status != NULL) continue;
    out[i] = cpu_ref_slot_share(cpu_ref_slot_of(m, end->operands[i]));
  }
  leave(m, block);
  return status;
}
