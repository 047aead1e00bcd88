// nn/module: what a module is, and what the layers share of it.
#ifndef CX_NN_MODULE_H
#define CX_NN_MODULE_H

#include "base/hook.h"
#include "base/text.h"
#include "calx/nn.h"

// Computes a parameter from those of `list`, the module that has the originals.
typedef calx_tensor *cx_nn_compute_fn(calx_module *list);

typedef struct cx_nn_module_entry {
  const char *path;  // from the root; NULL: refused, kept to be freed only
  calx_entry_kind kind;
  calx_tensor *tensor;  // owned; NULL: a child, or computed
  calx_module *child;
  cx_nn_compute_fn *compute;  // of a parametrised parameter; no state has it
  calx_module *list;          // what `compute` is given
} cx_nn_module_entry;

// A kind of layer.
typedef struct cx_nn_layer {
  const char *kind, *call;  // "Conv2d", "conv2d"
  calx_forward_fn *forward;
  // Appends the arguments that PyTorch's extra_repr shows. NULL: none.
  void (*repr)(const void *state, cx_text *out);
  // Of a layer of two tensors. NULL: it takes one.
  calx_tensor *(*forward2)(void *state, calx_tensor *x, calx_tensor *y);
} cx_nn_layer;

struct calx_module {
  calx_module *parent, *root;
  const char *path;  // interned; "" for a root
  char *kind;
  calx_forward_fn *forward;
  void *self, *state;
  const cx_nn_layer *layer;      // NULL: the user's
  calx_forward_n_fn *forward_n;  // of n_in tensors; NULL: it takes one
  size_t n_in;
  bool training;
  bool numbered;  // children without a name are called "0", "1", …
  bool is_list;   // printed as a ModuleList
  bool has_ties;  // of a root: a tensor stands under two names
  int depth;
  cx_nn_module_entry *entries;
  size_t count, capacity;
  calx_status *status;  // of a root: its first failure
  cx_hook_list hooks;
};

// A layer: a module that owns `bytes` of zeroed state, which its forward is
// given. parent NULL: a root, whose name is not used. *out_state is NULL where
// there is no memory; the module then fails.
calx_module *cx_nn_module_layer(calx_module *parent, const char *name,
                                const char *kind, calx_forward_fn *forward,
                                size_t bytes, void **out_state);
// The same of a kind of layer. Every state begins with the module's address.
calx_module *cx_nn_make(const cx_nn_layer *layer, calx_module *parent,
                        const char *name, size_t bytes, void **out_state);
// A parameter or buffer of the module itself, computed if it is parametrised;
// NULL: none.
calx_tensor *cx_nn_tensor(const calx_module *m, const char *name);
// Visits what the module itself has, not those below it.
void cx_nn_visit_own(calx_module *m, calx_entry_kind kind, calx_visit_fn *fn,
                     void *user);
// The entry of that name, hidden or not; NULL: none.
cx_nn_module_entry *cx_nn_module_entry_of(const calx_module *m,
                                          const char *name);
// Registers a tensor of another module under a name; it has a further owner.
calx_status *cx_nn_module_share(calx_module *m, const char *name,
                                calx_tensor *shared) CALX_MUST_USE;
// Called with the arguments and the result of each module's forward, on this
// thread. NULL: none.
typedef void cx_nn_watch_fn(void *user, calx_module *m, calx_tensor *const *in,
                            size_t n_in, calx_tensor *y);
void cx_nn_module_watch(cx_nn_watch_fn *fn, void *user);
// Whether there is one: then a forward changes no parameter and no buffer.
bool cx_nn_module_watched(void);
// Records a failure to make the module, or NULL. The root keeps its first and
// owns it.
void cx_nn_module_fail(calx_module *m, calx_status *status);
// Tensors of one call, at most.
enum { CX_NN_INPUTS = 8 };
// Calls its function of n tensors between its hooks. Hooks may replace those
// of `in`.
calx_tensor *cx_nn_module_call(calx_module *m, calx_tensor **in, size_t n);
// Whether it is the module that constructors return without memory.
bool cx_nn_module_is_nil(const calx_module *m);
// The length of m's own path and its dot, with which the paths below m begin.
size_t cx_nn_module_prefix(const calx_module *m);
// "features.conv1" from the root, for messages; a root's kind.
const char *cx_nn_module_path(const calx_module *m);
// "conv1 wants f32[…], got f32[128,320] (made by …)" as a poison, for a layer
// that was given what it cannot take. `wanted`: "(…,300)".
calx_tensor *cx_nn_module_refuse(const calx_module *m, const calx_tensor *x,
                                 const char *wanted);

#endif
