// lazy/tensor/flight: executions that were launched and are not known to be
// done. The list is bounded, so a program never runs further ahead than a few
// steps, and a failure is reported with the site of the sync that launched it.
#include "base/alloc.h"
#include "base/metrics.h"
#include "base/trace.h"
#include "lazy/internal.h"

CX_METRIC(wait_time, "DeviceLockWait", CX_UNIT_NS);

static size_t limit(void)
{
  int64_t n = cx_lazy_env_int("CALX_MAX_STEPS_IN_FLIGHT", 4);
  if (n < 1) return 1;
  return n < CX_LAZY_MAX_FLIGHTS ? (size_t)n : CX_LAZY_MAX_FLIGHTS;
}

static void flight_free(cx_lazy_flight *f)
{
  for (size_t i = 0; i < f->n_results; i++)
    cx_graph_node_release(f->results[i]);
  cx_free(f->results);
  cx_pjrt_event_free(f->done);
}

// The results' nodes are failed with the reason; returns a copy of it.
static calx_status *fail_results(cx_lazy_flight *f, calx_status *why)
{
  calx_status *reported = cx_error_at(
      &f->site, calx_status_code(why), "sync: the step failed: %s%s",
      cx_status_sentence(why),
      f->donated ? "; it had taken over the buffers of the tensors it updates, "
                   "so their values are lost: restore them from a save"
                 : "");
  for (size_t i = 0; i < f->n_results; i++) {
    cx_graph_node *node = f->results[i];
    if ((cx_graph_node_flags(node) & CX_GRAPH_NODE_FAILED) != 0) continue;
    node->error = cx_status_copy(reported);
    cx_graph_node_set_flags(node, CX_GRAPH_NODE_FAILED);
  }
  calx_status_free(why);
  return reported;
}

// Takes the oldest flight off. Under the device's lock.
static calx_status *land(calx_device *d)
{
  cx_lazy_flight f = d->flights[d->first_flight];
  d->first_flight = (d->first_flight + 1) % CX_LAZY_MAX_FLIGHTS;
  d->n_flights--;
  calx_status *status = cx_pjrt_event_await(f.done);
  if (status != NULL) status = fail_results(&f, status);
  flight_free(&f);
  return status;
}

// Under the device's lock.
static calx_status *poll(calx_device *d, bool all)
{
  calx_status *first = NULL;
  while (d->n_flights > 0 &&
         (all || cx_pjrt_event_is_ready(d->flights[d->first_flight].done))) {
    first = cx_status_first(first, land(d));
  }
  return first;
}

calx_status *cx_lazy_flight_poll(calx_device *d, bool all)
{
  cx_lock(&d->lock);
  calx_status *first = poll(d, all);
  cx_unlock(&d->lock);
  return first;
}

bool cx_lazy_flight_try(calx_device *d, calx_status **out_status)
{
  *out_status = NULL;
  if (!cx_trylock(&d->lock)) return true;
  *out_status = poll(d, false);
  bool left = d->n_flights > 0;
  cx_unlock(&d->lock);
  return left;
}

// Under the device's lock.
calx_status *cx_lazy_flight_room(calx_device *d)
{
  calx_status *first = NULL;
  size_t most = limit();
  int64_t start = cx_now_ns();
  bool waits = d->n_flights >= most;
  while (d->n_flights >= most) first = cx_status_first(first, land(d));
  cx_metric_add(&wait_time, (double)(cx_now_ns() - start));
  if (waits) cx_trace_ended(CX_SPAN_WAIT, d->index, start, 0, NULL);
  return first;
}

void cx_lazy_flight_add(calx_device *d, cx_pjrt_event *done,
                        const calx_site *site, bool donated,
                        cx_graph_node *const *results, size_t n)
{
  cx_lazy_flight f = { .done = done, .site = *site, .donated = donated };
  f.results = cx_alloc((n + 1) * sizeof *f.results);
  if (f.results == NULL) {
    // Without a record the failure could not find its step: wait for it here.
    calx_status *status = cx_pjrt_event_await(done);
    f.results = (cx_graph_node **)results;
    f.n_results = n;
    if (status != NULL) cx_lazy_scope_pin(fail_results(&f, status));
    cx_pjrt_event_free(done);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    cx_graph_node_retain(results[i]);
    f.results[i] = results[i];
  }
  f.n_results = n;
  size_t at = (d->first_flight + d->n_flights) % CX_LAZY_MAX_FLIGHTS;
  d->flights[at] = f;
  d->n_flights++;
}
