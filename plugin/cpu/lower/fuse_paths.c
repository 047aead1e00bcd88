// lower/fuse_paths: whether an operation can join a group, or would make the
// group wait for itself.
//
// A path leads from an operation to those that use its results, and from there
// to all results of their groups, since a group runs as a whole. So it may come
// back to operations that stand earlier in the block. Operations are placed
// from the last to the first; `spans` keeps a bound for those placed: from the
// operations of a span, which begins at `first` and ends where the next one
// begins, paths come back to `lowest` but not to anything before it. With it,
// a search leaves out all that lies behind the group for good. Spans are listed
// from the last to the first too.
#include "lower/fuse.h"

#define SEARCH_LIMIT 4000  // operations; then a path is assumed

static uint32_t lowest(const cpu_lower_fusion *f, uint32_t i)
{
  size_t from = 0;
  size_t to = f->n_spans;  // the first span that begins at i or before
  while (from < to) {
    size_t middle = from + (to - from) / 2;
    if (f->spans[middle].first <= i) {
      to = middle;
    } else {
      from = middle + 1;
    }
  }
  return to < f->n_spans ? f->spans[to].lowest : i;
}

static void visit(cpu_lower_fusion *f, uint32_t i, const cpu_lower_group *g,
                  size_t *depth)
{
  if (f->seen[i] == f->search || lowest(f, i) >= g->position) return;
  f->seen[i] = f->search;
  f->stack[(*depth)++] = i;
}

// Operation i and what else its groups write.
static void visit_groups(cpu_lower_fusion *f, uint32_t i,
                         const cpu_lower_group *g, size_t *depth)
{
  if (!cpu_lower_fuse_is_in(f, i, g)) visit(f, i, g, depth);
  for (const cpu_lower_member *m = f->members[i]; m != NULL; m = m->next) {
    cpu_lower_group *other = m->group;
    if (other == g || other->seen == f->search) continue;
    other->seen = f->search;
    for (size_t k = 0; k < other->n_ops; k++) {
      const cx_hlo_op *op = other->ops[k];
      if (op->n_results == 0) continue;
      const uint32_t position = cpu_lower_info(f->c, &op->results[0])->position;
      if (f->in_memory[position]) visit(f, position, g, depth);
    }
  }
}

bool cpu_lower_fuse_has_path(cpu_lower_fusion *f, uint32_t i,
                             const cpu_lower_group *g)
{
  size_t depth = 0;
  f->search++;
  f->stack[depth++] = i;
  for (size_t steps = 0; depth > 0; steps++) {
    const uint32_t at = f->stack[--depth];
    if (steps > SEARCH_LIMIT) return true;
    for (uint32_t k = f->uses->first[at]; k < f->uses->first[at + 1]; k++) {
      const uint32_t user = f->uses->uses[k].user;
      if (at != i && cpu_lower_fuse_is_in(f, user, g)) return true;
      visit_groups(f, user, g, &depth);
    }
  }
  return false;
}

void cpu_lower_fuse_note_placed(cpu_lower_fusion *f, uint32_t i)
{
  uint32_t last = i;  // of the operations of its groups
  for (const cpu_lower_member *m = f->members[i]; m != NULL; m = m->next) {
    if (m->group->position > last) last = m->group->position;
  }
  if (f->in_memory[i] && last != i) {
    // From the operations up to the last one of the groups, and from those with
    // paths to them, paths now come back to i. These are whole spans, because
    // the `lowest` of a span is not after its beginning.
    while (f->n_spans > 0 && (f->spans[f->n_spans - 1].first <= last ||
                              f->spans[f->n_spans - 1].lowest <= last)) {
      f->n_spans--;
    }
    f->spans[f->n_spans++] = (cpu_lower_span){ .first = i + 1, .lowest = i };
  }
  f->spans[f->n_spans++] = (cpu_lower_span){ .first = i, .lowest = i };
}
