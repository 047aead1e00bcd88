// pjrt: the client of the PJRT C API. Only this module loads plugins and sees
// the ABI's structs.
//
// Handles are opaque. Plugins do not check everything, so this module does it
// first: the number of arguments, their element types, shapes and devices.
// Every PJRT error becomes a status that names the function and the plugin. All
// functions are thread-safe. A buffer may be released while an execution still
// reads it.
#ifndef CX_PJRT_PJRT_H
#define CX_PJRT_PJRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/text.h"
#include "calx/dtype.h"
#include "calx/status.h"
#include "spmd/placement.h"

// ---- plugins: loaded once per file and process, never unloaded ----
typedef struct cx_pjrt_plugin cx_pjrt_plugin;

// Opens a plugin by name ("calx" or "cpu": the library's own engine; "tpu",
// "cuda", "xla-cpu", or a name in PJRT_NAMES_AND_LIBRARY_PATHS) or by path
// (anything with a '/' or ".so"). NULL: CALX_PLUGIN decides, then PJRT_DEVICE,
// then the machine's devices; the last choice is logged once. An error lists
// the files that were looked for.
calx_status *cx_pjrt_plugin_open(const char *name_or_path,
                                 cx_pjrt_plugin **out_plugin) CALX_MUST_USE;
// "cpu", "tpu" or "cuda", what opening NULL would give, without loading
// anything; NULL: not known before that.
const char *cx_pjrt_plugin_expected(void);
// Whether the machine has an accelerator, "tpu" or "cuda", beyond doubt.
bool cx_pjrt_machine_has(const char *name);
// "calx", or the file's name.
const char *cx_pjrt_plugin_name(const cx_pjrt_plugin *p);
const char *cx_pjrt_plugin_path(const cx_pjrt_plugin *p);
void cx_pjrt_plugin_version(const cx_pjrt_plugin *p, int *out_major,
                            int *out_minor);
// A hash of the file's content, since different builds may report one version.
// Computed at the first call and kept.
calx_status *cx_pjrt_plugin_hash(cx_pjrt_plugin *p,
                                 cx_hash *out_hash) CALX_MUST_USE;
// Appends a line for each attribute: "stablehlo_current_version = 1.16.1".
void cx_pjrt_plugin_describe(cx_pjrt_plugin *p, cx_text *out);

// How the library's own engine runs the kernels that it measured in this
// process; see abi/calx_cpu.h. Freed with cx_free().
calx_status *cx_pjrt_choices_save(int64_t **out,
                                  size_t *out_count) CALX_MUST_USE;
calx_status *cx_pjrt_choices_load(const int64_t *numbers,
                                  size_t count) CALX_MUST_USE;

// ---- clients: one per plugin and set of options ----
typedef struct cx_pjrt_client cx_pjrt_client;

typedef struct cx_pjrt_option {  // of a client, a topology or a compilation
  const char *name;
  enum {
    CX_PJRT_STRING,
    CX_PJRT_INT,
    CX_PJRT_INTS,
    CX_PJRT_FLOAT,
    CX_PJRT_BOOL
  } type;
  const char *string_value;
  int64_t int_value;  // BOOL: 0 or 1
  const int64_t *ints_value;
  size_t n_ints;
  double float_value;
} cx_pjrt_option;

// This process among those that train together, and their store of binary
// values. Its functions are thread-safe and may block. Where there is no value,
// get returns DEADLINE_EXCEEDED and try_get NOT_FOUND; put returns
// ALREADY_EXISTS. Values are freed with cx_free().
typedef struct cx_pjrt_world {
  int64_t process, processes, local_process, local_processes, host, hosts;
  // This host's processes; 0: as many on each host.
  int64_t host_first, host_processes;
  int segment_fd;  // that they share; -1: none
  calx_status *(*get)(const char *key, int64_t timeout_ms, char **out,
                      size_t *out_size);
  calx_status *(*try_get)(const char *key, char **out, size_t *out_size);
  calx_status *(*put)(const char *key, const void *value, size_t size);
} cx_pjrt_world;

