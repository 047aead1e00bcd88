// run/program: making, finishing and freeing programs.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/metrics.h"
#include "hlo/parse.h"
#include "hlo/verify.h"
#include "kernel/choices.h"
#include "run/layout.h"

CX_COUNTER(attention_counter, "CpuAttentionKernels");

const char *cpu_run_memory_name(cpu_run_memory kind)
{
  static const char *const names[CPU_RUN_MEMORIES] = { "device", "pinned_host",
                                                       "unpinned_host" };
  return names[kind];
}

calx_status *cpu_run_program_new(cx_hlo_str name, cpu_run_program **out)
{
  *out = NULL;
  cpu_run_program *p = cx_calloc(1, sizeof *p);
  if (p == NULL) return cx_out_of_memory();
  p->info.name = cx_arena_strndup(&p->arena, name.s, name.n);
  if (p->info.name == NULL) {
    cpu_run_program_free(p);
    return cx_out_of_memory();
  }
  *out = p;
  return NULL;
}

void cpu_run_program_free(cpu_run_program *p)
{
  if (p == NULL) return;
  for (size_t i = 0; p->kernels != NULL && i < p->n_kernels; i++) {
    cpu_kernel_free(p->kernels[i]);
  }
  for (size_t i = 0; i < CPU_RUN_OBJECTS; i++) {
    cpu_run_object_free(p->objects[i].loaded);
    cx_free(p->objects[i].bytes);
  }
  cx_hlo_module_free(p->outlined);
  cx_free(p->slots);
  cx_free(p->uses);
  cx_free(p->row_uses);
  cx_free(p->next_use);
  cx_free(p->steps);
  cx_free(p->blocks);
  cx_free(p->loops);
  cx_free(p->functions);
  cx_free(p->descs);
  cx_free(p->kernels);
  free(p->constants);  // of aligned_alloc
  cx_free(p->outlined_text);
  cx_free(p->outlined_funcs);
  cx_arena_free(&p->arena);
  cx_free(p);
}

const cpu_run_program_info *cpu_run_program_info_of(const cpu_run_program *p)
{
  return &p->info;
}

// ---- finishing ----

static calx_status *broken(const cpu_run_program *p, const char *what)
{
  return cx_error(CALX_DATA_LOSS, "program '%s': %s", p->info.name, what);
}

static calx_status *load_loops(cpu_run_program *p)
{
  for (size_t i = 0; i < p->n_objects; i++) {
    cpu_run_object_part *o = &p->objects[i];
    CALX_TRY(cpu_run_object_load(o->bytes, o->size, &o->loaded));
    p->info.code_bytes += cpu_run_object_bytes(o->loaded);
  }
  p->functions = cx_calloc(p->n_loops + 1, sizeof *p->functions);
  if (p->functions == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < p->n_loops; i++) {
    const cpu_run_loop *loop = &p->loops[i];
    if (loop->n_phases < 1 || loop->n_phases > CPU_JIT_PHASES ||
        loop->object < 0 || (uint64_t)loop->object >= p->n_objects) {
      return broken(p, "a compiled loop contradicts itself");
    }
    for (int64_t k = 0; k < loop->n_phases; k++) {
      char symbol[64];
      snprintf(symbol, sizeof symbol, "k%" PRId64 "_%" PRId64, loop->symbol, k);
      void *address =
          cpu_run_object_find(p->objects[loop->object].loaded, symbol);
      if (address == NULL) return broken(p, "the code of a loop is missing");
      memcpy(&p->functions[i][k], &address, sizeof address);
    }
  }
  return NULL;
}

static calx_status *make_kernels(cpu_run_program *p, cpu_threads *threads)
{
  if (p->n_kernels == 0 || p->kernels != NULL) return NULL;
  p->kernels = cx_calloc(p->n_kernels, sizeof(cpu_kernel *));
  if (p->kernels == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < p->n_kernels; i++) {
    CALX_TRY(cpu_kernel_new(&p->descs[i], threads, false, &p->kernels[i]));
    (void)cpu_kernel_choice_remember(cpu_threads_size(threads), &p->descs[i]);
  }
  return NULL;
}

static calx_status *read_outlined(cpu_run_program *p)
{
  if (p->outlined_text == NULL) return NULL;
  CALX_TRY(cx_hlo_parse(p->outlined_text, p->outlined_size,
                        "the outlined functions", &p->outlined));
  CALX_TRY(cx_hlo_verify(p->outlined));
  p->outlined_funcs =
      cx_calloc(p->outlined->n_funcs + 1, sizeof(cx_hlo_func *));
  if (p->outlined_funcs == NULL) return cx_out_of_memory();
  size_t n = 0;
  for (cx_hlo_func *f = p->outlined->first; f != NULL; f = f->next) {
    p->outlined_funcs[n++] = f;
  }
  return NULL;
}

// ---- checking ----
//
// The program may come from a file, so nothing in it is trusted.

