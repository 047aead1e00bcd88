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

// Whether the root writes its updates where its first operand is.
static bool is_in_place(const cpu_lower_state *c, const cpu_lower_group *g)
{
  const cx_hlo_op *root = g->root;
  if (root == NULL || (root->kind != CX_HLO_OP_DYNAMIC_UPDATE_SLICE &&
                       root->kind != CX_HLO_OP_SCATTER)) {
    return false;
  }
  const cx_hlo_value *from = cpu_lower_storage(c, root->operands[0]);
  const cpu_lower_range *range = cpu_lower_info(c, from)->range;
  return range != NULL && range == cpu_lower_info(c, &root->results[0])->range;
}

// The bytes that the group reads of an input: of slices alone, only theirs.
static int64_t read_bytes(const cpu_lower_group *g, const cx_hlo_value *input)
{
  const int64_t all = cx_hlo_type_bytes(&input->type.tensor);
  int64_t sum = 0;
  for (size_t i = 0; i < g->n_ops && sum < all; i++) {
    const cx_hlo_op *op = g->ops[i];
    for (uint32_t k = 0; k < op->n_operands; k++) {
      if (op->operands[k] != input) continue;
      const bool part = k == 0 && (op->kind == CX_HLO_OP_DYNAMIC_SLICE ||
                                   op->kind == CX_HLO_OP_SLICE ||
                                   op->kind == CX_HLO_OP_GATHER);
      sum += part ? cx_hlo_type_bytes(&op->results[0].type.tensor) : all;
    }
  }
  return sum < all ? sum : all;
}

// Of a root that works in place: what it updates is read and written.
static double updated_ns(const cpu_lower_group *g, double element_ns)
{
  const cx_hlo_op *root = g->root;
  const uint32_t i = root->kind == CX_HLO_OP_SCATTER ? 2 : 1;
  const cx_hlo_type *updates = &root->operands[i]->type.tensor;
  return NS_PER_STEP + 2 * (double)cx_hlo_type_bytes(updates) * NS_PER_BYTE +
         (double)cx_hlo_type_elements(updates) * element_ns;
}

double cpu_lower_cost_ns(const cpu_lower_state *c, const cpu_lower_group *g)
{
  double bytes = (double)cpu_lower_bytes(g->outputs, g->n_outputs);
  for (size_t i = 0; i < g->n_inputs; i++) {
    bytes += (double)read_bytes(g, g->inputs[i]);
  }
  double element_ns = 0;
  switch (g->kind) {
    case CPU_LOWER_GROUP_LOOP:
      for (size_t i = 0; i < g->n_ops; i++) {
        element_ns += cpu_jit_op_ns(g->ops[i]);
      }
      if (is_in_place(c, g)) return updated_ns(g, element_ns);
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
