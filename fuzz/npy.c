// fuzz/npy: any bytes as a .npy file.
//
// What is accepted must be whole: every element readable, and as many as the
// shape says. What is refused must say why and leave nothing. Built with
// -fsanitize=fuzzer this is libFuzzer's entry; fuzz/idx_main.c runs it over a
// corpus without one.
#include "io/npy.h"

#include "io_value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  long blocks = cx_alloc_live();
  cx_io_map *map;
  calx_value *value;
  fuzz_check(cx_io_map_memory("input", data, size, &map) == NULL);
  calx_status *status = cx_io_npy_read(map, &value);
  fuzz_read(status, value);
  calx_value_free(value);
  cx_io_map_release(map);
  calx_status_free(status);
  fuzz_check(cx_alloc_live() == blocks);
  return 0;
}
