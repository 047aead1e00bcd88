// pjrt/internal: the module's own structs, and how a function of a plugin's
// table is called.
//
// Every call goes through CX_PJRT_CALL: the slot is there only when it ends
// within the table's struct_size and is not NULL, otherwise the status says
// which function the plugin lacks; an error of the plugin becomes a status that
// names function and plugin. A plugin is never unloaded, so pointers to it are
// valid for ever; a client is kept by its buffers and executables.
#ifndef CX_PJRT_INTERNAL_H
#define CX_PJRT_INTERNAL_H

#include <stdatomic.h>
#include <sys/types.h>

#include "abi/calx_segment.h"
#include "abi/pjrt.h"
#include "base/status.h"
#include "base/text.h"
#include "base/thread.h"
#include "pjrt/pjrt.h"

// ---- plugins ----

// What a plugin is taken for before its client exists: decides which options
// its client gets and what is set up before loading it.
typedef enum cx_pjrt_kind {
  CX_PJRT_KIND_OTHER,
  CX_PJRT_KIND_CPU,
  CX_PJRT_KIND_TPU,
  CX_PJRT_KIND_CUDA,
} cx_pjrt_kind;

struct cx_pjrt_plugin {
  cx_pjrt_plugin *next;  // of the process's list
  const PJRT_Api *api;
  char *name;
  char *path;
  cx_pjrt_kind kind;
  bool embedded;  // the library's own engine
  dev_t device;   // with inode: one plugin for one file
  ino_t inode;
  bool is_xla;  // built from XLA: has the attribute xla_version
  bool is_own;  // the library's engine, also as a file: has calx_version
  // Whether it refused the overrides that calx adds by itself.
  atomic_bool refuses_defaults;
  atomic_bool automatic;  // an accelerator's, and nobody asked for it by name
  cx_mutex lock;          // of what follows
  bool hashed;
  cx_hash hash;
};

// The environment's choice or the name or path given, as a path to load.
typedef struct cx_pjrt_choice {
  char *path;  // cx_free()
  char *name;  // "cpu", …; NULL: the file's name. cx_free()
  bool automatic;
  // Accelerators that the machine has and that are not used, why, and how to
  // mend it; NULL: none. cx_free()
  char *unused;
  char *old;  // a line on variables of XRT that are set; NULL: none. cx_free()
  bool embedded;  // the library's own engine; the path is where that is
} cx_pjrt_choice;
// `dev` is "/dev", where the chips and cards are looked for.
calx_status *cx_pjrt_find(const char *name_or_path, const char *dev,
                          cx_pjrt_choice *out_choice) CALX_MUST_USE;
void cx_pjrt_choice_free(cx_pjrt_choice *choice);
// That the accelerator's plugin was not asked for, and how to do without it.
// Takes `why`, which may be NULL.
calx_status *cx_pjrt_annotate_automatic(const char *name,
                                        calx_status *why) CALX_MUST_USE;
// Says `unused`, once for the process; CALX_QUIET does not silence it.
void cx_pjrt_report_unused(const cx_pjrt_choice *choice);
// Says `old`, once for the process; CALX_QUIET silences it.
void cx_pjrt_report_old(const cx_pjrt_choice *choice);
// CALX_QUIET, or another process of the host says it.
bool cx_pjrt_is_quiet(void);
bool cx_pjrt_has_tpu(const char *dev);
// Whether `dev` shows a known accelerator beyond doubt.
bool cx_pjrt_has_surely(const char *name, const char *dev);
// Where cx_pjrt_plugin_open() looks for chips and cards; NULL: "/dev".
void cx_pjrt_set_dev(const char *dev);
cx_pjrt_kind cx_pjrt_kind_of(const char *name, const char *path);

// ---- variables of XRT ----

// What PJRT_DEVICE would be, by the variables of XRT, and the one that says so.
// NULL: none does.
const char *cx_pjrt_xrt_device(const char **out_variable);
// Appends one line about those that are set: what is translated, what has no
// effect, what to write today. chosen: something else names the device, and
// only variables about other things matter. Nothing where there is nothing to
// say.
void cx_pjrt_xrt_note(bool chosen, cx_text *out);
// The i-th that is known; false: no more.
bool cx_pjrt_xrt_variable(size_t i, const char **out_name,
                          const char **out_today);

// ---- calls ----

#define CX_PJRT_HAS(plugin, function)               \
  (offsetof(PJRT_Api, function) + sizeof(void *) <= \
       (plugin)->api->struct_size &&                \
   (plugin)->api->function != NULL)

// Declares the arguments of a function: their size and the fields given are
// set, the rest is zero.
#define CX_PJRT_DECLARE(args, function, ...) \
  function##_Args args = { CX_PJRT_ARGS(function##_Args), __VA_ARGS__ }

