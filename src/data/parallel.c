// data/parallel: one reader, several devices.
//
// The parallel loader owns one loader over the dataset, the reader, whose
// prefetch has a lane for each device; and for each lane a loader that it
// returns. The lanes go through epochs in step: the reader's epoch starts when
// the first lane begins it and ends when the last lane has ended it; a lane
// that is ahead waits there. A lane of a generator needs no reader: it is a
// generator.
//
// A rank that ends without ending its epoch would block the others for ever, so
// waiting lanes check for it.
//
// Locks: `lock` guards the epoch and is never held while a batch is awaited.
#include "data/parallel.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "lazy/lazy.h"

struct calx_parallel_loader {
  calx_status *error;
  calx_loader *reader;
  calx_loader *no_lane;  // of a device without a lane: its error says so
  calx_loader **lanes;
  calx_device **devices;
  size_t n_lanes;
  int64_t groups;   // batches of a lane in an epoch
  int64_t resumes;  // the epoch that does not begin at its first sample

  cx_mutex lock;
  cx_cond changed;  // an epoch ended, or all is closed
  bool closed;
  bool started;         // the epoch
  calx_status *failed;  // why it could not be
  int64_t round;        // epochs that all lanes have ended
  size_t n_ended;       // lanes that have ended the present one
};

static calx_parallel_loader no_memory;

// ---- a lane -----------------------------------------------------------------

static void start_epoch(calx_parallel_loader *p)
{
  calx_loader *reader = p->reader;
  if (calx_sampler_epoch(reader->sampler) != p->resumes) reader->done = 0;
  cx_data_loader_begin(reader);
  reader->left -= reader->left % (int64_t)p->n_lanes;  // whole groups
  p->failed = cx_data_batches_start(reader, p->devices, (int)p->n_lanes);
  p->started = true;
}

// Fails where a rank has ended and left its lane: the epoch could never end, so
// the others do not wait for it.
static calx_status *check_lanes(const calx_parallel_loader *p)
{
  for (size_t i = 0; i < p->n_lanes; i++) {
    if (p->lanes[i]->rounds > p->round ||
        !cx_lazy_rank_has_ended(p->devices[i])) {
      continue;
    }
    return cx_error(CALX_ABORTED,
                    "parallel loader: rank %d ended and has not ended its "
                    "epoch %lld: the next one cannot begin",
                    cx_lazy_device_rank(p->devices[i]), (long long)p->round);
  }
  return NULL;
}

static calx_status *begin_locked(calx_parallel_loader *p, calx_loader *lane)
{
  lane->left = 0;
  while (!p->closed && lane->rounds > p->round) {
    CALX_TRY(check_lanes(p));
    cx_cond_wait_ms(&p->changed, &p->lock, CX_DATA_LOOK_MS);
  }
  if (p->closed) return NULL;
  if (!p->started) start_epoch(p);
  lane->epoch = p->reader->epoch;
  lane->done = p->reader->done;
  lane->at = p->reader->at / (int64_t)p->n_lanes;
  lane->left = p->reader->left / (int64_t)p->n_lanes;
  return p->failed != NULL ? cx_status_copy(p->failed) : NULL;
}

static calx_status *begin(calx_loader *lane)
{
  calx_parallel_loader *p = lane->parallel;
  cx_lock(&p->lock);
  calx_status *status = begin_locked(p, lane);
  cx_unlock(&p->lock);
  return status;
}

static calx_status *take(calx_loader *lane, cx_data_made *out_made)
{
  return cx_data_prefetch_take(lane->parallel->reader->prefetch, lane->lane,
                               out_made);
}

// The last lane ends the reader's epoch.
static void end_round(calx_parallel_loader *p)
{
  if (p->reader->prefetch != NULL) cx_data_prefetch_stop(p->reader->prefetch);
  calx_status_free(p->failed);
  p->failed = NULL;
  p->started = false;
  p->reader->done = 0;
  p->n_ended = 0;
  p->round++;
  cx_cond_broadcast(&p->changed);
}

static void end(calx_loader *lane)
{
  calx_parallel_loader *p = lane->parallel;
  cx_lock(&p->lock);
  // A lane that waited for an epoch which never began has no epoch to end.
  if (!p->closed && lane->rounds == p->round) {
    bool reads = p->failed == NULL && p->reader->left != 0;
    if (reads) cx_data_prefetch_leave(p->reader->prefetch, lane->lane);
    lane->rounds++;
    if (++p->n_ended == p->n_lanes) end_round(p);
  }
  cx_unlock(&p->lock);
}

static void free_parts(calx_loader *lane)
{
  // The parallel loader owns everything else.
  cx_data_processes_release(lane->processes);
}

static const cx_data_kind kind = { begin, take, end, free_parts };

// ---- making one -------------------------------------------------------------

static calx_status *take_devices(calx_parallel_loader *p,
                                 calx_device *const *devices, size_t n)
{
  if (n == 0 || devices == NULL || n > INT32_MAX) {
    return cx_invalid("parallel loader: %zu devices", devices != NULL ? n : 0);
  }
  p->devices = cx_calloc(n, sizeof(calx_device *));
  p->lanes = cx_calloc(n, sizeof *p->lanes);
  if (p->devices == NULL || p->lanes == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    if (devices[i] == NULL) {
      return cx_invalid("parallel loader: device %zu is NULL", i);
    }
    for (size_t k = 0; k < i; k++) {
      if (devices[k] != devices[i]) continue;
      return cx_invalid("parallel loader: device %zu is device %zu again", i,
                        k);
    }
    p->devices[i] = devices[i];
  }
  p->n_lanes = n;
  return NULL;
}

