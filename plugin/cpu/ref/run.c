// ref/run: the table of operations, and the walk through a block.
//
// Most operations are functions of tensors, which get their results' memory;
// those of control flow work on slots. A value's slot is emptied after its last
// use in its block.
#include <stdio.h>
#include <string.h>

#include "ref/inner.h"

calx_status *cx_ref_bad(const cx_hlo_op *op, calx_code code, const char *format,
                        ...)
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

calx_status *cx_ref_interrupted(const cx_ref_machine *m)
{
  const cx_ref_context *c = m->context;
  return c->interrupt != NULL ? c->interrupt(c->user) : NULL;
}

cx_ref_fn *cx_ref_fn_of(cx_hlo_op_kind kind)
{
#define ROW(id, fn) [CX_HLO_OP_##id] = fn
#define E(id) ROW(id, cx_ref_elementwise)
  static cx_ref_fn *const table[CX_HLO_OP_COUNT] = {
    E(ADD),
    E(SUBTRACT),
    E(MULTIPLY),
    E(DIVIDE),
    E(REMAINDER),
    E(POWER),
    E(MAXIMUM),
    E(MINIMUM),
    E(ATAN2),
    E(AND),
    E(OR),
    E(XOR),
    E(NOT),
    E(SHIFT_LEFT),
    E(SHIFT_RIGHT_LOGICAL),
    E(SHIFT_RIGHT_ARITHMETIC),
    E(POPCNT),
    E(COUNT_LEADING_ZEROS),
    E(NEGATE),
    E(ABS),
    E(SIGN),
    E(EXPONENTIAL),
    E(EXPONENTIAL_MINUS_ONE),
    E(LOG),
    E(LOG_PLUS_ONE),
    E(LOGISTIC),
    E(TANH),
    E(TAN),
    E(SQRT),
    E(RSQRT),
    E(CBRT),
    E(COSINE),
    E(SINE),
    E(FLOOR),
    E(CEIL),
    E(ROUND_NEAREST_EVEN),
    E(ROUND_NEAREST_AFZ),
    E(IS_FINITE),
    E(REDUCE_PRECISION),
    E(REAL),
    E(IMAG),
    E(COMPLEX),
    E(COMPARE),
    E(SELECT),
    E(CLAMP),
    E(CONVERT),
    ROW(CONSTANT, cx_ref_constant),
    ROW(IOTA, cx_ref_iota),
    ROW(RESHAPE, cx_ref_reshape),
    ROW(BITCAST_CONVERT, cx_ref_bitcast),
    ROW(BROADCAST_IN_DIM, cx_ref_broadcast_in_dim),
    ROW(BROADCAST, cx_ref_broadcast),
    ROW(TRANSPOSE, cx_ref_transpose),
    ROW(SLICE, cx_ref_slice),
    ROW(CONCATENATE, cx_ref_concatenate),
    ROW(PAD, cx_ref_pad),
    ROW(REVERSE, cx_ref_reverse),
    ROW(GET_DIMENSION_SIZE, cx_ref_dimension_size),
    ROW(SET_DIMENSION_SIZE, cx_ref_set_dimension_size),
    ROW(DYNAMIC_SLICE, cx_ref_dynamic_slice),
    ROW(DYNAMIC_UPDATE_SLICE, cx_ref_dynamic_update_slice),
    ROW(GATHER, cx_ref_gather),
    ROW(SCATTER, cx_ref_scatter),
    ROW(TORCH_INDEX_SELECT, cx_ref_index_select),
    ROW(MAP, cx_ref_map),
    ROW(REDUCE, cx_ref_reduce),
    ROW(REDUCE_WINDOW, cx_ref_reduce_window),
    ROW(SELECT_AND_SCATTER, cx_ref_select_and_scatter),
    ROW(SORT, cx_ref_sort),
    ROW(DOT_GENERAL, cx_ref_dot_general),
    ROW(DOT, cx_ref_dot),
    ROW(EINSUM, cx_ref_einsum),
    ROW(UNARY_EINSUM, cx_ref_unary_einsum),
    ROW(CONVOLUTION, cx_ref_convolution),
    ROW(BATCH_NORM_TRAINING, cx_ref_norm_training),
    ROW(BATCH_NORM_GRAD, cx_ref_norm_grad),
    ROW(BATCH_NORM_INFERENCE, cx_ref_norm_inference),
    ROW(RNG_BIT_GENERATOR, cx_ref_bit_generator),
    ROW(RNG, cx_ref_rng),
    ROW(FFT, cx_ref_fft),
    ROW(CHOLESKY, cx_ref_cholesky),
    ROW(TRIANGULAR_SOLVE, cx_ref_triangular_solve),
    ROW(ALL_REDUCE, cx_ref_collective),
    ROW(REDUCE_SCATTER, cx_ref_collective),
    ROW(ALL_GATHER, cx_ref_collective),
    ROW(ALL_TO_ALL, cx_ref_collective),
    ROW(COLLECTIVE_PERMUTE, cx_ref_collective),
    ROW(COLLECTIVE_BROADCAST, cx_ref_collective),
    ROW(COLLECTIVE_REDUCE, cx_ref_collective),
    ROW(CROSS_REPLICA_SUM, cx_ref_collective),
    ROW(REPLICA_ID, cx_ref_device_id),
    ROW(PARTITION_ID, cx_ref_device_id),
    ROW(DYNAMIC_RESHAPE, cx_ref_dynamic_reshape),
    ROW(DYNAMIC_BROADCAST_IN_DIM, cx_ref_dynamic_broadcast),
    ROW(DYNAMIC_IOTA, cx_ref_dynamic_iota),
    ROW(DYNAMIC_PAD, cx_ref_dynamic_pad),
    ROW(REAL_DYNAMIC_SLICE, cx_ref_real_dynamic_slice),
    ROW(DYNAMIC_CONV, cx_ref_dynamic_conv),
    ROW(DYNAMIC_GATHER, cx_ref_dynamic_gather),
  };
#undef ROW
#undef E
  return (unsigned)kind < CX_HLO_OP_COUNT ? table[kind] : NULL;
}

