// hlo/print: types and attributes.
#include <stdio.h>
#include <string.h>

#include "hlo/number.h"
#include "hlo/ops.h"
#include "hlo/print.h"

// Literals of more elements are printed as bytes.
enum { MOST_LISTED = 16 };

void cx_hlo_string_print(cx_text *out, cx_hlo_str s)
{
  static const char digits[] = "0123456789ABCDEF";
  cx_text_char(out, '"');
  size_t done = 0;
  for (size_t i = 0; i < s.n; i++) {
    const unsigned char c = (unsigned char)s.s[i];
    if (c >= ' ' && c < 0x7f && c != '"' && c != '\\') continue;
    const char escaped[3] = { '\\', digits[c >> 4], digits[c & 15] };
    cx_text_append_n(out, s.s + done, i - done);
    cx_text_append_n(out, escaped, 3);
    done = i + 1;
  }
  cx_text_append_n(out, s.s + done, s.n - done);
  cx_text_char(out, '"');
}

static bool is_letter(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_bare(cx_hlo_str s)
{
  if (s.n == 0 || !is_letter(s.s[0])) return false;
  for (size_t i = 1; i < s.n; i++) {
    const char c = s.s[i];
    if (!is_letter(c) && !(c >= '0' && c <= '9') && c != '.' && c != '$') {
      return false;
    }
  }
  return true;
}

static void print_name(cx_text *out, cx_hlo_str s)
{
  if (is_bare(s)) {
    cx_text_append_n(out, s.s, s.n);
  } else {
    cx_hlo_string_print(out, s);
  }
}

// ---- types ----

static void print_parts(cx_text *out, const cx_hlo_any *parts, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (i != 0) cx_text_append_n(out, ", ", 2);
    cx_hlo_any_print(out, &parts[i]);
  }
}

void cx_hlo_function_print(cx_text *out, const cx_hlo_any *inputs,
                           size_t n_inputs, const cx_hlo_any *results, size_t n)
{
  const bool bare =
      n == 1 && (results->non_tensor == NULL ||
                 results->non_tensor->kind != CX_HLO_NON_TENSOR_FUNCTION);
  cx_text_char(out, '(');
  print_parts(out, inputs, n_inputs);
  cx_text_append(out, bare ? ") -> " : ") -> (");
  print_parts(out, results, n);
  if (!bare) cx_text_char(out, ')');
}

// The parser bounds the nesting of types and attributes.
void cx_hlo_any_print(cx_text *out, const cx_hlo_any *type)
{
  const cx_hlo_non_tensor *non_tensor = type->non_tensor;
  if (non_tensor == NULL) {
    cx_hlo_type_print(out, &type->tensor);
    return;
  }
  switch (non_tensor->kind) {
    case CX_HLO_NON_TENSOR_TUPLE:
    case CX_HLO_NON_TENSOR_FUTURE:
      cx_text_append(out, non_tensor->kind == CX_HLO_NON_TENSOR_TUPLE
                              ? "tuple<"
                              : "!stablehlo.future<");
      print_parts(out, non_tensor->parts, non_tensor->n_parts);
      cx_text_char(out, '>');
      break;
    case CX_HLO_NON_TENSOR_FUNCTION:
      cx_hlo_function_print(out, non_tensor->parts, non_tensor->n_inputs,
                            non_tensor->parts + non_tensor->n_inputs,
                            non_tensor->n_parts - non_tensor->n_inputs);
      break;
    case CX_HLO_NON_TENSOR_ELEMENT:
      cx_text_append(out, cx_hlo_elem_name(non_tensor->elem));
      break;
    case CX_HLO_NON_TENSOR_ENCODED:
      cx_hlo_type_print(out, &type->tensor);
      if (!cx_text_failed(out)) out->size--;  // its last '>'
      cx_text_append(out, ", ");
      cx_text_append_n(out, non_tensor->text.s, non_tensor->text.n);
      cx_text_char(out, '>');
      break;
    case CX_HLO_NON_TENSOR_TEXT:
      cx_text_append_n(out, non_tensor->text.s, non_tensor->text.n);
      break;
  }
}

// ---- literals ----

static void print_bytes(cx_text *out, const unsigned char *data, size_t size)
{
  static const char digits[] = "0123456789ABCDEF";
  char piece[512];
  cx_text_append_n(out, "\"0x", 3);
  for (size_t i = 0; i < size;) {
    size_t n = 0;
    for (; n < sizeof piece && i < size; i++) {
      piece[n++] = digits[data[i] >> 4];
      piece[n++] = digits[data[i] & 15];
    }
    cx_text_append_n(out, piece, n);
  }
  cx_text_char(out, '"');
}

