// hlo/scan: a cursor over MLIR's text, character by character.
//
// A stream of tokens would not do: in tensor<0x3xf32> the same characters mean
// something else than in 0x3. Every function skips white space and comments
// first and never looks past the end.
#ifndef CX_HLO_SCAN_H
#define CX_HLO_SCAN_H

#include "base/arena.h"
#include "hlo/module.h"

typedef struct cx_hlo_scan {
  const char *start, *at, *end;
  const char *file;
} cx_hlo_scan;

// "file:line:column: sentence", the line, and a caret under `at`.
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
bool cx_hlo_scan_sees(cx_hlo_scan *s, const char *text);  // does not move
bool cx_hlo_scan_accept(cx_hlo_scan *s, const char *text);
calx_status *cx_hlo_scan_need(cx_hlo_scan *s, const char *text) CALX_MUST_USE;

// bare-id ::= (letter | '_') (letter | digit | '_' | '$' | '.')*
bool cx_hlo_scan_word(cx_hlo_scan *s, cx_hlo_str *out);
// The word, and only if it is this one.
bool cx_hlo_scan_accept_word(cx_hlo_scan *s, const char *word);
// suffix-id ::= (digit+ | (letter | '$' | '.' | '_' | '-') …): what follows a
// '%', '^', '#' or '!'. Empty where there is none.
cx_hlo_str cx_hlo_scan_suffix(cx_hlo_scan *s);
// integer ::= '-'? digit+ | '0x' hex+. Out of range of 64 bits is an error;
// above the signed range the bits are kept.
calx_status *cx_hlo_scan_int(cx_hlo_scan *s, int64_t *out) CALX_MUST_USE;
// number ::= '-'? digit+ ('.' digit*)? (('e' | 'E') sign? digit+)?, as text;
// empty where there is none.
cx_hlo_str cx_hlo_scan_number(cx_hlo_scan *s);
// string ::= '"' (char | '\\' ('"' | '\\' | 'n' | 't' | hex hex))* '"', into
// the arena.
calx_status *cx_hlo_scan_string(cx_hlo_scan *s, cx_arena *arena,
                                cx_hlo_str *out) CALX_MUST_USE;
// The string as it is written, with its quotes.
calx_status *cx_hlo_scan_quoted(cx_hlo_scan *s, cx_hlo_str *out) CALX_MUST_USE;
// Past a bracket and what it encloses; strings and "->" are respected.
calx_status *cx_hlo_scan_balanced(cx_hlo_scan *s) CALX_MUST_USE;
// Past '{' and its '}', looking at nothing but braces and strings.
calx_status *cx_hlo_scan_braces(cx_hlo_scan *s) CALX_MUST_USE;

#endif