// ---- one operation ----

static calx_status *missing(const cx_hlo_op *op)
{
  return cx_ref_bad(op, CALX_UNIMPLEMENTED,
                    "the reference interpreter does not have it");
}

static calx_status *check_any(const cx_hlo_op *op, const cx_hlo_any *type)
{
  const cx_hlo_type *t = &type->tensor;
  const bool plain = type->odd == NULL || type->odd->kind == CX_HLO_ODD_ENCODED;
  if (plain && t->elem != CX_HLO_INVALID && t->rank <= CX_REF_RANK) {
    bool fixed = true;
    for (size_t i = 0; i < t->rank; i++) fixed = fixed && t->dims[i] >= 0;
    if (fixed) return NULL;
  }
  return cx_ref_bad(op, CALX_UNIMPLEMENTED,
                    "%s is no plain tensor of known sizes and of at most %d "
                    "dimensions",
                    plain ? cx_hlo_shape(t).s : "an operand or result",
                    (int)CX_REF_RANK);
}

static calx_status *check_types(const cx_hlo_op *op)
{
  for (uint32_t i = 0; i < op->n_operands; i++) {
    CALX_TRY(check_any(op, &op->operands[i]->type));
  }
  for (uint32_t i = 0; i < op->n_results; i++) {
    CALX_TRY(check_any(op, &op->results[i].type));
  }
  return NULL;
}

// Whether the first operand's memory may become the result's.
static bool in_place(const cx_ref_machine *m, const cx_hlo_op *op)
{
  if (op->kind != CX_HLO_OP_DYNAMIC_UPDATE_SLICE &&
      (op->kind != CX_HLO_OP_SCATTER || op->n_results != 1)) {
    return false;
  }
  const cx_hlo_value *v = op->operands[0];
  const cx_ref_buffer *b = cx_ref_slot_of(m, v)->buffer;
  if (b == NULL || b->refs != 1 || m->last[v->number] != op ||
      !cx_hlo_type_equal(&v->type.tensor, &op->results[0].type.tensor)) {
    return false;
  }
  for (uint32_t i = 1; i < op->n_operands; i++) {
    if (op->operands[i] == v) return false;
  }
  return true;
}

static calx_status *make_results(cx_ref_machine *m, const cx_hlo_op *op,
                                 cx_ref_tensor *out)
{
  for (uint32_t i = 0; i < op->n_results; i++) {
    cx_ref_slot *s = cx_ref_slot_of(m, &op->results[i]);
    const cx_hlo_type *type = &op->results[i].type.tensor;
    cx_ref_slot_clear(m, s);
    if (i == 0 && in_place(m, op)) {
      *s = cx_ref_slot_share(cx_ref_slot_of(m, op->operands[0]));
    } else if (op->kind == CX_HLO_OP_RESHAPE) {
      *s = cx_ref_slot_share(cx_ref_slot_of(m, op->operands[0]));
    } else {
      CALX_TRY(cx_ref_buffer_new(m, op, type, &s->buffer));
      s->tensor.data = s->buffer->data;
    }
    s->tensor.type = *type;
    out[i] = s->tensor;
  }
  return NULL;
}

