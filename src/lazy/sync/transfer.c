// lazy/sync/transfer: values between the host and the devices. A host tensor is
// a handle for this module's calls only.
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/metrics.h"
#include "base/trace.h"
#include "lazy/internal.h"

CX_METRIC(tensor_to_data, "TensorToData", CX_UNIT_NS);

static calx_status *check_host_shape(const char *call, calx_dtype dtype,
                                     const int64_t *dims, size_t rank,
                                     cx_graph_shape *out, size_t *out_bytes)
{
  int64_t elements;
  if (!cx_dtype_valid(dtype)) {
    return cx_error(CALX_INVALID_ARGUMENT, "%s: %d is no element type", call,
                    (int)dtype);
  }
  if (rank > CALX_MAX_RANK) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "%s: rank %zu, at most %d are possible", call, rank,
                    CALX_MAX_RANK);
  }
  *out = (cx_graph_shape){ .dtype = dtype, .rank = (uint32_t)rank };
  for (size_t i = 0; i < rank; i++) {
    out->dims[i] = dims[i];
    if (dims[i] < 0) {
      return cx_error(CALX_INVALID_ARGUMENT,
                      "%s: size %lld of dimension %zu is negative", call,
                      (long long)dims[i], i);
    }
  }
  if (!cx_dims_bytes(dtype, dims, rank, &elements, out_bytes)) {
    return cx_error(CALX_RESOURCE_EXHAUSTED, "%s: %s is too large", call,
                    cx_graph_shape_str(out));
  }
  return NULL;
}

static calx_status *check_data(const char *call, const void *data,
                               const cx_graph_shape *shape)
{
  if (data != NULL || cx_graph_shape_numel(shape) == 0) return NULL;
  return cx_error(CALX_INVALID_ARGUMENT, "%s: the data of %s is NULL", call,
                  cx_graph_shape_str(shape));
}

static calx_status *upload(calx_device *d, const cx_graph_shape *shape,
                           size_t bytes, const void *data, bool borrow,
                           void (*done)(void *user), void *user,
                           cx_graph_node **out_node)
{
  *out_node = NULL;
  cx_pjrt_shape wire;
  cx_pjrt_shape_make(shape->dtype, shape->dims, shape->rank, &wire);
  cx_pjrt_buffer *buffer;
  int64_t start = cx_now_ns();
  calx_status *status = cx_pjrt_buffer_from_host(
      d->client, (size_t)d->index, &wire, data,
      borrow ? CX_PJRT_BORROW : CX_PJRT_COPY, done, user, &buffer);
  if (status != NULL) return status;
  cx_lazy_count_upload(d, start, bytes);
  cx_metric_add(&tensor_to_data, (double)(cx_now_ns() - start));
  *out_node = cx_graph_node_data(shape, buffer);
  if (*out_node == NULL) return cx_out_of_memory();
  (*out_node)->site = *cx_site();
  return NULL;
}

calx_status *cx_lazy_upload(calx_device *device, calx_dtype dtype,
                            const int64_t *dims, size_t rank, const void *data,
                            bool borrow, void (*done)(void *user), void *user,
                            calx_tensor **out_tensor)
{
  *out_tensor = NULL;
  cx_graph_shape shape;
  size_t bytes;
  calx_status *status =
      check_host_shape("upload", dtype, dims, rank, &shape, &bytes);
  if (status == NULL) status = check_data("upload", data, &shape);
  if (status != NULL) {
    if (done != NULL) done(user);
    return status;
  }
  cx_graph_node *node;
  CALX_TRY(upload(device, &shape, bytes, data, borrow, done, user, &node));
  calx_tensor *t = cx_lazy_tensor_alloc(device);
  if (t == NULL) {
    cx_graph_node_release(node);
    return cx_out_of_memory();
  }
  atomic_store(&t->owners, 1);
  cx_lazy_tensor_settle(t, node);
  *out_tensor = t;
  return NULL;
}

calx_tensor *calx_tensor_from(const void *data, calx_dtype dtype,
                              calx_dims dims)
{
  calx_device *device = cx_lazy_device_or_current(NULL);
  if (device == NULL) {
    return cx_lazy_tensor_poison(cx_status_copy(calx_scope_error()));
  }
  calx_tensor *t = NULL;
  cx_graph_shape shape;
  size_t bytes;
  calx_status *status = check_host_shape("tensor_from", dtype, dims.values,
                                         dims.count, &shape, &bytes);
  if (status == NULL) status = check_data("tensor_from", data, &shape);
  if (status != NULL) return cx_lazy_tensor_poison(status);
  status = cx_lazy_upload(device, dtype, dims.values, dims.count, data, false,
                          NULL, NULL, &t);
  if (status != NULL) return cx_lazy_tensor_poison(status);
  atomic_store(&t->owners, 0);
  return cx_lazy_scope_give(t);
}

