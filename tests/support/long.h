// long: how much of what takes long is done. A sample, the same in every run;
// all of it where CALX_TEST_LONG=1 asks (./dev test --long).
#ifndef CX_TESTS_SUPPORT_LONG_H
#define CX_TESTS_SUPPORT_LONG_H

#include <stdlib.h>
#include <string.h>

// gcc and clang say it in different ways.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TESTS_SANITIZED 1
#elif defined(__has_feature)
#define TESTS_SANITIZED \
  (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define TESTS_SANITIZED 0
#endif

static inline long long_or(long all, long sample)
{
  const char *asked = getenv("CALX_TEST_LONG");
  return asked != NULL && strcmp(asked, "1") == 0 ? all : sample;
}

// Under a sanitizer, which makes it several times slower, less: a part of what
// the build without one runs.
static inline long sanitized_or(long sanitized, long otherwise)
{
  return TESTS_SANITIZED ? long_or(otherwise, sanitized) : otherwise;
}

#endif