static calx_status *run_fn(cx_ref_machine *m, const cx_hlo_op *op,
                           cx_ref_fn *fn, cx_ref_tensor *tensors)
{
  for (uint32_t i = 0; i < op->n_operands; i++) {
    tensors[i] = cx_ref_slot_of(m, op->operands[i])->tensor;
  }
  cx_ref_tensor *out = tensors + op->n_operands;
  CALX_TRY(make_results(m, op, out));
  return fn(m, op, tensors, out);
}

static calx_status *run_op(cx_ref_machine *m, const cx_hlo_op *op)
{
  enum { FEW = 12 };
  cx_ref_control_fn *control = cx_ref_control_of(op->kind);
  CALX_TRY(cx_ref_interrupted(m));
  if (control != NULL) return control(m, op);
  cx_ref_fn *fn = cx_ref_fn_of(op->kind);
  if (fn == NULL) return missing(op);
  CALX_TRY(check_types(op));
  const size_t n = (size_t)op->n_operands + op->n_results;
  cx_ref_tensor few[FEW];
  if (n <= FEW) return run_fn(m, op, fn, few);
  cx_ref_tensor *many = cx_calloc(n, sizeof *many);
  if (many == NULL) return cx_out_of_memory();
  calx_status *status = run_fn(m, op, fn, many);
  cx_free(many);
  return status;
}

// ---- a block ----

static void drop_dead(cx_ref_machine *m, const cx_hlo_op *op)
{
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const cx_hlo_value *v = op->operands[i];
    if (m->last[v->number] == op) cx_ref_slot_clear(m, cx_ref_slot_of(m, v));
  }
  for (uint32_t i = 0; i < op->n_results; i++) {
    const cx_hlo_value *v = &op->results[i];
    if (m->last[v->number] == NULL) {
      cx_ref_slot_clear(m, cx_ref_slot_of(m, v));
    }
  }
}

static void leave(cx_ref_machine *m, const cx_hlo_block *block)
{
  for (size_t i = 0; i < block->n_args; i++) {
    cx_ref_slot_clear(m, cx_ref_slot_of(m, &block->args[i]));
  }
  for (const cx_hlo_op *op = block->first; op != NULL; op = op->next) {
    for (uint32_t i = 0; i < op->n_results; i++) {
      cx_ref_slot_clear(m, cx_ref_slot_of(m, &op->results[i]));
    }
  }
}

calx_status *cx_ref_block(cx_ref_machine *m, const cx_hlo_block *block,
                          cx_ref_slot *out)
{
  const cx_hlo_op *end = cx_hlo_terminator(block);
  if (end == NULL) {
    return cx_error(CALX_INVALID_ARGUMENT, "a block does not end with return");
  }
  calx_status *status = NULL;
  for (const cx_hlo_op *op = block->first; op != end && status == NULL;
       op = op->next) {
    status = run_op(m, op);
    if (status == NULL) drop_dead(m, op);
  }
  for (uint32_t i = 0; i < end->n_operands; i++) {
    out[i] = (cx_ref_slot){ 0 };
    if (status != NULL) continue;
    out[i] = cx_ref_slot_share(cx_ref_slot_of(m, end->operands[i]));
  }
  leave(m, block);
  return status;
}

// ---- the room's own functions ----

static calx_status *check_tensors(const char *what, const cx_ref_tensor *given,
                                  const cx_hlo_any *types, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (types[i].odd != NULL && types[i].odd->kind != CX_HLO_ODD_ENCODED) {
      return cx_error(CALX_UNIMPLEMENTED, "%s %zu is no plain tensor", what, i);
    }
    if (cx_hlo_type_equal(&given[i].type, &types[i].tensor)) continue;
    return cx_error(CALX_INVALID_ARGUMENT, "%s %zu must be %s, got %s", what, i,
                    cx_hlo_shape(&types[i].tensor).s, CX_REF_SHAPE(&given[i]));
  }
  return NULL;
}