static calx_status *make_lane(calx_parallel_loader *p, size_t i,
                              int64_t per_execution)
{
  calx_loader *lane = cx_data_loader_empty();
  if (calx_loader_error(lane) != NULL) return cx_out_of_memory();
  p->lanes[i] = lane;
  CALX_TRY(cx_data_loader_copy(p->reader, lane));
  lane->per_execution = per_execution;
  lane->batches = p->groups;
  if (p->reader->kind == &cx_data_generator) {
    lane->samples = p->groups * lane->batch_size;
    lane->done = 0;
    return cx_data_generator_copy(p->reader, p->devices[i], lane);
  }
  lane->kind = &kind;
  lane->sampler = p->reader->sampler;
  lane->parallel = p;
  lane->lane = (int)i;
  return NULL;
}

static calx_status *make_reader(calx_parallel_loader *p,
                                const calx_loader *from)
{
  p->reader = cx_data_loader_empty();
  if (calx_loader_error(p->reader) != NULL) return cx_out_of_memory();
  CALX_TRY(cx_data_loader_copy(from, p->reader));
  if (from->batches < 0) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "parallel loader: the dataset is iterable, and how many "
                    "batches each device gets cannot be told; make a loader "
                    "for each device");
  }
  p->resumes = calx_sampler_epoch(p->reader->sampler);
  if (p->reader->kind != &cx_data_generator) return NULL;
  return cx_data_generator_copy(from, p->devices[0], p->reader);
}

static calx_status *set_up(calx_parallel_loader *p, const calx_loader *from,
                           calx_device *const *devices, size_t n,
                           const calx_device_loader_options *options)
{
  cx_data_depth depth;
  int64_t per_execution;
  calx_input_sharding sharding;
  CALX_TRY(cx_data_device_options(options, &depth, &per_execution, &sharding));
  CALX_TRY(take_devices(p, devices, n));
  CALX_TRY(make_reader(p, from));
  CALX_TRY(cx_data_loader_shard(p->reader, &sharding));
  p->reader->depth = depth;
  p->groups = p->reader->batches / (int64_t)n;
  for (size_t i = 0; i < n; i++) CALX_TRY(make_lane(p, i, per_execution));
  return NULL;
}

calx_parallel_loader *calx_parallel_loader_new_with(
    const calx_loader *loader, calx_device *const *devices, size_t n_devices,
    const calx_device_loader_options *options)
{
  calx_parallel_loader *p = cx_calloc(1, sizeof *p);
  if (p == NULL) return &no_memory;
  cx_mutex_init(&p->lock);
  cx_cond_init(&p->changed);
  p->error = set_up(p, loader, devices, n_devices, options);
  calx_status *why =
      p->error != NULL
          ? cx_status_copy(p->error)
          : cx_invalid("parallel loader: the device is none of its %zu",
                       n_devices);
  p->no_lane = cx_data_loader_fail(cx_data_loader_empty(), why);
  return p;
}

void calx_parallel_loader_close(calx_parallel_loader *p)
{
  if (p == NULL || p == &no_memory) return;
  cx_lock(&p->lock);
  p->closed = true;
  cx_data_prefetch *prefetch = p->reader != NULL ? p->reader->prefetch : NULL;
  cx_cond_broadcast(&p->changed);
  if (prefetch != NULL) cx_data_prefetch_cancel(prefetch);
  cx_unlock(&p->lock);
}

void calx_parallel_loader_free(calx_parallel_loader *p)
{
  if (p == NULL || p == &no_memory) return;
  calx_parallel_loader_close(p);
  for (size_t i = 0; i < p->n_lanes; i++) calx_loader_free(p->lanes[i]);
  calx_loader_free(p->no_lane);
  calx_loader_free(p->reader);
  calx_status_free(p->failed);
  calx_status_free(p->error);
  cx_cond_free(&p->changed);
  cx_mutex_free(&p->lock);
  cx_free(p->lanes);
  cx_free(p->devices);
  cx_free(p);
}

// ---- asking it --------------------------------------------------------------

const calx_status *calx_parallel_loader_error(const calx_parallel_loader *p)
{
  if (p == NULL) return cx_absent(CX_ABSENT_PARALLEL_LOADER);
  return p == &no_memory ? cx_out_of_memory() : p->error;
}

int64_t calx_parallel_loader_size(const calx_parallel_loader *p)
{
  return calx_parallel_loader_error(p) == NULL ? p->groups : 0;
}

calx_loader *calx_per_device_loader(calx_parallel_loader *p,
                                    calx_device *device)
{
  if (p == NULL) return NULL;
  if (p == &no_memory) return cx_data_loader_none();
  if (p->error != NULL) return p->no_lane;
  if (device == NULL) device = calx_device_current();
  for (size_t i = 0; i < p->n_lanes; i++) {
    if (p->devices[i] == device) return p->lanes[i];
  }
  return p->no_lane;
}
