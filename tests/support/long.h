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

// Where a sanitizer makes all of it several times slower, fewer: the same, of
// which the build without one runs all.
static inline long sanitized_or(long sanitized, long otherwise)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return long_or(otherwise, sanitized);
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return long_or(otherwise, sanitized);
#else
  (void)sanitized;
  return otherwise;
#endif
#else
  (void)sanitized;
  return otherwise;
#endif
}

#endif
