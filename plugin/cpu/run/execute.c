// run/execute: runs a program's steps, one after the other, each on all threads
// of the device. A collective in background runs on the device's communication
// thread from its BEGIN step to its END step, while the device runs the steps
// between them. A COLLECTIVE step first waits for those in background, so that
// all collectives of a device keep their order.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/metrics.h"
#include "ref/ref.h"
#include "run/comm.h"
#include "run/layout.h"

CX_COUNTER(overlapped_counter, "CpuOverlappedCollectives");
CX_COUNTER(beside_counter, "CpuStepsBesideCollectives");

struct cpu_run_context {
  cpu_threads *threads;
  cpu_run_comm *comm;
  unsigned char *arena;
  size_t arena_bytes;
  void **pointers;  // of the running program's uses
  size_t n_pointers;
  uint64_t rng_state[2];
  const cpu_ref_user_data *user_data;
  size_t n_user_data;
};

typedef struct execution {
  const cpu_run_program *program;
  cpu_run_context *context;
  cpu_coll_launch *launch;
  cpu_ref_context ref;
} execution;

// ---- the context ----

calx_status *cpu_run_context_new(cpu_threads *threads, cpu_run_context **out)
{
  *out = cx_calloc(1, sizeof **out);
  if (*out == NULL) return cx_out_of_memory();
  (*out)->threads = threads;
  calx_status *status = cpu_run_comm_new(&(*out)->comm);
  if (status != NULL) {
    cx_free(*out);
    *out = NULL;
  }
  return status;
}

void cpu_run_context_set_data(cpu_run_context *context,
                              const cpu_ref_user_data *data, size_t n)
{
  context->user_data = data;
  context->n_user_data = n;
}

// An arena of at least the size of a huge page consists of huge pages: the
// first access to all of it then takes a third of the time.
static bool has_pages(size_t arena_bytes)
{
  return arena_bytes >= CX_HUGE_PAGE;
}

static void free_arena(cpu_run_context *c)
{
  if (has_pages(c->arena_bytes)) {
    cx_free_pages(c->arena, c->arena_bytes);
  } else {
    free(c->arena);
  }
  c->arena = NULL;
  c->arena_bytes = 0;
}

void cpu_run_context_free(cpu_run_context *context)
{
  if (context == NULL) return;
  cpu_run_comm_free(context->comm);
  free_arena(context);
  cx_free(context->pointers);
  cx_free(context);
}

// Makes the arena large enough. Its old content is not kept. It is never empty,
// because values without elements need an address too.
static calx_status *fit_arena(cpu_run_context *c, const cpu_run_program *p)
{
  if (c->arena != NULL && c->arena_bytes >= p->info.arena_bytes) return NULL;
  free_arena(c);
  size_t bytes = p->info.arena_bytes == 0 ? 1 : p->info.arena_bytes;
  if (has_pages(bytes)) {
    bytes = cx_whole_pages(bytes);
    c->arena = cx_alloc_pages(bytes);
  } else {
    bytes = (size_t)cpu_run_align_up((int64_t)bytes);
    c->arena = aligned_alloc(CPU_RUN_SLOT_ALIGN, bytes);
  }
  if (c->arena == NULL) {
    return cx_error(CALX_RESOURCE_EXHAUSTED,
                    "program '%s' needs %zu bytes of temporary memory, which "
                    "cannot be allocated",
                    p->info.name, p->info.arena_bytes);
  }
  c->arena_bytes = bytes;
  return NULL;
}

static calx_status *fit_pointers(cpu_run_context *c, const cpu_run_program *p)
{
  return cx_grow(&c->pointers, &c->n_pointers, p->n_uses + 1, sizeof(void *))
             ? NULL
             : cx_out_of_memory();
}

// An empty tensor may have no address.
static void *part_of(void *whole, int64_t offset)
{
  return offset == 0 ? whole : (unsigned char *)whole + offset;
}

