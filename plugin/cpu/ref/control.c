// ref/control: control flow, calls, tuples, tokens and collectives.
#include <string.h>

#include "lapack/lapack.h"
#include "ref/handler.h"
#include "ref/inner.h"

// ---- slots of a whole list ----

static void set_value(cpu_ref_machine *m, const cx_hlo_value *v,
                      cpu_ref_slot value)
{
  cpu_ref_slot *s = cpu_ref_slot_of(m, v);
  cpu_ref_slot_clear(m, s);
  *s = value;
}

// The slots become the operation's results; after a failure they are cleared.
static calx_status *put_results(cpu_ref_machine *m, const cx_hlo_op *op,
                                cpu_ref_slot *from, calx_status *status)
{
  for (uint32_t i = 0; i < op->n_results; i++) {
    if (status == NULL) {
      set_value(m, &op->results[i], from[i]);
    } else {
      cpu_ref_slot_clear(m, &from[i]);
    }
  }
  return status;
}

static bool captures(const cx_hlo_op *op, const cx_hlo_value *v)
{
  for (uint32_t r = 0; r < op->n_regions; r++) {
    const cx_hlo_block *block = op->regions[r].first;
    const cx_hlo_op *inner = block == NULL ? NULL : block->first;
    for (; inner != NULL; inner = inner->next) {
      for (uint32_t i = 0; i < inner->n_operands; i++) {
        if (inner->operands[i] == v) return true;
      }
      if (captures(inner, v)) return true;
    }
  }
  return false;
}

// Another reference to the value; the reference itself, where this operation
// is its last use, so that what owns it alone may write to it.
static cpu_ref_slot take(cpu_ref_machine *m, const cx_hlo_op *op, uint32_t i)
{
  const cx_hlo_value *v = op->operands[i];
  cpu_ref_slot *s = cpu_ref_slot_of(m, v);
  bool again = *cpu_ref_last_of(m, v) != op || captures(op, v);
  for (uint32_t k = i + 1; k < op->n_operands && !again; k++) {
    again = op->operands[k] == v;
  }
  if (again) return cpu_ref_slot_share(s);
  const cpu_ref_slot taken = *s;
  *s = (cpu_ref_slot){ 0 };
  return taken;
}

static bool truth(const cpu_ref_slot *s)
{
  return s->tensor.data != NULL && *(const unsigned char *)s->tensor.data != 0;
}

static calx_status *need_count(const cx_hlo_op *op, size_t got, size_t want)
{
  if (got == want) return NULL;
  return cpu_ref_bad(op, CALX_INVALID_ARGUMENT,
                     "a region or function has %zu values where %zu are needed",
                     got, want);
}

// ---- while ----

static calx_status *holds(cpu_ref_machine *m, const cx_hlo_block *block,
                          const cpu_ref_slot *carried, bool *out)
{
  for (size_t i = 0; i < block->n_args; i++) {
    // Borrowed: the condition only looks.
    *cpu_ref_slot_of(m, &block->args[i]) =
        (cpu_ref_slot){ .tensor = carried[i].tensor };
  }
  cpu_ref_slot answer = { 0 };
  calx_status *status = cpu_ref_block(m, block, &answer);
  *out = truth(&answer);
  cpu_ref_slot_clear(m, &answer);
  return status;
}

static calx_status *loop(cpu_ref_machine *m, const cx_hlo_op *op,
                         cpu_ref_slot *carried)
{
  const cx_hlo_block *cond = op->regions[0].first;
  const cx_hlo_block *body = op->regions[1].first;
  for (;;) {
    bool more = false;
    CALX_TRY(cpu_ref_interrupted(m));
    CALX_TRY(holds(m, cond, carried, &more));
    if (!more) return NULL;
    for (uint32_t i = 0; i < op->n_operands; i++) {
      *cpu_ref_slot_of(m, &body->args[i]) = carried[i];
      carried[i] = (cpu_ref_slot){ 0 };
    }
    CALX_TRY(cpu_ref_block(m, body, carried));
  }
}

static calx_status *check_region(const cx_hlo_op *op, uint32_t region,
                                 size_t args, size_t results)
{
  const cx_hlo_block *block = op->regions[region].first;
  const cx_hlo_op *end = block == NULL ? NULL : cx_hlo_terminator(block);
  if (end == NULL) {
    return cpu_ref_bad(op, CALX_INVALID_ARGUMENT, "region %u is empty", region);
  }
  CALX_TRY(need_count(op, block->n_args, args));
  return need_count(op, end->n_operands, results);
}

