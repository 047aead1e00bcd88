// data/prefetch: a ring of batches between workers and consumers.
//
//       all lanes        uploaded       filled        being filled
//       took them
//   ───────────────┬───────────────┬────────────┬──────────────────┬────────
//               n_taken        n_uploaded                        n_begun
//
// A worker's job is either to upload the next batch, where it is filled and
// fewer than `ahead` uploaded ones of a lane wait, or to fill the next one.
// Uploads begin in order; batches are filled in any order, each by one worker,
// and at most `ahead` + `filled` of a lane are under way. So memory is bounded,
// and the order of batches does not depend on the threads. The others wait for
// the slowest lane, as they would at the next collective.
//
// Locks: everything but the batch that a worker is busy with is guarded by
// `lock`, which is never held while the dataset or the device is called. A
// batch in state FILLING or UPLOADING belongs to the worker that set it.
#include "data/prefetch.h"

#include "base/alloc.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "base/trace.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "data/sampler.h"
#include "lazy/lazy.h"

CX_METRIC(wait_time, "LoaderWait", CX_UNIT_NS);

typedef enum batch_state {
  EMPTY,
  FILLING,
  FILLED,
  UPLOADING,
  READY,
  TAKEN,  // by its lane, not yet by all of the group
  FAILED
} batch_state;

typedef struct batch {
  batch_state state;
  cx_data_filled filled;  // FILLED; FAILED: the bad sample
  cx_data_made made;      // its size; READY: the tensors
  calx_status *error;     // FAILED
} batch;

struct cx_data_prefetch {
  cx_data_prefetch_options options;
  cx_data_filler *filler;
  cx_thread *workers;
  int n_started;  // workers
  batch *ring;    // (lanes (ahead + filled)), batch k at k modulo that
  int64_t ring_size;

  cx_mutex lock;
  cx_cond work;     // workers wait for something to do
  cx_cond changed;  // consumers wait for their batch, or for idleness
  bool closing;     // workers leave
  int busy;         // workers that fill or upload
  bool cancelled;   // there are no more epochs
  atomic_bool cut;  // the rest of the epoch is dropped

  cx_data_range range;
  int64_t end;  // no batch from here on is begun
  int64_t n_begun, n_uploaded, n_taken;
  int64_t *groups;  // (lanes) groups that each took; LEFT: it takes no more
  int uploading;
};

#define LEFT INT64_MAX

static batch *batch_at(cx_data_prefetch *p, int64_t k)
{
  return &p->ring[k % p->ring_size];
}

// ---- uploading --------------------------------------------------------------

// Each upload holds its block and releases it when it is done.
static calx_status *upload(cx_data_prefetch *p, int64_t k, batch *b)
{
  calx_device *device = p->options.devices[k % p->options.lanes];
  cx_data_filled *filled = &b->filled;
  calx_status *status = NULL;
  b->made =
      (cx_data_made){ .size = filled->size, .n_fields = filled->n_fields };
  for (size_t f = 0; f < filled->n_fields && status == NULL; f++) {
    cx_data_block *block = filled->blocks[f];
    if (block == NULL) block = filled->blocks[0];
    cx_data_block_hold(block, 1);
    status = cx_annotate(
        cx_data_upload_field(device, p->options.sharding, &filled->fields[f],
                             filled->data[f], block, &b->made.fields[f]),
        "in field %zu of a batch of %lld samples", f, (long long)filled->size);
  }
  cx_data_filled_drop(filled);
  if (status != NULL) {
    filled->bad_sample = -1;
    cx_data_loader_release(b->made.fields);
  }
  return status;
}

// ---- workers ----------------------------------------------------------------

static bool may_upload(cx_data_prefetch *p)
{
  int64_t ahead = (int64_t)p->options.lanes * p->options.ahead;
  return !atomic_load(&p->cut) && p->uploading < p->options.uploads &&
         p->n_uploaded < p->n_begun && p->n_uploaded < p->n_taken + ahead &&
         batch_at(p, p->n_uploaded)->state == FILLED;
}

