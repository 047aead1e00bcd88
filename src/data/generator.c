// data/generator: a loader that returns the same batch again and again.
//
// It measures what a training loop costs without its data, and feeds examples
// that need none. Host tensors go to the device once, when it is made.
#include "base/alloc.h"
#include "base/dtype.h"
#include "base/status.h"
#include "data/loader.h"
#include "lazy/lazy.h"

static calx_status *begin(calx_loader *loader)
{
  cx_data_loader_begin(loader);
  return NULL;
}

static calx_status *take(calx_loader *loader, cx_data_made *out_made)
{
  *out_made = (cx_data_made){ .n_fields = loader->n_fields,
                              .size = loader->batch_size,
                              .passed = loader->batch_size };
  for (size_t k = 0; k < loader->n_fields; k++) {
    out_made->fields[k] = calx_retain(loader->fixed[k]);
  }
  return NULL;
}

static void end(calx_loader *loader)
{
  (void)loader;
}

static void free_parts(calx_loader *loader)
{
  cx_data_loader_release(loader->fixed);
}

const cx_data_kind cx_data_generator = { begin, take, end, free_parts };

// ---- making one -------------------------------------------------------------

// The loader's own handle of a tensor on a device.
static calx_status *take_tensor(const char *what, calx_tensor *tensor,
                                calx_device *device, calx_tensor **out_tensor)
{
  const calx_status *error = calx_tensor_error(tensor);
  if (error != NULL) {
    return cx_error(calx_status_code(error), "sample generator: the %s: %s",
                    what, calx_status_message(error));
  }
  calx_dims shape = calx_tensor_shape(tensor);
  if (shape.count == 0) {
    return cx_invalid(
        "sample generator: the %s has no batch dimension: its rank is 0", what);
  }
  if (!calx_tensor_is_host(tensor)) {
    *out_tensor = calx_retain(tensor);
    return NULL;
  }
  return cx_lazy_upload(device, calx_tensor_dtype(tensor), shape.values,
                        shape.count, calx_host_data(tensor), false, NULL, NULL,
                        out_tensor);
}

static calx_status *set_up(calx_loader *loader, calx_tensor *data,
                           calx_tensor *target, int64_t count)
{
  if (count < 0) {
    return cx_invalid("sample generator: %lld batches", (long long)count);
  }
  if (data == NULL) {
    return cx_invalid("sample generator: data is NULL");
  }
  calx_device *device = calx_tensor_device(data);
  if (device == NULL && target != NULL) device = calx_tensor_device(target);
  if (device == NULL) CALX_TRY(calx_device_open("xla", &device));
  CALX_TRY(take_tensor("data", data, device, &loader->fixed[0]));
  loader->batch_size = calx_tensor_dim(data, 0);
  loader->n_fields = 1;
  if (target != NULL) {
    CALX_TRY(take_tensor("target", target, device, &loader->fixed[1]));
    loader->n_fields = 2;
    if (calx_tensor_dim(target, 0) != loader->batch_size) {
      return cx_invalid(
          "sample generator: a batch of %lld in data, of %lld in target",
          (long long)loader->batch_size, (long long)calx_tensor_dim(target, 0));
    }
  }
  int64_t size = loader->batch_size;
  if (size != 0 && count > INT64_MAX / size) {
    return cx_invalid("sample generator: %lld batches of %lld are too many",
                      (long long)count, (long long)size);
  }
  loader->samples = count * size;
  loader->batches = count;
  return NULL;
}

calx_loader *calx_sample_generator(calx_tensor *data, calx_tensor *target,
                                   int64_t count)
{
  calx_loader *loader = cx_data_loader_empty();
  if (calx_loader_error(loader) != NULL) return loader;
  loader->kind = &cx_data_generator;
  return cx_data_loader_fail(loader, set_up(loader, data, target, count));
}

// ---- on another device ------------------------------------------------------

static calx_status *move_tensor(calx_tensor *tensor, calx_device *device,
                                calx_tensor **out_tensor)
{
  if (calx_tensor_device(tensor) == device) {
    *out_tensor = calx_retain(tensor);
    return NULL;
  }
  calx_dims shape = calx_tensor_shape(tensor);
  calx_dtype dtype = calx_tensor_dtype(tensor);
  int64_t numel;
  size_t bytes;
  if (!cx_dims_bytes(dtype, shape.values, shape.count, &numel, &bytes)) {
    return cx_out_of_memory();
  }
  void *data = cx_alloc(bytes);
  if (data == NULL) return cx_out_of_memory();
  calx_status *status = calx_tensor_read(tensor, data, bytes);
  if (status == NULL) {
    status = cx_lazy_upload(device, dtype, shape.values, shape.count, data,
                            false, NULL, NULL, out_tensor);
  }
  cx_free(data);
  return status;
}

calx_status *cx_data_generator_copy(const calx_loader *from,
                                    calx_device *device, calx_loader *loader)
{
  if (device == NULL) CALX_TRY(calx_device_open("xla", &device));
  for (size_t k = 0; k < from->n_fields; k++) {
    CALX_TRY(move_tensor(from->fixed[k], device, &loader->fixed[k]));
  }
  return NULL;
}
