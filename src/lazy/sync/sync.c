// lazy/sync/sync: the step's program. What is durable or named materialises,
// all else that is pending expires, and the tape ends.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/metrics.h"
#include "base/trace.h"
#include "lazy/sync/closure.h"
#include "lazy/sync/step.h"

CX_COUNTER(mark_step, "MarkStep");
CX_METRIC(alias_count, "InputOutputAliasCount", CX_UNIT_NONE);

// ---- after the launch -------------------------------------------------------

static uint32_t ended(const cx_graph_node *old)
{
  return (cx_graph_node_flags(old) & CX_GRAPH_NODE_GRAD) != 0
             ? CX_GRAPH_NODE_TAPE_ENDED
             : 0;
}

// The data node of root r, made once; tensors with equal values share it.
static cx_graph_node *result_node(const cx_graph_order *o, size_t r,
                                  cx_pjrt_buffer *buffer, const calx_site *site)
{
  const cx_graph_value *v = &o->roots[r];
  cx_graph_node *node = cx_graph_node_data(&v->node->out[v->out].shape, buffer);
  if (node == NULL) return NULL;
  cx_graph_node_set_flags(node, ended(v->node));
  node->site = *site;
  return node;
}

// The value that a read computed, without its history: one node for all
// tensors that have it, so that they are counted as its holders. False: no
// memory.
static bool make_cut(const calx_tensor *t, const calx_site *site)
{
  cx_graph_output *out = &t->node->out[t->out];
  if (out->data != NULL) return true;
  cx_pjrt_buffer_retain(out->buffer);
  out->data = cx_graph_node_data(&out->shape, out->buffer);
  if (out->data == NULL) return false;
  cx_graph_node_set_flags(out->data, ended(t->node));
  out->data->site = *site;
  return true;
}

static void cut(calx_tensor *t, const calx_site *site)
{
  if (!make_cut(t, site)) return;  // a temporary that keeps its history
  cx_graph_node *data = t->node->out[t->out].data;
  cx_graph_node_retain(data);
  cx_lazy_tensor_settle(t, data);
}

static bool make_cuts(const cx_lazy_targets *all, const calx_site *site)
{
  for (size_t i = 0; i < all->n; i++) {
    if (all->roots[i] == UINT32_MAX && !make_cut(all->tensors[i], site)) {
      return false;
    }
  }
  return true;
}

// Of a value that a read computed, and whose execution failed.
static calx_status *check_read(const cx_lazy_targets *all)
{
  for (size_t i = 0; i < all->n; i++) {
    const cx_graph_node *node = all->tensors[i]->node;
    if ((cx_graph_node_flags(node) & CX_GRAPH_NODE_FAILED) != 0) {
      return cx_status_copy(node->error);
    }
  }
  return NULL;
}

// A problem of the sync's place, made once for it: "BEFORE the sync at
// FILE:LINE: AFTER".
static cx_lazy_problem *problem_at(cx_lazy_site_problem *kept,
                                   const calx_site *site, const char *before,
                                   const char *after)
{
  if (kept->problem == NULL || kept->site.file != site->file ||
      kept->site.line != site->line) {
    cx_lazy_problem_release(kept->problem);
    kept->problem = cx_lazy_problem_new(
        cx_error_at(NULL, CALX_FAILED_PRECONDITION, "%s the sync at %s:%d: %s",
                    before, cx_site_file(site), site->line, after));
    kept->site = *site;
  }
  return kept->problem;
}

static cx_lazy_problem *expired_problem(calx_device *d, const calx_site *site)
{
  return problem_at(&d->expired, site, "the tensor expired at",
                    "name it in the sync, or calx_retain() it before");
}

static cx_lazy_problem *consumed_problem(calx_device *d, const calx_site *site)
{
  return problem_at(
      &d->consumed, site,
      "the gradient was consumed by an optimiser's step and expired at",
      "name it in the sync, set .keep_gradients, or call "
      "calx_optimizer_zero_grad before the next backward");
}

static void expire_rest(calx_device *d, const calx_site *site)
{
  calx_scope *s = cx_lazy_self.top;
  for (size_t i = s != NULL ? s->settled : 0; s != NULL && i < s->count; i++) {
    calx_tensor *t = s->tensors[i];
    if (t->device != d || t->node == NULL ||
        (cx_graph_node_flags(t->node) & CX_GRAPH_NODE_DATA) != 0) {
      continue;
    }
    if (cx_is_computed(t->node))
      cut(t, site);
    else
      cx_lazy_tensor_expire(t, expired_problem(d, site));
  }
  for (size_t i = 0; i < d->n_changed; i++) {
    calx_tensor *t = d->changed[i];
    if (t->node == NULL || (t->flags & CX_LAZY_T_CONSUMED) == 0 ||
        (cx_graph_node_flags(t->node) & CX_GRAPH_NODE_DATA) != 0) {
      continue;
    }
    cx_lazy_tensor_expire(t, consumed_problem(d, site));
  }
}

