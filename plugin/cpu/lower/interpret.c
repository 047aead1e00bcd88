// lower/interpret: a program as one step of the interpreter, and the counts.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "hlo/print.h"
#include "lower/lower.h"
#include "opt/edit.h"

// The interpreter may still read an argument when it writes a result, so what
// takes an argument's memory is written beside it first.
calx_status *cpu_lower_interpret(cpu_lower_compilation *l, cx_hlo_func *entry)
{
  cpu_run_program *p = l->a.program;
  const cpu_run_program_info *info = &p->info;
  size_t n = info->n_params + info->n_results;
  uint32_t *places = CX_ARENA_ARRAY(&l->arena, uint32_t, n + 1);
  if (places == NULL) return cx_out_of_memory();
  int64_t at = 0;
  for (size_t i = 0; i < info->n_params; i++) {
    places[i] = cpu_lower_assemble_place(&l->a, CPU_RUN_PLACE_PARAM, (int64_t)i,
                                         cx_hlo_type_bytes(&info->params[i]));
  }
  for (size_t i = 0; i < info->n_results; i++) {
    int64_t bytes = cx_hlo_type_bytes(&info->results[i]);
    bool own = info->alias[i] < 0;
    places[info->n_params + i] = cpu_lower_assemble_place(
        &l->a, own ? CPU_RUN_PLACE_RESULT : CPU_RUN_PLACE_ARENA,
        own ? (int64_t)i : at, bytes);
    if (!own) at = cx_place_align_up(at + bytes);
    CALX_TRY(cpu_lower_check_total(p, at));
  }
  p->arena_bytes = (size_t)at;
  cpu_lower_assemble_blocks(&l->a, 1);
  cpu_lower_assemble_step(&l->a, CPU_RUN_STEP_INTERPRET, entry->index, 0,
                          places, n);
  for (size_t i = 0; i < info->n_results; i++) {
    if (info->alias[i] < 0) continue;
    uint32_t copy[2] = { places[info->n_params + i],
                         cpu_lower_assemble_place(
                             &l->a, CPU_RUN_PLACE_RESULT, (int64_t)i,
                             cx_hlo_type_bytes(&info->results[i])) };
    cpu_lower_assemble_step(&l->a, CPU_RUN_STEP_COPY, 0, 0, copy, 2);
  }
  if (l->a.failed) return cx_out_of_memory();
  p->blocks[0].n = (uint32_t)p->n_steps;
  for (const cx_hlo_func *f = l->module->first; f != NULL; f = f->next) {
    for (const cx_hlo_op *op = cpu_opt_first(f->body.first); op != NULL;
         op = cpu_opt_next(op)) {
      p->info.n_interpreted++;
    }
  }
  p->info.cost_ns = 1e9;
  cx_text text = { 0 };
  cx_hlo_print_with(l->module, &(cx_hlo_print_options){ .no_locations = true },
                    &text);
  p->side_size = text.size;
  p->side_text = cx_text_take(&text);
  return p->side_text == NULL ? cx_out_of_memory() : NULL;
}

calx_status *cpu_lower_count(const cpu_lower_compilation *l)
{
  const char *path = getenv("CALX_CPU_STATS");
  if (path == NULL || path[0] == '\0') return NULL;
  FILE *file = fopen(path, "a");
  if (file == NULL) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "CALX_CPU_STATS: the file '%s' cannot be written", path);
  }
  const cpu_run_program_info *info = &l->a.program->info;
  fprintf(file, "%s %zu %zu %zu\n", info->name[0] == '\0' ? "-" : info->name,
          info->n_compiled, info->n_library, info->n_interpreted);
  fclose(file);
  return NULL;
}
