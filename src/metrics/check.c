// metrics/check: shapes that are to be equal, and options that are one of a few
// texts.
#include <string.h>

#include "base/text.h"
#include "lazy/lazy.h"
#include "metrics/metrics.h"

calx_status *cx_metrics_choose(const char *what, const char *option,
                               const char *text, const char *const *allowed,
                               int *out)
{
  *out = 0;
  if (text == NULL) return NULL;
  for (int i = 0; allowed[i] != NULL; i++) {
    if (strcmp(text, allowed[i]) != 0) continue;
    *out = i;
    return NULL;
  }
  cx_text list = { 0 };
  for (int i = 0; allowed[i] != NULL; i++) {
    cx_text_format(&list, "%s'%s'", i == 0 ? "" : ", ", allowed[i]);
  }
  calx_status *status =
      cx_invalid("%s: Expected argument `%s` to be one of (%s), but got '%s'",
                 what, option, cx_text_str(&list), text);
  cx_text_free(&list);
  return status;
}

bool cx_metrics_is_same_shape(const calx_tensor *a, const calx_tensor *b)
{
  const calx_dims x = calx_tensor_shape(a), y = calx_tensor_shape(b);
  return x.count == y.count &&
         memcmp(x.values, y.values, x.count * sizeof *x.values) == 0;
}

calx_status *cx_metrics_check_same_shape(const calx_metric *m,
                                         const calx_tensor *preds,
                                         const calx_tensor *target)
{
  if (cx_metrics_is_same_shape(preds, target)) return NULL;
  return cx_invalid(
      "%s: Predictions and targets are expected to have the same shape, but "
      "got %s and %s",
      m->name, cx_graph_shape_str(cx_lazy_tensor_shape(preds)),
      cx_graph_shape_str(cx_lazy_tensor_shape(target)));
}
