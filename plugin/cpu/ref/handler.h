// ref/handler: C functions that programs register as the targets of custom
// calls. A target is called with XLA's FFI (abi/xla_ffi.h).
//
// The table belongs to the process. A target stays registered until its end,
// since compiled programs name it.
#ifndef CPU_REF_HANDLER_H
#define CPU_REF_HANDLER_H

#include "abi/xla_ffi.h"
#include "hlo/module.h"
#include "ref/ref.h"

// Registers a function. It is asked for its version first. The same function
// may come again; another one of the same name is refused.
calx_status *cpu_ref_handler_add(cx_hlo_str name,
                                 XLA_FFI_Handler *handler) CALX_MUST_USE;
XLA_FFI_Handler *cpu_ref_handler_find(cx_hlo_str name);  // NULL: none
// Whether a function is registered for this custom call's target. It goes
// before a target of the engine's own (lapack/lapack.h) of that name.
bool cpu_ref_handler_takes(const cx_hlo_op *op);
// What keeps this custom call from running: it has no target, or is not called
// as its target wants. NULL: nothing.
calx_status *cpu_ref_custom_call_check(const cx_hlo_op *op) CALX_MUST_USE;

// The functions that handlers call.
const XLA_FFI_Api *cpu_ref_handler_api(void);
// What the handlers of a launch see; a handler's ctx.
struct XLA_FFI_ExecutionContext {
  const cpu_ref_user_data *data;
  size_t n;
};
// The status of a handler's answer, which is taken.
calx_status *cpu_ref_handler_status(XLA_FFI_Error *error) CALX_MUST_USE;

// Before a call: buffers whose layout is not row-major get memory of the arena,
// operands with their elements. After it: results are copied from there.
struct cpu_ref_call;
calx_status *cpu_ref_layouts_begin(cx_arena *arena,
                                   const struct cpu_ref_call *c,
                                   XLA_FFI_CallFrame *frame) CALX_MUST_USE;
calx_status *cpu_ref_layouts_end(const struct cpu_ref_call *c,
                                 const XLA_FFI_CallFrame *frame) CALX_MUST_USE;

#endif