static calx_status *copy_out(const cx_ref_slot *from, const cx_ref_tensor *to)
{
  size_t bytes = 0;
  if (!cx_ref_bytes(&to->type, &bytes)) {
    return cx_error(CALX_RESOURCE_EXHAUSTED, "the result %s is too large",
                    CX_REF_SHAPE(to));
  }
  if (bytes != 0 && from->tensor.data != to->data) {
    memcpy(to->data, from->tensor.data, bytes);
  }
  return NULL;
}

// Runs a block on the caller's tensors.
static calx_status *run_block(cx_ref_machine *m, const cx_hlo_block *block,
                              const cx_ref_tensor *args,
                              const cx_ref_tensor *results)
{
  const cx_hlo_op *end = cx_hlo_terminator(block);
  const size_t n = end == NULL ? 0 : end->n_operands;
  cx_ref_slot *out = cx_calloc(n + 1, sizeof *out);
  if (out == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < block->n_args; i++) {
    *cx_ref_slot_of(m, &block->args[i]) = (cx_ref_slot){ .tensor = args[i] };
  }
  calx_status *status = cx_ref_block(m, block, out);
  for (size_t i = 0; i < n; i++) {
    if (status == NULL) status = copy_out(&out[i], &results[i]);
    cx_ref_slot_clear(m, &out[i]);
  }
  cx_free(out);
  return status;
}

static calx_status *run_func(cx_ref_machine *m, const cx_hlo_func *f,
                             const cx_ref_tensor *args,
                             const cx_ref_tensor *results)
{
  CALX_TRY(check_tensors("argument", args, f->params, f->n_params));
  CALX_TRY(check_tensors("result", results, f->results, f->n_results));
  CALX_TRY(cx_ref_machine_env(m));
  for (const cx_hlo_func *g = m->module->first; g != NULL; g = g->next) {
    if (g->body.first != NULL) cx_ref_note_uses(m, g->body.first);
  }
  if (f->body.first == NULL) {
    return cx_error(CALX_INVALID_ARGUMENT, "function '%.*s' has no body",
                    (int)f->name.n, f->name.s);
  }
  return run_block(m, f->body.first, args, results);
}

calx_status *cx_ref_run(const cx_hlo_module *module, const cx_hlo_func *f,
                        const cx_ref_tensor *args, const cx_ref_tensor *results,
                        const cx_ref_context *context)
{
  cx_ref_machine m;
  CALX_TRY(cx_ref_machine_open(&m, module, context));
  calx_status *status = run_func(&m, f, args, results);
  cx_ref_machine_close(&m);
  return status;
}

// An operation of control flow between slots that hold the caller's tensors.
static calx_status *run_control(cx_ref_machine *m, const cx_hlo_op *op,
                                const cx_ref_tensor *operands,
                                const cx_ref_tensor *results)
{
  for (uint32_t i = 0; i < op->n_operands; i++) {
    *cx_ref_slot_of(m, op->operands[i]) =
        (cx_ref_slot){ .tensor = operands[i] };
  }
  CALX_TRY(cx_ref_control_of(op->kind)(m, op));
  for (uint32_t i = 0; i < op->n_results; i++) {
    CALX_TRY(check_any(op, &op->results[i].type));
    CALX_TRY(copy_out(cx_ref_slot_of(m, &op->results[i]), &results[i]));
  }
  return NULL;
}

static calx_status *run_single(cx_ref_machine *m, const cx_hlo_op *op,
                               const cx_ref_tensor *operands,
                               const cx_ref_tensor *results)
{
  const bool control = cx_ref_control_of(op->kind) != NULL;
  cx_ref_fn *fn = cx_ref_fn_of(op->kind);
  if (!control && fn == NULL) return missing(op);
  if (control || op->n_regions != 0) {
    CALX_TRY(cx_ref_machine_env(m));
    for (uint32_t i = 0; i < op->n_regions; i++) {
      const cx_hlo_block *block = op->regions[i].first;
      if (block != NULL) cx_ref_note_uses(m, block);
    }
  }
  if (op->kind == CX_HLO_OP_CALL || op->kind == CX_HLO_OP_COMPOSITE) {
    for (const cx_hlo_func *g = m->module->first; g != NULL; g = g->next) {
      if (g->body.first != NULL) cx_ref_note_uses(m, g->body.first);
    }
  }
  if (control) return run_control(m, op, operands, results);
  CALX_TRY(check_types(op));
  return fn(m, op, operands, results);
}

