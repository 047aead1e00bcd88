// lazy/sync/step: what the files of a sync share.
#ifndef CX_LAZY_STEP_H
#define CX_LAZY_STEP_H

#include "lazy/internal.h"

// The tensors that get a value by this sync, in the order of the program's
// results. Scratch of the thread that syncs.
typedef struct cx_lazy_targets {
  calx_tensor **tensors;
  uint32_t *roots;  // which root each one is
  size_t n, capacity, roots_capacity;
} cx_lazy_targets;

// Fills `all`: the named tensors that want a value, the durable ones that
// changed, the pending temporaries of outer scopes. They have CX_LAZY_T_NAMED
// until the sync ends. False: no memory.
bool cx_lazy_targets_collect(calx_device *d, calx_tensor *const *named,
                             size_t count, cx_lazy_targets *all);
// Sets o->roots and all->roots. False: no memory.
bool cx_lazy_targets_roots(cx_graph_order *o, const cx_lazy_targets *all);

// Sets o->wanted by the marks of the tensors, of which a root's first counts.
void cx_lazy_targets_want(cx_graph_order *o, const cx_lazy_targets *all);

// Splits a computed value as its tensor is marked, where it is not. Under the
// device's lock. If that fails, the value stays as it is.
void cx_lazy_tensor_split_as_marked(calx_tensor *t);

// Sets order->aliases for the durable tensors among `tensors` whose base nobody
// else holds; roots[i] is the root of tensors[i]. Returns how many.
size_t cx_lazy_donate(cx_graph_order *order, calx_tensor *const *tensors,
                      const uint32_t *roots, size_t n);

// Under the device's lock: the list of changed tensors becomes empty.
void cx_lazy_forget_changed(calx_device *d);
// Under the device's lock: a failed step changes nothing, durable tensors go
// back to their last value.
void cx_lazy_revert_step(calx_device *d, const calx_site *site);

#endif
