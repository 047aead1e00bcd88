// fuzz/store_wire_main: the fuzz entry over a corpus and over bytes made up,
// for machines without libFuzzer.
//
//   fuzz_store_wire [FOLDER]
//
// Each file is run whole, cut, and damaged at random places; rows of requests
// with right heads and random fields follow.
#include <string.h>

#include "folder.h"
#include "long.h"
#include "store/wire.h"

enum { ROWS = 4000, ROW_REQUESTS = 12 };

static size_t put_request(unsigned char *at, uint64_t *state)
{
  static const char *const names[] = { "", "a", "b", "world/devices" };
  unsigned char value[CX_STORE_ORIGIN_BYTES] = { 0xff, 0xff, 0xff, 0xff };
  cx_store_wire_put64(value + 4 + 16 * (fuzz_next(state) % 2),
                      fuzz_next(state) % 2);
  cx_store_request r = { .op = (cx_store_op)(1 + fuzz_next(state) %
                                                     CX_STORE_OP_BYE),
                         .a = (int32_t)(fuzz_next(state) % 5) - 1,
                         .b = (int32_t)(fuzz_next(state) % 4),
                         .wait_ms = (int64_t)(fuzz_next(state) % 300) - 10,
                         .value = (const char *)value,
                         .size = fuzz_next(state) % 9 };
  // Of a HELLO mostly a right one, from a few hosts.
  if (r.op == CX_STORE_OP_HELLO && fuzz_next(state) % 4 != 0) {
    cx_store_wire_put32(value, (uint32_t)(fuzz_next(state) % 4) - 1);
    r.size = sizeof value;
  }
  const char *name = names[fuzz_next(state) % 4];
  memcpy(r.name, name, strlen(name) + 1);
  size_t size = cx_store_wire_request(&r, at + 2);
  memcpy(at + 2 + size, value, r.size);
  size += r.size;
  uint64_t pipe = fuzz_next(state) % 16;
  at[0] = (unsigned char)(size & 0xff);
  at[1] = (unsigned char)(size >> 8 | pipe << 4);
  return 2 + size;
}

static void run_rows(void)
{
  unsigned char
      row[ROW_REQUESTS * (CX_STORE_REQUEST_HEAD + CX_STORE_TABLE_KEY + 16)];
  uint64_t state = FUZZ_SEED;
  for (long i = 0; i < fuzz_times(50 * ROWS, ROWS); i++) {
    size_t size = 0;
    for (int k = 0; k < ROW_REQUESTS; k++) {
      size += put_request(row + size, &state);
    }
    fuzz_run(row, size);
    for (int k = 0; k < 3; k++) row[fuzz_next(&state) % size] ^= 0x41;
    fuzz_run(row, size);
    fuzz_run(row, fuzz_next(&state) % size);
  }
}

static long run_file(unsigned char *data, size_t size, void *user)
{
  (void)user;
  uint64_t state = FUZZ_SEED;
  size_t most = size < 2048 ? size : 2048;
  for (size_t n = 0; n <= most; n++) fuzz_run(data, n);
  fuzz_run(data, size);
  for (int i = 0; i < 500 && size > 0; i++) {
    size_t at = fuzz_next(&state) % size;
    unsigned char before = data[at];
    data[at] = (unsigned char)fuzz_next(&state);
    fuzz_run(data, size);
    data[at] = before;
  }
  return (long)most + 502;
}

int main(int argc, char **argv)
{
  run_rows();
  return fuzz_folder(argc > 1 ? argv[1] : NULL, run_file, NULL);
}
