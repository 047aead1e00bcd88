// lower/codes: the loops to the compiler, and what it refuses to the
// interpreter.
//
// The loops are compiled in parts, each on a thread of its own and to an object
// of its own; loops that look alike go to one part, where equal ones become one
// function.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "lower/plan.h"

// Fewer are not worth another thread.
#define CODES_PER_PART 6

typedef struct part {
  cpu_lower_unit **units;
  cpu_jit_kernel *kernels;
  size_t n;
  size_t weight;
  cx_text object;
  calx_status *failed;  // the compiler's own
} part;

typedef struct compilation {
  cpu_lower_planner *g;
  const cpu_jit_api *jit;
  cpu_jit_options options;
  part parts[CPU_RUN_OBJECTS];
  size_t n_parts;
} compilation;

static calx_status *lanes_asked(int *out)
{
  const char *text = getenv("CALX_CPU_LANES");
  *out = 0;
  if (text == NULL || text[0] == '\0') return NULL;
  *out = strcmp(text, "16") == 0  ? 16
         : strcmp(text, "8") == 0 ? 8
         : strcmp(text, "4") == 0 ? 4
                                  : 0;
  if (*out == 0) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "CALX_CPU_LANES: wants 16, 8 or 4, found '%s'", text);
  }
  if (*out == 8 && !__builtin_cpu_supports("avx2")) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "CALX_CPU_LANES: this processor has no 8 lanes (AVX2)");
  }
  return NULL;
}

static void describe(const cpu_lower_unit *u, cpu_jit_kernel *out)
{
  *out = (cpu_jit_kernel){
    .ops = (const cx_hlo_op *const *)(void *)u->ops,
    .n_ops = u->n_ops,
    .inputs = (const cx_hlo_value *const *)(void *)u->inputs,
    .n_inputs = u->n_inputs,
    .outputs = (const cx_hlo_value *const *)(void *)u->outputs,
    .n_outputs = u->n_outputs,
  };
}

// ---- parts ----

// Equal for loops that may be equal.
static uint64_t look_of(const cpu_lower_unit *u)
{
  uint64_t look = 0;
  for (size_t i = 0; i < u->n_ops; i++) {
    const cx_hlo_type *t = &u->ops[i]->results[0].type.tensor;
    look = look * 31 + (uint64_t)u->ops[i]->kind;
    for (size_t d = 0; d < t->rank; d++)
      look = look * 31 + (uint64_t)t->dims[d];
  }
  return look;
}

static part *part_for(compilation *c, uint64_t look, const uint64_t *looks,
                      const uint32_t *homes, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (looks[i] == look) return &c->parts[homes[i]];
  }
  part *least = &c->parts[0];
  for (size_t i = 1; i < c->n_parts; i++) {
    if (c->parts[i].weight < least->weight) least = &c->parts[i];
  }
  return least;
}

static calx_status *divide(compilation *c)
{
  cpu_lower_planner *g = c->g;
  cx_arena *arena = &g->l->arena;
  size_t n = g->n_codes / CODES_PER_PART;
  size_t threads = (size_t)cpu_threads_size(g->l->pool);
  if (n > threads) n = threads;
  if (n > CPU_RUN_OBJECTS) n = CPU_RUN_OBJECTS;
  c->n_parts = n == 0 ? 1 : n;
  uint64_t *looks = CX_ARENA_ARRAY(arena, uint64_t, g->n_codes + 1);
  uint32_t *homes = CX_ARENA_ARRAY(arena, uint32_t, g->n_codes + 1);
  for (size_t i = 0; i < c->n_parts; i++) {
    part *p = &c->parts[i];
    *p = (part){ 0 };
    p->units = CX_ARENA_ARRAY(arena, cpu_lower_unit *, g->n_codes + 1);
    p->kernels = CX_ARENA_ARRAY(arena, cpu_jit_kernel, g->n_codes + 1);
    if (p->units == NULL || p->kernels == NULL) return cx_out_of_memory();
  }
  if (looks == NULL || homes == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < g->n_codes; i++) {
    cpu_lower_unit *u = g->codes[i];
    looks[i] = look_of(u);
    part *p = part_for(c, looks[i], looks, homes, i);
    homes[i] = (uint32_t)(p - c->parts);
    describe(u, &p->kernels[p->n]);
    p->units[p->n++] = u;
    p->weight += u->n_ops + 2;
  }
  return NULL;
}

