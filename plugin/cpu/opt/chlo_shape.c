// opt/chlo: the operations of CHLO that are not functions of elements: those
// with broadcasting, constants, top_k.
#include <string.h>

#include "hlo/number.h"
#include "hlo/ops.h"
#include "opt/chlo.h"

// ---- broadcasting ----

// Broadcasts x to the shape `to`: its dimensions become the dimensions `at`, or
// the last ones.
static cpu_opt_value broadcast_to(cx_hlo_builder *b, cpu_opt_value x,
                                  const cx_hlo_type *to, const cx_hlo_attr *at)
{
  if (x == NULL || cpu_opt_same_dims(&x->type.tensor, to)) return x;
  const size_t rank = x->type.tensor.rank;
  if (rank > to->rank) return NULL;
  int64_t *dims = CX_ARENA_ARRAY(&b->module->arena, int64_t, rank + 1);
  if (dims == NULL) return NULL;
  const bool given = at != NULL && at->kind == CX_HLO_ATTR_ARRAY &&
                     at->as.ints.n == rank && rank < to->rank;
  for (size_t i = 0; i < rank; i++) {
    dims[i] = given ? at->as.ints.v[i] : (int64_t)(to->rank - rank + i);
  }
  return cpu_opt_broadcast(b, x, to, dims);
}

// The value of #chlo<comparison_direction LT>, parsed or as text; -1: none.
static int64_t choice_of(const cx_hlo_attr *attr, cx_hlo_choice family)
{
  if (attr == NULL) return -1;
  if (attr->kind == CX_HLO_ATTR_CHOICE) return attr->as.integer;
  if (attr->kind != CX_HLO_ATTR_TEXT && attr->kind != CX_HLO_ATTR_STRING) {
    return -1;
  }
  // The last word.
  size_t end = attr->as.text.n;
  const char *s = attr->as.text.s;
  while (end > 0 && (s[end - 1] < 'A' || s[end - 1] > 'Z')) end--;
  size_t start = end;
  while (start > 0 && s[start - 1] >= 'A' && s[start - 1] <= 'Z') start--;
  return cx_hlo_choice_find(family, s + start, end - start);
}

// A comparison with a type; -1: the default type.
static cpu_opt_value compare_as(cx_hlo_builder *b, int64_t direction,
                                int64_t type, cpu_opt_value x, cpu_opt_value y)
{
  cpu_opt_value const operands[] = { x, y };
  cx_hlo_op *r = cx_hlo_build_begin(b, CX_HLO_OP_COMPARE, operands, 2, 1, 0);
  cx_hlo_build_attr(
      b, r, CX_HLO_A_COMPARISON_DIRECTION,
      cx_hlo_attr_choice(b->module, CX_HLO_COMPARISON_DIRECTION, direction));
  if (type >= 0) {
    cx_hlo_build_attr(
        b, r, CX_HLO_A_COMPARE_TYPE,
        cx_hlo_attr_choice(b->module, CX_HLO_COMPARISON_TYPE, type));
  }
  return cx_hlo_build_end(b, r);
}

static cpu_opt_value compared(cx_hlo_builder *b, const cx_hlo_op *op,
                              cpu_opt_value x, cpu_opt_value y)
{
  const int64_t direction = choice_of(cpu_opt_attr(op, "comparison_direction"),
                                      CX_HLO_COMPARISON_DIRECTION);
  const int64_t type =
      choice_of(cpu_opt_attr(op, "compare_type"), CX_HLO_COMPARISON_TYPE);
  if (direction < 0 || x == NULL || y == NULL) return NULL;
  return compare_as(b, direction, type, x, y);
}

static cpu_opt_value broadcasting(cx_hlo_builder *b, cx_hlo_str name,
                                  const cx_hlo_op *op)
{
  const cx_hlo_type *to = &op->results[0].type.tensor;
  const cx_hlo_attr *at = cpu_opt_attr(op, "broadcast_dimensions");
  cpu_opt_value x[3] = { NULL, NULL, NULL };
  for (uint32_t i = 0; i < op->n_operands && i < 3; i++) {
    x[i] = broadcast_to(b, op->operands[i], to, at);
    if (x[i] == NULL) return NULL;
  }
  if (op->n_operands == 3 && cx_hlo_str_equal(name, "select")) {
    return choose(b, x[0], x[1], x[2]);
  }
  if (op->n_operands != 2) return NULL;
  if (cx_hlo_str_equal(name, "compare")) return compared(b, op, x[0], x[1]);
  for (int i = CX_HLO_OP_ADD; i < CX_HLO_OP_CLAMP; i++) {
    const cx_hlo_op_kind kind = (cx_hlo_op_kind)i;
    if (cx_hlo_op_info_of(kind)->operands == 2 &&
        cx_hlo_str_equal(name, cx_hlo_op_short(kind))) {
      return cx_hlo_binary(b, kind, x[0], x[1]);
    }
  }
  return cpu_opt_chlo_two(b, name, x[0], x[1]);
}

