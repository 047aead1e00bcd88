// data/sampler: the samples of each epoch, in order.
//
// A sampler is a function of its epoch's number and keeps no other state, so
// any rank can compute the order of any epoch. Two generators: the random
// sampler uses this module's counter-based one (every order is equally likely);
// a distributed one must give what PyTorch gives, and uses PyTorch's.
//
// Sources: D. Knuth, "The Art of Computer Programming" 2, 3.4.2, algorithm P;
// torch.utils.data.distributed.DistributedSampler for which rank gets what.
#include "data/sampler.h"

#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "calx/dist.h"
#include "data/dataset.h"
#include "data/random.h"
#include "data/randperm.h"

static calx_sampler no_memory;

// ---- orders -----------------------------------------------------------------

void cx_data_permute(cx_data_random *random, int64_t n, int64_t *out_order)
{
  for (int64_t i = 0; i < n; i++) out_order[i] = i;
  for (int64_t left = n; left > 1; left--) {
    int64_t j = (int64_t)cx_data_random_below(random, (uint64_t)left);
    int64_t last = out_order[left - 1];
    out_order[left - 1] = out_order[j];
    out_order[j] = last;
  }
}

void cx_data_permutation(uint64_t seed, int64_t epoch, int64_t n,
                         int64_t *out_order)
{
  cx_data_random random = cx_data_random_new(seed, (uint64_t)epoch);
  cx_data_permute(&random, n, out_order);
}

int64_t cx_data_batch_count(int64_t n, int64_t batch_size, bool drop_last)
{
  int64_t whole = n / batch_size;
  return whole + (!drop_last && n % batch_size != 0 ? 1 : 0);
}

// Whole permutations, one after the other, and the beginning of a last one.
static calx_status *draw(const calx_sampler *s, int64_t epoch,
                         int64_t *out_order)
{
  cx_data_random random = cx_data_random_new(s->seed, (uint64_t)epoch);
  int64_t at = 0;
  if (s->replacement) {
    for (; at < s->count; at++) {
      out_order[at] = (int64_t)cx_data_random_below(&random, (uint64_t)s->size);
    }
    return NULL;
  }
  for (; s->size > 0 && s->count - at >= s->size; at += s->size) {
    cx_data_permute(&random, s->size, out_order + at);
  }
  if (at == s->count) return NULL;
  int64_t *rest = cx_calloc((size_t)s->size, sizeof *rest);
  if (rest == NULL) return cx_out_of_memory();
  cx_data_permute(&random, s->size, rest);
  memcpy(out_order + at, rest, (size_t)(s->count - at) * sizeof *rest);
  cx_free(rest);
  return NULL;
}

// Takes every replicas-th position, beginning with the rank's. Positions past
// the last sample continue from the first.
static calx_status *share(const calx_sampler *s, int64_t epoch,
                          int64_t *out_order)
{
  int64_t *all = NULL;
  if (s->shuffle && s->count != 0) {
    size_t bytes;
    if (!cx_mul_size((size_t)s->size, sizeof *all, &bytes) ||
        (all = cx_alloc(bytes)) == NULL) {
      return cx_out_of_memory();
    }
    cx_data_randperm(s->seed + (uint64_t)epoch, s->size, all);
  }
  for (int64_t i = 0; i < s->count; i++) {
    int64_t position = (s->rank + i * s->replicas) % s->size;
    out_order[i] = all != NULL ? all[position] : position;
  }
  cx_free(all);
  return NULL;
}

calx_status *cx_data_sampler_order(const calx_sampler *sampler, int64_t epoch,
                                   int64_t *out_order)
{
  switch (sampler->order) {
    case CX_DATA_DISTRIBUTED: return share(sampler, epoch, out_order);
    case CX_DATA_RANDOM: return draw(sampler, epoch, out_order);
    case CX_DATA_CUSTOM: return sampler->write(sampler->user, epoch, out_order);
    case CX_DATA_SEQUENTIAL: break;
  }
  for (int64_t i = 0; i < sampler->count; i++) out_order[i] = i;
  return NULL;
}

// ---- making one -------------------------------------------------------------

void cx_data_sampler_init(calx_sampler *sampler, int64_t size, bool random,
                          uint64_t seed)
{
  sampler->order = random ? CX_DATA_RANDOM : CX_DATA_SEQUENTIAL;
  sampler->size = sampler->count = size;
  sampler->seed = seed;
}

// NULL without memory.
static calx_sampler *sampler_of(const calx_dataset *dataset)
{
  calx_sampler *sampler = cx_calloc(1, sizeof *sampler);
  if (sampler == NULL) return NULL;
  if (dataset == NULL) {
    sampler->error = cx_invalid("sampler: the dataset is NULL");
  } else if (calx_dataset_error(dataset) != NULL) {
    sampler->error = cx_status_copy(calx_dataset_error(dataset));
  } else {
    cx_data_sampler_init(sampler, calx_dataset_size(dataset), false, 0);
    sampler->error = cx_data_not_iterable("sampler", dataset);
  }
  return sampler;
}

