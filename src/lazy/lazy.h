// lazy: the core. Tensors, scopes, devices, recording, running.
//
// This header is what the modules above use. Locks: a calx_device's lock guards
// its list of changed durable tensors, the marks of its nodes and the buffers
// in them; recording an op takes no lock. Log lines are written after
// unlocking.
#ifndef CX_LAZY_LAZY_H
#define CX_LAZY_LAZY_H

#include <stdbool.h>

#include "calx/tensor.h"
#include "graph/node.h"

// ---- mode: the calling thread's state and the environment's switches --------

// CALX_DEBUG=handles,indices,donation,nan,trap,anomaly,recompiles, and numbers
enum {
  CX_LAZY_DEBUG_HANDLES = 1,
  CX_LAZY_DEBUG_INDICES = 2,
  CX_LAZY_DEBUG_DONATION = 4,
  CX_LAZY_DEBUG_NAN = 8,
  CX_LAZY_DEBUG_TRAP = 16,
  CX_LAZY_DEBUG_ANOMALY = 32,
  CX_LAZY_DEBUG_RECOMPILES = 64,  // each has a line of its own
};
bool cx_lazy_debug_on(int which);
void cx_lazy_debug_set(int which, bool on);
bool cx_lazy_eager(void);  // CALX_EAGER=1
int64_t cx_lazy_env_int(const char *name, int64_t otherwise);
int64_t cx_lazy_pending_limit(void);  // CALX_PENDING_LIMIT, in ops; 0: none
void cx_lazy_mode_reload(void);       // tests: reads the environment again

void cx_lazy_grad_mode_set(bool on);  // the no-grad region of the current scope
bool cx_lazy_grad_mode(void);
// Regions with gradients or without; they nest, and end with their scope.
void cx_lazy_grad_region_begin(bool enable);
// False: the innermost region of the current scope is none of this kind.
bool cx_lazy_grad_region_end(bool enable);
static inline void cx_lazy_no_grad_begin(void)
{
  cx_lazy_grad_region_begin(false);
}
static inline bool cx_lazy_no_grad_end(void)
{
  return cx_lazy_grad_region_end(false);
}
// Regions in which ops cast their operands to this type (DEFAULT: they do not);
// they nest, and end with their scope. False: none was begun in this scope.
void cx_lazy_autocast_region_begin(calx_dtype dtype);
bool cx_lazy_autocast_region_end(void);
calx_dtype cx_lazy_autocast(void);  // what ops cast to now
calx_dtype cx_lazy_autocast_set(
    calx_dtype dtype);  // for a while; the one before
// Between a loader's batches that share one sync (batches_per_execution): a
// step leaves its sync to the loader.
void cx_lazy_sync_defer(bool on);
bool cx_lazy_sync_is_deferred(void);
const char *cx_lazy_module_path_set(const char *path);  // the one before

// Between these, nodes have the name of the public function that is composed of
// them, for messages and profiles. Where they nest, the outermost name counts.
// `begin` returns what `end` takes back. In one that is `real` complex operands
// and results are errors.
typedef struct cx_lazy_composite_state {
  const char *name;  // NULL: none
  bool real;
} cx_lazy_composite_state;
cx_lazy_composite_state cx_lazy_composite_begin(const char *name, bool real);
void cx_lazy_composite_end(const cx_lazy_composite_state *before);
const char *cx_lazy_composite(void);  // NULL: none

// ---- scopes -----------------------------------------------------------------

// Takes a status and pins it on the current scope, if it is the scope's first.
void cx_lazy_scope_pin(calx_status *status);
bool cx_lazy_scope_failed(void);

// Ends all scopes of the calling thread, the root too. Returns their first
// error that nobody read, the outer one where there are several, and drops the
// thread's step then.
calx_status *cx_lazy_scope_end_thread(void) CALX_MUST_USE;

// ---- ranks that are threads -------------------------------------------------

// The calling thread's device, by its place among the process's; 0: none set.
int cx_lazy_device_index_of_thread(void);
// Opens the devices for ranks. FAILED_PRECONDITION when anything else opened
// them before. *out_count: how many there are.
calx_status *cx_lazy_devices_open_for_ranks(int *out_count) CALX_MUST_USE;
bool cx_lazy_devices_are_open(void);

// ---- tensors ----------------------------------------------------------------

// A tensor of the current scope. Never NULL: without memory a poisoned one.
calx_tensor *cx_lazy_tensor_of(cx_graph_value value, calx_device *device);
// The same value without its gradient edge.
calx_tensor *cx_lazy_tensor_detached(calx_tensor *t);
// Poison; takes the status and pins it on the current scope.
CX_COLD calx_tensor *cx_lazy_tensor_poison(calx_status *status);
bool cx_lazy_tensor_poisoned(const calx_tensor *t);
// What forbids an operation to use t's value; NULL: nothing.
calx_status *cx_lazy_tensor_usable(const calx_tensor *t, const char *op,
                                   uint32_t operand) CALX_MUST_USE;
