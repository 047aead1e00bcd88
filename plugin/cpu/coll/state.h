// coll/state: how the engine's part of the window is laid out. All zero is its
// beginning, so nobody has to make it.
//
//   head     how many clients each process opened; the teams' keys
//   states   [team][place]
//   pieces   [device of this host][client is odd]: 2 in, CPU_COLL_OUTS out
//   regions  [place][client is odd], sparse
//
// A place is a device of the world: first this host's, then the others, of
// which there are copies.
#ifndef CPU_COLL_STATE_H
#define CPU_COLL_STATE_H

#include <stdatomic.h>

#include "abi/calx_window.h"
#include "base/text.h"
#include "base/thread.h"
#include "coll/window.h"

enum { CPU_COLL_TEAMS = 1024, CPU_COLL_HOST_DEVICES = 4096, CPU_COLL_DIMS = 6 };

typedef struct cpu_coll_host {
  uint32_t first, n;  // its devices
} cpu_coll_host;

typedef struct cpu_coll_head {
  _Atomic uint32_t clients[CPU_COLL_HOST_DEVICES];  // by the first device
  _Atomic uint64_t teams[CPU_COLL_TEAMS];           // 0: free
} cpu_coll_head;

// What a device came with; equal of all members of a group.
typedef enum cpu_coll_word {
  CPU_COLL_W_INDEX,
  CPU_COLL_W_PROGRAM,
  CPU_COLL_W_KIND,   // of the operation, element type << 16, operands << 32
  CPU_COLL_W_SHAPE,  // rank of the first operand
  CPU_COLL_W_DIMS,   // [CPU_COLL_DIMS], its first
  CPU_COLL_W_TYPES = CPU_COLL_W_DIMS + CPU_COLL_DIMS,  // a hash of all
  CPU_COLL_W_GROUP,                                    // a hash
  CPU_COLL_W_MEMBERS,  // a bit of each device of the world, of up to 64
  CPU_COLL_W_REST,     // a hash of attributes
  CPU_COLL_WORDS
} cpu_coll_word;

// Why a launch failed.
typedef struct cpu_coll_news {
  uint32_t code;
  // Whether it is true of all members as it stands: a mismatch, a wait in vain.
  uint32_t common;
  // Devices of the world, counted from 1, that came with different operations:
  // each may wait in a group that the other is not in.
  uint32_t differ[2];
  char words[752];
} cpu_coll_news;

// Of one device in one team. The step is the collective's number in the launch
// << 24, and the phase in it; it has a meaning only for the launch.
typedef struct cpu_coll_state {
  _Alignas(64) _Atomic uint64_t step;
  _Atomic uint64_t launch;
  _Atomic uint64_t ended;   // the last launch that ended
  _Atomic uint64_t failed;  // the last that failed, of which `news` tells
  _Alignas(64) _Atomic uint64_t header[16];
  // Those that wait for a group whose first member this device is.
  _Alignas(64) _Atomic uint32_t bell;
  _Atomic uint32_t sleepers;
  // cpu_coll_news, in words: one that writes and some that read may meet.
  _Alignas(64) _Atomic uint64_t news[sizeof(cpu_coll_news) / sizeof(uint64_t)];
} cpu_coll_state;
_Static_assert(sizeof(cpu_coll_state) == 1024, "16 lines");
_Static_assert((int)CPU_COLL_WORDS <= 16, "a header's words");

// Memory of a device as this process sees it.
typedef struct cpu_coll_map {
  unsigned char *at;
  size_t bytes;
  struct cpu_coll_map *older;  // smaller; somebody may still use it
} cpu_coll_map;

// One of this process's devices. Only its launches, one at a time, use it, but
// for the counts.
typedef struct cpu_coll_own {
  uint32_t device;  // of this host
  // The last collective, which other members may still be in.
  cpu_coll_state *team;
  uint32_t *members;  // places
  uint32_t n_members, room;
  // Of a group with members of other hosts.
  uint32_t *order;
  struct cpu_coll_side *sides;
  uint32_t side_room;
  bool hurries;  // the link's thread does not sleep
  uint64_t launch, step;
  const cpu_coll_part *part;  // of a direct collective
  uint32_t born;              // the generation of processes that it ran in
  size_t used;                // bytes of its region
  bool told;                  // `news` says why the launch fails
  cpu_coll_news news;
  _Atomic uint64_t launches[CPU_COLL_TEAMS];
} cpu_coll_own;

struct cpu_coll {
  int fd;         // -1: memory of this process alone
  unsigned odd;   // which half of the pieces and regions is this client's
  uint64_t seed;  // of the teams' keys: the number of the client
  cpu_coll_share share;
  calx_window *news;
  cpu_coll_head *head;
  cpu_coll_state *states;
  unsigned char *pieces;
  size_t fixed_bytes;  // of what is mapped from the head on
  int64_t regions_at;  // in the file
  size_t region_bytes;
  int spins;
  cx_mutex lock;       // of the maps
  cpu_coll_map *maps;  // [share.all]
  cpu_coll_own *own;   // [share.n_own]
  // Other hosts; NULL and 0: there are none.
  struct cpu_coll_mpi_link *link;
  cpu_coll_host *hosts;
  uint32_t n_hosts;
};

static inline uint32_t cpu_coll_place(const cpu_coll *w, uint32_t device)
{
  const uint32_t near = device - w->share.first;
  if (near < w->share.n) return near;
  return device < w->share.first ? device + w->share.n : device;
}
static inline uint32_t cpu_coll_device_at(const cpu_coll *w, uint32_t place)
{
  if (place < w->share.n) return place + w->share.first;
  return place - w->share.n < w->share.first ? place - w->share.n : place;
}
// The team of a key, which is made where there is none; false: no room.
bool cpu_coll_slot_of(cpu_coll *window, uint64_t key, uint32_t *out);

static inline cpu_coll_state *cpu_coll_states_of(const cpu_coll *w,
                                                 uint32_t team)
{
  return w->states + (size_t)team * w->share.all;
}
calx_status *cpu_coll_map_region(cpu_coll *window, uint32_t place, size_t bytes,
                                 unsigned char **out) CALX_MUST_USE;
// Whether a region of so many bytes has what is given back, and doing so. All
// must have left.
bool cpu_coll_is_large(size_t bytes);
void cpu_coll_trim_region(cpu_coll *window, uint32_t place);

// What the visitor came with; as words of a mismatch: devices a and b of the
// program came with x and y.
void cpu_coll_header_write(const cpu_coll_visit *visit,
                           const cpu_coll_reducer *reducer,
                           cpu_coll_state *state);
void cpu_coll_header_read(const cpu_coll_state *state,
                          uint64_t *out);  // CPU_COLL_WORDS
void cpu_coll_news_write(cpu_coll_state *state, const cpu_coll_news *news);
void cpu_coll_news_read(const cpu_coll_state *state, cpu_coll_news *out);
void cpu_coll_put_mismatch(cx_text *out, const cpu_coll_launch *launch,
                           uint32_t a, const uint64_t *x, uint32_t b,
                           const uint64_t *y);

// A sleep until the word is not `read` any more, or `most_ms` passed; a wake of
// all that sleep so. Of any process.
void cpu_coll_sleep(_Atomic uint32_t *word, uint32_t read, int64_t most_ms);
void cpu_coll_wake(_Atomic uint32_t *word);
void cpu_coll_yield(void);
// Wakes those that sleep on a state.
void cpu_coll_ring(cpu_coll_state *state);

#endif