static void print_listed(cx_text *out, const cx_hlo_elements *e)
{
  const cx_hlo_type *t = &e->type.tensor;
  const size_t bytes = cx_hlo_elem_bytes(t->elem);
  const int64_t n = cx_hlo_type_elements(t);
  for (int64_t i = 0; i < n; i++) {
    if (i != 0) cx_text_append_n(out, ", ", 2);
    for (size_t k = cx_hlo_type_edges(t, i); k > 0; k--) cx_text_char(out, '[');
    cx_hlo_print_element(out, t->elem, e->data + (size_t)i * bytes);
    for (size_t k = cx_hlo_type_edges(t, i + 1); k > 0; k--)
      cx_text_char(out, ']');
  }
}

static void print_elements(cx_text *out, const cx_hlo_elements *e)
{
  const cx_hlo_type *t = &e->type.tensor;
  const int64_t n = cx_hlo_type_elements(t);
  cx_text_append_n(out, "dense<", 6);
  if (e->splat) {
    cx_hlo_print_element(out, t->elem, e->data);
  } else if (n <= MOST_LISTED || t->elem == CX_HLO_I1) {
    // Versions of MLIR differ in whether they pack i1, so it is always listed.
    print_listed(out, e);
  } else {
    print_bytes(out, e->data, e->size);
  }
  cx_text_append_n(out, "> : ", 4);
  cx_hlo_any_print(out, &e->type);
}

// ---- attributes ----

static void print_ints(cx_text *out, cx_hlo_ints list)
{
  for (size_t i = 0; i < list.n; i++) {
    if (i != 0) cx_text_append_n(out, ", ", 2);
    cx_text_int(out, list.v[i]);
  }
}

static void print_array(cx_text *out, const cx_hlo_attr *attr)
{
  const cx_hlo_ints list = attr->as.ints;
  cx_text_append_n(out, "array<", 6);
  cx_text_append(out, cx_hlo_elem_name(attr->elem));
  if (list.n != 0) cx_text_append_n(out, ": ", 2);
  if (attr->elem != CX_HLO_I1) {
    print_ints(out, list);
  } else {
    for (size_t i = 0; i < list.n; i++) {
      if (i != 0) cx_text_append_n(out, ", ", 2);
      cx_text_append(out, list.v[i] != 0 ? "true" : "false");
    }
  }
  cx_text_char(out, '>');
}

// A field of a struct cannot be hexadecimal: it has all decimal digits.
static void print_decimal(cx_text *out, double v)
{
  cx_text digits = { 0 };
  cx_hlo_print_real(&digits, CX_HLO_F64, cx_hlo_real_to_bits(CX_HLO_F64, v));
  const char *s = cx_text_str(&digits);
  if (s[0] != '0' || s[1] != 'x') {
    cx_text_append(out, s);
  } else {
    char all[40];
    snprintf(all, sizeof all, "%.16e", v);
    // The locale may have another decimal point.
    const size_t point = strcspn(all, "0123456789") + 1;
    all[point] = '.';
    cx_text_append(out, all);
  }
  cx_text_free(&digits);
}

static void print_field(cx_text *out, const cx_hlo_field *field, const void *at)
{
  cx_text_append(out, field->name);
  cx_text_append_n(out, " = ", 3);
  switch (field->kind) {
    case CX_HLO_FIELD_INTS:
    case CX_HLO_FIELD_LIST:
      cx_text_char(out, '[');
      print_ints(out, *(const cx_hlo_ints *)at);
      cx_text_char(out, ']');
      break;
    case CX_HLO_FIELD_INT: cx_text_int(out, *(const int64_t *)at); break;
    case CX_HLO_FIELD_FLAG:
      cx_text_append(out, *(const int64_t *)at != 0 ? "true" : "false");
      break;
    case CX_HLO_FIELD_ELEM:
      cx_text_append(out,
                     cx_hlo_elem_name((cx_hlo_elem)(*(const int64_t *)at)));
      break;
    case CX_HLO_FIELD_REAL: print_decimal(out, *(const double *)at); break;
    case CX_HLO_FIELD_MODE:
      cx_text_format(
          out, "#stablehlo.%s<%s>", cx_hlo_choice_name(CX_HLO_ACCURACY_MODE),
          cx_hlo_choice_value(CX_HLO_ACCURACY_MODE, *(const int64_t *)at));
      break;
  }
}

static bool is_left_out(const cx_hlo_field *field, const void *at)
{
  if (field->kind == CX_HLO_FIELD_ELEM) {
    return *(const int64_t *)at == CX_HLO_INVALID;
  }
  return field->kind == CX_HLO_FIELD_INTS && ((const cx_hlo_ints *)at)->n == 0;
}

static void print_struct(cx_text *out, const cx_hlo_attr *attr)
{
  const cx_hlo_struct_info info =
      cx_hlo_struct_info_of((cx_hlo_struct)attr->which);
  bool first = true;
  cx_text_append(out, "#stablehlo.");
  cx_text_append(out, info.name);
  cx_text_char(out, '<');
  for (size_t i = 0; i < info.n_fields; i++) {
    const void *at = (const char *)attr->as.fields + info.fields[i].offset;
    if (is_left_out(&info.fields[i], at)) continue;
    if (!first) cx_text_append_n(out, ", ", 2);
    first = false;
    print_field(out, &info.fields[i], at);
  }
  cx_text_char(out, '>');
}