// ---- constants ----

static cpu_opt_value constant(cx_hlo_builder *b, const cx_hlo_op *op)
{
  const cx_hlo_attr *value = cpu_opt_attr(op, "value");
  if (value == NULL || value->kind != CX_HLO_ATTR_ELEMENTS) return NULL;
  cx_hlo_op *r = cx_hlo_build_begin(b, CX_HLO_OP_CONSTANT, NULL, 0, 1, 0);
  cx_hlo_build_attr(b, r, CX_HLO_A_VALUE, value);
  return cx_hlo_build_end(b, r);
}

static cpu_opt_value constant_like(cx_hlo_builder *b, const cx_hlo_op *op)
{
  const cx_hlo_attr *value = cpu_opt_attr(op, "value");
  const cx_hlo_type *type = &op->results[0].type.tensor;
  unsigned char element[16] = { 0 };
  if (value == NULL || value->elem != type->elem) return NULL;
  if (value->kind == CX_HLO_ATTR_FLOAT) {
    cx_hlo_store_bits(type->elem, element, value->as.bits);
  } else if (value->kind == CX_HLO_ATTR_INT) {
    cx_hlo_store_int(type->elem, element, value->as.integer);
  } else {
    return NULL;
  }
  return cpu_opt_splat_like(b, type, element);
}

cpu_opt_value cpu_opt_chlo_shaped(cx_hlo_builder *b, cx_hlo_str name,
                                  const cx_hlo_op *op)
{
  static const char prefix[] = "broadcast_";
  const size_t n = sizeof prefix - 1;
  if (cx_hlo_str_equal(name, "constant")) return constant(b, op);
  if (cx_hlo_str_equal(name, "constant_like")) return constant_like(b, op);
  if (name.n <= n || memcmp(name.s, prefix, n) != 0) return NULL;
  return broadcasting(b, (cx_hlo_str){ name.s + n, name.n - n }, op);
}

// ---- top_k ----

// The comparator of a descending sort; floats are compared by total order.
static void descending(cx_hlo_builder *b, void *user, cpu_opt_value const *args,
                       cpu_opt_value *out)
{
  (void)user;
  const bool is_float = cx_hlo_elem_is_float(args[0]->type.tensor.elem);
  out[0] = compare_as(b, CX_HLO_GT, is_float ? CX_HLO_TOTALORDER : -1, args[0],
                      args[1]);
}

// A slice: the first k elements of the last dimension.
static cpu_opt_value first_of(cx_hlo_builder *b, cpu_opt_value x, int64_t k)
{
  if (x == NULL) return NULL;
  const cx_hlo_type *t = &x->type.tensor;
  int64_t *start = CX_ARENA_ARRAY(&b->module->arena, int64_t, 3 * t->rank);
  if (start == NULL) return NULL;
  int64_t *limit = start + t->rank;
  int64_t *stride = limit + t->rank;
  for (size_t i = 0; i < t->rank; i++) {
    limit[i] = i + 1 == t->rank ? k : t->dims[i];
    stride[i] = 1;
  }
  return cx_hlo_slice(b, x, start, limit, stride);
}

calx_status *cpu_opt_top_k(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_builder *b = &w->b;
  const cx_hlo_attr *k = cpu_opt_attr(op, "k");
  if (op->n_operands != 1 || op->n_results != 2 || k == NULL ||
      k->kind != CX_HLO_ATTR_INT) {
    return NULL;
  }
  cpu_opt_value x = op->operands[0];
  const cx_hlo_type t = x->type.tensor;
  if (t.rank == 0 || k->as.integer < 0 || k->as.integer > t.dims[t.rank - 1]) {
    return cx_invalid("top_k: there are no %lld of %s",
                      (long long)k->as.integer, cx_hlo_shape(&t).s);
  }
  const int64_t last = (int64_t)t.rank - 1;
  const cx_hlo_type indices = { CX_HLO_I32, t.rank, t.dims };
  cpu_opt_value const operands[] = { x, cx_hlo_iota(b, indices, last) };
  const cx_hlo_elem elems[] = { t.elem, t.elem, CX_HLO_I32, CX_HLO_I32 };
  cx_hlo_op *sort = cx_hlo_build_begin(b, CX_HLO_OP_SORT, operands, 2, 2, 1);
  cx_hlo_build_body(b, sort, 0, elems, 4, 1, descending, NULL);
  cx_hlo_build_int(b, sort, CX_HLO_A_DIMENSION, last);
  cx_hlo_build_attr(b, sort, CX_HLO_A_IS_STABLE,
                    cx_hlo_attr_bool(b->module, true));
  if (cx_hlo_build_end(b, sort) == NULL) return NULL;
  cpu_opt_value const out[] = { first_of(b, &sort->results[0], k->as.integer),
                                first_of(b, &sort->results[1], k->as.integer) };
  if (out[0] != NULL && out[1] != NULL) cpu_opt_replace_all(w, op, out);
  return NULL;
}
