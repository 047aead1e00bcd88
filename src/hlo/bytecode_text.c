// hlo/bytecode: what a module keeps as text: quantized types, and meshes as
// groups of replicas. Sources: StableHLO's VhloBytecode.cpp, and the text forms
// of MLIR's QuantTypes and of StablehloAttrs.td.
#include <string.h>

#include "hlo/bytecode_codes.h"
#include "hlo/bytecode_reader.h"
#include "hlo/number.h"
#include "hlo/print.h"

calx_status *cx_hlo_bytes_check_text(cx_hlo_bytecode *b, const char *at,
                                     const cx_text *text)
{
  const size_t most = cx_hlo_bytes_bound(b, CX_HLO_EXPANSION);
  const size_t used = b->r->expanded;
  if (used <= most && text->size <= most - used) return NULL;
  return CX_HLO_BYTES_FAIL(
      b, at, "attributes and types have more than %zu parts and bytes of text",
      most);
}

calx_status *cx_hlo_bytes_take_text(cx_hlo_bytecode *b, const char *at,
                                    cx_text *text, cx_hlo_str *out)
{
  calx_status *status = cx_text_failed(text)
                            ? cx_out_of_memory()
                            : cx_hlo_bytes_check_text(b, at, text);
  if (status == NULL) {
    b->r->expanded += text->size;
    status = cx_hlo_reader_str(b->r, cx_text_str(text), text->size, out);
  }
  cx_text_free(text);
  return status;
}

calx_status *cx_hlo_bytes_text_attr(cx_hlo_bytecode *b, const char *at,
                                    cx_text *text, const cx_hlo_attr **out)
{
  cx_hlo_attr *attr = cx_hlo_attr_new(b->r->module, CX_HLO_ATTR_TEXT);
  if (attr == NULL) {
    cx_text_free(text);
    return cx_out_of_memory();
  }
  *out = attr;
  return cx_hlo_bytes_take_text(b, at, text, &attr->as.text);
}

// ---- quantized types ----

// How the numbers of a type are stored.
typedef struct storage {
  uint64_t is_signed;  // the only flag
  cx_hlo_elem stored, expressed;
  int64_t axis;  // negative: one scale for all
  int64_t lowest, highest;
} storage;

// The range of the stored type, which is not written where it is all of it.
static bool is_full(const storage *s)
{
  const unsigned bits = cx_hlo_elem_bits(s->stored);
  const int64_t half = INT64_C(1) << (bits - 1);
  if (s->is_signed) return s->lowest == -half && s->highest == half - 1;
  return s->lowest == 0 && s->highest == 2 * half - 1;
}

static calx_status *check_storage(cx_hlo_bytecode *b, const char *at,
                                  const storage *s)
{
  const unsigned bits =
      cx_hlo_elem_is_int(s->stored) ? cx_hlo_elem_bits(s->stored) : 0;
  if (s->is_signed <= 1 && bits >= 2 && bits <= 32 &&
      cx_hlo_elem_is_float(s->expressed)) {
    return NULL;
  }
  return CX_HLO_BYTES_UNKNOWN(b, at, "a quantized type of %s stored as %s",
                              cx_hlo_elem_name(s->expressed),
                              cx_hlo_elem_name(s->stored));
}

// i8<-127:127>:f32:1, the first part of the type's text
static void print_storage(cx_text *text, const storage *s)
{
  cx_text_format(text, "!quant.uniform<%s%u", s->is_signed ? "i" : "u",
                 cx_hlo_elem_bits(s->stored));
  if (!is_full(s)) {
    cx_text_format(text, "<%lld:%lld>", (long long)s->lowest,
                   (long long)s->highest);
  }
  cx_text_format(text, ":%s", cx_hlo_elem_name(s->expressed));
  if (s->axis >= 0) cx_text_format(text, ":%lld", (long long)s->axis);
}

// 0.5:3; a zero point of 0 is not written.
static void print_scale(cx_text *text, double scale, int64_t zero_point)
{
  uint64_t bits = 0;
  memcpy(&bits, &scale, sizeof bits);
  cx_hlo_print_real(text, CX_HLO_F64, bits);
  if (zero_point != 0) cx_text_format(text, ":%lld", (long long)zero_point);
}