static bool is_endless(const cx_data_prefetch *p)
{
  return p->options.fill.dataset->iterable != NULL;
}

// Whether nobody is in the iterator that the next batch is to be read from.
static bool iterator_is_free(cx_data_prefetch *p)
{
  int64_t before = p->n_begun - p->options.fill.workers;
  return !is_endless(p) || before < p->n_taken ||
         batch_at(p, before)->state != FILLING;
}

static bool may_fill(cx_data_prefetch *p)
{
  return p->n_begun < p->end && p->n_begun < p->n_taken + p->ring_size &&
         iterator_is_free(p);
}

// The caller holds the lock. upload_next() and fill_next() release it while
// they work.
static void finish(cx_data_prefetch *p, int64_t k, calx_status *error,
                   batch_state state)
{
  batch *b = batch_at(p, k);
  b->error = error;
  b->state = error == NULL ? state : FAILED;
  if (error != NULL && k + 1 < p->end) p->end = k + 1;  // the epoch ends there
  p->busy--;
  cx_cond_broadcast(&p->changed);
  cx_cond_broadcast(&p->work);
}

static void upload_next(cx_data_prefetch *p)
{
  int64_t k = p->n_uploaded++;
  batch *b = batch_at(p, k);
  b->state = UPLOADING;
  p->uploading++;
  p->busy++;
  cx_unlock(&p->lock);
  calx_status *error = upload(p, k, b);
  cx_lock(&p->lock);
  p->uploading--;
  finish(p, k, error, READY);
}

static void fill_next(cx_data_prefetch *p, int worker)
{
  int64_t k = p->n_begun++;
  batch *b = batch_at(p, k);
  b->state = FILLING;
  p->busy++;
  cx_unlock(&p->lock);
  calx_status *error =
      cx_data_fill(p->filler, worker, &p->range, k, &p->cut, &b->filled);
  cx_lock(&p->lock);
  if (cx_data_filler_over(p->filler) && p->n_begun < p->end) {
    p->end = p->n_begun;
  }
  finish(p, k, error, FILLED);
}

static void work(void *user)
{
  cx_data_prefetch *p = user;
  cx_lock(&p->lock);
  int worker = p->n_started++;
  while (!p->closing) {
    if (may_upload(p)) {
      upload_next(p);
    } else if (may_fill(p)) {
      fill_next(p, worker);
    } else {
      cx_cond_wait(&p->work, &p->lock);
    }
  }
  cx_unlock(&p->lock);
}

// ---- consumers --------------------------------------------------------------

void cx_data_prefetch_start(cx_data_prefetch *p, const cx_data_range *range,
                            int64_t batches)
{
  cx_lock(&p->lock);
  CX_ASSERT(p->busy == 0 && batches % p->options.lanes == 0);
  p->range = *range;
  p->end = is_endless(p) ? LEFT - 1 : batches;
  if (p->cancelled) p->end = 0;
  p->n_begun = p->n_uploaded = p->n_taken = 0;
  for (int i = 0; i < p->options.lanes; i++) p->groups[i] = 0;
  atomic_store(&p->cut, p->cancelled);
  cx_cond_broadcast(&p->work);
  cx_unlock(&p->lock);
}

static void drop_batch(batch *b)
{
  if (b->state == READY) cx_data_loader_release(b->made.fields);
  if (b->state == FILLED) cx_data_filled_drop(&b->filled);
  if (b->state == FAILED) calx_status_free(b->error);
  *b = (batch){ 0 };
}

// Frees the slots of the groups that all lanes have taken. The caller holds the
// lock.
static void advance(cx_data_prefetch *p)
{
  int64_t lowest = LEFT;
  for (int i = 0; i < p->options.lanes; i++) {
    if (p->groups[i] < lowest) lowest = p->groups[i];
  }
  if (lowest == LEFT) return;  // all lanes have left
  while (p->n_taken < lowest * p->options.lanes) {
    drop_batch(batch_at(p, p->n_taken++));
  }
  cx_cond_broadcast(&p->work);
}

