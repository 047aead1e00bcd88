// train/connect: from the loaders that the program gives to those that a rank
// reads. Ranks share the samples: of training all get equally many, of
// evaluation each sample is read once.
#include "base/alloc.h"
#include "base/dtype.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "train/internal.h"

// ---- each sample once -------------------------------------------------------

typedef struct unrepeated {
  int64_t count, rank, ranks;
} unrepeated;

static calx_status *write_order(void *user, int64_t epoch, int64_t *out_order)
{
  (void)epoch;
  const unrepeated *u = user;
  for (int64_t i = 0; i < u->count; i++) out_order[i] = u->rank + i * u->ranks;
  return NULL;
}

// Samples rank, rank + ranks, … without any that come twice to fill up.
// Source: lightning.pytorch.overrides.distributed.UnrepeatedDistributedSampler.
static calx_sampler *unrepeated_sampler(const calx_dataset *dataset)
{
  const int64_t ranks = calx_world_size(), rank = calx_global_ordinal();
  const int64_t size = calx_dataset_size(dataset);
  unrepeated *u = cx_alloc(sizeof *u);
  if (u == NULL) return NULL;
  *u = (unrepeated){ .count = (size - rank + ranks - 1) / ranks,
                     .rank = rank,
                     .ranks = ranks };
  return calx_sampler_new(u->count, write_order, u, cx_free);
}

// ---- loaders ----------------------------------------------------------------

// A sampler of the program's stays. One rank shuffles as several do, so that it
// sees the same samples in each step.
static bool may_share_out(const calx_trainer *t, const calx_loader *from)
{
  const calx_dataset *dataset = cx_data_loader_dataset(from);
  return !t->config.no_distributed_sampler && dataset != NULL &&
         dataset->iterable == NULL && !cx_data_loader_has_sampler(from);
}

static calx_sampler *share_of(const calx_trainer *t, const calx_loader *from,
                              bool trains)
{
  const calx_dataset *dataset = cx_data_loader_dataset(from);
  const bool shuffled = cx_data_loader_is_shuffled(from) && !t->config.overfits;
  if (!trains) return unrepeated_sampler(dataset);
  const uint64_t seed =
      t->config.seed != 0 ? t->config.seed : cx_data_loader_seed(from);
  return calx_distributed_sampler(dataset, .no_shuffle = !shuffled,
                                  .seed = seed);
}

// Overfitting takes the first batches, in the order of the samples.
static calx_status *take_sampler(const calx_trainer *t, const calx_loader *from,
                                 bool trains, cx_train_loader *out)
{
  out->is_shared_out = calx_world_size() > 1 && may_share_out(t, from);
  if (out->is_shared_out ||
      (trains && cx_data_loader_is_shuffled(from) && may_share_out(t, from))) {
    out->sampler = share_of(t, from, trains);
  } else if (t->config.overfits && cx_data_loader_is_shuffled(from)) {
    out->sampler = calx_sequential_sampler(cx_data_loader_dataset(from));
  } else {
    return NULL;
  }
  if (trains && t->config.overfits && cx_data_loader_is_shuffled(from) &&
      calx_trainer_is_global_zero(t)) {
    cx_log(
        "You requested to overfit but enabled train dataloader shuffling. We are "
        "turning off the train dataloader shuffling for you.");
  }
  return out->sampler != NULL ? NULL : cx_out_of_memory();
}

calx_status *cx_train_open_loader(calx_trainer *t, const calx_loader *from,
                                  bool trains, const cx_train_limit *limit,
                                  const char *name, cx_train_loader *out)
{
  *out = (cx_train_loader){ .from = from };
  const calx_status *error = calx_loader_error(from);
  if (error != NULL) return cx_status_copy(error);
  CALX_TRY(take_sampler(t, from, trains, out));
  out->loader = cx_data_loader_sampled(from, out->sampler);
  error = calx_loader_error(out->loader);
  if (error != NULL) return cx_status_copy(error);
  if (trains) out->loader->per_execution = t->config.steps_per_execution;
  const calx_dataset *dataset = cx_data_loader_dataset(from);
  out->samples = dataset != NULL && dataset->iterable == NULL
                     ? calx_dataset_size(dataset)
                     : -1;
  out->is_off = out->samples == 0 || (!limit->is_share && limit->value == 0);
  return cx_train_limited(limit, name, calx_loader_size(out->loader),
                          &out->batches);
}

void cx_train_close_loader(cx_train_loader *l)
{
  calx_loader_free(l->loader);
  calx_sampler_free(l->sampler);
  *l = (cx_train_loader){ 0 };
}

