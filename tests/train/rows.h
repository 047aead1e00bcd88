// rows: a logger that keeps what it is given as lines "3 lr-SGD=0.1".
#ifndef CX_TESTS_TRAIN_ROWS_H
#define CX_TESTS_TRAIN_ROWS_H

#include <stdio.h>
#include <string.h>

#include "calx/loggers.h"

typedef struct rows {
  char text[16384];
} rows;

static inline calx_status *rows_take(void *user,
                                     const calx_logged_value *values,
                                     size_t count, int64_t step)
{
  rows *r = user;
  size_t n = strlen(r->text);
  n += (size_t)snprintf(r->text + n, sizeof r->text - n, "%lld",
                        (long long)step);
  for (size_t i = 0; i < count && n < sizeof r->text; i++) {
    n += (size_t)snprintf(r->text + n, sizeof r->text - n, " %s=%.9g",
                          values[i].name, values[i].value);
  }
  if (n < sizeof r->text) snprintf(r->text + n, sizeof r->text - n, "\n");
  return NULL;
}

static inline calx_logger *rows_logger(rows *r)
{
  return calx_logger_new(
      &(calx_logger_functions){ .size = sizeof(calx_logger_functions),
                                .log_metrics = rows_take },
      r);
}

#endif
