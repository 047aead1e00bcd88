// train/model_checkpoint_name: "{epoch}-{val_loss:.2f}" with its values, as
// Python formats them.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "loggers/number.h"
#include "train/model_checkpoint.h"

// [[fill]align][sign][0][width][.precision][type]
typedef struct number_format {
  char fill, align, sign;  // 0: not given
  int width, precision;    // of the precision -1: not given
  char type;               // 0: not given
} number_format;

typedef struct name_field {
  const char *name, *format, *end;  // the format is behind the colon
  size_t length;                    // of the name
} name_field;

// ---- reading ----------------------------------------------------------------

static bool is_one_of(char c, const char *set)
{
  return c != '\0' && strchr(set, c) != NULL;
}

// Up to two digits: no number of a file's name is longer.
static const char *read_digits(const char *p, int *out)
{
  int n = 0;
  for (; n < 2 && *p >= '0' && *p <= '9'; n++, p++) *out = *out * 10 + *p - '0';
  return p;
}

static bool read_format(const name_field *field, number_format *out)
{
  const char *p = field->format;
  *out = (number_format){ .precision = -1 };
  if (*p != '\0' && is_one_of(p[1], "<>^=")) out->fill = *p++;
  if (is_one_of(*p, "<>^=")) out->align = *p++;
  if (is_one_of(*p, "+- ")) out->sign = *p++;
  if (*p == '0') {
    if (out->align == 0) out->fill = '0', out->align = '=';
    p++;
  }
  p = read_digits(p, &out->width);
  if (*p == '.') {
    out->precision = 0;
    const char *digits = p + 1;
    p = read_digits(digits, &out->precision);
    if (p == digits) return false;
  }
  if (is_one_of(*p, "dfFeEgG%")) out->type = *p++;
  return p == field->end;
}

// The field whose brace is at p.
static calx_status *read_field(const char *all, const char *p, name_field *out)
{
  const char *end = p + 1 + strcspn(p + 1, "{}");
  if (*p != '{' || *end != '}') {
    return cx_invalid(
        "model_checkpoint: `filename` is '%s': its '%c' has no '%c'", all, *p,
        *p == '{' ? '}' : '{');
  }
  const char *colon = memchr(p, ':', (size_t)(end - p));
  out->name = p + 1;
  out->length = (size_t)((colon != NULL ? colon : end) - out->name);
  out->format = colon != NULL ? colon + 1 : end;
  out->end = end;
  if (out->length > 0) return NULL;
  return cx_invalid(
      "model_checkpoint: `filename` is '%s': a field names a value, as {epoch}",
      all);
}

static calx_status *read_whole(const char *all, const char *p,
                               name_field *field, number_format *format)
{
  CALX_TRY(read_field(all, p, field));
  if (read_format(field, format)) return NULL;
  return cx_invalid(
      "model_checkpoint: `filename` is '%s': the format '%.*s' is none of "
      "[[fill]align][sign][0][width][.precision][type] with the types d f e g %%",
      all, (int)(field->end - field->format), field->format);
}

calx_status *cx_train_check_name(const char *name)
{
  name_field field;
  number_format format;
  for (const char *p = name + strcspn(name, "{}"); *p != '\0';) {
    CALX_TRY(read_whole(name, p, &field, &format));
    p = field.end + 1;
    p += strcspn(p, "{}");
  }
  return NULL;
}

// ---- numbers ----------------------------------------------------------------

static void put_with(cx_text *out, int precision, char type, double value)
{
  char format[16];
  snprintf(format, sizeof format, "%%.%d%c", precision, type);
  cx_text_real(out, format, value);
}

