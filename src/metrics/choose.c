// metrics/choose: an option that is one of a few texts.
#include <string.h>

#include "base/text.h"
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
