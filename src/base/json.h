// base/json: writing JSON.
#ifndef CX_BASE_JSON_H
#define CX_BASE_JSON_H

#include "base/text.h"

// In quotes. What is not UTF-8 becomes question marks, so that a name from the
// user cannot make the file unreadable.
void cx_json_string(cx_text *out, const char *s);
// A number in the form that JSON has; what is not finite becomes 0.
void cx_json_number(cx_text *out, double value);

// A field of an object: its name, with a comma before it unless it is the
// first, and its value.
void cx_json_key(cx_text *out, const char *name);
void cx_json_key_string(cx_text *out, const char *name, const char *s);
void cx_json_key_number(cx_text *out, const char *name, double value);
void cx_json_key_int(cx_text *out, const char *name, int64_t value);
// "FILE:LINE"; without a file an empty string.
void cx_json_key_site(cx_text *out, const char *name, const char *file,
                      int line);

#endif