calx_status *cx_ref_op(const cx_hlo_module *module, const cx_hlo_op *op,
                       const cx_ref_tensor *operands,
                       const cx_ref_tensor *results,
                       const cx_ref_context *context)
{
  cx_ref_machine m;
  CALX_TRY(cx_ref_machine_open(&m, module, context));
  calx_status *status = run_single(&m, op, operands, results);
  cx_ref_machine_close(&m);
  return status;
}

// Scalars' region on tensors: as many runs as these have elements.
static calx_status *run_lanes(cx_ref_machine *m, const cx_hlo_region *region,
                              const cx_ref_tensor *args,
                              const cx_ref_tensor *results)
{
  const cx_hlo_block *block = region->first;
  const size_t n_args = block->n_args;
  const size_t n_results = cx_hlo_terminator(block)->n_operands;
  const size_t n = cx_ref_count(&args[0]);
  cx_ref_body body;
  CALX_TRY(cx_ref_body_open(m, region->op, region, CX_REF_CHUNK, &body));
  const void **from = cx_calloc(n_args + 1, sizeof *from);
  void **to = cx_calloc(n_results + 1, sizeof *to);
  calx_status *status = from == NULL || to == NULL ? cx_out_of_memory() : NULL;
  for (size_t at = 0; at < n && status == NULL; at += CX_REF_CHUNK) {
    const size_t k = n - at < CX_REF_CHUNK ? n - at : CX_REF_CHUNK;
    for (size_t i = 0; i < n_args; i++) {
      from[i] = (const char *)args[i].data +
                at * cx_hlo_elem_bytes(args[i].type.elem);
    }
    for (size_t i = 0; i < n_results; i++) {
      to[i] = (char *)results[i].data +
              at * cx_hlo_elem_bytes(results[i].type.elem);
    }
    status = cx_ref_body_run(&body, from, to, k);
  }
  cx_free(from);
  cx_free(to);
  cx_ref_body_close(&body);
  return status;
}

static calx_status *run_region(cx_ref_machine *m, const cx_hlo_region *region,
                               const cx_ref_tensor *args,
                               const cx_ref_tensor *results)
{
  const cx_hlo_block *block = region->first;
  if (block == NULL || cx_hlo_terminator(block) == NULL) {
    return cx_error(CALX_INVALID_ARGUMENT, "a region is empty or has no end");
  }
  CALX_TRY(cx_ref_machine_env(m));
  cx_ref_note_uses(m, block);
  if (block->n_args != 0 && region->op != NULL && args[0].type.rank != 0 &&
      block->args[0].type.tensor.rank == 0) {
    return run_lanes(m, region, args, results);
  }
  return run_block(m, block, args, results);
}

calx_status *cx_ref_region(const cx_hlo_module *module,
                           const cx_hlo_region *region,
                           const cx_ref_tensor *args,
                           const cx_ref_tensor *results,
                           const cx_ref_context *context)
{
  cx_ref_machine m;
  CALX_TRY(cx_ref_machine_open(&m, module, context));
  calx_status *status = run_region(&m, region, args, results);
  cx_ref_machine_close(&m);
  return status;
}

static bool can_type(const cx_hlo_any *type)
{
  if (type->odd != NULL) return type->odd->kind != CX_HLO_ODD_TEXT;
  for (size_t i = 0; i < type->tensor.rank; i++) {
    if (type->tensor.dims[i] < 0) return false;
  }
  return type->tensor.rank <= CX_REF_RANK &&
         type->tensor.elem != CX_HLO_INVALID;
}

bool cx_ref_can(const cx_hlo_op *op)
{
  switch (op->kind) {
    case CX_HLO_OP_RETURN:
    case CX_HLO_OP_FUNC_RETURN: return true;
    case CX_HLO_OP_CUSTOM_CALL:
      if (!cx_ref_identity_call(op)) return false;
      break;
    case CX_HLO_OP_INFEED:
    case CX_HLO_OP_OUTFEED:
    case CX_HLO_OP_SEND:
    case CX_HLO_OP_RECV: return false;
    default:
      if (cx_ref_fn_of(op->kind) == NULL &&
          cx_ref_control_of(op->kind) == NULL) {
        return false;
      }
      break;
  }
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (!can_type(&op->operands[i]->type)) return false;
  }
  for (uint32_t i = 0; i < op->n_results; i++) {
    if (!can_type(&op->results[i].type)) return false;
  }
  return true;
}