static void compile_part(void *user, int rank)
{
  compilation *c = user;
  part *p = &c->parts[rank];
  if (p->n == 0) return;
  p->failed = c->jit->compile(&c->options, p->kernels, p->n, &p->object);
}

// ---- what came of it ----

static calx_status *take_part(compilation *c, part *p)
{
  cpu_run_program *program = c->g->l->a.program;
  if (p->n == 0) return NULL;
  cpu_run_object_part *object = &program->objects[program->n_objects];
  object->bytes = cx_alloc(p->object.size + 1);
  if (object->bytes == NULL) return cx_out_of_memory();
  object->size = p->object.size;
  if (object->size > 0) memcpy(object->bytes, p->object.data, object->size);
  for (size_t i = 0; i < p->n; i++) {
    const cpu_jit_kernel *k = &p->kernels[i];
    p->units[i]->scratch = (int64_t)k->scratch;
    cpu_run_code code = { .n_phases = (int64_t)k->n_phases,
                          .object = (int64_t)program->n_objects,
                          .symbol = (int64_t)i };
    memcpy(code.phases, k->phases, sizeof code.phases);
    p->units[i]->index = cpu_lower_assemble_code(&c->g->l->a, &code);
  }
  program->n_objects++;
  return NULL;
}

// The compiler's status becomes one of ours: its memory is its own.
static calx_status *take_failure(const compilation *c, part *p)
{
  if (p->failed == NULL) return NULL;
  calx_status *ours = cx_error(calx_status_code(p->failed), "%s",
                               calx_status_message(p->failed));
  c->jit->free_status(p->failed);
  p->failed = NULL;
  return ours;
}

static calx_status *compile(compilation *c)
{
  CALX_TRY(divide(c));
  cpu_threads_team(c->g->l->pool, (int)c->n_parts, compile_part, c);
  calx_status *status = NULL;
  for (size_t i = 0; i < c->n_parts; i++) {
    calx_status *failed = take_failure(c, &c->parts[i]);
    if (status == NULL) {
      status = failed;
    } else {
      calx_status_free(failed);
    }
  }
  for (size_t i = 0; i < c->n_parts; i++) {
    if (status == NULL) status = take_part(c, &c->parts[i]);
    c->jit->free_object(&c->parts[i].object);
  }
  return status;
}

// Those that the compiler cannot do are interpreted.
static calx_status *sort_out(compilation *c)
{
  cpu_lower_planner *g = c->g;
  g->n_codes = 0;
  for (size_t i = 0; i < c->n_parts; i++) {
    const part *p = &c->parts[i];
    for (size_t k = 0; k < p->n; k++) {
      cpu_lower_unit *u = p->units[k];
      if (!p->kernels[k].refused) {
        g->codes[g->n_codes++] = u;
        continue;
      }
      u->kind = CPU_LOWER_UNIT_INTERPRET;
      if (!cpu_lower_push(g->l, &g->sides, &g->n_sides, &g->sides_room, u)) {
        return cx_out_of_memory();
      }
    }
  }
  return NULL;
}

calx_status *cpu_lower_codes(cpu_lower_planner *g)
{
  if (g->n_codes == 0) return NULL;
  compilation c = { .g = g };
  CALX_TRY(lanes_asked(&c.options.lanes));
  CALX_TRY(cpu_lower_jit(&c.jit));
  calx_status *status = compile(&c);
  if (status == NULL || calx_status_code(status) != CALX_UNIMPLEMENTED) {
    return status;
  }
  calx_status_free(status);
  CALX_TRY(sort_out(&c));
  return g->n_codes == 0 ? NULL : compile(&c);
}
