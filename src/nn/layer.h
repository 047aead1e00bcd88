// nn/layer: what the files of layers share: checks, texts, plain layers.
#ifndef CX_NN_LAYER_H
#define CX_NN_LAYER_H

#include "base/dtype.h"
#include "base/options.h"
#include "lazy/lazy.h"
#include "nn/init.h"
#include "nn/module.h"

// Whether x can be asked for its shape. Otherwise the op that is called next
// says what is wrong with it.
static inline bool cx_nn_has_shape(const calx_tensor *x)
{
  return x != NULL && cx_lazy_tensor_value(x).node != NULL;
}
// What a layer gives for such a tensor: a poison that says what is wrong.
calx_tensor *cx_nn_unusable(const calx_module *m, calx_tensor *x);
// "linear: its type is to be i32, a floating one is wanted"; NULL: it is one.
calx_status *cx_nn_check_dtype(const char *call, calx_dtype dtype);
// A parameter of the module, recorded in the current scope.
static inline calx_tensor *cx_nn_filled_param(calx_module *m, const char *name,
                                              calx_dims shape, bool one,
                                              calx_dtype dtype)
{
  return calx_module_param(m, name, cx_nn_filled(shape, one, dtype));
}

// ---- as Python prints -------------------------------------------------------

// 1e-05, 0.1, 1.0: the shortest text that is the same number.
void cx_nn_repr_real(cx_text *out, double value);
// "(3, 3)", "(3,)".
void cx_nn_repr_tuple(cx_text *out, const int64_t *values, size_t n);
// "3" of equal numbers, else as a tuple.
void cx_nn_repr_sizes(cx_text *out, const int64_t *values, size_t n);
// "True" or "False".
static inline const char *cx_nn_repr_bool(bool value)
{
  return value ? "True" : "False";
}

#endif
