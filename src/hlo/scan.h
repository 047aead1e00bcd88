// hlo/scan: a cursor over MLIR's text, character by character.
//
// The scanner makes no tokens: in tensor<0x3xf32>, 0x3 is no hexadecimal
// number. Every function skips white space and comments first, and never reads
// past the end.
#ifndef CX_HLO_SCAN_H
#define CX_HLO_SCAN_H

#include "base/arena.h"
#include "hlo/module.h"

typedef struct cx_hlo_scan {
  const char *start, *at, *end;
  const char *file;
  bool is_binary;  // no text: positions are bytes from its start
} cx_hlo_scan;

// "file:line:column: sentence", the line, and a caret under `at`; in a binary
// file "file: byte N: sentence".
calx_status *cx_hlo_scan_fail(const cx_hlo_scan *s, const char *at,
                              calx_code code, const char *format, ...)
    CALX_PRINTF(4, 5) CALX_MUST_USE;
// "expected X": INVALID_ARGUMENT at the cursor.
calx_status *cx_hlo_scan_expected(cx_hlo_scan *s,
                                  const char *what) CALX_MUST_USE;

void cx_hlo_scan_blank(cx_hlo_scan *s);  // past white space and comments
static inline void cx_hlo_scan_space(cx_hlo_scan *s)
{
  const bool visible = s->at<s->end && * s->at> ' ' && *s->at != '/';
  if (!visible) cx_hlo_scan_blank(s);
}
// '\0' at the end
static inline char cx_hlo_scan_peek(cx_hlo_scan *s)
{
  cx_hlo_scan_space(s);
  return s->at < s->end ? *s->at : '\0';
}
// The next visible character.
static inline const char *cx_hlo_scan_here(cx_hlo_scan *s)
{
  cx_hlo_scan_space(s);
  return s->at;
}
bool cx_hlo_scan_sees(cx_hlo_scan *s, const char *text);  // does not move
bool cx_hlo_scan_accept(cx_hlo_scan *s, const char *text);
calx_status *cx_hlo_scan_need(cx_hlo_scan *s, const char *text) CALX_MUST_USE;

// bare-id ::= (letter | '_') (letter | digit | '_' | '$' | '.')*
bool cx_hlo_scan_word(cx_hlo_scan *s, cx_hlo_str *out);
// Passes the word, only if it is this one.
bool cx_hlo_scan_accept_word(cx_hlo_scan *s, const char *word);
// suffix-id ::= (digit+ | (letter | '$' | '.' | '_' | '-') …): what follows a
// '%', '^', '#' or '!'. Empty: there is none.
cx_hlo_str cx_hlo_scan_suffix(cx_hlo_scan *s);
// integer ::= '-'? digit+ | '0x' hex+. It must fit into 64 bits. Above the
// signed range *out has its bits.
calx_status *cx_hlo_scan_int(cx_hlo_scan *s, int64_t *out) CALX_MUST_USE;
// 'true' | 'false'; or an integer.
calx_status *cx_hlo_scan_bool(cx_hlo_scan *s, int64_t *out) CALX_MUST_USE;
calx_status *cx_hlo_scan_int_or_bool(cx_hlo_scan *s,
                                     int64_t *out) CALX_MUST_USE;
// number ::= '-'? digit+ ('.' digit*)? (('e' | 'E') sign? digit+)?, as text;
// empty where there is none.
cx_hlo_str cx_hlo_scan_number(cx_hlo_scan *s);
// string ::= '"' (char | '\\' ('"' | '\\' | 'n' | 't' | hex hex))* '"', into
// the arena.
calx_status *cx_hlo_scan_string(cx_hlo_scan *s, cx_arena *arena,
                                cx_hlo_str *out) CALX_MUST_USE;
// The string as it is written, with its quotes.
calx_status *cx_hlo_scan_quoted(cx_hlo_scan *s, cx_hlo_str *out) CALX_MUST_USE;
// Passes a bracket, its contents and its closing bracket. Brackets in strings
// and the '>' of "->" do not count.
calx_status *cx_hlo_scan_balanced(cx_hlo_scan *s) CALX_MUST_USE;
// Passes '{' and its '}'. Only braces outside of strings count.
calx_status *cx_hlo_scan_braces(cx_hlo_scan *s) CALX_MUST_USE;

#endif
