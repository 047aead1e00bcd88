// base/text: appends grow by half; a failure sticks.
#include "base/text.h"

#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"

// Room for n more bytes and the final zero.
static bool reserve(cx_text *text, size_t n)
{
  if (text->failed) return false;
  size_t need;
  if (!cx_add_size(text->size, n, &need) || !cx_add_size(need, 1, &need) ||
      !cx_grow(&text->data, &text->capacity, need, 1)) {
    text->failed = true;
  }
  return !text->failed;
}

void cx_text_append_n(cx_text *text, const char *s, size_t n)
{
  if (!reserve(text, n)) return;
  if (n != 0) memcpy(text->data + text->size, s, n);
  text->size += n;
  text->data[text->size] = '\0';
}

void cx_text_append(cx_text *text, const char *s)
{
  cx_text_append_n(text, s, strlen(s));
}

void cx_text_char(cx_text *text, char c)
{
  cx_text_append_n(text, &c, 1);
}

void cx_text_int(cx_text *text, int64_t value)
{
  char digits[24];
  char *p = digits + sizeof digits;
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  do {
    *--p = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  if (value < 0) *--p = '-';
  cx_text_append_n(text, p, (size_t)(digits + sizeof digits - p));
}

void cx_text_format_v(cx_text *text, const char *format, va_list args)
{
  va_list again;
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, args);
  if (n < 0) {
    text->failed = true;
  } else if (reserve(text, (size_t)n)) {
    vsnprintf(text->data + text->size, (size_t)n + 1, format, again);
    text->size += (size_t)n;
  }
  va_end(again);
}

void cx_text_format(cx_text *text, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  cx_text_format_v(text, format, args);
  va_end(args);
}

void cx_text_numbers_add(cx_text_numbers *numbers, int number)
{
  const int limit = (int)(sizeof numbers->shown / sizeof *numbers->shown);
  if (numbers->count < limit) numbers->shown[numbers->count] = number;
  numbers->count++;
}

void cx_text_append_numbers(cx_text *text, const char *one, const char *many,
                            const cx_text_numbers *numbers)
{
  const int limit = (int)(sizeof numbers->shown / sizeof *numbers->shown);
  cx_text_append(text, numbers->count == 1 ? one : many);
  for (int i = 0; i < numbers->count && i < limit; i++) {
    cx_text_format(text, i > 0 ? ", %d" : " %d", numbers->shown[i]);
  }
  if (numbers->count > limit) {
    cx_text_format(text, " and %d more", numbers->count - limit);
  }
}

void cx_text_clear(cx_text *text)
{
  text->size = 0;
  text->failed = false;
  if (text->data != NULL) text->data[0] = '\0';
}

void cx_text_free(cx_text *text)
{
  cx_free(text->data);
  *text = (cx_text){ 0 };
}

bool cx_text_failed(const cx_text *text)
{
  return text->failed;
}

const char *cx_text_str(const cx_text *text)
{
  return text->data != NULL ? text->data : "";
}

char *cx_text_take(cx_text *text)
{
  if (text->data == NULL && !text->failed) cx_text_append_n(text, "", 0);
  char *data = text->failed ? NULL : text->data;
  if (data == NULL) cx_free(text->data);
  *text = (cx_text){ 0 };
  return data;
}

void cx_text_real(cx_text *text, const char *format, double value)
{
  size_t from = text->size;
  cx_text_format(text, format, value);
  for (size_t i = from; i < text->size; i++) {
    if (text->data[i] == ',') text->data[i] = '.';
  }
}

// ---- columns ----------------------------------------------------------------

// The bytes of the character at s, which is not the end, and its columns.
static size_t character(const char *s, size_t *out_columns)
{
  // East Asian Width W and F of Unicode 15.
  static const uint32_t wide[][2] = {
    { 0x1100, 0x115f },   { 0x2e80, 0x303e },   { 0x3041, 0xa4cf },
    { 0xa960, 0xa97c },   { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },
    { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },
    { 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff }, { 0x1f900, 0x1f9ff },
    { 0x20000, 0x3fffd }
  };
  const unsigned char *u = (const unsigned char *)s;
  const size_t bytes = cx_text_utf8(u);
  *out_columns = 1;
  if (u[0] == 0x1b && u[1] == '[') {
    size_t n = 2 + strspn(s + 2, "0123456789;");
    *out_columns = 0;
    return s[n] == 'm' ? n + 1 : n;
  }
  if (bytes < 3) return bytes == 0 ? 1 : bytes;
  uint32_t code = u[0] & (0xffu >> (bytes + 1));
  for (size_t i = 1; i < bytes; i++) code = code << 6 | (u[i] & 0x3f);
  for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
    if (code >= wide[i][0] && code <= wide[i][1]) *out_columns = 2;
  }
  return bytes;
}

size_t cx_text_columns(const char *s)
{
  size_t sum = 0, columns;
  while (*s != '\0') {
    s += character(s, &columns);
    sum += columns;
  }
  return sum;
}

size_t cx_text_fit(const char *s, size_t columns)
{
  size_t at = 0, used = 0, more;
  while (s[at] != '\0') {
    const size_t bytes = character(s + at, &more);
    if (used + more > columns) break;
    used += more;
    at += bytes;
  }
  return at;
}

// ---- text from outside ------------------------------------------------------

size_t cx_text_utf8(const unsigned char *s)
{
  if (s[0] < 0x80) return 1;
  size_t n = s[0] >= 0xc2 && s[0] <= 0xdf   ? 2
             : s[0] >= 0xe0 && s[0] <= 0xef ? 3
             : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
                                            : 0;
  for (size_t i = 1; i < n; i++) {
    if (s[i] < 0x80 || s[i] > 0xbf) return 0;  // the final zero too
  }
  bool bad = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
             (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f);
  return n != 0 && !bad ? n : 0;
}

void cx_text_plain(const char *from, size_t n, char *out, size_t size)
{
  if (n > size - 1) {
    n = size - 1;
    while (n > 0 && ((unsigned char)from[n] & 0xc0) == 0x80) n--;  // UTF-8
  }
  memcpy(out, from, n);
  out[n] = '\0';
  char *to = out;
  for (size_t i = 0; i < n;) {
    const unsigned char *p = (const unsigned char *)out + i;
    size_t bytes = cx_text_utf8(p);
    bool control = *p < 0x20 || *p == 0x7f;
    bool dropped = bytes == 2 && p[0] == 0xc2 && p[1] < 0xa0;
    if (control || bytes == 0) {
      *to++ = control ? ' ' : '?';
    } else if (!dropped) {
      memmove(to, p, bytes);
      to += bytes;
    }
    i += bytes == 0 ? 1 : bytes;
  }
  *to = '\0';
}
