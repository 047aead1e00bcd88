// hlo/bytecode: which properties an operation of VHLO has.
//
// They are its attributes in the alphabetical order of their names, all of them
// written out; the fields of a struct of numbers are properties of their own.
// So ops.def says what they are, and here stands only what an older or newer
// version lacks. Source: StableHLO's VhloOps.td and VhloToVersion.cpp.
#include <stdlib.h>
#include <string.h>

#include "hlo/bytecode_reader.h"

// Whether version `version` of an operation has the attribute.
static bool has_attr(cx_hlo_op_kind kind, unsigned version, cx_hlo_attr_id id)
{
  switch (id) {
    case CX_HLO_A_RESULT_ACCURACY:
    case CX_HLO_A_RESULT_TILINGS:
    case CX_HLO_A_ALGORITHM: return version >= 2;
    case CX_HLO_A_SOURCE_TARGET_PAIRS:
      return version >= 2 || kind == CX_HLO_OP_COLLECTIVE_PERMUTE;
    case CX_HLO_A_HAS_DYNAMIC_ROOT:
      return version >= 2 || kind != CX_HLO_OP_COLLECTIVE_BROADCAST;
    case CX_HLO_A_PADDING: return version < 2 || kind != CX_HLO_OP_DYNAMIC_CONV;
    default: return true;
  }
}

// Batching dimensions came with the second version of gather and scatter.
static bool has_field(cx_hlo_op_kind kind, unsigned version, cx_hlo_attr_id id,
                      const cx_hlo_field *field)
{
  if (id == CX_HLO_A_CHANNEL_HANDLE && strcmp(field->name, "type") == 0) {
    return kind == CX_HLO_OP_SEND || kind == CX_HLO_OP_RECV;
  }
  const bool numbers = id == CX_HLO_A_GATHER_DIMENSION_NUMBERS ||
                       id == CX_HLO_A_SCATTER_DIMENSION_NUMBERS;
  return version >= 2 || !numbers || strstr(field->name, "batching") == NULL;
}

cx_hlo_struct cx_hlo_vhlo_struct(const cx_hlo_name_info *info)
{
  if (info->kind == CX_HLO_ATTR_CONV) return CX_HLO_STRUCT_CONV_RAW;
  if (info->kind != CX_HLO_ATTR_STRUCT ||
      info->detail == CX_HLO_STRUCT_ACCURACY) {
    return CX_HLO_STRUCT_COUNT;
  }
  return (cx_hlo_struct)info->detail;
}

static const char *field_name(cx_hlo_attr_id id, const cx_hlo_field *field)
{
  if (id != CX_HLO_A_CHANNEL_HANDLE) return field->name;
  return strcmp(field->name, "type") == 0 ? "channel_type" : "channel_id";
}

static int by_name(const void *a, const void *b)
{
  return strcmp(((const cx_hlo_property *)a)->name,
                ((const cx_hlo_property *)b)->name);
}

// The attributes of func.func, which ops.def does not have.
static size_t function_properties(cx_hlo_property *out)
{
  static const char *const names[] = { "arg_attrs", "function_type",
                                       "res_attrs", "sym_name",
                                       "sym_visibility" };
  const size_t n = sizeof names / sizeof *names;
  for (size_t i = 0; i < n; i++) {
    out[i] = (cx_hlo_property){ names[i], CX_HLO_A_COUNT, NULL };
  }
  return n;
}

size_t cx_hlo_vhlo_list(const cx_hlo_op_name *op, cx_hlo_property *out)
{
  const cx_hlo_op_info *info = cx_hlo_op_info_of(op->kind);
  size_t n = 0;
  if (cx_hlo_str_equal(op->name, "func.func")) return function_properties(out);
  for (size_t i = 0; i < info->n_attrs; i++) {
    const cx_hlo_attr_id id = info->attrs[i].id;
    const cx_hlo_name_info *name = cx_hlo_name_info_of(id);
    const cx_hlo_struct which = cx_hlo_vhlo_struct(name);
    if (!has_attr(op->kind, op->version, id)) continue;
    if (which == CX_HLO_STRUCT_COUNT) {
      out[n++] = (cx_hlo_property){ name->name, id, NULL };
      continue;
    }
    const cx_hlo_struct_info fields = cx_hlo_struct_info_of(which);
    for (size_t k = 0; k < fields.n_fields; k++) {
      const cx_hlo_field *field = &fields.fields[k];
      if (!has_field(op->kind, op->version, id, field)) continue;
      out[n++] = (cx_hlo_property){ field_name(id, field), id, field };
    }
  }
  qsort(out, n, sizeof *out, by_name);
  return n;
}

calx_status *cx_hlo_vhlo_properties(cx_hlo_bytecode *b, cx_hlo_op_name *op)
{
  if (op->properties != NULL) return NULL;
  op->properties = CX_ARENA_ARRAY(&b->r->module->arena, cx_hlo_property,
                                  CX_HLO_MOST_PROPERTIES);
  if (op->properties == NULL) return cx_out_of_memory();
  op->n_properties = cx_hlo_vhlo_list(op, op->properties);
  return NULL;
}

// ---- versions ----

static bool attr_needs_second(const cx_hlo_op *op, cx_hlo_attr_id id,
                              const cx_hlo_attr *attr)
{
  if (has_attr(op->kind, 2, id) && !has_attr(op->kind, 1, id)) return true;
  if (attr->kind != CX_HLO_ATTR_STRUCT) return false;
  const cx_hlo_struct_info info =
      cx_hlo_struct_info_of((cx_hlo_struct)attr->which);
  for (size_t i = 0; i < info.n_fields; i++) {
    const cx_hlo_field *field = &info.fields[i];
    if (has_field(op->kind, 1, id, field)) continue;
    if (!has_field(op->kind, 2, id, field)) continue;
    const char *at = (const char *)attr->as.fields + field->offset;
    if (((const cx_hlo_ints *)(const void *)at)->n != 0) return true;
  }
  return false;
}

unsigned cx_hlo_vhlo_version(const cx_hlo_op *op)
{
  const cx_hlo_op_info *info = cx_hlo_op_info_of(op->kind);
  for (size_t i = 0; i < info->n_attrs; i++) {
    const cx_hlo_attr *attr = op->attrs[i];
    if (attr != NULL && attr_needs_second(op, info->attrs[i].id, attr)) {
      return 2;
    }
  }
  switch (op->kind) {
    case CX_HLO_OP_ALL_GATHER:
    case CX_HLO_OP_ALL_REDUCE:
    case CX_HLO_OP_ALL_TO_ALL:
    case CX_HLO_OP_COLLECTIVE_BROADCAST: return op->n_operands == 1 ? 1 : 2;
    case CX_HLO_OP_COMPOSITE: return op->n_regions == 0 ? 1 : 2;
    default: return 1;
  }
}
