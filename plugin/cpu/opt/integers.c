// opt/integers: bounds and steps, from the operations that make a value.
#include "opt/integers.h"

#include "opt/edit.h"

// The search visits so many operations in a row, and so many in all. So many
// elements of a constant count as one operation.
enum { DEEPEST = 24, MOST_VISITS = 96, VISIT_ELEMENTS = 1024 };

typedef cpu_opt_integers integers;

static bool know(const cx_hlo_value *v, int64_t dim, int depth, int *visits,
                 integers *out);

// ---- numbers ----

// Whether a type has all numbers from low to high. Of ui64 half are left out.
static bool fits(cx_hlo_elem elem, int64_t low, int64_t high)
{
  const bool is_unsigned = cx_hlo_elem_is_unsigned(elem);
  const unsigned bits = cx_hlo_elem_bits(elem) - (is_unsigned ? 0 : 1);
  const int64_t most = bits >= 63 ? INT64_MAX : ((int64_t)1 << bits) - 1;
  return low >= (is_unsigned ? 0 : -most - 1) && high <= most;
}

// What may wrap around has no bounds, and its step is known only where it is 0.
static bool checked(cx_hlo_elem elem, bool no_overflow, integers *x)
{
  x->bounded = x->bounded && no_overflow && fits(elem, x->low, x->high);
  return x->bounded || x->step == 0;
}

static bool add(cx_hlo_elem elem, const integers *a, const integers *b,
                integers *out)
{
  *out = (integers){ .bounded = a->bounded && b->bounded };
  const bool low = __builtin_add_overflow(a->low, b->low, &out->low);
  const bool high = __builtin_add_overflow(a->high, b->high, &out->high);
  const bool step = __builtin_add_overflow(a->step, b->step, &out->step);
  return checked(elem, !low && !high && !step, out);
}

static bool negate(cx_hlo_elem elem, const integers *a, integers *out)
{
  *out = (integers){ .bounded = a->bounded };
  const bool low = __builtin_sub_overflow(0, a->high, &out->low);
  const bool high = __builtin_sub_overflow(0, a->low, &out->high);
  const bool step = __builtin_sub_overflow(0, a->step, &out->step);
  return checked(elem, !low && !high && !step, out);
}

// The product with b, which is one number.
static bool scale(cx_hlo_elem elem, const integers *a, const integers *b,
                  integers *out)
{
  const int64_t by = b->low;
  *out = (integers){ .bounded = a->bounded };
  const bool low = __builtin_mul_overflow(a->low, by, &out->low);
  const bool high = __builtin_mul_overflow(a->high, by, &out->high);
  const bool step = __builtin_mul_overflow(a->step, by, &out->step);
  if (by < 0) {
    const int64_t least = out->high;
    out->high = out->low;
    out->low = least;
  }
  return checked(elem, !low && !high && !step, out);
}

static bool is_one_number(const integers *x)
{
  return x->bounded && x->low == x->high;
}

static bool multiply(cx_hlo_elem elem, const integers *a, const integers *b,
                     integers *out)
{
  if (is_one_number(b)) return scale(elem, a, b, out);
  if (is_one_number(a)) return scale(elem, b, a, out);
  *out = (integers){ .bounded = false };
  return a->step == 0 && b->step == 0;
}

// Known where one is the larger everywhere.
static bool maximum(const integers *a, const integers *b, integers *out)
{
  if (a->bounded && b->bounded && (a->low >= b->high || b->low >= a->high)) {
    *out = a->low >= b->high ? *a : *b;
    return true;
  }
  *out = (integers){ .bounded = false };
  return a->step == 0 && b->step == 0;
}

static bool minimum(const integers *a, const integers *b, integers *out)
{
  if (a->bounded && b->bounded && (a->high <= b->low || b->high <= a->low)) {
    *out = a->high <= b->low ? *a : *b;
    return true;
  }
  *out = (integers){ .bounded = false };
  return a->step == 0 && b->step == 0;
}

// A remainder of what is smaller already.
static bool remainder_of(const integers *a, const integers *b, integers *out)
{
  const bool same = a->bounded && b->bounded && a->low >= 0 && a->high < b->low;
  *out = same ? *a : (integers){ .bounded = false };
  return same || (a->step == 0 && b->step == 0);
}

// ---- constants ----

