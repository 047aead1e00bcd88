// lower/cost: estimates of time, and counts of work. What one operation costs
// per element is in jit/class.c; here is what follows for operations that are
// to be fused and for whole groups.
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

// What a root that works in place writes.
static const cx_hlo_type *updates_of(const cx_hlo_op *root)
{
  const uint32_t i = root->kind == CX_HLO_OP_SCATTER ? 2 : 1;
  return &root->operands[i]->type.tensor;
}

// The bytes that the group reads and writes. A root that works in place reads
// and writes what it updates.
static double bytes_of(const cpu_lower_state *c, const cpu_lower_group *g)
{
  if (g->kind == CPU_LOWER_GROUP_LOOP && is_in_place(c, g)) {
    return 2 * (double)cx_hlo_type_bytes(updates_of(g->root));
  }
  double bytes = (double)cpu_lower_bytes(g->outputs, g->n_outputs);
  for (size_t i = 0; i < g->n_inputs; i++) {
    bytes += (double)read_bytes(g, g->inputs[i]);
  }
  return bytes;
}

double cpu_lower_cost_ns(const cpu_lower_state *c, const cpu_lower_group *g)
{
  const double bytes = bytes_of(c, g);
  double element_ns = 0, elements = (double)g->elements;
  switch (g->kind) {
    case CPU_LOWER_GROUP_LOOP:
      for (size_t i = 0; i < g->n_ops; i++) {
        element_ns += cpu_jit_op_ns(g->ops[i]);
      }
      if (is_in_place(c, g)) {
        elements = (double)cx_hlo_type_elements(updates_of(g->root));
      }
      return NS_PER_STEP + bytes * NS_PER_BYTE + elements * element_ns;
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

// ---- work ----

static bool is_transcendental(cx_hlo_op_kind kind)
{
  switch (kind) {
    case CX_HLO_OP_POWER:
    case CX_HLO_OP_ATAN2:
    case CX_HLO_OP_EXPONENTIAL:
    case CX_HLO_OP_EXPONENTIAL_MINUS_ONE:
    case CX_HLO_OP_LOG:
    case CX_HLO_OP_LOG_PLUS_ONE:
    case CX_HLO_OP_LOGISTIC:
    case CX_HLO_OP_TANH:
    case CX_HLO_OP_CHLO_ERF:
    case CX_HLO_OP_TAN:
    case CX_HLO_OP_SINE:
    case CX_HLO_OP_COSINE:
    case CX_HLO_OP_SQRT:
    case CX_HLO_OP_RSQRT:
    case CX_HLO_OP_CBRT: return true;
    default: return false;
  }
}

// An elementwise operation is one flop for each element, or one transcendental;
// one that only moves elements is none. A reduction applies its body to all
// elements but the first of each sum.
static void add_op(const cx_hlo_op *op, double elements, cpu_run_work *w)
{
  switch (cpu_jit_class_of(op)) {
    case CPU_JIT_ELEMENT:
      if (is_transcendental(op->kind)) {
        w->transcendentals += elements;
      } else {
        w->flops += elements;
      }
      break;
    case CPU_JIT_REDUCE:
      elements = (double)(cx_hlo_type_elements(&op->operands[0]->type.tensor) -
                          cx_hlo_type_elements(&op->results[0].type.tensor));
      for (const cx_hlo_op *o = op->regions[0].first->first; o != NULL;
           o = o->next) {
        if (o->n_results > 0) add_op(o, elements > 0 ? elements : 0, w);
      }
      break;
    case CPU_JIT_NONE:
    case CPU_JIT_INDEX:
    case CPU_JIT_ROOT: break;
  }
}

void cpu_lower_add_work(const cpu_lower_state *c, const cpu_lower_group *g,
                        double rounds, cpu_run_work *total)
{
  cpu_run_work w = { .bytes = bytes_of(c, g) };
  if (g->kind == CPU_LOWER_GROUP_CONTROL || g->kind == CPU_LOWER_GROUP_DONE) {
    return;
  }
  if (g->kind == CPU_LOWER_GROUP_KERNEL) {
    w.flops = cpu_kernel_flops(g->desc);
  } else {
    for (size_t i = 0; i < g->n_ops; i++) {
      const cx_hlo_op *op = g->ops[i];
      if (op->n_results == 0) continue;
      add_op(op, (double)cx_hlo_type_elements(&op->results[0].type.tensor), &w);
    }
  }
  total->flops += rounds * w.flops;
  total->transcendentals += rounds * w.transcendentals;
  total->bytes += rounds * w.bytes;
}
