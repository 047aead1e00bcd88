// lazy/run/launch: one execution of a compiled program. Those of all ranks
// together are collective_launch.c's, and not compared by CALX_DEBUG=donation.
#include <string.h>

#include "base/alloc.h"
#include "base/metrics.h"
#include "base/trace.h"
#include "lazy/run/program.h"

CX_METRIC(to_device_time, "TransferToDeviceTime", CX_UNIT_NS);
CX_METRIC(outbound_data, "OutboundData", CX_UNIT_BYTES);
CX_METRIC(execute_time, "ExecuteTime", CX_UNIT_NS);
CX_METRIC(numbers_time, "IrValueTensorToXlaData", CX_UNIT_NS);
CX_COUNTER(executions, "ExecuteComputation");
CX_METRIC(replicated_time, "ExecuteReplicatedTime", CX_UNIT_NS);
CX_COUNTER(replicated, "ExecuteReplicated");

void cx_lazy_count_upload(const calx_device *d, int64_t start, size_t bytes)
{
  cx_metric_add(&to_device_time, (double)(cx_now_ns() - start));
  cx_metric_add(&outbound_data, (double)bytes);
  cx_trace_ended(CX_SPAN_UPLOAD, d->index, start, (int64_t)bytes, cx_site());
}

calx_status *cx_lazy_buffer_from_host(const calx_device *d,
                                      const cx_pjrt_shape *shape,
                                      const cx_spmd_placement *placement,
                                      const void *data, cx_pjrt_upload mode,
                                      void (*done)(void *user), void *user,
                                      cx_pjrt_buffer **out)
{
  if (!d->sharded) {
    return cx_pjrt_buffer_from_host(d->client, (size_t)d->index, shape, data,
                                    mode, done, user, out);
  }
  return cx_pjrt_sharded_from_host(d->client, shape, placement, data, mode,
                                   done, user, out);
}

calx_status *cx_lazy_upload_words(calx_device *d, const uint32_t *words,
                                  size_t n, cx_pjrt_buffer **out)
{
  cx_pjrt_shape shape;
  const int64_t count = (int64_t)n;
  cx_pjrt_shape_make(CALX_U32, &count, 1, &shape);
  int64_t start = cx_now_ns();
  CALX_TRY(cx_lazy_buffer_from_host(d, &shape, NULL, words, CX_PJRT_COPY, NULL,
                                    NULL, out));
  cx_lazy_count_upload(d, start, n * sizeof *words);
  cx_metric_add(&numbers_time, (double)(cx_now_ns() - start));
  return NULL;
}

typedef struct timing {
  int64_t start;
  int device;
  bool together;
} timing;

static void on_done(void *user, calx_status *status)
{
  timing *t = user;
  double ns = (double)(cx_now_ns() - t->start);
  cx_metric_add(&execute_time, ns);
  if (t->together) cx_metric_add(&replicated_time, ns);
  cx_trace_ended(CX_SPAN_EXECUTE, t->device, t->start, 0, NULL);
  calx_status_free(status);  // the flight reports it
  cx_free(t);
}

// ExecuteTime is launch to completion; a record that cannot be made only loses
// the sample.
static void time_it(cx_pjrt_event *done, const timing *t)
{
  timing *record = cx_alloc(sizeof *record);
  if (record == NULL) return;
  *record = *t;
  calx_status *status = cx_pjrt_event_on_ready(done, on_done, record);
  if (status != NULL) {
    cx_free(record);
    calx_status_free(status);
  }
}

void cx_lazy_launch_count(cx_pjrt_event *done, int64_t start, int device,
                          bool together)
{
  cx_counter_add(&executions, 1);
  if (together) cx_counter_add(&replicated, 1);
  if (done != NULL) time_it(done, &(timing){ start, device, together });
}

static calx_status *execute_on(const cx_lazy_execution *p,
                               cx_pjrt_buffer **args, cx_pjrt_buffer **out,
                               cx_pjrt_event **out_done)
{
  if (cx_pjrt_executable_is_sharded(p->executable)) {
    return cx_pjrt_execute_sharded(p->executable, args, p->n_args, out,
                                   out_done);
  }
  return cx_pjrt_execute(p->executable, (size_t)p->run->device->index, args,
                         p->n_args, out, out_done);
}

