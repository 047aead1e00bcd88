// debug/json: the little of JSON that is written here, and texts from outside.
#ifndef CX_DEBUG_JSON_H
#define CX_DEBUG_JSON_H

#include "base/text.h"

// In quotes. What is not UTF-8 becomes question marks: a name of the user's
// must not make the file unreadable.
void cx_debug_json_string(cx_text *out, const char *s);
// A number that JSON has: what is not finite is 0.
void cx_debug_json_number(cx_text *out, double value);

// A text from outside that may be shown on a terminal, cut to what fits: what
// is not UTF-8 becomes question marks, control characters spaces; those of
// U+0080 to U+009F are left out.
void cx_debug_plain(const char *from, size_t n, char *out, size_t size);

#endif
