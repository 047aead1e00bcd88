// lower/uses: in each block, which operations use the results of which others.
#include <string.h>

#include "lower/lower.h"
#include "opt/edit.h"

// Two walks call this for each use of an operation's results by another of the
// block: the first one counts, the second one writes.
typedef void add_use_fn(cpu_lower_use_list *b, uint32_t producer,
                        cpu_lower_use use);

static void count_use(cpu_lower_use_list *b, uint32_t producer,
                      cpu_lower_use use)
{
  (void)use;
  b->first[producer + 1]++;
}

static void write_use(cpu_lower_use_list *b, uint32_t producer,
                      cpu_lower_use use)
{
  b->uses[b->first[producer]++] = use;
}

static void visit_value(const cpu_lower_state *c, cpu_lower_use_list *b,
                        const cx_hlo_value *v, cpu_lower_use use,
                        add_use_fn *visit)
{
  if (v->op != NULL && v->op->block == b->ops[use.user]->block) {
    visit(b, cpu_lower_info(c, v)->position, use);
  }
}

static void visit_uses(const cpu_lower_state *c, cpu_lower_use_list *b,
                       add_use_fn *visit)
{
  for (uint32_t i = 0; i < b->n_ops; i++) {
    const cx_hlo_op *op = b->ops[i];
    const bool last = op == cx_hlo_terminator(op->block);
    for (uint32_t k = 0; k < op->n_operands; k++) {
      visit_value(c, b, op->operands[k],
                  (cpu_lower_use){ i, last ? -1 : (int32_t)k }, visit);
    }
    const cx_hlo_op *at = cpu_opt_inner(op);
    for (; at != op; at = cpu_opt_next(at)) {
      for (uint32_t k = 0; k < at->n_operands; k++) {
        visit_value(c, b, at->operands[k], (cpu_lower_use){ i, -1 }, visit);
      }
    }
  }
}

static calx_status *list_ops(cpu_lower_state *c, const cx_hlo_block *block,
                             cpu_lower_use_list *b)
{
  for (cx_hlo_op *op = block->first; op != NULL; op = op->next) b->n_ops++;
  b->ops = CX_ARENA_ARRAY(&c->arena, cx_hlo_op *, b->n_ops + 1);
  b->regions = CX_ARENA_ARRAY(&c->arena, cpu_lower_schedule *, b->n_ops + 1);
  b->first = CX_ARENA_ARRAY(&c->arena, uint32_t, b->n_ops + 2);
  if (b->ops == NULL || b->regions == NULL || b->first == NULL) {
    return cx_out_of_memory();
  }
  uint32_t i = 0;
  for (cx_hlo_op *op = block->first; op != NULL; op = op->next, i++) {
    b->ops[i] = op;
    for (uint32_t r = 0; r < op->n_results; r++) {
      cpu_lower_info(c, &op->results[r])->position = i;
    }
  }
  return NULL;
}

static calx_status *enter_regions(cpu_lower_state *c, cpu_lower_use_list *b)
{
  for (size_t i = 0; i < b->n_ops; i++) {
    const cx_hlo_op *op = b->ops[i];
    if (!cpu_opt_is_control(op)) continue;
    b->regions[i] =
        CX_ARENA_ARRAY(&c->arena, cpu_lower_schedule, op->n_regions);
    if (b->regions[i] == NULL) return cx_out_of_memory();
    for (uint32_t r = 0; r < op->n_regions; r++) {
      b->regions[i][r].block = op->regions[r].first;
      CALX_TRY(cpu_lower_uses(c, &b->regions[i][r]));
    }
  }
  return NULL;
}

calx_status *cpu_lower_uses(cpu_lower_state *c, cpu_lower_schedule *schedule)
{
  cpu_lower_use_list *b = &schedule->uses;
  CALX_TRY(list_ops(c, schedule->block, b));
  visit_uses(c, b, count_use);
  for (size_t i = 0; i < b->n_ops; i++) b->first[i + 1] += b->first[i];
  b->uses = CX_ARENA_ARRAY(&c->arena, cpu_lower_use, b->first[b->n_ops] + 1);
  if (b->uses == NULL) return cx_out_of_memory();
  visit_uses(c, b, write_use);
  // write_use moved each beginning to the next operation's.
  memmove(b->first + 1, b->first, b->n_ops * sizeof *b->first);
  b->first[0] = 0;
  return enter_regions(c, b);
}
