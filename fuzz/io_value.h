// fuzz/io_value: what must hold of a value that a reader made, or of its
// refusal.
#ifndef CX_FUZZ_IO_VALUE_H
#define CX_FUZZ_IO_VALUE_H

#include <stdlib.h>

#include "base/alloc.h"
#include "base/status.h"
#include "calx/io.h"

static inline void fuzz_check(int right)
{
  if (!right) abort();
}

static inline void fuzz_walk(const calx_value *v, int depth)
{
  volatile unsigned char last = 0;
  const unsigned char *bytes = NULL;
  size_t n = 0;
  fuzz_check(depth < 100);
  const calx_tensor *t = calx_value_as_tensor(v);
  if (t != NULL) {
    n = (size_t)calx_tensor_numel(t) * calx_dtype_size(calx_tensor_dtype(t));
    bytes = calx_host_data(t);
    fuzz_check(calx_tensor_is_host(t) && (bytes != NULL || n == 0));
  } else if (calx_value_as_string(v) != NULL) {
    bytes = (const unsigned char *)calx_value_as_string(v);
    n = calx_value_count(v) + 1;
  }
  for (size_t i = 0; i < n; i++) last = bytes[i];
  (void)last;
  for (size_t i = 0; calx_value_item(v, i) != NULL; i++) {
    const char *key = calx_value_key(v, i);
    const calx_value *item = calx_value_item(v, i);
    if (key != NULL) fuzz_check(calx_value_get(v, key) == item);
    fuzz_walk(item, depth + 1);
  }
}

static inline void fuzz_read(const calx_status *status, const calx_value *value)
{
  calx_code code = calx_status_code(status);
  fuzz_check((value == NULL) == (status != NULL));
  fuzz_check(code == CALX_OK || code == CALX_DATA_LOSS ||
             code == CALX_UNIMPLEMENTED || code == CALX_RESOURCE_EXHAUSTED ||
             code == CALX_INVALID_ARGUMENT);
  fuzz_check(calx_status_message(status)[0] != '\0');
  if (value != NULL) fuzz_walk(value, 0);
}

#endif
