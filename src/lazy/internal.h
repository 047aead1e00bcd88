// lazy/internal: the structs behind the core's handles. Private to lazy.
#ifndef CX_LAZY_INTERNAL_H
#define CX_LAZY_INTERNAL_H

#include <sys/types.h>

#include "base/thread.h"
#include "graph/order.h"
#include "lazy/lazy.h"

// ---- problems: why a tensor has no value; shared, refcounted ----------------

typedef struct cx_lazy_problem {
  atomic_int refs;
  calx_status *status;
} cx_lazy_problem;

cx_lazy_problem *cx_lazy_problem_new(calx_status *status);  // takes it; NULL:
                                                            // no memory
void cx_lazy_problem_release(cx_lazy_problem *p);

// ---- tensors ----------------------------------------------------------------

enum {                             // besides those of lazy.h
  CX_LAZY_T_REQUIRES_GRAD = 1,     // a leaf that collects a gradient
  CX_LAZY_T_EXPIRED = 8,           // problem: at which sync
  CX_LAZY_T_POISON = 16,           // problem: why
  CX_LAZY_T_NAMED = 64,            // during one sync
  CX_LAZY_T_ENDED = 128,           // nothing is left of it but its memory
  CX_LAZY_T_BORROWED_LEAF = 256,   // the leaf record is another tensor's
  CX_LAZY_T_BASE_DETACHED = 1024,  // what CX_LAZY_T_DETACHED was with base
};

typedef struct cx_lazy_host {
  cx_graph_shape shape;
  size_t bytes;
  unsigned char *data;  // on a cache line, so that plugins can use it in place
  void (*done)(void *user);  // gives back data of somebody else; NULL: own
  void *user;
} cx_lazy_host;

struct calx_tensor {
  atomic_int refs;    // owners, and one for the scope
  atomic_int owners;  // other than the scope: durable while above 0
  uint32_t flags;
  uint32_t out, base_out;
  cx_graph_node *node;  // the value; NULL: host or poison
  cx_graph_node *base;  // the last materialised value, while another is pending
  calx_device *device;
  cx_lazy_problem *problem;
  union {
    uint64_t serial;          // order of creation on its device
    calx_tensor *next_ended;  // of a tensor that ended
  };
  calx_scope *scope;
  uint32_t scope_at;
  uint32_t changed_at;  // place in the device's list + 1
  cx_graph_leaf *leaf;
  calx_tensor *grad;
  // How every value of it is to be split, see sharding.c; NULL: not marked.
  const cx_spmd_placement *placement;
  cx_lazy_host *host;
  const char *name, *model;
};

static inline bool cx_is_computed(const cx_graph_node *node)
{
  return node->out[0].buffer != NULL;
}

// Whether the tensor's value is recorded but not computed.
static inline bool cx_is_pending(const calx_tensor *t)
{
  return t->node != NULL && !cx_is_computed(t->node);
}

// Whether the value was made since the last sync, also if a read computed it.
static inline bool cx_is_of_this_step(const calx_tensor *t)
{
  return t->node != NULL &&
         (cx_is_pending(t) ||
          (!cx_lazy_eager() &&
           (cx_graph_node_flags(t->node) & CX_GRAPH_NODE_DATA) == 0));
}

static inline bool cx_is_durable(const calx_tensor *t)
{
  return atomic_load_explicit(&t->owners, memory_order_acquire) > 0;
}

calx_tensor *cx_lazy_tensor_alloc(calx_device *device);  // one ref, no scope
// What the value needs is run, if it is pending.
calx_status *cx_lazy_tensor_compute(calx_tensor *t) CALX_MUST_USE;
void cx_lazy_tensor_unref(calx_tensor *t);  // ends the scope's reference
// The same where the scope itself ends. A tensor that nobody else holds ends
// too: its memory stays, so that its use is an error, until
// cx_lazy_tensors_forget_ended(), which the thread's next scope end calls.
void cx_lazy_tensor_end(calx_tensor *t);
void cx_lazy_tensors_forget_ended(void);
calx_tensor *cx_lazy_tensor_nil(void);  // the poison that needs no memory
// Gives the tensor a materialised value; the reference to node is taken over.
void cx_lazy_tensor_settle(calx_tensor *t, cx_graph_node *node);
// Back to base, or to poison when there is none. For a failed step.
void cx_lazy_tensor_revert(calx_tensor *t, cx_lazy_problem *why);
void cx_lazy_tensor_expire(calx_tensor *t, cx_lazy_problem *why);
// A step that failed: every durable tensor goes back to its last value.
void cx_lazy_drop_step(calx_device *d);
// Under the device's lock. False: no memory, then nothing changed.
bool cx_lazy_changed_add(calx_tensor *t);
void cx_lazy_changed_remove(calx_tensor *t);
// ---- scopes and threads -----------------------------------------------------

