// torch_grid: a grid of calls beside PyTorch, which computes what is wanted
// here and now: torch_grid.py says which. A sample of the cases, the first of
// each op and one of EVERY; all of them with CALX_TEST_LONG=1. Those that
// PyTorch refuses always. CX_GRID_PART: a part of it alone.
#include "oracle.h"

#include "support/long.h"
#include "support/torch.h"

static const miss misses[] = { { 0 } };

#ifdef CX_GRID_PART
enum { CASES_AT_LEAST = 1500, EVERY = 16 };
#else
#define CX_GRID_PART ""
enum { CASES_AT_LEAST = 1500, EVERY = 24 };
#endif

static char folder[] = "/tmp/calx_torch_grid_XXXXXX";

static void generate(void)
{
  assert_non_null(mkdtemp(folder));
  if (CX_GRID_PART[0] != '\0') setenv("CALX_TEST_PARTS", CX_GRID_PART, 1);
  torch_run("torch_grid.py", folder, "");
  setenv("CALX_SHARED", folder, 1);
}

static void clean(void)
{
  char path[128];
  static const char *const names[] = { "oracle/ops.json",
                                       "oracle/ops.safetensors", "oracle" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    assert_int_equal(remove(path), 0);
  }
  assert_int_equal(remove(folder), 0);
}

// Whether no case of the op was seen before, refused ones aside.
static bool is_first(json_t *seen, const json_t *k)
{
  const char *op = json_string_value(json_object_get(k, "op"));
  if (json_object_get(seen, op) != NULL) return false;
  json_object_set_new(seen, op, json_true());
  return true;
}

static void test_grid(void **state)
{
  (void)state;
  generate();
  json_t *all = safetensors_json("oracle/ops.json"), *k;
  safetensors *f = safetensors_open("oracle/ops.safetensors");
  const char *only = getenv("CALX_TEST_CASE");
  // XLA compiles a case for tenths of a second.
  long sample = support_own_engine() ? EVERY : 3 * EVERY;
  size_t i, every = (size_t)long_or(1, sample);
  tally t = { 0, 0, 0 };
  json_t *cases = json_object_get(all, "cases"), *seen = json_object();
  json_array_foreach(cases, i, k)
  {
    const char *id = json_string_value(json_object_get(k, "id"));
    bool refused = json_is_true(json_object_get(k, "raises"));
    bool taken = only != NULL ? strncmp(only, id, strlen(only)) == 0
                              : refused || is_first(seen, k) || i % every == 0;
    if (taken) oracle_case(k, f, misses, &t);
  }
  print_message("grid: %zu cases, %d ran, %d of them passed\n",
                json_array_size(cases), t.ran, t.passed - t.skipped);
  assert_true(json_array_size(cases) >= CASES_AT_LEAST);
  safetensors_close(f);
  json_decref(seen);
  json_decref(all);
  clean();
  assert_int_equal(t.skipped, 0);
  assert_int_equal(t.passed, t.ran);
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_grid) };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
