// The entries of all static programs of upstream's test suite: CALX_SHARED's
// stablehlo_cases. Their bodies are in the pretty form.
#include "hlo/check.h"

static char *read_shared(const char *name)
{
  const char *shared = getenv("CALX_SHARED");
  char path[1024];
  snprintf(path, sizeof path, "%s/stablehlo_cases/%s",
           shared == NULL ? CX_TEST_DIR "/../../../shared" : shared, name);
  FILE *f = fopen(path, "rb");
  if (f == NULL) return NULL;
  cx_text text = { 0 };
  static char piece[65536];
  for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;) {
    cx_text_append_n(&text, piece, n);
  }
  fclose(f);
  return cx_text_take(&text);
}

// A file holds several modules, with a line "// -----" between them.
static size_t check_modules(const char *name, const char *text)
{
  size_t n = 0;
  while (text != NULL) {
    const char *end = strstr(text, "// -----");
    const size_t size = end == NULL ? strlen(text) : (size_t)(end - text);
    cx_hlo_signature s;
    calx_status *status = cx_hlo_parse_signature(text, size, name, &s);
    if (status != NULL) print_error("%s\n", calx_status_message(status));
    assert_null(status);
    cx_hlo_signature_free(&s);
    n++;
    text = end == NULL ? NULL : end + 8;
  }
  return n;
}

static void test_cases(void **state)
{
  (void)state;
  char *list = read_shared("list.tsv");
  if (list == NULL) {
    print_message("the folder of the cases is not here\n");
    skip();
  }
  size_t files = 0;
  size_t modules = 0;
  for (char *line = strtok(list, "\n"); line; line = strtok(NULL, "\n")) {
    char *tab = strchr(line, '\t');
    if (tab == NULL || strncmp(tab, "\tstatic\t", 8) != 0) continue;
    *tab = '\0';
    char *text = read_shared(line);
    assert_non_null(text);
    modules += check_modules(line, text);
    files++;
    cx_free(text);
  }
  cx_free(list);
  print_message("%zu files, %zu modules, none skipped\n", files, modules);
  assert_int_equal(files, 765);
}

int main(void)
{
  const struct CMUnitTest tests[] = { CHECK_TEST(test_cases) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
