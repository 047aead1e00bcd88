// base/json: strings and numbers in the form of RFC 8259.
#include "base/json.h"

#include <math.h>

void cx_json_string(cx_text *out, const char *s)
{
  cx_text_char(out, '"');
  for (const unsigned char *p = (const unsigned char *)s; *p != '\0';) {
    size_t n = cx_text_utf8(p);
    if (*p == '"' || *p == '\\') {
      cx_text_char(out, '\\');
      cx_text_char(out, (char)*p);
    } else if (*p < 0x20) {
      cx_text_format(out, "\\u%04x", *p);
    } else if (n == 0) {
      cx_text_char(out, '?');
    } else {
      cx_text_append_n(out, (const char *)p, n);
    }
    p += n == 0 ? 1 : n;
  }
  cx_text_char(out, '"');
}

void cx_json_number(cx_text *out, double value)
{
  cx_text_real(out, "%.9g", isfinite(value) ? value : 0);
}

void cx_json_key(cx_text *out, const char *name)
{
  if (out->size > 0 && out->data[out->size - 1] != '{') cx_text_char(out, ',');
  cx_json_string(out, name);
  cx_text_char(out, ':');
}

void cx_json_key_string(cx_text *out, const char *name, const char *s)
{
  cx_json_key(out, name);
  cx_json_string(out, s);
}

void cx_json_key_number(cx_text *out, const char *name, double value)
{
  cx_json_key(out, name);
  cx_json_number(out, value);
}

void cx_json_key_int(cx_text *out, const char *name, int64_t value)
{
  cx_json_key(out, name);
  cx_text_int(out, value);
}

void cx_json_key_site(cx_text *out, const char *name, const char *file,
                      int line)
{
  cx_text site = { 0 };
  if (file != NULL) cx_text_format(&site, "%s:%d", file, line);
  cx_json_key_string(out, name, cx_text_str(&site));
  out->failed |= site.failed;
  cx_text_free(&site);
}