// Never NULL: rank 0 for poison; the host shape of a host tensor.
const cx_graph_shape *cx_lazy_tensor_shape(const calx_tensor *t);
cx_graph_value cx_lazy_tensor_value(const calx_tensor *t);

enum {
  CX_LAZY_T_DETACHED = 2,  // has no gradient edge; of a handle of one's own
  // A number made by calx_scalar: it only decides a promotion's category.
  CX_LAZY_T_WEAK = 4,
  // A gradient that an optimiser's step used: a temporary from then on.
  CX_LAZY_T_CONSUMED = 32,
  // A failed step goes back to the value that the tensor is given before its
  // first sync, as if it had been computed: for what a model begins with.
  CX_LAZY_T_KEEP_INITIAL = 512,
};
void cx_lazy_tensor_mark(calx_tensor *t, uint32_t flag);
bool cx_lazy_tensor_is(const calx_tensor *t, uint32_t flag);
// NULL device: the tensor's own, else the calling thread's.
calx_device *cx_lazy_device_or_current(calx_device *device);

// A durable tensor with one owner, in no scope; from any thread. borrow: data
// stays valid until done(user) is called, exactly once, on failure too.
calx_status *cx_lazy_upload(calx_device *device, calx_dtype dtype,
                            const int64_t *dims, size_t rank, const void *data,
                            bool borrow, void (*done)(void *user), void *user,
                            calx_tensor **out_tensor) CALX_MUST_USE;
// The same of a borrowed tensor that is marked so and is uploaded in shards.
// Its shape is checked.
calx_status *cx_lazy_upload_split(calx_device *device,
                                  const cx_graph_shape *shape,
                                  const cx_spmd_placement *placement,
                                  const void *data, void (*done)(void *user),
                                  void *user,
                                  calx_tensor **out_tensor) CALX_MUST_USE;

// A durable host tensor with one owner, in no scope, over memory that is there
// already and is aligned for the type. done(user) is called once: when nothing
// holds it any more, on failure at once.
calx_status *cx_lazy_host_tensor_over(const cx_graph_shape *shape, void *data,
                                      void (*done)(void *user), void *user,
                                      calx_tensor **out_tensor) CALX_MUST_USE;

// Gives t the value of `from`, without checks; a durable one is pending then.
// The history comes along, unless `from` is detached or the calling thread is
// in a no-grad region.
void cx_lazy_tensor_set_value(calx_tensor *t, const calx_tensor *from);
// The same with a value on the same device that a load brought: it counts as
// computed, so that a failed step goes back to it.
void cx_lazy_tensor_restore(calx_tensor *t, const calx_tensor *from);
// A name for messages, kept by the caller for the tensor's life.
void cx_lazy_tensor_set_name(calx_tensor *t, const char *name);
const char *cx_lazy_tensor_name(const calx_tensor *t);  // NULL: none
// The same of the model that it belongs to: names are unique in one model only.
void cx_lazy_tensor_set_model(calx_tensor *t, const char *model);
const char *cx_lazy_tensor_model(const calx_tensor *t);  // NULL: none
// It is part of a loader's batch, "the batch's target" (static), which the
// calling thread's site asked for; is_short: of the last one, a smaller one.
// Nothing happens where its value is not on a device.
void cx_lazy_tensor_set_batch(calx_tensor *t, const char *part, bool is_short);

// ---- gradients (the tape's ends) --------------------------------------------

bool cx_lazy_tensor_requires_grad(const calx_tensor *t);  // leaf or on the tape
void cx_lazy_tensor_set_requires_grad(calx_tensor *t, bool on);  // of a leaf
bool cx_lazy_tensor_is_leaf(const calx_tensor *t);
// The record by which others find the tensor while it lives; made where it has
// none. NULL: no memory.
cx_graph_leaf *cx_lazy_tensor_leaf(calx_tensor *t);
// The handle itself loses its history and its gradient edge.
void cx_lazy_tensor_cut(calx_tensor *t);
calx_tensor *cx_lazy_tensor_grad(calx_tensor *t);  // NULL: none
// Takes one ownership of grad (NULL: clears).
void cx_lazy_tensor_set_grad(calx_tensor *t, calx_tensor *grad);

// ---- shardings --------------------------------------------------------------

