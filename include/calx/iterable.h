/**
 * calx/iterable.h: datasets that are read from their beginning to their end: of
 * unknown size, from a stream, a socket, a file that is too large to index.
 */
#ifndef CALX_ITERABLE_H
#define CALX_ITERABLE_H

#include "calx/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Which of a loader's workers calls. */
typedef struct calx_worker_info {
  int id;          /* 0 … num_workers - 1 */
  int num_workers; /* of this loader */
  uint64_t seed;   /* of this worker in this epoch, by the loader's seed */
  int64_t epoch;
} calx_worker_info;

/**
 * The calling worker. Of an iterable dataset it is the one that the iterator
 * is made for; of any other which worker gets which samples is chance.
 * @param out_info  outside of a worker: 0 of 1, seed 0, epoch 0
 * @return whether the caller is a loader's worker
 * @threads thread-safe
 * @source torch.utils.data.get_worker_info
 */
CALX_API bool calx_get_worker_info(calx_worker_info *out_info);

/** How an iterable dataset is read. Each worker of a loader makes an iterator
 *  of its own in each epoch, and ends it there. */
typedef struct calx_iterable {
  /* makes one; NULL: the iterator is `user` itself */
  calx_status *(*begin)(void *user, const calx_worker_info *info,
                        void **out_iterator);
  /* fills the next sample, each field's bytes; *out_over: there was none. Only
   * one thread at a time is in an iterator */
  calx_status *(*next)(void *iterator, void *const *fields, bool *out_over);
  /* frees one; may be NULL */
  void (*end)(void *iterator);
} calx_iterable;

/**
 * An iterable dataset of the caller's. Its size is 0 and it has no sample by
 * number, so samplers, ranges and the like refuse it. With several workers each
 * reads all of it, and its samples come several times, unless `begin` divides
 * them by calx_worker_info. Never NULL: calx_dataset_error() tells what is
 * wrong.
 * @param fields,n_fields,user,free  as of calx_dataset_new()
 * @param functions  copied
 * @errors INVALID_ARGUMENT no `next`; as calx_dataset_new()
 * @source torch.utils.data.IterableDataset
 */
CALX_API calx_dataset *calx_dataset_iterable(const calx_field *fields,
                                             size_t n_fields,
                                             const calx_iterable *functions,
                                             void *user,
                                             void (*free)(void *user));

/**
 * Iterable datasets, one after the other. They must outlive it; fields are
 * called as those of the first.
 * @param datasets  copied
 * @errors INVALID_ARGUMENT no dataset, one that is not iterable, fields that
 *         differ in number, dtype or shape; those of the datasets
 * @source torch.utils.data.ChainDataset
 */
CALX_API calx_dataset *calx_dataset_chain(calx_dataset *const *datasets,
                                          size_t count);

#ifdef __cplusplus
}
#elif !defined(CALX_NO_SITES)
#define calx_dataset_iterable(fields, ...) \
  (CALX_DATA_SITE_ calx_dataset_iterable(fields, __VA_ARGS__))
#define calx_dataset_chain(...) \
  (CALX_DATA_SITE_ calx_dataset_chain(__VA_ARGS__))
#endif
#endif
