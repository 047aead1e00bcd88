// data/loader: the consumer's side of an epoch.
//
// The order of a call of calx_loader_next(): first what is pending runs, so
// that the device is busy while the next batch is awaited; then the batch
// before is released; then errors; then the batch. A failure of any kind ends
// the epoch, so that a loop that retries makes progress and one that does not
// ends.
//
// The kind of loader makes the batches; the epoch and the position in it are
// kept here, for all kinds.
#include "data/loader.h"

#include <string.h>

#include "base/alloc.h"
#include "lazy/lazy.h"

static calx_loader no_memory;

calx_loader *cx_data_loader_none(void)
{
  return &no_memory;
}

calx_loader *cx_data_loader_empty(void)
{
  calx_loader *loader = cx_calloc(1, sizeof *loader);
  if (loader == NULL) return &no_memory;
  loader->sampler = &loader->own;
  loader->per_execution = 1;
  return loader;
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

void cx_data_loader_release(calx_tensor **tensors)
{
  for (size_t k = 0; k < CALX_MAX_FIELDS; k++) {
    calx_release(tensors[k]);
    tensors[k] = NULL;
  }
}

// Ends the calling thread's deferral of syncs, if this loader began it.
static void end_deferral(const calx_loader *loader)
{
  if (loader->running && loader->per_execution > 1) cx_lazy_sync_defer(false);
}

void calx_loader_free(calx_loader *loader)
{
  if (loader == NULL || loader == &no_memory) return;
  end_deferral(loader);
  if (loader->kind != NULL) loader->kind->free(loader);
  cx_data_loader_release(loader->handed);
  cx_data_sharding_free(&loader->sharding);
  calx_status_free(loader->error);
  cx_free(loader);
}

// ---- asking it --------------------------------------------------------------

const calx_status *calx_loader_error(const calx_loader *loader)
{
  if (loader == NULL) return cx_absent(CX_ABSENT_LOADER);
  return loader == &no_memory ? cx_out_of_memory() : loader->error;
}

int64_t calx_loader_size(const calx_loader *loader)
{
  return loader != NULL ? loader->batches : 0;
}

calx_loader_position calx_loader_state(const calx_loader *loader)
{
  if (calx_loader_error(loader) != NULL) return (calx_loader_position){ 0 };
  return (calx_loader_position){ .epoch =
                                     loader->running
                                         ? loader->epoch
                                         : calx_sampler_epoch(loader->sampler),
                                 .samples = loader->done };
}

// ---- epochs -----------------------------------------------------------------

void calx_loader_end_epoch(calx_loader *loader)
{
  if (loader == NULL || !loader->running) return;
  loader->kind->end(loader);
  end_deferral(loader);
  loader->running = false;
  loader->done = 0;
  // If the caller has set another epoch meanwhile, that one comes next.
  int64_t epoch = loader->epoch;
  atomic_compare_exchange_strong(&loader->sampler->epoch, &epoch, epoch + 1);
}

void calx_loader_set_epoch(calx_loader *loader, int64_t epoch)
{
  if (calx_loader_error(loader) != NULL) return;
  calx_loader_end_epoch(loader);
  loader->done = 0;
  calx_sampler_set_epoch(loader->sampler, epoch);
}

calx_status *calx_loader_load_state(calx_loader *loader,
                                    calx_loader_position position)
{
  const calx_status *error = calx_loader_error(loader);
  if (error != NULL) return cx_status_copy(error);
  if (loader->parallel != NULL) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "loader: it is one of a parallel loader's: give the state "
                    "to the loader that the parallel loader is made of");
  }
  if (loader->batches < 0 && position.samples != 0) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "loader: an iterable dataset is read from its beginning: "
                    "it cannot go on at sample %lld of an epoch",
                    (long long)position.samples);
  }
  if (position.epoch < 0 || position.samples < 0 ||
      position.samples > loader->samples) {
    return cx_invalid(
        "loader: sample %lld of epoch %lld, an epoch has %lld samples",
        (long long)position.samples, (long long)position.epoch,
        (long long)loader->samples);
  }
  if (loader->batches >= 0) {
    CALX_TRY(cx_annotate(
        cx_data_sharding_check(loader, loader->samples - position.samples),
        "after sample %lld", (long long)position.samples));
  }
  calx_loader_set_epoch(loader, position.epoch);
  loader->done = position.samples;
  return NULL;
}

