// fuzz/engine_main: an engine's fuzz entry over a corpus, for machines without
// libFuzzer.
//
//   fuzz_engine_text [FOLDER [RUNS]]
//
// Each file is run whole, and RUNS times cut or with some bytes replaced; the
// choice is the same in every run.
#include "engine_main.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// A copy of exactly this size, so that a tool that watches memory sees a read
// past its end.
static void run(const unsigned char *data, size_t size)
{
  unsigned char *exact = malloc(size != 0 ? size : 1);
  if (exact == NULL) abort();
  memcpy(exact, data, size);
  LLVMFuzzerTestOneInput(exact, size);
  free(exact);
}

// xorshift (Marsaglia 2003).
static uint64_t next(uint64_t *state)
{
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

// One to three bytes become others: digits and signs in texts, small and large
// numbers in bytes.
static void run_damaged(unsigned char *data, size_t size, uint64_t *state)
{
  static const unsigned char marks[] = "0123456789-x<>[]{}()%,\"\0\x7f\xff";
  unsigned char was[3];
  size_t at[3];
  const size_t n = 1 + next(state) % 3;
  for (size_t i = 0; i < n; i++) {
    at[i] = (size_t)(next(state) % size);
    was[i] = data[at[i]];
    const uint64_t r = next(state);
    data[at[i]] = r % 4 == 0 ? (unsigned char)(r >> 8)
                             : marks[(r >> 8) % (sizeof marks - 1)];
  }
  run(data, size);
  for (size_t i = n; i-- > 0;) data[at[i]] = was[i];
}

static long run_file(const char *path, long runs)
{
  static unsigned char data[MOST];
  FILE *f = fopen(path, "rb");
  if (f == NULL) {
    perror(path);
    exit(1);
  }
  size_t size = fread(data, 1, sizeof data, f);
  fclose(f);
#if defined(CX_FUZZ_PREPARES)
  size = engine_main_prepare(data, size, sizeof data);
#endif
  uint64_t state = 88172645463325252u + size;
  run(data, size);
  if (size == 0) return 1;
  for (long i = 0; i < runs; i++) {
    if (next(&state) % 8 == 0) {
      run(data, (size_t)(next(&state) % size));
    } else {
      run_damaged(data, size, &state);
    }
  }
  return 1 + runs;
}

int main(int argc, char **argv)
{
  const char *folder = argc > 1 ? argv[1] : CX_FUZZ_CORPUS;
  const long each = argc > 2 ? strtol(argv[2], NULL, 10) : CX_FUZZ_RUNS;
  DIR *dir = opendir(folder);
  if (dir == NULL) {
    perror(folder);
    return 1;
  }
  long files = 0, runs = 0;
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    if (e->d_name[0] == '.') continue;
    char path[1024];
    if (snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >=
        (int)sizeof path) {
      return 1;
    }
    runs += run_file(path, each);
    files++;
  }
  closedir(dir);
  printf("%ld files, %ld runs\n", files, runs);
  return files > 0 ? 0 : 1;
}
