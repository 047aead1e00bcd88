// fuzz/hlo_parse_main: the fuzz entry over a corpus, for machines without
// libFuzzer.
//
//   fuzz_hlo_parse [FOLDER]
//   fuzz_hlo_parse --replay FOLDER
//
// Each file is run whole, cut at some lengths, and with some bytes replaced by
// characters that mean something to the parser; the choice is the same in every
// run. To replay is to run what libFuzzer found, as it is.
#include <string.h>

#include "folder.h"
#include "long.h"

enum { CUTS = 200, DAMAGES = 1500, LONGER = 50 };

static long run_file(unsigned char *data, size_t size, void *user)
{
  (void)user;
  static const unsigned char marks[] = "()[]{}<>\"%#@!:,=-.\\0x19aZ\n\0\xff?";
  uint64_t state = FUZZ_SEED + size;
  const long times = fuzz_times(LONGER, 1);
  fuzz_run(data, size);
  if (size == 0) return 1;
  for (long i = 0; i < times * CUTS; i++) {
    fuzz_run(data, (size_t)(fuzz_next(&state) % size));
  }
  for (long i = 0; i < times * DAMAGES; i++) {
    const size_t at = (size_t)(fuzz_next(&state) % size);
    const unsigned char was = data[at];
    data[at] = marks[fuzz_next(&state) % (sizeof marks - 1)];
    fuzz_run(data, size);
    data[at] = was;
  }
  return 1 + times * (CUTS + DAMAGES);
}

int main(int argc, char **argv)
{
  if (argc == 3 && strcmp(argv[1], "--replay") == 0) {
    return fuzz_folder(argv[2], fuzz_whole, NULL);
  }
  return fuzz_folder(argc > 1 ? argv[1] : NULL, run_file, NULL);
}
