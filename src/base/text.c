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