void cx_data_loader_begin(calx_loader *loader)
{
  int64_t size = loader->batch_size, done = loader->done;
  loader->epoch = calx_sampler_epoch(loader->sampler);
  if (loader->batches < 0 || loader->sampler->write_batches != NULL) {
    loader->at = 0;
    loader->left = loader->batches < 0 ? INT64_MAX : loader->batches;
    return;
  }
  loader->at = size != 0 ? done / size : 0;
  loader->left = size != 0 ? cx_data_batch_count(loader->samples - done, size,
                                                 loader->options.drop_last)
                           : loader->batches;
}

// ---- batches ----------------------------------------------------------------

// Names the fields, for the explanation of a recompilation.
static void name_fields(const calx_loader *loader, const cx_data_made *made)
{
  static const char *const parts[] = { "the batch's data", "the batch's target",
                                       "one of the batch's fields" };
  bool is_short =
      made->size < loader->batch_size && loader->left == 0 && loader->at > 0;
  for (size_t f = 0; f < made->n_fields; f++) {
    cx_lazy_tensor_set_batch(made->fields[f], parts[f < 2 ? f : 2], is_short);
  }
}

static void hand_out(calx_loader *loader, const cx_data_made *made,
                     calx_batch *out_batch)
{
  loader->left--;
  loader->since++;
  loader->done += made->passed;
  name_fields(loader, made);
  memcpy(loader->handed, made->fields, sizeof loader->handed);
  *out_batch = (calx_batch){ .data = made->fields[0],
                             .target = made->fields[1],
                             .n_fields = made->n_fields,
                             .size = made->size,
                             .index = loader->at++ };
  memcpy(out_batch->fields, made->fields, sizeof out_batch->fields);
  if (loader->per_execution > 1) cx_lazy_sync_defer(true);
}

// Runs what is pending after each `per_execution` batches, and where an epoch
// begins and ends.
static void sync_when_due(calx_loader *loader)
{
  if (loader->running && loader->left != 0 &&
      loader->since < loader->per_execution && !cx_lazy_scope_failed()) {
    return;
  }
  cx_lazy_sync_pending();
  if (loader != &no_memory) loader->since = 0;
}

static calx_status *make_batch(calx_loader *loader, calx_batch *out_batch)
{
  if (!loader->running) {
    loader->running = true;
    CALX_TRY(loader->kind->begin(loader));
  }
  cx_data_made made = { .over = true };
  if (loader->left != 0) CALX_TRY(loader->kind->take(loader, &made));
  if (!made.over) {
    hand_out(loader, &made, out_batch);
    return NULL;
  }
  if (loader->left != 0) cx_lazy_sync_pending();
  calx_loader_end_epoch(loader);
  return NULL;
}

bool calx_loader_next(calx_loader *loader, calx_batch *out_batch)
{
  if (loader == NULL || out_batch == NULL) {
    cx_lazy_scope_pin(cx_invalid("loader_next: %s is NULL",
                                 loader == NULL ? "the loader" : "the batch"));
    return false;
  }
  *out_batch = (calx_batch){ 0 };
  sync_when_due(loader);
  const calx_status *error = calx_loader_error(loader);
  if (error != NULL) {
    cx_lazy_scope_pin(cx_status_copy(error));
    return false;
  }
  cx_data_loader_release(loader->handed);
  calx_status *status = NULL;
  if (!cx_lazy_scope_failed()) {
    status = make_batch(loader, out_batch);
    if (status == NULL) return loader->running;
  }
  calx_loader_end_epoch(loader);
  cx_lazy_scope_pin(status);
  return false;
}