// Devices that the programs of this process run on; 0: it does not shard.
size_t cx_lazy_sharded_count(void);
// How the tensor is split; NULL: it was not marked.
const cx_spmd_placement *cx_lazy_tensor_placement(const calx_tensor *t);
// Marks it, or takes the mark away (NULL).
void cx_lazy_tensor_set_placement(calx_tensor *t,
                                  const cx_spmd_placement *placement);
// Splits a computed value anew; NULL: whole on each device. *out_done is false
// where the value is pending or has a history: then nothing has happened.
calx_status *cx_lazy_tensor_reshard(calx_tensor *t,
                                    const cx_spmd_placement *placement,
                                    bool *out_done) CALX_MUST_USE;

// ---- recording --------------------------------------------------------------

typedef struct cx_lazy_call {
  const cx_graph_op *op;
  calx_tensor *const *in;  // none NULL
  uint32_t n_in;
  uint32_t n_out;  // 0 = 1
  const void *attrs;
  const cx_graph_slot *slots;
  uint32_t n_slots;
  uint32_t flags;       // CX_GRAPH_NODE_TRAIN, CX_GRAPH_NODE_COLLECTIVE
  calx_device *device;  // of an op without operands; NULL: the current one
} cx_lazy_call;

// Records the op; the results are in the current scope. outs (n_out of them)
// may be NULL when there is one. Returns outs[0].
calx_tensor *cx_lazy_apply(const cx_lazy_call *call, calx_tensor **outs);

// ---- running ----------------------------------------------------------------

// The loader's sync: nothing is launched or counted when nothing is pending.
void cx_lazy_sync_pending(void);
// Computes t's value if it is pending. False: the scope holds the reason.
bool cx_lazy_read(calx_tensor *t);
// Whether reading it would run nothing, though it may wait.
bool cx_lazy_is_launched(const calx_tensor *t);

// ---- programs without a graph: what is exported -----------------------------

typedef struct cx_lazy_printed {
  cx_text text;            // StableHLO, without call sites
  cx_graph_value *params;  // computed values: the arguments; their nodes are
                           // borrowed from those that the values came from
  size_t n_params;
  uint32_t flags;  // CX_GRAPH_NODE_… of all nodes
} cx_lazy_printed;
// The program of these values, which are on one device. Numbers that were given
// to ops are constants in it. Nothing is run.
calx_status *cx_lazy_print_values(calx_tensor *const *values, size_t n,
                                  cx_lazy_printed *out) CALX_MUST_USE;
void cx_lazy_printed_free(cx_lazy_printed *p);

// Compiles a program for the devices of `device`'s client, or takes it from the
// disk cache.
calx_status *cx_lazy_compile_text(calx_device *device, const cx_text *text,
                                  const cx_pjrt_signature *signature,
                                  cx_pjrt_executable **out) CALX_MUST_USE;
// Launches it on tensors of `device`, whose values are computed where they are
// pending. out: n_out tensors of these shapes, in the current scope.
calx_status *cx_lazy_execute(calx_device *device, cx_pjrt_executable *program,
                             calx_tensor *const *in, size_t n_in,
                             const cx_graph_shape *shapes, calx_tensor **out,
                             size_t n_out) CALX_MUST_USE;
cx_pjrt_client *cx_lazy_device_client(const calx_device *device);

// ---- ranks ------------------------------------------------------------------

// The global ordinal of the rank whose device it is. Where no ranks were
// started: the device's number.
int cx_lazy_device_rank(const calx_device *device);
// Before ranks start and when all have ended: what they launched together, and
// that they ended, is forgotten.
void cx_lazy_ranks_reset(void);
// The device's rank has ended, whatever the way: what waits for its next sync
// is dropped, and nobody need wait for what it might still do.
void cx_lazy_rank_end(calx_device *device);
bool cx_lazy_rank_has_ended(const calx_device *device);

// ---- random streams ---------------------------------------------------------

// The next draw of the device's default stream: key and counter for THREE_FRY.
// common: rank 0's numbers on every rank, for what a model begins with.
void cx_lazy_random_draw(calx_device *device, bool common, uint64_t *out_key,
                         uint64_t *out_counter);
// The place in that stream: the draws so far with this seed.
void cx_lazy_random_state(calx_device *device, uint64_t *out_seed,
                          uint64_t *out_draws);
void cx_lazy_random_restore(calx_device *device, uint64_t seed, uint64_t draws);

// Live tensors, scopes: the tests' leak counts.
long cx_lazy_tensor_live(void);
long cx_lazy_scope_live(void);
// Programs that the calling thread has run, reads of pending values too.
int64_t cx_lazy_thread_programs(void);
// Programs compiled for the current client so far.
long cx_lazy_program_count(void);

#endif
