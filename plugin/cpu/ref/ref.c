// ref/ref: the interface to other modules: whole functions, single operations,
// regions.
#include <string.h>

#include "ref/handler.h"
#include "ref/inner.h"

static calx_status *check_tensors(const char *what, const cpu_ref_tensor *given,
                                  const cx_hlo_any *types, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (types[i].non_tensor != NULL &&
        types[i].non_tensor->kind != CX_HLO_NON_TENSOR_ENCODED) {
      return cx_error(CALX_UNIMPLEMENTED, "%s %zu is no plain tensor", what, i);
    }
    if (cx_hlo_type_equal(&given[i].type, &types[i].tensor)) continue;
    return cx_invalid("%s %zu must be %s, got %s", what, i,
                      cx_hlo_shape(&types[i].tensor).s,
                      CPU_REF_SHAPE(&given[i]));
  }
  return NULL;
}

static calx_status *copy_out(const cpu_ref_slot *from, const cpu_ref_tensor *to)
{
  size_t bytes = 0;
  if (!cpu_ref_bytes(&to->type, &bytes)) {
    return cx_error(CALX_RESOURCE_EXHAUSTED, "the result %s is too large",
                    CPU_REF_SHAPE(to));
  }
  if (bytes != 0 && from->tensor.data != to->data) {
    memcpy(to->data, from->tensor.data, bytes);
  }
  return NULL;
}

// Runs a block on the caller's tensors.
static calx_status *run_block(const cpu_ref_call *c, const cx_hlo_block *block)
{
  cpu_ref_machine *m = c->machine;
  const cx_hlo_op *end = cx_hlo_terminator(block);
  const size_t n = end == NULL ? 0 : end->n_operands;
  cpu_ref_slot *out = cx_calloc(n + 1, sizeof *out);
  if (out == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < block->n_args; i++) {
    *cpu_ref_slot_of(m, &block->args[i]) = (cpu_ref_slot){ .tensor = c->in[i] };
  }
  calx_status *status = cpu_ref_block(m, block, out);
  for (size_t i = 0; i < n; i++) {
    if (status == NULL) status = copy_out(&out[i], &c->out[i]);
    cpu_ref_slot_clear(m, &out[i]);
  }
  cx_free(out);
  return status;
}

static void note_functions(cpu_ref_machine *m)
{
  for (const cx_hlo_func *g = m->module->first; g != NULL; g = g->next) {
    if (g->body.first != NULL) cpu_ref_note_uses(m, g->body.first);
  }
}

static calx_status *run_func(const cpu_ref_call *c, const cx_hlo_func *f)
{
  CALX_TRY(check_tensors("argument", c->in, f->params, f->n_params));
  CALX_TRY(check_tensors("result", c->out, f->results, f->n_results));
  CALX_TRY(cpu_ref_machine_env(c->machine));
  note_functions(c->machine);
  if (f->body.first == NULL) {
    return cx_invalid("function '%.*s' has no body", (int)f->name.n, f->name.s);
  }
  return run_block(c, f->body.first);
}

calx_status *cpu_ref_run(const cx_hlo_module *module, const cx_hlo_func *f,
                         const cpu_ref_tensor *args,
                         const cpu_ref_tensor *results,
                         const cpu_ref_context *context)
{
  cpu_ref_machine m = cpu_ref_machine_of(module, context);
  const cpu_ref_call c = { &m, NULL, args, results };
  return cpu_ref_machine_close(&m, run_func(&c, f));
}

// An operation of control flow between slots that hold the caller's tensors.
static calx_status *run_control(const cpu_ref_call *c)
{
  cpu_ref_machine *m = c->machine;
  const cx_hlo_op *op = c->op;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    *cpu_ref_slot_of(m, op->operands[i]) = (cpu_ref_slot){ .tensor = c->in[i] };
  }
  CALX_TRY(cpu_ref_control_of(op->kind)(m, op));
  for (uint32_t i = 0; i < op->n_results; i++) {
    CALX_TRY(cpu_ref_check_type(op, &op->results[i].type));
    CALX_TRY(copy_out(cpu_ref_slot_of(m, &op->results[i]), &c->out[i]));
  }
  return NULL;
}

static calx_status *run_single(const cpu_ref_call *c)
{
  cpu_ref_machine *m = c->machine;
  const cx_hlo_op *op = c->op;
  const bool control = cpu_ref_control_of(op->kind) != NULL;
  cpu_ref_fn *fn = cpu_ref_fn_of(op->kind);
  if (!control) CALX_TRY(cpu_ref_check(op));
  if (control || op->n_regions != 0) {
    CALX_TRY(control ? cpu_ref_machine_env(m)
                     : cpu_ref_machine_env_of(m, op->regions, op->n_regions));
    for (uint32_t i = 0; i < op->n_regions; i++) {
      const cx_hlo_block *block = op->regions[i].first;
      if (block != NULL) cpu_ref_note_uses(m, block);
    }
  }
  if (op->kind == CX_HLO_OP_CALL || op->kind == CX_HLO_OP_COMPOSITE) {
    note_functions(m);
  }
  return control ? run_control(c) : fn(c);
}

