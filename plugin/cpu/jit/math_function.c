// jit/math_function: the internal functions that the rest of the module fills.
#include <string.h>

#include "jit/math.h"
#include "jit/math_parts.h"

// Of the string attributes, those of the target among them.
static void copy_attributes(LLVMValueRef from, LLVMValueRef to)
{
  enum { MOST = 32 };
  LLVMAttributeRef all[MOST];
  unsigned count =
      LLVMGetAttributeCountAtIndex(from, LLVMAttributeFunctionIndex);
  if (count > MOST) return;
  LLVMGetAttributesAtIndex(from, LLVMAttributeFunctionIndex, all);
  for (unsigned i = 0; i < count; i++)
    if (LLVMIsStringAttribute(all[i]))
      LLVMAddAttributeAtIndex(to, LLVMAttributeFunctionIndex, all[i]);
}

void cpu_jit_add_attribute(LLVMValueRef function, const char *name)
{
  LLVMContextRef c = LLVMGetTypeContext(LLVMTypeOf(function));
  unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
  LLVMAddAttributeAtIndex(function,
                          (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                          LLVMCreateEnumAttribute(c, kind, 0));
}

LLVMValueRef cpu_jit_in_all_lanes(LLVMTypeRef vector, LLVMValueRef scalar)
{
  enum { MOST = 64 };
  LLVMValueRef lanes[MOST];
  unsigned n = LLVMGetVectorSize(vector);
  for (unsigned i = 0; i < n && i < MOST; i++) lanes[i] = scalar;
  return LLVMConstVector(lanes, n);
}

LLVMValueRef cpu_jit_const_int(LLVMTypeRef type, uint64_t v)
{
  if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
    return LLVMConstInt(type, v, 0);
  return cpu_jit_in_all_lanes(type,
                              LLVMConstInt(LLVMGetElementType(type), v, 0));
}

LLVMValueRef cpu_jit_const_real(LLVMTypeRef type, double v)
{
  if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
    return LLVMConstReal(type, v);
  return cpu_jit_in_all_lanes(type, LLVMConstReal(LLVMGetElementType(type), v));
}

LLVMValueRef cpu_jit_intrinsic(LLVMModuleRef module, LLVMBuilderRef b,
                               const char *name, LLVMTypeRef *types,
                               size_t n_types, LLVMValueRef *args,
                               unsigned n_args)
{
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(module, id, types, n_types);
  LLVMTypeRef t =
      LLVMIntrinsicGetType(LLVMGetModuleContext(module), id, types, n_types);
  return LLVMBuildCall2(b, t, f, args, n_args, "");
}

bool cpu_jit_begin(const cpu_jit_math_env *env, const char *name,
                   LLVMTypeRef type, LLVMValueRef *out_function,
                   cpu_jit_math_env *out_env)
{
  LLVMValueRef function = LLVMGetNamedFunction(env->module, name);
  *out_function = function;
  if (function) return false;
  function = LLVMAddFunction(env->module, name, type);
  LLVMSetLinkage(function, LLVMInternalLinkage);
  copy_attributes(LLVMGetBasicBlockParent(LLVMGetInsertBlock(env->builder)),
                  function);
  cpu_jit_add_attribute(function, "nounwind");
  cpu_jit_add_attribute(function, "willreturn");
  cpu_jit_add_attribute(function, "memory");  // 0: reads and writes none
  *out_function = function;
  *out_env = *env;
  out_env->builder = LLVMCreateBuilderInContext(env->context);
  LLVMPositionBuilderAtEnd(out_env->builder, LLVMAppendBasicBlockInContext(
                                                 env->context, function, ""));
  return true;
}

void cpu_jit_end(cpu_jit_math_env *inner, LLVMValueRef result)
{
  LLVMBuildRet(inner->builder, result);
  LLVMDisposeBuilder(inner->builder);
}
