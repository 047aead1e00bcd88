// Loops over one mathematical function, compiled and loaded for the tests.
#include "kernel.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *why)
{
  fprintf(stderr, "%s\n", why);
  abort();
}

bool test_target_runs(const test_target *target)
{
  if (!strcmp(target->cpu, "x86-64-v4"))
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw");
  if (!strcmp(target->cpu, "x86-64-v3"))
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return true;
}

static void set_text(LLVMContextRef c, LLVMValueRef function, const char *key,
                     const char *text)
{
  LLVMAddAttributeAtIndex(
      function, LLVMAttributeFunctionIndex,
      LLVMCreateStringAttribute(c, key, (unsigned)strlen(key), text,
                                (unsigned)strlen(text)));
}

typedef struct loop {
  cpu_jit_math_env env;
  LLVMTypeRef element, vector, pointer, i64;
  LLVMValueRef function, index;
} loop;

static LLVMValueRef address(loop *l, unsigned parameter, unsigned part)
{
  LLVMBuilderRef b = l->env.builder;
  LLVMValueRef which = LLVMConstInt(l->i64, part, false);
  LLVMValueRef base = LLVMGetParam(l->function, parameter);
  base = LLVMBuildInBoundsGEP2(b, l->pointer, base, &which, 1, "");
  base = LLVMBuildLoad2(b, l->pointer, base, "");
  return LLVMBuildInBoundsGEP2(b, l->element, base, &l->index, 1, "");
}

static LLVMValueRef load(loop *l, unsigned parameter, unsigned part)
{
  LLVMValueRef at = address(l, parameter, part);
  LLVMValueRef value = LLVMBuildLoad2(l->env.builder, l->vector, at, "");
  LLVMSetAlignment(value, 4);
  return value;
}

static void store(loop *l, unsigned part, LLVMValueRef value)
{
  LLVMValueRef at = address(l, 2, part);
  LLVMSetAlignment(LLVMBuildStore(l->env.builder, value, at), 4);
}

static void write_body(loop *l, test_kind kind, cpu_jit_function fn)
{
  if (kind == TEST_REAL) {
    bool two = fn == CPU_JIT_POW || fn == CPU_JIT_ATAN2;
    LLVMValueRef y = two ? load(l, 1, 0) : NULL;
    store(l, 0, cpu_jit_math(&l->env, fn, load(l, 0, 0), y));
    return;
  }
  LLVMValueRef x[] = { load(l, 0, 0), load(l, 0, 1) };
  LLVMValueRef y[] = { load(l, 1, 0), load(l, 1, 1) }, out[2];
  switch (kind) {
    case TEST_MULTIPLY: cpu_jit_complex_multiply(&l->env, x, y, out); break;
    case TEST_DIVIDE: cpu_jit_complex_divide(&l->env, x, y, out); break;
    case TEST_ABS: out[0] = out[1] = cpu_jit_complex_abs(&l->env, x); break;
    default: cpu_jit_math_complex(&l->env, fn, x, y, out);
  }
  store(l, 0, out[0]);
  store(l, 1, out[1]);
}

static void write_loop(loop *l, const test_target *target, test_kind kind,
                       cpu_jit_function fn, unsigned lanes)
{
  LLVMContextRef c = l->env.context;
  LLVMBuilderRef b = l->env.builder;
  LLVMTypeRef parameters[] = { l->pointer, l->pointer, l->pointer, l->i64 };
  LLVMTypeRef none = LLVMVoidTypeInContext(c);
  l->function = LLVMAddFunction(l->env.module, "kernel",
                                LLVMFunctionType(none, parameters, 4, false));
  set_text(c, l->function, "target-cpu", target->cpu);
  set_text(c, l->function, "prefer-vector-width", "512");
  LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(c, l->function, "");
  LLVMBasicBlockRef head = LLVMAppendBasicBlockInContext(c, l->function, "");
  LLVMBasicBlockRef end = LLVMAppendBasicBlockInContext(c, l->function, "");
  LLVMPositionBuilderAtEnd(b, entry);
  LLVMBuildBr(b, head);
  LLVMPositionBuilderAtEnd(b, head);
  l->index = LLVMBuildPhi(b, l->i64, "");
  write_body(l, kind, fn);
  LLVMValueRef step = LLVMConstInt(l->i64, lanes ? lanes : 1, false);
  LLVMValueRef next = LLVMBuildAdd(b, l->index, step, "");
  LLVMValueRef from[] = { LLVMConstInt(l->i64, 0, false), next };
  LLVMBasicBlockRef blocks[] = { entry, LLVMGetInsertBlock(b) };
  LLVMAddIncoming(l->index, from, blocks, 2);
  LLVMValueRef n = LLVMGetParam(l->function, 3);
  LLVMValueRef more = LLVMBuildICmp(b, LLVMIntSLT, next, n, "");
  LLVMBuildCondBr(b, more, head, end);
  LLVMPositionBuilderAtEnd(b, end);
  LLVMBuildRetVoid(b);
}

static LLVMTargetMachineRef machine_for(const test_target *target)
{
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  const char *triple = "x86_64-unknown-linux-gnu";
  LLVMTargetRef found;
  char *error = NULL;
  if (LLVMGetTargetFromTriple(triple, &found, &error)) die(error);
  return LLVMCreateTargetMachine(found, triple, target->cpu, "",
                                 LLVMCodeGenLevelDefault, LLVMRelocPIC,
                                 LLVMCodeModelSmall);
}

test_kernel test_compile(const test_target *target, test_kind kind,
                         cpu_jit_function fn, bool wide, unsigned lanes)
{
  LLVMTargetMachineRef machine = machine_for(target);
  LLVMContextRef c = LLVMContextCreate();
  LLVMModuleRef module = LLVMModuleCreateWithNameInContext("test", c);
  LLVMSetTarget(module, "x86_64-unknown-linux-gnu");
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
  LLVMSetModuleDataLayout(module, layout);
  LLVMDisposeTargetData(layout);
  loop l = { .env = { c, module, LLVMCreateBuilderInContext(c), target->has_fma,
                      !strcmp(target->cpu, "x86-64-v4") } };
  l.element = wide ? LLVMDoubleTypeInContext(c) : LLVMFloatTypeInContext(c);
  l.vector = lanes ? LLVMVectorType(l.element, lanes) : l.element;
  l.pointer = LLVMPointerTypeInContext(c, 0);
  l.i64 = LLVMInt64TypeInContext(c);
  write_loop(&l, target, kind, fn, lanes);
  LLVMDisposeBuilder(l.env.builder);

  char *error = NULL;
  LLVMMemoryBufferRef code;
  if (LLVMVerifyModule(module, LLVMReturnStatusAction, &error)) die(error);
  LLVMDisposeMessage(error);
  if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile,
                                          &error, &code))
    die(error);
  test_kernel kernel = { .size = LLVMGetBufferSize(code) };
  calx_status *status = cpu_run_object_load(
      LLVMGetBufferStart(code), LLVMGetBufferSize(code), &kernel.code);
  if (status) die(calx_status_message(status));
  LLVMDisposeMemoryBuffer(code);
  LLVMDisposeModule(module);
  LLVMContextDispose(c);
  LLVMDisposeTargetMachine(machine);
  *(void **)&kernel.run = cpu_run_object_find(kernel.code, "kernel");
  return kernel;
}

void test_unload(test_kernel *kernel)
{
  cpu_run_object_free(kernel->code);
}