static bool slot_ok(const cpu_run_program *p, const cpu_run_slot *slot)
{
  size_t limit = 0;
  if (slot->at < 0 || slot->bytes < 0 || slot->offset < 0) return false;
  switch (slot->kind) {
    case CPU_RUN_SLOT_ARENA:
    case CPU_RUN_SLOT_ROW: limit = p->info.arena_bytes; break;
    case CPU_RUN_SLOT_CONSTANT: limit = p->info.constant_bytes; break;
    case CPU_RUN_SLOT_PARAM:
    case CPU_RUN_SLOT_RESULT: {
      bool param = slot->kind == CPU_RUN_SLOT_PARAM;
      size_t n = param ? p->info.n_params : p->info.n_results;
      if ((uint64_t)slot->at >= n) return false;
      const cx_hlo_type *types = param ? p->info.params : p->info.results;
      const int64_t whole = cx_hlo_type_bytes(&types[slot->at]);
      return slot->offset <= whole && slot->bytes <= whole - slot->offset;
    }
    default: return false;
  }
  return slot->offset == 0 && (uint64_t)slot->at <= limit &&
         (uint64_t)slot->bytes <= limit - (uint64_t)slot->at;
}

static bool loop_ok(const cpu_run_program *p, const cpu_run_step *s)
{
  if (s->index >= p->n_loops) return false;
  const cpu_run_loop *loop = &p->loops[s->index];
  for (int64_t k = 0; k < loop->n_phases; k++) {
    const cpu_jit_phase *phase = &loop->phases[k];
    if (phase->from < 0 || phase->to < 0 ||
        (phase->to != 0 &&
         (phase->from >= s->n_slots || phase->to >= s->n_slots))) {
      return false;
    }
  }
  return true;
}

static int64_t use_bytes(const cpu_run_program *p, const cpu_run_step *s,
                         size_t i)
{
  return p->slots[p->uses[s->first + i]].bytes;
}

static bool interpreted_ok(const cpu_run_program *p, const cpu_run_step *s)
{
  if (p->outlined == NULL || s->index >= p->outlined->n_funcs) return false;
  const cx_hlo_func *f = p->outlined_funcs[s->index];
  if (s->n_slots != f->n_params + f->n_results) return false;
  for (size_t i = 0; i < s->n_slots; i++) {
    const cx_hlo_any *type =
        i < f->n_params ? &f->params[i] : &f->results[i - f->n_params];
    int64_t bytes = cx_hlo_type_bytes(&type->tensor);
    if (type->non_tensor != NULL || bytes < 0 || use_bytes(p, s, i) < bytes) {
      return false;
    }
  }
  return true;
}

static bool collective_ok(const cpu_run_program *p, const cpu_run_step *s)
{
  if (!interpreted_ok(p, s)) return false;
  const cx_hlo_func *f = p->outlined_funcs[s->index];
  const cx_hlo_op *op = f->body.first == NULL ? NULL : f->body.first->first;
  return op != NULL && op->n_operands <= f->n_params &&
         op->n_results == f->n_results;
}

static bool kernel_ok(const cpu_run_program *p, const cpu_run_step *s)
{
  if (s->index >= p->n_kernels) return false;
  const cpu_kernel *k = p->kernels[s->index];
  size_t sizes[CPU_KERNEL_BUFFERS];
  const size_t n = cpu_kernel_buffers(k, sizes);
  if (s->n_slots != n + 1) return false;
  for (size_t i = 0; i < n; i++) {
    if ((uint64_t)use_bytes(p, s, i) < sizes[i]) return false;
  }
  return (uint64_t)use_bytes(p, s, n) >= cpu_kernel_scratch(k);
}

static bool row_ok(const cpu_run_program *p, const cpu_run_step *s)
{
  if (s->n_slots != 3) return false;
  const cpu_run_slot *whole = &p->slots[p->uses[s->first]];
  const cpu_run_slot *row = &p->slots[p->uses[s->first + 2]];
  const int64_t index = use_bytes(p, s, 1);
  return whole->kind != CPU_RUN_SLOT_ROW && row->kind == CPU_RUN_SLOT_ROW &&
         row->bytes > 0 && whole->bytes >= row->bytes &&
         (index == sizeof(int32_t) || index == sizeof(int64_t));
}

// The blocks that a step runs come after the step's own block, so that no block
// runs itself.
static bool blocks_ok(const cpu_run_program *p, size_t block, uint32_t index,
                      uint32_t n)
{
  return n > 0 && index > block && index < p->n_blocks &&
         n <= p->n_blocks - index;
}

