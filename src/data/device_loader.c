// data/device_loader: a loader's batches on another device, or for other
// depths. The new loader copies the description only: it has its own workers
// and order, and its own epochs unless the caller made the sampler.
#include "base/options.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "data/parallel.h"

#define MOST_UPLOADS 1024

calx_status *cx_data_device_options(const calx_device_loader_options *given,
                                    cx_data_depth *out_depth,
                                    int64_t *out_per_execution,
                                    calx_input_sharding *out_sharding)
{
  static const char whose[] = "device loader";
  calx_device_loader_options o;
  int64_t syncs, filled, uploaded, uploads;
  CALX_TRY(cx_options_take(whose, given, &o, sizeof o));
  CALX_TRY(cx_data_number(whose, "batches_per_execution",
                          o.batches_per_execution, 1, INT64_MAX, &syncs));
  CALX_TRY(cx_data_number(whose, "loader_prefetch_size", o.loader_prefetch_size,
                          16, CX_DATA_MOST_AHEAD, &filled));
  CALX_TRY(cx_data_number(whose, "device_prefetch_size", o.device_prefetch_size,
                          8, CX_DATA_MOST_AHEAD, &uploaded));
  CALX_TRY(cx_data_number(whose, "host_to_device_transfer_threads",
                          o.host_to_device_transfer_threads, 1, MOST_UPLOADS,
                          &uploads));
  *out_depth = (cx_data_depth){ (int)uploaded, (int)filled, (int)uploads };
  *out_per_execution = syncs;
  *out_sharding = o.input_sharding;
  return NULL;
}

calx_status *cx_data_loader_copy(const calx_loader *from, calx_loader *loader)
{
  if (from == NULL) {
    return cx_invalid("device loader: the loader is NULL");
  }
  const calx_status *error = calx_loader_error(from);
  if (error != NULL) return cx_status_copy(error);
  if (from->parallel != NULL) {
    return cx_invalid(
        "device loader: the loader is one of a parallel loader's, and is on "
        "its device");
  }
  loader->kind = from->kind;
  loader->batch_size = from->batch_size;
  loader->samples = from->samples;
  loader->batches = from->batches;
  loader->n_fields = from->n_fields;
  loader->dataset = from->dataset;
  loader->options = from->options;
  loader->done = from->done;
  loader->processes = cx_data_processes_hold(from->processes);
  CALX_TRY(cx_data_sharding_copy(&from->sharding, &loader->sharding));
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
  calx_input_sharding sharding;
  CALX_TRY(cx_data_device_options(given, &depth, &per_execution, &sharding));
  CALX_TRY(cx_data_loader_copy(from, loader));
  CALX_TRY(cx_data_loader_shard(loader, &sharding));
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

// ---- for the ranks of a trainer ---------------------------------------------

calx_loader *cx_data_loader_sampled(const calx_loader *from,
                                    calx_sampler *sampler)
{
  calx_loader *made = cx_data_loader_empty();
  if (calx_loader_error(made) != NULL) return made;
  calx_status *status = set_up(made, from, NULL, NULL);
  if (status == NULL && sampler != NULL) {
    status = cx_status_copy(calx_sampler_error(sampler));
    made->sampler = sampler;
    made->samples = sampler->count;
    made->batches = cx_data_batch_count(sampler->count, made->batch_size,
                                        made->options.drop_last);
    if (status == NULL) {
      status = cx_data_sharding_check(made, made->samples);
    }
  }
  return cx_data_loader_fail(made, status);
}

calx_status *cx_data_loader_set_batch_size(calx_loader *loader,
                                           int64_t batch_size)
{
  if (loader->kind != &cx_data_batches || loader->processes != NULL) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "loader: its batch size can't be changed: it has %s",
                    loader->processes != NULL
                        ? "worker processes, whose memory is that of a batch"
                        : "no dataset");
  }
  if (loader->sampler->write_batches != NULL) {
    return cx_invalid(
        "loader: its batch size can't be changed: a batch sampler decides it");
  }
  const int64_t before = loader->batch_size;
  loader->batch_size = batch_size;
  calx_status *status = cx_data_sharding_check(loader, loader->samples);
  if (status != NULL) {
    loader->batch_size = before;
    return status;
  }
  loader->options.batch_size = batch_size;
  if (loader->batches < 0) return NULL;  // an iterable dataset
  loader->batches = cx_data_batch_count(loader->samples, batch_size,
                                        loader->options.drop_last);
  return NULL;
}

uint64_t cx_data_loader_seed(const calx_loader *loader)
{
  return loader->options.seed;
}

bool cx_data_loader_is_shuffled(const calx_loader *loader)
{
  return loader->options.shuffle;
}

bool cx_data_loader_has_sampler(const calx_loader *loader)
{
  return loader->options.sampler != NULL ||
         loader->options.batch_sampler != NULL;
}

const calx_dataset *cx_data_loader_dataset(const calx_loader *loader)
{
  return loader->dataset;
}
