// jit/compile: kernels to one object.
#include <llvm-c/Analysis.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "jit/root.h"
#include "jit/share.h"

// ---- targets ----

static cx_mutex init_lock = CX_MUTEX_INIT;

// What the emitter has done already, and what is not worth its time in a
// compiler that programs wait for: a third of LLVM's time on loops like ours.
// Options that someone else in the process has set stay as they are.
static void set_options(void)
{
  static const char *const options[] = {
    "calx",
    "-disable-lsr",
    "-disable-cgp",
    "-disable-post-ra",
    "-disable-constant-hoisting",
    "-disable-mergeicmps",
  };
  for (size_t i = 1; i < sizeof options / sizeof options[0]; i++) {
    const char *const args[] = { options[0], options[i] };
    LLVMParseCommandLineOptions(2, args, "");
  }
}

static void initialize(void)
{
  static bool done;
  cx_lock(&init_lock);
  if (!done) {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    set_options();
    done = true;
  }
  cx_unlock(&init_lock);
}

static bool has(const char *features, const char *name)
{
  const size_t n = strlen(name);
  for (const char *p = features; (p = strstr(p, name)) != NULL; p++) {
    if ((p == features || p[-1] == ',') && (p[n] == ',' || p[n] == 0)) {
      return true;
    }
  }
  return false;
}

static void set_target(cpu_jit_target *t, int lanes)
{
  char *host = LLVMGetHostCPUFeatures();
  const bool wide = has(host, "+avx512f") && has(host, "+avx512bw") &&
                    has(host, "+avx512dq") && has(host, "+avx512vl");
  const bool middle =
      has(host, "+avx2") && has(host, "+fma") && has(host, "+f16c");
  if (lanes == 0) lanes = wide ? 16 : (middle ? 8 : 4);
  t->lanes = lanes;
  if (lanes == 16) {
    t->cpu = LLVMGetHostCPUName();
    t->features = host;
    t->has_fma = has(host, "+fma");
    t->has_f16c = has(host, "+f16c");
    t->has_masks = wide;
    return;
  }
  t->has_fma = t->has_f16c = lanes == 8;
  t->cpu = LLVMCreateMessage(lanes == 8 ? "x86-64-v3" : "x86-64-v2");
  t->features = LLVMCreateMessage("");
  LLVMDisposeMessage(host);
}

static calx_status *new_machine(const cpu_jit_target *t,
                                LLVMTargetMachineRef *out)
{
  initialize();
  LLVMTargetRef target = NULL;
  char *message = NULL;
  if (LLVMGetTargetFromTriple("x86_64-unknown-linux-gnu", &target, &message)) {
    calx_status *status =
        cx_error(CALX_INTERNAL, "LLVM has no x86-64: %s", message);
    LLVMDisposeMessage(message);
    return status;
  }
  *out = LLVMCreateTargetMachine(target, "x86_64-unknown-linux-gnu", t->cpu,
                                 t->features, LLVMCodeGenLevelDefault,
                                 LLVMRelocPIC, LLVMCodeModelSmall);
  return *out == NULL ? cx_error(CALX_INTERNAL, "LLVM has no target machine")
                      : NULL;
}

// ---- one kernel ----

static void set_types(cpu_jit_env *env)
{
  LLVMContextRef c = env->context;
  env->i1 = LLVMInt1TypeInContext(c);
  env->i8 = LLVMInt8TypeInContext(c);
  env->i16 = LLVMInt16TypeInContext(c);
  env->i32 = LLVMInt32TypeInContext(c);
  env->i64 = LLVMInt64TypeInContext(c);
  env->f16 = LLVMHalfTypeInContext(c);
  env->f32 = LLVMFloatTypeInContext(c);
  env->f64 = LLVMDoubleTypeInContext(c);
  env->ptr = LLVMPointerTypeInContext(c, 0);
  env->void_type = LLVMVoidTypeInContext(c);
}

static calx_status *refuse(const cpu_jit_env *env, const char *why)
{
  return cx_error(CALX_UNIMPLEMENTED, "kernel %zu: %s", env->number, why);
}

