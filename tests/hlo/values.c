// The builder's programs on a real engine: the values of values.txt, which were
// computed without calx. The plugin's path is in CALX_PLUGIN.
#include <math.h>

#include "hlo/check.h"
#include "hlo/number.h"
#include "hlo/programs.h"
#include "pjrt/pjrt.h"

static cx_pjrt_client *client;

// What an element must be close to.
static bool is_right(cx_hlo_elem e, const unsigned char *p, const char *word)
{
  if (!cx_hlo_elem_is_float(e)) {
    const int64_t want = word[0] == '-' ? strtoll(word, NULL, 10)
                                        : (int64_t)strtoull(word, NULL, 10);
    return cx_hlo_load_int(e, p) == want;
  }
  const double want = strtod(word, NULL);
  const double got = cx_hlo_load_real(e, p);
  if (isnan(want) || isinf(want)) {
    return isnan(want) ? isnan(got) : got == want;
  }
  return fabs(got - want) <= 1e-6 + 1e-5 * fabs(want);
}

// Compares with the rest of a line of values.txt.
static void check_values(const char *name, size_t result, const cx_hlo_type *t,
                         const unsigned char *data, char *words)
{
  const int64_t n = cx_hlo_type_elements(t);
  int64_t i = 0;
  for (char *w = strtok(words, " "); w != NULL; w = strtok(NULL, " "), i++) {
    assert_true(i < n);
    const unsigned char *at = data + (size_t)i * cx_hlo_elem_bytes(t->elem);
    if (is_right(t->elem, at, w)) continue;
    cx_text got = { 0 };
    cx_hlo_print_element(&got, t->elem, at);
    print_error("%s, result %zu, element %lld: wanted %s, got %s\n", name,
                result, (long long)i, w, cx_text_str(&got));
    cx_text_free(&got);
    fail();
  }
  assert_int_equal(i, n);
}

static void compile(const cx_hlo_module *m, cx_pjrt_executable **out)
{
  const cx_hlo_func *f = cx_hlo_entry(m);
  cx_pjrt_shape shapes[32];
  for (size_t i = 0; i < f->n_results; i++) {
    const cx_hlo_type *t = &f->results[i].tensor;
    assert_true(cx_pjrt_shape_make(cx_hlo_elem_dtype(t->elem), t->dims, t->rank,
                                   &shapes[i]));
  }
  const cx_pjrt_signature signature = { .results = shapes,
                                        .n_results = f->n_results };
  cx_text text = { 0 };
  cx_hlo_print(m, &text);
  CHECK_OK(cx_pjrt_compile(client, cx_text_str(&text), text.size, NULL,
                           &signature, out));
  cx_text_free(&text);
}

// The words behind "name result " in values.txt, cut off at the line's end.
static char *find_line(char *all, const char *name, size_t result)
{
  char start[64];
  snprintf(start, sizeof start, "\n%s %zu", name, result);
  char *line = all;
  const size_t n = strlen(start);
  while ((line = strstr(line, start)) != NULL) {
    line += n;
    if (*line == ' ' || *line == '\n') break;
  }
  assert_non_null(line);
  char *end = strchr(line, '\n');
  const size_t size = (size_t)(end - line);
  char *words = malloc(size + 1);
  memcpy(words, line, size);
  words[size] = '\0';
  return words;
}

static void check_program(const program *p, char *all)
{
  cx_hlo_module *m = NULL;
  cx_pjrt_executable *e = NULL;
  cx_pjrt_buffer *results[32] = { NULL };
  CHECK_OK(program_module(p, &m));
  compile(m, &e);
  CHECK_OK(cx_pjrt_execute(e, 0, NULL, 0, results, NULL));
  const cx_hlo_func *f = cx_hlo_entry(m);
  for (size_t i = 0; i < f->n_results; i++) {
    const cx_hlo_type *t = &f->results[i].tensor;
    const size_t size =
        (size_t)cx_hlo_type_elements(t) * cx_hlo_elem_bytes(t->elem);
    unsigned char *data = malloc(size + 1);
    char *words = find_line(all, p->name, i);
    CHECK_OK(cx_pjrt_buffer_to_host(results[i], data, size));
    check_values(p->name, i, t, data, words);
    cx_pjrt_buffer_release(results[i]);
    free(words);
    free(data);
  }
  cx_pjrt_executable_release(e);
  cx_hlo_module_free(m);
}

static void test_values(void **state)
{
  (void)state;
  cx_pjrt_plugin *plugin = NULL;
  CHECK_OK(cx_pjrt_plugin_open(NULL, &plugin));
  CHECK_OK(cx_pjrt_client_open(plugin, NULL, &client));
  char *all = check_file("values.txt");
  for (size_t i = 0; i < n_programs; i++) check_program(&programs[i], all);
  cx_free(all);
  cx_pjrt_client_close(client);
  assert_int_equal(cx_pjrt_live(), 0);
  print_message("%zu programs\n", n_programs);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_values) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
