/**
 * calx/dist.h: ranks, how they start, and training in step.
 *
 * A rank is one device's copy of the program, with its own scope, model and
 * optimiser. calx_launch() starts the ranks: a thread per local device, or
 * processes (CALX_PROCESSES=n, `calx run -n 4 ./prog`, mpirun, srun, torchrun);
 * the same program works under all of them. Both generations of PyTorch/XLA's
 * names for what is here are in docs/guide.md.
 */
#ifndef CALX_DIST_H
#define CALX_DIST_H

#include "calx/collective.h"
#include "calx/optim.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- who am I: never fail, valid outside of calx_launch too (a world of 1) --
// @threads of the calling thread's rank: by its current device

/** Ranks in all (xr.world_size, xm.xrt_world_size). */
CALX_API int calx_world_size(void);
/** This rank, 0 … world size - 1 (xr.global_ordinal, xm.get_ordinal). */
CALX_API int calx_global_ordinal(void);
/** This rank among those of its host (xr.local_ordinal). */
CALX_API int calx_local_ordinal(void);
/** Ranks of this host. */
CALX_API int calx_local_world_size(void);
/** This process among all (xr.process_index), and how many there are. */
CALX_API int calx_process_index(void);
CALX_API int calx_process_count(void);
/** This host among all (xr.host_index), and how many there are. */
CALX_API int calx_host_index(void);
CALX_API int calx_host_count(void);
/** Whether this rank is the first: of its host, or of all. */
CALX_API bool calx_is_master_ordinal(bool local);
/** printf on the first rank of all, flushed; silent on the others. A progress
 *  bar makes room for it. */
CALX_API void calx_master_print(const char *format, ...) CALX_PRINTF(1, 2);

// ---- starting ---------------------------------------------------------------

/** What each rank runs. @param index the rank's global ordinal
 *  @return NULL, or why the rank failed: calx_launch tells it with the rank */
typedef calx_status *calx_rank_fn(int index, void *user);

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_launch_options {
  CALX_NAMED size_t size;
  /* 0 = CALX_PROCESSES, else 1; ignored where a launcher (calx run, mpirun,
   * srun, torchrun) has started the processes */
  CALX_NAMED int processes;
  CALX_NAMED int devices; /* of each process; 0 = all (CPU_NUM_DEVICES) */
} calx_launch_options;

/**
 * Runs `fn` on every rank and waits for all. Within a process each local device
 * is one thread's; `user` is shared by them, and a copy in each process that it
 * starts. A rank that fails ends the others at their next collective.
 * @errors FAILED_PRECONDITION a device was used before ("Runtime is already
 *         initialized…"), or it is called inside a rank; those of meeting the
 *         other processes; the first failed rank's own, with its number
 */
CALX_API calx_status *calx_launch_with(calx_rank_fn *fn, void *user,
                                       const calx_launch_options *options)
    CALX_MUST_USE;

// ---- training in step -------------------------------------------------------

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_reduce_gradients_options {
  CALX_NAMED size_t size;
  /* 0 = 25; CALX_ZERO: one collective a gradient */
  CALX_NAMED double bucket_mb;
  CALX_NAMED calx_groups groups;
} calx_reduce_gradients_options;
/**
 * Replaces every gradient of the optimiser's parameters by its mean over the
 * ranks, or over those of its group (all_reduce of the sum, times 1/members),
 * in buckets in the order in which the backward pass makes them. Nothing in a
 * world of 1.
 * @errors through the scope  @source torch_xla reduce_gradients
 */
CALX_API void calx_reduce_gradients_with(
    calx_optimizer *opt, const calx_reduce_gradients_options *options);

/**
 * The seeds' xm.optimizer_step: reduces the gradients, steps, syncs. Returns
 * the mean of `loss` over all ranks, materialised; NULL loss: returns NULL.
 * Inside a loader with batches_per_execution above 1 the loader syncs.
 * @shape loss one element  @errors through the scope
 */
CALX_API calx_tensor *calx_dist_step(calx_optimizer *opt, calx_tensor *loss);

/** Makes the optimiser that steps on a rank's shards, calx_adamw(shards) say.
 */
