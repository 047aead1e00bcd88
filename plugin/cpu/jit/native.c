// jit/native: a while whose iterations are short, as one function. Its steps
// are those that the program would run one after the other. What has few
// elements is kept in registers from step to step and from iteration to
// iteration (registers.h), and its steps compute element by element; a step on
// more elements is a call of its compiled loop. So memory is at each step what
// it would be, but for cells that nothing reads there.
//
// Code that depends on no variable of a loop stands before it, by the levels of
// emit.h. Loads do not move: what they read may be written in the loop.
#include "jit/inside.h"
#include "jit/registers.h"

#define DEEPEST (CPU_JIT_LEVELS - 4)

// ---- steps without control flow ----

// The location of element i of the value.
static const cpu_jit_loc *element(cpu_jit_env *env, const cx_hlo_value *v,
                                  int64_t i)
{
  const size_t rank = cpu_jit_type(v)->rank;
  cpu_jit_loc p = { .n = 0 };
  if (rank > 0) {
    cpu_jit_loc_push(&p, (int)rank, cpu_jit_elements(v),
                     cpu_jit_ix_const(env, i));
  }
  return cpu_jit_loc_of(env, &p);
}

// Where element i of the update goes.
static cpu_jit_loc position_of(cpu_jit_cells *s, const cx_hlo_op *op, int64_t i)
{
  cpu_jit_env *env = s->env;
  const cx_hlo_type *t = cpu_jit_type(op->operands[0]);
  const cx_hlo_type *u = cpu_jit_type(op->operands[1]);
  int64_t index[CPU_JIT_RANK];
  for (size_t d = u->rank; d-- > 0; i /= u->dims[d]) index[d] = i % u->dims[d];
  cpu_jit_loc at = { .n = 0 };
  for (size_t d = 0; d < t->rank; d++) {
    const cpu_jit_ix start = cpu_jit_start_index(
        env, op->operands[2 + d], &env->scalar, t->dims[d] - u->dims[d]);
    cpu_jit_loc_push(&at, 1, t->dims[d],
                     cpu_jit_ix_offset(env, start, index[d]));
  }
  return at;
}

static void emit_update(cpu_jit_cells *s, const cpu_jit_step *step)
{
  cpu_jit_env *env = s->env;
  const cx_hlo_op *op = step->kernel->outputs[0]->op;
  const int64_t n = cpu_jit_elements(op->operands[1]);
  const uint32_t cell = step->cells[step->n_inputs];
  cpu_jit_val v[CPU_JIT_CELL_MOST];
  for (int64_t i = 0; i < n; i++) {
    v[i] = cpu_jit_emit(env, op->operands[1], element(env, op->operands[1], i));
  }
  if (s->of->cells[cell].in_register) {
    cpu_jit_cell_put(s, cell, v);
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    const cpu_jit_loc at = position_of(s, op, i);
    if (cpu_jit_failed(env)) return;
    cpu_jit_store(env, cpu_jit_cell_address(s, cell), v[i], &at,
                  cpu_jit_cells_level(s));
  }
}

static calx_status *emit_inline(cpu_jit_cells *s, const cpu_jit_step *step)
{
  cpu_jit_env *env = s->env;
  const cpu_jit_kernel *k = step->kernel;
  env->kernel = k;
  CALX_TRY(cpu_jit_set_slots(env, k));
  cpu_jit_merge(env);
  cpu_jit_forget(env);
  env->memory_level = cpu_jit_cells_level(s);
  for (size_t i = 0; i < k->n_inputs; i++) {
    cpu_jit_slot *slot = cpu_jit_slot_of(env, k->inputs[i]);
    const uint32_t cell = step->cells[i];
    if (s->of->cells[cell].in_register) {
      slot->kind = CPU_JIT_SLOT_KNOWN;
      slot->known = cpu_jit_cell_get(s, cell);
      slot->n_known = s->of->cells[cell].n;
    } else {
      slot->pointer = cpu_jit_cell_address(s, cell);
    }
  }
  if (k->outputs[0]->op->kind == CX_HLO_OP_DYNAMIC_UPDATE_SLICE) {
    emit_update(s, step);
    return env->status;
  }
  // An output may be in the memory of an input.
  cpu_jit_val out[CPU_JIT_MAX_OUTPUTS][CPU_JIT_CELL_MOST];
  for (size_t i = 0; i < k->n_outputs; i++) {
    for (int64_t e = 0; e < cpu_jit_elements(k->outputs[i]); e++) {
      out[i][e] =
          cpu_jit_emit(env, k->outputs[i], element(env, k->outputs[i], e));
    }
  }
  for (size_t i = 0; i < k->n_outputs && !cpu_jit_failed(env); i++) {
    cpu_jit_cell_put_elements(s, step->cells[k->n_inputs + i], out[i],
                              cpu_jit_elements(k->outputs[i]));
  }
  return env->status;
}

