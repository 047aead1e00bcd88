// fuzz/folder: the walk over a corpus, and runs of the entry linked with it.
#include "folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

void fuzz_run(const unsigned char *data, size_t size)
{
  unsigned char *exact = malloc(size != 0 ? size : 1);
  if (exact == NULL) abort();
  memcpy(exact, data, size);
  LLVMFuzzerTestOneInput(exact, size);
  free(exact);
}

// xorshift (Marsaglia 2003).
uint64_t fuzz_next(uint64_t *state)
{
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static long run_file(const char *path, fuzz_file *file, void *user)
{
  static unsigned char data[FUZZ_MOST];
  FILE *f = fopen(path, "rb");
  if (f == NULL) {
    perror(path);
    exit(1);
  }
  const size_t size = fread(data, 1, sizeof data, f);
  fclose(f);
  return file(data, size, user);
}

long fuzz_whole(unsigned char *data, size_t size, void *user)
{
  (void)user;
  fuzz_run(data, size);
  return 1;
}

int fuzz_folder(const char *folder, fuzz_file *file, void *user)
{
  if (folder == NULL) folder = CX_FUZZ_CORPUS;
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
    runs += run_file(path, file, user);
    files++;
  }
  closedir(dir);
  printf("%ld files, %ld runs\n", files, runs);
  return files > 0 ? 0 : 1;
}
