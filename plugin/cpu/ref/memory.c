// ref/memory: counted buffers within a limit.
//
// A few freed buffers wait for their next use, so that a loop does not go to
// the allocator (and the kernel) for each of its temporaries. They count as
// used, and are given up before the limit is reached.
#include <string.h>

#include "ref/inner.h"

bool cpu_ref_bytes(const cx_hlo_type *type, size_t *out)
{
  if (type->elem == CX_HLO_TOKEN) {
    *out = 0;
    return true;
  }
  const int64_t n = cx_hlo_type_elements(type);
  return n >= 0 && cx_mul_size((size_t)n, cx_hlo_elem_bytes(type->elem), out) &&
         *out < PTRDIFF_MAX / 2;
}

static void drop_kept(cpu_ref_machine *m)
{
  while (m->n_kept != 0) {
    cpu_ref_buffer *b = m->kept[--m->n_kept];
    m->used -= b->bytes;
    cx_free(b);
  }
}

// A kept buffer that is not much larger than asked.
static cpu_ref_buffer *take_kept(cpu_ref_machine *m, size_t bytes)
{
  for (size_t i = 0; i < m->n_kept; i++) {
    cpu_ref_buffer *b = m->kept[i];
    if (b->bytes < bytes || b->bytes / 2 > bytes + 64) continue;
    m->kept[i] = m->kept[--m->n_kept];
    return b;
  }
  return NULL;
}

static cpu_ref_buffer *take(cpu_ref_machine *m, size_t bytes)
{
  cpu_ref_buffer *b = take_kept(m, bytes);
  if (b == NULL) {
    if (bytes > m->limit - m->used) drop_kept(m);
    if (bytes > m->limit - m->used) return NULL;
    b = cx_alloc(sizeof *b + bytes);
    if (b == NULL) return NULL;
    b->bytes = bytes;
    m->used += bytes;
  }
  b->refs = 1;
  b->n_parts = 0;
  return b;
}

static calx_status *refused(const cpu_ref_machine *m, const cx_hlo_op *op,
                            const char *what, size_t bytes)
{
  return cpu_ref_bad(op, CALX_RESOURCE_EXHAUSTED,
                     "%s needs %zu bytes; %zu of at most %zu are in use", what,
                     bytes, m->used, m->limit);
}

calx_status *cpu_ref_buffer_new(cpu_ref_machine *m, const cx_hlo_op *op,
                                const cx_hlo_type *type, cpu_ref_buffer **out)
{
  size_t bytes = 0;
  if (!cpu_ref_bytes(type, &bytes)) {
    return cpu_ref_bad(op, CALX_RESOURCE_EXHAUSTED,
                       "%s has more elements than any memory",
                       cx_hlo_shape(type).s);
  }
  *out = take(m, bytes);
  return *out != NULL ? NULL : refused(m, op, cx_hlo_shape(type).s, bytes);
}

calx_status *cpu_ref_scratch(const cpu_ref_call *c, size_t count, size_t bytes,
                             cpu_ref_buffer **out)
{
  size_t all = SIZE_MAX;
  *out = NULL;
  if (cx_mul_size(count, bytes, &all) && all < PTRDIFF_MAX / 2) {
    *out = take(c->machine, all);
  }
  return *out != NULL ? NULL
                      : refused(c->machine, c->op, "an intermediate", all);
}

static void release_parts(cpu_ref_machine *m, cpu_ref_buffer *b)
{
  cpu_ref_slot *parts = (cpu_ref_slot *)(void *)b->data;
  for (size_t i = 0; i < b->n_parts; i++) cpu_ref_slot_clear(m, &parts[i]);
  b->n_parts = 0;
}

void cpu_ref_buffer_release(cpu_ref_machine *m, cpu_ref_buffer *b)
{
  if (b == NULL || --b->refs != 0) return;
  release_parts(m, b);
  if (m->n_kept < CPU_REF_KEPT) {
    m->kept[m->n_kept++] = b;
    return;
  }
  // The one that waited longest goes.
  cpu_ref_buffer *old = m->kept[0];
  memmove(m->kept, m->kept + 1, (CPU_REF_KEPT - 1) * sizeof old);
  m->kept[CPU_REF_KEPT - 1] = b;
  m->used -= old->bytes;
  cx_free(old);
}

