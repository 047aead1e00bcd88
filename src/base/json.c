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
