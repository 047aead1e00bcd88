// jit/root: kernels of one operation that writes its result piecemeal.
#ifndef CPU_JIT_ROOT_H
#define CPU_JIT_ROOT_H

#include "jit/emit.h"

calx_status *cpu_jit_kernel_scatter(cpu_jit_env *env, cpu_jit_kernel *k);
calx_status *cpu_jit_kernel_select(cpu_jit_env *env, cpu_jit_kernel *k);
// Whether the windows of select_and_scatter neither overlap nor leave gaps.
bool cpu_jit_lie_apart(const cx_hlo_op *op);
bool cpu_jit_is_tiled(const cpu_jit_env *env, const cx_hlo_op *op);
calx_status *cpu_jit_kernel_tiled(cpu_jit_env *env, cpu_jit_kernel *k);
// dynamic_update_slice, in loop.c.
calx_status *cpu_jit_kernel_update(cpu_jit_env *env, cpu_jit_kernel *k);
calx_status *cpu_jit_kernel_scan(cpu_jit_env *env, cpu_jit_kernel *k);
calx_status *cpu_jit_kernel_sort(cpu_jit_env *env, cpu_jit_kernel *k);
calx_status *cpu_jit_kernel_rng(cpu_jit_env *env, cpu_jit_kernel *k);
// random.c: words of 32 bits, lane by lane, for counters of 64 and of 128 bits.
void cpu_jit_threefry(cpu_jit_env *env, const LLVMValueRef key[2],
                      LLVMValueRef counter, LLVMValueRef out[2]);
void cpu_jit_philox(cpu_jit_env *env, const LLVMValueRef key[2],
                    LLVMValueRef low, LLVMValueRef high, LLVMValueRef out[4]);

// The phase that makes output `i` equal to a value, in loop.c. With `in_place`
// it does nothing where the output is the value's own memory.
void cpu_jit_phase_copy(cpu_jit_env *env, cpu_jit_kernel *k, int phase,
                        const cx_hlo_value *value, size_t output,
                        bool in_place);

#endif
