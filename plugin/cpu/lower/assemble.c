// lower/assemble: see assemble.h.
#include "lower/assemble.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "hlo/print.h"

// Appends n items, zeros if `from` is NULL; returns the index of the first.
static uint32_t append(cpu_lower_assembly *a, void *items, size_t *count,
                       size_t *capacity, size_t each, const void *from,
                       size_t n)
{
  if (a->failed || *count + n > UINT32_MAX ||
      !cx_grow(items, capacity, *count + n, each)) {
    a->failed = true;
    return UINT32_MAX;
  }
  char *to;
  memcpy(&to, items, sizeof to);
  to += *count * each;
  if (from == NULL) {
    memset(to, 0, n * each);
  } else if (n > 0) {
    memcpy(to, from, n * each);
  }
  *count += n;
  return (uint32_t)(*count - n);
}

uint32_t cpu_lower_assemble_slot(cpu_lower_assembly *a, cpu_run_slot_kind kind,
                                 int64_t at, int64_t bytes)
{
  return cpu_lower_assemble_part(
      a, &(cpu_run_slot){ .kind = (int64_t)kind, .at = at, .bytes = bytes });
}

uint32_t cpu_lower_assemble_part(cpu_lower_assembly *a,
                                 const cpu_run_slot *part)
{
  cpu_run_program *p = a->program;
  return append(a, &p->slots, &p->n_slots, &a->slots_room, sizeof *part, part,
                1);
}

uint32_t cpu_lower_assemble_constant(cpu_lower_assembly *a, const void *data,
                                     size_t size, int64_t bytes)
{
  cpu_run_program *p = a->program;
  size_t at = (size_t)cpu_run_align_up((int64_t)p->info.constant_bytes);
  size_t need = (size_t)cpu_run_align_up((int64_t)at + bytes);
  if (need == 0) need = CPU_RUN_SLOT_ALIGN;
  if (need > a->constants_room && !a->failed) {
    size_t more = need + a->constants_room / 2;
    size_t grown = (size_t)cpu_run_align_up((int64_t)more);
    unsigned char *moved = aligned_alloc(CPU_RUN_SLOT_ALIGN, grown);
    if (moved == NULL) {
      a->failed = true;
    } else {
      if (p->info.constant_bytes > 0)
        memcpy(moved, p->constants, p->info.constant_bytes);
      memset(moved + p->info.constant_bytes, 0, grown - p->info.constant_bytes);
      free(p->constants);
      p->constants = moved;
      a->constants_room = grown;
    }
  }
  if (a->failed) return UINT32_MAX;
  for (size_t i = 0; size > 0 && i < (size_t)bytes; i += size) {
    memcpy(p->constants + at + i, data, size);
  }
  p->info.constant_bytes = at + (size_t)bytes;
  return cpu_lower_assemble_slot(a, CPU_RUN_SLOT_CONSTANT, (int64_t)at, bytes);
}

uint32_t cpu_lower_assemble_blocks(cpu_lower_assembly *a, size_t n)
{
  cpu_run_program *p = a->program;
  return append(a, &p->blocks, &p->n_blocks, &a->blocks_room, sizeof *p->blocks,
                NULL, n);
}

void cpu_lower_assemble_step(cpu_lower_assembly *a, cpu_run_step_kind kind,
                             uint32_t index, uint32_t n, const uint32_t *slots,
                             size_t n_slots)
{
  cpu_run_program *p = a->program;
  const uint32_t first = append(a, &p->uses, &p->n_uses, &a->uses_room,
                                sizeof *slots, slots, n_slots);
  const cpu_run_step step = { (uint32_t)kind, index, n, first,
                              (uint32_t)n_slots };
  append(a, &p->steps, &p->n_steps, &a->steps_room, sizeof step, &step, 1);
}

uint32_t cpu_lower_assemble_loop(cpu_lower_assembly *a,
                                 const cpu_run_loop *loop)
{
  cpu_run_program *p = a->program;
  return append(a, &p->loops, &p->n_loops, &a->loops_room, sizeof *loop, loop,
                1);
}

uint32_t cpu_lower_assemble_kernel(cpu_lower_assembly *a,
                                   const cpu_kernel_desc *desc,
                                   cpu_kernel *kernel)
{
  cpu_run_program *p = a->program;
  size_t n = p->n_kernels;
  append(a, &p->descs, &n, &a->descs_room, sizeof *desc, desc, 1);
  const uint32_t index = append(a, &p->kernels, &p->n_kernels, &a->kernels_room,
                                sizeof kernel, &kernel, 1);
  if (index == UINT32_MAX) cpu_kernel_free(kernel);
  return index;
}

calx_status *cpu_lower_assemble_outlined(cpu_lower_assembly *a,
                                         const cx_hlo_module *module)
{
  cx_text text = { 0 };
  cx_hlo_print_with(module, &(cx_hlo_print_options){ .no_locations = true },
                    &text);
  a->program->outlined_size = text.size;
  a->program->outlined_text = cx_text_take(&text);
  return a->program->outlined_text == NULL ? cx_out_of_memory() : NULL;
}

// ---- the signature ----

