// hlo/scan: a cursor over MLIR's text.
#include "hlo/scan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// ---- errors ----

enum { SHOWN = 100 };  // characters of the source line

typedef struct text_position {
  size_t line, column;       // from 1
  const char *first, *last;  // of the line
} text_position;

static text_position find_position(const cx_hlo_scan *s, const char *at)
{
  text_position p = { 1, 1, s->start, s->end };
  for (const char *c = s->start; c < at; c++) {
    if (*c != '\n') continue;
    p.line++;
    p.first = c + 1;
  }
  const char *end = memchr(at, '\n', (size_t)(s->end - at));
  if (end != NULL) p.last = end;
  p.column = (size_t)(at - p.first) + 1;
  return p;
}

// The part of the line around `at`, and the caret under it.
static void show(char *out, size_t size, const text_position *p, const char *at)
{
  const char *from = p->first;
  if (at - from > SHOWN / 2) from = at - SHOWN / 2;
  const char *to = p->last - from > SHOWN ? from + SHOWN : p->last;
  size_t n = 0;
  for (const char *c = from; c < to && n + 1 < size; c++) {
    const unsigned char u = (unsigned char)*c;
    out[n++] = u < ' ' || u == 0x7f ? ' ' : *c;
  }
  n += (size_t)snprintf(out + n, size - n, "\n%*s^", (int)(at - from), "");
}

calx_status *cx_hlo_scan_fail(const cx_hlo_scan *s, const char *at,
                              calx_code code, const char *format, ...)
{
  char sentence[512];
  char lines[3 * SHOWN];
  va_list args;
  va_start(args, format);
  vsnprintf(sentence, sizeof sentence, format, args);
  va_end(args);
  if (s->is_binary) {
    return cx_error(code, "%s: byte %zu: %s", s->file, (size_t)(at - s->start),
                    sentence);
  }
  const text_position p = find_position(s, at);
  show(lines, sizeof lines, &p, at);
  return cx_error(code, "%s:%zu:%zu: %s\n%s", s->file, p.line, p.column,
                  sentence, lines);
}

calx_status *cx_hlo_scan_expected(cx_hlo_scan *s, const char *what)
{
  cx_hlo_scan_space(s);
  return cx_hlo_scan_fail(s, s->at, CALX_INVALID_ARGUMENT, "expected %s%s",
                          what, s->at == s->end ? ", found the end" : "");
}

// ---- characters ----