#define CX_PJRT_CALL(plugin, function, args)                            \
  (CX_PJRT_HAS(plugin, function)                                        \
       ? cx_pjrt_take(plugin, #function, (plugin)->api->function(args)) \
       : cx_pjrt_missing(plugin, #function))

calx_status *cx_pjrt_missing(const cx_pjrt_plugin *p,
                             const char *function) CALX_MUST_USE;
calx_status *cx_pjrt_take_error(const cx_pjrt_plugin *p, const char *function,
                                PJRT_Error *error) CALX_MUST_USE;

// Takes the error; NULL is success.
static inline calx_status *cx_pjrt_take(const cx_pjrt_plugin *p,
                                        const char *function, PJRT_Error *error)
{
  return error == NULL ? NULL : cx_pjrt_take_error(p, function, error);
}

// Frees an error that has no one to report it to, such as that of a destroy.
static inline void cx_pjrt_ignore(calx_status *status)
{
  calx_status_free(status);
}

// Destroys an object of a plugin: `type` is its type, the last argument sets
// the field of the arguments that names the object.
#define CX_PJRT_DESTROY(plugin, type, ...)                           \
  do {                                                               \
    CX_PJRT_DECLARE(destroy_, type##_Destroy, __VA_ARGS__);          \
    cx_pjrt_ignore(CX_PJRT_CALL(plugin, type##_Destroy, &destroy_)); \
  } while (0)

// An error where a call that succeeded returned no object.
calx_status *cx_pjrt_check_object(const cx_pjrt_plugin *p, const void *object,
                                  const char *what) CALX_MUST_USE;

// A copy of a plugin's string, terminated, at most 4 KiB of it.
char *cx_pjrt_string(const char *s, size_t size);

// A device's description, and its id, by which programs are assigned to it.
calx_status *cx_pjrt_device_describe(const cx_pjrt_plugin *p, PJRT_Device *raw,
                                     PJRT_DeviceDescription **out,
                                     int *out_id) CALX_MUST_USE;

// Appends "name = value" for a named value of a plugin.
void cx_pjrt_value_print(cx_text *out, const PJRT_NamedValue *value);

// Changes the number of live handles.
void cx_pjrt_count(long change);

// ---- clients ----

struct cx_pjrt_client {
  atomic_long refs;  // the user's, one for each buffer and executable
  cx_pjrt_plugin *plugin;
  PJRT_Client *raw;
  char *platform;
  char *platform_version;
  cx_pjrt_device *devices;  // addressable
  size_t n_devices;
  size_t n_everywhere;  // of other processes too
  cx_pjrt_world world;
};

void cx_pjrt_client_retain(cx_pjrt_client *c);
void cx_pjrt_client_release(cx_pjrt_client *c);
// The index of an addressable device; n_devices: none of them.
size_t cx_pjrt_device_index(const cx_pjrt_client *c, const PJRT_Device *raw);
calx_status *cx_pjrt_check_device(const cx_pjrt_client *c,
                                  size_t device) CALX_MUST_USE;

// ---- options ----

// The values borrow the options' strings and lists. *out is freed with
// cx_free(); NULL for none.
calx_status *cx_pjrt_values_make(const cx_pjrt_option *options, size_t n,
                                 PJRT_NamedValue **out) CALX_MUST_USE;

// Adds the plugin's options about the world, at most CX_PJRT_WORLD.
#define CX_PJRT_WORLD 8
size_t cx_pjrt_world_options(const cx_pjrt_plugin *plugin,
                             const cx_pjrt_world *w, cx_pjrt_option *list);
// Sets the callbacks to the store, if the plugin uses one. They use c->world as
// long as c lives.
void cx_pjrt_world_callbacks(cx_pjrt_client *c, PJRT_Client_Create_Args *args);

// The ids of a program's replicas on the devices of all processes, as many on
// the first ones of each: rank r is on process r / (n_replicas / processes).
calx_status *cx_pjrt_world_devices(const cx_pjrt_client *c, size_t n_replicas,
                                   int64_t *ids) CALX_MUST_USE;

// The options with which a client of this plugin is created. *out_options is
// freed with cx_free().
calx_status *cx_pjrt_client_defaults(const cx_pjrt_plugin *plugin,
                                     const cx_pjrt_client_options *asked,
                                     cx_pjrt_option **out_options,
                                     size_t *out_n) CALX_MUST_USE;

// Whether the compilation failed for an override that calx has added. Later
// programs then go without.
bool cx_pjrt_defaults_refused(cx_pjrt_client *c, const calx_status *status);

// ---- shapes ----

#define CX_PJRT_TYPES (PJRT_Buffer_Type_F6E3M2FN + 1)
const char *cx_pjrt_type_name(int type);  // "f32"; "?" for none
size_t cx_pjrt_type_bytes(int type);      // on the host; 0: none
// A plugin may end the process if it gets a type that is newer than itself.
calx_status *cx_pjrt_check_type(const cx_pjrt_plugin *p,
                                int type) CALX_MUST_USE;
bool cx_pjrt_shape_equal(const cx_pjrt_shape *a, const cx_pjrt_shape *b);
// Bytes of dense host data; an error for a shape that has none.
calx_status *cx_pjrt_shape_bytes(const cx_pjrt_shape *shape,
                                 size_t *out_bytes) CALX_MUST_USE;
// "f32[2,3]", in `out`.
typedef struct cx_pjrt_shape_text {
  char s[32 + 24 * CALX_MAX_RANK];
} cx_pjrt_shape_text;
const char *cx_pjrt_shape_str(const cx_pjrt_shape *shape,
                              cx_pjrt_shape_text *out);

// ---- events ----

struct cx_pjrt_event {
  cx_pjrt_plugin *plugin;
  PJRT_Event *raw;
  cx_pjrt_event *next;  // of an event of several devices: the next one's
};

// An empty handle. It is made before the call whose event it gets, because
// nothing may fail after that.
cx_pjrt_event *cx_pjrt_event_new(cx_pjrt_plugin *p);
void cx_pjrt_event_destroy(cx_pjrt_plugin *p, PJRT_Event *raw);
// Waits, destroys, returns the event's error. NULL raw: success.
calx_status *cx_pjrt_event_finish(cx_pjrt_plugin *p,
                                  PJRT_Event *raw) CALX_MUST_USE;

// ---- buffers ----

// An execution claims a buffer that it donates, so that no second execution
// gets it. A failed execution drops the claim.
enum { CX_PJRT_LIVE, CX_PJRT_DELETED };

struct cx_pjrt_buffer {
  atomic_long refs;
  atomic_int state;
  cx_pjrt_client *client;
  size_t device;
  cx_pjrt_shape shape;
  PJRT_Buffer *raw;  // NULL only while it is being made
  // Of a sharded buffer, which has no raw one: its shards, in the order of the
  // client's devices, with the shards' shapes. NULL: another buffer.
  cx_pjrt_buffer **shards;
  const cx_spmd_placement *placement;  // NULL: it splits nothing
};

// An empty handle with one reference, to be given its raw buffer.
cx_pjrt_buffer *cx_pjrt_buffer_new(cx_pjrt_client *c, size_t device,
                                   const cx_pjrt_shape *shape);

// A sharded buffer without shards, and its functions behind those of a buffer.
cx_pjrt_buffer *cx_pjrt_sharded_new(cx_pjrt_client *c,
                                    const cx_pjrt_shape *shape,
                                    const cx_spmd_placement *placement);
calx_status *cx_pjrt_sharded_await(cx_pjrt_buffer *b) CALX_MUST_USE;
bool cx_pjrt_sharded_is_ready(cx_pjrt_buffer *b);
calx_status *cx_pjrt_sharded_to_host(cx_pjrt_buffer *b,
                                     void *dst) CALX_MUST_USE;

// ---- executables ----

struct cx_pjrt_executable {
  atomic_long refs;
  cx_pjrt_client *client;
  PJRT_LoadedExecutable *raw;
  bool any_device;
  size_t n_replicas;
  size_t *devices;        // [n_replicas] indices
  uint32_t launch_base;   // the same on all ranks
  atomic_uint *launches;  // [the client's devices]: launches so far
  size_t n_params;
  cx_pjrt_shape *params;
  bool *donated;
  size_t n_results;
  cx_pjrt_shape *results;
  cx_pjrt_whole *wholes;  // of a program of several partitions
};

// Functions of compiled programs, bound to devices or not.
PJRT_Program cx_pjrt_program(const char *text, size_t size);
void cx_pjrt_program_destroy(cx_pjrt_plugin *p, PJRT_Executable *raw);
calx_status *cx_pjrt_program_serialize(cx_pjrt_plugin *p, PJRT_Executable *raw,
                                       char **out_bytes,
                                       size_t *out_size) CALX_MUST_USE;
calx_status *cx_pjrt_program_memory(cx_pjrt_plugin *p, PJRT_Executable *raw,
                                    cx_pjrt_executable_stats *out)
    CALX_MUST_USE;
calx_status *cx_pjrt_program_cost(cx_pjrt_plugin *p, PJRT_Executable *raw,
                                  const char *name, double *out) CALX_MUST_USE;

#endif
