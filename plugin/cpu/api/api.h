// api: the engine as a PJRT plugin. The structs of the module.
//
// A caller holds buffers; programs read and write values. A value is the memory
// of a tensor and the event that is set when the memory has its content.
// Deleting or donating a buffer takes the value from it. A launch, a copy or a
// view holds the value as long as it needs it. So destroying an object that is
// in use never waits.
//
// The memory of a launch's result is allocated when the launch runs. It may be
// the memory of a donated argument, if nothing else holds that by then.
// Therefore code that needs the address of a value waits for its event first.
//
// A client lives until its handle is destroyed and its last buffer, value and
// executable is freed. Its threads end with the handle.
#ifndef CPU_API_API_H
#define CPU_API_API_H

#include <stdatomic.h>

#include "abi/pjrt_ffi.h"
#include "abi/pjrt_layouts.h"
#include "abi/pjrt_shardings.h"
#include "api/args.h"
#include "base/arena.h"
#include "base/status.h"
#include "base/thread.h"
#include "coll/coll.h"
#include "hlo/types.h"
#include "run/program.h"
#include "threads/threads.h"

// The version that the table reports, and the platform's name where the option
// platform_name does not ask for another one. A later minor version would
// promise functions and objects that clients then use.
#define CPU_API_MINOR 104
#define CPU_API_PLATFORM "calx_cpu"
#define CPU_API_COSTS 4  // properties of a cost analysis
#define CPU_API_MAX_RANK 64
#define CPU_API_MAX_DEVICES 4096

// ---- reference counts ----

static inline void cpu_api_ref(atomic_long *refs)
{
  atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
}
// Whether that was the last reference.
static inline bool cpu_api_unref(atomic_long *refs)
{
  return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}

// ---- events ----

typedef void cpu_api_callback(void *user, const calx_status *error);

// An event is counted. It is pending until it is set, with an error or without.
PJRT_Event *cpu_api_event_new(void);  // pending; NULL: no memory
// What sets an event, if a caller that awaits it can help.
typedef struct cpu_api_maker {
  void (*help)(void *user, const PJRT_Event *event);  // may do nothing
  void (*release)(void *user);                        // with the event
  void *user;
} cpu_api_maker;
PJRT_Event *cpu_api_event_made_by(const cpu_api_maker *maker);
// One that a copy of something sets, after `source`.
PJRT_Event *cpu_api_event_after(PJRT_Event *source);
PJRT_Event *cpu_api_event_ready(void);  // a static one, set without an error
// An event that is set with this error, which is taken. NULL: the static one.
PJRT_Event *cpu_api_event_done(calx_status *error);
PJRT_Event *cpu_api_event_retain(PJRT_Event *event);
void cpu_api_event_release(PJRT_Event *event);  // NULL is accepted
bool cpu_api_event_is_ready(const PJRT_Event *event);
// Takes the error (NULL: success) and runs the callbacks. False: the event was
// set before.
bool cpu_api_event_set(PJRT_Event *event, calx_status *error);
void cpu_api_event_wait(PJRT_Event *event);
// The error of a ready event, which lives as long as the event; NULL: none.
const calx_status *cpu_api_event_error(const PJRT_Event *event);
// Calls fn once: now if the event is ready, else when it is set, by the thread
// that sets it.
calx_status *cpu_api_event_then(PJRT_Event *event, cpu_api_callback *fn,
                                void *user) CALX_MUST_USE;

// ---- types and layouts ----

int cpu_api_type_of(cx_hlo_elem elem);  // PJRT_Buffer_Type
size_t cpu_api_type_bytes(int type);    // on host and device; 0: none
bool cpu_api_type_is_narrow(int type);  // less than eight bits, or a boolean

typedef struct cpu_api_shape {
  int type;  // PJRT_Buffer_Type
  size_t rank;
  const int64_t *dims;
} cpu_api_shape;

calx_status *cpu_api_shape_check(const cpu_api_shape *shape,
                                 size_t *out_bytes) CALX_MUST_USE;
// Checks a caller's shape, and that the layout of a value would be row-major
// (NULL: it is).
calx_status *cpu_api_shape_read(int type, const int64_t *dims, size_t rank,
                                const PJRT_Buffer_MemoryLayout *layout,
                                cpu_api_shape *out,
                                size_t *out_bytes) CALX_MUST_USE;
