/**
 * calx/collective.h: operations in which all ranks take part.
 *
 * Inside calx_launch() every rank records the same collectives in the same
 * order; they run inside the step's program. With a world of one rank each of
 * them is what its formula says for N = 1. All members of a group get the same
 * bits. Names and meanings are those of torch_xla.core.xla_model.
 *
 * A program with collectives runs when all ranks have come to it: at their
 * syncs, and where a value that needs it is read. Where the ranks' programs
 * differ, none runs and every rank is told which ranks, and the first operation
 * that differs with its call site.
 *
 * Common to all, unless said otherwise:
 * @errors   INVALID_ARGUMENT  shapes, dtypes, groups or options that do not
 *           fit; a host tensor.  FAILED_PRECONDITION  the tensor's device is no
 *           rank.  At the sync or read: ABORTED  the ranks' programs differ, or
 *           a rank ended or failed; DEADLINE_EXCEEDED  who did not come in time
 *           (CALX_COLLECTIVE_TIMEOUT_S)
 * @owner    the current scope
 * @threads  each rank calls from its own thread
 */
#ifndef CALX_COLLECTIVE_H
#define CALX_COLLECTIVE_H

#include "calx/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How the ranks' elements are combined. AND and OR: logical for bool, bitwise
 *  for integers, refused for floating types. */
typedef enum calx_reduce_type {
  CALX_REDUCE_SUM,
  CALX_REDUCE_MIN,
  CALX_REDUCE_MAX,
  CALX_REDUCE_MUL,
  CALX_REDUCE_AND,
  CALX_REDUCE_OR
} calx_reduce_type;

/**
 * Ranks that work among themselves: `ids` lists global ordinals, group after
 * group, each of count / groups members; every rank is in exactly one. Zero:
 * one group of all ranks, in their order.
 */
typedef struct CALX_OPTIONS calx_groups {
  CALX_NO_NUMBER
  CALX_NAMED const int64_t *ids;
  CALX_NAMED size_t count;  /* of ids */
  CALX_NAMED size_t groups; /* 0 = 1 */
} calx_groups;

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_collective_options {
  CALX_NAMED size_t size;
  /* the result is multiplied by it; 0 = 1, CALX_ZERO = 0; whole for integers;
   * none for bool and a broadcast. Never part of a compiled program */
  CALX_NAMED double scale;
  CALX_NAMED calx_groups groups;
} calx_collective_options;

/**
 * The reduction of the ranks' tensors, on every rank.
 * @shape any -> the same  @dtype any but bool for SUM, MIN, MAX, MUL
 * @gradient SUM: the sum of the ranks' gradients, scaled; others: an error
 * @source torch_xla all_reduce
 */
CALX_API calx_tensor *calx_all_reduce_with(
    calx_tensor *tensor, calx_reduce_type type,
    const calx_collective_options *options);
/** The same for several tensors at once, in place: each handle gets its
 *  reduction as its new value, without a gradient; none does when one does not
 *  fit. Tensors of one dtype travel together. @shape any
 *  @source torch_xla all_reduce */
CALX_API void calx_all_reduce_list_with(calx_tensor *const *tensors,
                                        size_t count, calx_reduce_type type,
                                        const calx_collective_options *options);

/** The ranks' tensors joined along `dim`, in the order of the group; a tensor
 *  of rank 0 counts as one of a single element.
 *  @shape (…, d, …) -> (…, members * d, …), equal on all ranks
 *  @gradient reduce_scatter of the sum  @source torch_xla all_gather */
CALX_API calx_tensor *calx_all_gather_with(
    calx_tensor *tensor, int64_t dim, const calx_collective_options *options);

/** Each member's slice of the reduction: of `members` equal parts along `dim`,
 *  the k-th goes to the k-th member.
 *  @shape (…, members * d, …) -> (…, d, …)
 *  @gradient SUM: all_gather, scaled  @source torch_xla reduce_scatter */
CALX_API calx_tensor *calx_reduce_scatter_with(
    calx_tensor *tensor, calx_reduce_type type, int64_t dim,
    const calx_collective_options *options);