typedef calx_optimizer *calx_make_optimizer_fn(void *user, calx_module *shards);
/** .make is wanted. */
typedef struct CALX_OPTIONS calx_zero_redundancy_options {
  CALX_NAMED size_t size;
  /* called by the call itself; twice where the rule takes norms of parameters
     (LAMB, LARS), whose shards are others */
  CALX_NAMED calx_make_optimizer_fn *make;
  CALX_NAMED void *user; /* for make */
} calx_zero_redundancy_options;
/**
 * ZeRO, stage 1: each rank keeps the optimiser's state of 1/world of the
 * parameters' elements, and steps that part for all. The updates are the plain
 * optimiser's. Its step reduces the gradients by itself: calx_dist_step() and
 * calx_optimizer_step() do the same, and calx_reduce_gradients() nothing.
 *
 *   static calx_optimizer *adamw(void *user, calx_module *shards)
 *   {
 *     return calx_adamw(shards, .lr = 1e-3);
 *   }
 *   …
 *   calx_zero_redundancy_optimizer(model, .make = adamw);
 *
 * calx_optimizer_state() counts the shards, one for each group and dtype of
 * parameters; of LAMB and LARS one for each parameter.
 * @errors INVALID_ARGUMENT no .make, or it gives an optimiser of something else
 *         than the shards, or Adafactor; those of the optimiser; a step:
 * FAILED_PRECONDITION only some parameters have a gradient
 * @source torch_xla ZeroRedundancyOptimizer; S. Rajbhandari et al. (2019)
 */
CALX_API calx_optimizer *calx_zero_redundancy_optimizer_with(
    calx_module *model, const calx_zero_redundancy_options *options);

/** Parameters and buffers of rank 0 become everybody's; syncs.
 *  @source torch_xla broadcast_master_param */
CALX_API void calx_broadcast_master_param(calx_module *model);

/**
 * Every rank's bytes to every rank, and a barrier. Payloads may differ in
 * length and be empty. Works without a device.
 * @param tag  of this meeting, for messages; ranks must agree on it
 * @param out_payloads,out_sizes  world-size many, payload of rank i at i; each
 *        freed with calx_string_free(). May be NULL: a barrier.
 * @errors DEADLINE_EXCEEDED the missing ranks' numbers  ABORTED a rank ended or
 *         failed, another tag
 * @source torch_xla rendezvous
 */
CALX_API calx_status *calx_rendezvous(const char *tag, const void *payload,
                                      size_t bytes, char **out_payloads,
                                      size_t *out_sizes) CALX_MUST_USE;
/** Combines the ranks' host values, on every rank, in the order of the ranks.
 *  `reduce` gets world-size arrays of `count` numbers.
 *  @source torch_xla mesh_reduce */
typedef void calx_mesh_reduce_fn(const double *const *values, size_t ranks,
                                 size_t count, double *out);
CALX_API calx_status *calx_mesh_reduce(const char *tag, const double *values,
                                       size_t count,
                                       calx_mesh_reduce_fn *reduce,
                                       double *out) CALX_MUST_USE;

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_reduce_gradients_options_ \
  .bucket_mb = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_reduce_gradients_options, calx_written_(&o->bucket_mb);)
#endif
#ifdef __cplusplus
}
#else
#ifdef CALX_NO_SITES
#define CALX_DIST_SITE_
#else
#define CALX_DIST_SITE_ calx_at_(CALX_HERE),
#define calx_dist_step(opt, loss) \
  (calx_at_(CALX_HERE), calx_dist_step(opt, calx_here_(loss, CALX_HERE)))
#define calx_broadcast_master_param(model) \
  (calx_at_(CALX_HERE), calx_broadcast_master_param(model))
#define calx_rendezvous(tag, ...) \
  (calx_at_(CALX_HERE), calx_rendezvous(tag, __VA_ARGS__))
#define calx_mesh_reduce(tag, ...) \
  (calx_at_(CALX_HERE), calx_mesh_reduce(tag, __VA_ARGS__))
#endif
#define CALX_LAUNCH_(fn, user, ...) \
  calx_launch_with(fn, user, &(calx_launch_options){ __VA_ARGS__ })
#define calx_launch(fn, ...)                     \
  (CALX_DIST_SITE_ CALX_LAUNCH_(fn, __VA_ARGS__, \
                                .size = sizeof(calx_launch_options)))
#define CALX_ZERO_REDUNDANCY_(model, ...) \
  calx_zero_redundancy_optimizer_with(    \
      model, &(calx_zero_redundancy_options){ __VA_ARGS__ })
#define calx_zero_redundancy_optimizer(...) \
  CALX_ZERO_REDUNDANCY_(__VA_ARGS__,        \
                        .size = sizeof(calx_zero_redundancy_options))
#define CALX_REDUCE_GRADIENTS_(opt, ...) \
  calx_reduce_gradients_with(            \
      opt, CALX_WRITE_(calx_reduce_gradients_options, __VA_ARGS__))
#define calx_reduce_gradients(...)         \
  (CALX_DIST_SITE_ CALX_REDUCE_GRADIENTS_( \
      __VA_ARGS__, .size = sizeof(calx_reduce_gradients_options)))
#endif
#endif