calx_status *cpu_ref_op(const cx_hlo_module *module, const cx_hlo_op *op,
                        const cpu_ref_tensor *operands,
                        const cpu_ref_tensor *results,
                        const cpu_ref_context *context)
{
  cpu_ref_machine m = cpu_ref_machine_of(module, context);
  const cpu_ref_call c = { &m, op, operands, results };
  return cpu_ref_machine_close(&m, run_single(&c));
}

// Scalars' region on tensors: as many runs as these have elements.
static calx_status *run_lanes(const cpu_ref_call *c,
                              const cx_hlo_region *region)
{
  const cx_hlo_block *block = region->first;
  const size_t n_args = block->n_args;
  const size_t n_results = cx_hlo_terminator(block)->n_operands;
  const size_t n = cpu_ref_count(&c->in[0]);
  cpu_ref_body body;
  CALX_TRY(cpu_ref_body_open(c, region, CPU_REF_CHUNK, &body));
  const void **from = cx_calloc(n_args + 1, sizeof *from);
  void **to = cx_calloc(n_results + 1, sizeof *to);
  calx_status *status = from == NULL || to == NULL ? cx_out_of_memory() : NULL;
  for (size_t at = 0; at < n && status == NULL; at += CPU_REF_CHUNK) {
    const size_t k = n - at < CPU_REF_CHUNK ? n - at : CPU_REF_CHUNK;
    for (size_t i = 0; i < n_args; i++) from[i] = cpu_ref_at(&c->in[i], at);
    for (size_t i = 0; i < n_results; i++) to[i] = cpu_ref_at(&c->out[i], at);
    status = cpu_ref_body_run(&body, from, to, k);
  }
  cx_free(from);
  cx_free(to);
  cpu_ref_body_close(&body);
  return status;
}

static calx_status *run_region(const cpu_ref_call *c,
                               const cx_hlo_region *region)
{
  const cx_hlo_block *block = region->first;
  if (block == NULL || cx_hlo_terminator(block) == NULL) {
    return cx_invalid("a region is empty or has no end");
  }
  CALX_TRY(cpu_ref_machine_env_of(c->machine, region, 1));
  cpu_ref_note_uses(c->machine, block);
  if (block->n_args != 0 && region->op != NULL && c->in[0].type.rank != 0 &&
      block->args[0].type.tensor.rank == 0) {
    return run_lanes(c, region);
  }
  return run_block(c, block);
}

calx_status *cpu_ref_region(const cx_hlo_module *module,
                            const cx_hlo_region *region,
                            const cpu_ref_tensor *args,
                            const cpu_ref_tensor *results,
                            const cpu_ref_context *context)
{
  cpu_ref_machine m = cpu_ref_machine_of(module, context);
  const cpu_ref_call c = { &m, region->op, args, results };
  return cpu_ref_machine_close(&m, run_region(&c, region));
}

static bool can_type(const cx_hlo_any *type)
{
  if (type->non_tensor != NULL)
    return type->non_tensor->kind != CX_HLO_NON_TENSOR_TEXT;
  for (size_t i = 0; i < type->tensor.rank; i++) {
    if (type->tensor.dims[i] < 0) return false;
  }
  return type->tensor.rank <= CPU_REF_RANK &&
         type->tensor.elem != CX_HLO_INVALID;
}

static bool has_target(const cx_hlo_op *op)
{
  calx_status *why = cpu_ref_custom_call_check(op);
  const bool ok = why == NULL;
  calx_status_free(why);
  return ok;
}

bool cpu_ref_can(const cx_hlo_op *op)
{
  switch (op->kind) {
    case CX_HLO_OP_RETURN:
    case CX_HLO_OP_FUNC_RETURN: return true;
    case CX_HLO_OP_CUSTOM_CALL:
      if (!cpu_ref_identity_call(op) && !has_target(op)) return false;
      break;
    case CX_HLO_OP_INFEED:
    case CX_HLO_OP_OUTFEED:
    case CX_HLO_OP_SEND:
    case CX_HLO_OP_RECV: return false;
    default:
      if (cpu_ref_fn_of(op->kind) == NULL &&
          cpu_ref_control_of(op->kind) == NULL) {
        return false;
      }
      break;
  }
  for (size_t i = 0; i < cx_hlo_op_n_types(op); i++) {
    if (!can_type(cx_hlo_op_type(op, i))) return false;
  }
  return true;
}
