// ops/composite: what public functions that are composed of others share.
#ifndef CX_OPS_COMPOSITE_H
#define CX_OPS_COMPOSITE_H

#include "base/options.h"
#include "ops/ops.h"

// The first statement of a composition: until it returns, what is recorded has
// its name, for messages and profiles.
#define CX_OPS_COMPOSITE(name)                            \
  __attribute__((cleanup(cx_lazy_composite_end), unused)) \
  const char *composite_before = cx_lazy_composite_begin(name)

// Checks the options o of function calx_NAME: those of NULL are all 0. `out` is
// the calx_tensor * that the function returns where they do not fit.
#define CX_OPS_TAKE_OPTIONS(name, o, out)                \
  static const calx_##name##_options name##_defaults = { \
    .size = sizeof name##_defaults                       \
  };                                                     \
  if ((o) == NULL) (o) = &name##_defaults;               \
  if (!cx_ops_options_fit(#name, (o)->size, sizeof *(o), &(out))) return out

// A number of the options as an operand, which no key contains. 0 stands for
// the default, CALX_ZERO for 0.
static inline calx_tensor *cx_ops_given(double option, double or_else)
{
  return calx_scalar(cx_is_default(option) ? or_else : option);
}

// Whether the operands can be used, and all are made floating: integers become
// f32. False: *out is what the function returns.
bool cx_ops_floating(const char *op, calx_tensor **in, uint32_t n,
                     calx_tensor **out);

#endif