typedef struct cpu_api_shape_text {
  char s[160];
} cpu_api_shape_text;
cpu_api_shape_text cpu_api_shape_str(const cpu_api_shape *shape);
bool cpu_api_shape_equal(const cpu_api_shape *a, const cpu_api_shape *b);
// minor_to_major of row-major order: rank-1 … 0.
const int64_t *cpu_api_row_major(size_t rank);
// The byte strides of a caller's layout; NULL: row-major.
calx_status *cpu_api_layout_strides(const PJRT_Buffer_MemoryLayout *layout,
                                    const cpu_api_shape *shape,
                                    int64_t *strides) CALX_MUST_USE;
bool cpu_api_is_dense(const cpu_api_shape *shape, const int64_t *strides);

// Whether `size` bytes at `offset` are within a tensor of so many bytes.
bool cpu_api_is_range(int64_t offset, int64_t size, size_t bytes);

// One copy of a tensor between a caller's memory and a value's.
typedef struct cpu_api_move {
  cpu_api_shape shape;
  int64_t dims[CPU_API_MAX_RANK];
  int64_t dst_strides[CPU_API_MAX_RANK], src_strides[CPU_API_MAX_RANK];
  // The treatment of elements of less than 8 bits. IN: the caller's are cut to
  // their bits and extended. OUT: the value's are cut to their bits.
  enum { CPU_API_MOVE_AS_IS, CPU_API_MOVE_IN, CPU_API_MOVE_OUT } narrow;
} cpu_api_move;
// A copy of this shape, row-major on both sides.
void cpu_api_move_init(cpu_api_move *move, const cpu_api_shape *shape,
                       int narrow);
void cpu_api_move_run(const cpu_api_move *move, void *dst, const void *src);

// ---- devices ----

struct PJRT_DeviceDescription {
  int id;         // in the world
  int process;    // that has the device
  char text[32];  // "CALX_CPU_0"
  char debug_text[64];
};

// A memory of a device. All of a device's are the process's memory and have one
// cache: the kind is what a buffer answers when it is asked.
typedef struct cpu_api_space {
  PJRT_Memory base;
  PJRT_Device *device;
  cpu_run_memory kind;
  char text[32];
  char debug_text[64];
} cpu_api_space;

typedef struct cpu_api_launch cpu_api_launch;

#define CPU_API_CLASSES 240  // of block sizes
typedef struct cpu_api_free cpu_api_free;

// The free blocks of a device, and statistics of those in use.
typedef struct cpu_api_cache {
  cx_mutex lock;
  cpu_api_free *free[CPU_API_CLASSES];
  size_t free_bytes;
  // The rest of the region of pages that large blocks are cut from.
  unsigned char *region;
  size_t region_left;
  size_t in_use, peak, largest;
  int64_t n_allocs;
} cpu_api_cache;

// A device of another process has only the fields up to `memories`.
struct PJRT_Device {
  PJRT_Client *client;
  PJRT_DeviceDescription description;
  bool local;
  cpu_api_space spaces[CPU_RUN_MEMORIES];   // the default is the first
  PJRT_Memory *memories[CPU_RUN_MEMORIES];  // &spaces[i].base
  cpu_threads *threads;
  cpu_run_context *context;  // of the thread that has set `busy`
  cpu_api_cache cache;
  cx_mutex lock;  // guards the fields below
  cx_cond changed;
  cpu_api_launch *first, **last;
  _Atomic uint32_t posted;  // read without the lock too
  bool busy, stopping;
  const PJRT_Event *latest;  // of the latest launch; only its address is used
  int64_t pushed;            // when it was queued, of cx_now_ns()
  bool prompt;               // a caller waited for it soon after that
  int streak;     // launches in turn that a caller ran because it waited
  bool watching;  // the device's thread looks at the queue without a signal
  cx_thread thread;
  uint32_t generation;  // cpu_threads_generation() of the thread's process
};

// Which process of the world a client is.
typedef struct cpu_api_world {
  uint32_t process, n_processes;
  uint32_t per_process;  // devices
  uint32_t host, n_hosts;
  uint32_t host_first, host_processes;  // of this host
  int segment_fd;                       // -1: none
  bool placed;                          // the options say which hosts there are
  const char *platform;                 // a static text
} cpu_api_world;