/** Part k of `members` equal parts along split_dim goes to the k-th member,
 *  which joins what it gets along concat_dim.
 *  @shape split_dim / members, concat_dim * members
 *  @gradient all_to_all the other way  @source torch_xla all_to_all */
CALX_API calx_tensor *calx_all_to_all_with(
    calx_tensor *tensor, int64_t split_dim, int64_t concat_dim,
    const calx_collective_options *options);

/** From pairs[2i] to pairs[2i + 1]; a rank that gets nothing has zeros.
 *  @param n_pairs  no rank twice as source, none twice as target
 *  @shape any -> the same  @gradient along the reversed pairs
 *  @source torch_xla collective_permute */
CALX_API calx_tensor *calx_collective_permute(calx_tensor *tensor,
                                              const int64_t *pairs,
                                              size_t n_pairs);

/** The root's values become everybody's, in place; what the others hold does
 *  not matter, NaN included.
 *  @param root  its place in the group @shape any, equal on all ranks
 *  @source torch_xla collective_broadcast */
CALX_API void calx_collective_broadcast_with(
    calx_tensor *const *tensors, size_t count, int64_t root,
    const calx_collective_options *options);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_collective_options_ .scale = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_collective_options, calx_written_(&o->scale);)
#endif
#ifdef __cplusplus
}
#endif

// ---- call sites and options in C, as in calx/ops_macros.h -------------------

#if !defined(CALX_NO_SITES) && !defined(__cplusplus)
// clang-format off
#define calx_all_reduce(x, ...) CALX_ALL_REDUCE_(x, __VA_ARGS__, .size = sizeof(calx_collective_options))
#define CALX_ALL_REDUCE_(x, type, ...) (calx_at_(CALX_HERE), calx_all_reduce_with(CALX_T_(x), type, CALX_O_(CALX_WRITE_(calx_collective_options, __VA_ARGS__))))
#define calx_all_reduce_list(tensors, count, ...) CALX_ALL_REDUCE_LIST_(tensors, count, __VA_ARGS__, .size = sizeof(calx_collective_options))
#define CALX_ALL_REDUCE_LIST_(tensors, count, type, ...) (calx_at_(CALX_HERE), calx_all_reduce_list_with(tensors, count, type, CALX_O_(CALX_WRITE_(calx_collective_options, __VA_ARGS__))))
#define calx_all_gather(x, ...) CALX_ALL_GATHER_(x, __VA_ARGS__, .size = sizeof(calx_collective_options))
#define CALX_ALL_GATHER_(x, dim, ...) (calx_at_(CALX_HERE), calx_all_gather_with(CALX_T_(x), dim, CALX_O_(CALX_WRITE_(calx_collective_options, __VA_ARGS__))))
#define calx_reduce_scatter(x, type, ...) CALX_REDUCE_SCATTER_(x, type, __VA_ARGS__, .size = sizeof(calx_collective_options))
#define CALX_REDUCE_SCATTER_(x, type, dim, ...) (calx_at_(CALX_HERE), calx_reduce_scatter_with(CALX_T_(x), type, dim, CALX_O_(CALX_WRITE_(calx_collective_options, __VA_ARGS__))))
#define calx_all_to_all(x, split_dim, ...) CALX_ALL_TO_ALL_(x, split_dim, __VA_ARGS__, .size = sizeof(calx_collective_options))
#define CALX_ALL_TO_ALL_(x, split_dim, concat_dim, ...) (calx_at_(CALX_HERE), calx_all_to_all_with(CALX_T_(x), split_dim, concat_dim, CALX_O_(CALX_WRITE_(calx_collective_options, __VA_ARGS__))))
#define calx_collective_permute(x, ...) (calx_at_(CALX_HERE), calx_collective_permute(CALX_T_(x), __VA_ARGS__))
#define calx_collective_broadcast(tensors, count, ...) CALX_COLLECTIVE_BROADCAST_(tensors, count, __VA_ARGS__, .size = sizeof(calx_collective_options))
#define CALX_COLLECTIVE_BROADCAST_(tensors, count, root, ...) (calx_at_(CALX_HERE), calx_collective_broadcast_with(tensors, count, root, CALX_O_(CALX_WRITE_(calx_collective_options, __VA_ARGS__))))
// clang-format on
#endif
#endif
