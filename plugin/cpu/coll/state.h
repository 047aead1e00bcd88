// coll/state: the layout of the engine's part of the segment, and what a
// process keeps about it. A segment of zeros is valid, so no process has to
// initialise it.
//
//   head              clients that each process opened; keys of device groups
//   states            [device group][slot]
//   staging buffers   [device of this host][client % 2][2 + STAGING_OUTS]
//   operand buffers   [slot][client % 2], sparse
//
// [client % 2]: two clients alternate, so that the old one's data stays valid
// while the new one starts.
//
// A slot is the index of a device of the world in these arrays: first the
// devices of this host, then the others, whose states and operands are copies.
#ifndef CPU_COLL_STATE_H
#define CPU_COLL_STATE_H

#include <stdatomic.h>

#include "abi/calx_segment.h"
#include "base/text.h"
#include "base/thread.h"
#include "coll/peers.h"
#include "coll/segment.h"

enum {
  CPU_COLL_DEVICE_GROUPS = 1024,
  CPU_COLL_HOST_DEVICES = 4096,
  CPU_COLL_DIMS = 6
};

typedef struct cpu_coll_host {
  uint32_t first, n;  // its devices
} cpu_coll_host;

typedef struct cpu_coll_head {
  // How many clients a process has opened, by the process's first device.
  _Atomic uint32_t clients[CPU_COLL_HOST_DEVICES];
  _Atomic uint64_t device_groups[CPU_COLL_DEVICE_GROUPS];  // keys; 0: free
} cpu_coll_head;

// The header describes a submission. It is equal on all members of a group.
typedef enum cpu_coll_field {
  CPU_COLL_FIELD_INDEX,  // of the collective in the launch
  CPU_COLL_FIELD_PROGRAM,
  CPU_COLL_FIELD_KIND,   // of the operation, element type << 16, operands << 32
  CPU_COLL_FIELD_SHAPE,  // rank of the first operand
  CPU_COLL_FIELD_DIMS,   // [CPU_COLL_DIMS]: the first ones of that operand
  CPU_COLL_FIELD_TYPES = CPU_COLL_FIELD_DIMS + CPU_COLL_DIMS,  // hash of all
  CPU_COLL_FIELD_GROUP,                                        // hash
  CPU_COLL_FIELD_MEMBERS,  // a bit for each device of a world of up to 64
  CPU_COLL_FIELD_REST,     // hash of attributes and region
  CPU_COLL_FIELDS
} cpu_coll_field;

// Why a launch failed.
typedef struct cpu_coll_failure {
  uint32_t code;
  // Whether code and message hold for all members as they are; else the message
  // only says how this device failed.
  uint32_t common;
  // Two devices of the world that submitted different operations, counted from
  // 1. Each may wait in a group that the other one is not in.
  uint32_t differ[2];
  char message[752];
} cpu_coll_failure;

// The state of one device in one device group.
typedef struct cpu_coll_state {
  // The collective's index in the launch << 24, plus the phase in it. Valid
  // only together with `launch`.
  _Alignas(64) _Atomic uint64_t step;
  _Atomic uint64_t launch;
  _Atomic uint64_t ended;   // the last launch that ended
  _Atomic uint64_t failed;  // the last one that failed: `failure` describes it
  _Alignas(64) _Atomic uint64_t header[16];
  // A futex of those that wait in a group whose first member this device is.
  _Alignas(64) _Atomic uint32_t wake_word;
  _Atomic uint32_t sleepers;
  // A cpu_coll_failure. It is stored by words, because others may read it at
  // the same time; they check `failed` before and after.
  _Alignas(
      64) _Atomic uint64_t failure[sizeof(cpu_coll_failure) / sizeof(uint64_t)];
} cpu_coll_state;
_Static_assert(sizeof(cpu_coll_state) == 1024, "16 cache lines");
_Static_assert((int)CPU_COLL_FIELDS <= 16, "a header has room for all fields");

// An operand buffer as this process has mapped it.
typedef struct cpu_coll_mapping {
  unsigned char *at;
  size_t bytes;
  struct cpu_coll_mapping *older;  // smaller; a device may still use it
} cpu_coll_mapping;

