// io/fetch: a tensor's elements on the host, one tensor at a time.
#ifndef CX_IO_FETCH_H
#define CX_IO_FETCH_H

#include "calx/tensor.h"

typedef struct cx_io_elements {
  const void *data;  // row-major; NULL only where there are none
  size_t bytes;
  void *owned;
} cx_io_elements;

// Whether the elements can be fetched. A save asks this for every tensor before
// it writes anything.
calx_status *cx_io_fetchable(const calx_tensor *t) CALX_MUST_USE;
// How many bytes the elements have.
size_t cx_io_bytes(const calx_tensor *t);
// Gives the memory of a host tensor itself. The elements of a device tensor are
// copied to the host; a pending tensor is computed first.
calx_status *cx_io_fetch(calx_tensor *t, cx_io_elements *out) CALX_MUST_USE;
void cx_io_fetched(cx_io_elements *elements);  // frees the copy

// Converts n elements as torch.Tensor.copy_ does.
void cx_io_convert(calx_dtype from, const void *in, calx_dtype to, void *out,
                   size_t n);

#endif