static bool of_literal(const cx_hlo_elements *e, int64_t dim, int *visits,
                       integers *out)
{
  const cx_hlo_type *t = &e->type.tensor;
  const int64_t n = e->splat ? 1 : cx_hlo_type_elements(t);
  if (n == 0 || n / VISIT_ELEMENTS > *visits) return false;
  *visits -= (int)(n / VISIT_ELEMENTS);
  const int64_t first = cx_hlo_elements_int(e, 0);
  *out = (integers){ .bounded = true, .low = first, .high = first };
  for (int64_t i = 1; i < n; i++) {
    const int64_t v = cx_hlo_elements_int(e, (size_t)i);
    if (v < out->low) out->low = v;
    if (v > out->high) out->high = v;
  }
  if (!fits(t->elem, out->low, out->high)) return false;
  if (n == 1 || dim < 0 || t->dims[dim] == 1) return true;
  int64_t apart = 1;  // neighbours along dim
  for (size_t d = (size_t)dim + 1; d < t->rank; d++) apart *= t->dims[d];
  for (int64_t i = 0; i < n; i++) {
    if (i / apart % t->dims[dim] == 0) continue;
    const int64_t step = cx_hlo_elements_int(e, (size_t)i) -
                         cx_hlo_elements_int(e, (size_t)(i - apart));
    if (i == apart) out->step = step;
    if (step != out->step) return false;
  }
  return true;
}

// ---- what moves elements ----

// The dimension of a reshape's operand that is `dim` of its result: it has the
// same size, and the dimensions behind it have as many elements; -2: none.
static int64_t before_reshape(const cx_hlo_type *from, const cx_hlo_type *to,
                              int64_t dim)
{
  int64_t behind = 1, here = 1;
  for (size_t d = (size_t)dim + 1; d < to->rank; d++) behind *= to->dims[d];
  for (size_t d = from->rank; d-- > 0; here *= from->dims[d]) {
    if (here == behind && from->dims[d] == to->dims[dim]) return (int64_t)d;
  }
  return -2;
}

// The dimension of the operand that is `dim` of the result; -1: none, so that
// all elements along `dim` are equal.
static int64_t before_broadcast(const cx_hlo_op *op, int64_t dim)
{
  const cx_hlo_type *from = &op->operands[0]->type.tensor;
  const cx_hlo_ints at = cx_hlo_op_ints(op, CX_HLO_A_BROADCAST_DIMENSIONS);
  for (size_t i = 0; i < at.n; i++) {
    if (at.v[i] == dim && from->dims[i] != 1) return (int64_t)i;
  }
  return -1;
}

static bool of_slice(const cx_hlo_op *op, int64_t dim, int depth, int *visits,
                     integers *out)
{
  const cx_hlo_ints strides = cx_hlo_op_ints(op, CX_HLO_A_STRIDES);
  if (!know(op->operands[0], dim, depth, visits, out)) return false;
  return dim < 0 ||
         !__builtin_mul_overflow(out->step, strides.v[dim], &out->step);
}

static bool of_concatenate(const cx_hlo_op *op, int64_t dim, int depth,
                           int *visits, integers *out)
{
  if (cx_hlo_op_int(op, CX_HLO_A_DIMENSION) == dim) return false;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    integers one;
    if (!know(op->operands[i], dim, depth, visits, &one)) return false;
    if (i == 0) *out = one;
    if (one.step != out->step) return false;
    out->bounded = out->bounded && one.bounded;
    if (one.low < out->low) out->low = one.low;
    if (one.high > out->high) out->high = one.high;
  }
  return op->n_operands > 0;
}

static bool of_moved(const cx_hlo_op *op, int64_t dim, int depth, int *visits,
                     integers *out)
{
  const cx_hlo_value *x = op->operands[0];
  const cx_hlo_type *to = &op->results[0].type.tensor;
  switch (op->kind) {
    case CX_HLO_OP_SLICE: return of_slice(op, dim, depth, visits, out);
    case CX_HLO_OP_CONCATENATE:
      return of_concatenate(op, dim, depth, visits, out);
    case CX_HLO_OP_TRANSPOSE:
      if (dim >= 0) dim = cx_hlo_op_ints(op, CX_HLO_A_PERMUTATION).v[dim];
      break;
    case CX_HLO_OP_BROADCAST_IN_DIM:
      if (dim >= 0) dim = before_broadcast(op, dim);
      break;
    default:
      if (dim >= 0) dim = before_reshape(&x->type.tensor, to, dim);
      if (dim < -1) return false;
      break;
  }
  return know(x, dim, depth, visits, out);
}

