// tables: what a run prints, caught in a file.
#ifndef CX_TESTS_TRAIN_TABLES_H
#define CX_TESTS_TRAIN_TABLES_H

#include <unistd.h>

#include "boring.h"
#include "lightning_tables.h"

static char tables_text[16384];

// Sends what the stream's descriptor gets to a file. tables_end() takes it.
static inline int tables_begin(FILE *stream)
{
  fflush(stream);
  const int before = dup(fileno(stream));
  FILE *file = tmpfile();
  assert_non_null(file);
  dup2(fileno(file), fileno(stream));
  fclose(file);
  return before;
}

static inline char *tables_end(FILE *stream, int before)
{
  fflush(stream);
  lseek(fileno(stream), 0, SEEK_SET);
  const ssize_t n = read(fileno(stream), tables_text, sizeof tables_text - 1);
  assert_true(n >= 0);
  tables_text[n] = '\0';
  dup2(before, fileno(stream));
  close(before);
  return tables_text;
}

static inline void tables_check(const char *got, const char *wanted, size_t i)
{
  if (strcmp(got, wanted) == 0) return;
  print_error("table %zu:\n%s\nis not\n%s\n", i, got, wanted);
  fail();
}

#endif
