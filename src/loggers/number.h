// loggers/number: numbers as Python writes them.
#ifndef CX_LOGGERS_NUMBER_H
#define CX_LOGGERS_NUMBER_H

#include <stdbool.h>

#include "base/text.h"

// Python's repr() of a float: the fewest digits that read back as the same
// double, and of these the nearest: "0.1", "1e-05", "3.0", "nan", "-inf".
void cx_loggers_put_real(cx_text *out, double value);
// Python's format(value, ".5") of 5 digits, at least 2 and at most 17: "7.0",
// "0.33333", "1.2346e+04".
void cx_loggers_put_rounded(cx_text *out, double value, int digits);
// A whole number without a point; what is none, as a float.
void cx_loggers_put_whole(cx_text *out, double value);
// One of both.
void cx_loggers_put_number(cx_text *out, double value, bool is_integer);

#endif
