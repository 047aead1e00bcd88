// jit/class: which operations kernels may hold, and what they cost. In the
// engine itself too, so that grouping needs no LLVM; what stands here is what
// the emitter does.
#include "hlo/format.h"
#include "hlo/infer.h"
#include "hlo/ops.h"
#include "jit/jit.h"

#define MAX_RANK 16
#define MAX_LITERAL 4096  // bytes of a constant in the object
#define MAX_RESULTS 16
#define MAX_BODY 96        // operations of a region
#define MAX_WINDOW 4096    // elements of a window
#define MAX_SELECT 256     // … of select_and_scatter, which are unrolled
#define MAX_SELECTED 8192  // … times the operations of its regions
#define MOST_PIECES 128    // that are copied, each in code of its own
#define LEAST_COPIED 256   // elements of what is not computed by its users
#define SHORTEST_RUN 8     // of a piece, between those of others
#define LONG_RUN 64  // of pieces on average, among which may be shorter ones
#define MAX_SORTED (INT64_C(1) << 48)  // elements; their memory can be counted

static bool plain_type(const cx_hlo_value *v)
{
  const cx_hlo_type *t = &v->type.tensor;
  return v->type.non_tensor == NULL && t->rank <= MAX_RANK &&
         cx_hlo_elem_is_plain(t->elem) && cx_hlo_type_elements(t) >= 0;
}

static bool plain_types(const cx_hlo_op *op)
{
  if (op->n_results < 1) return false;
  for (size_t i = 0; i < op->n_operands; i++) {
    if (!plain_type(op->operands[i])) return false;
  }
  for (size_t i = 0; i < op->n_results; i++) {
    if (!plain_type(&op->results[i])) return false;
  }
  return true;
}

static cx_hlo_elem elem_of(const cx_hlo_op *op, size_t i)
{
  return op->operands[i]->type.tensor.elem;
}

