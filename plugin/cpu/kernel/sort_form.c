// kernel/sort_form: which sorts are by the order of numbers, and their
// descriptions.
//
// The comparator asks whether x is less (or greater) than y: integers, or
// floats by total order, as they are or, as JAX writes it, with zeros made
// equal and NaNs one number; or floats where NaN counts as the largest. A
// comparison of floats that is no order stays with the jit.
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "hlo/build.h"
#include "hlo/infer.h"
#include "hlo/ops.h"
#include "kernel/sort.h"

// ---- comparators ----

// The constant that the value is, as a double; false: it is no float.
static bool number_of(const cx_hlo_value *v, double *out)
{
  const cx_hlo_op *op = v->op;
  const cx_hlo_attr *a = op != NULL && op->kind == CX_HLO_OP_CONSTANT
                             ? cx_hlo_op_attr(op, CX_HLO_A_VALUE)
                             : NULL;
  if (a == NULL || a->kind != CX_HLO_ATTR_ELEMENTS ||
      a->as.elements.size == 0 || !cx_hlo_elem_is_float(v->type.tensor.elem)) {
    return false;
  }
  *out = cx_load_double(cx_hlo_elem_dtype(v->type.tensor.elem),
                        a->as.elements.data);
  return true;
}

static const cx_hlo_op *compared(const cx_hlo_value *v, int64_t direction)
{
  return v->op != NULL && v->op->kind == CX_HLO_OP_COMPARE &&
                 cx_hlo_op_int(v->op, CX_HLO_A_COMPARISON_DIRECTION) ==
                     direction
             ? v->op
             : NULL;
}

static bool has_total_order(const cx_hlo_op *compare)
{
  const cx_hlo_elem e = compare->operands[0]->type.tensor.elem;
  const cx_hlo_attr *a = cx_hlo_op_attr(compare, CX_HLO_A_COMPARE_TYPE);
  return !cx_hlo_elem_is_float(e) ||
         (a != NULL && a->as.integer == CX_HLO_TOTALORDER);
}

// A comparison of floats in which zeros are equal, and NaN differs from itself.
static const cx_hlo_op *compared_plainly(const cx_hlo_value *v,
                                         int64_t direction)
{
  const cx_hlo_op *op = compared(v, direction);
  return op != NULL && !has_total_order(op) ? op : NULL;
}

// select(condition, constant, otherwise)
static bool is_choice(const cx_hlo_value *v, double *out_constant,
                      const cx_hlo_value **out_condition,
                      const cx_hlo_value **out_otherwise)
{
  if (v->op == NULL || v->op->kind != CX_HLO_OP_SELECT) return false;
  *out_condition = v->op->operands[0];
  *out_otherwise = v->op->operands[2];
  return number_of(v->op->operands[1], out_constant);
}

// x != x ? NaN : (x == 0 ? 0 : x)
static bool is_made_equal(const cx_hlo_value *v, const cx_hlo_value *x)
{
  double nan, zero, other;
  const cx_hlo_value *is_nan, *is_zero, *number, *rest;
  if (!is_choice(v, &nan, &is_nan, &number) ||
      !is_choice(number, &zero, &is_zero, &rest) || rest != x || !isnan(nan) ||
      signbit(nan) || zero != 0) {
    return false;
  }
  const cx_hlo_op *differs = compared_plainly(is_nan, CX_HLO_NE);
  const cx_hlo_op *same = compared_plainly(is_zero, CX_HLO_EQ);
  return differs != NULL && differs->operands[0] == x &&
         differs->operands[1] == x && same != NULL && same->operands[0] == x &&
         number_of(same->operands[1], &other) && other == 0;
}

// The argument that an operand of the comparison is; NULL: neither.
static const cx_hlo_value *argument(const cx_hlo_block *b,
                                    const cx_hlo_value *v, bool *out_equal)
{
  for (size_t i = 0; i < 2; i++) {
    *out_equal = v != &b->args[i];
    if (!*out_equal || is_made_equal(v, &b->args[i])) return &b->args[i];
  }
  return NULL;
}

// x < y, or y is NaN and x is not; where x and y are arguments.
static const cx_hlo_op *nan_last(const cx_hlo_value *answer)
{
  const cx_hlo_op *either = answer->op;
  if (either == NULL || either->kind != CX_HLO_OP_OR) return NULL;
  const cx_hlo_op *less = compared_plainly(either->operands[0], CX_HLO_LT);
  const cx_hlo_op *both = either->operands[1]->op;
  if (less == NULL || both == NULL || both->kind != CX_HLO_OP_AND) return NULL;
  const cx_hlo_value *x = less->operands[0], *y = less->operands[1];
  const cx_hlo_op *nan = compared_plainly(both->operands[0], CX_HLO_NE);
  const cx_hlo_op *number = compared_plainly(both->operands[1], CX_HLO_EQ);
  return nan != NULL && number != NULL && nan->operands[0] == y &&
                 nan->operands[1] == y && number->operands[0] == x &&
                 number->operands[1] == x
             ? less
             : NULL;
}

