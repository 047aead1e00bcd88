// fuzz/hlo_parse_main: the fuzz entry over a corpus, for machines without
// libFuzzer.
//
//   fuzz_hlo_parse [FOLDER]
//
// Each file is run whole, cut at some lengths, and with some bytes replaced by
// characters that mean something to the parser; the choice is the same in every
// run.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 16, CUTS = 200, DAMAGES = 1500 };

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

static long run_file(const char *path)
{
  static const unsigned char marks[] = "()[]{}<>\"%#@!:,=-.\\0x19aZ\n\0\xff?";
  static unsigned char data[MOST];
  FILE *f = fopen(path, "rb");
  if (f == NULL) {
    perror(path);
    exit(1);
  }
  const size_t size = fread(data, 1, sizeof data, f);
  fclose(f);
  uint64_t state = 88172645463325252u + size;
  run(data, size);
  if (size == 0) return 1;
  for (int i = 0; i < CUTS; i++) run(data, (size_t)(next(&state) % size));
  for (int i = 0; i < DAMAGES; i++) {
    const size_t at = (size_t)(next(&state) % size);
    const unsigned char was = data[at];
    data[at] = marks[next(&state) % (sizeof marks - 1)];
    run(data, size);
    data[at] = was;
  }
  return 1 + CUTS + DAMAGES;
}

int main(int argc, char **argv)
{
  const char *folder = argc > 1 ? argv[1] : CX_FUZZ_CORPUS;
  DIR *dir = opendir(folder);
  if (dir == NULL) {
    perror(folder);
    return 1;
  }
  long files = 0;
  long runs = 0;
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    if (e->d_name[0] == '.') continue;
    char path[1024];
    if (snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >=
        (int)sizeof path) {
      return 1;
    }
    runs += run_file(path);
    files++;
  }
  closedir(dir);
  printf("%ld files, %ld runs\n", files, runs);
  return files > 0 ? 0 : 1;
}