struct PJRT_TopologyDescription {
  size_t n, per_process;
  PJRT_DeviceDescription *descriptions;
  PJRT_DeviceDescription **list;
  const char *platform;  // a static text
};

struct PJRT_Client {
  atomic_long refs;
  cpu_api_world world;
  size_t n_devices;       // of the world
  size_t first, n_local;  // the devices of this process
  PJRT_Device *devices;
  PJRT_Device **device_list;
  PJRT_Memory **memory_list;
  PJRT_TopologyDescription *topology;
  cpu_coll *coll;
  cpu_threads *compile_threads;
  cx_mutex compile_lock;  // one compilation at a time uses these threads
  // A launch on several devices is queued on all of them before the next one.
  // Otherwise the collectives of two callers could wait for each other.
  cx_mutex launch_lock;
  int64_t timeout_ms;  // of collectives
  char version[96];
  atomic_bool closed;
};

void cpu_api_client_retain(PJRT_Client *client);
void cpu_api_client_release(PJRT_Client *client);
// The memory that the caller named, or the default one of the device that the
// caller named. If the caller named both, the memory decides.
calx_status *cpu_api_choose(PJRT_Client *client, PJRT_Device *device,
                            PJRT_Memory *memory,
                            cpu_api_space **out) CALX_MUST_USE;
// Refuses devices of other processes.
calx_status *cpu_api_check_local(const PJRT_Device *device) CALX_MUST_USE;
// The device of this id in the client's world.
calx_status *cpu_api_device_find(const PJRT_Client *client, int id,
                                 PJRT_Device **out) CALX_MUST_USE;
void cpu_api_describe(PJRT_DeviceDescription *description, int id, int process);
// An integer of the environment within bounds; `otherwise` when it is not set.
calx_status *cpu_api_environment(const char *name, int64_t low, int64_t high,
                                 int64_t otherwise, int64_t *out) CALX_MUST_USE;
calx_status *cpu_api_world_read(const PJRT_NamedValue *options, size_t n,
                                cpu_api_world *out) CALX_MUST_USE;
// Checks that the processes of a host have a shared segment. A topology does
// not need one.
calx_status *cpu_api_world_check_segment(const cpu_api_world *w) CALX_MUST_USE;
// The key-value store that a caller offers while it makes a client of several
// processes.
typedef struct cpu_api_store {
  const PJRT_Client_Create_Args *args;
  int64_t timeout_ms, until_ns;
  unsigned client;  // how many the process made before; equal in all
  const cpu_api_world *world;
} cpu_api_store;
#define CPU_API_STORE_TEXT 256  // bytes of a key or a value, with its end
bool cpu_api_store_open(const PJRT_Client_Create_Args *args,
                        const cpu_api_world *world, int64_t timeout_ms,
                        cpu_api_store *out);  // false: none is offered
// Puts a text of this process.
calx_status *cpu_api_store_put(const cpu_api_store *store, const char *what,
                               const char *value) CALX_MUST_USE;
// The text that the process puts, as soon as it does.
calx_status *cpu_api_store_get(const cpu_api_store *store, const char *what,
                               uint32_t process,
                               char out[CPU_API_STORE_TEXT]) CALX_MUST_USE;
// Waits until all processes call this with the same word, once for a client.
calx_status *cpu_api_store_barrier(const cpu_api_store *store,
                                   const char *what) CALX_MUST_USE;
#define CPU_API_STORE_LINKED "linked"  // MPI is initialised
#define CPU_API_STORE_MADE "made"      // the client is
// Puts "no" for all that this process has not put: its client is not made, and
// nobody has to wait for it.
void cpu_api_store_give_up(const cpu_api_store *store);
#define CPU_API_STORE_NO "no"
// The error where another process has given up.
calx_status *cpu_api_store_failed(uint32_t process) CALX_MUST_USE;
// What a client has of a meeting until it is complete.
typedef struct cpu_api_meeting {
  int fd;         // of the shared segment; -1: none
  int64_t *pids;  // of this host's processes; NULL: there was no meeting
} cpu_api_meeting;
// Where the options do not place the process, the processes find out by the
// store which of them are of one host, and each host's get a segment.
calx_status *cpu_api_meet(const cpu_api_store *store, cpu_api_world *world,
                          cpu_api_meeting *out) CALX_MUST_USE;