// A device of this process. Only its own launches use this, one at a time,
// except for the counts.
typedef struct cpu_coll_local_device {
  uint32_t slot;
  // The last collective. Other members may still be in it.
  cpu_coll_state *states;  // of its device group
  uint32_t n_members, room;
  uint32_t *members;  // [room]: slots
  uint32_t *order;    // [room]: indices into the group, sorted by hosts
  cpu_coll_host_group *host_groups;  // [room]
  uint64_t launch, step;
  bool keeps_polling;  // counted by cpu_coll_link_keep_polling()
  const cpu_coll_submission *submission;  // of a direct collective
  uint32_t generation;   // cpu_threads_generation() of the last collective
  size_t operand_bytes;  // used of its operand buffer
  bool reported;         // `failure` says why the launch fails
  cpu_coll_failure failure;
  _Atomic uint64_t launches[CPU_COLL_DEVICE_GROUPS];
} cpu_coll_local_device;

struct cpu_coll {
  int fd;           // -1: private memory
  unsigned parity;  // client % 2
  uint64_t seed;    // of the device groups' keys: the number of the client
  cpu_coll_topology topology;
  calx_segment_head *job;  // where the library reports that the job has failed
  cpu_coll_head *head;
  cpu_coll_state *states;
  unsigned char *staging;
  size_t fixed_bytes;            // mapped from `head` on
  int64_t operands_at;           // offset of the operand buffers in the file
  size_t operand_room;           // bytes of one
  int spins;                     // of a wait, before it yields
  cx_mutex lock;                 // of the mappings
  cpu_coll_mapping *mappings;    // [topology.n_world]
  cpu_coll_local_device *local;  // [topology.n_own]
  cpu_coll_peer *peers;          // [this host's processes]; NULL: not watched
  struct cpu_coll_link *link;    // NULL: there is one host
  cpu_coll_host *hosts;
  uint32_t n_hosts;
};

static inline uint32_t cpu_coll_slot(const cpu_coll *coll, uint32_t device)
{
  const cpu_coll_topology *t = &coll->topology;
  if (device - t->host_first < t->n_host) return device - t->host_first;
  return device < t->host_first ? device + t->n_host : device;
}
static inline uint32_t cpu_coll_device_of_slot(const cpu_coll *coll,
                                               uint32_t slot)
{
  const cpu_coll_topology *t = &coll->topology;
  if (slot < t->n_host) return slot + t->host_first;
  return slot - t->n_host < t->host_first ? slot - t->n_host : slot;
}
// Opens or makes the segment and maps it. `keep`: what MPI may write to stays
// mapped.
calx_status *cpu_coll_segment_open(cpu_coll *coll) CALX_MUST_USE;
void cpu_coll_segment_close(cpu_coll *coll, bool keep);

// Finds the device group of a key, or makes it; false: the table is full.
bool cpu_coll_find_device_group(cpu_coll *coll, uint64_t key, uint32_t *out);

static inline cpu_coll_state *cpu_coll_states_of(const cpu_coll *coll,
                                                 uint32_t device_group)
{
  return coll->states + (size_t)device_group * coll->topology.n_world;
}
calx_status *cpu_coll_map_operands(cpu_coll *coll, uint32_t slot, size_t bytes,
                                   unsigned char **out) CALX_MUST_USE;
// Whether an operand buffer of this size is worth returning to the system; and
// returning it, when all members have left.
bool cpu_coll_is_large(size_t bytes);
void cpu_coll_trim_operands(cpu_coll *coll, uint32_t slot);

void cpu_coll_header_write(const cpu_coll_participant *participant,
                           const cpu_coll_reducer *reducer,
                           cpu_coll_state *state);
void cpu_coll_header_read(const cpu_coll_state *state,
                          uint64_t *out);  // [CPU_COLL_FIELDS]
// A state's words are stored one by one, since others may read them.
void cpu_coll_words_store(_Atomic uint64_t *to, const uint64_t *words,
                          size_t n);
// Publishes why a launch failed.
void cpu_coll_failure_write(cpu_coll_state *state,
                            const cpu_coll_failure *failure, uint64_t launch);
// False: the device's last failure is not, or no longer, of this launch.
bool cpu_coll_failure_read(cpu_coll_state *state, uint64_t launch,
                           cpu_coll_failure *out);

// The step before the launch: together they must never show an arrival.
static inline void cpu_coll_set_launch(cpu_coll_state *s, uint64_t launch)
{
  if (atomic_load(&s->launch) == launch) return;
  atomic_store(&s->step, 0);
  atomic_store(&s->launch, launch);
}

// Wakes those that sleep on the state's wake word, in all processes.
void cpu_coll_wake_sleepers(cpu_coll_state *state);
// Wakes all sleepers of a device group.
void cpu_coll_wake_all(const cpu_coll *coll, cpu_coll_state *states);

#endif
