// lower/uses: who in a block uses what the block's operations make, and what a
// unit reads.
#include <string.h>

#include "lower/plan.h"
#include "opt/edit.h"

// Calls `see` for each use of an operation's results by the block's others.
typedef void see_fn(cpu_lower_block_uses *u, uint32_t maker, cpu_lower_use use);

static void count_use(cpu_lower_block_uses *u, uint32_t maker,
                      cpu_lower_use use)
{
  (void)use;
  u->first[maker + 1]++;
}

static void note_use(cpu_lower_block_uses *u, uint32_t maker, cpu_lower_use use)
{
  u->uses[u->first[maker]++] = use;
}

static void see_value(const cpu_lower_planner *g, cpu_lower_block_uses *u,
                      const cx_hlo_block *block, const cx_hlo_value *v,
                      cpu_lower_use use, see_fn *see)
{
  if (v->op != NULL && v->op->block == block) {
    see(u, cx_graph_value(g, v)->op, use);
  }
}

static void see_regions(const cpu_lower_planner *g, cpu_lower_block_uses *u,
                        uint32_t user, see_fn *see)
{
  const cx_hlo_op *op = u->ops[user];
  const cx_hlo_op *at = cpu_opt_inner(op);
  for (; at != op; at = cpu_opt_next(at)) {
    for (uint32_t i = 0; i < at->n_operands; i++) {
      see_value(g, u, op->block, at->operands[i], (cpu_lower_use){ user, -1 },
                see);
    }
  }
}

static void see_all(const cpu_lower_planner *g, cpu_lower_block_uses *u,
                    const cx_hlo_block *block, see_fn *see)
{
  for (uint32_t i = 0; i < u->n_ops; i++) {
    const cx_hlo_op *op = u->ops[i];
    bool last = op == cx_hlo_terminator(block);
    for (uint32_t k = 0; k < op->n_operands; k++) {
      see_value(g, u, block, op->operands[k],
                (cpu_lower_use){ i, last ? -1 : (int32_t)k }, see);
    }
    see_regions(g, u, i, see);
  }
}

calx_status *cpu_lower_uses(cpu_lower_planner *g, cx_hlo_block *block,
                            cpu_lower_block_uses *out)
{
  size_t n = 0;
  for (cx_hlo_op *op = block->first; op != NULL; op = op->next) n++;
  cx_arena *arena = &g->l->arena;
  *out = (cpu_lower_block_uses){ .n_ops = n };
  out->ops = CX_ARENA_ARRAY(arena, cx_hlo_op *, n + 1);
  out->first = CX_ARENA_ARRAY(arena, uint32_t, n + 2);
  if (out->ops == NULL || out->first == NULL) return cx_out_of_memory();
  uint32_t i = 0;
  for (cx_hlo_op *op = block->first; op != NULL; op = op->next, i++) {
    out->ops[i] = op;
    for (uint32_t r = 0; r < op->n_results; r++) {
      cx_graph_value(g, &op->results[r])->op = i;
    }
  }
  see_all(g, out, block, count_use);
  for (size_t k = 0; k < n; k++) out->first[k + 1] += out->first[k];
  out->uses = CX_ARENA_ARRAY(arena, cpu_lower_use, out->first[n] + 1);
  if (out->uses == NULL) return cx_out_of_memory();
  see_all(g, out, block, note_use);
  // note_use moved each start to the next one's.
  memmove(out->first + 1, out->first, n * sizeof *out->first);
  out->first[0] = 0;
  return NULL;
}

// ---- what a unit reads ----

// Regions nest as deeply as the parser allows.
static bool is_inside(const cx_hlo_op *op, const cx_hlo_value *v)
{
  const cx_hlo_block *block = v->op != NULL ? v->op->block : v->block;
  while (block->region->op != NULL) {
    if (block->region->op == op) return true;
    block = block->region->op->block;
  }
  return false;
}

calx_status *cpu_lower_each_read(cpu_lower_planner *g, const cpu_lower_unit *u,
                                 cpu_lower_read_fn *fn, void *user)
{
  if (u->kind == CPU_LOWER_UNIT_END) return NULL;
  for (size_t i = 0; i < u->n_inputs; i++) {
    CALX_TRY(fn(g, user, cx_value_root(g, u->inputs[i])));
  }
  if (u->kind == CPU_LOWER_UNIT_CODE) return NULL;
  const cx_hlo_op *op = u->ops[0];
  for (uint32_t i = 0; i < op->n_operands; i++) {
    CALX_TRY(fn(g, user, cx_value_root(g, op->operands[i])));
  }
  const cx_hlo_op *at = cpu_opt_inner(op);
  for (; at != op; at = cpu_opt_next(at)) {
    for (uint32_t i = 0; i < at->n_operands; i++) {
      cx_hlo_value *root = cx_value_root(g, at->operands[i]);
      if (!is_inside(op, root)) CALX_TRY(fn(g, user, root));
    }
  }
  return NULL;
}