// scales ::= count number* count zero point*
static calx_status *read_scales(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                cx_text *text)
{
  size_t n = 0, n_points = 0;
  double scale = 0;
  int64_t zero_point = 0;
  CALX_TRY(cx_hlo_bytes_count(b, in, &n));
  cx_hlo_bytes points = *in;
  for (size_t i = 0; i < n; i++) {
    CALX_TRY(cx_hlo_bytes_double(b, &points, &scale));
  }
  CALX_TRY(cx_hlo_bytes_count(b, &points, &n_points));
  if (n_points != n) {
    return CX_HLO_BYTES_FAIL(b, in->at, "%zu scales, but %zu zero points", n,
                             n_points);
  }
  for (size_t i = 0; i < n; i++) {
    CALX_TRY(cx_hlo_bytes_double(b, in, &scale));
    CALX_TRY(cx_hlo_bytes_signed(b, &points, &zero_point));
    cx_text_append(text, i == 0 ? "" : ", ");
    print_scale(text, scale, zero_point);
  }
  return NULL;
}

// quantized ::= signed stored expressed (scale zero point lowest highest
//                                       | axis lowest highest scales)
static calx_status *read_quantized(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                   bool per_axis, cx_text *text)
{
  const char *at = in->at;
  storage s = { .axis = -1 };
  double scale = 0;
  int64_t zero_point = 0;
  size_t axis = 0;
  CALX_TRY(cx_hlo_bytes_number(b, in, &s.is_signed));
  CALX_TRY(cx_hlo_bytes_elem(b, in, &s.stored));
  CALX_TRY(cx_hlo_bytes_elem(b, in, &s.expressed));
  CALX_TRY(check_storage(b, at, &s));
  if (per_axis) {
    CALX_TRY(cx_hlo_bytes_index(b, in, CX_HLO_MOST_DIMS, "axis", &axis));
    s.axis = (int64_t)axis;
  } else {
    CALX_TRY(cx_hlo_bytes_double(b, in, &scale));
    CALX_TRY(cx_hlo_bytes_signed(b, in, &zero_point));
  }
  CALX_TRY(cx_hlo_bytes_signed(b, in, &s.lowest));
  CALX_TRY(cx_hlo_bytes_signed(b, in, &s.highest));
  print_storage(text, &s);
  cx_text_append(text, per_axis ? ", {" : ", ");
  if (!per_axis) print_scale(text, scale, zero_point);
  if (per_axis) CALX_TRY(read_scales(b, in, text));
  cx_text_append(text, per_axis ? "}>" : ">");
  return NULL;
}

calx_status *cx_hlo_bytes_read_quantized(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                         bool per_axis, cx_hlo_str *out)
{
  const char *at = in->at;
  cx_text text = { 0 };
  calx_status *status = read_quantized(b, in, per_axis, &text);
  if (status != NULL) {
    cx_text_free(&text);
    return status;
  }
  return cx_hlo_bytes_take_text(b, at, &text, out);
}

// ---- meshes ----

static bool is_attr(const cx_hlo_attr *attr, const char *prefix)
{
  const size_t n = strlen(prefix);
  return attr->kind == CX_HLO_ATTR_TEXT && attr->as.text.n > n &&
         memcmp(attr->as.text.s, prefix, n) == 0;
}

// name size, of an axis; or name flag part?, of a use of one
static calx_status *read_axis(cx_hlo_bytecode *b, cx_hlo_bytes *in, bool is_use,
                              cx_text *text)
{
  static const char part[] = "#stablehlo<sub_axis_info";
  const char *at = in->at;
  const cx_hlo_attr *name = NULL, *sub = NULL;
  int64_t size = 0;
  uint64_t flag = 0;
  CALX_TRY(cx_hlo_bytes_attr(b, in, &name));
  if (name->kind != CX_HLO_ATTR_STRING) {
    return CX_HLO_BYTES_FAIL(b, at, "the name of an axis must be a string");
  }
  cx_text_append(text, is_use ? "#stablehlo.axis_ref<name = "
                              : "#stablehlo.mesh_axis<name = ");
  cx_hlo_string_print(text, name->as.text);
  if (is_use) {
    CALX_TRY(cx_hlo_bytes_number(b, in, &flag));
    if (flag != 0) {
      CALX_TRY(cx_hlo_bytes_attr(b, in, &sub));
      if (!is_attr(sub, part)) {
        return CX_HLO_BYTES_FAIL(
            b, at, "the part of an axis must be #stablehlo<sub_axis_info…>");
      }
      const cx_hlo_str s = sub->as.text;
      cx_text_append(text, ", sub_axis_info = ");
      cx_text_append_n(text, s.s + strlen(part), s.n - sizeof part);
    }
  } else {
    CALX_TRY(cx_hlo_bytes_signed(b, in, &size));
    cx_text_format(text, ", size = %lld", (long long)size);
  }
  cx_text_char(text, '>');
  return NULL;
}

