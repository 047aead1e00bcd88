// base/json: writing JSON.
#ifndef CX_BASE_JSON_H
#define CX_BASE_JSON_H

#include "base/text.h"

// In quotes. What is not UTF-8 becomes question marks, so that a name from the
// user cannot make the file unreadable.
void cx_json_string(cx_text *out, const char *s);
// A number in the form that JSON has; what is not finite becomes 0.
void cx_json_number(cx_text *out, double value);

#endif
