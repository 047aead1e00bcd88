// hlo/bytecode: writes the properties of VHLO's operations, which are the
// attributes that bytecode_property.c lists. VHLO has no absent attributes, so
// defaults are written out.
#include <string.h>

#include "hlo/bytecode_writer.h"

static const cx_hlo_attr_rule *rule_of(const cx_hlo_op *op, cx_hlo_attr_id id)
{
  const cx_hlo_attr_rule *rule = cx_hlo_op_info_of(op->kind)->attrs;
  while (rule->id != id) rule++;
  return rule;
}

static size_t refuse(cx_hlo_bytecode_writer *w, const cx_hlo_op *op,
                     const char *name, const char *what)
{
  CX_HLO_WRITE_FAIL(w, CALX_INVALID_ARGUMENT, "bytecode: '%s' of %s %s", name,
                    cx_hlo_op_info_of(op->kind)->name, what);
  return 0;
}

// ---- fields of structs ----

static size_t write_list(cx_hlo_bytecode_writer *w, cx_hlo_ints list)
{
  const int64_t n = (int64_t)list.n;
  return cx_hlo_write_ints(w, CX_HLO_I64, list.v, &n, 1, false);
}

static size_t write_elem_type(cx_hlo_bytecode_writer *w, cx_hlo_elem elem)
{
  const cx_hlo_non_tensor bare = { .kind = CX_HLO_NON_TENSOR_ELEMENT,
                                   .elem = elem };
  return cx_hlo_write_type_attr(w, &(cx_hlo_any){ .non_tensor = &bare });
}

static size_t write_value(cx_hlo_bytecode_writer *w, const cx_hlo_op *op,
                          const cx_hlo_property *p, const void *at)
{
  if (p->field->kind == CX_HLO_FIELD_INTS ||
      p->field->kind == CX_HLO_FIELD_LIST) {
    return write_list(w, *(const cx_hlo_ints *)at);
  }
  const int64_t v = *(const int64_t *)at;
  if (p->field->kind == CX_HLO_FIELD_INT) {
    return cx_hlo_write_int(w, CX_HLO_I64, v);
  }
  if (p->field->kind == CX_HLO_FIELD_FLAG) return cx_hlo_write_bool(w, v != 0);
  if (v == CX_HLO_INVALID) return refuse(w, op, p->name, "is missing");
  return write_elem_type(w, (cx_hlo_elem)v);
}

static size_t write_field(cx_hlo_bytecode_writer *w, const cx_hlo_op *op,
                          const cx_hlo_property *p)
{
  const cx_hlo_attr *attr = cx_hlo_op_attr(op, p->attr);
  const cx_hlo_name_info *info = cx_hlo_name_info_of(p->attr);
  if (attr == NULL && p->attr == CX_HLO_A_CHANNEL_HANDLE &&
      !rule_of(op, p->attr)->required) {
    return cx_hlo_write_int(w, CX_HLO_I64, 0);
  }
  if (attr == NULL) return refuse(w, op, info->name, "is missing");
  const bool is_conv = info->kind == CX_HLO_ATTR_CONV;
  if (attr->kind != info->kind || (!is_conv && attr->which != info->detail)) {
    return refuse(w, op, info->name, "has a value of another kind");
  }
  const char *fields = is_conv ? (const void *)attr->as.conv : attr->as.fields;
  return write_value(w, op, p, fields + p->field->offset);
}

// ---- defaults ----

// How many dimensions the window of an operation has.
static size_t window_rank(const cx_hlo_op *op)
{
  const cx_hlo_attr *conv = cx_hlo_op_attr(op, CX_HLO_A_CONV_DIMENSION_NUMBERS);
  if (conv != NULL && conv->kind == CX_HLO_ATTR_CONV) {
    return conv->as.conv->input_spatial.n;
  }
  return op->n_operands == 0 ? 0 : op->operands[0]->type.tensor.rank;
}

