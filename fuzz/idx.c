// fuzz/idx: any bytes as an IDX file of one, two and three dimensions.
//
// What is accepted must be whole: as many bytes as the sizes say, all of them
// readable. What is refused must say why and leave nothing. Built with
// -fsanitize=fuzzer this is libFuzzer's entry; fuzz/idx_main.c runs it over a
// corpus without one.
#include <stdlib.h>

#include "base/alloc.h"
#include "data/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int right)
{
  if (!right) abort();
}

static void decode(const uint8_t *data, size_t size, size_t rank)
{
  long blocks = cx_alloc_live();
  cx_data_idx idx;
  calx_status *status = cx_data_idx_decode("input", data, size, rank, &idx);
  if (status == NULL) {
    uint64_t bytes = 1;
    for (size_t d = 0; d < rank; d++) bytes *= (uint64_t)idx.dims[d];
    check(idx.rank == rank && idx.bytes == bytes);
    volatile uint8_t last = 0;
    for (size_t i = 0; i < idx.bytes; i++) last = idx.data[i];
    (void)last;
  } else {
    check(idx.data == NULL);
    check(calx_status_code(status) == CALX_DATA_LOSS ||
          calx_status_code(status) == CALX_RESOURCE_EXHAUSTED);
    check(calx_status_message(status)[0] != '\0');
  }
  cx_free(idx.data);
  calx_status_free(status);
  check(cx_alloc_live() == blocks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  for (size_t rank = 1; rank <= CX_DATA_IDX_RANK; rank++) {
    decode(data, size, rank);
  }
  return 0;
}