enum { CX_LAZY_MOST_REGIONS = 64 };  // of gradients, and of autocast

struct calx_scope {
  calx_scope *parent;
  calx_tensor **tensors;
  size_t count, capacity;
  calx_status *error;
  // Of the regions with and without gradients that began outside.
  uint32_t grad_regions_before;
  uint64_t grad_bits_before;
  int regions_before;         // the same of a profile's
  uint32_t autocasts_before;  // and of autocast
  bool is_root;
  calx_site site;
  int depth;
  // The first `settled` tensors have no value that a sync must see to. Scopes
  // with more than those are on their thread's list, so that a sync costs what
  // is new and not what is open.
  size_t settled;
  calx_scope *next_unsettled, **unsettled_link;  // NULL link: not on the list
  struct cx_lazy_thread_state *thread;
  pid_t process;
  // Of a root, see untaken.c.
  calx_scope *next_root, **root_link;
  calx_status *later;  // an error behind the first one, once that was reported
  bool reported;       // the latest of the two was
};

typedef struct cx_lazy_thread_state {
  calx_scope *top;
  calx_device *device;    // set by calx_device_set_current
  calx_device *steps;     // on which this thread changes durable tensors
  bool lost;              // an error, for which there was not even a root scope
  uint32_t grad_regions;  // how many are open
  uint64_t grad_bits;     // 1: with gradients; bit 0 is the innermost
  // The types of the autocast regions that are open, the innermost one last.
  uint32_t autocasts;
  unsigned char autocast_types[CX_LAZY_MOST_REGIONS];
  calx_dtype autocast;  // what ops cast to now; DEFAULT: they do not
  const char *module;
  cx_lazy_composite_state composite;
  int64_t recorded;    // ops since the last sync
  int64_t programs;    // that this thread ran
  calx_tensor *ended;  // with the last scope that ended
  calx_scope *unsettled;
  atomic_bool rescan;  // another thread changed a tensor of a scope of this one
} cx_lazy_thread_state;

extern _Thread_local cx_lazy_thread_state cx_lazy_self;

// What calx_scope_begin returns without memory for a scope. The scope around it
// has the tensors then, and that error until this one ends.
extern calx_scope cx_lazy_no_scope;

// Ends the innermost scope, which there is; returns its error.
calx_status *cx_lazy_scope_pop(void) CALX_MUST_USE;
// Ends the calling thread's root scope, so that nothing of it is left.
void cx_lazy_scope_end_root(void);
calx_scope *cx_lazy_scope_current(void);  // NULL: no memory for a root scope
// Adds a tensor to the current scope. Without memory it is freed, and the
// result is nil.
calx_tensor *cx_lazy_scope_give(calx_tensor *t);
void cx_lazy_scope_remove(calx_tensor *t);    // t is in no scope from then on
void cx_lazy_scope_unsettle(calx_tensor *t);  // it has a pending value again
// Before a walk over the unsettled scopes, and after a sync: what has no
// pending value is settled.
void cx_lazy_scopes_rescan(void);
void cx_lazy_scopes_settle(void);

// ---- errors that nobody took ------------------------------------------------

void cx_lazy_root_add(calx_scope *root);
void cx_lazy_root_remove(calx_scope *root);
void cx_lazy_root_pin(calx_scope *root, calx_status *status);  // takes it
calx_status *cx_lazy_root_take(calx_scope *root);  // the first one; NULL: none
void cx_lazy_root_report(calx_scope *root);        // logs each error once
void cx_lazy_report_failed_read(void);             // of the current root scope
void cx_lazy_log_untaken(calx_status *status);     // takes it; NULL: nothing
void cx_lazy_report_at_exit(void);

// ---- devices ----------------------------------------------------------------

typedef struct cx_lazy_flight {  // one launched execution
  cx_pjrt_event *done;
  calx_site site;
  bool donated;
  cx_graph_node **results;
  size_t n_results;
} cx_lazy_flight;

