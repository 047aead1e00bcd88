// fuzz/engine_main: an engine's fuzz entry over a corpus, for machines without
// libFuzzer.
//
//   fuzz_engine_text [FOLDER [RUNS]]
//   fuzz_engine_text --replay FOLDER
//
// Each file is run whole, and RUNS times cut or with some bytes replaced; the
// choice is the same in every run. To replay is to run what libFuzzer found, as
// it is.
#include "engine_main.h"

#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "long.h"

// One to three bytes become others: digits and signs in texts, small and large
// numbers in bytes.
static void run_damaged(unsigned char *data, size_t size, uint64_t *state)
{
  static const unsigned char marks[] = "0123456789-x<>[]{}()%,\"\0\x7f\xff";
  unsigned char was[3];
  size_t at[3];
  const size_t n = 1 + fuzz_next(state) % 3;
  for (size_t i = 0; i < n; i++) {
    at[i] = (size_t)(fuzz_next(state) % size);
    was[i] = data[at[i]];
    const uint64_t r = fuzz_next(state);
    data[at[i]] = r % 4 == 0 ? (unsigned char)(r >> 8)
                             : marks[(r >> 8) % (sizeof marks - 1)];
  }
  fuzz_run(data, size);
  for (size_t i = n; i-- > 0;) data[at[i]] = was[i];
}

static long run_file(unsigned char *data, size_t size, void *user)
{
  const long runs = *(const long *)user;
#if defined(CX_FUZZ_PREPARES)
  size = engine_main_prepare(data, size, FUZZ_MOST);
#endif
  uint64_t state = FUZZ_SEED + size;
  fuzz_run(data, size);
  if (size == 0) return 1;
  for (long i = 0; i < runs; i++) {
    if (fuzz_next(&state) % 8 == 0) {
      fuzz_run(data, (size_t)(fuzz_next(&state) % size));
    } else {
      run_damaged(data, size, &state);
    }
  }
  return 1 + runs;
}

int main(int argc, char **argv)
{
  if (argc == 3 && strcmp(argv[1], "--replay") == 0) {
    return fuzz_folder(argv[2], fuzz_whole, NULL);
  }
  long runs = fuzz_times(50 * CX_FUZZ_RUNS, CX_FUZZ_RUNS);
  if (argc > 2) runs = strtol(argv[2], NULL, 10);
  return fuzz_folder(argc > 1 ? argv[1] : NULL, run_file, &runs);
}
