// api: the engine as a PJRT plugin. The module's own structs.
//
// A buffer is what the caller holds, a value is what programs read and write:
// the memory of a tensor and the event that says when it is there. Deleting or
// giving away a buffer takes the value from it; a launch, a copy or a view
// keeps the value as long as it needs it. So nothing here waits for anyone when
// an object is destroyed while it is in use.
//
// A value's memory is made when the launch that writes it runs, and may be
// taken over from an argument that was given away, if nobody else holds it by
// then. Therefore whoever wants its address waits for its event first.
//
// A client lives until its handle is destroyed and the last buffer, value and
// executable is gone. Its threads end with the handle.
#ifndef CPU_API_API_H
#define CPU_API_API_H

#include <stdatomic.h>

#include "abi/pjrt.h"
#include "abi/pjrt_layouts.h"
#include "base/status.h"
#include "base/thread.h"
#include "coll/coll.h"
#include "hlo/types.h"
#include "run/program.h"
#include "threads/threads.h"

// What the table tells: the version, and the platform's name. A later minor
// version would promise functions and objects that clients then use.
#define CPU_API_MINOR 104
#define CPU_API_PLATFORM "calx_cpu"
#define CPU_API_MAX_RANK 64
#define CPU_API_MAX_DEVICES 4096

// ---- every slot of the table ----

#define CPU_API_DECLARE(name) PJRT_Error *cpu_api_##name(name##_Args *args);
#define CPU_API_DECLARE_VOID(name) void cpu_api_##name(name##_Args *args);
CX_PJRT_FUNCTIONS(CPU_API_DECLARE, CPU_API_DECLARE_VOID)

// ---- errors and arguments ----

// Takes the status; NULL is success.
PJRT_Error *cpu_api_error(calx_status *status) CALX_MUST_USE;
calx_status *cpu_api_no_memory(size_t bytes) CALX_MUST_USE;
// A status of a caller's code and words; NULL for OK.
calx_status *cpu_api_callers_error(PJRT_Error_Code code, const char *message,
                                   size_t size) CALX_MUST_USE;
// What was wrong with `struct_size` (NULL: no struct at all) or `object`.
PJRT_Error *cpu_api_refuse(const char *type, size_t wanted,
                           const size_t *struct_size, const char *object);

