// data/fill: see fill.h.
#include "data/fill.h"

#include <string.h>

#include "base/alloc.h"
#include "data/collate.h"
#include "data/epoch.h"
#include "data/random.h"

struct cx_data_filler {
  cx_data_fill_options options;
  cx_data_block_cache *blocks;
  cx_data_iteration *iterations;  // (workers) of an iterable dataset
  atomic_int n_over;              // iterators that are at their ends
};

// ---- one sample -------------------------------------------------------------

// A dataset may use the library without a scope of its own, so an error in the
// worker's root scope is the sample's error.
static calx_status *with_scope(calx_status *status)
{
  calx_status *pinned = calx_scope_take_error();
  if (status == NULL) return pinned;
  calx_status_free(pinned);
  return status;
}

static void sample_at(const calx_dataset *dataset, const cx_data_block *block,
                      int64_t i, void **out_fields)
{
  for (size_t f = 0; f < dataset->n_fields; f++) {
    out_fields[f] =
        (char *)block->fields[f] + (size_t)i * dataset->field_bytes[f];
  }
}

// ---- samples by number ------------------------------------------------------

static int64_t first_position(const cx_data_filler *f, const cx_data_range *r,
                              int64_t k)
{
  return r->bounds != NULL ? r->bounds[k]
                           : r->first + k * f->options.batch_size;
}

static int64_t samples_in(const cx_data_filler *f, const cx_data_range *r,
                          int64_t k)
{
  if (r->bounds != NULL) return r->bounds[k + 1] - r->bounds[k];
  int64_t left = r->end - first_position(f, r, k);
  return left < f->options.batch_size ? left : f->options.batch_size;
}

static calx_status *fill_elsewhere(cx_data_filler *f,
                                   const calx_worker_info *info,
                                   const cx_data_range *range, int64_t k,
                                   const atomic_bool *cut, cx_data_filled *b)
{
  cx_data_remote remote = { .info = *info,
                            .order = range->order,
                            .first = first_position(f, range, k),
                            .count = b->size,
                            .fields = b->blocks[0]->fields,
                            .cut = cut };
  calx_status *status = cx_data_processes_fill(f->options.processes, &remote);
  b->bad_sample = remote.bad_sample;
  return status;
}

static calx_status *fill_numbered(cx_data_filler *f,
                                  const calx_worker_info *info,
                                  const cx_data_range *range, int64_t k,
                                  const atomic_bool *cut, cx_data_filled *b)
{
  b->size = samples_in(f, range, k);
  if (f->options.processes != NULL) {
    return fill_elsewhere(f, info, range, k, cut, b);
  }
  for (int64_t i = 0; i < b->size && !atomic_load(cut); i++) {
    int64_t position = first_position(f, range, k) + i;
    int64_t index = range->order != NULL ? range->order[position] : position;
    void *fields[CALX_MAX_FIELDS];
    sample_at(f->options.dataset, b->blocks[0], i, fields);
    calx_status *status =
        with_scope(calx_dataset_get(f->options.dataset, index, fields));
    if (status != NULL) {
      b->bad_sample = index;
      return status;
    }
  }
  return NULL;
}

// ---- samples in order -------------------------------------------------------

// The next samples of the iterator, up to a batch.
static calx_status *read_next(cx_data_filler *f, const calx_worker_info *info,
                              const atomic_bool *cut, cx_data_filled *b,
                              bool *out_over)
{
  const calx_dataset *dataset = f->options.dataset;
  cx_data_iteration *iteration = &f->iterations[info->id];
  if (f->options.processes != NULL) {
    cx_data_remote remote = { .info = *info,
                              .owner = f,
                              .count = f->options.batch_size,
                              .fields = b->blocks[0]->fields,
                              .cut = cut };
    iteration->begun = true;
    CALX_TRY(cx_data_processes_fill(f->options.processes, &remote));
    b->size = remote.count;
    iteration->over = *out_over = remote.over;
    return NULL;
  }
  bool over = false;
  while (b->size < f->options.batch_size && !over && !atomic_load(cut)) {
    void *fields[CALX_MAX_FIELDS];
    sample_at(dataset, b->blocks[0], b->size, fields);
    CALX_TRY(with_scope(
        cx_data_iteration_next(dataset, iteration, info, fields, &over)));
    if (!over) b->size++;
  }
  *out_over = over;
  return NULL;
}

static calx_status *fill_next(cx_data_filler *f, const calx_worker_info *info,
                              const atomic_bool *cut, cx_data_filled *b)
{
  bool over = false;
  if (f->iterations[info->id].over) return NULL;
  CALX_TRY(read_next(f, info, cut, b, &over));
  if (over) atomic_fetch_add(&f->n_over, 1);
  if (over && f->options.drop_last && b->size < f->options.batch_size) {
    b->size = 0;
  }
  return NULL;
}

// ---- batches ----------------------------------------------------------------

static void describe_stacked(const calx_dataset *dataset, cx_data_filled *b)
{
  b->n_fields = dataset->n_fields;
  for (size_t f = 0; f < dataset->n_fields; f++) {
    b->data[f] = b->blocks[0]->fields[f];
    b->fields[f] = dataset->fields[f];
    calx_field *field = &b->fields[f];
    memmove(field->dims + 1, field->dims, field->rank * sizeof field->dims[0]);
    field->dims[0] = b->size;
    field->rank++;
  }
}

