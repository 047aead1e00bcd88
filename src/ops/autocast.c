// ops/autocast: regions of mixed precision. Each public function that is on one
// of the lists casts its operands itself; the others promote, as they always
// do.
//
// The lists are PyTorch's for XLA devices (torch/aten autocast_mode.h,
// AutocastXLA); the other norms and recurrences, whose parameters are f32,
// beside them.
#include "ops/autocast.h"

#include "base/dtype.h"
#include "base/status.h"
#include "calx/autocast.h"
#include "calx/ops.h"
#include "lazy/lazy.h"

// PyTorch leaves f64 and integers alone. A number has no type of its own.
static bool is_cast(const calx_tensor *t, calx_dtype to)
{
  if (t == NULL || cx_lazy_tensor_is(t, CX_LAZY_T_WEAK)) return false;
  calx_dtype from = cx_lazy_tensor_shape(t)->dtype;
  return from != to && from != CALX_F64 && cx_dtype_is_float(from);
}

calx_tensor *cx_ops_autocast_one(cx_ops_cast cast, calx_tensor *t)
{
  calx_dtype lower = cx_lazy_autocast();
  calx_dtype to = cast == CX_OPS_LOWER ? lower : CALX_F32;
  if (lower == CALX_DTYPE_DEFAULT || !is_cast(t, to)) return t;
  return calx_to_dtype(t, to);
}

calx_dtype cx_ops_autocast_begin(cx_ops_cast cast, calx_tensor **const *in)
{
  if (cx_lazy_autocast() == CALX_DTYPE_DEFAULT) return CALX_DTYPE_DEFAULT;
  for (; *in != NULL; in++) **in = cx_ops_autocast_one(cast, **in);
  return cx_lazy_autocast_set(CALX_DTYPE_DEFAULT);
}

void cx_ops_autocast_end(const calx_dtype *before)
{
  if (*before != CALX_DTYPE_DEFAULT) (void)cx_lazy_autocast_set(*before);
}

// ---- public -----------------------------------------------------------------

void calx_autocast_begin(calx_dtype dtype)
{
  if (dtype == CALX_BF16 || dtype == CALX_F16 || dtype == CALX_DTYPE_DEFAULT) {
    cx_lazy_autocast_region_begin(dtype);
    return;
  }
  cx_lazy_scope_pin(
      cx_invalid("autocast_begin: %s, CALX_BF16 or CALX_F16 is wanted, or "
                 "CALX_DTYPE_DEFAULT for a region without autocast",
                 calx_dtype_name(dtype)));
}

void calx_autocast_end(void)
{
  if (cx_lazy_autocast_region_end()) return;
  cx_lazy_scope_pin(
      cx_error(CALX_FAILED_PRECONDITION,
               "autocast_end: no autocast region is open in this scope"));
}

calx_dtype calx_autocast_dtype(void)
{
  return cx_lazy_autocast();
}