// Padding is a matrix, [low, high] of each dimension.
static size_t write_default_list(cx_hlo_bytecode_writer *w, const cx_hlo_op *op,
                                 const cx_hlo_attr_rule *rule)
{
  const cx_hlo_name_info *info = cx_hlo_name_info_of(rule->id);
  const bool is_window = rule->id != CX_HLO_A_KNOWN_EXPANDING_DIMENSIONS &&
                         rule->id != CX_HLO_A_KNOWN_NONEXPANDING_DIMENSIONS &&
                         rule->id != CX_HLO_A_SOURCE_TARGET_PAIRS;
  const int64_t dims[] = { is_window ? (int64_t)window_rank(op) : 0, 2 };
  return cx_hlo_write_ints(w, (cx_hlo_elem)info->detail, &rule->fallback, dims,
                           info->kind == CX_HLO_ATTR_MATRIX ? 2 : 1, true);
}

static size_t write_default(cx_hlo_bytecode_writer *w, const cx_hlo_op *op,
                            const cx_hlo_attr_rule *rule)
{
  const cx_hlo_name_info *info = cx_hlo_name_info_of(rule->id);
  if (rule->required) return refuse(w, op, info->name, "is missing");
  if (rule->id == CX_HLO_A_API_VERSION) {
    return cx_hlo_write_enum(w, CX_HLO_VHLO_API_VERSION,
                             (uint64_t)rule->fallback);
  }
  switch (info->kind) {
    case CX_HLO_ATTR_INT:
      return cx_hlo_write_int(w, (cx_hlo_elem)info->detail, rule->fallback);
    case CX_HLO_ATTR_BOOL:
    case CX_HLO_ATTR_UNIT: return cx_hlo_write_bool(w, rule->fallback != 0);
    case CX_HLO_ATTR_CHOICE:
      return cx_hlo_write_enum(
          w, cx_hlo_vhlo_choice_code((cx_hlo_choice)info->detail), 0);
    case CX_HLO_ATTR_ARRAY:
    case CX_HLO_ATTR_MATRIX: return write_default_list(w, op, rule);
    case CX_HLO_ATTR_DICT: return cx_hlo_write_dict(w, NULL, 0, true, true);
    case CX_HLO_ATTR_LIST: break;
    default:
      if (rule->id == CX_HLO_A_RESULT_TILINGS) break;
      return cx_hlo_write_text(w, (cx_hlo_str){ "", 0 });
  }
  const bool precision = rule->id == CX_HLO_A_PRECISION_CONFIG;
  return cx_hlo_write_repeated(
      w, precision ? cx_hlo_write_enum(w, CX_HLO_VHLO_PRECISION, 0) : 0,
      precision ? 2 : 0);
}

// ---- attributes ----

// Symbols are strings in VHLO.
static size_t write_symbols(cx_hlo_bytecode_writer *w, const cx_hlo_attr *attr)
{
  const size_t mark = w->out.size;
  if (attr->kind == CX_HLO_ATTR_SYMBOL) {
    return cx_hlo_write_text(w, attr->as.text);
  }
  if (attr->kind != CX_HLO_ATTR_LIST) return cx_hlo_write_attr(w, attr, true);
  cx_hlo_write_number(w, CX_HLO_VHLO_ARRAY);
  cx_hlo_write_number(w, attr->as.list.n);
  for (size_t i = 0; i < attr->as.list.n; i++) {
    const cx_hlo_attr *item = attr->as.list.items[i];
    cx_hlo_write_number(w, item->kind == CX_HLO_ATTR_SYMBOL
                               ? cx_hlo_write_text(w, item->as.text)
                               : cx_hlo_write_attr(w, item, true));
  }
  return cx_hlo_write_entry(w, &w->attrs, CX_HLO_WRITES_VHLO, mark);
}

static size_t write_whole(cx_hlo_bytecode_writer *w, const cx_hlo_op *op,
                          const cx_hlo_property *p)
{
  const cx_hlo_attr *attr = cx_hlo_op_attr(op, p->attr);
  const cx_hlo_name_info *info = cx_hlo_name_info_of(p->attr);
  if (attr == NULL) return write_default(w, op, rule_of(op, p->attr));
  if (info->kind == CX_HLO_ATTR_UNIT && attr->kind == CX_HLO_ATTR_UNIT) {
    return cx_hlo_write_bool(w, true);
  }
  if (info->kind == CX_HLO_ATTR_SYMBOL ||
      p->attr == CX_HLO_A_CALLED_COMPUTATIONS) {
    return write_symbols(w, attr);
  }
  if (attr->kind == CX_HLO_ATTR_ARRAY &&
      (attr->elem == CX_HLO_I64 || attr->elem == CX_HLO_I1)) {
    const int64_t n = (int64_t)attr->as.ints.n;
    return cx_hlo_write_ints(w, attr->elem, attr->as.ints.v, &n, 1, false);
  }
  if (p->attr == CX_HLO_A_API_VERSION && attr->kind == CX_HLO_ATTR_INT &&
      attr->as.integer >= 0) {
    return cx_hlo_write_enum(w, CX_HLO_VHLO_API_VERSION,
                             (uint64_t)attr->as.integer);
  }
  return cx_hlo_write_attr(w, attr, true);
}