static calx_status *copy_types(cx_arena *arena, const cx_hlo_any *from,
                               size_t n, const char *what,
                               const cx_hlo_type **out)
{
  cx_hlo_type *types = CX_ARENA_ARRAY(arena, cx_hlo_type, n + 1);
  if (types == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    if (from[i].non_tensor != NULL ||
        cx_hlo_type_elements(&from[i].tensor) < 0) {
      return cx_error(CALX_UNIMPLEMENTED,
                      "the program's %s %zu is no tensor of a fixed shape",
                      what, i);
    }
    types[i] = from[i].tensor;
    int64_t *dims = CX_ARENA_ARRAY(arena, int64_t, types[i].rank + 1);
    if (dims == NULL) return cx_out_of_memory();
    if (types[i].rank > 0) {
      memcpy(dims, types[i].dims, types[i].rank * sizeof *dims);
    }
    types[i].dims = dims;
  }
  *out = types;
  return NULL;
}

static const cx_hlo_attr *param_attr(const cx_hlo_func *f, size_t param,
                                     const char *name)
{
  if (f->param_attrs == NULL) return NULL;
  const cx_hlo_named_list *list = &f->param_attrs[param];
  return cx_hlo_named_attr(list->items, list->n, name);
}

// What mhlo.memory_kind says of each; without it, "device".
static calx_status *read_memory(cx_arena *arena, const cx_hlo_named_list *lists,
                                size_t n, const char *what, const uint8_t **out)
{
  uint8_t *kinds = CX_ARENA_ARRAY(arena, uint8_t, n + 1);
  if (kinds == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    const cx_hlo_attr *attr =
        lists == NULL
            ? NULL
            : cx_hlo_named_attr(lists[i].items, lists[i].n, "mhlo.memory_kind");
    kinds[i] = CPU_RUN_MEMORY_DEVICE;
    if (attr == NULL) continue;
    const cx_hlo_str name = attr->kind == CX_HLO_ATTR_STRING
                                ? attr->as.text
                                : (cx_hlo_str){ .s = "no text", .n = 7 };
    while (kinds[i] < CPU_RUN_MEMORIES &&
           !cx_hlo_str_equal(name, cpu_run_memory_name(kinds[i]))) {
      kinds[i]++;
    }
    if (kinds[i] == CPU_RUN_MEMORIES) {
      return cx_invalid(
          "mhlo.memory_kind of %s %zu: wants \"device\", \"pinned_host\" or "
          "\"unpinned_host\", found %.*s",
          what, i, (int)(name.n < 40 ? name.n : 40), name.s);
    }
  }
  *out = kinds;
  return NULL;
}

static bool is_paired(const cpu_run_program_info *info, const int32_t *alias,
                      size_t param)
{
  for (size_t r = 0; r < info->n_results; r++) {
    if (alias[r] == (int32_t)param) return true;
  }
  return false;
}

// Pairs each donor that has no result yet with the first result of its type, or
// of as many bytes, that has no parameter.
static void pair_donors(const cx_hlo_func *f, const cpu_run_program_info *info,
                        bool by_bytes, int32_t *alias)
{
  for (size_t i = 0; i < f->n_params; i++) {
    if (param_attr(f, i, "jax.buffer_donor") == NULL) continue;
    if (is_paired(info, alias, i)) continue;
    const cx_hlo_type *from = &info->params[i];
    for (size_t r = 0; r < info->n_results; r++) {
      const cx_hlo_type *to = &info->results[r];
      const bool fits = by_bytes
                            ? cx_hlo_type_bytes(from) == cx_hlo_type_bytes(to)
                            : cx_hlo_type_equal(from, to);
      if (alias[r] >= 0 || !fits) continue;
      alias[r] = (int32_t)i;
      break;
    }
  }
}

// Pairs parameters with the results that take their memory. tf.aliasing_output
// names a result; jax.buffer_donor leaves the choice to the compiler.
static calx_status *pair(cpu_lower_assembly *a, const cx_hlo_func *f,
                         int32_t *alias)
{
  const cpu_run_program_info *info = &a->program->info;
  for (size_t i = 0; i < f->n_params; i++) {
    const cx_hlo_attr *attr = param_attr(f, i, "tf.aliasing_output");
    if (attr == NULL) continue;
    int64_t r = attr->kind == CX_HLO_ATTR_INT ? attr->as.integer : -1;
    if (r < 0 || r >= (int64_t)f->n_results || alias[r] >= 0 ||
        !cx_hlo_type_equal(&info->params[i], &info->results[r])) {
      return cx_invalid(
          "tf.aliasing_output of parameter %zu: wants a result of its type "
          "that no other parameter has, found %lld",
          i, (long long)r);
    }
    alias[r] = (int32_t)i;
  }
  pair_donors(f, info, false, alias);
  pair_donors(f, info, true, alias);
  return NULL;
}

calx_status *cpu_lower_assemble_signature(cpu_lower_assembly *a,
                                          const cx_hlo_func *entry)
{
  cpu_run_program *p = a->program;
  cpu_run_program_info *info = &p->info;
  CALX_TRY(copy_types(&p->arena, entry->params, entry->n_params, "parameter",
                      &info->params));
  info->n_params = entry->n_params;
  CALX_TRY(copy_types(&p->arena, entry->results, entry->n_results, "result",
                      &info->results));
  info->n_results = entry->n_results;
  CALX_TRY(read_memory(&p->arena, entry->param_attrs, entry->n_params,
                       "parameter", &info->param_memory));
  CALX_TRY(read_memory(&p->arena, entry->result_attrs, entry->n_results,
                       "result", &info->result_memory));
  int32_t *alias = CX_ARENA_ARRAY(&p->arena, int32_t, entry->n_results + 1);
  if (alias == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < entry->n_results; i++) alias[i] = -1;
  info->alias = alias;
  return pair(a, entry, alias);
}
