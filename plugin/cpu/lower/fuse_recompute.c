// lower/fuse_recompute: which values are computed again in each loop that reads
// them, instead of being written by one loop and read by the others.
//
// That pays for values that cheap elementwise operations make of one tensor, if
// this is in memory anyway: it is then read in place of all of them. So a
// training step keeps for the backward pass what a convolution or a product
// gives, and not also what normalisation and activation make of it.
//
// It pays too for operations on few numbers that a loop over many uses behind
// its reductions: the loop then does not wait for another one.
//
// What a chain of operations costs an element is added up here too.
#include "lower/fuse.h"

// Smaller tensors stay in the second cache: to read them costs as little.
#define LEAST_BYTES (1 << 20)
// What a value may cost that is not written and not read: a written byte is
// read first, and the caches are shared.
#define NS_PER_BYTE 0.25
#define ROUNDING_NS 0.15  // to a narrow type, per operation
#define MUCH_MORE 256     // times as many elements
#define MOST_OPS 24       // between the tensor and the value
#define LEAST_NS 0.01     // of an operation in a chain

// Whether the operation's results are in memory, whatever loops there are.
static bool must_be_in_memory(const cpu_lower_fusion *f, uint32_t i)
{
  if (cpu_jit_class_of(f->uses->ops[i]) == CPU_JIT_NONE) return true;
  for (uint32_t k = f->uses->first[i]; k < f->uses->first[i + 1]; k++) {
    const cpu_lower_use *use = &f->uses->uses[k];
    if (use->operand < 0 ||
        cpu_jit_class_of(f->uses->ops[use->user]) == CPU_JIT_NONE) {
      return true;
    }
  }
  return false;
}

static bool is_computed_in(const cx_hlo_value *v, const cx_hlo_block *block)
{
  return v->op != NULL && v->op->block == block;
}

static bool is_cheap(const cx_hlo_op *op)
{
  return op->n_results == 1 && (cpu_jit_class_of(op) == CPU_JIT_ELEMENT ||
                                op->kind == CX_HLO_OP_BROADCAST_IN_DIM ||
                                op->kind == CX_HLO_OP_RESHAPE);
}

static double ns_of(const cx_hlo_op *op)
{
  if (cpu_jit_class_of(op) != CPU_JIT_ELEMENT) return 0;
  const cx_hlo_elem elem = cpu_lower_result_type(op)->elem;
  const bool narrow = cx_hlo_elem_bits(elem) < 32 && elem != CX_HLO_I1;
  return cpu_jit_op_ns(op) + (narrow ? ROUNDING_NS : 0);
}

typedef struct origin {
  int64_t elements;            // of the value
  const cx_hlo_value *source;  // the tensor; NULL: none was met
  double ns;                   // per element
  unsigned n_ops;
} origin;

// Adds what the operands of operation i are made of. Operands with much fewer
// elements do not count. False: there is more than one tensor, or too much to
// compute.
static bool add_operands(cpu_lower_fusion *f, uint32_t i, origin *s)
{
  const cx_hlo_op *op = f->uses->ops[i];
  f->seen[i] = f->search;
  s->ns += ns_of(op);
  if (++s->n_ops > MOST_OPS || !is_cheap(op)) return false;
  for (uint32_t k = 0; k < op->n_operands; k++) {
    const cx_hlo_value *v = op->operands[k];
    if (cpu_lower_is_constant(v) ||
        cx_hlo_type_elements(&v->type.tensor) <= s->elements / 8) {
      continue;
    }
    const bool here = is_computed_in(v, op->block);
    const uint32_t from = here ? cpu_lower_info(f->c, v)->position : 0;
    if (!here || must_be_in_memory(f, from)) {
      if (s->source != NULL && s->source != v) return false;
      s->source = v;
    } else if (f->seen[from] != f->search && !add_operands(f, from, s)) {
      return false;
    }
  }
  return true;
}

// Whether a loop over much more uses operation i behind its reductions, as when
// the sums over a batch give the gradients of a normalisation.
static bool is_negligible(const cpu_lower_fusion *f, uint32_t i,
                          const cpu_lower_users *users)
{
  const cx_hlo_op *op = f->uses->ops[i];
  const int64_t elements = cx_hlo_type_elements(cpu_lower_result_type(op));
  if (cpu_lower_is_expensive(op)) return false;
  for (size_t k = 0; k < users->n; k++) {
    bool used = false;
    if (users->groups[k]->elements >= MUCH_MORE * elements &&
        cpu_lower_fuse_is_used_after_reduction(f, i, users->groups[k], &used)) {
      return true;
    }
  }
  return false;
}

bool cpu_lower_fuse_recomputes(cpu_lower_fusion *f, uint32_t i,
                               const cpu_lower_users *users)
{
  const cx_hlo_type *t = cpu_lower_result_type(f->uses->ops[i]);
  const int64_t bytes = cx_hlo_type_bytes(t);
  if (users->elsewhere || users->n < 2) return false;
  if (is_negligible(f, i, users)) return true;
  if (bytes < LEAST_BYTES) return false;
  origin s = { .elements = cx_hlo_type_elements(t) };
  f->search++;
  return add_operands(f, i, &s) && s.source != NULL &&
         cx_hlo_type_bytes(&s.source->type.tensor) <= bytes &&
         (double)(users->n - 1) * s.ns * (double)s.elements <=
             NS_PER_BYTE * (double)bytes;
}

// ---- long chains ----

#define CHAIN_NS 8.0  // more is not added up, so that recursion has a bound

typedef struct chain_cost {
  double ns;      // per element
  bool has_rows;  // values that are the same in other rows or columns
} chain_cost;

static bool is_row(const cx_hlo_op *op)
{
  return op->kind == CX_HLO_OP_BROADCAST_IN_DIM &&
         cx_hlo_type_elements(&op->operands[0]->type.tensor) > 1;
}

// Adds what operation i and those cost that its loop would compute for it.
static void add_chain(cpu_lower_fusion *f, uint32_t i, chain_cost *io)
{
  const cx_hlo_op *op = f->uses->ops[i];
  f->seen[i] = f->search;
  io->ns += ns_of(op) + LEAST_NS;
  io->has_rows = io->has_rows || is_row(op);
  for (uint32_t k = 0; k < op->n_operands && io->ns <= CHAIN_NS; k++) {
    const cx_hlo_value *v = op->operands[k];
    if (cpu_lower_is_constant(v) || !is_computed_in(v, op->block) ||
        !is_cheap(v->op)) {
      continue;
    }
    const uint32_t from = cpu_lower_info(f->c, v)->position;
    if (f->seen[from] == f->search || must_be_in_memory(f, from)) continue;
    add_chain(f, from, io);
  }
}

bool cpu_lower_fuse_is_long(cpu_lower_fusion *f, uint32_t i, bool rows,
                            double most)
{
  chain_cost c = { 0 };
  f->search++;
  add_chain(f, i, &c);
  return c.ns > most && (rows || !c.has_rows);
}
