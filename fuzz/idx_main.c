// fuzz/idx_main: the fuzz entry over a corpus, for machines without libFuzzer.
//
//   fuzz_idx [FOLDER]
//   fuzz_idx --replay FOLDER
//
// Each file is run whole, cut at every length, and with every byte damaged in
// three ways. To replay is to run what libFuzzer found, as it is.
#include <string.h>

#include "folder.h"

#define MOST 4096  // bytes of a file: the work grows with their square

static long run_file(unsigned char *data, size_t size, void *user)
{
  (void)user;
  if (size > MOST) size = MOST;
  const unsigned char damage[] = { 0x01, 0x80, 0xff };
  for (size_t n = 0; n <= size; n++) fuzz_run(data, n);
  for (size_t i = 0; i < size; i++) {
    for (size_t k = 0; k < sizeof damage; k++) {
      data[i] ^= damage[k];
      fuzz_run(data, size);
      data[i] ^= damage[k];
    }
  }
  return 1 + (long)(4 * size);
}

int main(int argc, char **argv)
{
  if (argc == 3 && strcmp(argv[1], "--replay") == 0) {
    return fuzz_folder(argv[2], fuzz_whole, NULL);
  }
  return fuzz_folder(argc > 1 ? argv[1] : NULL, run_file, NULL);
}