static void unname(const cx_lazy_targets *all)
{
  for (size_t i = 0; i < all->n; i++) {
    all->tensors[i]->flags &= ~(uint32_t)CX_LAZY_T_NAMED;
  }
}

// ---- the launch -------------------------------------------------------------

static void report_read_twice(const calx_device *d, const cx_graph_order *o)
{
  size_t again = 0;
  for (size_t i = 0; i < o->n_nodes; i++) {
    again += (cx_graph_node_flags(o->nodes[i]) & CX_GRAPH_NODE_READ) != 0;
  }
  if (again == 0) return;
  const calx_site *at = &d->read_site;
  cx_log_once_per_site(
      "read",
      "%s:%d reads a tensor before the sync: %zu ops of the step "
      "run twice; read it after the sync that names it",
      cx_site_file(at), at->line, again);
}

typedef struct sync_step {
  calx_device *device;
  cx_lazy_targets all;
  cx_pjrt_buffer **buffers;  // of the roots
  cx_graph_node **nodes;     // the results' data nodes
  size_t n_nodes;
  cx_lazy_run run;
} sync_step;

static calx_status *launch(sync_step *s)
{
  cx_graph_order *o = &s->device->order;
  if (!cx_graph_order_walk(o) || !cx_graph_order_shard(o, s->device->sharded)) {
    return cx_out_of_memory();
  }
  if (s->device->sharded) cx_lazy_targets_want(o, &s->all);
  size_t donated = 0;
  s->run.any_donation = false;
  if (!cx_lazy_eager()) {
    donated = cx_lazy_donate(o, s->all.tensors, s->all.roots, s->all.n);
    s->run.any_donation = donated != 0;
  }
  s->run.train = (o->flags & CX_GRAPH_NODE_TRAIN) != 0;
  report_read_twice(s->device, o);
  s->buffers = cx_calloc(o->n_roots + 1, sizeof *s->buffers);
  s->nodes = cx_calloc(o->n_roots + 1, sizeof *s->nodes);
  if (s->buffers == NULL || s->nodes == NULL) return cx_out_of_memory();
  // What comes after the launch must not fail: the records are made before it.
  for (size_t r = 0; r < o->n_roots; r++) {
    s->nodes[r] = result_node(o, r, NULL, &s->run.site);
    if (s->nodes[r] == NULL) return cx_out_of_memory();
    s->n_nodes++;
  }
  cx_pjrt_event *done = NULL;
  CALX_TRY(cx_lazy_run_order(&s->run, s->buffers, &done));
  for (size_t r = 0; r < o->n_roots; r++) {
    s->nodes[r]->out[0].buffer = s->buffers[r];
  }
  if (donated != 0) cx_metric_add(&alias_count, (double)donated);
  cx_lazy_flight_add(s->device, done, &s->run.site, donated != 0, s->nodes,
                     o->n_roots);
  return NULL;
}

static void settle_all(sync_step *s)
{
  for (size_t i = 0; i < s->all.n; i++) {
    calx_tensor *t = s->all.tensors[i];
    uint32_t r = s->all.roots[i];
    if (r == UINT32_MAX) {
      cut(t, &s->run.site);
    } else {
      cx_graph_node_retain(s->nodes[r]);
      cx_lazy_tensor_settle(t, s->nodes[r]);
    }
  }
}

// Tensors that got another materialised value by assignment are settled as they
// are: their last value is no longer wanted. No program has split such a value.
static void settle_assigned(calx_device *d)
{
  for (size_t i = 0; i < d->n_changed; i++) {
    calx_tensor *t = d->changed[i];
    if (t->node != NULL && t->base != NULL && cx_is_computed(t->node)) {
      cx_graph_node_retain(t->node);
      cx_lazy_tensor_settle(t, t->node);
    }
    if (d->sharded) cx_lazy_tensor_split_as_marked(t);
  }
}

static calx_status *sync_locked(sync_step *s, calx_tensor *const *named,
                                size_t count)
{
  calx_device *d = s->device;
  calx_status *status = cx_lazy_flight_room(d);
  if (status == NULL && !cx_lazy_targets_collect(d, named, count, &s->all)) {
    status = cx_out_of_memory();
  }
  if (status == NULL) status = check_read(&s->all);
  if (status == NULL && (!cx_lazy_targets_roots(&d->order, &s->all) ||
                         !make_cuts(&s->all, &s->run.site))) {
    status = cx_out_of_memory();
  }
  if (status == NULL && d->order.n_roots != 0) status = launch(s);
  if (status != NULL) {
    unname(&s->all);
    cx_lazy_revert_step(d, &s->run.site);
    return status;
  }
  settle_all(s);
  settle_assigned(d);
  unname(&s->all);
  expire_rest(d, &s->run.site);
  cx_lazy_forget_changed(d);
  cx_lazy_scopes_settle();
  return NULL;
}