typedef struct cx_pjrt_client_options {
  int64_t device_count;        // CPU platforms only; 0: CPU_NUM_DEVICES, else 1
  const cx_pjrt_world *world;  // NULL: this process alone. Copied
  const cx_pjrt_option *extra;  // passed as they are
  size_t n_extra;
} cx_pjrt_client_options;

// NULL options: the defaults. A client of CUDA does not preallocate memory.
calx_status *cx_pjrt_client_open(cx_pjrt_plugin *plugin,
                                 const cx_pjrt_client_options *options,
                                 cx_pjrt_client **out_client) CALX_MUST_USE;
// Accepts NULL. The plugin's client stays until the last of its buffers and
// executables is released.
void cx_pjrt_client_close(cx_pjrt_client *c);
cx_pjrt_plugin *cx_pjrt_client_plugin(const cx_pjrt_client *c);
// "cpu", "cuda", "tpu".
const char *cx_pjrt_client_platform(const cx_pjrt_client *c);
const char *cx_pjrt_client_platform_version(const cx_pjrt_client *c);
bool cx_pjrt_client_is_own(const cx_pjrt_client *c);  // the library's engine
// The addressable devices, and with those of other processes.
size_t cx_pjrt_client_device_count(const cx_pjrt_client *c);
size_t cx_pjrt_client_world_count(const cx_pjrt_client *c);
typedef struct cx_pjrt_memory_stats {
  int64_t bytes_in_use, peak_bytes_in_use, bytes_limit;  // -1: not reported
} cx_pjrt_memory_stats;
typedef struct cx_pjrt_device {
  struct PJRT_Device *raw;
  int id;
  char *kind;
  char *text;       // the plugin's own words
  char **memories;  // [n_memories] kinds
  size_t n_memories;
} cx_pjrt_device;
const cx_pjrt_device *cx_pjrt_client_device(const cx_pjrt_client *c,
                                            size_t device);
calx_status *cx_pjrt_device_memory_stats(
    cx_pjrt_client *c, size_t device, cx_pjrt_memory_stats *out) CALX_MUST_USE;

// ---- shapes: what the checks compare ----
typedef struct cx_pjrt_shape {
  int type;  // PJRT_Buffer_Type
  size_t rank;
  int64_t dims[CALX_MAX_RANK];
} cx_pjrt_shape;
int cx_pjrt_type_of(calx_dtype d);
calx_dtype cx_pjrt_dtype_of(int type);  // CALX_DTYPE_DEFAULT: calx has none
bool cx_pjrt_shape_make(calx_dtype d, const int64_t *dims, size_t rank,
                        cx_pjrt_shape *out);  // false: rank too big

// ---- events ----
typedef struct cx_pjrt_event cx_pjrt_event;
// Returns the event's error. May be called again.
calx_status *cx_pjrt_event_await(cx_pjrt_event *e) CALX_MUST_USE;
bool cx_pjrt_event_is_ready(cx_pjrt_event *e);
// Runs fn once, in any thread; at once if the event is ready. fn owns the
// status (NULL: success). If this returns an error fn is not run.
calx_status *cx_pjrt_event_on_ready(cx_pjrt_event *e,
                                    void (*fn)(void *user, calx_status *status),
                                    void *user) CALX_MUST_USE;
void cx_pjrt_event_free(cx_pjrt_event *e);  // does not cancel; NULL is accepted

// ---- buffers: refcounted ----
typedef struct cx_pjrt_buffer cx_pjrt_buffer;

typedef enum cx_pjrt_upload {
  CX_PJRT_COPY,       // data may be reused when the call returns
  CX_PJRT_BORROW,     // data must stay until `done` is called
  CX_PJRT_ZERO_COPY,  // data must stay until the buffer is gone (`done` is
                      // called then); falls back to a copy
} cx_pjrt_upload;
// Uploads dense row-major data. done may be NULL for COPY; otherwise it is
// called exactly once, on failure too, in any thread. A type that is newer than
// the plugin is an error, because it could make the plugin end the process.
calx_status *cx_pjrt_buffer_from_host(
    cx_pjrt_client *c, size_t device, const cx_pjrt_shape *shape,
    const void *data, cx_pjrt_upload mode, void (*done)(void *user), void *user,
    cx_pjrt_buffer **out_buffer) CALX_MUST_USE;
