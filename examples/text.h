// The bytes of a text file, or drawn ones.
#ifndef EXAMPLES_TEXT_H
#define EXAMPLES_TEXT_H

#include <calx/calx.h>
#include <stdlib.h>

#include "drawn.h"

typedef struct text {
  unsigned char *bytes;  // of malloc
  int64_t size;
} text;

// Sums, line by line: "17+25=42". Room for `size` bytes is there.
static inline int64_t text_draw(unsigned char *bytes, int64_t size,
                                uint64_t seed)
{
  int64_t at = 0;
  while (at < size - 32) {
    int a = (int)(50 * drawn(&seed)), b = (int)(50 * drawn(&seed));
    at += sprintf((char *)bytes + at, "%d+%d=%d\n", a, b, a + b);
  }
  return at;
}

// Reads the file, 256 MiB of it at most; without a path draws 400,000 bytes.
static inline calx_status *text_init(text *t, const char *path, uint64_t seed)
{
  const size_t most = path != NULL ? (size_t)1 << 28 : 400000;
  FILE *f = path != NULL ? fopen(path, "rb") : NULL;
  if (path != NULL && f == NULL) {
    return calx_status_new(CALX_NOT_FOUND, "cannot read '%s'", path);
  }
  t->bytes = malloc(most);
  if (t->bytes == NULL) {
    if (f != NULL) fclose(f);
    return calx_status_new(CALX_RESOURCE_EXHAUSTED, "no memory for the text");
  }
  if (f == NULL) {
    t->size = text_draw(t->bytes, (int64_t)most, seed);
    return NULL;
  }
  t->size = (int64_t)fread(t->bytes, 1, most, f);
  bool failed = ferror(f) != 0;
  fclose(f);
  if (!failed && t->size != 0) return NULL;
  free(t->bytes);
  return calx_status_new(CALX_DATA_LOSS, "'%s' is empty or no file", path);
}

#endif
