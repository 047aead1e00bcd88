// ref/region: regions on scalars, run many times.
//
// Where all operations of a region work element by element, it is run on many
// scalars at once: each of its values is an array, made once. Any other region
// is walked for each scalar.
#include <string.h>

#include "ref/inner.h"

// What makes result i of the block from argument i and its partner: RETURN: the
// partner itself; OTHER: several operations, or one that does not commute.
static cx_hlo_op_kind single_result(const cx_hlo_block *block,
                                    const cx_hlo_op *end, uint32_t i)
{
  if (end->operands[i] == &block->args[end->n_operands + i]) {
    return CX_HLO_OP_RETURN;
  }
  const cx_hlo_op *op = cx_hlo_block_combiner(block, i);
  return op != NULL ? op->kind : CX_HLO_OP_OTHER;
}

cx_hlo_op_kind cpu_ref_single(const cx_hlo_block *block, uint32_t i)
{
  const cx_hlo_op *end = cx_hlo_terminator(block);
  if (end == NULL || i >= end->n_operands ||
      block->n_args != 2 * (size_t)end->n_operands) {
    return CX_HLO_OP_OTHER;
  }
  return single_result(block, end, i);
}

bool cpu_ref_all_single(const cx_hlo_op *op)
{
  const cx_hlo_block *block = op->regions[0].first;
  for (uint32_t i = 0; i < op->n_results; i++) {
    const cx_hlo_op_kind kind =
        block == NULL ? CX_HLO_OP_OTHER : cpu_ref_single(block, i);
    if (kind == CX_HLO_OP_OTHER || kind == CX_HLO_OP_RETURN) return false;
  }
  return true;
}

static bool is_scalar(const cx_hlo_value *v)
{
  return v->type.non_tensor == NULL && v->type.tensor.rank == 0 &&
         cx_hlo_elem_class(v->type.tensor.elem) != 0;
}

// What an operation on scalars is on arrays of them.
static bool works_on_lanes(const cx_hlo_op *op)
{
  const bool copies =
      op->kind == CX_HLO_OP_RESHAPE || op->kind == CX_HLO_OP_BROADCAST_IN_DIM;
  const bool literal = op->kind == CX_HLO_OP_CONSTANT;
  if (!copies && !literal && !cpu_ref_is_elementwise(op->kind)) return false;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (!is_scalar(op->operands[i])) return false;
  }
  return op->n_results == 1 && is_scalar(&op->results[0]);
}

static size_t lane_bytes(const cpu_ref_body *b, const cx_hlo_value *v)
{
  return (b->width * cx_hlo_elem_bytes(v->type.tensor.elem) + 15) / 16 * 16;
}

static calx_status *allocate_results(const cpu_ref_call *c, cpu_ref_body *b)
{
  size_t all = 16;
  for (const cx_hlo_op *op = b->block->first; op->next != NULL; op = op->next) {
    all += lane_bytes(b, &op->results[0]);
  }
  CALX_TRY(cpu_ref_scratch(c, all, 1, &b->memory));
  unsigned char *at = b->memory->data;
  for (const cx_hlo_op *op = b->block->first; op->next != NULL; op = op->next) {
    const cx_hlo_value *v = &op->results[0];
    const size_t bytes = cx_hlo_elem_bytes(v->type.tensor.elem);
    *cpu_ref_slot_of(b->machine, v) =
        (cpu_ref_slot){ .tensor = { v->type.tensor, at }, .lanes = true };
    if (op->kind == CX_HLO_OP_CONSTANT) {
      const cx_hlo_attr *value = cx_hlo_op_attr(op, CX_HLO_A_VALUE);
      if (value->as.elements.size < bytes) {
        return cpu_ref_bad(op, CALX_INVALID_ARGUMENT, "the literal is cut off");
      }
      cpu_ref_fill(bytes, at, b->width, value->as.elements.data);
    }
    at += lane_bytes(b, v);
  }
  return NULL;
}

calx_status *cpu_ref_body_open(const cpu_ref_call *c,
                               const cx_hlo_region *region, size_t width,
                               cpu_ref_body *out)
{
  *out = (cpu_ref_body){ .machine = c->machine,
                         .block = region->first,
                         .width = width };
  const cx_hlo_block *block = region->first;
  if (block == NULL || cx_hlo_terminator(block) == NULL) {
    return cpu_ref_bad(c->op, CALX_INVALID_ARGUMENT, "a region is empty");
  }
  out->lanes = true;
  for (size_t i = 0; i < block->n_args; i++) {
    out->lanes = out->lanes && is_scalar(&block->args[i]);
  }
  for (const cx_hlo_op *o = block->first; o->next != NULL; o = o->next) {
    out->lanes = out->lanes && works_on_lanes(o);
  }
  out->single = cpu_ref_single(block, 0);
  return out->lanes ? allocate_results(c, out) : NULL;
}