void cpu_api_meeting_end(cpu_api_meeting *meeting);
calx_status *cpu_api_topology_new(size_t n, size_t per_process,
                                  const char *platform,
                                  PJRT_TopologyDescription **out) CALX_MUST_USE;
void cpu_api_topology_free(PJRT_TopologyDescription *topology);

// ---- memory ----

typedef enum cpu_api_block_kind {
  CPU_API_BLOCK_NONE,
  CPU_API_BLOCK_OWN,       // of the device's cache
  CPU_API_BLOCK_BORROWED,  // a caller's, until `done` is set
  CPU_API_BLOCK_VIEW       // a caller's, until on_delete is called
} cpu_api_block_kind;

typedef struct cpu_api_block {
  void *data;
  size_t capacity;
  cpu_api_block_kind kind;
  bool writable;
  void *raw;                                  // OWN: the allocation
  PJRT_Event *done;                           // BORROWED
  void (*on_delete)(void *data, void *user);  // VIEW; may be NULL
  void *on_delete_user;
} cpu_api_block;

void cpu_api_cache_init(cpu_api_cache *cache);
void cpu_api_cache_free(cpu_api_cache *cache);
calx_status *cpu_api_block_new(cpu_api_cache *cache, size_t bytes,
                               cpu_api_block *out) CALX_MUST_USE;
// Returns the memory to its owner. The block's kind becomes NONE.
void cpu_api_block_release(cpu_api_cache *cache, cpu_api_block *block);
size_t cpu_api_total_memory(void);  // of the machine, bytes

// Counted.
typedef struct cpu_api_value {
  atomic_long refs;
  atomic_ullong donated;  // the number of the launch that took it
  PJRT_Device *device;
  PJRT_Event *ready;    // held
  cpu_api_block block;  // written before `ready` is set
} cpu_api_value;

// A value without memory; takes the event. NULL: no memory, and the event is
// released.
cpu_api_value *cpu_api_value_new(PJRT_Device *device, PJRT_Event *ready);
void cpu_api_value_retain(cpu_api_value *value);
void cpu_api_value_release(cpu_api_value *value);  // NULL is accepted
// Waits for the value and returns its error.
calx_status *cpu_api_value_wait(cpu_api_value *value) CALX_MUST_USE;

// ---- buffers ----

#define CPU_API_FEW_DIMS 6
struct PJRT_Buffer {
  PJRT_Device *device;
  cpu_api_space *space;  // of the device
  cx_mutex lock;
  cpu_api_value *value;  // NULL: deleted or donated
  // Held while the caller has external references, also after deletion.
  cpu_api_value *pinned;
  size_t external;      // external references
  cpu_api_shape shape;  // dims: `few`, or allocated
  int64_t few[CPU_API_FEW_DIMS];
  size_t bytes;
};

// Takes the value, which is of the memory's device, also on failure.
calx_status *cpu_api_buffer_new(cpu_api_value *value, cpu_api_space *space,
                                const cpu_api_shape *shape, size_t bytes,
                                PJRT_Buffer **out) CALX_MUST_USE;
void cpu_api_buffer_free(PJRT_Buffer *buffer);  // NULL is accepted
// The value, held; an error for a deleted buffer.
calx_status *cpu_api_buffer_value(PJRT_Buffer *buffer,
                                  cpu_api_value **out) CALX_MUST_USE;
// The error of using a deleted buffer.
calx_status *cpu_api_buffer_deleted(const PJRT_Buffer *buffer) CALX_MUST_USE;
// A new buffer with memory of its own. Its value takes `ready`.
calx_status *cpu_api_buffer_make(cpu_api_space *space,
                                 const cpu_api_shape *shape, size_t bytes,
                                 PJRT_Event *ready,
                                 PJRT_Buffer **out) CALX_MUST_USE;

// ---- executables ----

typedef struct cpu_api_options {
  const char *bytes;  // the serialised options, which are the caller's
  size_t size;
  uint32_t n_replicas, n_partitions;  // 0: as the program says
  int device;  // device_ordinal, of the process's devices; -1: not set
  bool portable;
  size_t n_assigned;  // 0: no assignment; else replicas x partitions
  int *assigned;      // device ids, [replica * n_partitions + partition]
} cpu_api_options;

