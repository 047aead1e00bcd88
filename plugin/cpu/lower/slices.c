// lower/slices: a slice that only kernels read, and whose elements lie one
// after the other in its operand, is read where it is.
//
// Nothing may write over the operand before the slice's last use. So the
// operand has its memory until then anyway, or it is a parameter whose memory
// no result takes. The group that uses an operand last may write over it, but
// kernels do not.
#include "hlo/infer.h"
#include "lower/lower.h"

// Bytes of a slice of which a copy costs more than a step. Larger, too, than
// what a native loop keeps in registers (native_cells.c), which counts the
// readers of a slot and not of its parts.
#define LEAST_BYTES 1024

typedef struct slicer {
  // By the value's number: something other than a kernel reads it; a collective
  // reads it in background, which may write over it from its begin on.
  bool *elsewhere, *in_background;
  bool *overwritten;  // by the entry's parameter: a result takes its memory
  const cx_hlo_block *entry;
} slicer;

// ---- which slices ----

// Whether the elements lie one after the other: at most one dimension is cut,
// of those with more than one element in the result the first.
static bool find_offset(const cx_hlo_op *op, int64_t *out)
{
  const cx_hlo_type *from = &op->operands[0]->type.tensor;
  const cx_hlo_type *to = &op->results[0].type.tensor;
  int64_t step = 1, first = 0;
  bool cut = false;
  for (size_t i = from->rank; i-- > 0;) {
    if (to->dims[i] != 1 &&
        (cut || cx_hlo_op_int_at(op, CX_HLO_A_STRIDES, i) != 1)) {
      return false;
    }
    cut = cut || to->dims[i] != from->dims[i];
    first += cx_hlo_op_int_at(op, CX_HLO_A_START_INDICES, i) * step;
    step *= from->dims[i];
  }
  *out = first * (int64_t)cx_hlo_elem_bytes(from->elem);
  return cx_hlo_elem_bits(from->elem) % 8 == 0 &&
         *out % CPU_RUN_SLOT_ALIGN == 0;
}

// Whether nothing writes over the operand's memory before the time.
static bool lives_until(const cpu_lower_state *c, const slicer *s,
                        const cx_hlo_value *storage, int64_t time)
{
  if (cpu_lower_info(c, storage)->last_use >= time) return true;
  const cx_hlo_block *entry = s->entry;
  if (entry->n_args == 0) return false;
  const size_t i = (size_t)storage->number - entry->args[0].number;
  return i < entry->n_args && storage == &entry->args[i] && !s->overwritten[i];
}

static bool becomes_part(cpu_lower_state *c, const slicer *s,
                         const cpu_lower_group *g)
{
  int64_t offset = 0;
  if (g->kind != CPU_LOWER_GROUP_LOOP || g->n_ops != 1 || g->n_outputs != 1 ||
      g->ops[0]->kind != CX_HLO_OP_SLICE) {
    return false;
  }
  const cx_hlo_op *op = g->ops[0];
  const cx_hlo_value *v = &op->results[0];
  cpu_lower_value *info = cpu_lower_info(c, v);
  cx_hlo_value *storage = cpu_lower_storage(c, op->operands[0]);
  if (g->outputs[0] != v || s->elsewhere[v->number] ||
      s->in_background[storage->number] || cpu_lower_is_constant(storage) ||
      cx_hlo_type_bytes(&v->type.tensor) < LEAST_BYTES ||
      !find_offset(op, &offset) ||
      !lives_until(c, s, storage, info->last_use)) {
    return false;
  }
  info->alias = op->operands[0];
  info->offset = offset;
  info->producer = NULL;
  cpu_lower_value *whole = cpu_lower_info(c, storage);
  if (whole->last_use < info->last_use) whole->last_use = info->last_use;
  whole->has_parts = true;
  return true;
}

static void replace(cpu_lower_state *c, const slicer *s,
                    cpu_lower_schedule *schedule)
{
  size_t n = 0;
  for (size_t i = 0; i < schedule->n_groups; i++) {
    cpu_lower_group *g = schedule->groups[i];
    if (becomes_part(c, s, g)) continue;
    schedule->groups[n++] = g;
    if (g->kind != CPU_LOWER_GROUP_CONTROL) continue;
    for (uint32_t r = 0; r < g->ops[0]->n_regions; r++) {
      replace(c, s, &g->regions[r]);
    }
  }
  schedule->n_groups = n;
}

// ---- who reads ----

// user: for each value.
static calx_status *note(cpu_lower_state *c, void *user, cx_hlo_value *v)
{
  (void)c;
  ((bool *)user)[v->number] = true;
  return NULL;
}

static calx_status *note_group(cpu_lower_state *c, void *user,
                               cpu_lower_group *g)
{
  const slicer *s = user;
  if (g->kind == CPU_LOWER_GROUP_KERNEL) return NULL;
  if (g->kind == CPU_LOWER_GROUP_COLLECTIVE && g->in_background) {
    CALX_TRY(cpu_lower_each_read(c, g, note, s->in_background));
  }
  return cpu_lower_each_read(c, g, note, s->elsewhere);
}

static void note_results(cpu_lower_state *c, slicer *s,
                         const cpu_lower_schedule *schedule)
{
  const cx_hlo_op *end = cx_hlo_terminator(schedule->block);
  for (uint32_t i = 0; end != NULL && i < end->n_operands; i++) {
    s->elsewhere[cpu_lower_storage(c, end->operands[i])->number] = true;
  }
  for (size_t i = 0; i < schedule->n_groups; i++) {
    const cpu_lower_group *g = schedule->groups[i];
    if (g->kind != CPU_LOWER_GROUP_CONTROL) continue;
    for (uint32_t r = 0; r < g->ops[0]->n_regions; r++) {
      note_results(c, s, &g->regions[r]);
    }
  }
}

calx_status *cpu_lower_slices(cpu_lower_state *c, cpu_lower_schedule *schedule)
{
  const cpu_run_program_info *info = &c->a.program->info;
  const size_t n = (size_t)c->module->n_values + 1;
  slicer s = { .elsewhere = CX_ARENA_ARRAY(&c->arena, bool, n),
               .in_background = CX_ARENA_ARRAY(&c->arena, bool, n),
               .overwritten =
                   CX_ARENA_ARRAY(&c->arena, bool, info->n_params + 1),
               .entry = schedule->block };
  if (s.elsewhere == NULL || s.in_background == NULL || s.overwritten == NULL) {
    return cx_out_of_memory();
  }
  for (size_t i = 0; i < info->n_results; i++) {
    if (info->alias[i] >= 0) s.overwritten[info->alias[i]] = true;
  }
  CALX_TRY(cpu_lower_each_group(c, schedule, note_group, &s));
  note_results(c, &s, schedule);
  replace(c, &s, schedule);
  return NULL;
}
