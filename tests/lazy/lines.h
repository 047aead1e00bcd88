// lines: what the library logs, kept for the tests to look at.
#ifndef CX_TESTS_LAZY_LINES_H
#define CX_TESTS_LAZY_LINES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LINES_MAX = 64, LINES_WIDTH = 1024 };

static struct {
  pthread_mutex_t lock;
  char text[LINES_MAX][LINES_WIDTH];
  int count;
} lines = { .lock = PTHREAD_MUTEX_INITIALIZER };

// A calx_log_fn.
static inline void lines_take(void *user, const char *line)
{
  (void)user;
  pthread_mutex_lock(&lines.lock);
  if (lines.count < LINES_MAX) {
    snprintf(lines.text[lines.count++], LINES_WIDTH, "%s", line);
  }
  pthread_mutex_unlock(&lines.lock);
}

static inline void lines_clear(void)
{
  pthread_mutex_lock(&lines.lock);
  lines.count = 0;
  pthread_mutex_unlock(&lines.lock);
}

// How many lines hold this piece of text.
static inline int lines_with(const char *piece)
{
  int n = 0;
  pthread_mutex_lock(&lines.lock);
  for (int i = 0; i < lines.count; i++) {
    n += strstr(lines.text[i], piece) != NULL;
  }
  pthread_mutex_unlock(&lines.lock);
  return n;
}

static inline void lines_show(void)
{
  for (int i = 0; i < lines.count; i++) printf("line: %s\n", lines.text[i]);
}

#endif
