// The leaves for the trainer: what all ranks share, and a data module of a
// fold.
#ifndef EXAMPLES_LEAVES_DATA_H
#define EXAMPLES_LEAVES_DATA_H

#include <stdlib.h>

#include "args.h"
#include "folds.h"
#include "leaves.h"

// The `user` of the module.
typedef struct {
  arguments a;
  uint64_t seeds[2];
  leaves known;
  calx_dataset *unknown;
  int64_t fold, classes;
  double auroc, *means;  // of the folds; (leaves, classes) of the unknown
} job;

// What is wrong with the files; NULL: nothing.
static inline const calx_status *job_open(job *j, uint64_t seed)
{
  j->seeds[0] = seed, j->seeds[1] = ~seed;
  leaves_open(&j->known, j->a.data, j->a.image_size, &j->seeds[0]);
  j->unknown = leaves_unknown(&j->known, j->a.data, &j->seeds[1]);
  j->classes = j->a.data != NULL ? calx_dataset_class_count(j->known.sets[0])
                                 : LEAF_CLASSES;
  size_t cells = (size_t)(calx_dataset_size(j->unknown) * j->classes);
  j->means = calloc(cells + 1, sizeof *j->means);
  const calx_status *error = calx_dataset_error(j->known.sets[0]);
  return error != NULL ? error : calx_dataset_error(j->unknown);
}

static inline void job_close(job *j)
{
  free(j->means);
  calx_dataset_free(j->unknown);
  leaves_close(&j->known);
}

// ---- the data module --------------------------------------------------------

typedef struct {
  calx_dataset *learned, *validated;
  calx_loader *train, *val, *predict;
} fold_data;

static inline void setup(calx_trainer *trainer, void *self)
{
  const job *j = calx_trainer_user(trainer);
  fold_data *d = self;
  int64_t size = j->a.batch_size;
  d->learned = fold_of(j->known.sets[0], j->fold, false);
  d->validated = fold_of(j->known.sets[1], j->fold, true);
  d->train = calx_loader_new(d->learned, .batch_size = size, .shuffle = true,
                             .drop_last = true);
  d->val = calx_loader_new(d->validated, .batch_size = size);
  d->predict = calx_loader_new(j->unknown, .batch_size = size);
}

static inline calx_loader *train_dataloader(calx_trainer *trainer, void *self)
{
  return ((fold_data *)self)->train;
}

static inline calx_loader *val_dataloader(calx_trainer *trainer, void *self)
{
  return ((fold_data *)self)->val;
}

static inline calx_loader *predict_dataloader(calx_trainer *trainer, void *self)
{
  return ((fold_data *)self)->predict;
}

static inline void teardown(calx_trainer *trainer, void *self)
{
  fold_data *d = self;
  calx_loader_free(d->train), calx_loader_free(d->val);
  calx_loader_free(d->predict);
  calx_dataset_free(d->learned), calx_dataset_free(d->validated);
}

static inline calx_lightning_data_module fold_module(void)
{
  return (calx_lightning_data_module)
      CALX_LIGHTNING_DATA_MODULE(.self_size = sizeof(fold_data), .setup = setup,
                                 .train_dataloader = train_dataloader,
                                 .val_dataloader = val_dataloader,
                                 .predict_dataloader = predict_dataloader,
                                 .teardown = teardown);
}

#endif