#define NONE 0
#define REAL(value, code) CX_HLO_CLASS_FLOAT
#define INT(value, code) CX_HLO_CLASS_SIGNED | CX_HLO_CLASS_UNSIGNED
#define BOOL(value, code) CX_HLO_CLASS_BOOL
#define COMPLEX(value, code) CX_HLO_CLASS_COMPLEX
#define COMPLEX_VALUE(value) 0
#define CPU_ELEMENT(id, ns, real, integer, truth, complexes) \
  [CX_HLO_OP_##id] = { (real) | (integer) | (truth) | (complexes), ns },

// The elementwise operations: the classes of types for which the jit has them,
// and the time per element.
static const struct {
  unsigned char compiled;
  double ns;
} elementwise[CX_HLO_OP_COUNT] = {
#include "ref/element.def"
};

double cpu_jit_op_ns(const cx_hlo_op *op)
{
  // These read neighbours from far apart.
  if (op->kind == CX_HLO_OP_GATHER || op->kind == CX_HLO_OP_TRANSPOSE) {
    return 0.8;
  }
  const double ns = elementwise[op->kind].ns;
  return ns > 0 ? ns : 0.04;
}

static bool plain_compare(const cx_hlo_op *op)
{
  // EQ and NE only, of complex numbers.
  return !cx_hlo_elem_is_complex(elem_of(op, 0)) ||
         cx_hlo_op_int(op, CX_HLO_A_COMPARISON_DIRECTION) <= 1;
}

static bool plain_bitcast(const cx_hlo_op *op)
{
  const cx_hlo_elem from = elem_of(op, 0);
  const cx_hlo_elem to = op->results[0].type.tensor.elem;
  if (from == to) return true;
  return from != CX_HLO_I1 && to != CX_HLO_I1 &&
         !cx_hlo_elem_is_complex(from) && !cx_hlo_elem_is_complex(to) &&
         cx_hlo_elem_bits(from) == cx_hlo_elem_bits(to);
}

bool cpu_jit_is_f8(cx_hlo_elem e)
{
  const cx_hlo_format *f = cx_hlo_format_of(e);
  return f->exponent != 0 && f->exponent + f->mantissa == 7;
}

// A conversion from or to 8-bit floats, with which nothing else is compiled.
static bool converts_f8(const cx_hlo_op *op)
{
  if (op->kind != CX_HLO_OP_CONVERT) return false;
  const cx_hlo_value *both[] = { op->operands[0], &op->results[0] };
  bool any = false;
  for (int i = 0; i < 2; i++) {
    const cx_hlo_type *t = &both[i]->type.tensor;
    const bool f8 = both[i]->type.non_tensor == NULL && t->rank <= MAX_RANK &&
                    cx_hlo_type_elements(t) >= 0 && cpu_jit_is_f8(t->elem);
    if (!f8 && !plain_type(both[i])) return false;
    any = any || f8;
  }
  return any && !cx_hlo_elem_is_complex(elem_of(op, 0));
}

static bool is_element(const cx_hlo_op *op)
{
  switch (op->kind) {
    case CX_HLO_OP_CONVERT:
      return !cx_hlo_elem_is_complex(elem_of(op, 0)) ||
             op->results[0].type.tensor.elem != CX_HLO_I1;
    case CX_HLO_OP_SELECT:
    case CX_HLO_OP_REAL:
    case CX_HLO_OP_IMAG:
    case CX_HLO_OP_COMPLEX: return true;
    case CX_HLO_OP_COMPARE: return plain_compare(op);
    case CX_HLO_OP_BITCAST_CONVERT: return plain_bitcast(op);
    case CX_HLO_OP_IS_FINITE:
    case CX_HLO_OP_REDUCE_PRECISION: return true;
    case CX_HLO_OP_CLAMP: return !cx_hlo_elem_is_complex(elem_of(op, 0));
    // fmod of doubles needs a loop whose length depends on the numbers.
    case CX_HLO_OP_REMAINDER:
      if (elem_of(op, 0) == CX_HLO_F64) return false;
      break;
    // Of a complex number it is real.
    case CX_HLO_OP_ABS:
      if (cx_hlo_elem_is_complex(elem_of(op, 0))) return true;
      break;
    default: break;
  }
  return op->n_operands > 0 && (elementwise[op->kind].compiled &
                                cx_hlo_elem_class(elem_of(op, 0))) != 0;
}

static bool is_constant(const cx_hlo_op *op)
{
  if (op->kind != CX_HLO_OP_CONSTANT) return false;
  const cx_hlo_attr *a = cx_hlo_op_attr(op, CX_HLO_A_VALUE);
  return a != NULL && a->kind == CX_HLO_ATTR_ELEMENTS &&
         a->as.elements.size > 0 &&
         (a->as.elements.splat || a->as.elements.size <= MAX_LITERAL);
}

// One block of ELEMENT operations on scalars, and scalar constants.
static bool is_body(const cx_hlo_region *r, size_t n_args, size_t n_results)
{
  const cx_hlo_block *b = r->first;
  if (b == NULL || b->next != NULL || b->n_args != n_args || b->last == NULL ||
      b->last->kind != CX_HLO_OP_RETURN || b->last->n_operands != n_results) {
    return false;
  }
  size_t n = 0;
  for (const cx_hlo_op *op = b->first; op != b->last; op = op->next) {
    if (++n > MAX_BODY || !plain_types(op) || op->n_results != 1 ||
        op->results[0].type.tensor.rank != 0 ||
        !(is_element(op) || is_constant(op))) {
      return false;
    }
  }
  for (const cx_hlo_op *op = b->first; op != NULL; op = op->next) {
    for (size_t i = 0; i < op->n_operands; i++) {
      const cx_hlo_value *v = op->operands[i];
      if ((v->op != NULL ? v->op->block : v->block) != b) return false;
    }
  }
  return true;
}

// The elements of a window, or INT64_MAX: more than `most`.
static int64_t window_size(const cx_hlo_op *op, int64_t most)
{
  int64_t n = 1;
  for (size_t d = 0; d < op->operands[0]->type.tensor.rank; d++) {
    const int64_t size = cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_DIMENSIONS, d);
    if (size > most / n) return INT64_MAX;
    n *= size;
  }
  return n;
}

