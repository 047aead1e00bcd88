// world/agreement: the memory in which ranks agree on a key.
//
// It lies in the segment that the processes of a host share, or on the heap.
// All zeros is the empty state. It has a slot for every rank of the world; a
// rank that shares no memory with this process uses its slot only to report its
// end.
//
// A point in time is a 64-bit number that only grows: the launch (epoch) in the
// upper bits, the number of agreements below. A rank takes part in an agreement
// by writing its submission and then its slot's `at`. One compare-exchange of
// `decided` settles the agreement, so all ranks get one outcome. A failed
// outcome stays until the next launch. A slot has two submissions, used in
// turn: a rank starts its next agreement only after all have reached the last
// one, so nobody still reads the submission that it overwrites.
#ifndef CX_WORLD_AGREEMENT_H
#define CX_WORLD_AGREEMENT_H

#include "world/segment.h"
#include "world/world.h"

enum {
  CX_WORLD_OPERATION_BYTES = 128,
  CX_WORLD_MESSAGE_BYTES = 256,
  CX_WORLD_OUTCOME_BYTES = 1024
};

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
  char message[CX_WORLD_MESSAGE_BYTES];  // of a failed rank; set before `state`
  cx_world_submission submissions[2];
} cx_world_rank_slot;

// Why an agreement failed.
typedef struct cx_world_outcome {
  int32_t code;
  int32_t differ[2];  // two ranks with different keys; -1: another reason
  cx_hash key;        // of the first
  char text[CX_WORLD_OUTCOME_BYTES];
} cx_world_outcome;

typedef struct cx_world_agreement {
  _Alignas(64) cx_world_wake_word wake;
  _Alignas(64) _Atomic uint64_t decided;  // at << 1, plus 1 if it failed
  _Atomic uint64_t exchanged;  // the last agreement that a rank took to the
                               // other host groups
  _Atomic uint32_t writing;    // a rank writes the outcome
  _Atomic uint32_t ranks;
  cx_world_outcome outcome;
  cx_world_rank_slot slots[];
} cx_world_agreement;

static inline size_t cx_world_agreement_bytes(int ranks)
{
  return sizeof(cx_world_agreement) +
         (size_t)ranks * sizeof(cx_world_rank_slot);
}

static inline cx_world_agreement *cx_world_agreement_in(calx_segment_head *head)
{
  return (cx_world_agreement *)(void *)((char *)head + CALX_SEGMENT_AGREEMENT);
}

// The key of the slot's submission for an agreement.
static inline cx_hash cx_world_submission_key(const cx_world_submission *s)
{
  return (cx_hash){ atomic_load_explicit(&s->low, memory_order_relaxed),
                    atomic_load_explicit(&s->high, memory_order_relaxed) };
}

#endif
