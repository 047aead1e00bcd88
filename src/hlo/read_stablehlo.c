// hlo/reader: the attributes of StableHLO itself, by the tables of ops.def.
#include <string.h>

#include "hlo/number.h"
#include "hlo/reader.h"

// ---- structs ----

// elem ::= bare element type
static calx_status *read_elem_field(cx_hlo_reader *r, int64_t *out)
{
  cx_hlo_str word = { NULL, 0 };
  const char *at = r->scan.at;
  if (cx_hlo_scan_word(&r->scan, &word)) {
    *out = cx_hlo_elem_parse(word.s, word.n);
    if (*out != CX_HLO_INVALID) return NULL;
  }
  r->scan.at = at;
  return cx_hlo_scan_expected(&r->scan, "an element type");
}

// mode ::= ('#stablehlo.' family)? '<' value '>' | value
static calx_status *read_mode_field(cx_hlo_reader *r, int64_t *out)
{
  cx_hlo_scan *s = &r->scan;
  cx_hlo_str word = { NULL, 0 };
  if (cx_hlo_scan_accept(s, "#")) {
    const cx_hlo_str name = cx_hlo_scan_suffix(s);
    if (!cx_hlo_str_equal(name, "stablehlo.result_accuracy_mode")) {
      return cx_hlo_scan_expected(s, "#stablehlo.result_accuracy_mode");
    }
  }
  const bool bracket = cx_hlo_scan_accept(s, "<");
  const char *at = s->at;
  *out = -1;
  if (cx_hlo_scan_word(s, &word)) {
    *out = cx_hlo_choice_find(CX_HLO_ACCURACY_MODE, word.s, word.n);
  }
  if (*out < 0) {
    s->at = at;
    return cx_hlo_scan_expected(s, "DEFAULT, HIGHEST or TOLERANCE");
  }
  return bracket ? cx_hlo_scan_need(s, ">") : NULL;
}

static calx_status *read_real_field(cx_hlo_reader *r, double *out)
{
  const cx_hlo_str number = cx_hlo_scan_number(&r->scan);
  if (cx_hlo_read_real(number.s, number.n, out)) return NULL;
  return cx_hlo_scan_expected(&r->scan, "a number");
}

static calx_status *read_field(cx_hlo_reader *r, cx_hlo_field_kind kind,
                               void *at)
{
  switch (kind) {
    case CX_HLO_FIELD_INTS:
    case CX_HLO_FIELD_LIST: return cx_hlo_read_ints(r, at);
    case CX_HLO_FIELD_INT: return cx_hlo_scan_int(&r->scan, at);
    case CX_HLO_FIELD_FLAG: return cx_hlo_scan_bool(&r->scan, at);
    case CX_HLO_FIELD_ELEM: return read_elem_field(r, at);
    case CX_HLO_FIELD_REAL: return read_real_field(r, at);
    case CX_HLO_FIELD_MODE: return read_mode_field(r, at);
  }
  return NULL;
}

// fields ::= (name '=' value (',' name '=' value)*)? '>', in any order. Fields
// that are absent are 0 or empty.
static calx_status *read_fields(cx_hlo_reader *r, cx_hlo_struct which,
                                void *out)
{
  cx_hlo_scan *s = &r->scan;
  const cx_hlo_struct_info info = cx_hlo_struct_info_of(which);
  bool first = true;
  memset(out, 0, info.size);
  while (!cx_hlo_scan_accept(s, ">")) {
    cx_hlo_str name = { NULL, 0 };
    if (!first) CALX_TRY(cx_hlo_scan_need(s, ","));
    first = false;
    const char *at = s->at;
    if (!cx_hlo_scan_word(s, &name)) return cx_hlo_scan_expected(s, "a field");
    size_t i = 0;
    while (i < info.n_fields && !cx_hlo_str_equal(name, info.fields[i].name)) {
      i++;
    }
    if (i == info.n_fields) {
      return CX_HLO_FAIL(r, at, "#stablehlo.%s has no field '%.*s'", info.name,
                         (int)name.n, name.s);
    }
    CALX_TRY(cx_hlo_scan_need(s, "="));
    CALX_TRY(read_field(r, info.fields[i].kind,
                        (char *)out + info.fields[i].offset));
  }
  return NULL;
}