static void emit_call(cpu_jit_cells *s, const cpu_jit_step *step)
{
  cpu_jit_env *env = s->env;
  LLVMTypeRef params[] = { env->ptr, env->i64, env->i64 };
  LLVMTypeRef type = LLVMFunctionType(env->void_type, params, 3, 0);
  if (s->table == NULL) s->table = cpu_jit_buffer(env, s->of->table);
  LLVMValueRef first = cpu_jit_i64(env, (int64_t)step->buffer);
  LLVMBuilderRef b = cpu_jit_at(env, 0);
  LLVMValueRef buffers = LLVMBuildInBoundsGEP2(
      b, env->ptr, LLVMGetParam(env->function, 0), &first, 1, "");
  for (size_t i = 0; i < step->n_calls; i++) {
    LLVMValueRef number = cpu_jit_i64(env, (int64_t)step->functions[i]);
    LLVMValueRef at =
        LLVMBuildInBoundsGEP2(b, env->ptr, s->table, &number, 1, "");
    LLVMValueRef f = LLVMBuildLoad2(b, env->ptr, at, "");
    LLVMValueRef args[] = { buffers, cpu_jit_i64(env, 0),
                            cpu_jit_i64(env, step->extents[i]) };
    LLVMBuildCall2(cpu_jit_at(env, cpu_jit_cells_level(s)), type, f, args, 3,
                   "");
  }
  for (size_t i = step->n_inputs; i < step->n_cells; i++) {
    s->known[step->cells[i]] = false;
  }
}

static void emit_copy(cpu_jit_cells *s, const cpu_jit_step *step)
{
  cpu_jit_env *env = s->env;
  const uint32_t from = step->cells[0], to = step->cells[1];
  const cpu_jit_cell *a = &s->of->cells[from];
  const cpu_jit_cell *b = &s->of->cells[to];
  if (a->in_register) {
    cpu_jit_cell_put_elements(s, to, cpu_jit_cell_get(s, from), a->n);
  } else if (b->in_register) {
    cpu_jit_val v[CPU_JIT_CELL_MOST];
    cpu_jit_cell_load(s, from, b->elem, b->n, v);
    cpu_jit_cell_put(s, to, v);
  } else if (a->bytes > 0) {
    LLVMValueRef source = cpu_jit_cell_address(s, from);
    LLVMValueRef target = cpu_jit_cell_address(s, to);
    LLVMBuildMemMove(cpu_jit_at(env, cpu_jit_cells_level(s)), target, 1, source,
                     1, cpu_jit_i64(env, a->bytes));
  }
}

// ---- control flow ----

static calx_status *emit_block(cpu_jit_cells *s, const cpu_jit_steps *block);

static bool is_in_register(const cpu_jit_cells *s, const cpu_jit_step *step,
                           size_t i, unsigned flag)
{
  return s->of->cells[i].in_register && (step->flags[i] & flag) != 0;
}

