// lower/lifetimes: when each group runs, in ticks of one clock, and when each
// value is used for the last time.
#include "lower/lower.h"

static calx_status *extend_read(cpu_lower_state *c, void *user, cx_hlo_value *v)
{
  const int64_t *time = user;
  cpu_lower_value *info = cpu_lower_info(c, v);
  if (info->producer != NULL && info->producer->begin == 0) {
    return cx_error(CALX_INTERNAL, "lower: groups that wait for each other");
  }
  if (info->last_use < *time) info->last_use = *time;
  return NULL;
}

// What the group reads is needed until g->end, and what it writes is there
// until then at least.
static calx_status *extend_group(cpu_lower_state *c, cpu_lower_group *g)
{
  for (size_t i = 0; i < g->n_outputs; i++) {
    cpu_lower_value *info = cpu_lower_info(c, g->outputs[i]);
    if (info->last_use < g->end) info->last_use = g->end;
  }
  return cpu_lower_each_read(c, g, extend_read, &g->end);
}

static calx_status *note_read_in_background(cpu_lower_state *c, void *user,
                                            cx_hlo_value *v)
{
  const int64_t *begin = user;
  cpu_lower_value *info = cpu_lower_info(c, v);
  if (info->last_use > *begin) info->read_in_background = true;
  return NULL;
}

// An operand that a region uses is needed until the region has run for the last
// time; that of a collective in background, until the collective is done.
calx_status *cpu_lower_lifetimes(cpu_lower_state *c,
                                 cpu_lower_schedule *schedule)
{
  for (size_t i = 0; i < schedule->n_groups; i++) {
    cpu_lower_group *g = schedule->groups[i];
    g->begin = g->end = ++c->clock;
    if (g->kind == CPU_LOWER_GROUP_CONTROL) {
      for (uint32_t r = 0; r < g->ops[0]->n_regions; r++) {
        CALX_TRY(cpu_lower_lifetimes(c, &g->regions[r]));
      }
      g->end = ++c->clock;
    }
    CALX_TRY(extend_group(c, g));
    if (g->kind == CPU_LOWER_GROUP_DONE) {
      cpu_lower_group *collective = g->collective;
      CALX_TRY(cpu_lower_each_read(c, collective, note_read_in_background,
                                   &collective->begin));
      collective->end = g->end;
      CALX_TRY(extend_group(c, collective));
    }
  }
  int64_t end = ++c->clock;
  const cx_hlo_op *last = cx_hlo_terminator(schedule->block);
  for (uint32_t i = 0; last != NULL && i < last->n_operands; i++) {
    CALX_TRY(extend_read(c, &end, cpu_lower_storage(c, last->operands[i])));
  }
  return NULL;
}
