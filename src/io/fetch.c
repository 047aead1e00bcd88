// io/fetch: a tensor's elements on the host, one tensor at a time, so that a
// save needs no more memory than its largest tensor has.
#include "io/fetch.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/status.h"
#include "lazy/lazy.h"
#include "profiler/profiler.h"

calx_status *cx_io_fetchable(const calx_tensor *t)
{
  return calx_tensor_is_host(t) ? NULL : cx_lazy_tensor_usable(t, "save", 0);
}

size_t cx_io_bytes(const calx_tensor *t)
{
  return (size_t)calx_tensor_numel(t) * calx_dtype_size(calx_tensor_dtype(t));
}

calx_status *cx_io_fetch(calx_tensor *t, cx_io_elements *out)
{
  *out = (cx_io_elements){ .bytes = cx_io_bytes(t) };
  if (calx_tensor_is_host(t)) {
    out->data = calx_host_data(t);
    return NULL;
  }
  out->data = out->owned = cx_alloc(out->bytes);
  if (out->owned == NULL) return cx_out_of_memory();
  cx_profiler_own_read();  // a save is no habit of the program's
  calx_status *status = calx_tensor_read(t, out->owned, out->bytes);
  if (status != NULL) cx_io_fetched(out);
  return status;
}

void cx_io_fetched(cx_io_elements *elements)
{
  cx_free(elements->owned);
  *elements = (cx_io_elements){ 0 };
}

void cx_io_convert(calx_dtype from, const void *in, calx_dtype to, void *out,
                   size_t n)
{
  const unsigned char *p = in;
  unsigned char *q = out;
  if (cx_dtype_is_complex(from) && cx_dtype_is_complex(to)) {
    from = cx_dtype_part(from);
    to = cx_dtype_part(to);
    n *= 2;
  }
  size_t read = calx_dtype_size(from), written = calx_dtype_size(to);
  bool exact = !cx_dtype_is_float(from) && !cx_dtype_is_float(to);
  for (size_t i = 0; i < n; i++, p += read, q += written) {
    if (exact) {
      cx_store_int(to, q, cx_load_int(from, p));
    } else {
      cx_store_double(to, q, cx_load_double(from, p));
    }
  }
}