static void resolve(const cpu_run_program *p, cpu_run_context *c,
                    void *const *args, void *const *results)
{
  for (size_t i = 0; i < p->n_uses; i++) {
    const cpu_run_slot *slot = &p->slots[p->uses[i]];
    switch (slot->kind) {
      case CPU_RUN_SLOT_ARENA:
      case CPU_RUN_SLOT_ROW: c->pointers[i] = c->arena + slot->at; break;
      case CPU_RUN_SLOT_CONSTANT:
        c->pointers[i] = p->constants + slot->at;
        break;
      case CPU_RUN_SLOT_PARAM:
        c->pointers[i] = part_of(args[slot->at], slot->offset);
        break;
      default: c->pointers[i] = part_of(results[slot->at], slot->offset); break;
    }
  }
  // Behind the slots, for loops that call others.
  c->pointers[p->n_uses] = (void *)p->functions;
}

// ---- steps ----

typedef struct loop_call {
  cpu_run_loop_fn *function;
  void *const *buffers;
} loop_call;

static void run_piece(void *user, int64_t lo, int64_t hi)
{
  const loop_call *call = user;
  call->function(call->buffers, lo, hi);
}

static void run_loop(const execution *r, const cpu_run_step *s, void **pointers)
{
  const cpu_run_loop *loop = &r->program->loops[s->index];
  for (int64_t k = 0; k < loop->n_phases; k++) {
    const cpu_jit_phase *phase = &loop->phases[k];
    loop_call call = { r->program->functions[s->index][k], pointers };
    if (phase->to != 0 && pointers[phase->from] == pointers[phase->to]) {
      continue;
    }
    if (phase->extent <= phase->grain) {
      if (phase->extent > 0) call.function(pointers, 0, phase->extent);
    } else {
      cpu_threads_for(r->context->threads, phase->extent, phase->grain,
                      run_piece, &call);
    }
  }
}

static calx_status *run_on_caller(const execution *r, const cx_hlo_op *op,
                                  const cpu_ref_tensor *operands,
                                  const cpu_ref_tensor *results)
{
  if (r->launch == NULL) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "program '%s' has collectives, and was launched alone",
                    r->program->info.name);
  }
  return cpu_coll_run(r->launch, r->program->outlined, op, operands, results);
}

// On the device's thread.
static calx_status *run_collective(void *user, const cx_hlo_op *op,
                                   const cpu_ref_tensor *operands,
                                   const cpu_ref_tensor *results)
{
  const execution *r = user;
  CALX_TRY(cpu_run_comm_drain(r->context->comm));
  return run_on_caller(r, op, operands, results);
}

#define FEW_TENSORS 32

// The communication thread may run this too: the program and the pointers do
// not change during a run.
static calx_status *run_function(execution *r, const cpu_run_step *s)
{
  const cpu_run_program *p = r->program;
  void **pointers = r->context->pointers + s->first;
  const cx_hlo_func *f = p->outlined_funcs[s->index];
  cpu_ref_tensor few[FEW_TENSORS];
  cpu_ref_tensor *tensors = few;
  if (s->n_slots > FEW_TENSORS) {
    tensors = cx_calloc(s->n_slots, sizeof *tensors);
    if (tensors == NULL) return cx_out_of_memory();
  }
  for (size_t i = 0; i < s->n_slots; i++) {
    const cx_hlo_any *type =
        i < f->n_params ? &f->params[i] : &f->results[i - f->n_params];
    tensors[i] = (cpu_ref_tensor){ type->tensor, pointers[i] };
  }
  const cpu_ref_tensor *results = tensors + f->n_params;
  calx_status *status = NULL;
  if (s->kind == CPU_RUN_STEP_INTERPRET) {
    status = cpu_ref_run(p->outlined, f, tensors, results, &r->ref);
  } else {
    const cx_hlo_op *op = f->body.first->first;
    status = s->kind == CPU_RUN_STEP_BEGIN
                 ? run_on_caller(r, op, tensors, results)
                 : run_collective(r, op, tensors, results);
  }
  if (tensors != few) cx_free(tensors);
  return status;
}

static calx_status *run_begun(void *user, const void *item)
{
  return run_function(user, item);
}

// The recursion is as deep as regions nest, which the parser bounds.
static calx_status *run_block(execution *r, size_t block);