// The start of a function: its arguments reach to their field `last` at least,
// and the object that it is about is there.
#define CPU_API_ENTER_FROM(name, last, object)                            \
  do {                                                                    \
    size_t wanted_ =                                                      \
        offsetof(name##_Args, last) + sizeof(((name##_Args *)0)->last);   \
    if (args == NULL || args->struct_size < wanted_ || !(args->object)) { \
      return cpu_api_refuse(#name "_Args", wanted_,                       \
                            args == NULL ? NULL : &args->struct_size,     \
                            #object);                                     \
    }                                                                     \
  } while (0)
// For structs that are as they were in the oldest version that is spoken to.
#define CPU_API_ENTER(name, object)                                            \
  do {                                                                         \
    if (args == NULL || args->struct_size < (size_t)name##_Args_STRUCT_SIZE || \
        !(args->object)) {                                                     \
      return cpu_api_refuse(#name "_Args", (size_t)name##_Args_STRUCT_SIZE,    \
                            args == NULL ? NULL : &args->struct_size,          \
                            #object);                                          \
    }                                                                          \
  } while (0)
// Whether the caller's struct has this field, which a later version brought.
#define CPU_API_HAS(pointer, field)                                      \
  ((pointer)->struct_size >=                                             \
   (size_t)((const char *)&(pointer)->field - (const char *)(pointer)) + \
       sizeof((pointer)->field))

// ---- events ----

typedef void cpu_api_callback(void *user, const calx_status *error);

// Counted. A promise that something will be done, or why it was not.
PJRT_Event *cpu_api_event_new(void);    // pending; NULL: no memory
PJRT_Event *cpu_api_event_ready(void);  // the one that always was; not counted
// One that is set with this error, which is taken; NULL: the one above.
PJRT_Event *cpu_api_event_done(calx_status *error);
PJRT_Event *cpu_api_event_retain(PJRT_Event *event);
void cpu_api_event_release(PJRT_Event *event);  // NULL is accepted
bool cpu_api_event_is_ready(const PJRT_Event *event);
// Takes the error (NULL: well) and runs the callbacks. False: it was set
// before.
bool cpu_api_event_set(PJRT_Event *event, calx_status *error);
void cpu_api_event_wait(PJRT_Event *event);
// Of a ready event; NULL: well. Lives as long as the event.
const calx_status *cpu_api_event_error(const PJRT_Event *event);
// Calls fn once: at once when the event is ready, else where it is set.
calx_status *cpu_api_event_then(PJRT_Event *event, cpu_api_callback *fn,
                                void *user) CALX_MUST_USE;

// ---- types and layouts ----

const char *cpu_api_type_name(int type);  // "f32"; "?" for none
cx_hlo_elem cpu_api_type_elem(int type);  // INVALID: programs do not have it
int cpu_api_type_of(cx_hlo_elem elem);
size_t cpu_api_type_bytes(int type);    // on the host and here; 0: none
bool cpu_api_type_is_narrow(int type);  // less than eight bits, or a boolean

typedef struct cpu_api_shape {
  int type;  // PJRT_Buffer_Type
  size_t rank;
  const int64_t *dims;
} cpu_api_shape;

calx_status *cpu_api_shape_check(const cpu_api_shape *shape, int64_t *elements,
                                 size_t *bytes) CALX_MUST_USE;
typedef struct cpu_api_shape_text {
  char s[160];
} cpu_api_shape_text;
cpu_api_shape_text cpu_api_shape_str(const cpu_api_shape *shape);
bool cpu_api_shape_equal(const cpu_api_shape *a, const cpu_api_shape *b);
// minor_to_major of row-major order: rank-1 … 0.
const int64_t *cpu_api_row_major(size_t rank);
void cpu_api_dense_strides(const cpu_api_shape *shape, int64_t *strides);
// The byte strides that a caller's layout means; NULL: row-major.
calx_status *cpu_api_layout_strides(const PJRT_Buffer_MemoryLayout *layout,
                                    const cpu_api_shape *shape,
                                    int64_t *strides) CALX_MUST_USE;
bool cpu_api_is_dense(const cpu_api_shape *shape, const int64_t *strides);

// One copy of a tensor between a caller's memory and a value's.
typedef struct cpu_api_move {
  cpu_api_shape shape;
  int64_t dims[CPU_API_MAX_RANK];
  int64_t dst_strides[CPU_API_MAX_RANK], src_strides[CPU_API_MAX_RANK];
  // What becomes of elements of less than 8 bits: a caller's are cut to their
  // bits and extended, a value's are cut.
  enum { CPU_API_MOVE_AS_IS, CPU_API_MOVE_IN, CPU_API_MOVE_OUT } narrow;
} cpu_api_move;
void cpu_api_move_run(const cpu_api_move *move, void *dst, const void *src);

// ---- devices ----

struct PJRT_DeviceDescription {
  int id;         // in the world
  int process;    // that it is of
  char text[32];  // "CALX_CPU_0"
  char debug_text[64];
};

// A device's one memory. Its kind is "device".
typedef struct cpu_api_space {
  PJRT_Memory base;
  PJRT_Device *device;
  char text[32];
  char debug_text[64];
} cpu_api_space;

typedef struct cpu_api_launch cpu_api_launch;

#define CPU_API_CLASSES 240  // of block sizes
typedef struct cpu_api_free cpu_api_free;

// Blocks that are not in use, and what is.
typedef struct cpu_api_cache {
  cx_mutex lock;
  cpu_api_free *free[CPU_API_CLASSES];
  size_t free_bytes;
  size_t in_use, peak, largest;
  int64_t n_allocs;
} cpu_api_cache;

// One of another process has no more than a description.
struct PJRT_Device {
  PJRT_Client *client;
  PJRT_DeviceDescription description;
  bool local;
  cpu_api_space space;
  PJRT_Memory *memory;  // the space, as a list of one
  cpu_threads *pool;
  cpu_run_context *context;  // of who is busy
  cpu_api_cache cache;
  cx_mutex lock;  // of what follows
  cx_cond changed;
  cpu_api_launch *first, **last;
  bool busy, stopping;
  cx_thread thread;
  uint32_t generation;  // that the thread is of
};

// A client's place among the processes.
typedef struct cpu_api_world {
  uint32_t process, n_processes;
  uint32_t per_process;  // devices
  uint32_t host, n_hosts;
  uint32_t host_first, host_processes;  // of this host
  int segment_fd;                       // -1: none
} cpu_api_world;

struct PJRT_TopologyDescription {
  size_t n, per_process;
  PJRT_DeviceDescription *descriptions;
  PJRT_DeviceDescription **list;
};

struct PJRT_Client {
  atomic_long refs;
  cpu_api_world world;
  size_t n_devices;       // of the world
  size_t first, n_local;  // those of this process
  PJRT_Device *devices;
  PJRT_Device **device_list;
  PJRT_Memory **memory_list;
  PJRT_TopologyDescription *topology;
  cpu_coll *coll;
  cpu_threads *compile_pool;
  cx_mutex compile_lock;  // one compilation at a time on that pool
  // Launches on several devices are queued on all of them before the next: two
  // threads' collectives would wait for each other in different orders.
  cx_mutex launch_lock;
  int64_t timeout_ms;  // of collectives
  char version[96];
  atomic_bool closed;
};

void cpu_api_client_retain(PJRT_Client *client);
void cpu_api_client_release(PJRT_Client *client);
PJRT_Device *cpu_api_memory_device(PJRT_Memory *memory);
// The device that a caller named by itself or by its memory, which wins.
calx_status *cpu_api_choose(PJRT_Client *client, PJRT_Device *device,
                            PJRT_Memory *memory,
                            PJRT_Device **out) CALX_MUST_USE;
// Refuses devices of other processes by name.
calx_status *cpu_api_check_local(const PJRT_Device *device) CALX_MUST_USE;
void cpu_api_describe(PJRT_DeviceDescription *description, int id, int process);
// An integer of the environment within bounds; `otherwise` when it is not set.
calx_status *cpu_api_environment(const char *name, int64_t low, int64_t high,
                                 int64_t otherwise, int64_t *out) CALX_MUST_USE;
calx_status *cpu_api_world_read(const PJRT_NamedValue *options, size_t n,
                                cpu_api_world *out) CALX_MUST_USE;
// That processes of one host have where to meet: of a client, not of a world
// that is only described.
calx_status *cpu_api_world_check_segment(const cpu_api_world *w) CALX_MUST_USE;
calx_status *cpu_api_topology_new(size_t n, size_t per_process,
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
  void *raw;                                  // OWN: what was allocated
  PJRT_Event *done;                           // BORROWED
  void (*on_delete)(void *data, void *user);  // VIEW; may be NULL
  void *on_delete_user;
} cpu_api_block;

void cpu_api_cache_init(cpu_api_cache *cache);
void cpu_api_cache_free(cpu_api_cache *cache);
calx_status *cpu_api_block_new(cpu_api_cache *cache, size_t bytes,
                               cpu_api_block *out) CALX_MUST_USE;
// Gives the memory back; the block is none afterwards.
void cpu_api_block_release(cpu_api_cache *cache, cpu_api_block *block);
size_t cpu_api_total_memory(void);  // of the machine, bytes

// Counted.
typedef struct cpu_api_value {
  atomic_long refs;
  atomic_ullong given;  // the number of the launch it was given to
  PJRT_Device *device;
  PJRT_Event *ready;    // held
  cpu_api_block block;  // written before `ready` is
} cpu_api_value;

// Pending; takes the event. NULL: no memory (the event is released).
cpu_api_value *cpu_api_value_new(PJRT_Device *device, PJRT_Event *ready);
void cpu_api_value_retain(cpu_api_value *value);
void cpu_api_value_release(cpu_api_value *value);  // NULL is accepted
// Waits; an error when it did not come to be.
calx_status *cpu_api_value_wait(cpu_api_value *value) CALX_MUST_USE;

// ---- buffers ----

#define CPU_API_FEW_DIMS 6
struct PJRT_Buffer {
  PJRT_Device *device;
  cx_mutex lock;
  cpu_api_value *value;  // NULL: deleted or given away
  // Held while the caller uses the address, after deletion too.
  cpu_api_value *pinned;
  size_t external;      // how often it said so
  cpu_api_shape shape;  // dims: `few`, or allocated
  int64_t few[CPU_API_FEW_DIMS];
  size_t bytes;
};

// Takes the value, on failure too.
calx_status *cpu_api_buffer_new(cpu_api_value *value,
                                const cpu_api_shape *shape, size_t bytes,
                                PJRT_Buffer **out) CALX_MUST_USE;
void cpu_api_buffer_free(PJRT_Buffer *buffer);  // NULL is accepted
// The value, held; an error for a deleted buffer.
calx_status *cpu_api_buffer_value(PJRT_Buffer *buffer,
                                  cpu_api_value **out) CALX_MUST_USE;
calx_status *cpu_api_buffer_gone(const PJRT_Buffer *buffer) CALX_MUST_USE;
// A new tensor of the device with memory, whose value takes `ready`.
calx_status *cpu_api_buffer_make(PJRT_Device *device,
                                 const cpu_api_shape *shape, PJRT_Event *ready,
                                 PJRT_Buffer **out) CALX_MUST_USE;

// ---- executables ----

typedef struct cpu_api_options {
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

// A compiled program and all that is told about it. Counted.
typedef struct cpu_api_code {
  atomic_long refs;
  cpu_run_program *program;
  const cpu_run_program_info *info;
  cpu_threads *pool;  // what it was compiled for, where no client has it
  char *options;      // the bytes it was compiled with
  size_t options_size;
  char fingerprint[33];  // hexadecimal
  cpu_api_shape *params, *results;
  size_t *param_bytes, *result_bytes;
  bool *may_give;  // [params]: a result takes its memory
  PJRT_Buffer_Type *result_types;
  int64_t *result_dims;  // of all results, one after the other
  size_t *result_ranks;
  const char **kinds;  // of memory, for params or results, the longer
  size_t *kind_sizes;
  PJRT_Layouts_MemoryLayout **param_layouts, **result_layouts;
  PJRT_NamedValue costs[1];
} cpu_api_code;

calx_status *cpu_api_code_new(cpu_run_program *program, const char *options,
                              size_t options_size,
                              cpu_api_code **out) CALX_MUST_USE;
void cpu_api_code_retain(cpu_api_code *code);
void cpu_api_code_release(cpu_api_code *code);

struct PJRT_Executable {
  cpu_api_code *code;
};

struct PJRT_LoadedExecutable {
  atomic_long refs;  // the handle, and one for each launch under way
  PJRT_Client *client;
  cpu_api_code *code;
  bool portable;
  atomic_bool deleted;
  size_t n_devices;       // 0: portable
  PJRT_Device **devices;  // [replica * n_partitions + partition]
  size_t n_local;
  PJRT_Device **local;             // those of this process, in that order
  PJRT_LogicalDeviceIds *logical;  // of the same
  // Of a program with collectives on several devices: each device's number in
  // the world, and the device group. NULL: it is another program.
  uint32_t *numbers;
  uint32_t device_group;
};

// Takes the code, on failure too.
calx_status *cpu_api_load(PJRT_Client *client, cpu_api_code *code,
                          const cpu_api_options *options,
                          PJRT_LoadedExecutable **out) CALX_MUST_USE;
void cpu_api_loaded_release(PJRT_LoadedExecutable *executable);

calx_status *cpu_api_executable_save(const cpu_api_code *code,
                                     cx_text *out) CALX_MUST_USE;
calx_status *cpu_api_executable_read(const char *bytes, size_t size,
                                     cpu_threads *pool,
                                     cpu_api_code **out) CALX_MUST_USE;

// ---- launches ----

// One device's part in one execution, with all that it needs, in one block.
struct cpu_api_launch {
  cpu_api_launch *next;
  PJRT_LoadedExecutable *executable;  // held
  PJRT_Device *device;
  PJRT_Event *done;      // of all results; NULL: the caller runs it, or it
                         // only fails
  calx_status *failure;  // it ends so instead of running; NULL: it runs
  cpu_coll_launch coll;
  uint64_t least_number;  // its number in the device group is higher than this
  size_t n_args, n_results;
  cpu_api_value **args;     // held; NULL: none yet
  PJRT_Buffer **givers;     // of arguments that are given away; else NULL
  cpu_api_value **results;  // held; NULL: none yet
  void **pointers;          // of arguments, then results
  bool *keeps;              // arguments that must not be given away
};

// Whether the device is idle: then it is the caller's, to run this launch,
// until cpu_api_queue_leave().
bool cpu_api_queue_enter(PJRT_Device *device, cpu_api_launch *launch);
void cpu_api_queue_leave(PJRT_Device *device);
// A launch for which there is no memory: it takes its run and number. Others
// hear how it ended, at once where the device is idle, else when they see the
// device's next launch.
void cpu_api_queue_miss(PJRT_Device *device, cpu_api_launch *launch,
                        const calx_status *why);
// Appends; the device's thread runs it and ends it. When it cannot, the launch
// ends with the error, which its results tell.
void cpu_api_queue_push(PJRT_Device *device, cpu_api_launch *launch);
// Makes a launch no earlier run or number than the device has begun.
void cpu_api_queue_follow(PJRT_Device *device, cpu_api_launch *launch);
// Runs what is queued, then ends the thread.
void cpu_api_queue_stop(PJRT_Device *device);
void cpu_api_queue_init(PJRT_Device *device);

// Runs on the calling thread, which owns the device.
calx_status *cpu_api_launch_run(cpu_api_launch *launch) CALX_MUST_USE;
// Lets go of all that it held, sets its event, frees it. Takes the status.
void cpu_api_launch_end(cpu_api_launch *launch, calx_status *status);
// Lets go of all that it held and frees it. The results' values are the
// buffers' then.
void cpu_api_launch_free(cpu_api_launch *launch);

// ---- layouts ----

extern PJRT_Layouts_Extension cpu_api_layouts;
PJRT_Layouts_MemoryLayout *cpu_api_layout_of(size_t rank);  // immortal

#endif
