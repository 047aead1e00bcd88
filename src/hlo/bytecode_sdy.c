// hlo/bytecode: the attributes and properties of Shardy's dialect, which says
// how tensors are spread over devices. The module keeps its attributes as their
// text.
//
// An attribute's text is #sdy.name<…>, or #sdy<name…> where its body does not
// begin with '<'. Inside of another attribute it is its body alone. Sources:
// Shardy's bytecode.td, attrs.td and ops.td.
#include <string.h>

#include "hlo/bytecode_reader.h"
#include "hlo/print.h"

// The codes are the places in this list.
static const char *const names[] = {
  "manual_axes",    "mesh_axis",          "mesh",
  "sub_axis_info",  "axis_ref",           "dimension_sharding",
  "sharding",       "sharding_per_value", "dim_mapping",
  "tensor_mapping", "op_sharding_rule",   "axis_ref_list",
  "axis_ref_lists", "all_to_all_param",   "all_to_all_param_list",
  "sharding",       "sharding_per_value", "sharding"
};
enum {
  MANUAL_AXES,
  MESH_AXIS,
  MESH,
  SUB_AXIS,
  AXIS_REF,
  DIM_SHARDING,
  SHARDING,
  PER_VALUE,
  DIM_MAPPING,
  TENSOR_MAPPING,
  RULE,
  AXIS_REFS,
  AXIS_REF_LISTS,
  ALL_TO_ALL,
  ALL_TO_ALLS,
  SHARDING_UNREDUCED,  // with axes over which there are still partial results
  PER_VALUE_UNREDUCED,
  SHARDING_REDUCED_BY,  // and the operation that is to combine them
  CODES
};

// An attribute that is being read, and its text.
typedef struct writer {
  cx_hlo_bytecode *b;
  cx_hlo_bytes *in;
  cx_text text;
} writer;

// ---- parts ----

// Parts that are long and used often are more text than memory holds.
static calx_status *check_size(const writer *w)
{
  return cx_hlo_bytes_check_text(w->b, w->in->at, &w->text);
}

static calx_status *put_number(writer *w, const char *before, const char *after)
{
  int64_t v = 0;
  CALX_TRY(cx_hlo_bytes_signed(w->b, w->in, &v));
  cx_text_format(&w->text, "%s%lld%s", before, (long long)v, after);
  return NULL;
}

static calx_status *put_string(writer *w)
{
  cx_hlo_str s;
  CALX_TRY(cx_hlo_bytes_string(w->b, w->in, &s));
  cx_hlo_string_print(&w->text, s);
  return NULL;
}

// The body of an attribute, which is one of this name.
static calx_status *put_body(writer *w, const cx_hlo_attr *attr,
                             const char *name, const char *at)
{
  static const char dialect[] = "#sdy.";
  const size_t before = sizeof dialect - 1, n = strlen(name);
  const cx_hlo_str s = attr->as.text;
  if (attr->kind != CX_HLO_ATTR_TEXT || s.n <= before + n ||
      memcmp(s.s, dialect, before - 1) != 0 ||
      memcmp(s.s + before, name, n) != 0 ||
      s.s[before + n] == '_') {  // a longer name
    return CX_HLO_BYTES_FAIL(w->b, at, "a part must be #sdy.%s", name);
  }
  const bool wrapped = s.s[before - 1] == '<';
  cx_text_append_n(&w->text, s.s + before + n, s.n - before - n - wrapped);
  return check_size(w);
}

static calx_status *put_part(writer *w, const char *name)
{
  const char *at = w->in->at;
  const cx_hlo_attr *attr = NULL;
  CALX_TRY(cx_hlo_bytes_attr(w->b, w->in, &attr));
  return put_body(w, attr, name, at);
}

// count part*
static calx_status *put_parts(writer *w, const char *name, size_t *out_n)
{
  size_t n = 0;
  CALX_TRY(cx_hlo_bytes_count(w->b, w->in, &n));
  for (size_t i = 0; i < n; i++) {
    if (i != 0) cx_text_append(&w->text, ", ");
    CALX_TRY(put_part(w, name));
  }
  if (out_n != NULL) *out_n = n;
  return NULL;
}

static calx_status *put_list(writer *w, const char *name, const char *open,
                             const char *close)
{
  cx_text_append(&w->text, open);
  CALX_TRY(put_parts(w, name, NULL));
  cx_text_append(&w->text, close);
  return NULL;
}

// ---- axes and shardings ----

static calx_status *put_axis_ref(writer *w)
{
  const char *at = w->in->at;
  const cx_hlo_attr *part = NULL;
  uint64_t v = 0;
  CALX_TRY(put_string(w));
  CALX_TRY(cx_hlo_bytes_number(w->b, w->in, &v));
  if (!(v & 1)) return NULL;
  CALX_TRY(cx_hlo_bytes_attr_at(w->b, (size_t)(v >> 1), at, &part));
  cx_text_char(&w->text, ':');
  return put_body(w, part, names[SUB_AXIS], at);
}