static calx_sampler *made(calx_sampler *sampler, calx_status *error)
{
  sampler->error = error;
  if (error != NULL) sampler->size = sampler->count = 0;
  return sampler;
}

calx_sampler *calx_sequential_sampler(const calx_dataset *dataset)
{
  calx_sampler *sampler = sampler_of(dataset);
  return sampler != NULL ? sampler : &no_memory;
}

calx_sampler *calx_random_sampler_with(const calx_dataset *dataset,
                                       const calx_random_sampler_options *given)
{
  calx_sampler *sampler = sampler_of(dataset);
  if (sampler == NULL) return &no_memory;
  if (sampler->error != NULL) return sampler;
  calx_random_sampler_options o;
  calx_status *error = cx_options_take("random sampler", given, &o, sizeof o);
  if (error == NULL &&
      (o.num_samples < 0 || (o.num_samples > 0 && sampler->size == 0))) {
    error = cx_invalid("random sampler: num_samples is %lld of %lld samples",
                       (long long)o.num_samples, (long long)sampler->size);
  }
  cx_data_sampler_init(sampler, sampler->size, true, o.seed);
  if (o.num_samples > 0) sampler->count = o.num_samples;
  sampler->replacement = o.replacement;
  return made(sampler, error);
}

static calx_status *distribute(calx_sampler *sampler,
                               const calx_distributed_sampler_options *given)
{
  calx_distributed_sampler_options o;
  CALX_TRY(cx_options_take("distributed sampler", given, &o, sizeof o));
  if (o.num_replicas == 0) {
    o.num_replicas = calx_world_size();
    if (o.rank == 0) o.rank = calx_global_ordinal();
  }
  if (o.num_replicas < 0) {
    return cx_invalid("distributed sampler: num_replicas is %d",
                      o.num_replicas);
  }
  if (o.rank < 0 || o.rank >= o.num_replicas) {
    return cx_invalid("distributed sampler: rank is %d, it must be 0 to %d",
                      o.rank, o.num_replicas - 1);
  }
  sampler->order = CX_DATA_DISTRIBUTED;
  sampler->seed = o.seed;
  sampler->replicas = o.num_replicas;
  sampler->rank = o.rank;
  sampler->shuffle = !o.no_shuffle;
  sampler->count =
      cx_data_batch_count(sampler->size, o.num_replicas, o.drop_last);
  return NULL;
}

calx_sampler *calx_distributed_sampler_with(
    const calx_dataset *dataset, const calx_distributed_sampler_options *given)
{
  calx_sampler *sampler = sampler_of(dataset);
  if (sampler == NULL) return &no_memory;
  if (sampler->error != NULL) return sampler;
  return made(sampler, distribute(sampler, given));
}

calx_sampler *cx_data_sampler_custom(calx_status *error, int64_t size,
                                     int64_t count,
                                     calx_sampler_order_fn *write, void *user,
                                     void (*free)(void *user))
{
  calx_sampler *sampler = cx_calloc(1, sizeof *sampler);
  if (sampler == NULL || error != NULL) {
    if (free != NULL) free(user);
  }
  if (sampler == NULL) {
    calx_status_free(error);
    return &no_memory;
  }
  sampler->order = CX_DATA_CUSTOM;
  if (error != NULL) return made(sampler, error);
  sampler->size = size;
  sampler->count = count;
  sampler->write = write;
  sampler->user = user;
  sampler->free = free;
  return sampler;
}

void calx_sampler_free(calx_sampler *sampler)
{
  if (sampler == NULL || sampler == &no_memory) return;
  if (sampler->free != NULL) sampler->free(sampler->user);
  calx_status_free(sampler->error);
  cx_free(sampler);
}

// ---- asking it --------------------------------------------------------------

const calx_status *calx_sampler_error(const calx_sampler *sampler)
{
  if (sampler == NULL) return cx_absent(CX_ABSENT_SAMPLER);
  return sampler == &no_memory ? cx_out_of_memory() : sampler->error;
}

int64_t calx_sampler_size(const calx_sampler *sampler)
{
  return sampler != NULL ? sampler->count : 0;
}

int64_t calx_sampler_epoch(const calx_sampler *sampler)
{
  return sampler != NULL ? atomic_load(&sampler->epoch) : 0;
}

void calx_sampler_set_epoch(calx_sampler *sampler, int64_t epoch)
{
  if (sampler == NULL || sampler == &no_memory) return;
  atomic_store(&sampler->epoch, epoch);
}

calx_status *calx_sampler_order(const calx_sampler *sampler, int64_t *out_order)
{
  const calx_status *error = calx_sampler_error(sampler);
  if (error != NULL) return cx_status_copy(error);
  if (out_order == NULL) {
    return cx_invalid("sampler: there is no room for the order: it is NULL");
  }
  if (sampler->write_batches != NULL) {
    return cx_invalid(
        "sampler: it is a batch sampler: ask it with calx_sampler_batch_order");
  }
  return cx_data_sampler_order(sampler, calx_sampler_epoch(sampler), out_order);
}
