// hlo/infer: the functions that the rules share.
#include "hlo/infer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hlo/print.h"

calx_status *cx_hlo_bad(const cx_hlo_infer *in, const char *format, ...)
{
  char text[768];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return cx_invalid("%s: %s", cx_hlo_op_short(in->op->kind), text);
}

cx_hlo_shape_text cx_hlo_any_text(const cx_hlo_any *type)
{
  if (type->non_tensor == NULL) return cx_hlo_shape(&type->tensor);
  cx_hlo_shape_text out;
  cx_text text = { 0 };
  cx_hlo_any_print(&text, type);
  snprintf(out.s, sizeof out.s, "%s", cx_text_str(&text));
  cx_text_free(&text);
  return out;
}

// ---- results and attributes ----

calx_status *cx_hlo_result(cx_hlo_infer *in, size_t i, cx_hlo_elem elem,
                           size_t rank, const int64_t *dims)
{
  in->results[i] = (cx_hlo_any){ .tensor = { elem, rank, dims } };
  return NULL;
}

int64_t *cx_hlo_dims_copy(cx_hlo_infer *in, const cx_hlo_type *t)
{
  int64_t *dims = CX_ARENA_ARRAY(in->arena, int64_t, t->rank + 1);
  if (dims != NULL && t->rank != 0) {
    memcpy(dims, t->dims, t->rank * sizeof *dims);
  }
  return dims;
}

bool cx_hlo_ints_have(cx_hlo_ints list, int64_t v)
{
  for (size_t i = 0; i < list.n; i++) {
    if (list.v[i] == v) return true;
  }
  return false;
}

calx_status *cx_hlo_need_dim(const cx_hlo_infer *in, const char *what,
                             int64_t dim, size_t rank)
{
  if (dim >= 0 && dim < (int64_t)rank) return NULL;
  return cx_hlo_bad(in, "%s has dimension %lld, but the rank is %zu", what,
                    (long long)dim, rank);
}

calx_status *cx_hlo_need_dims(const cx_hlo_infer *in, const char *what,
                              cx_hlo_ints dims, size_t rank)
{
  for (size_t i = 0; i < dims.n; i++) {
    CALX_TRY(cx_hlo_need_dim(in, what, dims.v[i], rank));
    const cx_hlo_ints before = { dims.v, i };
    if (cx_hlo_ints_have(before, dims.v[i])) {
      return cx_hlo_bad(in, "%s has dimension %lld twice", what,
                        (long long)dims.v[i]);
    }
  }
  return NULL;
}

calx_status *cx_hlo_need_count(const cx_hlo_infer *in, cx_hlo_attr_id id,
                               size_t n)
{
  const cx_hlo_attr *attr = cx_hlo_op_attr(in->op, id);
  if (attr == NULL || attr->as.ints.n == n) return NULL;
  return cx_hlo_bad(in, "%s has %zu values, it needs %zu",
                    cx_hlo_name_info_of(id)->name, attr->as.ints.n, n);
}

int64_t cx_hlo_op_int_at(const cx_hlo_op *op, cx_hlo_attr_id id, size_t i)
{
  const cx_hlo_attr *attr = cx_hlo_op_attr(op, id);
  if (attr == NULL) return cx_hlo_op_int(op, id);
  return i < attr->as.ints.n ? attr->as.ints.v[i] : 0;
}

// ---- operands ----

calx_status *cx_hlo_need_same_elem(const cx_hlo_infer *in, size_t a, size_t b)
{
  const cx_hlo_type *x = cx_hlo_operand(in, a);
  const cx_hlo_type *y = cx_hlo_operand(in, b);
  if (x->elem == y->elem) return NULL;
  return cx_hlo_bad(in, "operands have different element types: %s and %s",
                    CX_HLO_SHAPE(x), CX_HLO_SHAPE(y));
}

calx_status *cx_hlo_complex_elem(const cx_hlo_infer *in, cx_hlo_elem *out)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  *out = x->elem == CX_HLO_F32 ? CX_HLO_C64 : CX_HLO_C128;
  if (x->elem == CX_HLO_F32 || x->elem == CX_HLO_F64) return NULL;
  return cx_hlo_bad(in, "operands must be f32 or f64, got %s", CX_HLO_SHAPE(x));
}

bool cx_hlo_same_dims(const cx_hlo_type *a, const cx_hlo_type *b)
{
  const cx_hlo_type other = { a->elem, b->rank, b->dims };
  return cx_hlo_type_equal(a, &other);
}

