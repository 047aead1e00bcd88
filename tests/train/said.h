// said: the library's lines of a run, of all ranks.
#ifndef CX_TESTS_TRAIN_SAID_H
#define CX_TESTS_TRAIN_SAID_H

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "calx/status.h"

static struct {
  pthread_mutex_t lock;
  char text[8192];
} said_lines = { .lock = PTHREAD_MUTEX_INITIALIZER };

static inline void said_take(void *user, const char *line)
{
  (void)user;
  pthread_mutex_lock(&said_lines.lock);
  const size_t used = strlen(said_lines.text);
  if (used + strlen(line) + 2 < sizeof said_lines.text) {
    strcat(strcat(said_lines.text, line), "\n");
  }
  pthread_mutex_unlock(&said_lines.lock);
}

// From here on they are kept, until said_end().
static inline void said_begin(void)
{
  said_lines.text[0] = '\0';
  calx_log_set(said_take, NULL);
}

static inline void said_end(void)
{
  calx_log_set(NULL, NULL);
}

// How often a line with this in it was written.
static inline int said_count(const char *part)
{
  int n = 0;
  const char *at = said_lines.text;
  while ((at = strstr(at, part)) != NULL) {
    n++;
    at += strlen(part);
  }
  return n;
}

#endif
