// jit/native: a while whose iterations are short, as one function. Its steps
// are those that the program would run one after the other. What has one
// element is kept in registers from step to step and from iteration to
// iteration; a step on more elements is a call of its compiled loop. So memory
// is at each step what it would be, but for cells that nothing reads there.
//
// Code that depends on no variable of a loop stands before it, by the levels of
// emit.h. Loads do not move: what they read may be written in the loop.
#include "jit/inside.h"

#define DEEPEST (CPU_JIT_LEVELS - 4)

typedef struct native {
  cpu_jit_env *env;
  const cpu_jit_native *of;
  cpu_jit_val *registers;  // by cell
  bool *known;
  LLVMValueRef *pointers;
  LLVMValueRef table;
} native;

static int here(const native *s)
{
  return s->env->n_levels - 1;
}

static LLVMBasicBlockRef new_block(const native *s)
{
  return LLVMAppendBasicBlockInContext(s->env->context, s->env->function, "");
}

// ---- cells ----

static LLVMValueRef address_of(native *s, uint32_t cell)
{
  if (s->pointers[cell] == NULL) {
    s->pointers[cell] = cpu_jit_buffer(s->env, s->of->cells[cell].buffer);
  }
  return s->pointers[cell];
}

static cpu_jit_val loaded(native *s, uint32_t cell, int level)
{
  return cpu_jit_load_at(s->env, address_of(s, cell), s->of->cells[cell].elem,
                         &s->env->scalar, level);
}

static cpu_jit_val get(native *s, uint32_t cell)
{
  if (!s->known[cell]) {
    s->registers[cell] = loaded(s, cell, here(s));
    s->known[cell] = true;
  }
  return s->registers[cell];
}

static void put(native *s, uint32_t cell, cpu_jit_val v)
{
  const cpu_jit_cell *c = &s->of->cells[cell];
  if (c->in_register) {
    s->registers[cell] = v;
    s->known[cell] = true;
  }
  if (!c->in_register || c->in_memory) {
    cpu_jit_store(s->env, address_of(s, cell), v, &s->env->scalar, here(s));
  }
}

// ---- steps without control flow ----

// The location of the only element.
static const cpu_jit_loc *only(cpu_jit_env *env, const cx_hlo_value *v)
{
  const size_t rank = cpu_jit_type(v)->rank;
  cpu_jit_loc p = { .n = 0 };
  if (rank > 0) cpu_jit_loc_push(&p, (int)rank, 1, cpu_jit_ix_const(env, 0));
  return cpu_jit_loc_of(env, &p);
}

static void emit_update(native *s, const cpu_jit_step *step)
{
  cpu_jit_env *env = s->env;
  const cx_hlo_op *op = step->kernel->outputs[0]->op;
  const cx_hlo_type *t = cpu_jit_type(op->operands[0]);
  const uint32_t cell = step->cells[step->n_inputs];
  const cpu_jit_val v =
      cpu_jit_emit(env, op->operands[1], only(env, op->operands[1]));
  if (s->of->cells[cell].in_register) {
    put(s, cell, v);
    return;
  }
  cpu_jit_loc at = { .n = 0 };
  for (size_t d = 0; d < t->rank; d++) {
    cpu_jit_loc_push(&at, 1, t->dims[d],
                     cpu_jit_start_index(env, op->operands[2 + d], &env->scalar,
                                         t->dims[d] - 1));
  }
  if (cpu_jit_failed(env)) return;
  cpu_jit_store(env, address_of(s, cell), v, &at, here(s));
}

static calx_status *emit_inline(native *s, const cpu_jit_step *step)
{
  cpu_jit_env *env = s->env;
  const cpu_jit_kernel *k = step->kernel;
  env->kernel = k;
  CALX_TRY(cpu_jit_set_slots(env, k));
  cpu_jit_merge(env);
  cpu_jit_forget(env);
  env->memory_level = here(s);
  for (size_t i = 0; i < k->n_inputs; i++) {
    cpu_jit_slot *slot = cpu_jit_slot_of(env, k->inputs[i]);
    const uint32_t cell = step->cells[i];
    if (s->of->cells[cell].in_register) {
      slot->kind = CPU_JIT_SLOT_KNOWN;
      slot->known = get(s, cell);
    } else {
      slot->pointer = address_of(s, cell);
    }
  }
  if (k->outputs[0]->op->kind == CX_HLO_OP_DYNAMIC_UPDATE_SLICE) {
    emit_update(s, step);
    return env->status;
  }
  // An output may be in the memory of an input.
  cpu_jit_val out[CPU_JIT_MAX_OUTPUTS];
  for (size_t i = 0; i < k->n_outputs; i++) {
    out[i] = cpu_jit_emit(env, k->outputs[i], only(env, k->outputs[i]));
  }
  for (size_t i = 0; i < k->n_outputs && !cpu_jit_failed(env); i++) {
    put(s, step->cells[k->n_inputs + i], out[i]);
  }
  return env->status;
}