calx_status *cx_hlo_need_same_dims(const cx_hlo_infer *in, const char *what,
                                   size_t n)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  for (size_t i = 1; i < n; i++) {
    const cx_hlo_type *y = cx_hlo_operand(in, i);
    if (cx_hlo_same_dims(x, y)) continue;
    return cx_hlo_bad(in, "%s have different shapes: %s and %s", what,
                      CX_HLO_SHAPE(x), CX_HLO_SHAPE(y));
  }
  return NULL;
}

calx_status *cx_hlo_need_scalar(const cx_hlo_infer *in, const char *what,
                                size_t i, size_t like)
{
  const cx_hlo_type *x = cx_hlo_operand(in, like);
  const cx_hlo_type *value = cx_hlo_operand(in, i);
  if (value->rank == 0 && value->elem == x->elem) return NULL;
  return cx_hlo_bad(in, "the %s of %s must be %s of rank 0, got %s", what,
                    CX_HLO_SHAPE(x), cx_hlo_elem_name(x->elem),
                    CX_HLO_SHAPE(value));
}

calx_status *cx_hlo_need_results(const cx_hlo_infer *in, const char *what,
                                 size_t n)
{
  if (n == in->op->n_results) return NULL;
  return cx_hlo_bad(in, "%zu %s need as many results, got %u", n, what,
                    in->op->n_results);
}

calx_status *cx_hlo_same_results(cx_hlo_infer *in, const char *what, size_t n)
{
  CALX_TRY(cx_hlo_need_results(in, what, n));
  for (size_t i = 0; i < n; i++) in->results[i] = in->op->operands[i]->type;
  return NULL;
}

// ---- regions ----

calx_status *cx_hlo_need_body(const cx_hlo_infer *in, size_t region,
                              const cx_hlo_any *args, size_t n_args,
                              const cx_hlo_any *results, size_t n_results)
{
  const cx_hlo_block *block = in->op->regions[region].first;
  if (block == NULL) return cx_hlo_bad(in, "region %zu is empty", region);
  if (block->next != NULL) {
    return cx_hlo_bad(in, "region %zu has several blocks, it must have one",
                      region);
  }
  if (block->n_args != n_args) {
    return cx_hlo_bad(in, "region %zu has %zu arguments, it must have %zu",
                      region, block->n_args, n_args);
  }
  for (size_t i = 0; i < n_args; i++) {
    const cx_hlo_any *got = &block->args[i].type;
    if (cx_hlo_any_equal(got, &args[i])) continue;
    return cx_hlo_bad(in, "argument %zu of region %zu is %s, it must be %s", i,
                      region, CX_HLO_ANY(got), CX_HLO_ANY(&args[i]));
  }
  const cx_hlo_op *end = block->last;
  if (end == NULL || end->kind != CX_HLO_OP_RETURN) {
    return cx_hlo_bad(in, "region %zu does not end with stablehlo.return",
                      region);
  }
  if (end->n_operands != n_results) {
    return cx_hlo_bad(in, "region %zu returns %u values, it must return %zu",
                      region, end->n_operands, n_results);
  }
  for (size_t i = 0; results != NULL && i < n_results; i++) {
    const cx_hlo_any *returned = &end->operands[i]->type;
    if (cx_hlo_any_equal(returned, &results[i])) continue;
    return cx_hlo_bad(in, "region %zu returns %s as value %zu, it must be %s",
                      region, CX_HLO_ANY(returned), i, CX_HLO_ANY(&results[i]));
  }
  return NULL;
}

// Whether a reduction may widen `from` to `to`.
static bool promotable(cx_hlo_elem from, cx_hlo_elem to)
{
  return cx_hlo_elem_class(from) == cx_hlo_elem_class(to) &&
         cx_hlo_elem_bits(from) <= cx_hlo_elem_bits(to);
}

calx_status *cx_hlo_need_reducer(cx_hlo_infer *in, size_t region,
                                 const cx_hlo_elem *inputs, size_t n,
                                 cx_hlo_elem *out_elems)
{
  const cx_hlo_block *block = in->op->regions[region].first;
  cx_hlo_any *args = CX_ARENA_ARRAY(in->arena, cx_hlo_any, 2 * n);
  if (args == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    out_elems[i] = inputs[i];
    if (block != NULL && block->n_args == 2 * n) {
      const cx_hlo_elem e = block->args[i].type.tensor.elem;
      if (promotable(inputs[i], e)) out_elems[i] = e;
    }
    args[i].tensor.elem = out_elems[i];
    args[n + i].tensor.elem = out_elems[i];
  }
  return cx_hlo_need_body(in, region, args, 2 * n, args, n);
}
