// long: how much of what takes long is done. A sample, the same in every run;
// all of it where CALX_TEST_LONG=1 asks (./dev test --long).
#ifndef CX_TESTS_SUPPORT_LONG_H
#define CX_TESTS_SUPPORT_LONG_H

#include <stdlib.h>
#include <string.h>

static inline long long_or(long all, long sample)
{
  const char *asked = getenv("CALX_TEST_LONG");
  return asked != NULL && strcmp(asked, "1") == 0 ? all : sample;
}

#endif
