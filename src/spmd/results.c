// spmd/results: how the pass would split the results of a program.
#include "spmd/internal.h"
#include "spmd/spmd.h"

static bool make_tables(cx_spmd_state *s)
{
  const size_t n = s->n_values;
  s->want = CX_ARENA_ARRAY(&s->arena, cx_spmd_sharding, n);
  s->rules = CX_ARENA_ARRAY(&s->arena, const cx_spmd_rule *, n);
  return s->want != NULL && s->rules != NULL;
}

calx_status *cx_spmd_results(cx_hlo_module *m, uint32_t n_partitions,
                             cx_spmd_axes (*out)[CALX_MAX_RANK])
{
  cx_hlo_func *f = cx_hlo_entry(m);
  cx_spmd_state s = { .n_values = m->n_values + 1 };
  calx_status *status = cx_spmd_read_meshes(m, &s.arena, n_partitions, &s.mesh);
  if (status == NULL && !make_tables(&s)) status = cx_out_of_memory();
  if (status == NULL) status = cx_spmd_propagate(&s, f);
  const cx_hlo_op *end = f->body.first->last;
  for (uint32_t i = 0; i < end->n_operands && status == NULL; i++) {
    const cx_spmd_sharding *split = &s.want[end->operands[i]->number];
    for (size_t d = 0; d < CALX_MAX_RANK; d++) {
      out[i][d] = d < split->rank ? split->dims[d] : 0;
    }
  }
  cx_arena_free(&s.arena);
  return status;
}