// reduce_window of one operand: a scan, or with windows short enough to be
// computed for each element.
static cpu_jit_class class_of_windows(const cx_hlo_op *op)
{
  const cx_hlo_type *t = &op->operands[0]->type.tensor;
  if (op->n_results != 1 || !is_body(&op->regions[0], 2, 1) ||
      cx_hlo_type_elements(t) == 0 ||
      op->results[0].type.tensor.elem != t->elem) {
    return CPU_JIT_NONE;
  }
  size_t dim;
  bool reverse;
  if (cpu_jit_scan_of(op, &dim, &reverse)) return CPU_JIT_ROOT;
  return window_size(op, MAX_WINDOW) <= MAX_WINDOW ? CPU_JIT_INDEX
                                                   : CPU_JIT_NONE;
}

// Whether an element may be in several windows.
static bool overlaps(const cx_hlo_op *op)
{
  for (size_t d = 0; d < op->results[0].type.tensor.rank; d++) {
    const int64_t size = cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_DIMENSIONS, d);
    const int64_t stride = cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_STRIDES, d);
    if (size > 1 && size > stride) return true;
  }
  return false;
}

static int64_t count_ops(const cx_hlo_region *body)
{
  int64_t n = 0;
  for (const cx_hlo_op *op = body->first->first; op != NULL; op = op->next) n++;
  return n;
}

// select_and_scatter of a tensor, with windows short enough to be unrolled.
static bool is_select(const cx_hlo_op *op)
{
  const int64_t size = window_size(op, MAX_SELECT);
  return op->operands[0]->type.tensor.rank != 0 &&
         is_body(&op->regions[0], 2, 1) && is_body(&op->regions[1], 2, 1) &&
         size <= MAX_SELECT &&
         size * (count_ops(&op->regions[0]) + count_ops(&op->regions[1])) <=
             MAX_SELECTED;
}

bool cpu_jit_has_pieces(const cx_hlo_op *op)
{
  if (op->kind != CX_HLO_OP_CONCATENATE || op->n_operands > MOST_PIECES) {
    return false;
  }
  const cx_hlo_type *t = &op->results[0].type.tensor;
  const size_t d = (size_t)cx_hlo_op_int(op, CX_HLO_A_DIMENSION);
  if (cx_hlo_type_elements(t) < LEAST_COPIED) return false;
  int64_t outer = 1, inner = 1;
  bool has_short = false;
  for (size_t i = 0; i < d; i++) outer *= t->dims[i];
  for (size_t i = d + 1; i < t->rank; i++) inner *= t->dims[i];
  for (size_t i = 0; outer > 1 && i < op->n_operands; i++) {
    const int64_t run = op->operands[i]->type.tensor.dims[d] * inner;
    has_short |= run > 0 && run < SHORTEST_RUN;
  }
  // A few short ones cost little beside long ones.
  return !has_short || t->dims[d] * inner >= LONG_RUN * (int64_t)op->n_operands;
}

static bool is_sort(const cx_hlo_op *op)
{
  const cx_hlo_type *t = &op->operands[0]->type.tensor;
  const int64_t elements = cx_hlo_type_elements(t);
  const size_t n = op->n_operands;
  return t->rank > 0 && n <= MAX_RESULTS && elements > 0 &&
         elements <= MAX_SORTED && is_body(&op->regions[0], 2 * n, 1);
}

