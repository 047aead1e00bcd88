// train/callback_state: the parts of callbacks' states as Python has them.
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/text.h"
#include "lazy/lazy.h"
#include "train/internal.h"

// Without escapes, as names and words need none.
void cx_train_put_quoted(cx_text *out, const char *text)
{
  if (text == NULL) {
    cx_text_append(out, "None");
    return;
  }
  const char quote =
      strchr(text, '\'') != NULL && strchr(text, '"') == NULL ? '"' : '\'';
  cx_text_format(out, "%c%s%c", quote, text, quote);
}

// f32, as Lightning's are, but for a number that f32 does not have.
calx_value *cx_train_put_scalar(double number)
{
  const float narrow = (float)number;
  const bool fits = isnan(number) || (double)narrow == number;
  const void *data = fits ? (const void *)&narrow : &number;
  calx_scope *scope = calx_scope_begin();
  calx_value *value = calx_value_tensor(calx_host_tensor(
      data, fits ? CALX_F32 : CALX_F64, calx_dims_of(NULL, 0)));
  calx_status *status = calx_scope_end(scope);
  if (status == NULL) return value;
  calx_status_free(status);
  calx_value_free(value);
  return NULL;
}

double cx_train_take_scalar(const calx_value *value)
{
  const calx_tensor *tensor = calx_value_as_tensor(value);
  unsigned char bytes[16];
  if (tensor == NULL) return calx_value_as_float(value);
  const calx_dtype dtype = calx_tensor_dtype(tensor);
  if (calx_tensor_numel(tensor) != 1 || cx_dtype_is_complex(dtype)) {
    return (double)NAN;
  }
  calx_status *status = calx_tensor_read(calx_value_as_tensor(value), bytes,
                                         calx_dtype_size(dtype));
  if (status == NULL) return cx_load_double(dtype, bytes);
  calx_status_free(status);
  return (double)NAN;
}