static void choose_row(const execution *r, const cpu_run_step *s)
{
  const cpu_run_program *p = r->program;
  void **pointers = r->context->pointers;
  const uint32_t *uses = p->uses + s->first;
  const cpu_run_slot *row = &p->slots[uses[2]];
  const void *from = pointers[s->first + 1];
  int32_t narrow = 0;
  int64_t index = 0;
  if (p->slots[uses[1]].bytes == sizeof narrow) {
    memcpy(&narrow, from, sizeof narrow);
    index = narrow;
  } else {
    memcpy(&index, from, sizeof index);
  }
  const int64_t last = p->slots[uses[0]].bytes / row->bytes - 1;
  index = index < 0 ? 0 : index > last ? last : index;
  unsigned char *at =
      (unsigned char *)pointers[s->first] + (size_t)(index * row->bytes);
  for (uint32_t i = p->row_uses[uses[2]]; i < p->n_uses; i = p->next_use[i]) {
    pointers[i] = at;
  }
}

static calx_status *run_branch(execution *r, const cpu_run_step *s,
                               const void *selector)
{
  uint32_t branch = 0;
  if (s->kind == CPU_RUN_STEP_IF) {
    branch = *(const unsigned char *)selector != 0 ? 0 : 1;
  } else {
    int32_t index = 0;
    memcpy(&index, selector, sizeof index);
    branch = index < 0 || (uint32_t)index >= s->n ? s->n - 1 : (uint32_t)index;
  }
  return run_block(r, s->index + branch);
}

static calx_status *run_step(execution *r, const cpu_run_step *s)
{
  const cpu_run_program *p = r->program;
  void **at = r->context->pointers + s->first;
  switch (s->kind) {
    case CPU_RUN_STEP_LOOP: run_loop(r, s, at); return NULL;
    case CPU_RUN_STEP_KERNEL:
      return cpu_kernel_run(p->kernels[s->index], r->context->threads, at);
    case CPU_RUN_STEP_INTERPRET:
    case CPU_RUN_STEP_COLLECTIVE: return run_function(r, s);
    case CPU_RUN_STEP_BEGIN:
      cx_counter_add(&overlapped_counter, 1);
      return cpu_run_comm_begin(r->context->comm, run_begun, r, s);
    case CPU_RUN_STEP_END: return cpu_run_comm_wait(r->context->comm, s->n);
    case CPU_RUN_STEP_COPY: {
      size_t bytes = (size_t)p->slots[p->uses[s->first]].bytes;
      if (bytes > 0) memmove(at[1], at[0], bytes);
      return NULL;
    }
    case CPU_RUN_STEP_WHILE:
      for (;;) {
        CALX_TRY(run_block(r, s->index));
        if (*(const unsigned char *)at[0] == 0) return NULL;
        CALX_TRY(run_block(r, s->index + 1));
      }
    case CPU_RUN_STEP_NATIVE:
      p->functions[s->index][0](r->context->pointers, 0, 1);
      return NULL;
    case CPU_RUN_STEP_ROW: choose_row(r, s); return NULL;
    default: return run_branch(r, s, at[0]);
  }
}

static bool works(const cpu_run_step *s)
{
  return s->kind != CPU_RUN_STEP_BEGIN && s->kind != CPU_RUN_STEP_END;
}

static calx_status *run_block(execution *r, size_t block)
{
  const cpu_run_step_block *b = &r->program->blocks[block];
  if (b->n == 0) return NULL;  // there may be no steps at all
  const cpu_run_step *steps = r->program->steps + b->first;
  for (size_t i = 0; i < b->n; i++) {
    CALX_TRY(run_step(r, &steps[i]));
    if (cpu_run_comm_open(r->context->comm) > 0 && works(&steps[i])) {
      cx_counter_add(&beside_counter, 1);
    }
  }
  return NULL;
}

calx_status *cpu_run_program_run(const cpu_run_program *p,
                                 cpu_run_context *context,
                                 cpu_coll_launch *launch, void *const *args,
                                 void *const *results)
{
  CALX_TRY(fit_arena(context, p));
  CALX_TRY(fit_pointers(context, p));
  resolve(p, context, args, results);
  cpu_run_comm_renew(context->comm);
  execution r = { .program = p, .context = context, .launch = launch };
  r.ref =
      (cpu_ref_context){ .replica = launch == NULL ? 0 : launch->replica,
                         .partition = launch == NULL ? 0 : launch->partition,
                         .collective = run_collective,
                         .user = &r,
                         .rng_state = context->rng_state,
                         .user_data = context->user_data,
                         .n_user_data = context->n_user_data };
  calx_status *status = run_block(&r, 0);
  cpu_run_comm_finish(context->comm);
  return status;
}