// ---- which loaders ----------------------------------------------------------

static const calx_loader *made_by(calx_trainer *t, calx_trainer_loader_fn *fn)
{
  return fn != NULL ? fn(t, t->data_self) : NULL;
}

calx_status *cx_train_open_training(calx_trainer *t)
{
  const calx_lightning_data_module *d = t->data->datamodule;
  const calx_loader *loader = t->data->train_dataloader;
  if (d != NULL && d->train_dataloader != NULL) {
    loader = made_by(t, d->train_dataloader);
  }
  if (loader == NULL) {
    CALX_TRY(calx_scope_take_error());
    return cx_invalid("The data module's `train_dataloader()` returned NULL");
  }
  return cx_train_open_loader(t, loader, true, &t->config.train,
                              "train_dataloader", &t->train);
}

calx_status *cx_train_reopen_training(calx_trainer *t, int64_t batch_size,
                                      cx_train_loader *out)
{
  CALX_TRY(cx_train_open_loader(t, t->train.from, true, &t->config.train,
                                "train_dataloader", out));
  if (batch_size == 0) return NULL;
  CALX_TRY(cx_data_loader_set_batch_size(out->loader, batch_size));
  return cx_train_limited(&t->config.train, "train_dataloader",
                          calx_loader_size(out->loader), &out->batches);
}

// The loaders of an evaluation before they are opened.
typedef struct evaluation_data {
  const char *name;
  const cx_train_limit *limit;
  const calx_loader *one;  // NULL: those of the list
} evaluation_data;

static evaluation_data data_of(calx_trainer *t)
{
  const calx_trainer_data *d = t->data;
  const calx_lightning_data_module *dm = d->datamodule;
  evaluation_data e = { "val_dataloader", &t->config.val, d->val_dataloader };
  calx_trainer_loader_fn *fn = dm != NULL ? dm->val_dataloader : NULL;
  if (t->asked == CX_TRAIN_TESTING) {
    e = (evaluation_data){ "test_dataloader", &t->config.test,
                           d->test_dataloader };
    fn = dm != NULL ? dm->test_dataloader : NULL;
  } else if (t->asked == CX_TRAIN_PREDICTING) {
    e = (evaluation_data){ "predict_dataloader", &t->config.predict,
                           d->predict_dataloader };
    fn = dm != NULL ? dm->predict_dataloader : NULL;
  }
  const calx_loader *made = made_by(t, fn);
  if (made != NULL) e.one = made;
  return e;
}

calx_status *cx_train_open_evaluation(calx_trainer *t)
{
  const evaluation_data e = data_of(t);
  CALX_TRY(calx_scope_take_error());
  const calx_loader *const *all = e.one != NULL ? &e.one : t->data->dataloaders;
  const size_t n = e.one != NULL ? 1 : t->data->n_dataloaders;
  t->evaluated = cx_calloc(n + 1, sizeof *t->evaluated);
  if (t->evaluated == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    if (all[i] == NULL) {
      return cx_invalid("trainer: dataloaders[%zu] of %zu is NULL", i, n);
    }
    CALX_TRY(cx_train_open_loader(t, all[i], false, e.limit, e.name,
                                  &t->evaluated[t->n_evaluated++]));
  }
  return NULL;
}

void cx_train_close_evaluation(calx_trainer *t)
{
  for (size_t i = 0; i < t->n_evaluated; i++) {
    cx_train_close_loader(&t->evaluated[i]);
  }
  cx_free(t->evaluated);
  t->evaluated = NULL;
  t->n_evaluated = 0;
}

bool cx_train_has_evaluation(const calx_trainer *t)
{
  for (size_t i = 0; i < t->n_evaluated; i++) {
    if (!t->evaluated[i].is_off) return true;
  }
  return false;
}

// ---- batches ----------------------------------------------------------------

static void convert(const calx_trainer *t, calx_batch *batch)
{
  if (t->config.dtype == CALX_DTYPE_DEFAULT) return;
  for (size_t i = 0; i < batch->n_fields; i++) {
    if (!cx_dtype_is_float(calx_tensor_dtype(batch->fields[i]))) continue;
    batch->fields[i] = calx_to_dtype(batch->fields[i], t->config.dtype);
  }
  batch->data = batch->n_fields > 0 ? batch->fields[0] : NULL;
  batch->target = batch->n_fields > 1 ? batch->fields[1] : NULL;
}

void cx_train_receive(calx_trainer *t, const calx_batch *from, calx_batch *out)
{
  *out = *from;
  convert(t, out);
  cx_train_call_transfer(t, out);
}