// A precision without a type: as g, but a number without exponent keeps a digit
// behind its point, and one with it begins a place earlier.
static void put_significant(cx_text *out, int precision, double value)
{
  const int digits = precision > 0 ? precision : 1;
  cx_text scientific = { 0 };
  put_with(&scientific, digits - 1, 'e', value);
  const char *text = cx_text_str(&scientific), *e = strchr(text, 'e');
  const long exponent = e != NULL ? strtol(e + 1, NULL, 10) : 0;
  if (e != NULL && (exponent < -4 || exponent >= digits - 1)) {
    size_t n = (size_t)(e - text);
    while (digits > 1 && text[n - 1] == '0') n--;
    cx_text_append_n(out, text, text[n - 1] == '.' ? n - 1 : n);
    cx_text_append(out, e);
  } else {
    const size_t from = out->size;
    put_with(out, digits, 'g', value);
    if (e != NULL && strchr(cx_text_str(out) + from, '.') == NULL) {
      cx_text_append(out, ".0");
    }
  }
  cx_text_free(&scientific);
}

// Of a number that is not negative.
static calx_status *put_body(cx_text *out, const number_format *f,
                             double number, bool is_integer)
{
  if (is_integer && (f->type == 0 || f->type == 'd')) {
    if (f->precision >= 0) {
      return cx_invalid("Precision not allowed in integer format specifier");
    }
    cx_text_int(out, (int64_t)number);
  } else if (f->type == 'd') {
    return cx_invalid("Unknown format code 'd' for object of type 'float'");
  } else if (f->type == 0 && f->precision >= 0) {
    put_significant(out, f->precision, number);
  } else if (f->type == 0) {
    cx_loggers_put_real(out, number);
  } else {
    const bool share = f->type == '%';
    put_with(out, f->precision >= 0 ? f->precision : 6, share ? 'f' : f->type,
             share ? 100 * number : number);
    if (share) cx_text_char(out, '%');
  }
  return NULL;
}

static void put_fill(cx_text *out, char fill, size_t n)
{
  for (; n > 0; n--) cx_text_char(out, fill != 0 ? fill : ' ');
}

static calx_status *put_number(cx_text *out, const number_format *f,
                               const calx_logged_value *v)
{
  cx_text body = { 0 };
  const bool negative = signbit(v->value) != 0 && !isnan(v->value);
  const char sign = negative ? '-' : f->sign == '-' ? '\0' : f->sign;
  calx_status *status = put_body(&body, f, fabs(v->value), v->is_integer);
  const size_t size = body.size + (sign != '\0'), width = (size_t)f->width;
  const size_t more = width > size ? width - size : 0;
  const size_t before = f->align == '<' ? 0 : f->align == '^' ? more / 2 : more;
  if (f->align != '=') put_fill(out, f->fill, before);
  if (sign != '\0') cx_text_char(out, sign);
  if (f->align == '=') put_fill(out, f->fill, before);
  cx_text_append(out, cx_text_str(&body));
  put_fill(out, f->fill, more - before);
  if (cx_text_failed(&body)) out->failed = true;
  cx_text_free(&body);
  return status;
}

// ---- names ------------------------------------------------------------------

static calx_status *put_field(cx_text *out, const name_field *field,
                              const number_format *format, bool inserts_names,
                              cx_train_value_fn *value_of, void *user)
{
  char *name = cx_strndup(field->name, field->length);
  if (name == NULL) return cx_out_of_memory();
  const calx_logged_value value = value_of(user, name);
  if (inserts_names) cx_text_format(out, "%s=", name);
  calx_status *status = cx_annotate(
      put_number(out, format, &value),
      "while the value of '%s' was put into a checkpoint's name", name);
  cx_free(name);
  return status;
}

calx_status *cx_train_put_name(cx_text *out, const char *name,
                               bool inserts_names, cx_train_value_fn *value_of,
                               void *user)
{
  name_field field;
  number_format format;
  for (const char *p = name; *p != '\0';) {
    const size_t plain = strcspn(p, "{}");
    cx_text_append_n(out, p, plain);
    p += plain;
    if (*p == '\0') break;
    CALX_TRY(read_whole(name, p, &field, &format));
    CALX_TRY(put_field(out, &field, &format, inserts_names, value_of, user));
    p = field.end + 1;
  }
  return cx_text_failed(out) ? cx_out_of_memory() : NULL;
}
