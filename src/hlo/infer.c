// hlo/infer: what all rules share: the checks that ops.def drives, and the
// parts that rules are made of.
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
  return cx_error(CALX_INVALID_ARGUMENT, "%s: %s",
                  cx_hlo_op_short(in->op->kind), text);
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

// ---- attributes ----

static bool is_choice(const cx_hlo_attr *attr, int family)
{
  return attr->kind == CX_HLO_ATTR_CHOICE && attr->which == family;
}

static bool is_matrix(const cx_hlo_attr *attr)
{
  const cx_hlo_any *type = &attr->as.elements.type;
  return attr->kind == CX_HLO_ATTR_ELEMENTS && type->non_tensor == NULL &&
         type->tensor.elem == CX_HLO_I64 && type->tensor.rank == 2;
}

static bool is_list_of(const cx_hlo_attr *attr, int family)
{
  if (attr->kind != CX_HLO_ATTR_LIST) return false;
  for (size_t i = 0; family != 0 && i < attr->as.list.n; i++) {
    if (!is_choice(attr->as.list.items[i], family)) return false;
  }
  return true;
}

bool cx_hlo_attr_fits(const cx_hlo_attr *attr, const cx_hlo_name_info *info)
{
  switch (info->kind) {
    case CX_HLO_ATTR_ANY: return true;
    case CX_HLO_ATTR_MATRIX: return is_matrix(attr);
    case CX_HLO_ATTR_CHOICE: return is_choice(attr, info->detail);
    case CX_HLO_ATTR_LIST: return is_list_of(attr, info->detail);
    case CX_HLO_ATTR_STRUCT:
      return attr->kind == info->kind && attr->which == info->detail;
    case CX_HLO_ATTR_INT:
    case CX_HLO_ATTR_FLOAT:
    case CX_HLO_ATTR_ARRAY:
      return attr->kind == info->kind &&
             attr->elem == (cx_hlo_elem)info->detail;
    default: return attr->kind == info->kind;
  }
}

static const char *kind_text(const cx_hlo_name_info *info)
{
  switch (info->kind) {
    case CX_HLO_ATTR_UNIT: return "a unit attribute";
    case CX_HLO_ATTR_BOOL: return "true or false";
    case CX_HLO_ATTR_INT:
      return info->detail == CX_HLO_I32 ? "an i32 number" : "an i64 number";
    case CX_HLO_ATTR_FLOAT: return "an f32 number";
    case CX_HLO_ATTR_STRING: return "a string";
    case CX_HLO_ATTR_SYMBOL: return "a symbol";
    case CX_HLO_ATTR_ELEMENTS: return "a dense literal";
    case CX_HLO_ATTR_MATRIX: return "a dense literal tensor<NxMxi64>";
    case CX_HLO_ATTR_ARRAY:
      return info->detail == CX_HLO_I1 ? "array<i1: …>" : "array<i64: …>";
    case CX_HLO_ATTR_LIST:
      return info->detail == 0 ? "a list" : "a list of #stablehlo<precision …>";
    case CX_HLO_ATTR_DICT: return "a dictionary";
    case CX_HLO_ATTR_CONV: return "#stablehlo.conv<…>";
    default: return "another kind of attribute";
  }
}

static calx_status *bad_kind(const cx_hlo_infer *in, const cx_hlo_attr *attr,
                             const cx_hlo_name_info *info)
{
  if (attr->kind == CX_HLO_ATTR_TEXT) {
    const int n = attr->as.text.n > 80 ? 80 : (int)attr->as.text.n;
    return cx_error(CALX_UNIMPLEMENTED,
                    "%s: attribute '%s' is %.*s, which is not supported",
                    cx_hlo_op_short(in->op->kind), info->name, n,
                    attr->as.text.s);
  }
  if (info->kind == CX_HLO_ATTR_CHOICE) {
    return cx_hlo_bad(in, "attribute '%s' must be #stablehlo<%s …>", info->name,
                      cx_hlo_choice_name((cx_hlo_choice)info->detail));
  }
  if (info->kind == CX_HLO_ATTR_STRUCT) {
    return cx_hlo_bad(in, "attribute '%s' must be #stablehlo.%s<…>", info->name,
                      cx_hlo_struct_info_of((cx_hlo_struct)info->detail).name);
  }
  return cx_hlo_bad(in, "attribute '%s' must be %s", info->name,
                    kind_text(info));
}

