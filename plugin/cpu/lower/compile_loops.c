// lower/compile_loops: gives the loops to the jit. What it refuses becomes the
// interpreter's.
//
// The loops are compiled in parts, each on a thread of its own and to an object
// of its own. Loops that may be equal go to the same part, where the jit makes
// equal ones one function.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "lower/lower.h"

#define LOOPS_PER_PART 6  // fewer are not worth another thread

typedef struct loops_part {
  cpu_lower_group **groups;
  cpu_jit_kernel *kernels;
  size_t n;
  size_t weight;  // an estimate of the work: operations
  cx_text object;
  calx_status *failed;  // in the jit's memory
} loops_part;

typedef struct loops_job {
  cpu_lower_state *c;
  const cpu_jit_api *jit;
  cpu_jit_options options;
  cpu_lower_group **loops;
  size_t n_loops, loops_room;
  loops_part parts[CPU_RUN_OBJECTS];
  size_t n_parts;
} loops_job;

calx_status *cpu_lower_read_lanes(int *out)
{
  const char *text = cx_env_text("CALX_CPU_LANES");
  *out = 0;
  if (text == NULL) return NULL;
  *out = strcmp(text, "16") == 0  ? 16
         : strcmp(text, "8") == 0 ? 8
         : strcmp(text, "4") == 0 ? 4
                                  : 0;
  if (*out == 0) {
    return cx_invalid("CALX_CPU_LANES: wants 16, 8 or 4, found '%s'", text);
  }
  if (*out == 8 && !__builtin_cpu_supports("avx2")) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "CALX_CPU_LANES: this processor has no 8 lanes (AVX2)");
  }
  return NULL;
}

static calx_status *add_loop(cpu_lower_state *c, void *user, cpu_lower_group *g)
{
  loops_job *j = user;
  if (g->kind != CPU_LOWER_GROUP_LOOP) return NULL;
  return cpu_lower_push(c, &j->loops, &j->n_loops, &j->loops_room, g);
}

// ---- parts ----

// Equal for loops that may be equal.
static uint64_t hash_of(const cpu_lower_group *g)
{
  uint64_t hash = 0;
  for (size_t i = 0; i < g->n_ops; i++) {
    const cx_hlo_type *t = &g->ops[i]->results[0].type.tensor;
    hash = hash * 31 + (uint64_t)g->ops[i]->kind;
    for (size_t d = 0; d < t->rank; d++) {
      hash = hash * 31 + (uint64_t)t->dims[d];
    }
  }
  return hash;
}

// The part of an earlier loop with the same hash, or the lightest one.
static loops_part *part_of(loops_job *j, const uint64_t *hashes,
                           loops_part *const *parts, size_t i)
{
  for (size_t k = 0; k < i; k++) {
    if (hashes[k] == hashes[i]) return parts[k];
  }
  loops_part *least = &j->parts[0];
  for (size_t k = 1; k < j->n_parts; k++) {
    if (j->parts[k].weight < least->weight) least = &j->parts[k];
  }
  return least;
}

cpu_jit_kernel cpu_lower_kernel_of(const cpu_lower_group *g)
{
  return (cpu_jit_kernel){
    .ops = (const cx_hlo_op *const *)(void *)g->ops,
    .n_ops = g->n_ops,
    .inputs = (const cx_hlo_value *const *)(void *)g->inputs,
    .n_inputs = g->n_inputs,
    .outputs = (const cx_hlo_value *const *)(void *)g->outputs,
    .n_outputs = g->n_outputs,
  };
}

static void add_to_part(loops_part *p, cpu_lower_group *g)
{
  p->kernels[p->n] = cpu_lower_kernel_of(g);
  p->groups[p->n++] = g;
  p->weight += g->n_ops + 2;
}

static calx_status *divide(loops_job *j)
{
  cx_arena *arena = &j->c->arena;
  const size_t threads = (size_t)cpu_threads_size(j->c->threads);
  size_t n = j->n_loops / LOOPS_PER_PART;
  if (n > threads) n = threads;
  if (n > CPU_RUN_OBJECTS - 1) n = CPU_RUN_OBJECTS - 1;  // one: lower/native.c
  j->n_parts = n == 0 ? 1 : n;
  for (size_t i = 0; i < j->n_parts; i++) {
    loops_part *p = &j->parts[i];
    *p = (loops_part){ 0 };
    p->groups = CX_ARENA_ARRAY(arena, cpu_lower_group *, j->n_loops + 1);
    p->kernels = CX_ARENA_ARRAY(arena, cpu_jit_kernel, j->n_loops + 1);
    if (p->groups == NULL || p->kernels == NULL) return cx_out_of_memory();
  }
  uint64_t *hashes = CX_ARENA_ARRAY(arena, uint64_t, j->n_loops + 1);
  loops_part **parts = CX_ARENA_ARRAY(arena, loops_part *, j->n_loops + 1);
  if (hashes == NULL || parts == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < j->n_loops; i++) {
    hashes[i] = hash_of(j->loops[i]);
    parts[i] = part_of(j, hashes, parts, i);
    add_to_part(parts[i], j->loops[i]);
  }
  return NULL;
}

