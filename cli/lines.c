// cli/lines: see lines.h.
#include "lines.h"

#define MESSAGE_LIMIT 4000

bool cx_cli_line_read(FILE *file, cx_text *out)
{
  cx_text_clear(out);
  int c = getc_unlocked(file);
  if (c == EOF) return false;
  for (; c != EOF && c != '\n'; c = getc_unlocked(file)) {
    if (out->size <= CX_CLI_LINE_LIMIT) cx_text_char(out, (char)c);
  }
  return true;
}

static bool is_blank(char c)
{
  return c == ' ' || c == '\t' || c == '\r';
}

bool cx_cli_line_word(const cx_text *line, size_t *at, const char **out_word,
                      size_t *out_size)
{
  size_t i = *at;
  while (i < line->size && is_blank(line->data[i])) i++;
  size_t start = i;
  while (i < line->size && !is_blank(line->data[i])) i++;
  *at = i;
  *out_word = line->data + start;
  *out_size = i - start;
  return i > start;
}

void cx_cli_line_append(cx_text *out, const char *message)
{
  size_t n = 0;
  bool broken = false;  // a line break not yet written
  for (const char *p = message; *p != '\0'; p++, n++) {
    bool inside = ((unsigned char)*p & 0xC0) == 0x80;  // a UTF-8 character
    if (n >= MESSAGE_LIMIT && !inside) break;
    if (*p == '\n' || *p == '\r') {
      broken = true;
      continue;
    }
    if (broken && is_blank(*p)) continue;  // a line's indentation
    if (broken && n > 0) cx_text_append(out, "; ");
    broken = false;
    cx_text_char(out, (unsigned char)*p < ' ' ? ' ' : *p);
  }
  if (message[n] != '\0') cx_text_append(out, " …");
}
