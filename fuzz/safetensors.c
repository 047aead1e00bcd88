// fuzz/safetensors: any bytes as a safetensors file.
//
// What is accepted must be whole: every tensor's elements readable, inside the
// file and as many as its shape says. What is refused must say why and leave
// nothing. Built with -fsanitize=fuzzer this is libFuzzer's entry;
// fuzz/idx_main.c runs it over a corpus without one.
#include <stdlib.h>

#include "io/safetensors.h"
#include "io_value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  long blocks = cx_alloc_live();
  cx_io_map *map;
  calx_value *dict, *metadata;
  calx_status *status = cx_io_map_memory("input", data, size, &map);
  fuzz_check(status == NULL);
  status = cx_io_safetensors_read(map, &dict, &metadata);
  fuzz_read(status, dict);
  fuzz_check((metadata == NULL) == (status != NULL));
  calx_value_free(dict);
  calx_value_free(metadata);
  cx_io_map_release(map);
  calx_status_free(status);
  fuzz_check(cx_alloc_live() == blocks);
  return 0;
}