calx_status *cpu_api_options_parse(const char *bytes, size_t size,
                                   cpu_api_options *out) CALX_MUST_USE;
void cpu_api_options_clear(cpu_api_options *options);
// A serialised DeviceAssignmentProto. *out is freed with cx_free().
calx_status *cpu_api_assignment_write(const int *ids, size_t n_replicas,
                                      size_t n_partitions, char **out,
                                      size_t *out_size) CALX_MUST_USE;

// A compiled program and its properties. Counted.
typedef struct cpu_api_code {
  atomic_long refs;
  cpu_run_program *program;
  const cpu_run_program_info *info;
  cpu_threads *threads;  // it was compiled for these; NULL: the client's
  cx_arena arena;        // of the lists
  const char *options;   // the serialised compile options
  size_t options_size;
  cx_text source;     // the program's text or bytecode; empty: it was loaded
  cx_text shardings;  // as spmd/spmd.h has them; empty: not partitioned
  const char **param_shardings, **result_shardings;  // NULL: the same
  size_t *param_sharding_sizes, *result_sharding_sizes;
  char fingerprint[33];  // hexadecimal
  cpu_api_shape *params, *results;
  size_t *param_bytes, *result_bytes;
  bool *may_donate;  // [params]: a result can take its memory
  PJRT_Buffer_Type *result_types;
  int64_t *result_dims;  // of all results, one after the other
  size_t *result_ranks;
  const char **param_kinds, **result_kinds;  // of memory
  size_t *param_kind_sizes, *result_kind_sizes;
  PJRT_Layouts_MemoryLayout **param_layouts, **result_layouts;
  PJRT_NamedValue costs[CPU_API_COSTS];
} cpu_api_code;

// Takes the program, also on failure, and the shardings. Copies the source,
// which may be NULL.
calx_status *cpu_api_code_new(cpu_run_program *program,
                              const PJRT_Program *source, const char *options,
                              size_t options_size, cx_text *shardings,
                              cpu_api_code **out) CALX_MUST_USE;
void cpu_api_code_retain(cpu_api_code *code);
void cpu_api_code_release(cpu_api_code *code);

struct PJRT_Executable {
  cpu_api_code *code;
};

// What a launch gives the functions of its custom calls.
struct PJRT_ExecuteContext {
  cpu_ref_user_data *data;
  size_t n, room;
};

struct PJRT_LoadedExecutable {
  atomic_long refs;  // of the handle and of each unfinished launch
  PJRT_Client *client;
  cpu_api_code *code;
  bool portable;
  atomic_bool deleted;
  size_t n_devices;       // 0: portable
  PJRT_Device **devices;  // [replica * n_partitions + partition]
  size_t n_local;
  PJRT_Device **local;             // those of this process, in that order
  PJRT_LogicalDeviceIds *logical;  // [n_local]
  // For a program with collectives on several devices: the ids of its devices,
  // and their device group. NULL: it is another program.
  uint32_t *numbers;
  uint32_t device_group;
};

// Takes the code, also on failure.
calx_status *cpu_api_load(PJRT_Client *client, cpu_api_code *code,
                          const cpu_api_options *options,
                          PJRT_LoadedExecutable **out) CALX_MUST_USE;
void cpu_api_loaded_release(PJRT_LoadedExecutable *executable);

calx_status *cpu_api_executable_save(const cpu_api_code *code,
                                     cx_text *out) CALX_MUST_USE;
calx_status *cpu_api_executable_read(const char *bytes, size_t size,
                                     cpu_threads *threads,
                                     cpu_api_code **out) CALX_MUST_USE;

// ---- layouts and shardings ----

// Fills in the lists of the code from its text.
calx_status *cpu_api_shardings_fill(cpu_api_code *code) CALX_MUST_USE;
extern PJRT_Shardings_Extension cpu_api_shardings;

extern PJRT_Layouts_Extension cpu_api_layouts;
extern PJRT_FFI_Extension cpu_api_ffi;
PJRT_Layouts_MemoryLayout *cpu_api_layout_of(size_t rank);  // static

#endif