static bool set_order(const cx_hlo_op *op, cpu_kernel_sort_desc *d)
{
  const cx_hlo_block *b = op->regions[0].first;
  const cx_hlo_elem e = op->operands[0]->type.tensor.elem;
  if (b == NULL || b->n_args < 2 || b->last == NULL ||
      b->last->n_operands != 1) {
    return false;
  }
  const cx_hlo_value *answer = b->last->operands[0];
  const cx_hlo_op *last = nan_last(answer);
  const cx_hlo_op *less = last != NULL ? last : compared(answer, CX_HLO_LT);
  const cx_hlo_op *compare = less != NULL ? less : compared(answer, CX_HLO_GT);
  bool equal, other_equal;
  if (compare == NULL || cx_hlo_elem_is_complex(e) ||
      (last == NULL && !has_total_order(compare))) {
    return false;
  }
  const cx_hlo_value *x = argument(b, compare->operands[0], &equal);
  const cx_hlo_value *y = argument(b, compare->operands[1], &other_equal);
  if (x == NULL || y == NULL || x == y || equal != other_equal) return false;
  if (last != NULL && equal) return false;
  d->equal = equal || last != NULL;
  d->descending = (less == NULL) != (x == &b->args[1]);
  return true;
}

// ---- descriptions ----

static int64_t payload_of(const cx_hlo_op *op, int64_t dim)
{
  if (op->n_operands == 1) return CPU_KERNEL_SORT_ALONE;
  const cx_hlo_op *iota = op->operands[1]->op;
  const cx_hlo_elem e = op->operands[1]->type.tensor.elem;
  const bool wide = cx_hlo_elem_is_int(e) && cx_hlo_elem_bits(e) >= 32;
  return iota != NULL && iota->kind == CX_HLO_OP_IOTA && wide &&
                 cx_hlo_op_int(iota, CX_HLO_A_IOTA_DIMENSION) == dim
             ? CPU_KERNEL_SORT_POSITIONS
             : CPU_KERNEL_SORT_BESIDE;
}

bool cpu_kernel_sort_describe(const cx_hlo_op *op, cpu_kernel_sort_desc *out)
{
  const cx_hlo_type *t = &op->operands[0]->type.tensor;
  if (op->n_operands > 2 || t->rank == 0 || !cpu_kernel_fits(t)) return false;
  int64_t dim = cx_hlo_op_int(op, CX_HLO_A_DIMENSION);
  if (dim < 0) dim += (int64_t)t->rank;
  *out = (cpu_kernel_sort_desc){ .kind = CPU_KERNEL_SORT,
                                 .types = { t->elem, t->elem },
                                 .outer = 1,
                                 .n = t->dims[dim],
                                 .inner = 1 };
  for (int64_t i = 0; i < (int64_t)t->rank; i++) {
    if (i < dim) out->outer *= t->dims[i];
    if (i > dim) out->inner *= t->dims[i];
  }
  out->payload = payload_of(op, dim);
  if (op->n_operands == 2) out->types[1] = op->operands[1]->type.tensor.elem;
  out->keep[0] = out->keep[1] = out->n;
  return set_order(op, out) && cpu_kernel_sort_is_sound(out) && out->n > 1 &&
         out->outer > 0 && out->inner > 0;
}

bool cpu_kernel_sort_is_sound(const cpu_kernel_sort_desc *d)
{
  int64_t bound = 4 * 16, n;
  const int64_t sizes[] = { d->outer, d->n, d->inner };
  for (int i = 0; i < 2; i++) {
    if (d->types[i] < 0 || d->types[i] >= CX_HLO_ELEM_COUNT ||
        !cx_hlo_elem_is_plain((cx_hlo_elem)d->types[i]) || d->keep[i] < 0 ||
        d->keep[i] > d->n) {
      return false;
    }
  }
  const cx_hlo_elem e = (cx_hlo_elem)d->types[0];
  const cx_hlo_elem with = (cx_hlo_elem)d->types[1];
  const bool wide = cx_hlo_elem_is_int(with) && cx_hlo_elem_bits(with) >= 32;
  return !cx_hlo_elem_is_complex(e) && d->n < (int64_t)1 << 32 &&
         d->equal >= 0 && d->equal <= 1 && d->descending >= 0 &&
         d->descending <= 1 && d->payload >= CPU_KERNEL_SORT_ALONE &&
         d->payload <= CPU_KERNEL_SORT_POSITIONS &&
         (d->payload != CPU_KERNEL_SORT_POSITIONS || wide) &&
         cpu_kernel_count(3, sizes, &bound, &n);
}

double cpu_kernel_sort_flops(const cpu_kernel_sort_desc *d)
{
  if (!cpu_kernel_sort_is_sound(d)) return 0;
  return (double)d->outer * (double)d->n * (double)d->inner * 100;
}

cpu_kernel_sort_order cpu_kernel_sort_order_of(const cpu_kernel_sort_desc *d)
{
  const cx_hlo_elem e = (cx_hlo_elem)d->types[0];
  cpu_kernel_sort_order o = { .bits = 8 * (int)cx_hlo_elem_bytes(e),
                              .is_float = cx_hlo_elem_is_float(e),
                              .equal = d->equal != 0,
                              .descending = d->descending != 0 };
  o.is_signed = cx_hlo_elem_is_int(e) && !cx_hlo_elem_is_unsigned(e);
  if (o.is_float) {
    cx_store_double(cx_hlo_elem_dtype(e), &o.infinity, (double)INFINITY);
  }
  return o;
}
