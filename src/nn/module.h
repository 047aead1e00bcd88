// nn/module: what the layers share of a module.
#ifndef CX_NN_MODULE_H
#define CX_NN_MODULE_H

#include "calx/nn.h"

// A layer: a module that owns `bytes` of zeroed state, which its forward is
// given. parent NULL: a root, whose name is not used. *out_state is NULL where
// there is no memory; the module then fails.
calx_module *cx_module_layer(calx_module *parent, const char *name,
                             const char *kind, calx_forward_fn *forward,
                             size_t bytes, void **out_state);
// Takes a failure of making it, or NULL. The root keeps its first.
void cx_module_fail(calx_module *m, calx_status *status);
// "features.conv1" from the root, for messages; "(root)" for a root.
const char *cx_module_path(const calx_module *m);
// "conv1 wants f32[…], got f32[128,320] (made by …)" as a poison, for a layer
// that was given what it cannot take. `wanted`: "(…,300)".
calx_tensor *cx_module_refuse(const calx_module *m, const calx_tensor *x,
                              const char *wanted);

#endif