static bool is_rng(const cx_hlo_op *op)
{
  const cx_hlo_type *state = &op->operands[0]->type.tensor;
  const bool threefry =
      cx_hlo_op_int(op, CX_HLO_A_RNG_ALGORITHM) == CX_HLO_RNG_THREE_FRY;
  return state->elem == CX_HLO_UI64 && state->rank == 1 &&
         (state->dims[0] == 2 || (state->dims[0] == 3 && !threefry)) &&
         cx_hlo_elem_is_int(op->results[1].type.tensor.elem);
}

cpu_jit_class cpu_jit_class_of(const cx_hlo_op *op)
{
  if (converts_f8(op)) return CPU_JIT_ELEMENT;
  if (!plain_types(op)) return CPU_JIT_NONE;
  if (is_element(op)) return CPU_JIT_ELEMENT;
  switch (op->kind) {
    case CX_HLO_OP_MAP:
      return op->n_operands <= 8 && is_body(&op->regions[0], op->n_operands, 1)
                 ? CPU_JIT_ELEMENT
                 : CPU_JIT_NONE;
    case CX_HLO_OP_CONSTANT:
      return is_constant(op) ? CPU_JIT_INDEX : CPU_JIT_NONE;
    case CX_HLO_OP_CONCATENATE:
      return op->n_operands <= CPU_JIT_PIECES || cpu_jit_has_pieces(op)
                 ? CPU_JIT_INDEX
                 : CPU_JIT_NONE;
    case CX_HLO_OP_RESHAPE:
    case CX_HLO_OP_BROADCAST:
    case CX_HLO_OP_BROADCAST_IN_DIM:
    case CX_HLO_OP_TRANSPOSE:
    case CX_HLO_OP_SLICE:
    case CX_HLO_OP_DYNAMIC_SLICE:
    case CX_HLO_OP_REVERSE:
    case CX_HLO_OP_PAD:
    case CX_HLO_OP_GATHER:
    case CX_HLO_OP_IOTA: return CPU_JIT_INDEX;
    case CX_HLO_OP_DYNAMIC_UPDATE_SLICE: return CPU_JIT_ROOT;
    case CX_HLO_OP_SCATTER:
      return op->n_results == 1 && is_body(&op->regions[0], 2, 1)
                 ? CPU_JIT_ROOT
                 : CPU_JIT_NONE;
    case CX_HLO_OP_RNG_BIT_GENERATOR:
      return is_rng(op) ? CPU_JIT_ROOT : CPU_JIT_NONE;
    case CX_HLO_OP_SORT: return is_sort(op) ? CPU_JIT_ROOT : CPU_JIT_NONE;
    case CX_HLO_OP_SELECT_AND_SCATTER:
      return is_select(op) ? CPU_JIT_ROOT : CPU_JIT_NONE;
    case CX_HLO_OP_REDUCE_WINDOW: return class_of_windows(op);
    case CX_HLO_OP_REDUCE:
      return op->n_results <= MAX_RESULTS &&
                     is_body(&op->regions[0], 2 * op->n_results, op->n_results)
                 ? CPU_JIT_REDUCE
                 : CPU_JIT_NONE;
    default: return CPU_JIT_NONE;
  }
}

bool cpu_jit_fuses(const cx_hlo_op *op, size_t i)
{
  switch (cpu_jit_class_of(op)) {
    case CPU_JIT_ELEMENT: return true;
    case CPU_JIT_INDEX:
      // What is gathered from is read in any order, so it would be computed
      // many times; the start indices of slices are scalars.
      if (op->kind == CX_HLO_OP_REDUCE_WINDOW) return i > 0 || !overlaps(op);
      return op->kind != CX_HLO_OP_GATHER || i > 0;
    case CPU_JIT_REDUCE: return i < op->n_results;
    case CPU_JIT_ROOT:
      // The source is read once, what is selected from once for each window
      // that it is in; a scatter reads its indices for each block, its operand
      // and updates once.
      return op->kind != CX_HLO_OP_SELECT_AND_SCATTER || i > 0 || !overlaps(op);
    default: return false;
  }
}
