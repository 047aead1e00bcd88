// entries FOLDER NAME PLUGIN PLATFORM PROGRAM BYTES: writes a file of the disk
// cache with a compiled program of so many bytes, as the library does.
#include <stdlib.h>

#include "base/alloc.h"
#include "base/status.h"
#include "lazy/cache/cache.h"

int main(int argc, char **argv)
{
  if (argc != 7) return 2;
  size_t n = strtoul(argv[6], NULL, 10);
  char *bytes = cx_calloc(1, n);
  if (bytes == NULL) return 1;
  cx_lazy_cache_entry e = { .plugin = argv[3],
                            .platform = argv[4],
                            .program = argv[5],
                            .key = "key",
                            .key_size = 3,
                            .bytes = bytes,
                            .n_bytes = n };
  cx_text file = { 0 };
  cx_lazy_cache_entry_write(&e, &file);
  calx_status *status = cx_lazy_cache_folder(argv[1], false);
  if (status == NULL) status = cx_lazy_cache_keep(argv[1], argv[2], &file);
  calx_status_print(stderr, status);
  int code = status != NULL;
  calx_status_free(status);
  cx_text_free(&file);
  cx_free(bytes);
  return code;
}