static calx_status *run_while(cpu_ref_machine *m, const cx_hlo_op *op)
{
  const size_t n = op->n_operands;
  if (op->n_regions != 2) return need_count(op, op->n_regions, 2);
  CALX_TRY(need_count(op, op->n_results, n));
  CALX_TRY(check_region(op, 0, n, 1));
  CALX_TRY(check_region(op, 1, n, n));
  cpu_ref_slot *carried = cx_calloc(n + 1, sizeof *carried);
  if (carried == NULL) return cx_out_of_memory();
  for (uint32_t i = 0; i < n; i++) carried[i] = take(m, op, i);
  calx_status *status = put_results(m, op, carried, loop(m, op, carried));
  cx_free(carried);
  return status;
}

// ---- branches, calls ----

static calx_status *run_block(cpu_ref_machine *m, const cx_hlo_op *op,
                              const cx_hlo_block *block)
{
  cpu_ref_slot *out = cx_calloc((size_t)op->n_results + 1, sizeof *out);
  if (out == NULL) return cx_out_of_memory();
  calx_status *status = put_results(m, op, out, cpu_ref_block(m, block, out));
  cx_free(out);
  return status;
}

static calx_status *branch(cpu_ref_machine *m, const cx_hlo_op *op, uint32_t i)
{
  CALX_TRY(check_region(op, i, 0, op->n_results));
  return run_block(m, op, op->regions[i].first);
}

static calx_status *run_if(cpu_ref_machine *m, const cx_hlo_op *op)
{
  if (op->n_regions != 2) return need_count(op, op->n_regions, 2);
  return branch(m, op, truth(cpu_ref_slot_of(m, op->operands[0])) ? 0 : 1);
}

static calx_status *run_case(cpu_ref_machine *m, const cx_hlo_op *op)
{
  const cpu_ref_slot *s = cpu_ref_slot_of(m, op->operands[0]);
  const int64_t i = cpu_ref_int_at(&s->tensor, 0);
  const uint32_t n = op->n_regions;
  return branch(m, op, i < 0 || i >= n ? n - 1 : (uint32_t)i);
}

static calx_status *enter(cpu_ref_machine *m, const cx_hlo_op *op,
                          const cx_hlo_block *block)
{
  const cx_hlo_op *end = cx_hlo_terminator(block);
  CALX_TRY(need_count(op, block->n_args, op->n_operands));
  CALX_TRY(need_count(op, end == NULL ? 0 : end->n_operands, op->n_results));
  for (uint32_t i = 0; i < op->n_operands; i++) {
    set_value(m, &block->args[i], take(m, op, i));
  }
  return run_block(m, op, block);
}

static calx_status *run_call(cpu_ref_machine *m, const cx_hlo_op *op)
{
  const cx_hlo_attr *callee = cx_hlo_op_attr(op, op->kind == CX_HLO_OP_COMPOSITE
                                                     ? CX_HLO_A_DECOMPOSITION
                                                     : CX_HLO_A_CALLEE);
  const cx_hlo_func *f =
      callee == NULL ? NULL : cx_hlo_func_find(m->module, callee->as.text);
  if (f == NULL || f->body.first == NULL) {
    return cpu_ref_bad(op, CALX_INVALID_ARGUMENT,
                       "it calls a function that is not there");
  }
  // The verifier refuses recursion; this is for modules that it did not see.
  if (m->depth >= m->module->n_funcs) {
    return cpu_ref_bad(op, CALX_INVALID_ARGUMENT, "'%.*s' calls itself",
                       (int)f->name.n, f->name.s);
  }
  m->depth++;
  calx_status *status = enter(m, op, f->body.first);
  m->depth--;
  return status;
}

// ---- values that pass ----

static calx_status *run_barrier(cpu_ref_machine *m, const cx_hlo_op *op)
{
  CALX_TRY(need_count(op, op->n_results, op->n_operands));
  for (uint32_t i = 0; i < op->n_results; i++) {
    set_value(m, &op->results[i], take(m, op, i));
  }
  return NULL;
}