static bool step_ok(const cpu_run_program *p, size_t block,
                    const cpu_run_step *s)
{
  if (s->first > p->n_uses || s->n_slots > p->n_uses - s->first) return false;
  switch (s->kind) {
    case CPU_RUN_STEP_LOOP: return loop_ok(p, s);
    case CPU_RUN_STEP_NATIVE: return s->index < p->n_loops;
    case CPU_RUN_STEP_KERNEL: return kernel_ok(p, s);
    case CPU_RUN_STEP_INTERPRET: return interpreted_ok(p, s);
    case CPU_RUN_STEP_COLLECTIVE: return collective_ok(p, s);
    case CPU_RUN_STEP_BEGIN: return block == 0 && collective_ok(p, s);
    case CPU_RUN_STEP_END: return block == 0 && s->n_slots == 0;
    case CPU_RUN_STEP_COPY:
      return s->n_slots == 2 && use_bytes(p, s, 0) == use_bytes(p, s, 1);
    case CPU_RUN_STEP_ROW: return row_ok(p, s);
    case CPU_RUN_STEP_WHILE:
    case CPU_RUN_STEP_IF:
      return s->n_slots == 1 && use_bytes(p, s, 0) == 1 &&
             blocks_ok(p, block, s->index, 2);
    case CPU_RUN_STEP_CASE:
      return s->n_slots == 1 && use_bytes(p, s, 0) == 4 &&
             blocks_ok(p, block, s->index, s->n);
    default: return false;
  }
}

// Collectives in background are numbered in the order of their BEGIN steps.
// Each has one END step behind its BEGIN step.
static calx_status *check_pairs(cpu_run_program *p)
{
  if (p->n_blocks == 0) return NULL;
  const cpu_run_step_block *entry = &p->blocks[0];
  bool *ended = cx_calloc((size_t)entry->n + 1, sizeof *ended);
  if (ended == NULL) return cx_out_of_memory();
  size_t n_begun = 0, n_ended = 0;
  bool ok = true;
  for (size_t i = 0; i < entry->n; i++) {
    const cpu_run_step *s = &p->steps[entry->first + i];
    if (s->kind == CPU_RUN_STEP_BEGIN) {
      ok = ok && s->n == n_begun++;
    } else if (s->kind == CPU_RUN_STEP_END) {
      ok = ok && s->n < n_begun && !ended[s->n];
      if (!ok) break;
      ended[s->n] = true;
      n_ended++;
    }
  }
  cx_free(ended);
  p->info.n_overlapped = n_begun;
  return ok && n_begun == n_ended
             ? NULL
             : broken(p, "a collective is begun and not ended, or ended twice");
}

static void count_attention(cpu_run_program *p)
{
  p->info.n_attention = 0;
  for (size_t i = 0; i < p->n_steps; i++) {
    const cpu_run_step *s = &p->steps[i];
    if (s->kind == CPU_RUN_STEP_KERNEL &&
        strcmp(cpu_kernel_name(p->kernels[s->index]), "attention") == 0) {
      p->info.n_attention++;
    }
  }
  cx_counter_add(&attention_counter, (int64_t)p->info.n_attention);
}

static calx_status *check(const cpu_run_program *p)
{
  if (p->info.arena_bytes > (size_t)CPU_RUN_MEMORY_LIMIT) {
    return broken(p, "it needs more memory than the limit");
  }
  for (size_t i = 0; i < p->n_slots; i++) {
    if (!slot_ok(p, &p->slots[i]))
      return broken(p, "a slot lies outside of its memory");
  }
  for (size_t i = 0; i < p->n_uses; i++) {
    if (p->uses[i] >= p->n_slots)
      return broken(p, "a step uses a slot that does not exist");
  }
  for (size_t b = 0; b < p->n_blocks; b++) {
    const cpu_run_step_block *block = &p->blocks[b];
    if (block->first > p->n_steps || block->n > p->n_steps - block->first) {
      return broken(p, "a block has steps that do not exist");
    }
    for (size_t i = 0; i < block->n; i++) {
      if (!step_ok(p, b, &p->steps[block->first + i])) {
        return broken(p, "a step contradicts itself");
      }
    }
  }
  return p->n_blocks == 0 ? broken(p, "it has no steps") : NULL;
}

// Chains the uses of each ROW.
static calx_status *list_rows(cpu_run_program *p)
{
  p->row_uses = cx_calloc(p->n_slots + 1, sizeof *p->row_uses);
  p->next_use = cx_calloc(p->n_uses + 1, sizeof *p->next_use);
  if (p->row_uses == NULL || p->next_use == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < p->n_slots; i++) p->row_uses[i] = (uint32_t)p->n_uses;
  for (size_t i = p->n_uses; i-- > 0;) {
    if (p->slots[p->uses[i]].kind != CPU_RUN_SLOT_ROW) continue;
    p->next_use[i] = p->row_uses[p->uses[i]];
    p->row_uses[p->uses[i]] = (uint32_t)i;
  }
  return NULL;
}

calx_status *cpu_run_program_finish(cpu_run_program *p, cpu_threads *threads)
{
  CALX_TRY(load_loops(p));
  CALX_TRY(make_kernels(p, threads));
  CALX_TRY(read_outlined(p));
  CALX_TRY(check(p));
  CALX_TRY(list_rows(p));
  CALX_TRY(check_pairs(p));
  count_attention(p);
  return NULL;
}