void cx_pjrt_buffer_retain(cx_pjrt_buffer *b);
void cx_pjrt_buffer_release(cx_pjrt_buffer *b);  // NULL is accepted
const cx_pjrt_shape *cx_pjrt_buffer_shape(const cx_pjrt_buffer *b);
size_t cx_pjrt_buffer_device(const cx_pjrt_buffer *b);
bool cx_pjrt_buffer_is_ready(cx_pjrt_buffer *b);
bool cx_pjrt_buffer_is_deleted(cx_pjrt_buffer *b);  // donated or deleted
calx_status *cx_pjrt_buffer_await(cx_pjrt_buffer *b) CALX_MUST_USE;
// The size on the host, and a blocking copy to it in row-major order. `size`
// must be that size.
calx_status *cx_pjrt_buffer_host_size(cx_pjrt_buffer *b,
                                      size_t *out_size) CALX_MUST_USE;
calx_status *cx_pjrt_buffer_to_host(cx_pjrt_buffer *b, void *dst,
                                    size_t size) CALX_MUST_USE;
// The same without waiting; dst must stay until the event is ready.
calx_status *cx_pjrt_buffer_to_host_async(
    cx_pjrt_buffer *b, void *dst, size_t size,
    cx_pjrt_event **out_event) CALX_MUST_USE;
// A sharded buffer is a tensor on all devices of a client, on each a shard of
// it or, where the placement splits nothing or is NULL, the whole. Its shape is
// the tensor's. All functions above take it but _copy_to_device and
// _to_host_async. Uploads each device's shard, of data that is borrowed only
// where the shards are dense in it; `done` as for a buffer of one device.
calx_status *cx_pjrt_sharded_from_host(cx_pjrt_client *c,
                                       const cx_pjrt_shape *shape,
                                       const cx_spmd_placement *placement,
                                       const void *data, cx_pjrt_upload mode,
                                       void (*done)(void *user), void *user,
                                       cx_pjrt_buffer **out) CALX_MUST_USE;
// NULL: each device has the whole, or it is no sharded buffer.
const cx_spmd_placement *cx_pjrt_buffer_placement(const cx_pjrt_buffer *b);
// The shape of what one device has.
void cx_pjrt_shard_shape(const cx_pjrt_shape *shape,
                         const cx_spmd_placement *placement,
                         cx_pjrt_shape *out);
calx_status *cx_pjrt_buffer_copy_to_device(cx_pjrt_buffer *b, size_t device,
                                           cx_pjrt_buffer **out) CALX_MUST_USE;

// ---- executables ----
typedef struct cx_pjrt_executable cx_pjrt_executable;  // refcounted

typedef struct cx_pjrt_compile_options {
  int64_t num_replicas;    // 0 = 1
  const int64_t *devices;  // num_replicas device indices (addressable); NULL:
                           // 0, 1, …; ids are looked up
  int64_t num_partitions;  // 0 = 1; else of one replica, on all devices of the
                           // client in their order, with Shardy's annotations
  bool everywhere;    // the replicas are spread over all processes that the
                      // client knows of, as many on the first devices of each
  uint32_t launches;  // the first launch's number, equal in all processes; 0:
                      // of the program's own bytes
  bool any_device;    // one replica that runs on the device of its arguments
                      // (compile_portable_executable)
  const cx_pjrt_option *overrides;  // env_option_overrides: one value each
  size_t n_overrides;
} cx_pjrt_compile_options;

// A result of all partitions together.
typedef struct cx_pjrt_whole {
  cx_pjrt_shape shape;
  const cx_spmd_placement *placement;
} cx_pjrt_whole;

// The program's signature: arguments are checked against it, and results get
// its shapes. donated[i]: parameter i aliases a result, and the execution
// deletes its buffer.
typedef struct cx_pjrt_signature {
  const cx_pjrt_shape *params;
  const bool *donated;  // NULL: none
  size_t n_params;
  const cx_pjrt_shape *results;
  size_t n_results;
  // Of a program of several partitions, [n_results]: the shapes above are those
  // of one device's shards, and these are the results. NULL: another program.
  const cx_pjrt_whole *wholes;
} cx_pjrt_signature;