static void compile_part(void *user, int rank)
{
  loops_job *j = user;
  loops_part *p = &j->parts[rank];
  if (p->n == 0) return;
  p->failed = j->jit->compile(&j->options, p->kernels, p->n, &p->object);
}

// ---- results ----

calx_status *cpu_lower_take_object(cpu_lower_state *c, const cpu_jit_api *jit,
                                   cx_text *object)
{
  cpu_run_program *program = c->a.program;
  cpu_run_object_part *to = &program->objects[program->n_objects];
  to->bytes = cx_alloc(object->size + 1);
  if (to->bytes != NULL) {
    to->size = object->size;
    if (to->size > 0) memcpy(to->bytes, object->data, to->size);
    program->n_objects++;
  }
  jit->free_object(object);
  return to->bytes == NULL ? cx_out_of_memory() : NULL;
}

static calx_status *take_part(const loops_job *j, loops_part *p)
{
  cpu_run_program *program = j->c->a.program;
  if (p->n == 0) return NULL;
  CALX_TRY(cpu_lower_take_object(j->c, j->jit, &p->object));
  for (size_t i = 0; i < p->n; i++) {
    const cpu_jit_kernel *k = &p->kernels[i];
    p->groups[i]->scratch = (int64_t)k->scratch;
    cpu_run_loop loop = { .n_phases = (int64_t)k->n_phases,
                          .object = (int64_t)program->n_objects - 1,
                          .symbol = (int64_t)i };
    memcpy(loop.phases, k->phases, sizeof loop.phases);
    p->groups[i]->index = cpu_lower_assemble_loop(&j->c->a, &loop);
  }
  return NULL;
}

calx_status *cpu_lower_take_failure(const cpu_jit_api *jit, calx_status *failed)
{
  if (failed == NULL) return NULL;
  calx_status *copy =
      cx_error(calx_status_code(failed), "%s", calx_status_message(failed));
  jit->free_status(failed);
  return copy;
}

static calx_status *compile(loops_job *j)
{
  CALX_TRY(divide(j));
  cpu_threads_parallel(j->c->threads, (int)j->n_parts, compile_part, j);
  calx_status *status = NULL;
  for (size_t i = 0; i < j->n_parts; i++) {
    calx_status *failed = cpu_lower_take_failure(j->jit, j->parts[i].failed);
    if (status == NULL) {
      status = failed;
    } else {
      calx_status_free(failed);
    }
  }
  for (size_t i = 0; i < j->n_parts; i++) {
    if (status == NULL) status = take_part(j, &j->parts[i]);
    if (status != NULL) j->jit->free_object(&j->parts[i].object);
  }
  return status;
}

static void drop_refused(loops_job *j)
{
  j->n_loops = 0;
  for (size_t i = 0; i < j->n_parts; i++) {
    const loops_part *p = &j->parts[i];
    for (size_t k = 0; k < p->n; k++) {
      if (p->kernels[k].refused) {
        p->groups[k]->kind = CPU_LOWER_GROUP_INTERPRETED;
      } else {
        j->loops[j->n_loops++] = p->groups[k];
      }
    }
  }
}

calx_status *cpu_lower_compile_loops(cpu_lower_state *c,
                                     cpu_lower_schedule *schedule)
{
  loops_job j = { .c = c };
  CALX_TRY(cpu_lower_each_group(c, schedule, add_loop, &j));
  if (j.n_loops == 0) return NULL;
  CALX_TRY(cpu_lower_read_lanes(&j.options.lanes));
  CALX_TRY(cpu_lower_load_jit(&j.jit));
  calx_status *status = compile(&j);
  if (status == NULL || calx_status_code(status) != CALX_UNIMPLEMENTED) {
    return status;
  }
  calx_status_free(status);
  drop_refused(&j);
  return j.n_loops == 0 ? NULL : compile(&j);
}
