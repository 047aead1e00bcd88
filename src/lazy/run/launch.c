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

calx_status *cx_lazy_upload_words(calx_device *d, const cx_pjrt_shape *shape,
                                  const uint32_t *words, cx_pjrt_buffer **out)
{
  int64_t start = cx_now_ns();
  CALX_TRY(cx_pjrt_buffer_from_host(d->client, (size_t)d->index, shape, words,
                                    CX_PJRT_COPY, NULL, NULL, out));
  cx_lazy_count_upload(d, start, (size_t)shape->dims[0] * sizeof *words);
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

static calx_status *execute(cx_lazy_run *run, cx_pjrt_executable *executable,
                            cx_pjrt_buffer *const *args, size_t n_args,
                            cx_pjrt_buffer **out, cx_pjrt_event **out_done)
{
  int64_t start = cx_now_ns();
  calx_status *status = cx_pjrt_execute(executable, (size_t)run->device->index,
                                        args, n_args, out, out_done);
  if (status == NULL) {
    cx_lazy_launch_count(*out_done, start, run->device->index, false);
  }
  return status;
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
static calx_status *copy_args(const cx_lazy_run *run,
                              cx_pjrt_buffer *const *args, size_t n_args,
                              cx_pjrt_buffer **copies)
{
  for (size_t i = 0; i < n_args; i++) {
    const cx_graph_order *o = run->order;
    if (i >= o->n_params || o->aliases[i] == 0) {
      cx_pjrt_buffer_retain(args[i]);
      copies[i] = args[i];
      continue;
    }
    char *data;
    size_t size;
    calx_status *status = host_copy(args[i], &data, &size);
    if (status == NULL) {
      status = cx_pjrt_buffer_from_host(run->device->client,
                                        (size_t)run->device->index,
                                        cx_pjrt_buffer_shape(args[i]), data,
                                        CX_PJRT_COPY, NULL, NULL, &copies[i]);
    }
    cx_free(data);
    CALX_TRY(status);
  }
  return NULL;
}

static void drop_results(size_t n, cx_pjrt_buffer **out,
                         cx_pjrt_event **out_done)
{
  for (size_t r = 0; r < n; r++) {
    cx_pjrt_buffer_release(out[r]);
    out[r] = NULL;
  }
  cx_pjrt_event_free(*out_done);
  *out_done = NULL;
}

static calx_status *execute_checked(cx_lazy_run *run,
                                    cx_pjrt_executable *executable,
                                    cx_pjrt_buffer *const *args, size_t n_args,
                                    cx_pjrt_buffer **out,
                                    cx_pjrt_event **out_done)
{
  size_t n_out = run->order->n_roots;
  cx_pjrt_buffer **copies = cx_calloc(n_args + n_out + 1, sizeof *copies);
  if (copies == NULL) return cx_out_of_memory();
  cx_pjrt_buffer **again = copies + n_args;
  cx_pjrt_event *done = NULL;
  calx_status *status = copy_args(run, args, n_args, copies);
  if (status == NULL) {
    status = cx_pjrt_execute(executable, (size_t)run->device->index, copies,
                             n_args, again, &done);
  }
  if (status == NULL && done != NULL) status = cx_pjrt_event_await(done);
  cx_pjrt_event_free(done);
  if (status == NULL) {
    status = execute(run, executable, args, n_args, out, out_done);
  }
  bool launched = status == NULL;
  for (size_t r = 0; status == NULL && r < n_out; r++) {
    status = compare(run, out[r], again[r], r);
  }
  if (launched && status != NULL) drop_results(n_out, out, out_done);
  for (size_t i = 0; i < n_args + n_out; i++) cx_pjrt_buffer_release(copies[i]);
  cx_free(copies);
  return status;
}

calx_status *cx_lazy_launch(cx_lazy_run *run, cx_pjrt_executable *executable,
                            cx_pjrt_buffer *const *args, size_t n_args,
                            cx_pjrt_buffer **out, cx_pjrt_event **out_done)
{
  if (run->any_donation && cx_lazy_debug_on(CX_LAZY_DEBUG_DONATION)) {
    return execute_checked(run, executable, args, n_args, out, out_done);
  }
  return execute(run, executable, args, n_args, out, out_done);
}
