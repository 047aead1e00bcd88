// ops/composite: what public functions that are composed of others share.
#ifndef CX_OPS_COMPOSITE_H
#define CX_OPS_COMPOSITE_H

#include "base/options.h"
#include "ops/ops.h"

// The first statement of a composition: until it returns, what is recorded has
// its name, for messages and profiles. It refuses complex numbers.
#define CX_OPS_COMPOSITE(name) CX_OPS_COMPOSITE_OF_(name, true)
// The same of a composition that is right for complex numbers, too.
#define CX_OPS_COMPOSITE_COMPLEX(name) CX_OPS_COMPOSITE_OF_(name, false)
#define CX_OPS_COMPOSITE_OF_(name, real)                  \
  __attribute__((cleanup(cx_lazy_composite_end), unused)) \
  const cx_lazy_composite_state composite_before =        \
      cx_lazy_composite_begin(name, real)

// Copies the options o of function calx_NAME, all 0 where o is NULL, and makes
// o the copy. `out` is the calx_tensor * that the function returns where they
// do not fit.
#define CX_OPS_TAKE_OPTIONS(name, o, out)                                  \
  calx_##name##_options name##_taken;                                      \
  if (!cx_ops_options_take(#name, (o), &name##_taken, sizeof name##_taken, \
                           &(out))) {                                      \
    return out;                                                            \
  }                                                                        \
  (o) = &name##_taken

// A number of the options as an operand, which no key contains. 0 stands for
// the default, CALX_ZERO for 0.
static inline calx_tensor *cx_ops_given(double option, double or_else)
{
  return calx_scalar(cx_is_default(option) ? or_else : option);
}

// Whether the operands can be used, and all are made floating: integers become
// what the first floating operand is, else f32. False: *out is what the
// function returns.
bool cx_ops_floating(const char *op, calx_tensor **in, uint32_t n,
                     calx_tensor **out);

// Whether x is floating and has n spatial dimensions behind N and C, or behind
// C; then N of size 1 is added. False: *x is what the function returns.
bool cx_ops_take_images(const char *op, int n, calx_tensor **x,
                        bool *out_single);
// y without N, where that was added.
calx_tensor *cx_ops_give_images(calx_tensor *y, bool single);

// What becomes of the losses of the single elements, by the option.
calx_tensor *cx_ops_reduce_losses(const char *op, calx_tensor *losses,
                                  calx_reduction reduction);

#endif
