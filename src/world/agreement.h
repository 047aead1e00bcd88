// world/agreement: the memory that ranks agree in.
//
// It lies in the window that the processes of a host share, or on the heap, and
// all zeros is an empty board. It has a slot for every rank of the world; those
// of ranks that share no memory with this process only ever tell that they
// ended.
//
// `at` and `decided` are places in time: which launch (an epoch), then how many
// agreements. A rank comes to an agreement by writing what it brings and then
// its `at`; the agreement is settled by one compare-exchange of `decided`, so
// that all ranks have one verdict. A failed verdict stays until the next
// launch. What a rank brings has two places, used in turn: a rank is in its
// next agreement only after all came to the one before, so nobody still reads
// the place that it writes.
#ifndef CX_WORLD_AGREEMENT_H
#define CX_WORLD_AGREEMENT_H

#include "world/segment.h"
#include "world/world.h"

enum {
  CX_WORLD_OPERATION_BYTES = 128,
  CX_WORLD_MESSAGE_BYTES = 256,
  CX_WORLD_OUTCOME_BYTES = 1024
};

// Launch and agreements in one number that only grows.
#define CX_WORLD_EPOCH_SHIFT 40
static inline uint64_t cx_world_epoch(uint64_t at)
{
  return at >> CX_WORLD_EPOCH_SHIFT;
}
static inline uint64_t cx_world_agreement_count(uint64_t at)
{
  return at & ((UINT64_C(1) << CX_WORLD_EPOCH_SHIFT) - 1);
}

typedef enum cx_world_rank_state {
  CX_WORLD_RANK_RUNS,
  CX_WORLD_RANK_ENDED,
  CX_WORLD_RANK_FAILED
} cx_world_rank_state;

typedef struct cx_world_submission {
  _Atomic uint64_t low, high;  // the key
  char what[CX_WORLD_OPERATION_BYTES];
} cx_world_submission;

typedef struct cx_world_rank_slot {
  _Alignas(64) _Atomic uint64_t at;
  _Atomic uint32_t state;
  char message[CX_WORLD_MESSAGE_BYTES];  // of a failed rank; before `state`
  cx_world_submission brought[2];
} cx_world_rank_slot;

typedef struct cx_world_outcome {
  int32_t code;
  int32_t differ[2];  // two ranks whose keys differ; -1: it is not that
  cx_hash key;        // of the first
  char text[CX_WORLD_OUTCOME_BYTES];
} cx_world_outcome;

typedef struct cx_world_agreement {
  _Alignas(64) cx_world_wake_word bell;
  _Alignas(64) _Atomic uint64_t decided;  // at << 1, and whether it failed
  _Atomic uint64_t meeting;  // the last agreement taken to the other hosts
  _Atomic uint32_t writing;  // a verdict is being written
  _Atomic uint32_t ranks;
  cx_world_outcome verdict;
  cx_world_rank_slot slots[];
} cx_world_agreement;

static inline size_t cx_world_agreement_bytes(int ranks)
{
  return sizeof(cx_world_agreement) +
         (size_t)ranks * sizeof(cx_world_rank_slot);
}

// The board of a window.
static inline cx_world_agreement *cx_world_agreement_in(calx_window *head)
{
  return (cx_world_agreement *)(void *)((char *)head + CALX_WINDOW_BOARD);
}

// A rank of another host has ended.
void cx_world_agreement_note_end(cx_world_agreement *board, int rank,
                                 uint64_t at, cx_world_rank_state state,
                                 const char *message);

#endif
