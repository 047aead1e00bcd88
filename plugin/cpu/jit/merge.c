// jit/merge: which neighbouring dimensions a kernel can treat as one, and how
// many iterations are worth a thread.
#include <math.h>

#include "jit/emit.h"

static double ns_of_element(const cpu_jit_env *env)
{
  double sum = 0.05;
  for (size_t i = 0; i < env->kernel->n_ops; i++) {
    sum += cpu_jit_op_ns(env->kernel->ops[i]);
  }
  return sum;
}

void cpu_jit_merge(cpu_jit_env *env)
{
  const cpu_jit_kernel *k = env->kernel;
  for (size_t i = 0; i < k->n_ops; i++) {
    const cx_hlo_op *op = k->ops[i];
    uint32_t need = 0;
    switch (cpu_jit_class_of(op)) {
      case CPU_JIT_ELEMENT:
        for (size_t j = 0; j < op->n_operands; j++) {
          if (cpu_jit_type(op->operands[j])->rank > 0) {
            need |= cpu_jit_need_of(env, op->operands[j]);
          }
        }
        break;
      case CPU_JIT_INDEX: need = cpu_jit_index_cuts(env, op); break;
      default: break;
    }
    for (size_t j = 0; j < op->n_results; j++) {
      cpu_jit_slot_of(env, &op->results[j])->need = need;
    }
  }
  env->element_ns = ns_of_element(env);
}

int cpu_jit_runs(const cx_hlo_type *t, uint32_t cuts, int *dims, int64_t *sizes)
{
  int n = 0;
  bool pending = false;
  for (size_t d = 0; d < t->rank; d++) {
    pending |= (cuts >> d & 1) != 0;
    // A run of size 1 is one with what follows it.
    if (n == 0 || (pending && sizes[n - 1] != 1 && t->dims[d] != 1)) {
      dims[n] = 0;
      sizes[n++] = 1;
    }
    if (t->dims[d] != 1) pending = false;
    dims[n - 1]++;
    sizes[n - 1] *= t->dims[d];
  }
  return n;
}

// ---- grain ----

double cpu_jit_element_bytes(const cpu_jit_env *env)
{
  const cpu_jit_kernel *k = env->kernel;
  double sum = 0;
  for (size_t i = 0; i < k->n_inputs; i++) {
    sum += (double)cx_hlo_elem_bytes(cpu_jit_type(k->inputs[i])->elem);
  }
  for (size_t i = 0; i < k->n_outputs; i++) {
    sum += (double)cx_hlo_elem_bytes(cpu_jit_type(k->outputs[i])->elem);
  }
  return sum;
}

int64_t cpu_jit_grain(const cpu_jit_env *env, double elements_per_iteration)
{
  const double ns = env->element_ns * elements_per_iteration;
  const double bytes = cpu_jit_element_bytes(env) * elements_per_iteration;
  const double n = fmin(20000 / fmax(ns, 1e-3), 262144 / fmax(bytes, 1e-3));
  return n < 1 ? 1 : (n > 1e12 ? (int64_t)1e12 : (int64_t)n);
}