static void emit_call(native *s, const cpu_jit_step *step)
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
    LLVMBuildCall2(cpu_jit_at(env, here(s)), type, f, args, 3, "");
  }
  for (size_t i = step->n_inputs; i < step->n_cells; i++) {
    s->known[step->cells[i]] = false;
  }
}

static void emit_copy(native *s, const cpu_jit_step *step)
{
  cpu_jit_env *env = s->env;
  const uint32_t from = step->cells[0], to = step->cells[1];
  const cpu_jit_cell *a = &s->of->cells[from];
  const cpu_jit_cell *b = &s->of->cells[to];
  if (a->in_register) {
    put(s, to, get(s, from));
  } else if (b->in_register) {
    put(s, to,
        cpu_jit_load_at(env, address_of(s, from), b->elem, &env->scalar,
                        here(s)));
  } else if (a->bytes > 0) {
    LLVMValueRef source = address_of(s, from);
    LLVMValueRef target = address_of(s, to);
    LLVMBuildMemMove(cpu_jit_at(env, here(s)), target, 1, source, 1,
                     cpu_jit_i64(env, a->bytes));
  }
}

// ---- control flow ----

static calx_status *emit_block(native *s, const cpu_jit_steps *block);

typedef struct snapshot {
  cpu_jit_val *registers;
  bool *known;
} snapshot;

static bool save(native *s, snapshot *out)
{
  cx_arena *arena = &s->env->arena;
  const size_t n = s->of->n_cells;
  out->registers = CX_ARENA_ARRAY(arena, cpu_jit_val, n + 1);
  out->known = CX_ARENA_ARRAY(arena, bool, n + 1);
  if (out->registers == NULL || out->known == NULL) return false;
  for (size_t i = 0; i < n; i++) {
    out->registers[i] = s->registers[i];
    out->known[i] = s->known[i];
  }
  return true;
}

static void restore(native *s, const snapshot *from)
{
  for (size_t i = 0; i < s->of->n_cells; i++) {
    s->registers[i] = from->registers[i];
    s->known[i] = from->known[i];
  }
}

// The value in a register of its own at the builder's place, with what comes
// from one block; add_incoming names the others'.
static cpu_jit_val new_phi(LLVMBuilderRef b, cpu_jit_val like, int level)
{
  cpu_jit_val v = like;
  v.level = level;
  v.re = LLVMBuildPhi(b, LLVMTypeOf(like.re), "");
  if (like.im != NULL) v.im = LLVMBuildPhi(b, LLVMTypeOf(like.im), "");
  return v;
}

static void add_incoming(cpu_jit_val phi, cpu_jit_val v, LLVMBasicBlockRef from)
{
  LLVMAddIncoming(phi.re, &v.re, &from, 1);
  if (phi.im != NULL) LLVMAddIncoming(phi.im, &v.im, &from, 1);
}

static bool is_in_register(const native *s, const cpu_jit_step *step, size_t i,
                           unsigned flag)
{
  return s->of->cells[i].in_register && (step->flags[i] & flag) != 0;
}

// Around the loop's header, whose code is the condition. A variable's value
// after the loop is the one that the condition saw, or made.
static calx_status *emit_while(native *s, const cpu_jit_step *step)
{
  cpu_jit_env *env = s->env;
  const size_t n = s->of->n_cells;
  const int outer = here(s);
  // What the loop reads and does not write is read before it.
  for (uint32_t i = 0; i < n; i++) {
    if (is_in_register(s, step, i, CPU_JIT_CELL_READS | CPU_JIT_CELL_CARRIES)) {
      (void)get(s, i);
    }
  }
  snapshot before, at_exit;
  if (!save(s, &before)) return cx_out_of_memory();
  LLVMBasicBlockRef entry = LLVMGetInsertBlock(env->level[outer]);
  LLVMBasicBlockRef header = new_block(s), body = new_block(s),
                    after = new_block(s);
  const int level = cpu_jit_level_begin(env, header);
  LLVMBuilderRef b = env->level[level];
  cpu_jit_val *phis = CX_ARENA_ARRAY(&env->arena, cpu_jit_val, n + 1);
  if (phis == NULL) return cx_out_of_memory();
  for (uint32_t i = 0; i < n; i++) {
    if (is_in_register(s, step, i, CPU_JIT_CELL_CARRIES)) {
      phis[i] = s->registers[i] = new_phi(b, before.registers[i], level);
      add_incoming(phis[i], before.registers[i], entry);
    } else if (is_in_register(s, step, i, CPU_JIT_CELL_WRITES)) {
      s->known[i] = false;
    }
  }
  CALX_TRY(emit_block(s, &step->blocks[0]));
  const cpu_jit_val more = get(s, step->cells[0]);
  if (!save(s, &at_exit)) return cx_out_of_memory();
  LLVMBuildCondBr(cpu_jit_at(env, level), more.re, body, after);
  LLVMPositionBuilderAtEnd(b, body);
  CALX_TRY(emit_block(s, &step->blocks[1]));
  for (uint32_t i = 0; i < n; i++) {
    if (!is_in_register(s, step, i, CPU_JIT_CELL_CARRIES)) continue;
    const cpu_jit_val next = get(s, i);
    add_incoming(phis[i], next, LLVMGetInsertBlock(b));
  }
  LLVMBuildBr(cpu_jit_at(env, level), header);
  env->n_levels--;
  LLVMBuildBr(cpu_jit_at(env, outer), header);
  LLVMPositionBuilderAtEnd(env->level[outer], after);
  cpu_jit_forget(env);
  restore(s, &before);
  for (uint32_t i = 0; i < n; i++) {
    if (!is_in_register(s, step, i, CPU_JIT_CELL_WRITES)) continue;
    s->registers[i] = at_exit.registers[i];
    s->registers[i].level = outer;
    s->known[i] = at_exit.known[i];
  }
  return env->status;
}

