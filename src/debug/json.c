// debug/json: strings and numbers as JSON wants them (RFC 8259), and texts as
// terminals bear them.
#include "debug/json.h"

#include <math.h>
#include <string.h>

#include "debug/real.h"

// Bytes of the UTF-8 sequence at s (RFC 3629); 0: there is none.
static size_t sequence(const unsigned char *s)
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

void cx_debug_json_string(cx_text *out, const char *s)
{
  cx_text_char(out, '"');
  for (const unsigned char *p = (const unsigned char *)s; *p != '\0';) {
    size_t n = sequence(p);
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

void cx_debug_json_number(cx_text *out, double value)
{
  cx_debug_real(out, "%.9g", isfinite(value) ? value : 0);
}

void cx_debug_plain(const char *from, size_t n, char *out, size_t size)
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
    size_t bytes = sequence(p);
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
