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

static bool is_shared_out(const calx_trainer *t, const calx_loader *from)
{
  const calx_dataset *dataset = cx_data_loader_dataset(from);
  return calx_world_size() > 1 && !t->config.no_distributed_sampler &&
         dataset != NULL && dataset->iterable == NULL &&
         !cx_data_loader_has_sampler(from);
}

static calx_sampler *share_of(const calx_trainer *t, const calx_loader *from,
                              bool trains)
{
  const calx_dataset *dataset = cx_data_loader_dataset(from);
  const bool shuffled = cx_data_loader_is_shuffled(from);
  if (!trains) return unrepeated_sampler(dataset);
  const uint64_t seed =
      t->config.seed != 0 ? t->config.seed : cx_data_loader_seed(from);
  return calx_distributed_sampler(dataset, .no_shuffle = !shuffled,
                                  .seed = seed);
}

calx_status *cx_train_open_loader(calx_trainer *t, const calx_loader *from,
                                  bool trains, const cx_train_limit *limit,
                                  const char *name, cx_train_loader *out)
{
  *out = (cx_train_loader){ 0 };
  const calx_status *error = calx_loader_error(from);
  if (error != NULL) return cx_status_copy(error);
  if (is_shared_out(t, from)) {
    out->sampler = share_of(t, from, trains);
    if (out->sampler == NULL) return cx_out_of_memory();
  }
  out->loader = cx_data_loader_sampled(from, out->sampler);
  error = calx_loader_error(out->loader);
  if (error != NULL) return cx_status_copy(error);
  return cx_train_limited(limit, name, calx_loader_size(out->loader),
                          &out->batches);
}

void cx_train_close_loader(cx_train_loader *l)
{
  calx_loader_free(l->loader);
  calx_sampler_free(l->sampler);
  *l = (cx_train_loader){ 0 };
}

// ---- batches ----------------------------------------------------------------

void cx_train_convert(const calx_trainer *t, const calx_batch *from,
                      calx_batch *out)
{
  *out = *from;
  if (t->config.dtype == CALX_DTYPE_DEFAULT) return;
  for (size_t i = 0; i < from->n_fields; i++) {
    if (!cx_dtype_is_float(calx_tensor_dtype(from->fields[i]))) continue;
    out->fields[i] = calx_to_dtype(from->fields[i], t->config.dtype);
  }
  out->data = from->n_fields > 0 ? out->fields[0] : NULL;
  out->target = from->n_fields > 1 ? out->fields[1] : NULL;
}
