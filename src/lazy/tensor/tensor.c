// lazy/tensor/tensor: handles. A handle has a value (a node's output), or a
// host copy, or a problem; never two of them.
#include "lazy/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/metrics.h"

CX_COUNTER(created, "CreateXlaTensor");
CX_COUNTER(destroyed, "DestroyXlaTensor");

long cx_lazy_tensor_live(void)
{
  return (long)(cx_counter_total(&created) - cx_counter_total(&destroyed));
}

// ---- problems ---------------------------------------------------------------

cx_lazy_problem *cx_lazy_problem_new(calx_status *status)
{
  cx_lazy_problem *p = cx_alloc(sizeof *p);
  if (p == NULL) {
    calx_status_free(status);
    return NULL;
  }
  atomic_init(&p->refs, 1);
  p->status = status;
  return p;
}

static void problem_retain(cx_lazy_problem *p)
{
  atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
}

void cx_lazy_problem_release(cx_lazy_problem *p)
{
  if (p == NULL) return;
  if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) == 1) {
    calx_status_free(p->status);
    cx_free(p);
  }
}

// The poison that needs no memory: shared, never counted, never freed.
static cx_lazy_problem nil_problem = { .refs = 1 };
static calx_tensor nil = { .refs = 1,
                           .flags = CX_LAZY_T_POISON,
                           .problem = &nil_problem };

static void nil_fill(void)
{
  nil_problem.status = cx_out_of_memory();
}

calx_tensor *cx_lazy_tensor_nil(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, nil_fill);
  return &nil;
}

// ---- life -------------------------------------------------------------------

calx_tensor *cx_lazy_tensor_alloc(calx_device *device)
{
  calx_tensor *t = cx_alloc(sizeof *t);
  if (t == NULL) return NULL;
  memset(t, 0, sizeof *t);
  atomic_init(&t->refs, 1);
  t->device = device;
  if (device != NULL) {
    t->serial =
        atomic_fetch_add_explicit(&device->serial, 1, memory_order_relaxed);
  }
  cx_counter_add(&created, 1);
  return t;
}

static void hold(cx_graph_node *node)
{
  atomic_fetch_add_explicit(&node->holders, 1, memory_order_relaxed);
}

static void unhold(cx_graph_node *node)
{
  if (node == NULL) return;
  atomic_fetch_sub_explicit(&node->holders, 1, memory_order_relaxed);
  cx_graph_node_release(node);
}

static void drop_contents(calx_tensor *t)
{
  unhold(t->node);
  unhold(t->base);
  cx_lazy_problem_release(t->problem);
  if (t->leaf != NULL) {
    if ((t->flags & CX_LAZY_T_BORROWED_LEAF) == 0) {
      atomic_store(&t->leaf->tensor, NULL);
    }
    cx_graph_leaf_release(t->leaf);
  }
  calx_release(t->grad);
  if (t->host != NULL && t->host->done != NULL) t->host->done(t->host->user);
  cx_free(t->host);
  t->node = t->base = NULL;
  t->problem = NULL;
  t->leaf = NULL;
  t->grad = NULL;
  t->host = NULL;
}

// ---- ends -------------------------------------------------------------------

// CALX_DEBUG=handles: the handle stays for ever, as a poisoned one that names
// its end. All of them hang together, so that leak checkers find them.
static _Atomic(calx_tensor *) quarantined;

static bool quarantine(calx_tensor *t)
{
  if (!cx_lazy_debug_on(CX_LAZY_DEBUG_HANDLES)) return false;
  const calx_site *at = cx_site();
  calx_status *why = cx_error_at(
      NULL, CALX_FAILED_PRECONDITION,
      "this handle's tensor was released before, near %s:%d: retain it, or "
      "use it inside its scope",
      cx_site_file(at), at->line);
  t->problem = cx_lazy_problem_new(why);
  t->flags = CX_LAZY_T_POISON | CX_LAZY_T_ENDED;
  if (t->problem == NULL) return false;
  t->next_ended = atomic_exchange(&quarantined, t);
  return true;
}

static bool is_last_reference(calx_tensor *t)
{
  return t != &nil &&
         atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1;
}

void cx_lazy_tensor_unref(calx_tensor *t)
{
  if (!is_last_reference(t)) return;
  drop_contents(t);
  cx_counter_add(&destroyed, 1);
  if (!quarantine(t)) cx_free(t);
}

void cx_lazy_tensor_end(calx_tensor *t)
{
  static cx_lazy_problem scope_ended = { .refs = 1, .status = &cx_scope_ended };
  if (!is_last_reference(t)) return;
  drop_contents(t);
  cx_counter_add(&destroyed, 1);
  if (quarantine(t)) return;
  t->problem = &scope_ended;
  t->flags = CX_LAZY_T_POISON | CX_LAZY_T_ENDED;
  t->next_ended = cx_lazy_self.ended;
  cx_lazy_self.ended = t;
}

