// lower/cost: estimates of time. What one operation costs per element is in
// jit/class.c; here is what follows for operations that are to be fused and for
// whole groups.
#include "lower/lower.h"

#define EXPENSIVE_NS 0.2  // per element: a division's is above, a product's not

#define NS_PER_BYTE 0.1  // from or to memory
#define NS_PER_FLOP 0.01
#define NS_PER_STEP 100.0
#define NS_PER_INTERPRETED_BYTE 30.0
#define NS_PER_INTERPRETED_STEP 3000.0

bool cpu_lower_is_expensive(const cx_hlo_op *op)
{
  // What moves elements is not computed again, but read.
  return cpu_jit_class_of(op) == CPU_JIT_ELEMENT &&
         cpu_jit_op_ns(op) > EXPENSIVE_NS;
}

double cpu_lower_cost_ns(const cpu_lower_group *g)
{
  const double bytes = (double)(cpu_lower_bytes(g->inputs, g->n_inputs) +
                                cpu_lower_bytes(g->outputs, g->n_outputs));
  double element_ns = 0;
  switch (g->kind) {
    case CPU_LOWER_GROUP_LOOP:
      for (size_t i = 0; i < g->n_ops; i++) {
        element_ns += cpu_jit_op_ns(g->ops[i]);
      }
      return NS_PER_STEP + bytes * NS_PER_BYTE +
             (double)g->elements * element_ns;
    case CPU_LOWER_GROUP_KERNEL:
      return NS_PER_STEP + bytes * NS_PER_BYTE +
             cpu_kernel_flops(g->desc) * NS_PER_FLOP;
    case CPU_LOWER_GROUP_INTERPRETED:
      return NS_PER_STEP + NS_PER_INTERPRETED_STEP +
             bytes * NS_PER_INTERPRETED_BYTE;
    case CPU_LOWER_GROUP_COLLECTIVE: return NS_PER_STEP + bytes * NS_PER_BYTE;
    case CPU_LOWER_GROUP_CONTROL:
    case CPU_LOWER_GROUP_DONE: break;
  }
  return NS_PER_STEP;
}
