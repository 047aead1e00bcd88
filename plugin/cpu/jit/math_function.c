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

static void add_attribute(LLVMContextRef context, LLVMValueRef function,
                          const char *name)
{
  unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
  LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex,
                          LLVMCreateEnumAttribute(context, kind, 0));
}

bool cpu_jit_begin(cpu_jit_math_env *env, const char *name, LLVMTypeRef type,
                   LLVMValueRef *out_function, cpu_jit_math_env *out_env)
{
  LLVMValueRef function = LLVMGetNamedFunction(env->module, name);
  *out_function = function;
  if (function) return false;
  function = LLVMAddFunction(env->module, name, type);
  LLVMSetLinkage(function, LLVMInternalLinkage);
  copy_attributes(LLVMGetBasicBlockParent(LLVMGetInsertBlock(env->builder)),
                  function);
  add_attribute(env->context, function, "nounwind");
  add_attribute(env->context, function, "willreturn");
  add_attribute(env->context, function, "memory");  // 0: reads and writes none
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