calx_status *cx_hlo_read_struct(cx_hlo_reader *r, cx_hlo_struct which,
                                const cx_hlo_attr **out)
{
  const size_t size = cx_hlo_struct_info_of(which).size;
  cx_hlo_attr *attr = cx_hlo_attr_new(r->module, CX_HLO_ATTR_STRUCT);
  void *fields = cx_arena_alloc(&r->module->arena, size);
  if (attr == NULL || fields == NULL) return cx_out_of_memory();
  CALX_TRY(read_fields(r, which, fields));
  attr->which = (int)which;
  attr->as.fields = fields;
  *out = attr;
  return NULL;
}

// ---- convolutions ----

// Every dimension occurs once. The printer relies on it.
static calx_status *check_side(cx_hlo_reader *r, const char *at, int64_t first,
                               int64_t second, cx_hlo_ints spatial)
{
  const int64_t rank = (int64_t)spatial.n + 2;
  bool ok = rank <= 64 && first >= 0 && first < rank && second >= 0 &&
            second < rank && first != second;
  uint64_t taken = ok ? UINT64_C(1) << first | UINT64_C(1) << second : 0;
  for (size_t i = 0; ok && i < spatial.n; i++) {
    const int64_t d = spatial.v[i];
    ok = d >= 0 && d < rank && (taken >> d & 1) == 0;
    if (ok) taken |= UINT64_C(1) << d;
  }
  if (ok) return NULL;
  return CX_HLO_FAIL(r, at,
                     "a dimension of the convolution has no meaning, or "
                     "two");
}

// side ::= '[' entry (',' entry)* ']', entry = letter | integer. Entry i says
// what dimension i is: batch, feature or the n-th spatial dimension.
static calx_status *read_side(cx_hlo_reader *r, char first, char second,
                              int64_t *out_first, int64_t *out_second,
                              cx_hlo_ints *out_spatial)
{
  cx_hlo_scan *s = &r->scan;
  const size_t mark = r->int_stack.n;
  int64_t d = 0;
  *out_first = *out_second = -1;
  CALX_TRY(cx_hlo_scan_need(s, "["));
  const char *from = s->at;
  do {
    int64_t n = 0;
    const char c = cx_hlo_scan_peek(s);
    if (c == first || c == second) {
      s->at++;
      *(c == first ? out_first : out_second) = d++;
      continue;
    }
    CALX_TRY(cx_hlo_scan_int(s, &n));
    if (n < 0 || n > 64) return CX_HLO_FAIL(r, s->at, "no spatial dimension");
    while (r->int_stack.n <= mark + (size_t)n) {
      CALX_TRY(CX_HLO_PUSH(r->int_stack, -1));
    }
    r->int_stack.v[mark + (size_t)n] = d++;
  } while (cx_hlo_scan_accept(s, ","));
  CALX_TRY(cx_hlo_scan_need(s, "]"));
  out_spatial->n = r->int_stack.n - mark;
  CALX_TRY(CX_HLO_TAKE(r, r->int_stack, mark, &out_spatial->v));
  return check_side(r, from, *out_first, *out_second, *out_spatial);
}

calx_status *cx_hlo_check_conv(cx_hlo_reader *r, const char *at,
                               const cx_hlo_conv_numbers *c)
{
  CALX_TRY(
      check_side(r, at, c->input_batch, c->input_feature, c->input_spatial));
  CALX_TRY(
      check_side(r, at, c->kernel_input, c->kernel_output, c->kernel_spatial));
  return check_side(r, at, c->output_batch, c->output_feature,
                    c->output_spatial);
}

// conv<raw …>: the fields by their names
static calx_status *read_raw_conv(cx_hlo_reader *r, cx_hlo_conv_numbers *c)
{
  const char *from = r->scan.at;
  CALX_TRY(read_fields(r, CX_HLO_STRUCT_CONV_RAW, c));
  return cx_hlo_check_conv(r, from, c);
}

static cx_hlo_conv_numbers *new_conv(cx_hlo_reader *r, const cx_hlo_attr **out)
{
  cx_hlo_attr *attr = cx_hlo_attr_new(r->module, CX_HLO_ATTR_CONV);
  cx_hlo_conv_numbers *c = CX_ARENA_NEW(&r->module->arena, cx_hlo_conv_numbers);
  if (attr == NULL || c == NULL) return NULL;
  attr->as.conv = c;
  *out = attr;
  return c;
}

