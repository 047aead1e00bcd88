// data/batches: loaders over a dataset.
//
// A loader opens nothing until its first batch is asked for. So a program can
// make it before it launches ranks, when no device may be open yet, and can
// make loaders for other devices from it.
#include "base/alloc.h"
#include "base/options.h"
#include "data/dataset.h"
#include "data/loader.h"

#define MOST_WORKERS 1024

// ---- an epoch ---------------------------------------------------------------

static int64_t least(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

static bool is_iterable(const calx_loader *loader)
{
  return loader->dataset->iterable != NULL;
}

// Batches of an epoch, at most.
static int64_t most_batches(const calx_loader *loader)
{
  return is_iterable(loader) ? INT64_MAX : loader->batches;
}

static cx_data_fill_options fill_options(const calx_loader *loader)
{
  const calx_loader_options *o = &loader->options;
  int64_t size = loader->batch_size;
  if (!is_iterable(loader)) size = least(size, loader->samples);
  return (cx_data_fill_options){ .dataset = loader->dataset,
                                 .batch_size = size,
                                 .workers = (int)least(o->num_workers,
                                                       most_batches(loader)),
                                 .seed = o->seed,
                                 .drop_last = o->drop_last,
                                 .processes = loader->processes,
                                 .collate = o->collate_fn,
                                 .collate_user = o->collate_user };
}

static calx_status *open_prefetch(calx_loader *loader,
                                  calx_device *const *devices, int lanes)
{
  if (loader->prefetch != NULL) return NULL;
  calx_device *device = loader->options.device;
  if (devices == NULL) {
    if (device == NULL) CALX_TRY(calx_device_open("xla", &device));
    devices = &device;
  }
  int64_t batches = most_batches(loader);
  return cx_data_prefetch_open(
      &(cx_data_prefetch_options){
          .fill = fill_options(loader),
          .devices = devices,
          .lanes = lanes,
          .sharding = &loader->sharding,
          .ahead = (int)least(loader->depth.uploaded, batches),
          .filled = (int)least(loader->depth.filled, batches),
          .uploads = loader->depth.uploads },
      &loader->prefetch);
}

static calx_status *make_list(int64_t **list, int64_t n)
{
  size_t bytes;
  if (*list == NULL && (!cx_mul_size((size_t)n, sizeof **list, &bytes) ||
                        (*list = cx_alloc(bytes)) == NULL)) {
    return cx_out_of_memory();
  }
  return NULL;
}

// Goes to the batch that begins at sample `done`.
static calx_status *find_bound(calx_loader *loader, int lanes)
{
  int64_t k = 0;
  while (k < loader->batches && loader->bounds[k] < loader->done) k++;
  if (loader->bounds[k] != loader->done) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "loader: no batch of epoch %lld begins at sample %lld of "
                    "it: the batch sampler makes other batches now",
                    (long long)loader->epoch, (long long)loader->done);
  }
  loader->at = k;
  loader->left = loader->batches - k;
  loader->left -= loader->left % lanes;
  return NULL;
}

// Makes the order of the epoch, and where its batches begin. Samples taken in
// sequence need none.
static calx_status *make_order(calx_loader *loader, int lanes)
{
  const calx_sampler *s = loader->sampler;
  if (s->order == CX_DATA_SEQUENTIAL) return NULL;
  CALX_TRY(make_list(&loader->order, loader->samples));
  if (s->write_batches == NULL) {
    return cx_data_sampler_order(s, loader->epoch, loader->order);
  }
  CALX_TRY(make_list(&loader->bounds, loader->batches + 1));
  int64_t *sizes = loader->bounds + 1, end = 0;
  CALX_TRY(cx_data_sampler_batch_order(s, loader->epoch, loader->order, sizes));
  loader->bounds[0] = 0;
  for (int64_t k = 0; k < loader->batches; k++) {
    end += sizes[k];
    sizes[k] = end;
  }
  return find_bound(loader, lanes);
}