static calx_status *emit_root(cpu_jit_env *env, cpu_jit_kernel *k,
                              const cx_hlo_op *root)
{
  switch (root->kind) {
    case CX_HLO_OP_SCATTER: return cpu_jit_kernel_scatter(env, k);
    case CX_HLO_OP_SELECT_AND_SCATTER:
      return cpu_jit_is_tiled(env, root) ? cpu_jit_kernel_tiled(env, k)
                                         : cpu_jit_kernel_select(env, k);
    case CX_HLO_OP_SORT: return cpu_jit_kernel_sort(env, k);
    case CX_HLO_OP_REDUCE_WINDOW: return cpu_jit_kernel_scan(env, k);
    case CX_HLO_OP_DYNAMIC_UPDATE_SLICE: return cpu_jit_kernel_update(env, k);
    default: return cpu_jit_kernel_rng(env, k);
  }
}

static int64_t bytes_of(const cx_hlo_value *const *values, size_t n)
{
  int64_t sum = 0;
  for (size_t i = 0; i < n; i++)
    sum += cx_hlo_type_bytes(cpu_jit_type(values[i]));
  return sum;
}

static calx_status *emit_kernel(cpu_jit_env *env, cpu_jit_kernel *k)
{
  env->kernel = k;
  env->bytes =
      bytes_of(k->inputs, k->n_inputs) + bytes_of(k->outputs, k->n_outputs);
  k->n_phases = 0;
  k->scratch = 0;
  bool reduces = false;
  const cx_hlo_op *root = NULL;
  if (k->n_ops > CPU_JIT_OPS) return refuse(env, "too many operations");
  if (k->n_outputs == 0 || k->n_outputs > CPU_JIT_MAX_OUTPUTS) {
    return refuse(env, "no outputs, or too many");
  }
  for (size_t i = 0; i < k->n_ops; i++) {
    const cpu_jit_class c = cpu_jit_class_of(k->ops[i]);
    if (c == CPU_JIT_NONE) return refuse(env, "an operation of no class");
    reduces |= c == CPU_JIT_REDUCE;
    if (c == CPU_JIT_ROOT) root = k->ops[i];
  }
  for (size_t i = 0; root != NULL && i < k->n_outputs; i++) {
    if (k->outputs[i]->op != root) {
      return refuse(env, "outputs beside those of a root");
    }
  }
  CALX_TRY(cpu_jit_set_slots(env, k));
  cpu_jit_merge(env);
  if (root != NULL) return emit_root(env, k, root);
  return reduces ? cpu_jit_kernel_reduce(env, k) : cpu_jit_kernel_loop(env, k);
}

static calx_status *share_kernel(cpu_jit_env *env, const cpu_jit_kernel *k,
                                 cx_arena *arena, cpu_jit_shared **known)
{
  LLVMTypeRef params[] = { env->ptr, env->i64, env->i64 };
  LLVMTypeRef type = LLVMFunctionType(env->void_type, params, 3, 0);
  for (size_t phase = 0; phase < k->n_phases; phase++) {
    char name[64];
    snprintf(name, sizeof name, "k%zu_%zu", env->number, phase);
    CALX_TRY(cpu_jit_share(arena, known, env->module, type,
                           LLVMGetNamedFunction(env->module, name)));
  }
  return NULL;
}

// Emits all; marks those that cannot be.
static calx_status *emit_all(cpu_jit_env *env, cpu_jit_kernel *kernels,
                             size_t n)
{
  calx_status *first = NULL;
  cx_arena arena = { 0 };
  cpu_jit_shared *known = NULL;
  for (size_t i = 0; i < n; i++) {
    env->number = i;
    env->status = NULL;
    cx_arena_reset(&env->arena);
    calx_status *status = emit_kernel(env, &kernels[i]);
    if (status == NULL) {
      status = share_kernel(env, &kernels[i], &arena, &known);
    }
    kernels[i].refused = calx_status_code(status) == CALX_UNIMPLEMENTED;
    if (first == NULL) {
      first = status;
    } else {
      calx_status_free(status);
    }
    if (first != NULL && !kernels[i].refused) break;
  }
  cx_arena_free(&arena);
  return first;
}