// Gives the batch's block up for those that the caller's function filled.
static calx_status *collate(cx_data_filler *f, cx_data_filled *b)
{
  const calx_dataset *dataset = f->options.dataset;
  calx_collated made = { 0 };
  calx_samples samples = { .count = b->size,
                           .n_fields = dataset->n_fields,
                           .fields = dataset->fields };
  for (size_t k = 0; k < dataset->n_fields; k++) {
    samples.data[k] = b->blocks[0]->fields[k];
  }
  calx_status *status =
      with_scope(f->options.collate(f->options.collate_user, &samples, &made));
  if (status == NULL && made.n_fields == 0) {
    status = cx_invalid("collate: the batch was given no field");
  }
  if (status != NULL) {
    cx_data_collated_clear(&made);
    return status;
  }
  cx_data_block_release(b->blocks[0]);
  b->n_fields = made.n_fields;
  for (size_t k = 0; k < made.n_fields; k++) {
    b->fields[k] = made.fields[k];
    b->blocks[k] = made.parts[k];
    b->data[k] = made.parts[k]->fields[0];
  }
  return NULL;
}

void cx_data_filled_drop(cx_data_filled *batch)
{
  for (size_t k = 0; k < CALX_MAX_FIELDS; k++) {
    if (batch->blocks[k] != NULL) cx_data_block_release(batch->blocks[k]);
    batch->blocks[k] = NULL;
  }
}

static calx_status *fill(cx_data_filler *f, const calx_worker_info *info,
                         const cx_data_range *range, int64_t k,
                         const atomic_bool *cut, cx_data_filled *b)
{
  CALX_TRY(f->iterations != NULL ? fill_next(f, info, cut, b)
                                 : fill_numbered(f, info, range, k, cut, b));
  if (b->size == 0 || atomic_load(cut)) return NULL;
  if (f->options.collate != NULL) return collate(f, b);
  describe_stacked(f->options.dataset, b);
  return NULL;
}

calx_status *cx_data_fill(cx_data_filler *f, int worker,
                          const cx_data_range *range, int64_t k,
                          const atomic_bool *cut, cx_data_filled *out)
{
  int workers = f->options.workers;
  int id = f->iterations != NULL ? (int)(k % workers) : worker;
  uint64_t epoch = cx_data_random_out(f->options.seed, (uint64_t)range->epoch);
  calx_worker_info info = { .id = id,
                            .num_workers = workers,
                            .seed = cx_data_random_out(epoch, (uint64_t)id),
                            .epoch = range->epoch };
  *out = (cx_data_filled){ .bad_sample = -1 };
  out->blocks[0] = cx_data_block_cache_take(f->blocks);
  if (out->blocks[0] == NULL) return cx_out_of_memory();
  cx_data_worker_set(&info);
  cx_data_epoch = range->epoch;
  calx_status *status = fill(f, &info, range, k, cut, out);
  cx_data_worker_set(NULL);
  if (status != NULL || out->n_fields == 0) cx_data_filled_drop(out);
  return status;
}

bool cx_data_filler_over(const cx_data_filler *f)
{
  return f->iterations != NULL && atomic_load(&f->n_over) == f->options.workers;
}

void cx_data_filler_stop(cx_data_filler *f)
{
  if (f->iterations == NULL) return;
  for (int w = 0; w < f->options.workers; w++) {
    cx_data_iteration *iteration = &f->iterations[w];
    if (f->options.processes == NULL) {
      cx_data_iteration_end(f->options.dataset, iteration);
    } else if (iteration->begun) {
      cx_data_processes_end(f->options.processes, w, f);
      *iteration = (cx_data_iteration){ 0 };
    }
  }
  atomic_store(&f->n_over, 0);
}

// ---- life -------------------------------------------------------------------

calx_status *cx_data_filler_open(const cx_data_fill_options *options,
                                 cx_data_filler **out)
{
  const calx_dataset *dataset = options->dataset;
  size_t bytes[CALX_MAX_FIELDS];
  cx_data_filler *f = *out = cx_calloc(1, sizeof *f);
  if (f == NULL) return cx_out_of_memory();
  f->options = *options;
  for (size_t k = 0; k < dataset->n_fields; k++) {
    bytes[k] = dataset->field_bytes[k] * (size_t)options->batch_size;
  }
  f->blocks = cx_data_block_cache_new(dataset->n_fields, bytes, options->keep);
  if (f->blocks == NULL) return cx_out_of_memory();
  if (dataset->iterable == NULL) return NULL;
  f->iterations = cx_calloc((size_t)options->workers, sizeof *f->iterations);
  return f->iterations != NULL ? NULL : cx_out_of_memory();
}

void cx_data_filler_close(cx_data_filler *f)
{
  if (f == NULL) return;
  cx_data_filler_stop(f);
  cx_data_block_cache_free(f->blocks);
  cx_free(f->iterations);
  cx_free(f);
}