// Around the loop's header, whose code is the condition. A variable's value
// after the loop is the one that the condition saw, or made.
static calx_status *emit_while(cpu_jit_cells *s, const cpu_jit_step *step)
{
  cpu_jit_env *env = s->env;
  const size_t n = s->of->n_cells;
  const int outer = cpu_jit_cells_level(s);
  // What the loop reads and does not write is read before it.
  for (uint32_t i = 0; i < n; i++) {
    if (is_in_register(s, step, i, CPU_JIT_CELL_READS | CPU_JIT_CELL_CARRIES)) {
      (void)cpu_jit_cell_get(s, i);
    }
  }
  cpu_jit_cells_saved before, at_exit;
  if (!cpu_jit_cells_save(s, &before)) return cx_out_of_memory();
  LLVMBasicBlockRef entry = LLVMGetInsertBlock(env->level[outer]);
  LLVMBasicBlockRef header = cpu_jit_cells_block(s),
                    body = cpu_jit_cells_block(s),
                    after = cpu_jit_cells_block(s);
  const int level = cpu_jit_level_begin(env, header);
  LLVMBuilderRef b = env->level[level];
  cpu_jit_val *phis =
      CX_ARENA_ARRAY(&env->arena, cpu_jit_val, s->n_registers + 1);
  if (phis == NULL) return cx_out_of_memory();
  for (uint32_t i = 0; i < n; i++) {
    if (is_in_register(s, step, i, CPU_JIT_CELL_CARRIES)) {
      cpu_jit_cell_phis(s, i, b, before.registers, level, phis);
      cpu_jit_cell_incoming(s, i, phis, before.registers, entry);
      cpu_jit_cell_set(s, i, phis);
    } else if (is_in_register(s, step, i, CPU_JIT_CELL_WRITES)) {
      s->known[i] = false;
    }
  }
  CALX_TRY(emit_block(s, &step->blocks[0]));
  const cpu_jit_val more = cpu_jit_cell_value(s, step->cells[0], CX_HLO_I1);
  if (!cpu_jit_cells_save(s, &at_exit)) return cx_out_of_memory();
  LLVMBuildCondBr(cpu_jit_at(env, level), more.re, body, after);
  LLVMPositionBuilderAtEnd(b, body);
  CALX_TRY(emit_block(s, &step->blocks[1]));
  for (uint32_t i = 0; i < n; i++) {
    if (!is_in_register(s, step, i, CPU_JIT_CELL_CARRIES)) continue;
    (void)cpu_jit_cell_get(s, i);
    cpu_jit_cell_incoming(s, i, phis, s->registers, LLVMGetInsertBlock(b));
  }
  LLVMBuildBr(cpu_jit_at(env, level), header);
  env->n_levels--;
  LLVMBuildBr(cpu_jit_at(env, outer), header);
  LLVMPositionBuilderAtEnd(env->level[outer], after);
  cpu_jit_forget(env);
  cpu_jit_cells_restore(s, &before);
  for (uint32_t i = 0; i < n; i++) {
    if (!is_in_register(s, step, i, CPU_JIT_CELL_WRITES)) continue;
    cpu_jit_cell_set(s, i, at_exit.registers);
    cpu_jit_cell_set_level(s, i, outer);
    s->known[i] = at_exit.known[i];
  }
  return env->status;
}

// One block of an if or case, from `block` to `join`. Its values go to the
// phis, which the first one makes.
static calx_status *emit_branch(cpu_jit_cells *s, const cpu_jit_step *step,
                                size_t number, LLVMBasicBlockRef block,
                                LLVMBasicBlockRef join, cpu_jit_val *phis)
{
  cpu_jit_env *env = s->env;
  const int outer = cpu_jit_cells_level(s);
  const int level = cpu_jit_level_begin(env, block);
  CALX_TRY(emit_block(s, &step->blocks[number]));
  for (uint32_t i = 0; i < s->of->n_cells; i++) {
    if (is_in_register(s, step, i, CPU_JIT_CELL_CARRIES)) {
      (void)cpu_jit_cell_get(s, i);
    }
  }
  LLVMBasicBlockRef end = LLVMGetInsertBlock(env->level[level]);
  LLVMBuildBr(cpu_jit_at(env, level), join);
  // The phis stand in the block where the branches meet.
  LLVMPositionBuilderAtEnd(env->level[level], join);
  for (uint32_t i = 0; i < s->of->n_cells; i++) {
    if (!is_in_register(s, step, i, CPU_JIT_CELL_CARRIES)) continue;
    if (number == 0) {
      cpu_jit_cell_phis(s, i, env->level[level], s->registers, outer, phis);
    }
    cpu_jit_cell_incoming(s, i, phis, s->registers, end);
  }
  env->n_levels--;
  cpu_jit_forget(env);
  return env->status;
}