static calx_status *check_attrs(const cx_hlo_infer *in,
                                const cx_hlo_op_info *info)
{
  const cx_hlo_op *op = in->op;
  for (size_t i = 0; i < info->n_attrs; i++) {
    const cx_hlo_name_info *name = cx_hlo_name_info_of(info->attrs[i].id);
    if (op->attrs[i] == NULL) {
      if (!info->attrs[i].required) continue;
      return cx_hlo_bad(in, "needs the attribute '%s'", name->name);
    }
    if (!cx_hlo_attr_fits(op->attrs[i], name))
      return bad_kind(in, op->attrs[i], name);
  }
  // Other dialects may add attributes; their names have a dot.
  for (size_t i = 0; i < op->n_extra; i++) {
    const cx_hlo_str name = op->extra[i].name;
    if (memchr(name.s, '.', name.n) == NULL) {
      return cx_hlo_bad(in, "has no attribute '%.*s'", (int)name.n, name.s);
    }
  }
  return NULL;
}

static calx_status *check_counts(const cx_hlo_infer *in,
                                 const cx_hlo_op_info *info)
{
  const cx_hlo_op *op = in->op;
  if (!cx_hlo_count_ok(info->operands, op->n_operands)) {
    return cx_hlo_bad(in, "takes %s operands, got %u",
                      cx_hlo_count(info->operands).s, op->n_operands);
  }
  if (!cx_hlo_count_ok(info->results, op->n_results)) {
    return cx_hlo_bad(in, "has %s results, got %u",
                      cx_hlo_count(info->results).s, op->n_results);
  }
  if (!cx_hlo_count_ok(info->regions, op->n_regions)) {
    return cx_hlo_bad(in, "has %s regions, got %u",
                      cx_hlo_count(info->regions).s, op->n_regions);
  }
  return NULL;
}

// Operations that hand values on, or unpack them: of any type that is known.
static bool takes_all_types(cx_hlo_op_kind kind)
{
  switch (kind) {
    case CX_HLO_OP_WHILE:
    case CX_HLO_OP_RETURN:
    case CX_HLO_OP_FUNC_RETURN:
    case CX_HLO_OP_CALL:
    case CX_HLO_OP_COMPOSITE:
    case CX_HLO_OP_CUSTOM_CALL:
    case CX_HLO_OP_TUPLE:
    case CX_HLO_OP_GET_TUPLE_ELEMENT:
    case CX_HLO_OP_OPTIMIZATION_BARRIER:
    case CX_HLO_OP_AFTER_ALL:
    case CX_HLO_OP_INFEED:
    case CX_HLO_OP_OUTFEED:
    case CX_HLO_OP_SEND:
    case CX_HLO_OP_RECV:
    case CX_HLO_OP_ASYNC_START:
    case CX_HLO_OP_ASYNC_DONE: return true;
    default: return false;
  }
}

static calx_status *check_operand(const cx_hlo_infer *in, size_t i,
                                  unsigned classes)
{
  const cx_hlo_any *type = &in->op->operands[i]->type;
  const bool all = takes_all_types(in->op->kind);
  if (type->non_tensor != NULL) {
    if (type->non_tensor->kind != CX_HLO_NON_TENSOR_TEXT && all) return NULL;
    return cx_error(CALX_UNIMPLEMENTED,
                    "%s: operand %zu has the type %s, which is not supported "
                    "here",
                    cx_hlo_op_short(in->op->kind), i, CX_HLO_ANY(type));
  }
  if (!all && cx_hlo_elem_class(type->tensor.elem) == 0) {
    return cx_hlo_bad(in, "operand %zu is %s, which is no tensor", i,
                      CX_HLO_SHAPE(&type->tensor));
  }
  for (size_t k = 0; k < type->tensor.rank; k++) {
    if (type->tensor.dims[k] >= 0) continue;
    return cx_error(CALX_UNIMPLEMENTED,
                    "%s: operand %zu is %s; dynamic sizes are not supported",
                    cx_hlo_op_short(in->op->kind), i,
                    CX_HLO_SHAPE(&type->tensor));
  }
  if (classes == 0 || (cx_hlo_elem_class(type->tensor.elem) & classes) != 0) {
    return NULL;
  }
  return cx_hlo_bad(in, "operand %zu is %s, an element type it does not take",
                    i, CX_HLO_SHAPE(&type->tensor));
}