bool cpu_ref_identity_call(const cx_hlo_op *op)
{
  static const char *const names[] = { "Sharding", "SPMDFullToShardShape",
                                       "SPMDShardToFullShape" };
  const cx_hlo_attr *target = cx_hlo_op_attr(op, CX_HLO_A_CALL_TARGET_NAME);
  if (target == NULL || op->n_operands != 1 || op->n_results != 1 ||
      !cx_hlo_any_equal(&op->operands[0]->type, &op->results[0].type)) {
    return false;
  }
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (cx_hlo_str_equal(target->as.text, names[i])) return true;
  }
  return false;
}

// One matrix after the other; `results` are the operation's, empty before.
static calx_status *run_lapack(cpu_ref_machine *m, const cx_hlo_op *op,
                               const cpu_lapack_plan *plan,
                               cpu_ref_buffer *scratch, cpu_ref_slot *results)
{
  void *buffers[CPU_LAPACK_BUFFERS] = { NULL };
  for (uint32_t i = 0; i < op->n_operands; i++) {
    buffers[i] = cpu_ref_slot_of(m, op->operands[i])->tensor.data;
  }
  for (uint32_t i = 0; i < op->n_results; i++) {
    const cx_hlo_type *type = &op->results[i].type.tensor;
    cpu_ref_slot *r = &results[i];
    CALX_TRY(cpu_ref_buffer_new(m, op, type, &r->buffer));
    r->tensor = (cpu_ref_tensor){ .type = *type, .data = r->buffer->data };
    buffers[op->n_operands + i] = r->buffer->data;
  }
  for (int64_t i = 0; i < plan->d.batch; i++) {
    CALX_TRY(cpu_ref_interrupted(m));
    cpu_lapack_run(plan, buffers, i, i + 1, scratch->data);
  }
  return NULL;
}

static calx_status *run_lapack_call(cpu_ref_machine *m, const cx_hlo_op *op)
{
  cpu_lapack_desc desc;
  cpu_lapack_plan plan;
  CALX_TRY(cpu_lapack_describe(op, &desc));
  CALX_TRY(cpu_lapack_plan_make(&desc, &plan));
  cpu_ref_slot results[CPU_LAPACK_BUFFERS] = { { .buffer = NULL } };
  cpu_ref_buffer *scratch = NULL;
  CALX_TRY(cpu_ref_scratch(&(cpu_ref_call){ .machine = m, .op = op },
                           plan.scratch, 1, &scratch));
  calx_status *status = run_lapack(m, op, &plan, scratch, results);
  cpu_ref_buffer_release(m, scratch);
  return put_results(m, op, results, status);
}

static calx_status *run_custom_call(cpu_ref_machine *m, const cx_hlo_op *op)
{
  if (cpu_ref_identity_call(op)) return run_barrier(m, op);
  return cpu_ref_handler_takes(op) ? cpu_ref_run_fn(m, op, cpu_ref_handler_run)
                                   : run_lapack_call(m, op);
}

static calx_status *run_token(cpu_ref_machine *m, const cx_hlo_op *op)
{
  const cx_hlo_value *v = &op->results[0];
  set_value(m, v, (cpu_ref_slot){ .tensor.type = v->type.tensor });
  return NULL;
}

static calx_status *run_transfer(cpu_ref_machine *m, const cx_hlo_op *op)
{
  (void)m;
  return cpu_ref_bad(op, CALX_UNIMPLEMENTED,
                     "this device exchanges nothing with its host while a "
                     "program runs");
}

// ---- tuples and futures ----

static calx_status *pack(cpu_ref_machine *m, const cx_hlo_op *op, size_t n,
                         cpu_ref_buffer **out)
{
  CALX_TRY(cpu_ref_scratch(&(cpu_ref_call){ .machine = m, .op = op }, n,
                           sizeof(cpu_ref_slot), out));
  memset((*out)->data, 0, n * sizeof(cpu_ref_slot));
  (*out)->n_parts = n;
  return NULL;
}

static cpu_ref_slot *parts_of(const cpu_ref_buffer *b)
{
  return (cpu_ref_slot *)(uintptr_t)b->data;
}

