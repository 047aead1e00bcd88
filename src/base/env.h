// base/env: environment variables.
#ifndef CX_BASE_ENV_H
#define CX_BASE_ENV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

// The variable's text; NULL where it is not set, empty, or `name` is NULL.
const char *cx_env_text(const char *name);
// The variable's number from `least` to `most`; -1 where it is not set.
calx_status *cx_env_int(const char *name, int least, int most,
                        int *out) CALX_MUST_USE;
// A variable in seconds, as milliseconds, rounded up. The value must be above
// 0, or with `zero_is_valid` also 0. Where it is not set the result is
// `otherwise_s` seconds; so it is for another value, which is also logged once.
int64_t cx_env_ms(const char *name, bool zero_is_valid, int otherwise_s);
// Sets a variable for this process and those that it starts.
void cx_env_set_int(const char *name, int value);

#endif