static void step_free(sync_step *s)
{
  for (size_t r = 0; r < s->n_nodes; r++) cx_graph_node_release(s->nodes[r]);
  cx_free(s->nodes);
  cx_free(s->buffers);
  cx_free(s->all.tensors);
  cx_free(s->all.roots);
}

static void sync_device(calx_device *d, calx_tensor *const *named, size_t count)
{
  sync_step s = { .device = d };
  s.run = (cx_lazy_run){
    .device = d, .order = &d->order, .is_sync = true, .site = *cx_site()
  };
  cx_log_hold_begin();
  cx_lock(&d->lock);
  calx_status *status = sync_locked(&s, named, count);
  cx_unlock(&d->lock);
  cx_log_hold_end();
  step_free(&s);
  cx_lazy_self.recorded = 0;
  cx_lazy_scope_pin(status);
}

static bool anything_pending(calx_device *d)
{
  bool any = false;
  cx_lock(&d->lock);
  for (size_t i = 0; i < d->n_changed && !any; i++) {
    any = (d->changed[i]->flags & CX_LAZY_T_CONSUMED) == 0 &&
          cx_is_pending(d->changed[i]);
  }
  cx_unlock(&d->lock);
  cx_lazy_scopes_rescan();
  for (calx_scope *s = cx_lazy_self.unsettled; s != NULL && !any;
       s = s->next_unsettled) {
    for (size_t i = s->settled; i < s->count && !any; i++) {
      any = s->tensors[i]->device == d && cx_is_pending(s->tensors[i]);
    }
  }
  return any;
}

// CALX_DEBUG=nan: a named tensor that holds NaN is an error at once.
static void check_nan(calx_tensor *const *named, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    calx_tensor *t = named[i];
    if (t == NULL || t->node == NULL || cx_lazy_scope_failed()) continue;
    const cx_graph_shape *s = cx_lazy_tensor_shape(t);
    size_t size = calx_dtype_size(s->dtype);
    size_t n = (size_t)cx_graph_shape_numel(s);
    unsigned char *data = cx_alloc(n * size);
    calx_status *status =
        data == NULL ? cx_out_of_memory() : calx_tensor_read(t, data, n * size);
    for (size_t k = 0; status == NULL && k < n; k++) {
      double v = cx_load_double(s->dtype, data + k * size);
      if (v == v) continue;
      status = cx_error(CALX_FAILED_PRECONDITION,
                        "sync: element %zu of named tensor %zu, %s, is NaN", k,
                        i, cx_graph_shape_str(s));
    }
    cx_free(data);
    cx_lazy_scope_pin(status);
  }
}

// ---- public -----------------------------------------------------------------

static calx_status *check_named(const calx_device *d, calx_tensor *const *named,
                                size_t count)
{
  for (size_t i = 0; i < count; i++) {
    const calx_tensor *t = named[i];
    if (t == NULL) continue;
    CALX_TRY(cx_lazy_tensor_usable(t, "sync", (uint32_t)i));
    if (t->device == d) continue;
    return cx_invalid(
        "sync: operand %zu is on %s, the calling thread's device is %s: see "
        "calx_device_set_current",
        i, t->device->name, d->name);
  }
  return NULL;
}

// A region of a profile ends before the step does.
static calx_status *check_regions(void)
{
  const char *open = cx_trace_region_name();
  if (open == NULL) return NULL;
  return cx_error(CALX_FAILED_PRECONDITION,
                  "sync: Expecting scope to be empty but it is %s: end the "
                  "region with calx_trace_end before the sync",
                  open);
}

void calx_sync_n(calx_tensor *const *named, size_t count)
{
  calx_device *d = cx_lazy_device_or_current(NULL);
  if (d == NULL) return;
  cx_lazy_self.steps = d;
  cx_lazy_scope_pin(cx_lazy_flight_poll(d, false));
  if (!cx_lazy_scope_failed()) cx_lazy_scope_pin(check_regions());
  if (!cx_lazy_scope_failed()) cx_lazy_scope_pin(check_named(d, named, count));
  if (cx_lazy_scope_failed()) {
    cx_lazy_drop_step(d);
    cx_lazy_closures_run(d);  // which drops them
    return;
  }
  cx_counter_add(&mark_step, 1);
  int64_t start = cx_trace_start();
  sync_device(d, named, count);
  cx_trace_ended(CX_SPAN_SYNC, d->index, start, 0, cx_site());
  if (cx_trace_wanted(CX_TRACE_STEPS)) cx_trace_emit_step(d->index);
  if (cx_lazy_debug_on(CX_LAZY_DEBUG_NAN)) check_nan(named, count);
  cx_lazy_closures_run(d);
}

void cx_lazy_sync_pending(void)
{
  calx_device *d =
      cx_lazy_self.device != NULL ? cx_lazy_self.device : cx_lazy_device_at(0);
  if (d == NULL || !anything_pending(d)) return;
  cx_trace_cause before = cx_trace_set_cause(CX_CAUSE_LOADER);
  calx_sync_n(NULL, 0);
  cx_trace_set_cause(before);
}