// One block of an if or case, from `block` to `join`. Its values go to the
// phis, which the first one makes.
static calx_status *emit_branch(native *s, const cpu_jit_step *step,
                                size_t number, LLVMBasicBlockRef block,
                                LLVMBasicBlockRef join, cpu_jit_val *phis)
{
  cpu_jit_env *env = s->env;
  const int outer = here(s);
  const int level = cpu_jit_level_begin(env, block);
  CALX_TRY(emit_block(s, &step->blocks[number]));
  for (uint32_t i = 0; i < s->of->n_cells; i++) {
    if (is_in_register(s, step, i, CPU_JIT_CELL_CARRIES)) (void)get(s, i);
  }
  LLVMBasicBlockRef end = LLVMGetInsertBlock(env->level[level]);
  LLVMBuildBr(cpu_jit_at(env, level), join);
  // The phis stand in the block where the branches meet.
  LLVMPositionBuilderAtEnd(env->level[level], join);
  for (uint32_t i = 0; i < s->of->n_cells; i++) {
    if (!is_in_register(s, step, i, CPU_JIT_CELL_CARRIES)) continue;
    if (number == 0) {
      phis[i] = new_phi(env->level[level], s->registers[i], outer);
    }
    add_incoming(phis[i], s->registers[i], end);
  }
  env->n_levels--;
  cpu_jit_forget(env);
  return env->status;
}

static calx_status *emit_branches(native *s, const cpu_jit_step *step)
{
  cpu_jit_env *env = s->env;
  const int outer = here(s);
  const cpu_jit_val selector = get(s, step->cells[0]);
  for (uint32_t i = 0; i < s->of->n_cells; i++) {
    if (is_in_register(s, step, i, CPU_JIT_CELL_READS)) (void)get(s, i);
  }
  snapshot before;
  if (!save(s, &before)) return cx_out_of_memory();
  cpu_jit_val *phis =
      CX_ARENA_ARRAY(&env->arena, cpu_jit_val, s->of->n_cells + 1);
  LLVMBasicBlockRef *blocks =
      CX_ARENA_ARRAY(&env->arena, LLVMBasicBlockRef, step->n_blocks + 1);
  if (phis == NULL || blocks == NULL) return cx_out_of_memory();
  LLVMBasicBlockRef join = new_block(s);
  for (size_t i = 0; i < step->n_blocks; i++) {
    blocks[i] = new_block(s);
    CALX_TRY(emit_branch(s, step, i, blocks[i], join, phis));
    restore(s, &before);
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
    if (s->known[i]) s->registers[i] = phis[i];
  }
  return env->status;
}

static calx_status *emit_step(native *s, const cpu_jit_step *step)
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

static calx_status *emit_block(native *s, const cpu_jit_steps *block)
{
  for (size_t i = 0; i < block->n; i++) {
    CALX_TRY(emit_step(s, &block->steps[i]));
  }
  return NULL;
}

calx_status *cpu_jit_emit_native(cpu_jit_env *env, const cpu_jit_native *n)
{
  native s = { .env = env, .of = n };
  s.registers = CX_ARENA_ARRAY(&env->arena, cpu_jit_val, n->n_cells + 1);
  s.known = CX_ARENA_ARRAY(&env->arena, bool, n->n_cells + 1);
  s.pointers = CX_ARENA_ARRAY(&env->arena, LLVMValueRef, n->n_cells + 1);
  if (s.registers == NULL || s.known == NULL || s.pointers == NULL) {
    return cx_out_of_memory();
  }
  env->n_slots = 0;
  cpu_jit_kernel unused = { 0 };
  cpu_jit_function_begin(env, &unused, 0, 1, 1, 1);
  CALX_TRY(emit_while(&s, n->loop));
  cpu_jit_function_end(env);
  return env->status;
}