static calx_status *put_mesh(writer *w)
{
  size_t n = 0;
  CALX_TRY(put_list(w, names[MESH_AXIS], "<[", "]"));
  CALX_TRY(cx_hlo_bytes_count(w->b, w->in, &n));
  for (size_t i = 0; i < n; i++) {
    CALX_TRY(put_number(w, i == 0 ? ", device_ids=[" : ", ", ""));
  }
  cx_text_append(&w->text, n == 0 ? ">" : "]>");
  return NULL;
}

// axes closed (priority << 1 | has one); an open dimension may be split further
static calx_status *put_dim_sharding(writer *w)
{
  size_t n = 0;
  cx_hlo_bytes closed;
  uint64_t v = 0;
  cx_text_char(&w->text, '{');
  CALX_TRY(put_parts(w, names[AXIS_REF], &n));
  CALX_TRY(cx_hlo_bytes_take(w->b, w->in, 1, &closed));
  CALX_TRY(cx_hlo_bytes_number(w->b, w->in, &v));
  if (*closed.at == 0) cx_text_append(&w->text, n == 0 ? "?" : ", ?");
  cx_text_char(&w->text, '}');
  if (v & 1) cx_text_format(&w->text, "p%llu", (unsigned long long)(v >> 1));
  return NULL;
}

// mesh dimensions replicated (unreduced operation?)?
static calx_status *put_sharding(writer *w, uint64_t code)
{
  static const char *const opens[] = { "{", "max{", "min{" };
  const char *at = w->in->at;
  const cx_hlo_attr *mesh = NULL;
  cx_text *text = &w->text;
  CALX_TRY(cx_hlo_bytes_attr(w->b, w->in, &mesh));
  cx_text_char(text, '<');
  if (mesh->kind == CX_HLO_ATTR_SYMBOL) {
    cx_hlo_attr_print(text, mesh);
  } else {
    cx_text_append(text, names[MESH]);
    CALX_TRY(put_body(w, mesh, names[MESH], at));
  }
  CALX_TRY(put_list(w, names[DIM_SHARDING], ", [", "]"));
  for (int i = 0; i < (code == SHARDING ? 1 : 2); i++) {
    // The operation stands behind the axes and is printed before them.
    cx_hlo_bytes axes = *w->in;
    size_t n = 0, ignored = 0;
    int64_t op = 0;
    CALX_TRY(cx_hlo_bytes_count(w->b, &axes, &n));
    for (size_t k = 0; k < n; k++) {
      CALX_TRY(cx_hlo_bytes_index(w->b, &axes, w->b->n_attrs, "attribute",
                                  &ignored));
    }
    if (i == 1 && code == SHARDING_REDUCED_BY) {
      CALX_TRY(cx_hlo_bytes_signed(w->b, &axes, &op));
    }
    if (op < 0 || op > 2) {
      return CX_HLO_BYTES_FAIL(w->b, at, "there is no such reduction");
    }
    if (n != 0) {
      cx_text_append(text, i == 0 ? ", replicated=" : ", unreduced=");
      CALX_TRY(put_list(w, names[AXIS_REF], opens[op], "}"));
    }
    *w->in = axes;
  }
  cx_text_char(text, '>');
  return NULL;
}

// ---- rules of how an operation may be spread ----

// Factors are called i, j, …, z, z_1, z_2, …
static calx_status *put_factor(writer *w, int64_t factor)
{
  if (factor < 0) {
    return CX_HLO_BYTES_FAIL(w->b, w->in->at, "a factor has the number %lld",
                             (long long)factor);
  }
  if (factor <= 'z' - 'i') {
    cx_text_char(&w->text, (char)('i' + factor));
  } else {
    cx_text_format(&w->text, "z_%lld", (long long)(factor - ('z' - 'i')));
  }
  return NULL;
}

// count factor*; NULL: no commas
static calx_status *put_factors(writer *w, const char *open, const char *close)
{
  size_t n = 0;
  CALX_TRY(cx_hlo_bytes_count(w->b, w->in, &n));
  if (open != NULL && n != 0) cx_text_append(&w->text, open);
  for (size_t i = 0; i < n; i++) {
    int64_t factor = 0;
    CALX_TRY(cx_hlo_bytes_signed(w->b, w->in, &factor));
    if (open != NULL && i != 0) cx_text_append(&w->text, ", ");
    CALX_TRY(put_factor(w, factor));
  }
  if (open != NULL && n != 0) cx_text_append(&w->text, close);
  return NULL;
}