// The first batch of the group that is not ready; NULL: all are ready. The
// caller holds the lock.
static const batch *first_missing(cx_data_prefetch *p, int64_t group)
{
  for (int i = 0; i < p->options.lanes; i++) {
    const batch *b = batch_at(p, group * p->options.lanes + i);
    if (b->state != READY && b->state != TAKEN) return b;
  }
  return NULL;
}

// The error of a failed batch. It is made on the consumer's thread, so that it
// has the consumer's call site. The batch stays in the ring until the stop.
static calx_status *batch_error(const cx_data_prefetch *p, int64_t group,
                                const batch *b)
{
  if (b->filled.bad_sample >= 0) {
    return cx_error(calx_status_code(b->error), "sample %lld of %lld: %s",
                    (long long)b->filled.bad_sample,
                    (long long)p->options.fill.dataset->size,
                    calx_status_message(b->error));
  }
  return cx_annotate(cx_status_copy(b->error), "while making batch %lld",
                     (long long)group);
}

// The lane that all others wait for although its rank has ended; -1: there is
// none. The caller holds the lock.
static int abandoned_lane(cx_data_prefetch *p)
{
  if (p->busy > 0 || may_upload(p) || may_fill(p)) return -1;
  int lowest = 0;
  for (int i = 1; i < p->options.lanes; i++) {
    if (p->groups[i] < p->groups[lowest]) lowest = i;
  }
  return cx_lazy_rank_has_ended(p->options.devices[lowest]) ? lowest : -1;
}

static calx_status *abandoned_error(const cx_data_prefetch *p, int64_t group,
                                    int lane, int64_t taken)
{
  return cx_error(CALX_ABORTED,
                  "rank %d ended after %lld batches of the epoch; batch %lld "
                  "is not made until it has taken its own",
                  cx_lazy_device_rank(p->options.devices[lane]),
                  (long long)taken, (long long)group);
}

static void take_ready(cx_data_prefetch *p, int lane, cx_data_made *out_made)
{
  int64_t first = p->groups[lane] * p->options.lanes;
  batch *b = batch_at(p, first + lane);
  *out_made = b->made;
  out_made->passed = 0;
  for (int i = 0; i < p->options.lanes; i++) {
    out_made->passed += batch_at(p, first + i)->made.size;
  }
  b->state = TAKEN;
  p->groups[lane]++;
  advance(p);
}

// Whether there is no batch for the lane. Of an iterable dataset the batches
// that an iterator at its end did not fill are passed over.
static bool is_over(cx_data_prefetch *p, int lane)
{
  while (is_endless(p) && p->groups[lane] < p->end) {
    batch *b = batch_at(p, p->groups[lane]);
    if (b->state != READY || b->made.size > 0) break;
    b->state = TAKEN;
    p->groups[lane]++;
    advance(p);
  }
  return p->cancelled || p->groups[lane] * p->options.lanes >= p->end;
}

calx_status *cx_data_prefetch_take(cx_data_prefetch *p, int lane,
                                   cx_data_made *out_made)
{
  *out_made = (cx_data_made){ 0 };
  cx_lock(&p->lock);
  const batch *missing = NULL;
  int abandoned = -1;
  int64_t start = cx_now_ns(), taken = 0;
  while (!is_over(p, lane) &&
         (missing = first_missing(p, p->groups[lane])) != NULL &&
         missing->state != FAILED && (abandoned = abandoned_lane(p)) < 0) {
    cx_cond_wait_ms(&p->changed, &p->lock, CX_DATA_LOOK_MS);
  }
  int64_t group = p->groups[lane];
  if (abandoned >= 0) taken = p->groups[abandoned];
  cx_metric_add(&wait_time, (double)(cx_now_ns() - start));
  cx_trace_ended(CX_SPAN_LOADER, cx_lazy_device_index_of_thread(), start, 0,
                 NULL);
  out_made->over = is_over(p, lane);
  if (!out_made->over && missing == NULL) take_ready(p, lane, out_made);
  cx_unlock(&p->lock);
  if (missing == NULL || out_made->over) return NULL;
  if (abandoned >= 0) return abandoned_error(p, group, abandoned, taken);
  return batch_error(p, group, missing);
}