static calx_status *run_tuple(cpu_ref_machine *m, const cx_hlo_op *op)
{
  cpu_ref_buffer *b = NULL;
  CALX_TRY(pack(m, op, op->n_operands, &b));
  for (uint32_t i = 0; i < op->n_operands; i++) {
    parts_of(b)[i] = take(m, op, i);
  }
  set_value(m, &op->results[0], (cpu_ref_slot){ .buffer = b });
  return NULL;
}

static calx_status *run_get_tuple_element(cpu_ref_machine *m,
                                          const cx_hlo_op *op)
{
  const cpu_ref_buffer *b = cpu_ref_slot_of(m, op->operands[0])->buffer;
  const int64_t i = cx_hlo_op_int(op, CX_HLO_A_INDEX);
  if (b == NULL || i < 0 || (uint64_t)i >= b->n_parts) {
    return cpu_ref_bad(op, CALX_INVALID_ARGUMENT, "there is no element %lld",
                       (long long)i);
  }
  set_value(m, &op->results[0], cpu_ref_slot_share(&parts_of(b)[i]));
  return NULL;
}

// The region is run at once; its results wait in the future.
static calx_status *run_async_start(cpu_ref_machine *m, const cx_hlo_op *op)
{
  const cx_hlo_block *block = op->n_regions == 1 ? op->regions[0].first : NULL;
  const cx_hlo_op *end = block == NULL ? NULL : cx_hlo_terminator(block);
  if (end == NULL) return need_count(op, 0, 1);
  CALX_TRY(need_count(op, block->n_args, op->n_operands));
  cpu_ref_buffer *b = NULL;
  CALX_TRY(pack(m, op, end->n_operands, &b));
  for (uint32_t i = 0; i < op->n_operands; i++) {
    *cpu_ref_slot_of(m, &block->args[i]) = take(m, op, i);
  }
  set_value(m, &op->results[0], (cpu_ref_slot){ .buffer = b });
  return cpu_ref_block(m, block, parts_of(b));
}

static calx_status *run_async_done(cpu_ref_machine *m, const cx_hlo_op *op)
{
  const cpu_ref_buffer *b = cpu_ref_slot_of(m, op->operands[0])->buffer;
  CALX_TRY(need_count(op, b == NULL ? 0 : b->n_parts, op->n_results));
  for (uint32_t i = 0; i < op->n_results; i++) {
    set_value(m, &op->results[i], cpu_ref_slot_share(&parts_of(b)[i]));
  }
  return NULL;
}

// ---- other devices ----

calx_status *cpu_ref_collective(const cpu_ref_call *call)
{
  const cpu_ref_context *c = call->machine->context;
  if (c->collective != NULL)
    return c->collective(c->user, call->op, call->in, call->out);
  return cpu_ref_bad(call->op, CALX_UNIMPLEMENTED,
                     "there are no other devices to speak with");
}

calx_status *cpu_ref_device_id(const cpu_ref_call *call)
{
  const cpu_ref_context *c = call->machine->context;
  const uint32_t id =
      call->op->kind == CX_HLO_OP_REPLICA_ID ? c->replica : c->partition;
  memcpy(call->out->data, &id, sizeof id);
  return NULL;
}

cpu_ref_control_fn *cpu_ref_control_of(cx_hlo_op_kind kind)
{
  switch (kind) {
    case CX_HLO_OP_WHILE: return run_while;
    case CX_HLO_OP_IF: return run_if;
    case CX_HLO_OP_CASE: return run_case;
    case CX_HLO_OP_CALL:
    case CX_HLO_OP_COMPOSITE: return run_call;
    case CX_HLO_OP_CUSTOM_CALL: return run_custom_call;
    case CX_HLO_OP_OPTIMIZATION_BARRIER: return run_barrier;
    case CX_HLO_OP_AFTER_ALL:
    case CX_HLO_OP_CREATE_TOKEN: return run_token;
    case CX_HLO_OP_INFEED:
    case CX_HLO_OP_OUTFEED:
    case CX_HLO_OP_SEND:
    case CX_HLO_OP_RECV: return run_transfer;
    case CX_HLO_OP_TUPLE: return run_tuple;
    case CX_HLO_OP_GET_TUPLE_ELEMENT: return run_get_tuple_element;
    case CX_HLO_OP_ASYNC_START: return run_async_start;
    case CX_HLO_OP_ASYNC_DONE: return run_async_done;
    default: return NULL;
  }
}