// ---- values ----

static bool of_numbers(const cx_hlo_op *op, int64_t dim, int depth, int *visits,
                       integers *out)
{
  const cx_hlo_elem elem = op->results[0].type.tensor.elem;
  integers a, b;
  if (!know(op->operands[0], dim, depth, visits, &a)) return false;
  if (op->n_operands == 1) {
    if (op->kind == CX_HLO_OP_NEGATE) return negate(elem, &a, out);
    *out = a;
    return checked(elem, true, out);
  }
  if (!know(op->operands[1], dim, depth, visits, &b)) return false;
  switch (op->kind) {
    case CX_HLO_OP_ADD: return add(elem, &a, &b, out);
    case CX_HLO_OP_MULTIPLY: return multiply(elem, &a, &b, out);
    case CX_HLO_OP_MAXIMUM: return maximum(&a, &b, out);
    case CX_HLO_OP_MINIMUM: return minimum(&a, &b, out);
    case CX_HLO_OP_REMAINDER: return remainder_of(&a, &b, out);
    default: break;
  }
  integers minus;
  // The negative of an unsigned number is none of its type, their difference
  // may be one.
  return negate(CX_HLO_I64, &b, &minus) && add(elem, &a, &minus, out);
}

// The condition is known.
static bool of_select(const cx_hlo_op *op, int64_t dim, int depth, int *visits,
                      integers *out)
{
  for (uint32_t i = 0; i < 2; i++) {
    if (!cpu_opt_is_number(op->operands[0], 1 - i)) continue;
    return know(op->operands[1 + i], dim, depth, visits, out);
  }
  return false;
}

static bool of_op(const cx_hlo_op *op, int64_t dim, int depth, int *visits,
                  integers *out)
{
  const cx_hlo_type *t = &op->results[0].type.tensor;
  switch (op->kind) {
    case CX_HLO_OP_IOTA: {
      const int64_t along = cx_hlo_op_int(op, CX_HLO_A_IOTA_DIMENSION);
      *out = (integers){ true, 0, t->dims[along] - 1, along == dim };
      return checked(t->elem, t->dims[along] > 0, out);
    }
    case CX_HLO_OP_BROADCAST_IN_DIM:
    case CX_HLO_OP_CONCATENATE:
    case CX_HLO_OP_RESHAPE:
    case CX_HLO_OP_SLICE:
    case CX_HLO_OP_TRANSPOSE: return of_moved(op, dim, depth, visits, out);
    case CX_HLO_OP_ADD:
    case CX_HLO_OP_CONVERT:
    case CX_HLO_OP_MAXIMUM:
    case CX_HLO_OP_MINIMUM:
    case CX_HLO_OP_MULTIPLY:
    case CX_HLO_OP_NEGATE:
    case CX_HLO_OP_REMAINDER:
    case CX_HLO_OP_SUBTRACT: return of_numbers(op, dim, depth, visits, out);
    case CX_HLO_OP_SELECT: return of_select(op, dim, depth, visits, out);
    default: return false;
  }
}

static bool know(const cx_hlo_value *v, int64_t dim, int depth, int *visits,
                 integers *out)
{
  const cx_hlo_type *t = &v->type.tensor;
  if (v->type.non_tensor != NULL || depth == 0 || --*visits < 0) return false;
  // Along a dimension of 1 there is no next element.
  if (dim >= 0 && t->dims[dim] == 1) dim = -1;
  if (cx_hlo_elem_is_int(t->elem)) {
    const cx_hlo_elements *literal = cpu_opt_literal(v);
    if (literal != NULL && of_literal(literal, dim, visits, out)) return true;
    if (literal == NULL && v->op != NULL && v->op->n_results == 1 &&
        of_op(v->op, dim, depth - 1, visits, out)) {
      return true;
    }
  }
  *out = (integers){ .bounded = false };
  return dim < 0;
}

bool cpu_opt_know_integers(const cx_hlo_value *v, int64_t dim,
                           cpu_opt_integers *out)
{
  int visits = MOST_VISITS;
  return know(v, dim, DEEPEST, &visits, out);
}
