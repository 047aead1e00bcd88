// fuzz/long: how often. A sample, the same in every run; all of it where
// CALX_TEST_LONG=1 asks, as for the tests (tests/support/long.h).
#ifndef CX_FUZZ_LONG_H
#define CX_FUZZ_LONG_H

#include <stdlib.h>
#include <string.h>

static inline long fuzz_times(long all, long sample)
{
  const char *asked = getenv("CALX_TEST_LONG");
  return asked != NULL && strcmp(asked, "1") == 0 ? all : sample;
}

#endif
