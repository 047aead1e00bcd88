// lazy/sync/roots: the tensors that a sync gives a value, and the values among
// them that are the program's results.
#include <stdlib.h>

#include "base/alloc.h"
#include "lazy/sync/step.h"

// Room for n targets more.
static bool reserve(cx_lazy_targets *all, size_t n)
{
  return cx_grow(&all->tensors, &all->capacity, all->n + n,
                 sizeof *all->tensors) &&
         cx_grow(&all->roots, &all->roots_capacity, all->n + n,
                 sizeof *all->roots);
}

static bool add_target(cx_lazy_targets *all, calx_tensor *t)
{
  if (all->n == all->capacity && !reserve(all, 1)) return false;
  all->tensors[all->n++] = t;
  t->flags |= CX_LAZY_T_NAMED;
  return true;
}

static int newest_first(const void *a, const void *b)
{
  const calx_tensor *x = *(calx_tensor *const *)a;
  const calx_tensor *y = *(calx_tensor *const *)b;
  return (x->serial < y->serial) - (x->serial > y->serial);
}

// The order must not depend on when a tensor was assigned: by creation. The
// newest first, so that a program makes the last layers' gradients first, as
// the backward pass does, and their sums over the ranks can begin early.
static void sort_changed(calx_device *d)
{
  bool sorted = true;
  for (size_t i = 1; i < d->n_changed; i++) {
    sorted &= d->changed[i - 1]->serial > d->changed[i]->serial;
  }
  if (sorted) return;
  qsort(d->changed, d->n_changed, sizeof(calx_tensor *), newest_first);
  for (size_t i = 0; i < d->n_changed; i++) {
    d->changed[i]->changed_at = (uint32_t)i + 1;
  }
}

static bool wants_value(const calx_tensor *t, const calx_device *d)
{
  return t->device == d && t->node != NULL &&
         (t->flags & CX_LAZY_T_NAMED) == 0 &&
         (cx_graph_node_flags(t->node) & CX_GRAPH_NODE_DATA) == 0;
}

static int oldest_first(const void *a, const void *b)
{
  return newest_first(b, a);
}

// Pending temporaries of the scopes around the current one, in an order that
// does not depend on when they were assigned.
static bool collect_outer(const calx_device *d, cx_lazy_targets *all)
{
  size_t first = all->n;
  cx_lazy_scopes_rescan();
  for (calx_scope *s = cx_lazy_self.unsettled; s != NULL;
       s = s->next_unsettled) {
    for (size_t i = s->settled; s != cx_lazy_self.top && i < s->count; i++) {
      if (wants_value(s->tensors[i], d) && !add_target(all, s->tensors[i])) {
        return false;
      }
    }
  }
  if (all->n == first) return true;
  qsort(all->tensors + first, all->n - first, sizeof(calx_tensor *),
        oldest_first);
  return true;
}

bool cx_lazy_targets_collect(calx_device *d, calx_tensor *const *named,
                             size_t count, cx_lazy_targets *all)
{
  if (!reserve(all, count + d->n_changed)) return false;
  for (size_t i = 0; i < count; i++) {
    if (named[i] != NULL && wants_value(named[i], d) &&
        !add_target(all, named[i])) {
      return false;
    }
  }
  sort_changed(d);
  for (size_t i = 0; i < d->n_changed; i++) {
    calx_tensor *t = d->changed[i];
    if ((t->flags & CX_LAZY_T_CONSUMED) == 0 && wants_value(t, d) &&
        !add_target(all, t)) {
      return false;
    }
  }
  return collect_outer(d, all);
}

void cx_lazy_targets_want(cx_graph_order *o, const cx_lazy_targets *all)
{
  for (size_t i = 0; i < all->n; i++) {
    const uint32_t r = all->roots[i];
    if (r != UINT32_MAX && o->wanted[r] == NULL) {
      o->wanted[r] = all->tensors[i]->placement;
    }
  }
}

// Distinct values become roots; those that a read computed need no program.
// Equal values are found by the node's mark; the stamps lie above all walks'.
bool cx_lazy_targets_roots(cx_graph_order *o, const cx_lazy_targets *all)
{
  o->n_roots = 0;
  if (!cx_grow(&o->roots, &o->roots_capacity, all->n + 1, sizeof *o->roots)) {
    return false;
  }
  static atomic_uint_fast64_t stamp = UINT64_C(1) << 62;
  uint64_t mine = atomic_fetch_add(&stamp, 1);
  for (size_t i = 0; i < all->n; i++) {
    const calx_tensor *t = all->tensors[i];
    if (cx_is_computed(t->node)) {
      all->roots[i] = UINT32_MAX;
      continue;
    }
    size_t r = o->n_roots;
    if (t->node->mark == mine) {
      for (r = t->node->index; r < o->n_roots; r++) {
        if (o->roots[r].node == t->node && o->roots[r].out == t->out) break;
      }
    } else {
      t->node->mark = mine;
      t->node->index = (uint32_t)r;
    }
    if (r == o->n_roots) o->roots[o->n_roots++] = cx_lazy_tensor_value(t);
    all->roots[i] = (uint32_t)r;
  }
  return true;
}