static calx_status *put_sizes(writer *w, cx_hlo_bytes sizes)
{
  cx_hlo_bytes *in = w->in;
  size_t n = 0;
  w->in = &sizes;
  CALX_TRY(cx_hlo_bytes_count(w->b, w->in, &n));
  for (size_t i = 0; i < n; i++) {
    cx_text_append(&w->text, i == 0 ? " {" : ", ");
    CALX_TRY(put_factor(w, (int64_t)i));
    CALX_TRY(put_number(w, "=", ""));
  }
  if (n != 0) cx_text_char(&w->text, '}');
  w->in = in;
  return NULL;
}

// sizes operands results factors{4} custom; the sizes are printed behind the
// mappings.
static calx_status *put_rule(writer *w)
{
  static const char *const uses[] = { " reduction={", " need_replication={",
                                      " permutation={",
                                      " blocked_propagation={" };
  const cx_hlo_bytes sizes = *w->in;
  size_t n = 0;
  int64_t ignored = 0;
  cx_hlo_bytes custom;
  CALX_TRY(cx_hlo_bytes_count(w->b, w->in, &n));
  for (size_t i = 0; i < n; i++) {
    CALX_TRY(cx_hlo_bytes_signed(w->b, w->in, &ignored));
  }
  CALX_TRY(put_list(w, names[TENSOR_MAPPING], "<(", ")->("));
  CALX_TRY(put_list(w, names[TENSOR_MAPPING], "", ")"));
  CALX_TRY(put_sizes(w, sizes));
  for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
    CALX_TRY(put_factors(w, uses[i], "}"));
  }
  CALX_TRY(cx_hlo_bytes_take(w->b, w->in, 1, &custom));
  cx_text_append(&w->text, *custom.at != 0 ? ", custom>" : ">");
  return NULL;
}

// ---- any attribute ----

static calx_status *put_manual_axes(writer *w)
{
  size_t n = 0;
  CALX_TRY(cx_hlo_bytes_count(w->b, w->in, &n));
  cx_text_char(&w->text, '{');
  for (size_t i = 0; i < n; i++) {
    const char *at = w->in->at;
    const cx_hlo_attr *name = NULL;
    CALX_TRY(cx_hlo_bytes_attr(w->b, w->in, &name));
    if (name->kind != CX_HLO_ATTR_STRING) {
      return CX_HLO_BYTES_FAIL(w->b, at, "the name of an axis is a string");
    }
    if (i != 0) cx_text_append(&w->text, ", ");
    cx_hlo_string_print(&w->text, name->as.text);
    CALX_TRY(check_size(w));
  }
  cx_text_char(&w->text, '}');
  return NULL;
}

static calx_status *put(writer *w, uint64_t code)
{
  switch (code) {
    case MANUAL_AXES: return put_manual_axes(w);
    case MESH_AXIS: CALX_TRY(put_string(w)); return put_number(w, "=", "");
    case MESH: return put_mesh(w);
    case SUB_AXIS:
      CALX_TRY(put_number(w, "(", ")"));
      return put_number(w, "", "");
    case AXIS_REF: return put_axis_ref(w);
    case DIM_SHARDING: return put_dim_sharding(w);
    case PER_VALUE:
    case PER_VALUE_UNREDUCED: return put_list(w, names[SHARDING], "<[", "]>");
    case DIM_MAPPING: return put_factors(w, NULL, NULL);
    case TENSOR_MAPPING: return put_list(w, names[DIM_MAPPING], "[", "]");
    case RULE: return put_rule(w);
    case AXIS_REFS: return put_list(w, names[AXIS_REF], "{", "}");
    case AXIS_REF_LISTS: return put_list(w, names[AXIS_REFS], "[", "]");
    case ALL_TO_ALL:
      CALX_TRY(put_list(w, names[AXIS_REF], "{", "}"));
      CALX_TRY(put_number(w, ": ", ""));
      return put_number(w, "->", "");
    case ALL_TO_ALLS: return put_list(w, names[ALL_TO_ALL], "[", "]");
    default: return put_sharding(w, code);
  }
}

calx_status *cx_hlo_bytes_read_sdy(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                   uint64_t code, const cx_hlo_attr **out)
{
  const char *at = in->at;
  writer w = { .b = b, .in = in };
  if (code >= CODES) {
    return CX_HLO_BYTES_UNKNOWN(b, at, "attribute %llu of Shardy",
                                (unsigned long long)code);
  }
  calx_status *status = put(&w, code);
  if (status != NULL) {
    cx_text_free(&w.text);
    return status;
  }
  const bool dotted = cx_text_str(&w.text)[0] == '<';
  cx_text full = { 0 };
  cx_text_format(&full, "#sdy%c%s%s%s", dotted ? '.' : '<', names[code],
                 cx_text_str(&w.text), dotted ? "" : ">");
  full.failed |= cx_text_failed(&w.text);
  cx_text_free(&w.text);
  return cx_hlo_bytes_text_attr(b, at, &full, out);
}