void cx_lazy_tensors_forget_ended(void)
{
  for (calx_tensor *t = cx_lazy_self.ended, *next; t != NULL; t = next) {
    next = t->next_ended;
    cx_free(t);
  }
  cx_lazy_self.ended = NULL;
}

// ---- owners -----------------------------------------------------------------

calx_tensor *calx_retain(calx_tensor *t)
{
  if (t == NULL || t == &nil) return cx_lazy_tensor_nil();
  if ((t->flags & CX_LAZY_T_ENDED) != 0) {
    return calx_retain(cx_lazy_tensor_poison(
        cx_error(CALX_FAILED_PRECONDITION, "retain: %s",
                 calx_status_message(t->problem->status))));
  }
  atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
  if (atomic_fetch_add_explicit(&t->owners, 1, memory_order_acq_rel) == 0 &&
      t->device != NULL && cx_is_pending(t)) {
    cx_lock(&t->device->lock);
    bool added = cx_lazy_changed_add(t);
    if (!added) cx_lazy_tensor_revert(t, NULL);
    cx_unlock(&t->device->lock);
    if (!added) cx_lazy_scope_pin(cx_out_of_memory());
  }
  return t;
}

// Without owners a pending value is a temporary again. A release by somebody
// who is no owner is not counted, so that it cannot free the scope's tensor.
void calx_release(calx_tensor *t)
{
  if (t == NULL || t == &nil || (t->flags & CX_LAZY_T_ENDED) != 0) return;
  int owners = atomic_load_explicit(&t->owners, memory_order_acquire);
  if (owners == 0) return;
  if (atomic_fetch_sub_explicit(&t->owners, 1, memory_order_acq_rel) == 1 &&
      t->device != NULL) {
    cx_lock(&t->device->lock);
    cx_lazy_changed_remove(t);
    cx_unlock(&t->device->lock);
    cx_lazy_scope_unsettle(t);
  }
  cx_lazy_tensor_unref(t);
}

calx_tensor *calx_take(calx_tensor *t)
{
  t = calx_retain(t);
  if (t->scope != NULL) {
    cx_lazy_scope_remove(t);
    cx_lazy_tensor_unref(t);
  }
  return t;
}

// ---- making -----------------------------------------------------------------

calx_tensor *cx_lazy_tensor_of(cx_graph_value value, calx_device *device)
{
  calx_tensor *t = cx_lazy_tensor_alloc(device);
  if (t == NULL) {
    cx_lazy_scope_pin(cx_out_of_memory());
    return cx_lazy_tensor_nil();
  }
  cx_graph_node_retain(value.node);
  hold(value.node);
  t->node = value.node;
  t->out = value.out;
  return cx_lazy_scope_give(t);
}

calx_tensor *cx_lazy_tensor_detached(calx_tensor *t)
{
  calx_tensor *d =
      cx_lazy_tensor_of((cx_graph_value){ t->node, t->out }, t->device);
  if (d != &nil) d->flags |= CX_LAZY_T_DETACHED | (t->flags & CX_LAZY_T_WEAK);
  return d;
}

static calx_tensor *poison_with(cx_lazy_problem *problem)
{
  calx_tensor *t = cx_lazy_tensor_alloc(NULL);
  if (t == NULL) return cx_lazy_tensor_nil();
  problem_retain(problem);
  t->problem = problem;
  t->flags = CX_LAZY_T_POISON;
  return cx_lazy_scope_give(t);
}

calx_tensor *cx_lazy_tensor_poison(calx_status *status)
{
  cx_lazy_scope_pin(cx_status_copy(status));
  cx_lazy_problem *problem = cx_lazy_problem_new(status);
  if (problem == NULL) return cx_lazy_tensor_nil();
  calx_tensor *t = poison_with(problem);
  cx_lazy_problem_release(problem);
  return t;
}

// ---- state ------------------------------------------------------------------

void cx_lazy_tensor_mark(calx_tensor *t, uint32_t flag)
{
  if (t != &nil) t->flags |= flag;
}

void cx_lazy_tensor_set_model(calx_tensor *t, const char *model)
{
  if (t != &nil) t->model = model;
}

void cx_lazy_tensor_set_name(calx_tensor *t, const char *name)
{
  if (t != &nil) t->name = name;
}

void cx_lazy_tensor_set_batch(calx_tensor *t, const char *part, bool is_short)
{
  if (t == NULL || t == &nil || t->node == NULL) return;
  cx_graph_node *node = t->node;
  if ((cx_graph_node_flags(node) & CX_GRAPH_NODE_DATA) == 0) return;
  node->site = *cx_site();
  node->module = part;
  if (is_short) cx_graph_node_set_flags(node, CX_GRAPH_NODE_SHORT);
}

// ---- values -----------------------------------------------------------------

