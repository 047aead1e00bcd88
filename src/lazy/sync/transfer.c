// lazy/sync/transfer: values between the host and the devices. A host tensor is
// a handle for this module's calls only.
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/metrics.h"
#include "base/trace.h"
#include "lazy/internal.h"

CX_METRIC(tensor_to_data, "TensorToData", CX_UNIT_NS);

// Checks what the program gives as a tensor's content, and sets its shape.
static calx_status *check_content(const char *call, const void *data,
                                  calx_dtype dtype, calx_dims dims,
                                  cx_graph_shape *out, size_t *out_bytes)
{
  int64_t elements;
  if (!cx_dtype_valid(dtype)) {
    return cx_invalid("%s: %d is no element type", call, (int)dtype);
  }
  if (dims.count > CALX_MAX_RANK) {
    return cx_invalid("%s: rank %zu, at most %d are possible", call, dims.count,
                      CALX_MAX_RANK);
  }
  *out = (cx_graph_shape){ .dtype = dtype, .rank = (uint32_t)dims.count };
  for (size_t i = 0; i < dims.count; i++) {
    out->dims[i] = dims.values[i];
    if (out->dims[i] < 0) {
      return cx_invalid("%s: size %lld of dimension %zu is negative", call,
                        (long long)out->dims[i], i);
    }
  }
  if (!cx_dims_bytes(dtype, out->dims, out->rank, &elements, out_bytes)) {
    return cx_error(CALX_RESOURCE_EXHAUSTED, "%s: %s is too large", call,
                    cx_graph_shape_str(out));
  }
  if (data != NULL || elements == 0) return NULL;
  return cx_invalid("%s: the data of %s is NULL", call,
                    cx_graph_shape_str(out));
}

// done: NULL, or called once, on failure too. placement: NULL where the tensor
// is not marked.
static calx_status *upload(calx_device *d, const cx_graph_shape *shape,
                           const cx_spmd_placement *placement, size_t bytes,
                           const void *data, bool borrow,
                           void (*done)(void *user), void *user,
                           calx_tensor **out)
{
  cx_pjrt_shape wire;
  cx_pjrt_shape_make(shape->dtype, shape->dims, shape->rank, &wire);
  cx_pjrt_buffer *buffer;
  int64_t start = cx_now_ns();
  CALX_TRY(cx_lazy_buffer_from_host(d, &wire, placement, data,
                                    borrow ? CX_PJRT_BORROW : CX_PJRT_COPY,
                                    done, user, &buffer));
  cx_lazy_count_upload(d, start, bytes);
  cx_metric_add(&tensor_to_data, (double)(cx_now_ns() - start));
  cx_graph_node *node = cx_graph_node_data(shape, buffer);
  if (node == NULL) return cx_out_of_memory();
  node->site = *cx_site();
  calx_tensor *t = *out = cx_lazy_tensor_alloc(d);
  if (t == NULL) {
    cx_graph_node_release(node);
    return cx_out_of_memory();
  }
  cx_lazy_tensor_settle(t, node);
  cx_lazy_tensor_set_placement(t, placement);
  return NULL;
}

calx_status *cx_lazy_upload_split(calx_device *device,
                                  const cx_graph_shape *shape,
                                  const cx_spmd_placement *placement,
                                  const void *data, void (*done)(void *user),
                                  void *user, calx_tensor **out_tensor)
{
  const size_t bytes =
      (size_t)cx_graph_shape_numel(shape) * calx_dtype_size(shape->dtype);
  *out_tensor = NULL;
  CALX_TRY(upload(device, shape, placement, bytes, data, true, done, user,
                  out_tensor));
  atomic_store(&(*out_tensor)->owners, 1);
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
  calx_status *status = check_content("upload", data, dtype,
                                      calx_dims_of(dims, rank), &shape, &bytes);
  if (status != NULL) {
    if (done != NULL) done(user);
    return status;
  }
  CALX_TRY(upload(device, &shape, NULL, bytes, data, borrow, done, user,
                  out_tensor));
  atomic_store(&(*out_tensor)->owners, 1);
  return NULL;
}

// A copy of the data as a tensor of the current scope.
static calx_tensor *upload_copy(calx_device *device,
                                const cx_graph_shape *shape, size_t bytes,
                                const void *data)
{
  calx_tensor *t;
  calx_status *status =
      upload(device, shape, NULL, bytes, data, false, NULL, NULL, &t);
  return status == NULL ? cx_lazy_scope_give(t) : cx_lazy_tensor_poison(status);
}

static calx_tensor *no_device(void)
{
  return cx_lazy_tensor_poison(cx_status_copy(calx_scope_error()));
}

calx_tensor *calx_tensor_from(const void *data, calx_dtype dtype,
                              calx_dims dims)
{
  calx_device *device = cx_lazy_device_or_current(NULL);
  if (device == NULL) return no_device();
  cx_graph_shape shape;
  size_t bytes;
  calx_status *status =
      check_content("tensor_from", data, dtype, dims, &shape, &bytes);
  if (status != NULL) return cx_lazy_tensor_poison(status);
  return upload_copy(device, &shape, bytes, data);
}

// data: NULL where it is filled in later.
static calx_tensor *host_tensor(const cx_graph_shape *shape, size_t bytes,
                                const void *data)
{
  size_t line = 64, all;
  cx_lazy_host *host = cx_add_size(bytes, sizeof *host + line, &all)
                           ? cx_alloc(all)
                           : (cx_lazy_host *)NULL;
  calx_tensor *t = host != NULL ? cx_lazy_tensor_alloc(NULL) : NULL;
  if (t == NULL) {
    cx_free(host);
    return cx_lazy_tensor_poison(cx_out_of_memory());
  }
  *host = (cx_lazy_host){ .shape = *shape, .bytes = bytes };
  uintptr_t end = (uintptr_t)(host + 1) + line - 1;
  host->data = (unsigned char *)(end - end % line);
  if (data != NULL && bytes != 0) memcpy(host->data, data, bytes);
  t->host = host;
  return cx_lazy_scope_give(t);
}

calx_tensor *calx_host_tensor(const void *data, calx_dtype dtype,
                              calx_dims dims)
{
  cx_graph_shape shape;
  size_t bytes;
  calx_status *status =
      check_content("host_tensor", data, dtype, dims, &shape, &bytes);
  if (status != NULL) return cx_lazy_tensor_poison(status);
  return host_tensor(&shape, bytes, data);
}

static calx_tensor *null_tensor(const char *call)
{
  return cx_lazy_tensor_poison(cx_invalid("%s: the tensor is NULL", call));
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
  size_t bytes = (size_t)cx_graph_shape_numel(s) * calx_dtype_size(s->dtype);
  calx_tensor *h = host_tensor(s, bytes, NULL);
  if (h->host == NULL) return h;
  calx_status *status = calx_tensor_read(t, h->host->data, bytes);
  return status == NULL ? h : failed_read(status);
}

calx_tensor *calx_to(calx_tensor *t, calx_device *device)
{
  if (t == NULL) return null_tensor("to");
  device = cx_lazy_device_or_current(device);
  if (device == NULL) return no_device();
  if (t->device == device && t->host == NULL) return t;
  if (t->host != NULL) {
    return upload_copy(device, &t->host->shape, t->host->bytes, t->host->data);
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