calx_status *cx_hlo_infer_run(cx_hlo_infer *in)
{
  const cx_hlo_op *op = in->op;
  const cx_hlo_op_info *info = cx_hlo_op_info_of(op->kind);
  if (op->kind == CX_HLO_OP_OTHER) {
    return cx_error(CALX_UNIMPLEMENTED, "%.*s: not an operation of StableHLO",
                    (int)op->name.n, op->name.s);
  }
  if (info->rule == NULL) {
    return cx_error(CALX_UNIMPLEMENTED, "%s: there is no shape rule yet",
                    cx_hlo_op_short(op->kind));
  }
  CALX_TRY(check_counts(in, info));
  CALX_TRY(check_attrs(in, info));
  for (size_t i = 0; i < op->n_operands; i++) {
    CALX_TRY(check_operand(in, i, info->elems));
  }
  return info->rule(in);
}

// ---- the parts of rules ----

calx_status *cx_hlo_result(cx_hlo_infer *in, size_t i, cx_hlo_elem elem,
                           size_t rank, const int64_t *dims)
{
  in->results[i] = (cx_hlo_any){ .tensor = { elem, rank, dims } };
  return NULL;
}

int64_t *cx_hlo_dims_copy(cx_hlo_infer *in, const cx_hlo_type *t, size_t extra)
{
  int64_t *dims = CX_ARENA_ARRAY(in->arena, int64_t, t->rank + extra + 1);
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

// ---- regions ----

static calx_status *bad_body(const cx_hlo_infer *in, size_t region,
                             const char *sentence)
{
  return cx_hlo_bad(in, "region %zu %s", region, sentence);
}

static calx_status *bad_arg(const cx_hlo_infer *in, size_t region, size_t i,
                            const cx_hlo_any *want, const cx_hlo_any *got)
{
  return cx_hlo_bad(in, "argument %zu of region %zu is %s, it must be %s", i,
                    region, CX_HLO_ANY(got), CX_HLO_ANY(want));
}

calx_status *cx_hlo_need_body(const cx_hlo_infer *in, size_t region,
                              const cx_hlo_any *args, size_t n_args,
                              size_t n_results,
                              cx_hlo_value *const **out_returned)
{
  const cx_hlo_block *block = in->op->regions[region].first;
  if (block == NULL) return bad_body(in, region, "is empty");
  if (block->next != NULL) {
    return bad_body(in, region, "has several blocks, it must have one");
  }
  if (block->n_args != n_args) {
    return cx_hlo_bad(in, "region %zu has %zu arguments, it must have %zu",
                      region, block->n_args, n_args);
  }
  for (size_t i = 0; i < n_args; i++) {
    if (!cx_hlo_any_equal(&block->args[i].type, &args[i])) {
      return bad_arg(in, region, i, &args[i], &block->args[i].type);
    }
  }
  const cx_hlo_op *end = block->last;
  if (end == NULL || end->kind != CX_HLO_OP_RETURN) {
    return bad_body(in, region, "does not end with stablehlo.return");
  }
  if (end->n_operands != n_results) {
    return cx_hlo_bad(in, "region %zu returns %u values, it must return %zu",
                      region, end->n_operands, n_results);
  }
  *out_returned = end->operands;
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
  cx_hlo_value *const *returned = NULL;
  CALX_TRY(cx_hlo_need_body(in, region, args, 2 * n, n, &returned));
  for (size_t i = 0; i < n; i++) {
    if (cx_hlo_any_equal(&returned[i]->type, &args[i])) continue;
    return cx_hlo_bad(in, "region %zu returns %s as value %zu, it must be %s",
                      region, CX_HLO_ANY(&returned[i]->type), i,
                      CX_HLO_ANY(&args[i]));
  }
  return NULL;
}
