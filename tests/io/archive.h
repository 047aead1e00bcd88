// archive: zip archives made by hand, as .pt files.
#ifndef CX_TESTS_IO_ARCHIVE_H
#define CX_TESTS_IO_ARCHIVE_H

#include <zip.h>

#include "files.h"

enum { MEGABYTE = 1 << 20, BOMB = 64 * MEGABYTE };

typedef struct entry {
  const char *name;
  const void *data;  // NULL: so many zeros
  size_t size;
} entry;

// All entries are deflated.
static inline const char *pack(const entry *entries, int n)
{
  const char *path = file_in_folder("made.pt");
  void *zeros = calloc(1, BOMB);
  zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);
  assert_true(zip != NULL && zeros != NULL);
  for (int i = 0; i < n; i++) {
    const entry *e = &entries[i];
    zip_source_t *source =
        zip_source_buffer(zip, e->data != NULL ? e->data : zeros, e->size, 0);
    zip_int64_t at = zip_file_add(zip, e->name, source, 0);
    assert_true(at >= 0);
    assert_int_equal(
        zip_set_file_compression(zip, (zip_uint64_t)at, ZIP_CM_DEFLATE, 1), 0);
  }
  assert_int_equal(zip_close(zip), 0);
  free(zeros);
  return path;
}

#define TEXT(name, text)        \
  {                             \
    name, text, sizeof text - 1 \
  }
// (storage, offset, sizes, strides, requires_grad, hooks): `rest` is all from
// the storage's count of floats to the strides.
#define TENSOR_ARGS(rest)                             \
  "((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0" \
  "0"                                                 \
  "X\3\0\0\0cpu" rest                                 \
  "\x89"                                              \
  "ccollections\nOrderedDict\n)Rt"
#define TENSOR(rest) "ctorch._utils\n_rebuild_tensor_v2\n" TENSOR_ARGS(rest) "R"
#define PICKLE(code) TEXT("x/data.pkl", "\x80\2" code ".")

#endif