// [axis, …], each as its text
static calx_status *read_axes(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                              cx_text *text)
{
  const char *at = in->at;
  const cx_hlo_attr *axes = NULL;
  CALX_TRY(cx_hlo_bytes_attr(b, in, &axes));
  if (axes->kind != CX_HLO_ATTR_LIST) {
    return CX_HLO_BYTES_FAIL(b, at, "axes are a list");
  }
  cx_text_char(text, '[');
  for (size_t i = 0; i < axes->as.list.n; i++) {
    const cx_hlo_attr *axis = axes->as.list.items[i];
    if (!is_attr(axis, "#stablehlo.")) {
      return CX_HLO_BYTES_FAIL(b, at, "axis %zu is no axis", i);
    }
    cx_text_append(text, i == 0 ? "" : ", ");
    cx_hlo_attr_print(text, axis);
    CALX_TRY(cx_hlo_bytes_check_text(b, at, text));
  }
  cx_text_char(text, ']');
  return NULL;
}

// A mesh: axes and, where the low bit says so, devices.
static calx_status *read_mesh(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                              cx_text *text)
{
  const char *at = in->at;
  const cx_hlo_attr *devices = NULL;
  uint64_t v = 0;
  cx_text_append(text, "#stablehlo.mesh<axes=");
  CALX_TRY(read_axes(b, in, text));
  CALX_TRY(cx_hlo_bytes_number(b, in, &v));
  if (v & 1) {
    CALX_TRY(cx_hlo_bytes_attr_at(b, (size_t)(v >> 1), at, &devices));
    if (devices->kind != CX_HLO_ATTR_ELEMENTS) {
      return CX_HLO_BYTES_FAIL(b, at, "the devices of a mesh are a literal");
    }
    cx_text_append(text, ", device_ids=");
    cx_hlo_attr_print(text, devices);
  }
  cx_text_char(text, '>');
  return NULL;
}

// Groups of replicas: a mesh, or the name of one, and axes of it.
static calx_status *read_groups(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                cx_text *text)
{
  const char *at = in->at;
  const cx_hlo_attr *mesh = NULL;
  CALX_TRY(cx_hlo_bytes_attr(b, in, &mesh));
  cx_hlo_attr name = *mesh;
  if (name.kind == CX_HLO_ATTR_STRING) name.kind = CX_HLO_ATTR_SYMBOL;
  if (name.kind != CX_HLO_ATTR_SYMBOL && !is_attr(mesh, "#stablehlo.mesh<")) {
    return CX_HLO_BYTES_FAIL(b, at, "groups need a mesh or its name");
  }
  cx_text_append(text, "#stablehlo.replica_group_mesh_axes<mesh = ");
  cx_hlo_attr_print(text, &name);
  cx_text_append(text, ", axes = ");
  CALX_TRY(read_axes(b, in, text));
  cx_text_char(text, '>');
  return NULL;
}

static calx_status *read_part(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                              cx_text *text)
{
  int64_t before = 0, size = 0;
  CALX_TRY(cx_hlo_bytes_signed(b, in, &before));
  CALX_TRY(cx_hlo_bytes_signed(b, in, &size));
  cx_text_format(text, "#stablehlo<sub_axis_info(%lld)%lld>", (long long)before,
                 (long long)size);
  return NULL;
}

calx_status *cx_hlo_bytes_read_mesh(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                    uint64_t code, const cx_hlo_attr **out)
{
  const char *at = in->at;
  cx_text text = { 0 };
  calx_status *status = NULL;
  switch (code) {
    case CX_HLO_VHLO_SUB_AXIS: status = read_part(b, in, &text); break;
    case CX_HLO_VHLO_AXIS_REF: status = read_axis(b, in, true, &text); break;
    case CX_HLO_VHLO_MESH_AXES: status = read_groups(b, in, &text); break;
    case CX_HLO_VHLO_MESH_AXIS: status = read_axis(b, in, false, &text); break;
    default: status = read_mesh(b, in, &text); break;
  }
  if (status != NULL) {
    cx_text_free(&text);
    return status;
  }
  return cx_hlo_bytes_text_attr(b, at, &text, out);
}
