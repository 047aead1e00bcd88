// fuzz/pt: any bytes as a .pt file of PyTorch's, and as the pickle in one.
//
// Damage to an archive is mostly found by its checksums, so that the pickle
// behind it would hardly be tried: the same bytes are also packed as data.pkl,
// with right checksums, beside two storages of 64 bytes. Built with
// -fsanitize=fuzzer this is libFuzzer's entry; fuzz/idx_main.c runs it over a
// corpus without one.
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "io/pt.h"
#include "io_value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct buffer {
  uint8_t *data;
  size_t size;
} buffer;

static void put(buffer *b, uint64_t n, int bytes)
{
  for (int i = 0; i < bytes; i++) b->data[b->size++] = (uint8_t)(n >> (8 * i));
}

static void put_bytes(buffer *b, const void *data, size_t size)
{
  memcpy(b->data + b->size, data, size);
  b->size += size;
}

// A header of an entry; `central` in the directory, for one at `place`.
static void put_header(buffer *b, bool central, const char *name,
                       const uint8_t *data, size_t size, size_t place)
{
  put(b, central ? 0x02014b50 : 0x04034b50, 4);
  if (central) put(b, 0, 2);
  put(b, 0, 8);
  put(b, 0, 2);
  put(b, crc32(0, data, (uInt)size), 4);
  put(b, size, 4);
  put(b, size, 4);
  put(b, strlen(name), 2);
  put(b, 0, 2);
  if (central) {
    put(b, 0, 6);
    put(b, 0, 4);
    put(b, place, 4);
  }
  put_bytes(b, name, strlen(name));
}

static void pack(const uint8_t *pickle, size_t size, buffer *b)
{
  static uint8_t storage[64];
  static const char *const names[] = { "x/data.pkl", "x/data/0", "x/data/1" };
  size_t places[3];
  for (size_t i = 0; i < sizeof storage; i++) storage[i] = (uint8_t)i;
  for (int i = 0; i < 3; i++) {
    places[i] = b->size;
    const uint8_t *data = i == 0 ? pickle : storage;
    size_t n = i == 0 ? size : sizeof storage;
    put_header(b, false, names[i], data, n, 0);
    put_bytes(b, data, n);
  }
  size_t begin = b->size;
  for (int i = 0; i < 3; i++) {
    put_header(b, true, names[i], i == 0 ? pickle : storage,
               i == 0 ? size : sizeof storage, places[i]);
  }
  size_t n = b->size - begin;
  put(b, 0x06054b50, 4);
  put(b, 0, 4);
  put(b, 3, 2);
  put(b, 3, 2);
  put(b, n, 4);
  put(b, begin, 4);
  put(b, 0, 2);
}

static void read_file(const uint8_t *data, size_t size)
{
  long blocks = cx_alloc_live();
  cx_io_map *map;
  calx_value *value;
  calx_status *status = cx_io_map_memory("input", data, size, &map);
  fuzz_check(status == NULL);
  status = cx_io_pt_read(map, &value);
  fuzz_read(status, value);
  cx_io_map_release(map);
  calx_value_free(value);
  calx_status_free(status);
  fuzz_check(cx_alloc_live() == blocks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  buffer b = { .data = malloc(size + 1024) };
  fuzz_check(b.data != NULL);
  pack(data, size, &b);
  read_file(b.data, b.size);
  free(b.data);
  read_file(data, size);
  return 0;
}
