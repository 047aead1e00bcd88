// data/device_loader: a loader's batches on another device, or for other
// depths. What is given is only the description: the new loader has workers,
// an order and, where the sampler is not the caller's, epochs of its own.
#include "data/dataset.h"
#include "data/loader.h"
#include "data/parallel.h"

#define MOST_AHEAD 65536
#define MOST_UPLOADS 1024

static calx_status *check_number(const char *what, int64_t *value,
                                 int64_t otherwise, int64_t most)
{
  if (*value < 0 || *value > most) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "device loader: %s is %lld, it must be 0 (the default) to "
                    "%lld",
                    what, (long long)*value, (long long)most);
  }
  if (*value == 0) *value = otherwise;
  return NULL;
}

calx_status *cx_data_device_options(const calx_device_loader_options *given,
                                    cx_data_depth *out_depth,
                                    int64_t *out_per_execution)
{
  calx_device_loader_options o;
  CALX_TRY(cx_data_options("device loader", given, &o, sizeof o));
  int64_t syncs = o.batches_per_execution, filled = o.loader_prefetch_size;
  int64_t uploaded = o.device_prefetch_size;
  int64_t uploads = o.host_to_device_transfer_threads;
  CALX_TRY(check_number("batches_per_execution", &syncs, 1, INT64_MAX));
  CALX_TRY(check_number("loader_prefetch_size", &filled, 16, MOST_AHEAD));
  CALX_TRY(check_number("device_prefetch_size", &uploaded, 8, MOST_AHEAD));
  CALX_TRY(check_number("host_to_device_transfer_threads", &uploads, 1,
                        MOST_UPLOADS));
  *out_depth = (cx_data_depth){ (int)uploaded, (int)filled, (int)uploads };
  *out_per_execution = syncs;
  return NULL;
}

calx_status *cx_data_loader_copy(const calx_loader *from, calx_loader *loader)
{
  if (from == NULL) {
    return cx_error(CALX_INVALID_ARGUMENT, "device loader: the loader is NULL");
  }
  const calx_status *error = calx_loader_error(from);
  if (error != NULL) return cx_status_copy(error);
  if (from->parallel != NULL) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "device loader: the loader is one of a parallel loader's, "
                    "and is on its device");
  }
  loader->kind = from->kind;
  loader->batch_size = from->batch_size;
  loader->samples = from->samples;
  loader->batches = from->batches;
  loader->n_fields = from->n_fields;
  loader->dataset = from->dataset;
  loader->options = from->options;
  loader->done = from->done;
  const calx_sampler *s = from->sampler;
  if (s == &from->own) {
    cx_data_sampler_init(&loader->own, s->size, s->order == CX_DATA_RANDOM,
                         s->seed);
    calx_sampler_set_epoch(&loader->own, calx_sampler_epoch(s));
  } else {
    loader->sampler = from->sampler;
  }
  return NULL;
}

static calx_status *set_up(calx_loader *loader, const calx_loader *from,
                           calx_device *device,
                           const calx_device_loader_options *given)
{
  cx_data_depth depth;
  int64_t per_execution;
  CALX_TRY(cx_data_device_options(given, &depth, &per_execution));
  CALX_TRY(cx_data_loader_copy(from, loader));
  loader->depth = depth;
  loader->per_execution = per_execution;
  loader->options.device = device;
  if (loader->kind != &cx_data_generator) return NULL;
  return cx_data_generator_copy(from, device, loader);
}

calx_loader *calx_mp_device_loader_with(
    const calx_loader *loader, calx_device *device,
    const calx_device_loader_options *options)
{
  calx_loader *made = cx_data_loader_empty();
  if (calx_loader_error(made) != NULL) return made;
  return cx_data_loader_fail(made, set_up(made, loader, device, options));
}