void cpu_ref_body_close(cpu_ref_body *b)
{
  if (b->lanes) {
    for (const cx_hlo_op *op = b->block->first; op->next != NULL;
         op = op->next) {
      *cpu_ref_slot_of(b->machine, &op->results[0]) = (cpu_ref_slot){ 0 };
    }
    for (size_t i = 0; i < b->block->n_args; i++) {
      *cpu_ref_slot_of(b->machine, &b->block->args[i]) = (cpu_ref_slot){ 0 };
    }
  }
  cpu_ref_buffer_release(b->machine, b->memory);
  b->memory = NULL;
}

static void lane_of(const cpu_ref_machine *m, const cx_hlo_value *v,
                    cpu_ref_lane *out)
{
  const cpu_ref_slot *s = cpu_ref_slot_of(m, v);
  *out =
      (cpu_ref_lane){ v->type.tensor.elem, s->tensor.data, s->lanes ? 1 : 0 };
}

static void copy_lanes(const cpu_ref_lane *from, void *to, size_t n)
{
  const size_t bytes = cx_hlo_elem_bytes(from->elem);
  if (from->step == 0) {
    cpu_ref_fill(bytes, to, n, from->data);
  } else if (n != 0 && to != from->data) {
    memmove(to, from->data, n * bytes);
  }
}

static void run_lanes(const cpu_ref_body *b, void *const *results, size_t n)
{
  const cpu_ref_machine *m = b->machine;
  const cx_hlo_op *op = b->block->first;
  for (; op->next != NULL; op = op->next) {
    if (op->kind == CX_HLO_OP_CONSTANT) continue;
    cpu_ref_lane in[3] = { 0 };
    for (uint32_t i = 0; i < op->n_operands && i < 3; i++) {
      lane_of(m, op->operands[i], &in[i]);
    }
    const cpu_ref_tensor *to = &cpu_ref_slot_of(m, &op->results[0])->tensor;
    if (cpu_ref_is_elementwise(op->kind)) {
      cpu_ref_element(op, in, to->type.elem, to->data, n);
    } else {
      copy_lanes(&in[0], to->data, n);
    }
  }
  for (uint32_t i = 0; i < op->n_operands; i++) {
    cpu_ref_lane from;
    lane_of(m, op->operands[i], &from);
    copy_lanes(&from, results[i], n);
  }
}

static calx_status *run_one(const cpu_ref_body *b, const void *const *args,
                            void *const *results, size_t at)
{
  enum { FEW = 16 };
  cpu_ref_machine *m = b->machine;
  const size_t n = cx_hlo_terminator(b->block)->n_operands;
  cpu_ref_slot few[FEW];
  cpu_ref_slot *out = n <= FEW ? few : cx_calloc(n, sizeof *out);
  if (out == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < b->block->n_args; i++) {
    const cx_hlo_type *t = &b->block->args[i].type.tensor;
    // Borrowed and only read: the cast takes away what no one uses.
    char *p = (char *)(uintptr_t)args[i] + at * cx_hlo_elem_bytes(t->elem);
    *cpu_ref_slot_of(m, &b->block->args[i]) =
        (cpu_ref_slot){ .tensor = { *t, p } };
  }
  calx_status *status = cpu_ref_block(m, b->block, out);
  for (size_t i = 0; i < n; i++) {
    if (status == NULL) {
      const size_t bytes = cx_hlo_elem_bytes(out[i].tensor.type.elem);
      memcpy((char *)results[i] + at * bytes, out[i].tensor.data, bytes);
    }
    cpu_ref_slot_clear(m, &out[i]);
  }
  if (out != few) cx_free(out);
  return status;
}

calx_status *cpu_ref_body_run(cpu_ref_body *b, const void *const *args,
                              void *const *results, size_t n)
{
  if (!b->lanes) {
    for (size_t i = 0; i < n; i++) CALX_TRY(run_one(b, args, results, i));
    return NULL;
  }
  for (size_t i = 0; i < b->block->n_args; i++) {
    const cx_hlo_value *v = &b->block->args[i];
    *cpu_ref_slot_of(b->machine, v) = (cpu_ref_slot){
      .tensor = { v->type.tensor, (void *)(uintptr_t)args[i] }, .lanes = true
    };
  }
  run_lanes(b, results, n);
  return NULL;
}
