// nn/layer: see layer.h.
#include "nn/layer.h"

#include <stdlib.h>
#include <string.h>

#include "ops/ops.h"

calx_tensor *cx_nn_unusable(const calx_module *m, calx_tensor *x)
{
  calx_tensor *bad;
  return cx_ops_unfit(m->layer->call, &x, 1, &bad) ? bad : x;
}

calx_status *cx_nn_check_dtype(const char *call, calx_dtype dtype)
{
  if (dtype == CALX_DTYPE_DEFAULT || cx_dtype_is_float(dtype)) return NULL;
  return cx_invalid("%s: its type is to be %s, a floating one is wanted", call,
                    calx_dtype_name(dtype));
}

// The digits of %e with as few as are the same number, and its exponent.
static int shortest(double value, char *digits, size_t size)
{
  for (int precision = 0; precision < 17; precision++) {
    snprintf(digits, size, "%.*e", precision, value);
    if (strtod(digits, NULL) == value) break;
  }
  const char *e = strchr(digits, 'e');
  return e != NULL ? atoi(e + 1) : 0;
}

void cx_nn_repr_real(cx_text *out, double value)
{
  if (isnan(value) || isinf(value)) {
    cx_text_append(out, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
    return;
  }
  char text[32];
  int exponent = shortest(value, text, sizeof text);
  if (exponent < -4 || exponent >= 16) {
    cx_text_append(out, text);
    return;
  }
  const char *point = strchr(text, '.');
  int digits = point != NULL ? (int)(strchr(text, 'e') - point) : 1;
  int decimals = digits - 1 - exponent;
  char fixed[48];
  snprintf(fixed, sizeof fixed, "%.*f", decimals > 1 ? decimals : 1, value);
  cx_text_append(out, fixed);
}

void cx_nn_repr_tuple(cx_text *out, const int64_t *values, size_t n)
{
  cx_text_char(out, '(');
  for (size_t i = 0; i < n; i++) {
    if (i != 0) cx_text_append(out, ", ");
    cx_text_int(out, values[i]);
  }
  cx_text_append(out, n == 1 ? ",)" : ")");
}

void cx_nn_repr_sizes(cx_text *out, const int64_t *values, size_t n)
{
  size_t equal = 1;
  while (equal < n && values[equal] == values[0]) equal++;
  if (equal >= n)
    cx_text_int(out, values[0]);
  else
    cx_nn_repr_tuple(out, values, n);
}
