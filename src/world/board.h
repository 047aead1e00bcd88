// world/board: the memory that ranks agree in.
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
#ifndef CX_WORLD_BOARD_H
#define CX_WORLD_BOARD_H

#include "world/window.h"
#include "world/world.h"

enum { CX_BOARD_WHAT = 128, CX_BOARD_MESSAGE = 256, CX_BOARD_VERDICT = 1024 };

// Launch and agreements in one number that only grows.
#define CX_BOARD_EPOCH_SHIFT 40
static inline uint64_t cx_board_epoch(uint64_t at)
{
  return at >> CX_BOARD_EPOCH_SHIFT;
}
static inline uint64_t cx_board_count(uint64_t at)
{
  return at & ((UINT64_C(1) << CX_BOARD_EPOCH_SHIFT) - 1);
}

typedef enum cx_board_state {
  CX_RANK_RUNS,
  CX_RANK_ENDED,
  CX_RANK_FAILED
} cx_board_state;

typedef struct cx_brought {
  _Atomic uint64_t low, high;  // the key
  char what[CX_BOARD_WHAT];
} cx_brought;

typedef struct cx_slot {
  _Alignas(64) _Atomic uint64_t at;
  _Atomic uint32_t state;
  char message[CX_BOARD_MESSAGE];  // of a failed rank; before `state`
  cx_brought brought[2];
} cx_slot;

typedef struct cx_verdict {
  int32_t code;
  int32_t differ[2];  // two ranks whose keys differ; -1: it is not that
  cx_hash key;        // of the first
  char text[CX_BOARD_VERDICT];
} cx_verdict;

typedef struct cx_board {
  _Alignas(64) cx_bell bell;
  _Alignas(64) _Atomic uint64_t decided;  // at << 1, and whether it failed
  _Atomic uint64_t meeting;  // the last agreement taken to the other hosts
  _Atomic uint32_t writing;  // a verdict is being written
  _Atomic uint32_t ranks;
  cx_verdict verdict;
  cx_slot slots[];
} cx_board;

static inline size_t cx_board_bytes(int ranks)
{
  return sizeof(cx_board) + (size_t)ranks * sizeof(cx_slot);
}

// The board of a window.
static inline cx_board *cx_board_in(calx_window *head)
{
  return (cx_board *)(void *)((char *)head + CALX_WINDOW_BOARD);
}

// A rank of another host has ended.
void cx_board_tell_end(cx_board *board, int rank, uint64_t at,
                       cx_board_state state, const char *message);

#endif
