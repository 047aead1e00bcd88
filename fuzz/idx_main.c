// fuzz/idx_main: the fuzz entry over a corpus, for machines without libFuzzer.
//
//   fuzz_idx [FOLDER]
//
// Each file is run whole, cut at every length, and with every byte damaged in
// three ways.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 4096  // bytes of a file

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

static long run_file(const char *path)
{
  static unsigned char data[MOST];
  FILE *f = fopen(path, "rb");
  if (f == NULL) {
    perror(path);
    exit(1);
  }
  size_t size = fread(data, 1, sizeof data, f);
  fclose(f);
  const unsigned char damage[] = { 0x01, 0x80, 0xff };
  for (size_t n = 0; n <= size; n++) run(data, n);
  for (size_t i = 0; i < size; i++) {
    for (size_t k = 0; k < sizeof damage; k++) {
      data[i] ^= damage[k];
      run(data, size);
      data[i] ^= damage[k];
    }
  }
  return 1 + (long)(4 * size);
}

int main(int argc, char **argv)
{
  const char *folder = argc > 1 ? argv[1] : CX_FUZZ_CORPUS;
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
    runs += run_file(path);
    files++;
  }
  closedir(dir);
  printf("%ld files, %ld runs\n", files, runs);
  return files > 0 ? 0 : 1;
}
