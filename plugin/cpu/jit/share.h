// jit/share: functions that are the same are compiled once.
#ifndef CPU_JIT_SHARE_H
#define CPU_JIT_SHARE_H

#include <llvm-c/Core.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/status.h"

typedef struct cpu_jit_shared cpu_jit_shared;

// Keeps the function in the list, or makes its name one of an equal function
// that is there, and deletes it.
calx_status *cpu_jit_share(cx_arena *arena, cpu_jit_shared **known,
                           LLVMModuleRef module, LLVMTypeRef type,
                           LLVMValueRef function) CALX_MUST_USE;

#endif