void cx_data_prefetch_leave(cx_data_prefetch *p, int lane)
{
  cx_lock(&p->lock);
  p->groups[lane] = LEFT;
  advance(p);
  cx_unlock(&p->lock);
}

void cx_data_prefetch_stop(cx_data_prefetch *p)
{
  cx_lock(&p->lock);
  p->end = 0;
  atomic_store(&p->cut, true);
  while (p->busy > 0) cx_cond_wait(&p->changed, &p->lock);
  cx_unlock(&p->lock);
  for (int64_t i = 0; i < p->ring_size; i++) drop_batch(&p->ring[i]);
  if (p->filler != NULL) cx_data_filler_stop(p->filler);
}

void cx_data_prefetch_cancel(cx_data_prefetch *p)
{
  cx_lock(&p->lock);
  p->cancelled = true;
  p->end = 0;
  atomic_store(&p->cut, true);
  cx_cond_broadcast(&p->changed);
  cx_unlock(&p->lock);
}

// ---- life -------------------------------------------------------------------

static calx_status *open_parts(cx_data_prefetch *p, calx_device *const *given)
{
  const cx_data_prefetch_options *o = &p->options;
  p->ring = cx_calloc((size_t)p->ring_size, sizeof *p->ring);
  p->workers = cx_calloc((size_t)o->fill.workers, sizeof *p->workers);
  p->groups = cx_calloc((size_t)o->lanes, sizeof *p->groups);
  calx_device **devices = cx_calloc((size_t)o->lanes, sizeof *devices);
  for (int i = 0; devices != NULL && i < o->lanes; i++) {
    devices[i] = given[i];
  }
  p->options.devices = devices;
  if (p->ring == NULL || p->workers == NULL || p->groups == NULL ||
      devices == NULL) {
    return cx_out_of_memory();
  }
  cx_data_fill_options fill = o->fill;
  fill.keep = (size_t)p->ring_size;
  CALX_TRY(cx_data_filler_open(&fill, &p->filler));
  for (int w = 0; w < o->fill.workers; w++) {
    CALX_TRY(cx_thread_start(&p->workers[w], work, p));
  }
  return NULL;
}

calx_status *cx_data_prefetch_open(const cx_data_prefetch_options *options,
                                   cx_data_prefetch **out_prefetch)
{
  *out_prefetch = NULL;
  cx_data_prefetch *p = cx_calloc(1, sizeof *p);
  if (p == NULL) return cx_out_of_memory();
  p->options = *options;
  p->options.devices = NULL;
  p->ring_size =
      (int64_t)options->lanes * ((int64_t)options->ahead + options->filled);
  cx_mutex_init(&p->lock);
  cx_cond_init(&p->work);
  cx_cond_init(&p->changed);
  calx_status *status = open_parts(p, options->devices);
  if (status != NULL) {
    cx_data_prefetch_close(p);
    return status;
  }
  *out_prefetch = p;
  return NULL;
}

void cx_data_prefetch_close(cx_data_prefetch *p)
{
  if (p == NULL) return;
  if (p->ring != NULL) cx_data_prefetch_stop(p);
  cx_lock(&p->lock);
  p->closing = true;
  cx_cond_broadcast(&p->work);
  cx_unlock(&p->lock);
  for (int w = 0; p->workers != NULL && w < p->options.fill.workers; w++) {
    cx_thread_join(&p->workers[w]);
  }
  cx_data_filler_close(p->filler);
  cx_cond_free(&p->work);
  cx_cond_free(&p->changed);
  cx_mutex_free(&p->lock);
  cx_free((void *)p->options.devices);
  cx_free(p->groups);
  cx_free(p->workers);
  cx_free(p->ring);
  cx_free(p);
}