// What stands in `out` from `mark` on, as properties.
static size_t take(cx_hlo_bytecode_writer *w, size_t mark)
{
  return cx_hlo_write_entry(w, &w->properties, 0, mark);
}

const cx_hlo_property_list *cx_hlo_write_list(cx_hlo_bytecode_writer *w,
                                              cx_hlo_op_kind kind,
                                              unsigned version)
{
  cx_hlo_property_list *list = &w->lists[kind][version - 1];
  if (list->is_made) return list;
  const char *name = cx_hlo_op_info_of(kind)->name;
  const cx_hlo_op_name key = { .name = { name, strlen(name) },
                               .kind = kind,
                               .is_vhlo = true,
                               .version = version };
  list->n = cx_hlo_vhlo_list(&key, list->v);
  list->is_made = true;
  return list;
}

size_t cx_hlo_write_properties(cx_hlo_bytecode_writer *w, const cx_hlo_op *op,
                               const cx_hlo_property_list *list)
{
  const size_t mark = w->out.size;
  for (size_t i = 0; i < list->n; i++) {
    const cx_hlo_property *p = &list->v[i];
    cx_hlo_write_number(
        w, p->field == NULL ? write_whole(w, op, p) : write_field(w, op, p));
  }
  return take(w, mark);
}

// ---- functions ----

// A list of dictionaries; empty where no parameter or result has attributes.
static size_t write_dicts(cx_hlo_bytecode_writer *w,
                          const cx_hlo_named_list *lists, size_t n)
{
  const size_t mark = w->out.size;
  if (lists == NULL) n = 0;
  cx_hlo_write_number(w, CX_HLO_VHLO_ARRAY);
  cx_hlo_write_number(w, n);
  for (size_t i = 0; i < n; i++) {
    cx_hlo_write_number(
        w, cx_hlo_write_dict(w, lists[i].items, lists[i].n, true, true));
  }
  return cx_hlo_write_entry(w, &w->attrs, CX_HLO_WRITES_VHLO, mark);
}

// inputs results, as one list
static size_t write_function_type(cx_hlo_bytecode_writer *w,
                                  const cx_hlo_func *f)
{
  const size_t mark = w->out.size;
  cx_hlo_write_number(w, CX_HLO_VHLO_T_FUNCTION);
  cx_hlo_write_number(w, f->n_params);
  for (size_t i = 0; i < f->n_params; i++) {
    cx_hlo_write_number(w, cx_hlo_write_type(w, &f->params[i], true));
  }
  cx_hlo_write_number(w, f->n_results);
  for (size_t i = 0; i < f->n_results; i++) {
    cx_hlo_write_number(w, cx_hlo_write_type(w, &f->results[i], true));
  }
  const size_t type =
      cx_hlo_write_entry(w, &w->types, CX_HLO_WRITES_VHLO, mark);
  return cx_hlo_write_enum(w, CX_HLO_VHLO_TYPE, type);
}

// arg_attrs function_type res_attrs sym_name sym_visibility
size_t cx_hlo_write_func_properties(cx_hlo_bytecode_writer *w,
                                    const cx_hlo_func *f)
{
  const size_t mark = w->out.size;
  cx_hlo_write_number(w, write_dicts(w, f->param_attrs, f->n_params));
  cx_hlo_write_number(w, write_function_type(w, f));
  cx_hlo_write_number(w, write_dicts(w, f->result_attrs, f->n_results));
  cx_hlo_write_number(w, cx_hlo_write_text(w, f->name));
  cx_hlo_write_number(w, cx_hlo_write_text(w, f->visibility));
  return take(w, mark);
}