calx_status *cx_data_batches_start(calx_loader *loader,
                                   calx_device *const *devices, int lanes)
{
  if (loader->left == 0) return NULL;
  CALX_TRY(open_prefetch(loader, devices, lanes));
  CALX_TRY(make_order(loader, lanes));
  if (loader->left == 0) return NULL;
  const int64_t *bounds = loader->bounds;
  cx_data_prefetch_start(
      loader->prefetch,
      &(cx_data_range){ .order = loader->order,
                        .bounds = bounds != NULL ? bounds + loader->at : NULL,
                        .first = loader->done,
                        .end = loader->samples,
                        .epoch = loader->epoch },
      loader->left);
  return NULL;
}

static calx_status *begin(calx_loader *loader)
{
  cx_data_loader_begin(loader);
  return cx_data_batches_start(loader, NULL, 1);
}

static calx_status *take(calx_loader *loader, cx_data_made *out_made)
{
  return cx_data_prefetch_take(loader->prefetch, 0, out_made);
}

static void end(calx_loader *loader)
{
  if (loader->prefetch != NULL) cx_data_prefetch_stop(loader->prefetch);
}

static void free_parts(calx_loader *loader)
{
  cx_data_prefetch_close(loader->prefetch);
  cx_free(loader->order);
  cx_free(loader->bounds);
  cx_data_processes_release(loader->processes);
}

const cx_data_kind cx_data_batches = { begin, take, end, free_parts };

// ---- making one -------------------------------------------------------------

calx_status *cx_data_number(const char *whose, const char *what, int64_t given,
                            int64_t otherwise, int64_t most, int64_t *out)
{
  if (given < 0 || given > most) {
    return cx_invalid("%s: %s is %lld, it must be 0 (the default) to %lld",
                      whose, what, (long long)given, (long long)most);
  }
  *out = given != 0 ? given : otherwise;
  return NULL;
}

static calx_status *take_options(const calx_dataset *dataset,
                                 const calx_loader_options *given,
                                 calx_loader_options *out)
{
  CALX_TRY(cx_options_take("loader", given, out, sizeof *out));
  static const char whose[] = "loader";
  int64_t workers = 0, ahead = 0;
  if (out->batch_sampler != NULL && (out->batch_size != 0 || out->shuffle ||
                                     out->sampler != NULL || out->drop_last)) {
    return cx_invalid(
        "loader: a batch sampler decides all of .batch_size, .shuffle, "
        ".sampler and .drop_last: they are not for it");
  }
  CALX_TRY(cx_data_number(whose, "batch_size", out->batch_size, 1, INT64_MAX,
                          &out->batch_size));
  int64_t processes = 0;
  CALX_TRY(cx_data_number(whose, "num_processes", out->num_processes, 0,
                          MOST_WORKERS, &processes));
  if (processes > 0 && out->num_workers == 0) {
    out->num_workers = out->num_processes;
  }
  if (processes > 0 && out->num_workers != out->num_processes) {
    return cx_invalid(
        "loader: %d workers and %d processes: each process has one worker",
        out->num_workers, out->num_processes);
  }
  if (!(out->timeout >= 0) || (out->timeout > 0 && processes == 0)) {
    return cx_invalid(
        "loader: a timeout of %g s, %d processes: a timeout is of processes",
        out->timeout, out->num_processes);
  }
  // Workers that each read all of an iterable dataset must be asked for.
  CALX_TRY(cx_data_number(whose, "num_workers", out->num_workers,
                          dataset->iterable != NULL ? 1 : 2, MOST_WORKERS,
                          &workers));
  CALX_TRY(cx_data_number(whose, "prefetch", out->prefetch, 2,
                          CX_DATA_MOST_AHEAD, &ahead));
  out->num_workers = (int)workers;
  out->prefetch = (int)ahead;
  return NULL;
}

static calx_status *check_sampler(const calx_loader *loader,
                                  const calx_sampler *s)
{
  const calx_loader_options *o = &loader->options;
  int64_t size = loader->dataset->size;
  const calx_status *error = calx_sampler_error(s);
  if (error != NULL) return cx_status_copy(error);
  if (o->shuffle) {
    return cx_invalid(
        "loader: a sampler decides the order, .shuffle is not for it");
  }
  if ((s->write_batches != NULL) != (s == o->batch_sampler)) {
    return cx_invalid(s == o->batch_sampler
                          ? "loader: .batch_sampler is no batch sampler: make "
                            "one of it with calx_batch_sampler"
                          : "loader: .sampler is a batch sampler: "
                            ".batch_sampler takes it");
  }
  if (s->size > size) {
    return cx_invalid("loader: a sampler of %lld samples, the dataset has %lld",
                      (long long)s->size, (long long)size);
  }
  return NULL;
}

