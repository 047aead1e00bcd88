// hlo/infer: runs the rule of an operation, after the checks that ops.def
// gives.
#include <string.h>

#include "hlo/infer.h"

// One rule for each operation; NULL: the operation has none.
#define cx_hlo_infer_none NULL
#define CX_HLO_OP(id, name, operands, results, regions, elems, rule, attrs, \
                  form)                                                     \
  [CX_HLO_OP_##id] = cx_hlo_infer_##rule,

static cx_hlo_infer_fn *const rules[CX_HLO_OP_COUNT] = {
#include "hlo/ops.def"
};

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

static bool fits(const cx_hlo_attr *attr, const cx_hlo_name_info *info)
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
    if (!fits(op->attrs[i], name)) return bad_kind(in, op->attrs[i], name);
  }
  // Other dialects may add attributes. Their names contain a dot.
  for (size_t i = 0; i < op->n_extra; i++) {
    const cx_hlo_str name = op->extra[i].name;
    if (memchr(name.s, '.', name.n) == NULL) {
      return cx_hlo_bad(in, "has no attribute '%.*s'", (int)name.n, name.s);
    }
  }
  return NULL;
}

// `rule` is a count as cx_hlo_op_info has it.
static calx_status *check_count(const cx_hlo_infer *in, const char *verb,
                                int rule, const char *what, uint32_t n)
{
  const unsigned least = (unsigned)(rule >= 0 ? rule : -1 - rule);
  if (rule >= 0 ? n == least : n >= least) return NULL;
  return cx_hlo_bad(in, "%s %s%u %s, got %u", verb,
                    rule >= 0 ? "" : "at least ", least, what, n);
}

static calx_status *check_operand(const cx_hlo_infer *in, size_t i,
                                  unsigned classes)
{
  const cx_hlo_any *type = &in->op->operands[i]->type;
  const bool any = classes == CX_HLO_CLASS_ANY;
  if (type->non_tensor != NULL) {
    if (type->non_tensor->kind != CX_HLO_NON_TENSOR_TEXT && any) return NULL;
    return cx_error(CALX_UNIMPLEMENTED,
                    "%s: operand %zu has the type %s, which is not supported "
                    "here",
                    cx_hlo_op_short(in->op->kind), i, CX_HLO_ANY(type));
  }
  if (!any && cx_hlo_elem_class(type->tensor.elem) == 0) {
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
  if (any || classes == 0 ||
      (cx_hlo_elem_class(type->tensor.elem) & classes) != 0) {
    return NULL;
  }
  return cx_hlo_bad(in, "operand %zu is %s, an element type it does not take",
                    i, CX_HLO_SHAPE(&type->tensor));
}

calx_status *cx_hlo_infer_run(cx_hlo_infer *in)
{
  const cx_hlo_op *op = in->op;
  const cx_hlo_op_info *info = cx_hlo_op_info_of(op->kind);
  if (op->kind == CX_HLO_OP_OTHER) return cx_hlo_infer_sdy(in);
  if (rules[op->kind] == NULL) {
    return cx_error(CALX_UNIMPLEMENTED, "%s: there is no shape rule yet",
                    cx_hlo_op_short(op->kind));
  }
  CALX_TRY(
      check_count(in, "takes", info->operands, "operands", op->n_operands));
  CALX_TRY(check_count(in, "has", info->results, "results", op->n_results));
  CALX_TRY(check_count(in, "has", info->regions, "regions", op->n_regions));
  CALX_TRY(check_attrs(in, info));
  for (size_t i = 0; i < op->n_operands; i++) {
    CALX_TRY(check_operand(in, i, info->elems));
  }
  return rules[op->kind](in);
}
