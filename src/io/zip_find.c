// io/zip_find: where the entries of an archive lie.
//
// The callers do not trust the offsets: they check that the entry's bytes lie
// in the file and have its checksum. So unusual archives, such as one with
// bytes before it, need no support here: their entries are not found.
#include "io/zip.h"

enum { END = 22, LOCATOR = 20, END_64 = 56, CENTRAL = 46, LOCAL = 30 };
#define LIMIT ((uint64_t)0xffffffff)

typedef struct archive {
  const uint8_t *data;
  uint64_t size;
} archive;

static uint64_t get(const archive *a, uint64_t at, int bytes)
{
  uint64_t n = 0;
  for (int i = 0; i < bytes; i++) n |= (uint64_t)a->data[at + i] << (8 * i);
  return n;
}

static bool is_at(const archive *a, uint64_t at, uint64_t size,
                  uint64_t signature)
{
  return at <= a->size && size <= a->size - at && get(a, at, 4) == signature;
}

// The directory's offset. The record at the file's end has it, which a comment
// may follow; in a large archive zip64's record has it.
static bool find_directory(const archive *a, uint64_t *out)
{
  for (uint64_t tail = END; tail <= END + 65535 && tail <= a->size; tail++) {
    uint64_t at = a->size - tail;
    if (!is_at(a, at, END, 0x06054b50)) continue;
    if (get(a, at + 20, 2) != tail - END) continue;
    *out = get(a, at + 16, 4);
    if (*out != LIMIT) return true;
    if (at < LOCATOR || !is_at(a, at - LOCATOR, LOCATOR, 0x07064b50)) {
      return false;
    }
    uint64_t end = get(a, at - LOCATOR + 8, 8);
    if (!is_at(a, end, END_64, 0x06064b50)) return false;
    *out = get(a, end + 48, 8);
    return true;
  }
  return false;
}

// The offset of an entry of a large archive. Zip64's field holds, in order,
// those numbers that do not fit their own fields.
static uint64_t large_offset(const archive *a, uint64_t at, uint64_t end)
{
  uint64_t before = (get(a, at + 24, 4) == LIMIT ? 8u : 0u) +
                    (get(a, at + 20, 4) == LIMIT ? 8u : 0u);
  uint64_t field = at + CENTRAL + get(a, at + 28, 2);
  while (end - field >= 4) {
    uint64_t id = get(a, field, 2), size = get(a, field + 2, 2);
    field += 4;
    if (size > end - field) break;
    if (id == 1 && size >= before + 8) return get(a, field + before, 8);
    field += size;
  }
  return LIMIT;
}

// Where the entry's bytes begin, after its own header; 0: it has no header.
static uint64_t behind_header(const archive *a, uint64_t at)
{
  if (!is_at(a, at, LOCAL, 0x04034b50)) return 0;
  return at + LOCAL + get(a, at + 26, 2) + get(a, at + 28, 2);
}

void cx_io_zip_offsets(const void *data, size_t size, uint64_t n,
                       uint64_t *out_offsets)
{
  archive a = { data, size };
  uint64_t at;
  for (uint64_t i = 0; i < n; i++) out_offsets[i] = 0;
  if (!find_directory(&a, &at)) return;
  for (uint64_t i = 0; i < n && is_at(&a, at, CENTRAL, 0x02014b50); i++) {
    uint64_t end = at + CENTRAL + get(&a, at + 28, 2) + get(&a, at + 30, 2);
    if (end > size) return;
    uint64_t local = get(&a, at + 42, 4);
    if (local == LIMIT) local = large_offset(&a, at, end);
    out_offsets[i] = behind_header(&a, local);
    at = end + get(&a, at + 32, 2);
  }
}