// Encodes compile options (protobuf); the bytes are also part of cache keys.
// *out is freed with cx_free(). NULL options: all zero. With a client,
// `devices` are indices, and calx adds what the platform needs (options.c)
// unless an override has the same name. Without a client `devices` are ids.
calx_status *cx_pjrt_options_encode(const cx_pjrt_compile_options *o,
                                    cx_pjrt_client *client_or_null, char **out,
                                    size_t *out_size) CALX_MUST_USE;
calx_status *cx_pjrt_compile(cx_pjrt_client *c, const char *text, size_t size,
                             const cx_pjrt_compile_options *options,
                             const cx_pjrt_signature *signature,
                             cx_pjrt_executable **out) CALX_MUST_USE;
calx_status *cx_pjrt_executable_serialize(cx_pjrt_executable *e,
                                          char **out_bytes,
                                          size_t *out_size) CALX_MUST_USE;
calx_status *cx_pjrt_executable_deserialize(
    cx_pjrt_client *c, const char *bytes, size_t size,
    const cx_pjrt_compile_options *options, const cx_pjrt_signature *signature,
    cx_pjrt_executable **out) CALX_MUST_USE;
typedef struct cx_pjrt_executable_stats {  // bytes; -1: not reported
  int64_t code, arguments, outputs, aliased, temporaries, peak;
} cx_pjrt_executable_stats;
calx_status *cx_pjrt_executable_memory(
    cx_pjrt_executable *e, cx_pjrt_executable_stats *out) CALX_MUST_USE;
// One number of the plugin's cost analysis by XLA's name: "flops", "bytes
// accessed". CALX_NOT_FOUND: the plugin does not report it.
calx_status *cx_pjrt_executable_cost(cx_pjrt_executable *e, const char *name,
                                     double *out) CALX_MUST_USE;
void cx_pjrt_executable_retain(cx_pjrt_executable *e);
void cx_pjrt_executable_release(cx_pjrt_executable *e);
size_t cx_pjrt_executable_result_count(const cx_pjrt_executable *e);
// The devices here that it runs on, in the order of the replicas; 1 for a
// program of any device.
size_t cx_pjrt_executable_device_count(const cx_pjrt_executable *e);
size_t cx_pjrt_executable_device(const cx_pjrt_executable *e, size_t replica);

// Launches the program on one device. args: n_params buffers on `device`, which
// the call keeps. out_results: n_results new buffers. out_done may be NULL;
// else *out_done is an event that fires when the device is done, with a late
// error.
calx_status *cx_pjrt_execute(cx_pjrt_executable *e, size_t device,
                             cx_pjrt_buffer *const *args, size_t n_args,
                             cx_pjrt_buffer **out_results,
                             cx_pjrt_event **out_done) CALX_MUST_USE;
// A program of several partitions on sharded buffers; results are sharded
// buffers, and the event fires when all devices are done.
calx_status *cx_pjrt_execute_sharded(cx_pjrt_executable *e,
                                     cx_pjrt_buffer *const *args, size_t n_args,
                                     cx_pjrt_buffer **out_results,
                                     cx_pjrt_event **out_done) CALX_MUST_USE;
bool cx_pjrt_executable_is_sharded(const cx_pjrt_executable *e);
// All replicas in one call: args[r * n_params + i], out_results[r * n_results +
// i], out_done[r].
calx_status *cx_pjrt_execute_all(cx_pjrt_executable *e,
                                 cx_pjrt_buffer *const *args, size_t n_args,
                                 cx_pjrt_buffer **out_results,
                                 cx_pjrt_event **out_done) CALX_MUST_USE;

// ---- ahead of time: no device needed ----
// topology: "v5e:2x2". The options are the plugin's (CUDA: target_config,
// topology). The out pointers may be NULL. Statistics that the plugin does not
// report are -1.
calx_status *cx_pjrt_compile_for(
    cx_pjrt_plugin *p, const char *topology, const cx_pjrt_option *options,
    size_t n_options, const char *text, size_t size,
    const cx_pjrt_compile_options *compile, char **out_serialized,
    size_t *out_size, cx_pjrt_executable_stats *out_stats) CALX_MUST_USE;

// Live client, buffer, event and executable handles: the tests' leak count.
long cx_pjrt_live(void);

#endif