static calx_status *execute(cx_lazy_execution *p)
{
  int64_t start = cx_now_ns();
  int device = p->run->device->index;
  CALX_TRY(execute_on(p, p->args, p->out, p->out_done));
  cx_lazy_launch_count(*p->out_done, start, device, false);
  return NULL;
}

// ---- CALX_DEBUG=donation ----------------------------------------------------

static calx_status *host_copy(cx_pjrt_buffer *b, char **out, size_t *out_size)
{
  *out = NULL;
  CALX_TRY(cx_pjrt_buffer_host_size(b, out_size));
  *out = cx_alloc(*out_size);
  if (*out == NULL) return cx_out_of_memory();
  return cx_pjrt_buffer_to_host(b, *out, *out_size);
}

static calx_status *compare(const cx_lazy_run *run, cx_pjrt_buffer *a,
                            cx_pjrt_buffer *b, size_t which)
{
  char *x = NULL, *y = NULL;
  size_t n = 0, m = 0;
  calx_status *status = host_copy(a, &x, &n);
  if (status == NULL) status = host_copy(b, &y, &m);
  if (status == NULL && (n != m || memcmp(x, y, n) != 0)) {
    status = cx_error_at(&run->site, CALX_INTERNAL,
                         "sync: result %zu differs when its input is updated "
                         "in place (CALX_DEBUG=donation)",
                         which);
  }
  cx_free(x);
  cx_free(y);
  return status;
}

// Copies of the donated arguments, the others as they are; all are references.
static calx_status *copy_args(const cx_lazy_execution *p,
                              cx_pjrt_buffer **copies)
{
  const cx_graph_order *o = p->run->order;
  const calx_device *d = p->run->device;
  for (size_t i = 0; i < p->n_args; i++) {
    if (i >= o->n_params || o->aliases[i] == 0) {
      cx_pjrt_buffer_retain(p->args[i]);
      copies[i] = p->args[i];
      continue;
    }
    char *data;
    size_t size;
    calx_status *status = host_copy(p->args[i], &data, &size);
    if (status == NULL) {
      status =
          cx_lazy_buffer_from_host(d, cx_pjrt_buffer_shape(p->args[i]),
                                   cx_pjrt_buffer_placement(p->args[i]), data,
                                   CX_PJRT_COPY, NULL, NULL, &copies[i]);
    }
    cx_free(data);
    CALX_TRY(status);
  }
  return NULL;
}

// Runs the program on copies of what it would overwrite.
static calx_status *execute_on_copies(const cx_lazy_execution *p,
                                      cx_pjrt_buffer **copies,
                                      cx_pjrt_buffer **results)
{
  cx_pjrt_event *done = NULL;
  CALX_TRY(copy_args(p, copies));
  calx_status *status = execute_on(p, copies, results, &done);
  if (status == NULL && done != NULL) status = cx_pjrt_event_await(done);
  cx_pjrt_event_free(done);
  return status;
}

// Executes, and compares the results with those on copies.
static calx_status *execute_and_compare(cx_lazy_execution *p,
                                        cx_pjrt_buffer *const *results)
{
  size_t n = p->run->order->n_roots;
  calx_status *status = NULL;
  CALX_TRY(execute(p));
  for (size_t r = 0; status == NULL && r < n; r++) {
    status = compare(p->run, p->out[r], results[r], r);
  }
  if (status == NULL) return NULL;
  for (size_t r = 0; r < n; r++) {
    cx_pjrt_buffer_release(p->out[r]);
    p->out[r] = NULL;
  }
  cx_pjrt_event_free(*p->out_done);
  *p->out_done = NULL;
  return status;
}

static calx_status *execute_checked(cx_lazy_execution *p)
{
  size_t n = p->n_args + p->run->order->n_roots;
  cx_pjrt_buffer **copies = cx_calloc(n + 1, sizeof *copies);
  if (copies == NULL) return cx_out_of_memory();
  cx_pjrt_buffer **results = copies + p->n_args;
  calx_status *status = execute_on_copies(p, copies, results);
  if (status == NULL) status = execute_and_compare(p, results);
  for (size_t i = 0; i < n; i++) cx_pjrt_buffer_release(copies[i]);
  cx_free(copies);
  return status;
}

calx_status *cx_lazy_launch(cx_lazy_execution *p)
{
  bool checks =
      p->run->any_donation && cx_lazy_debug_on(CX_LAZY_DEBUG_DONATION);
  return checks ? execute_checked(p) : execute(p);
}