void cx_hlo_scan_blank(cx_hlo_scan *s)
{
  const char *at = s->at;
  for (; at < s->end; at++) {
    if (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r') continue;
    if (*at != '/' || at + 1 == s->end || at[1] != '/') break;
    const char *end = memchr(at, '\n', (size_t)(s->end - at));
    at = (end == NULL ? s->end : end) - 1;
  }
  s->at = at;
}

// The end of `text` where that is next; else NULL. Most texts have one
// character.
static const char *behind(cx_hlo_scan *s, const char *text)
{
  cx_hlo_scan_space(s);
  const char *at = s->at;
  for (; *text != '\0'; at++, text++) {
    if (at == s->end || *at != *text) return NULL;
  }
  return at;
}

bool cx_hlo_scan_sees(cx_hlo_scan *s, const char *text)
{
  return behind(s, text) != NULL;
}

bool cx_hlo_scan_accept(cx_hlo_scan *s, const char *text)
{
  const char *after = behind(s, text);
  if (after != NULL) s->at = after;
  return after != NULL;
}

calx_status *cx_hlo_scan_need(cx_hlo_scan *s, const char *text)
{
  if (cx_hlo_scan_accept(s, text)) return NULL;
  char what[32];
  snprintf(what, sizeof what, "'%s'", text);
  return cx_hlo_scan_expected(s, what);
}

static bool is_letter(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
  return c >= '0' && c <= '9';
}

// letter | digit | '_' | '$' | '.': a set of bits, 32 characters a word
static bool is_in_word(char c)
{
  static const uint32_t bits[8] = {
    0, 0x03ff4010, 0x87fffffe, 0x07fffffe, 0, 0, 0, 0,
  };
  const unsigned char u = (unsigned char)c;
  return (bits[u >> 5] >> (u & 31) & 1) != 0;
}

static int hex_value(char c)
{
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// ---- words and numbers ----

bool cx_hlo_scan_word(cx_hlo_scan *s, cx_hlo_str *out)
{
  const char c = cx_hlo_scan_peek(s);
  if (!is_letter(c) && c != '_') return false;
  const char *at = s->at;
  while (at < s->end && is_in_word(*at)) at++;
  *out = (cx_hlo_str){ s->at, (size_t)(at - s->at) };
  s->at = at;
  return true;
}

bool cx_hlo_scan_accept_word(cx_hlo_scan *s, const char *word)
{
  const char *after = behind(s, word);
  if (after == NULL || (after < s->end && is_in_word(*after))) return false;
  s->at = after;
  return true;
}

cx_hlo_str cx_hlo_scan_suffix(cx_hlo_scan *s)
{
  const char *from = s->at;
  const bool number = from < s->end && is_digit(*from);
  while (s->at < s->end &&
         (number ? is_digit(*s->at) : is_in_word(*s->at) || *s->at == '-')) {
    s->at++;
  }
  return (cx_hlo_str){ from, (size_t)(s->at - from) };
}

calx_status *cx_hlo_scan_int(cx_hlo_scan *s, int64_t *out)
{
  cx_hlo_scan_space(s);
  const char *from = s->at;
  const bool negative = s->at < s->end && *s->at == '-';
  s->at += negative;
  const bool hex = s->end - s->at > 2 && s->at[0] == '0' && s->at[1] == 'x' &&
                   hex_value(s->at[2]) >= 0;
  if (hex) s->at += 2;
  const uint64_t base = hex ? 16 : 10;
  const char *digits = s->at;
  uint64_t v = 0;
  bool overflow = false;
  for (; s->at < s->end; s->at++) {
    const int d = hex_value(*s->at);
    if (d < 0 || d >= (int)base) break;
    overflow |= __builtin_mul_overflow(v, base, &v);
    overflow |= __builtin_add_overflow(v, (uint64_t)d, &v);
  }
  if (s->at == digits) {
    s->at = from;
    return cx_hlo_scan_expected(s, "an integer");
  }
  if (overflow || (negative && v > (uint64_t)1 << 63)) {
    return cx_hlo_scan_fail(s, from, CALX_INVALID_ARGUMENT,
                            "the integer does not fit into 64 bits");
  }
  *out = (int64_t)(negative ? 0 - v : v);
  return NULL;
}

calx_status *cx_hlo_scan_bool(cx_hlo_scan *s, int64_t *out)
{
  *out = cx_hlo_scan_accept_word(s, "true");
  if (*out || cx_hlo_scan_accept_word(s, "false")) return NULL;
  return cx_hlo_scan_expected(s, "true or false");
}

calx_status *cx_hlo_scan_int_or_bool(cx_hlo_scan *s, int64_t *out)
{
  *out = cx_hlo_scan_accept_word(s, "true");
  if (*out || cx_hlo_scan_accept_word(s, "false")) return NULL;
  return cx_hlo_scan_int(s, out);
}

cx_hlo_str cx_hlo_scan_number(cx_hlo_scan *s)
{
  cx_hlo_scan_space(s);
  const char *from = s->at;
  const char *c = from;
  const char *end = s->end;
  if (c < end && (*c == '-' || *c == '+')) c++;
  const char *digits = c;
  while (c < end && is_digit(*c)) c++;
  if (c == digits) return (cx_hlo_str){ from, 0 };
  if (c < end && *c == '.') {
    for (c++; c < end && is_digit(*c);) c++;
  }
  if (c < end && (*c == 'e' || *c == 'E')) {
    const char *e = c + 1;
    if (e < end && (*e == '-' || *e == '+')) e++;
    if (e < end && is_digit(*e)) {
      while (e < end && is_digit(*e)) e++;
      c = e;
    }
  }
  s->at = c;
  return (cx_hlo_str){ from, (size_t)(c - from) };
}

// ---- strings and brackets ----

calx_status *cx_hlo_scan_quoted(cx_hlo_scan *s, cx_hlo_str *out)
{
  if (cx_hlo_scan_peek(s) != '"') return cx_hlo_scan_expected(s, "a string");
  const char *from = s->at;
  const char *c = from + 1;
  const char *end = memchr(c, '"', (size_t)(s->end - c));
  // Long strings are blobs, which have no escapes: memchr() is fast.
  const bool plain = end != NULL &&
                     memchr(c, '\\', (size_t)(end - c)) == NULL &&
                     memchr(c, '\n', (size_t)(end - c)) == NULL;
  if (plain) c = end;
  for (; c < s->end && *c != '\n'; c++) {
    if (*c == '\\') {
      c++;
    } else if (*c == '"') {
      s->at = c + 1;
      *out = (cx_hlo_str){ from, (size_t)(s->at - from) };
      return NULL;
    }
  }
  return cx_hlo_scan_fail(s, from, CALX_INVALID_ARGUMENT,
                          "the string does not end on its line");
}

// The character that an escape at `c` stands for, and how long it is.
static int unescape(const char *c, const char *end, size_t *out_n)
{
  *out_n = 2;
  switch (end - c < 2 ? '\0' : c[1]) {
    case '"': return '"';
    case '\\': return '\\';
    case 'n': return '\n';
    case 't': return '\t';
    default: break;
  }
  if (end - c < 3 || hex_value(c[1]) < 0 || hex_value(c[2]) < 0) return -1;
  *out_n = 3;
  return hex_value(c[1]) * 16 + hex_value(c[2]);
}

calx_status *cx_hlo_scan_string(cx_hlo_scan *s, cx_arena *arena,
                                cx_hlo_str *out)
{
  cx_hlo_str quoted = { NULL, 0 };
  CALX_TRY(cx_hlo_scan_quoted(s, &quoted));
  const char *c = quoted.s + 1;
  const char *end = quoted.s + quoted.n - 1;
  char *copy = cx_arena_alloc(arena, quoted.n);
  if (copy == NULL) return cx_out_of_memory();
  size_t n = 0;
  while (c < end) {
    if (*c != '\\') {
      copy[n++] = *c++;
      continue;
    }
    size_t length = 0;
    const int value = unescape(c, end, &length);
    if (value < 0) {
      return cx_hlo_scan_fail(s, c, CALX_INVALID_ARGUMENT,
                              "no such escape in a string");
    }
    copy[n++] = (char)value;
    c += length;
  }
  *out = (cx_hlo_str){ copy, n };
  return NULL;
}

enum { DEEPEST = 256 };  // brackets in brackets

static char closing(char c)
{
  switch (c) {
    case '(': return ')';
    case '[': return ']';
    case '{': return '}';
    case '<': return '>';
    default: return '\0';
  }
}

calx_status *cx_hlo_scan_balanced(cx_hlo_scan *s)
{
  char wanted[DEEPEST];
  size_t depth = 0;
  const char *from = s->at;
  if (closing(cx_hlo_scan_peek(s)) == '\0') {
    return cx_hlo_scan_expected(s, "a bracket");
  }
  do {
    const char c = cx_hlo_scan_peek(s);
    cx_hlo_str string;
    if (c == '"') {
      CALX_TRY(cx_hlo_scan_quoted(s, &string));
      continue;
    }
    if (s->at == s->end) break;
    if (closing(c) != '\0') {
      if (depth == DEEPEST) {
        return cx_hlo_scan_fail(s, s->at, CALX_INVALID_ARGUMENT,
                                "brackets nest deeper than %d", DEEPEST);
      }
      wanted[depth++] = closing(c);
    } else if (c == wanted[depth - 1]) {
      depth--;
    } else if (c == ')' || c == ']' || c == '}') {
      return cx_hlo_scan_fail(s, s->at, CALX_INVALID_ARGUMENT,
                              "'%c' does not close '%c'", c, wanted[depth - 1]);
    } else if (c == '-' && cx_hlo_scan_sees(s, "->")) {
      s->at++;
    }
    s->at++;
  } while (depth > 0);
  if (depth == 0) return NULL;
  return cx_hlo_scan_fail(s, from, CALX_INVALID_ARGUMENT,
                          "the bracket is not closed");
}

calx_status *cx_hlo_scan_braces(cx_hlo_scan *s)
{
  size_t depth = 0;
  if (cx_hlo_scan_peek(s) != '{') return cx_hlo_scan_expected(s, "'{'");
  const char *from = s->at;
  do {
    const char c = cx_hlo_scan_peek(s);
    if (s->at == s->end) {
      return cx_hlo_scan_fail(s, from, CALX_INVALID_ARGUMENT,
                              "the brace is not closed");
    }
    if (c == '"') {
      cx_hlo_str string;
      CALX_TRY(cx_hlo_scan_quoted(s, &string));
      continue;
    }
    depth += c == '{';
    depth -= c == '}';
    s->at++;
  } while (depth > 0);
  return NULL;
}