enum { CX_LAZY_MAX_FLIGHTS = 64 };

// What a rank has submitted to a launch of all ranks; under the lock of
// collective_launch.c.
typedef struct cx_lazy_pending_launch {
  enum {
    CX_LAZY_LAUNCH_NONE,
    CX_LAZY_LAUNCH_SUBMITTED,
    CX_LAZY_LAUNCH_TAKEN
  } state;
  uint64_t number;  // of the rank's launches with others
  const struct cx_lazy_execution *execution;
  int choice;           // of the program's executables, when it is taken
  bool tried;           // to launch it
  calx_status *status;  // how that ended
} cx_lazy_pending_launch;

typedef struct cx_lazy_site_problem {  // kept for syncs at the same place
  cx_lazy_problem *problem;
  calx_site site;
} cx_lazy_site_problem;

struct calx_device {
  int index;
  char name[16];
  cx_pjrt_client *client;
  bool sharded;  // it stands for all devices of the client: calx_use_spmd()
  cx_mutex lock;
  calx_tensor **changed;  // durable tensors with a value a sync must settle
  size_t n_changed, changed_capacity;
  cx_graph_order order;  // scratch
  cx_lazy_pending_launch pending;
  cx_lazy_flight flights[CX_LAZY_MAX_FLIGHTS];
  size_t first_flight, n_flights;
  cx_lazy_site_problem expired, consumed;  // of the last syncs
  calx_site read_site;
  atomic_bool rank_ended;  // while other ranks of the launch may still run
  atomic_uint_fast64_t serial;
  uint64_t seed, draws;
};

// Uploads to the device, or to all that it stands for, by the placement. `done`
// may be NULL for COPY, else it is called once, on failure too.
calx_status *cx_lazy_buffer_from_host(const calx_device *d,
                                      const cx_pjrt_shape *shape,
                                      const cx_spmd_placement *placement,
                                      const void *data, cx_pjrt_upload mode,
                                      void (*done)(void *user), void *user,
                                      cx_pjrt_buffer **out) CALX_MUST_USE;
// One transfer to a device, begun at `start`.
void cx_lazy_count_upload(const calx_device *d, int64_t start, size_t bytes);
// Opens the devices for ranks: an error where they are open for anything else.
calx_status *cx_lazy_devices_claim(int *out_count) CALX_MUST_USE;
// Waits for what runs and closes them; release_programs() is called between the
// two. Nothing happens where they are not open.
void cx_lazy_devices_close(void (*release_programs)(void));
bool cx_lazy_device_is_open(const calx_device *d);  // false after calx_shutdown
calx_device *cx_lazy_device_at(int index);  // NULL: none; the devices are open

// ---- flights: executions that are under way ---------------------------------

// Waits until fewer than the limit are under way. Under the device's lock.
calx_status *cx_lazy_flight_room(calx_device *d) CALX_MUST_USE;
// Adds one, for which there is room; retains its results' data nodes and takes
// `done`. Under the device's lock.
void cx_lazy_flight_add(calx_device *d, cx_pjrt_event *done,
                        const calx_site *site, bool donated,
                        cx_graph_node *const *results, size_t n);
// Takes notice of those that are done (all: waits for every one). Returns the
// first failure, with the site of its sync; its results are failed then.
calx_status *cx_lazy_flight_poll(calx_device *d, bool all) CALX_MUST_USE;
// The same of those that are done, without waiting for the lock either. False:
// none is left.
bool cx_lazy_flight_try(calx_device *d, calx_status **out_status);

// ---- programs ---------------------------------------------------------------

typedef struct cx_lazy_program cx_lazy_program;

typedef struct cx_lazy_run {  // one execution, under the device's lock
  calx_device *device;
  cx_graph_order *order;
  bool is_sync;  // else a read: no donation, not in the recompile count
  bool train;    // an op in it depends on train mode
  bool any_donation;
  calx_site site;
} cx_lazy_run;

// Compiles or finds the program of run->order and launches it. out: n_roots new
// buffers. The order's aliases are set by the caller.
calx_status *cx_lazy_run_order(cx_lazy_run *run, cx_pjrt_buffer **out,
                               cx_pjrt_event **out_done) CALX_MUST_USE;
void cx_lazy_programs_free(void);
#endif