static calx_status *take_sampler(calx_loader *loader)
{
  const calx_loader_options *o = &loader->options;
  calx_sampler *s = o->batch_sampler != NULL ? o->batch_sampler : o->sampler;
  if (o->shuffle || s != NULL) {
    CALX_TRY(cx_data_not_iterable(
        "loader: .shuffle and samplers are for others", loader->dataset));
  }
  cx_data_sampler_init(&loader->own, loader->dataset->size, o->shuffle,
                       o->seed);
  if (s == NULL) return NULL;
  CALX_TRY(check_sampler(loader, s));
  loader->sampler = s;
  return NULL;
}

static calx_status *count_batches(calx_loader *loader)
{
  const calx_dataset *dataset = loader->dataset;
  const calx_sampler *s = loader->sampler;
  loader->samples = s->count;
  loader->batch_size = loader->options.batch_size;
  loader->batches = cx_data_batch_count(loader->samples, loader->batch_size,
                                        loader->options.drop_last);
  int64_t most = least(loader->batch_size, loader->samples);
  if (s->write_batches != NULL) {
    loader->batch_size = s->largest;
    loader->batches = s->batches;
    most = s->largest;
  } else if (dataset->iterable != NULL) {
    loader->batches = -1;
    most = loader->batch_size;
  }
  for (size_t f = 0; f < dataset->n_fields; f++) {
    size_t bytes;
    if (cx_mul_size(dataset->field_bytes[f], (size_t)most, &bytes)) continue;
    return cx_invalid("loader: batches of %lld samples have too many bytes",
                      (long long)most);
  }
  return NULL;
}

calx_status *cx_data_loader_shard(calx_loader *loader,
                                  const calx_input_sharding *given)
{
  cx_ops_spec spec;
  CALX_TRY(cx_data_sharding_read(given, &spec));
  if (spec.mesh == NULL) return NULL;
  cx_data_sharding_free(&loader->sharding);
  loader->sharding = spec;
  if (loader->kind == &cx_data_generator) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "loader: input_sharding of a sample generator: give it "
                    "tensors that calx_mark_sharding() has split");
  }
  return cx_data_sharding_check(loader, loader->samples);
}

static calx_status *start_processes(calx_loader *loader)
{
  const calx_loader_options *o = &loader->options;
  return cx_data_processes_open(
      &(cx_data_processes_options){ .dataset = loader->dataset,
                                    .count = o->num_processes,
                                    .batch_size =
                                        fill_options(loader).batch_size,
                                    .timeout = o->timeout },
      &loader->processes);
}

static calx_status *set_up(calx_loader *loader, const calx_dataset *dataset,
                           const calx_loader_options *given)
{
  if (dataset == NULL) {
    return cx_invalid("loader: the dataset is NULL");
  }
  const calx_status *error = calx_dataset_error(dataset);
  if (error != NULL) return cx_status_copy(error);
  calx_loader_options *o = &loader->options;
  CALX_TRY(take_options(dataset, given, o));
  loader->dataset = dataset;
  CALX_TRY(take_sampler(loader));
  loader->depth = (cx_data_depth){ o->prefetch, o->num_workers, 1 };
  CALX_TRY(count_batches(loader));
  CALX_TRY(cx_data_loader_shard(loader, &o->input_sharding));
  return o->num_processes > 0 ? start_processes(loader) : NULL;
}

calx_loader *calx_loader_new_with(calx_dataset *dataset,
                                  const calx_loader_options *options)
{
  calx_loader *loader = cx_data_loader_empty();
  if (calx_loader_error(loader) != NULL) return loader;
  loader->kind = &cx_data_batches;
  return cx_data_loader_fail(loader, set_up(loader, dataset, options));
}