// sides ::= side 'x' side '->' side
calx_status *cx_hlo_read_conv_sides(cx_hlo_reader *r, const cx_hlo_attr **out)
{
  cx_hlo_conv_numbers *c = new_conv(r, out);
  if (c == NULL) return cx_out_of_memory();
  CALX_TRY(read_side(r, 'b', 'f', &c->input_batch, &c->input_feature,
                     &c->input_spatial));
  CALX_TRY(cx_hlo_scan_need(&r->scan, "x"));
  CALX_TRY(read_side(r, 'i', 'o', &c->kernel_input, &c->kernel_output,
                     &c->kernel_spatial));
  CALX_TRY(cx_hlo_scan_need(&r->scan, "->"));
  return read_side(r, 'b', 'f', &c->output_batch, &c->output_feature,
                   &c->output_spatial);
}

// conv ::= sides '>' | 'raw' fields, from behind the '<'
static calx_status *read_conv(cx_hlo_reader *r, const cx_hlo_attr **out)
{
  if (!cx_hlo_scan_accept_word(&r->scan, "raw")) {
    CALX_TRY(cx_hlo_read_conv_sides(r, out));
    return cx_hlo_scan_need(&r->scan, ">");
  }
  cx_hlo_conv_numbers *c = new_conv(r, out);
  return c == NULL ? cx_out_of_memory() : read_raw_conv(r, c);
}

// ---- enumerations ----

calx_status *cx_hlo_read_choice(cx_hlo_reader *r, cx_hlo_choice family,
                                const cx_hlo_attr **out)
{
  cx_hlo_scan *s = &r->scan;
  cx_hlo_str word = { NULL, 0 };
  const char *at = cx_hlo_scan_here(s);
  int64_t value = -1;
  if (cx_hlo_scan_word(s, &word)) {
    value = cx_hlo_choice_find(family, word.s, word.n);
  }
  if (value < 0) {
    return CX_HLO_FAIL(r, at, "expected a value of %s",
                       cx_hlo_choice_name(family));
  }
  return cx_hlo_reader_attr(cx_hlo_attr_choice(r->module, family, value), out);
}

// The value of a known family, and '>'.
static calx_status *read_choice(cx_hlo_reader *r, cx_hlo_choice family,
                                const cx_hlo_attr **out)
{
  CALX_TRY(cx_hlo_read_choice(r, family, out));
  return cx_hlo_scan_need(&r->scan, ">");
}

// 'stablehlo' '<' family value '>', from behind the '<'. *out_known: the family
// is known.
static calx_status *read_long_choice(cx_hlo_reader *r, bool *out_known,
                                     const cx_hlo_attr **out)
{
  cx_hlo_str word = { NULL, 0 };
  *out_known = false;
  if (!cx_hlo_scan_word(&r->scan, &word)) return NULL;
  const cx_hlo_choice family = cx_hlo_choice_family(word.s, word.n);
  if (family == CX_HLO_CHOICE_COUNT) return NULL;
  *out_known = true;
  return read_choice(r, family, out);
}

// stablehlo ::= 'stablehlo' '<' family value '>'
//             | 'stablehlo.' family '<' value '>'
//             | 'stablehlo.' struct '<' fields | 'stablehlo.conv' '<' conv
calx_status *cx_hlo_read_stablehlo(cx_hlo_reader *r, const char *from,
                                   const cx_hlo_attr **out)
{
  static const size_t prefix = sizeof "stablehlo." - 1;
  cx_hlo_scan *s = &r->scan;
  cx_hlo_str name = cx_hlo_scan_suffix(s);
  const char *bracket = s->at;
  bool known = true;
  calx_status *status = NULL;
  if (bracket < s->end && *bracket == '<') s->at++;
  name = name.n < prefix ? (cx_hlo_str){ "", 0 }
                         : (cx_hlo_str){ name.s + prefix, name.n - prefix };
  const cx_hlo_struct which = cx_hlo_struct_find(name.s, name.n);
  const cx_hlo_choice family = cx_hlo_choice_family(name.s, name.n);
  if (s->at == bracket) {
    known = false;
  } else if (name.n == 0) {
    status = read_long_choice(r, &known, out);
  } else if (cx_hlo_str_equal(name, "conv")) {
    status = read_conv(r, out);
  } else if (which != CX_HLO_STRUCT_COUNT) {
    status = cx_hlo_read_struct(r, which, out);
  } else if (family != CX_HLO_CHOICE_COUNT) {
    status = read_choice(r, family, out);
  } else {
    known = false;
  }
  if (known) return status;
  s->at = bracket;
  if (bracket < s->end && *bracket == '<') CALX_TRY(cx_hlo_scan_balanced(s));
  return cx_hlo_read_text(r, from, out);
}