static calx_status *host_new(const char *call, const void *data,
                             calx_dtype dtype, calx_dims dims,
                             cx_lazy_host **out)
{
  *out = NULL;
  cx_graph_shape shape;
  size_t bytes;
  CALX_TRY(
      check_host_shape(call, dtype, dims.values, dims.count, &shape, &bytes));
  size_t line = 64, all;
  if (!cx_add_size(bytes, sizeof(cx_lazy_host) + line, &all)) {
    return cx_out_of_memory();
  }
  cx_lazy_host *host = cx_alloc(all);
  if (host == NULL) return cx_out_of_memory();
  *host = (cx_lazy_host){ .shape = shape, .bytes = bytes };
  uintptr_t end = (uintptr_t)(host + 1) + line - 1;
  host->data = (unsigned char *)(end - end % line);
  if (data != NULL && bytes != 0) memcpy(host->data, data, bytes);
  *out = host;
  return NULL;
}

static calx_tensor *host_tensor(const char *call, const void *data,
                                calx_dtype dtype, calx_dims dims)
{
  cx_lazy_host *host;
  calx_status *status = host_new(call, data, dtype, dims, &host);
  if (status != NULL) return cx_lazy_tensor_poison(status);
  calx_tensor *t = cx_lazy_tensor_alloc(NULL);
  if (t == NULL) {
    cx_free(host);
    cx_lazy_scope_pin(cx_out_of_memory());
    return cx_lazy_tensor_nil();
  }
  t->host = host;
  return cx_lazy_scope_give(t);
}

calx_tensor *calx_host_tensor(const void *data, calx_dtype dtype,
                              calx_dims shape)
{
  cx_graph_shape s;
  size_t bytes;
  calx_status *status = check_host_shape("host_tensor", dtype, shape.values,
                                         shape.count, &s, &bytes);
  if (status == NULL) status = check_data("host_tensor", data, &s);
  if (status != NULL) return cx_lazy_tensor_poison(status);
  return host_tensor("host_tensor", data, dtype, shape);
}

static calx_tensor *null_tensor(const char *call)
{
  return cx_lazy_tensor_poison(
      cx_error(CALX_INVALID_ARGUMENT, "%s: the tensor is NULL", call));
}

static calx_tensor *failed_read(calx_status *status)
{
  calx_tensor *t = cx_lazy_tensor_poison(status);
  cx_lazy_report_failed_read();
  return t;
}

calx_tensor *calx_cpu(calx_tensor *t)
{
  if (t == NULL) return null_tensor("cpu");
  if (t->host != NULL) return t;
  calx_status *pending = cx_lazy_tensor_compute(t);
  if (pending != NULL) return failed_read(pending);
  const cx_graph_shape *s = cx_lazy_tensor_shape(t);
  calx_tensor *h =
      host_tensor("cpu", NULL, s->dtype, calx_dims_of(s->dims, s->rank));
  if (h->host == NULL) return h;
  calx_status *status = calx_tensor_read(t, h->host->data, h->host->bytes);
  return status == NULL ? h : failed_read(status);
}

calx_tensor *calx_to(calx_tensor *t, calx_device *device)
{
  if (t == NULL) return null_tensor("to");
  device = cx_lazy_device_or_current(device);
  if (device == NULL) {
    return cx_lazy_tensor_poison(cx_status_copy(calx_scope_error()));
  }
  if (t->device == device && t->host == NULL) return t;
  if (t->host != NULL) {
    const cx_lazy_host *h = t->host;
    calx_tensor *moved;
    calx_status *status =
        cx_lazy_upload(device, h->shape.dtype, h->shape.dims, h->shape.rank,
                       h->data, false, NULL, NULL, &moved);
    if (status != NULL) return cx_lazy_tensor_poison(status);
    atomic_store(&moved->owners, 0);
    return cx_lazy_scope_give(moved);
  }
  cx_pjrt_buffer *copy = NULL;
  calx_status *status = cx_lazy_tensor_compute(t);
  if (status == NULL) {
    status = cx_pjrt_buffer_copy_to_device(t->node->out[t->out].buffer,
                                           (size_t)device->index, &copy);
  }
  if (status != NULL) return cx_lazy_tensor_poison(status);
  cx_graph_node *node = cx_graph_node_data(cx_lazy_tensor_shape(t), copy);
  if (node == NULL) return cx_lazy_tensor_poison(cx_out_of_memory());
  calx_tensor *moved = cx_lazy_tensor_of((cx_graph_value){ node, 0 }, device);
  cx_graph_node_release(node);
  return moved;
}
