// jit/root: kernels of one operation that writes its result piecemeal.
#ifndef CX_JIT_ROOT_H
#define CX_JIT_ROOT_H

#include "jit/emit.h"

calx_status *cx_jit_kernel_scatter(cx_jit_env *env, cx_jit_kernel *k);
calx_status *cx_jit_kernel_select(cx_jit_env *env, cx_jit_kernel *k);
// Whether its windows lie side by side: for the function below.
bool cx_jit_is_tiled(const cx_jit_env *env, const cx_hlo_op *op);
calx_status *cx_jit_kernel_tiled(cx_jit_env *env, cx_jit_kernel *k);
// dynamic_update_slice, in loop.c.
calx_status *cx_jit_kernel_update(cx_jit_env *env, cx_jit_kernel *k);
calx_status *cx_jit_kernel_sort(cx_jit_env *env, cx_jit_kernel *k);
calx_status *cx_jit_kernel_rng(cx_jit_env *env, cx_jit_kernel *k);
// random.c: words of 32 bits, lane by lane, for counters of 64 and of 128 bits.
void cx_jit_threefry(cx_jit_env *env, const LLVMValueRef key[2],
                     LLVMValueRef counter, LLVMValueRef out[2]);
void cx_jit_philox(cx_jit_env *env, const LLVMValueRef key[2], LLVMValueRef low,
                   LLVMValueRef high, LLVMValueRef out[4]);

// The phase that makes output `i` equal to a value, in loop.c. With `in_place`
// it does nothing where the output is the value's own memory.
void cx_jit_phase_copy(cx_jit_env *env, cx_jit_kernel *k, int phase,
                       const cx_hlo_value *value, size_t output, bool in_place);

#endif