bool cx_lazy_changed_add(calx_tensor *t)
{
  calx_device *d = t->device;
  if (t->changed_at != 0) return true;
  if (!cx_grow(&d->changed, &d->changed_capacity, d->n_changed + 1,
               sizeof *d->changed)) {
    return false;
  }
  d->changed[d->n_changed++] = t;
  t->changed_at = (uint32_t)d->n_changed;
  return true;
}

void cx_lazy_changed_remove(calx_tensor *t)
{
  calx_device *d = t->device;
  if (t->changed_at == 0) return;
  calx_tensor *last = d->changed[--d->n_changed];
  d->changed[t->changed_at - 1] = last;
  last->changed_at = t->changed_at;
  t->changed_at = 0;
}

static void set_flag(calx_tensor *t, uint32_t flag, bool on)
{
  t->flags = on ? t->flags | flag : t->flags & ~flag;
}

void cx_lazy_tensor_set_value(calx_tensor *t, const calx_tensor *from)
{
  if (t == &nil) return;
  cx_graph_value value = { from->node, from->out };
  calx_device *d = t->device;
  bool durable = cx_is_durable(t);
  cx_lock(&d->lock);
  // What a sync would not know of must not happen.
  if (durable && !cx_lazy_changed_add(t)) {
    cx_unlock(&d->lock);
    cx_lazy_scope_pin(cx_out_of_memory());
    return;
  }
  if (durable) cx_lazy_self.steps = d;
  cx_graph_node_retain(value.node);
  hold(value.node);
  cx_graph_node *old = t->node;
  if (t->base == NULL && old != NULL &&
      ((cx_graph_node_flags(old) & CX_GRAPH_NODE_DATA) != 0 ||
       (t->flags & CX_LAZY_T_KEEP_INITIAL) != 0)) {
    t->base = old;
    t->base_out = t->out;
    set_flag(t, CX_LAZY_T_BASE_DETACHED, (t->flags & CX_LAZY_T_DETACHED) != 0);
    old = NULL;
  }
  t->node = value.node;
  t->out = value.out;
  bool cut = !cx_lazy_grad_mode() || (from->flags & CX_LAZY_T_DETACHED) != 0;
  set_flag(t, CX_LAZY_T_DETACHED, cut);
  set_flag(t, CX_LAZY_T_CONSUMED, false);
  cx_unlock(&d->lock);
  cx_lazy_scope_unsettle(t);
  unhold(old);
}

void cx_lazy_tensor_settle(calx_tensor *t, cx_graph_node *node)
{
  hold(node);
  unhold(t->node);
  unhold(t->base);
  t->base = NULL;
  t->node = node;
  t->out = 0;
}

static void set_problem(calx_tensor *t, uint32_t flag, cx_lazy_problem *why)
{
  unhold(t->node);
  t->node = NULL;
  if (why == NULL) why = cx_lazy_tensor_nil()->problem;
  problem_retain(why);
  cx_lazy_problem_release(t->problem);
  t->problem = why;
  t->flags |= flag;
}

void cx_lazy_tensor_revert(calx_tensor *t, cx_lazy_problem *why)
{
  if (t->base == NULL) {
    bool keeps = (t->flags & CX_LAZY_T_KEEP_INITIAL) != 0;
    if (cx_is_of_this_step(t) && !keeps) set_problem(t, CX_LAZY_T_POISON, why);
    return;
  }
  unhold(t->node);
  t->node = t->base;
  t->out = t->base_out;
  t->base = NULL;
  set_flag(t, CX_LAZY_T_DETACHED, (t->flags & CX_LAZY_T_BASE_DETACHED) != 0);
}

void cx_lazy_tensor_expire(calx_tensor *t, cx_lazy_problem *why)
{
  set_problem(t, CX_LAZY_T_EXPIRED, why);
}

// ---- gradients --------------------------------------------------------------

cx_graph_leaf *cx_lazy_tensor_leaf(calx_tensor *t)
{
  if (t == &nil || t->leaf != NULL) return t->leaf;
  t->leaf = cx_alloc(sizeof *t->leaf);
  if (t->leaf == NULL) {
    cx_lazy_scope_pin(cx_out_of_memory());
    return NULL;
  }
  atomic_init(&t->leaf->refs, 1);
  atomic_init(&t->leaf->tensor, t);
  t->leaf->extra = NULL;
  return t->leaf;
}

void cx_lazy_tensor_set_requires_grad(calx_tensor *t, bool on)
{
  if (t == &nil) return;
  if (!on) {
    t->flags &= ~(uint32_t)CX_LAZY_T_REQUIRES_GRAD;
  } else if (cx_lazy_tensor_leaf(t) != NULL) {
    t->flags |= CX_LAZY_T_REQUIRES_GRAD;
  }
}

void cx_lazy_tensor_set_grad(calx_tensor *t, calx_tensor *grad)
{
  calx_tensor *old = t->grad;
  t->grad = grad;
  calx_release(old);
}
