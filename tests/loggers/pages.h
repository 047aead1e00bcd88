// pages: what is in report.html.
#ifndef CX_TESTS_LOGGERS_PAGES_H
#define CX_TESTS_LOGGERS_PAGES_H

#include "folders.h"

#define PAGE "lightning_logs/version_0/report.html"

static inline long size_of(const char *name)
{
  struct stat info;
  assert_int_equal(stat(in_folder(name), &info), 0);
  return (long)info.st_size;
}

// test_free() it.
static inline char *page_of(const char *name)
{
  FILE *f = fopen(in_folder(name), "rb");
  assert_non_null(f);
  const size_t size = (size_t)size_of(name);
  char *data = test_malloc(size + 1);
  assert_int_equal(fread(data, 1, size, f), size);
  fclose(f);
  data[size] = '\0';
  return data;
}

static inline void check_page(const char *name, const char *const *pieces)
{
  char *page = page_of(name);
  for (; *pieces != NULL; pieces++) {
    if (strstr(page, *pieces) == NULL) {
      print_error("'%s' is not in the page\n", *pieces);
      break;
    }
  }
  test_free(page);
  assert_null(*pieces);
}
#define CHECK_PAGE(name, ...) \
  check_page(name, (const char *const[]){ __VA_ARGS__, NULL })

#endif