void cpu_ref_slot_clear(cpu_ref_machine *m, cpu_ref_slot *s)
{
  cpu_ref_buffer_release(m, s->buffer);
  *s = (cpu_ref_slot){ 0 };
}

cpu_ref_slot cpu_ref_slot_share(const cpu_ref_slot *s)
{
  if (s->buffer != NULL) s->buffer->refs++;
  return *s;
}

// ---- the machine ----

cpu_ref_machine cpu_ref_machine_of(const cx_hlo_module *module,
                                   const cpu_ref_context *context)
{
  static const cpu_ref_context alone = { 0 };
  cpu_ref_machine m = { .module = module };
  m.context = context != NULL ? context : &alone;
  m.limit = m.context->memory_limit;
  if (m.limit == 0) m.limit = (size_t)16 << 30;
  return m;
}

static calx_status *make_env(cpu_ref_machine *m, size_t first, size_t n)
{
  m->first = first;
  m->n_env = n;
  m->env = cx_calloc(n + 1, sizeof *m->env);
  m->last = cx_calloc(n + 1, sizeof *m->last);
  return m->env == NULL || m->last == NULL ? cx_out_of_memory() : NULL;
}

calx_status *cpu_ref_machine_env(cpu_ref_machine *m)
{
  return make_env(m, 0, m->module->n_values);
}

typedef struct value_span {
  size_t first, end;
} value_span;

static void widen(value_span *s, const cx_hlo_value *v)
{
  if (v->number < s->first) s->first = v->number;
  if (v->number >= s->end) s->end = (size_t)v->number + 1;
}

// What a block and the regions below it make and use; a call uses any
// function's.
static void widen_by_block(value_span *s, const cx_hlo_module *module,
                           const cx_hlo_block *block)
{
  for (size_t i = 0; i < block->n_args; i++) widen(s, &block->args[i]);
  for (const cx_hlo_op *op = block->first; op != NULL; op = op->next) {
    for (uint32_t i = 0; i < op->n_operands; i++) widen(s, op->operands[i]);
    for (uint32_t i = 0; i < op->n_results; i++) widen(s, &op->results[i]);
    for (uint32_t i = 0; i < op->n_regions; i++) {
      const cx_hlo_block *inner = op->regions[i].first;
      if (inner != NULL) widen_by_block(s, module, inner);
    }
    if (op->kind == CX_HLO_OP_CALL || op->kind == CX_HLO_OP_COMPOSITE) {
      *s = (value_span){ 0, module->n_values };
    }
  }
}

calx_status *cpu_ref_machine_env_of(cpu_ref_machine *m,
                                    const cx_hlo_region *regions,
                                    size_t n_regions)
{
  value_span s = { SIZE_MAX, 0 };
  for (size_t i = 0; i < n_regions; i++) {
    const cx_hlo_block *block = regions[i].first;
    if (block != NULL) widen_by_block(&s, m->module, block);
  }
  return s.end == 0 ? make_env(m, 0, 0) : make_env(m, s.first, s.end - s.first);
}

calx_status *cpu_ref_machine_close(cpu_ref_machine *m, calx_status *status)
{
  for (size_t i = 0; m->env != NULL && i < m->n_env; i++) {
    cpu_ref_buffer_release(m, m->env[i].buffer);
  }
  drop_kept(m);
  cx_free(m->env);
  cx_free(m->last);
  return status;
}

// The operation of v's own block that holds, or is, `op`.
static const cx_hlo_op *ancestor(const cx_hlo_op *op, const cx_hlo_value *v)
{
  const cx_hlo_block *own = v->block != NULL ? v->block : v->op->block;
  while (op != NULL && op->block != own) {
    op = op->block == NULL ? NULL : op->block->region->op;
  }
  return op;
}

// Recursion goes as deep as the text nests, which the parser bounds.
void cpu_ref_note_uses(cpu_ref_machine *m, const cx_hlo_block *block)
{
  for (const cx_hlo_op *op = block->first; op != NULL; op = op->next) {
    for (uint32_t i = 0; i < op->n_operands; i++) {
      const cx_hlo_value *v = op->operands[i];
      *cpu_ref_last_of(m, v) = ancestor(op, v);
    }
    for (uint32_t i = 0; i < op->n_regions; i++) {
      const cx_hlo_block *inner = op->regions[i].first;
      if (inner != NULL) cpu_ref_note_uses(m, inner);
    }
  }
}