// [b, 0, 1, f]: what each dimension is.
static void print_conv_side(cx_text *out, int64_t first, char first_name,
                            int64_t second, char second_name,
                            cx_hlo_ints spatial)
{
  cx_text_char(out, '[');
  for (int64_t d = 0; d < (int64_t)spatial.n + 2; d++) {
    if (d != 0) cx_text_append_n(out, ", ", 2);
    if (d == first) cx_text_char(out, first_name);
    if (d == second) cx_text_char(out, second_name);
    for (size_t i = 0; i < spatial.n; i++) {
      if (spatial.v[i] == d) cx_text_int(out, (int64_t)i);
    }
  }
  cx_text_char(out, ']');
}

static void print_conv(cx_text *out, const cx_hlo_conv_numbers *c)
{
  cx_text_append(out, "#stablehlo.conv<");
  print_conv_side(out, c->input_batch, 'b', c->input_feature, 'f',
                  c->input_spatial);
  cx_text_char(out, 'x');
  print_conv_side(out, c->kernel_input, 'i', c->kernel_output, 'o',
                  c->kernel_spatial);
  cx_text_append_n(out, "->", 2);
  print_conv_side(out, c->output_batch, 'b', c->output_feature, 'f',
                  c->output_spatial);
  cx_text_char(out, '>');
}

static void print_list(cx_text *out, const cx_hlo_attr *attr)
{
  cx_text_char(out, '[');
  for (size_t i = 0; i < attr->as.list.n; i++) {
    if (i != 0) cx_text_append_n(out, ", ", 2);
    cx_hlo_attr_print(out, attr->as.list.items[i]);
  }
  cx_text_char(out, ']');
}

void cx_hlo_named_print(cx_text *out, cx_hlo_str name, const cx_hlo_attr *attr)
{
  print_name(out, name);
  if (attr->kind == CX_HLO_ATTR_UNIT) return;
  cx_text_append_n(out, " = ", 3);
  cx_hlo_attr_print(out, attr);
}

void cx_hlo_dict_print(cx_text *out, const cx_hlo_named *items, size_t n)
{
  cx_text_char(out, '{');
  for (size_t i = 0; i < n; i++) {
    if (i != 0) cx_text_append_n(out, ", ", 2);
    cx_hlo_named_print(out, items[i].name, items[i].attr);
  }
  cx_text_char(out, '}');
}

static void print_number(cx_text *out, const cx_hlo_attr *attr)
{
  if (attr->kind == CX_HLO_ATTR_INT) {
    cx_hlo_print_element(out, attr->elem, &attr->as.integer);
  } else {
    cx_hlo_print_real(out, attr->elem, attr->as.bits);
  }
  cx_text_append_n(out, " : ", 3);
  cx_text_append(out, cx_hlo_elem_name(attr->elem));
}

void cx_hlo_attr_print(cx_text *out, const cx_hlo_attr *attr)
{
  switch (attr->kind) {
    case CX_HLO_ATTR_UNIT: cx_text_append(out, "unit"); break;
    case CX_HLO_ATTR_BOOL:
      cx_text_append(out, attr->as.flag ? "true" : "false");
      break;
    case CX_HLO_ATTR_INT:
    case CX_HLO_ATTR_FLOAT: print_number(out, attr); break;
    case CX_HLO_ATTR_STRING: cx_hlo_string_print(out, attr->as.text); break;
    case CX_HLO_ATTR_SYMBOL:
      cx_text_char(out, '@');
      print_name(out, attr->as.text);
      break;
    case CX_HLO_ATTR_TYPE: cx_hlo_any_print(out, &attr->as.type); break;
    case CX_HLO_ATTR_ELEMENTS: print_elements(out, &attr->as.elements); break;
    case CX_HLO_ATTR_ARRAY: print_array(out, attr); break;
    case CX_HLO_ATTR_LIST: print_list(out, attr); break;
    case CX_HLO_ATTR_DICT:
      cx_hlo_dict_print(out, attr->as.dict.items, attr->as.dict.n);
      break;
    case CX_HLO_ATTR_CHOICE:
      cx_text_format(
          out, "#stablehlo<%s %s>",
          cx_hlo_choice_name((cx_hlo_choice)attr->which),
          cx_hlo_choice_value((cx_hlo_choice)attr->which, attr->as.integer));
      break;
    case CX_HLO_ATTR_STRUCT: print_struct(out, attr); break;
    case CX_HLO_ATTR_CONV: print_conv(out, attr->as.conv); break;
    case CX_HLO_ATTR_TEXT:
    case CX_HLO_ATTR_MATRIX:
    case CX_HLO_ATTR_ANY:
      cx_text_append_n(out, attr->as.text.s, attr->as.text.n);
      break;
  }
}
