// base/options: what is read of what users set: option structs, numbers of
// which 0 stands for a default, numbers in texts.
#ifndef CX_BASE_OPTIONS_H
#define CX_BASE_OPTIONS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// Copies an option struct whose first field is its size, which an older program
// may have smaller than this library: the fields that it lacks are 0. NULL: all
// are. INVALID_ARGUMENT for a size of no struct, or of a newer one.
calx_status *cx_options_take(const char *what, const void *given, void *out,
                             size_t bytes) CALX_MUST_USE;

// "linear: its options are of a newer version", where the struct that the
// caller was compiled with is larger than the one that is known; else NULL. For
// a struct that has had all its fields from the first release on: one that grew
// is taken by cx_options_take().
calx_status *cx_options_check(const char *what, size_t size,
                              size_t known) CALX_MUST_USE;

// A plain 0 stands for the default; CALX_ZERO, the negative one, for 0.
static inline bool cx_is_default(double option)
{
  return option == 0 && !signbit(option);
}

static inline double cx_or_default(double option, double otherwise)
{
  if (option != 0) return option;
  return cx_is_default(option) ? otherwise : 0;
}

// The whole text as a decimal number in [low, high]. False: it is none.
bool cx_read_int(const char *text, int64_t low, int64_t high, int64_t *out);

#endif
