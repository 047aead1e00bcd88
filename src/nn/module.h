// nn/module: what a module is, and what the layers share of it.
#ifndef CX_NN_MODULE_H
#define CX_NN_MODULE_H

#include "calx/nn.h"

typedef struct cx_nn_module_entry {
  const char *path;  // from the root; NULL: refused, kept to be freed only
  calx_entry_kind kind;
  calx_tensor *tensor;  // owned; NULL: a child
  calx_module *child;
} cx_nn_module_entry;

struct calx_module {
  calx_module *parent, *root;
  const char *path;  // interned; "" for a root
  char *kind;
  calx_forward_fn *forward;
  void *self, *state;
  bool training;
  int depth;
  cx_nn_module_entry *entries;
  size_t count, capacity;
  calx_status *status;  // of a root: its first failure
};

// A layer: a module that owns `bytes` of zeroed state, which its forward is
// given. parent NULL: a root, whose name is not used. *out_state is NULL where
// there is no memory; the module then fails.
calx_module *cx_nn_module_layer(calx_module *parent, const char *name,
                                const char *kind, calx_forward_fn *forward,
                                size_t bytes, void **out_state);
// Records a failure to make the module, or NULL. The root keeps its first and
// owns it.
void cx_nn_module_fail(calx_module *m, calx_status *status);
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
