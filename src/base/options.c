// base/options: see options.h.
#include "base/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

calx_status *cx_options_take(const char *what, const void *given, void *out,
                             size_t bytes)
{
  memset(out, 0, bytes);
  if (given == NULL) return NULL;
  size_t size;  // the first field of every option struct
  memcpy(&size, given, sizeof size);
  if (size < sizeof size || size > bytes) {
    return cx_invalid(
        "%s: options of %zu bytes, this library knows %zu: set .size to the "
        "struct's size",
        what, size, bytes);
  }
  memcpy(out, given, size);
  return NULL;
}

calx_status *cx_options_check(const char *what, size_t size, size_t known)
{
  if (size <= known) return NULL;
  return cx_invalid("%s: its options are of a newer version", what);
}

bool cx_read_int(const char *text, int64_t low, int64_t high, int64_t *out)
{
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (end == text || *end != '\0' || errno == ERANGE || value < low ||
      value > high) {
    return false;
  }
  *out = value;
  return true;
}
