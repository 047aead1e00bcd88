// data/loader: the consumer's side of an epoch.
//
// The order of a call of calx_loader_next(): first what is pending runs, so
// that the device is busy while the next batch is awaited; then the batch
// before is released; then errors; then the batch. A failure of any kind ends
// the epoch, so that a loop that retries makes progress and one that does not
// ends.
#include "data/loader.h"

#include <string.h>

#include "base/alloc.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "lazy/lazy.h"

#define MOST_WORKERS 1024
#define MOST_AHEAD 65536

static calx_loader no_memory;

calx_loader *cx_data_loader_empty(void)
{
  calx_loader *loader = cx_calloc(1, sizeof *loader);
  return loader != NULL ? loader : &no_memory;
}

calx_loader *cx_data_loader_fail(calx_loader *loader, calx_status *error)
{
  if (loader == &no_memory) {
    calx_status_free(error);
  } else {
    loader->error = error;
    if (error != NULL) loader->batches = 0;
  }
  return loader;
}

// ---- making one -------------------------------------------------------------

static calx_status *check_number(const char *what, int64_t value, int64_t most)
{
  if (value >= 0 && value <= most) return NULL;
  return cx_error(CALX_INVALID_ARGUMENT,
                  "loader: %s is %lld, it must be 0 (the default) to %lld",
                  what, (long long)value, (long long)most);
}

static calx_status *take_options(const calx_loader_options *given,
                                 calx_loader_options *out)
{
  CALX_TRY(cx_data_options("loader", given, out, sizeof *out));
  CALX_TRY(check_number("batch_size", out->batch_size, INT64_MAX));
  CALX_TRY(check_number("num_workers", out->num_workers, MOST_WORKERS));
  CALX_TRY(check_number("prefetch", out->prefetch, MOST_AHEAD));
  if (out->batch_size == 0) out->batch_size = 1;
  if (out->num_workers == 0) out->num_workers = 2;
  if (out->prefetch == 0) out->prefetch = 2;
  if (out->device == NULL) return calx_device_open("xla", &out->device);
  return NULL;
}

static int64_t least(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

static calx_status *set_up(calx_loader *loader, const calx_dataset *dataset,
                           const calx_loader_options *given)
{
  if (dataset == NULL) {
    return cx_error(CALX_INVALID_ARGUMENT, "loader: the dataset is NULL");
  }
  const calx_status *error = calx_dataset_error(dataset);
  if (error != NULL) return cx_status_copy(error);
  calx_loader_options o;
  CALX_TRY(take_options(given, &o));
  int64_t n = dataset->size;
  loader->batches = cx_data_batch_count(n, o.batch_size, o.drop_last);
  loader->n_fields = dataset->n_fields;
  loader->samples = n;
  loader->seed = o.seed;
  if (loader->batches == 0) return NULL;
  if (o.shuffle) {
    size_t bytes;
    if (!cx_mul_size((size_t)n, sizeof *loader->order, &bytes) ||
        (loader->order = cx_alloc(bytes)) == NULL) {
      return cx_out_of_memory();
    }
  }
  return cx_data_prefetch_open(
      &(cx_data_prefetch_options){
          .dataset = dataset,
          .device = o.device,
          .batch_size = least(o.batch_size, n),
          .workers = (int)least(o.num_workers, loader->batches),
          .ahead = (int)least(o.prefetch, loader->batches) },
      &loader->prefetch);
}

calx_loader *calx_loader_new_with(calx_dataset *dataset,
                                  const calx_loader_options *options)
{
  calx_loader *loader = cx_data_loader_empty();
  if (loader == &no_memory) return loader;
  return cx_data_loader_fail(loader, set_up(loader, dataset, options));
}

static void release_all(calx_tensor **tensors)
{
  for (size_t k = 0; k < CALX_MAX_FIELDS; k++) {
    calx_release(tensors[k]);
    tensors[k] = NULL;
  }
}

void calx_loader_free(calx_loader *loader)
{
  if (loader == NULL || loader == &no_memory) return;
  cx_data_prefetch_close(loader->prefetch);
  release_all(loader->handed);
  release_all(loader->fixed);
  calx_status_free(loader->error);
  cx_free(loader->order);
  cx_free(loader);
}

// ---- asking it --------------------------------------------------------------

const calx_status *calx_loader_error(const calx_loader *loader)
{
  return loader == &no_memory ? cx_out_of_memory() : loader->error;
}

int64_t calx_loader_size(const calx_loader *loader)
{
  return loader->batches;
}

// ---- epochs -----------------------------------------------------------------

void calx_loader_end_epoch(calx_loader *loader)
{
  if (!loader->running) return;
  if (loader->prefetch != NULL) cx_data_prefetch_stop(loader->prefetch);
  loader->running = false;
  loader->epoch++;
}

void calx_loader_set_epoch(calx_loader *loader, int64_t epoch)
{
  calx_loader_end_epoch(loader);
  if (loader != &no_memory) loader->epoch = epoch;
}

static void begin_epoch(calx_loader *loader)
{
  loader->running = true;
  loader->at = 0;
  if (loader->prefetch == NULL) return;
  if (loader->order != NULL) {
    cx_data_permutation(loader->seed, loader->epoch, loader->samples,
                        loader->order);
  }
  cx_data_prefetch_start(loader->prefetch, loader->order, loader->batches);
}

// ---- batches ----------------------------------------------------------------

static calx_status *make_batch(calx_loader *loader, calx_batch *out_batch)
{
  cx_data_made made = { .size = loader->fixed_size };
  if (loader->prefetch != NULL) {
    CALX_TRY(cx_data_prefetch_take(loader->prefetch, &made));
  } else {
    for (size_t k = 0; k < loader->n_fields; k++) {
      made.fields[k] = calx_retain(loader->fixed[k]);
    }
  }
  memcpy(loader->handed, made.fields, sizeof loader->handed);
  *out_batch = (calx_batch){ .data = made.fields[0],
                             .target = made.fields[1],
                             .n_fields = loader->n_fields,
                             .size = made.size,
                             .index = loader->at++ };
  memcpy(out_batch->fields, made.fields, sizeof out_batch->fields);
  return NULL;
}

bool calx_loader_next(calx_loader *loader, calx_batch *out_batch)
{
  *out_batch = (calx_batch){ 0 };
  cx_sync_pending();
  const calx_status *error = calx_loader_error(loader);
  if (error != NULL) {
    cx_scope_pin(cx_status_copy(error));
    return false;
  }
  release_all(loader->handed);
  if (cx_scope_failed()) {
    calx_loader_end_epoch(loader);
    return false;
  }
  if (!loader->running) begin_epoch(loader);
  if (loader->at == loader->batches) {
    calx_loader_end_epoch(loader);
    return false;
  }
  calx_status *status = make_batch(loader, out_batch);
  if (status == NULL) return true;
  calx_loader_end_epoch(loader);
  cx_scope_pin(status);
  return false;
}
