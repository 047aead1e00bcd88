// fuzz/mutate_main: the fuzz entry over a corpus that is damaged at random,
// always in the same way.
//
//   test_NAME [FOLDER [TIMES]]
//
// Each file is run whole and then TIMES times with one to eight changes: bits
// flipped, bytes and numbers set to what is odd, pieces moved, repeated and cut
// out. 150 times where it is not said, 5000 with CALX_TEST_LONG=1.
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"

#define MOST ((size_t)FUZZ_MOST / 2)  // a piece that is repeated has room

typedef struct mutating {
  uint64_t random;
  long times;
} mutating;

static size_t below(mutating *m, size_t n)
{
  return n == 0 ? 0 : (size_t)(fuzz_next(&m->random) % n);
}

// A little-endian number of 2, 4 or 8 bytes that readers stumble over.
static void put_number(mutating *m, unsigned char *data, size_t size)
{
  static const uint64_t odd[] = { 0,
                                  1,
                                  0x7f,
                                  0xff,
                                  0x7fff,
                                  0xffff,
                                  0x7fffffff,
                                  0x80000000,
                                  UINT32_MAX,
                                  UINT64_MAX,
                                  INT64_MAX,
                                  (uint64_t)1 << 63,
                                  (uint64_t)1 << 32,
                                  0x10000 };
  size_t bytes = (size_t)2 << below(m, 3);
  if (size < bytes) return;
  uint64_t n = odd[below(m, sizeof odd / sizeof *odd)];
  memcpy(data + below(m, size - bytes + 1), &n, bytes);
}

static size_t change(mutating *m, unsigned char *data, size_t size)
{
  size_t at = below(m, size), to = below(m, size), n = 1 + below(m, 64);
  if (size == 0) return 0;
  if (n > size - at) n = size - at;
  switch (below(m, 6)) {
    case 0: data[at] ^= (unsigned char)(1 << below(m, 8)); return size;
    case 1: data[at] = (unsigned char)below(m, 256); return size;
    case 2: put_number(m, data, size); return size;
    case 3:  // another place's bytes
      memmove(data + to, data + at, n < size - to ? n : size - to);
      return size;
    case 4:  // again
      if (size + n > MOST) return size;
      memmove(data + at + n, data + at, size - at);
      return size + n;
    default: memmove(data + at, data + at + n, size - at - n); return size - n;
  }
}

static long run_file(unsigned char *data, size_t size, void *user)
{
  static unsigned char changed[FUZZ_MOST];
  mutating *m = user;
  if (size > MOST) size = MOST;
  fuzz_run(data, size);
  for (long i = 0; i < m->times; i++) {
    size_t now = size;
    memcpy(changed, data, size);
    for (size_t k = 1 + below(m, 8); k > 0; k--) now = change(m, changed, now);
    fuzz_run(changed, now);
  }
  return 1 + m->times;
}

int main(int argc, char **argv)
{
  const char *asked = getenv("CALX_TEST_LONG");
  bool all = asked != NULL && strcmp(asked, "1") == 0;
  mutating m = { .random = FUZZ_SEED, .times = all ? 5000 : 150 };
  if (argc > 2) m.times = strtol(argv[2], NULL, 10);
  return fuzz_folder(argc > 1 ? argv[1] : NULL, run_file, &m);
}