static calx_status *emit_branches(cpu_jit_cells *s, const cpu_jit_step *step)
{
  cpu_jit_env *env = s->env;
  const int outer = cpu_jit_cells_level(s);
  const cpu_jit_val selector = cpu_jit_cell_value(
      s, step->cells[0],
      step->kind == CPU_JIT_STEP_IF ? CX_HLO_I1 : CX_HLO_I32);
  for (uint32_t i = 0; i < s->of->n_cells; i++) {
    if (is_in_register(s, step, i, CPU_JIT_CELL_READS)) {
      (void)cpu_jit_cell_get(s, i);
    }
  }
  cpu_jit_cells_saved before;
  if (!cpu_jit_cells_save(s, &before)) return cx_out_of_memory();
  cpu_jit_val *phis =
      CX_ARENA_ARRAY(&env->arena, cpu_jit_val, s->n_registers + 1);
  LLVMBasicBlockRef *blocks =
      CX_ARENA_ARRAY(&env->arena, LLVMBasicBlockRef, step->n_blocks + 1);
  if (phis == NULL || blocks == NULL) return cx_out_of_memory();
  LLVMBasicBlockRef join = cpu_jit_cells_block(s);
  for (size_t i = 0; i < step->n_blocks; i++) {
    blocks[i] = cpu_jit_cells_block(s);
    CALX_TRY(emit_branch(s, step, i, blocks[i], join, phis));
    cpu_jit_cells_restore(s, &before);
  }
  LLVMBuilderRef b = cpu_jit_at(env, outer);
  if (step->kind == CPU_JIT_STEP_IF) {
    LLVMBuildCondBr(b, selector.re, blocks[0], blocks[1]);
  } else {
    // A number that is out of range chooses the last one.
    const size_t last = step->n_blocks - 1;
    LLVMValueRef cases =
        LLVMBuildSwitch(b, selector.re, blocks[last], (unsigned)last);
    for (size_t i = 0; i < last; i++) {
      LLVMAddCase(cases, LLVMConstInt(env->i32, i, 0), blocks[i]);
    }
  }
  LLVMPositionBuilderAtEnd(b, join);
  for (uint32_t i = 0; i < s->of->n_cells; i++) {
    if (!is_in_register(s, step, i, CPU_JIT_CELL_WRITES)) continue;
    s->known[i] = is_in_register(s, step, i, CPU_JIT_CELL_CARRIES);
    if (s->known[i]) cpu_jit_cell_set(s, i, phis);
  }
  return env->status;
}

static calx_status *emit_step(cpu_jit_cells *s, const cpu_jit_step *step)
{
  switch (step->kind) {
    case CPU_JIT_STEP_INLINE: return emit_inline(s, step);
    case CPU_JIT_STEP_CALL: emit_call(s, step); break;
    case CPU_JIT_STEP_COPY: emit_copy(s, step); break;
    default:
      if (s->env->n_levels > DEEPEST) {
        cpu_jit_fail(s->env, "loops nested too deeply");
        break;
      }
      return step->kind == CPU_JIT_STEP_WHILE ? emit_while(s, step)
                                              : emit_branches(s, step);
  }
  return s->env->status;
}

static calx_status *emit_block(cpu_jit_cells *s, const cpu_jit_steps *block)
{
  for (size_t i = 0; i < block->n; i++) {
    CALX_TRY(emit_step(s, &block->steps[i]));
  }
  return NULL;
}

calx_status *cpu_jit_emit_native(cpu_jit_env *env, const cpu_jit_native *n)
{
  cpu_jit_cells s = { .env = env, .of = n };
  if (!cpu_jit_cells_begin(&s)) return cx_out_of_memory();
  env->n_slots = 0;
  cpu_jit_kernel unused = { 0 };
  cpu_jit_function_begin(env, &unused, 0, 1, 1, 1);
  CALX_TRY(emit_while(&s, n->loop));
  cpu_jit_function_end(env);
  return env->status;
}