// ---- the object ----

static calx_status *verify(LLVMModuleRef module)
{
#if CX_DEBUG
  char *message = NULL;
  calx_status *status = NULL;
  if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message)) {
    status = cx_error(CALX_INTERNAL, "the emitted code is wrong: %s", message);
  }
  LLVMDisposeMessage(message);
  return status;
#else
  (void)module;
  return NULL;
#endif
}

static calx_status *write_object(LLVMModuleRef module,
                                 LLVMTargetMachineRef machine, cx_text *out)
{
  char *message = NULL;
  LLVMMemoryBufferRef buffer = NULL;
  CALX_TRY(verify(module));
  if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile,
                                          &message, &buffer)) {
    calx_status *status =
        cx_error(CALX_INTERNAL, "LLVM makes no object: %s", message);
    LLVMDisposeMessage(message);
    return status;
  }
  cx_text_append_n(out, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
  LLVMDisposeMemoryBuffer(buffer);
  return cx_text_failed(out) ? cx_out_of_memory() : NULL;
}

typedef calx_status *emit_fn(cpu_jit_env *env, void *what, size_t n);

static calx_status *emit_kernels(cpu_jit_env *env, void *what, size_t n)
{
  return emit_all(env, what, n);
}

static calx_status *emit_natives(cpu_jit_env *env, void *what, size_t n)
{
  cpu_jit_native *loops = what;
  calx_status *first = NULL;
  for (size_t i = 0; i < n; i++) {
    env->number = i;
    env->status = NULL;
    cx_arena_reset(&env->arena);
    calx_status *status = cpu_jit_emit_native(env, &loops[i]);
    loops[i].refused = calx_status_code(status) == CALX_UNIMPLEMENTED;
    if (first == NULL) {
      first = status;
    } else {
      calx_status_free(status);
    }
    if (first != NULL && !loops[i].refused) break;
  }
  return first;
}

static calx_status *compile_all(const cpu_jit_options *options, emit_fn *emit,
                                void *what, size_t n, cx_text *out_object)
{
  const int lanes = options == NULL ? 0 : options->lanes;
  if (lanes != 0 && lanes != 4 && lanes != 8 && lanes != 16) {
    return cx_invalid("kernels of %d lanes", lanes);
  }
  cpu_jit_target target = { 0 };
  set_target(&target, lanes);
  LLVMTargetMachineRef machine = NULL;
  cpu_jit_env env = { .target = &target };
  calx_status *status = new_machine(&target, &machine);
  if (status == NULL) {
    env.context = LLVMContextCreate();
    env.module = LLVMModuleCreateWithNameInContext("kernels", env.context);
    LLVMSetTarget(env.module, "x86_64-unknown-linux-gnu");
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
    LLVMSetModuleDataLayout(env.module, layout);
    LLVMDisposeTargetData(layout);
    set_types(&env);
    status = emit(&env, what, n);
    for (int i = 0; i < CPU_JIT_LEVELS; i++) {
      if (env.level[i] != NULL) LLVMDisposeBuilder(env.level[i]);
    }
    if (status == NULL) status = write_object(env.module, machine, out_object);
    LLVMDisposeModule(env.module);
    LLVMContextDispose(env.context);
    LLVMDisposeTargetMachine(machine);
  }
  cx_arena_free(&env.arena);
  cx_arena_free(&env.fn_arena);
  LLVMDisposeMessage(target.cpu);
  LLVMDisposeMessage(target.features);
  return status;
}

static calx_status *compile(const cpu_jit_options *options,
                            cpu_jit_kernel *kernels, size_t n,
                            cx_text *out_object)
{
  return compile_all(options, emit_kernels, kernels, n, out_object);
}

static calx_status *compile_native(const cpu_jit_options *options,
                                   cpu_jit_native *loops, size_t n,
                                   cx_text *out_object)
{
  return compile_all(options, emit_natives, loops, n, out_object);
}

__attribute__((visibility("default"))) const cpu_jit_api *cpu_jit_get_api(void)
{
  static const cpu_jit_api api = { sizeof api, compile, compile_native,
                                   cx_text_free, calx_status_free };
  return &api;
}
