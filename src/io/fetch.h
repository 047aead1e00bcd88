// io/fetch: a tensor's elements on the host, one tensor at a time.
#ifndef CX_IO_FETCH_H
#define CX_IO_FETCH_H

#include "calx/tensor.h"

typedef struct cx_io_elements {
  const void *data;  // row-major; NULL only where there are none
  size_t bytes;
  void *owned;
} cx_io_elements;

// What can't be fetched is refused before anything is written.
calx_status *cx_io_fetchable(const calx_tensor *t) CALX_MUST_USE;
// Bytes of the elements.
size_t cx_io_bytes(const calx_tensor *t);
// Of a host tensor its own memory; of another a copy, computed first if it is
// pending.
calx_status *cx_io_fetch(calx_tensor *t, cx_io_elements *out) CALX_MUST_USE;
void cx_io_fetched(cx_io_elements *elements);  // frees the copy

// n elements of another type, as torch.Tensor.copy_ converts them.
void cx_io_convert(calx_dtype from, const void *in, calx_dtype to, void *out,
                   size_t n);

#endif
