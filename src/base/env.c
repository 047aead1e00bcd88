// base/env: see env.h.
#include "base/env.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"

const char *cx_env_text(const char *name)
{
  const char *text = name != NULL ? getenv(name) : NULL;
  return text != NULL && text[0] != '\0' ? text : NULL;
}

calx_status *cx_env_int(const char *name, int least, int most, int *out)
{
  const char *text = cx_env_text(name);
  int64_t value = -1;
  *out = -1;
  bool digits = text != NULL && text[strspn(text, "0123456789")] == '\0';
  if (text != NULL && !(digits && cx_read_int(text, least, most, &value))) {
    return cx_invalid("%s is '%s', a number from %d to %d is wanted", name,
                      text, least, most);
  }
  *out = (int)value;
  return NULL;
}

int64_t cx_env_ms(const char *name, bool zero_is_valid, int otherwise_s)
{
  const char *text = cx_env_text(name);
  if (text == NULL) return (int64_t)otherwise_s * 1000;
  char *end;
  double seconds = strtod(text, &end);
  bool valid = seconds > 0 || (zero_is_valid && seconds == 0);
  if (*end == '\0' && valid && seconds < 1e9) {
    // 0 is off or for ever: a value is never rounded to it.
    return (int64_t)ceil(seconds * 1000);
  }
  cx_log_once_per_site(name,
                       "%s is '%s', a number of seconds is wanted: %d is used",
                       name, text, otherwise_s);
  return (int64_t)otherwise_s * 1000;
}

void cx_env_set_int(const char *name, int value)
{
  char text[16];
  snprintf(text, sizeof text, "%d", value);
  setenv(name, text, 1);
}
