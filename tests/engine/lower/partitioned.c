// Programs over a mesh as JAX lowers them: those of partitioned.txt, which
// partitioned.py made, have JAX's results on one device, compiled and
// interpreted. Then shardings that are wrong or not supported.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "parts.h"

enum { DEVICES = 4, MOST = 64 };
#define DASHES "--------\n"

static void check(const char *program, const char *numbers, bool interpret)
{
  static float values[PARTS_VALUES][MOST];
  const float *args[PARTS_VALUES];
  float *results[PARTS_VALUES];
  float got[PARTS_VALUES][MOST];
  for (int k = 0; k < PARTS_VALUES; k++) {
    for (int e = 0; e < MOST; e++) {
      values[k][e] = (float)((7 * e + 5 * k) % 13 - 6) / 8;
      got[k][e] = NAN;
    }
    args[k] = values[k];
    results[k] = got[k];
  }
  parts_run(program, DEVICES, interpret, args, results);
  size_t n = 0;
  for (int k = 0; k < PARTS_VALUES; k++) {
    for (int e = 0; e < MOST && !isnan(got[k][e]); e++, n++) {
      char *end = NULL;
      const double want = strtod(numbers, &end);
      assert_ptr_not_equal(numbers, end);
      CHECK_CLOSE((double)got[k][e], want, 1e-6);
      numbers = end;
    }
  }
  assert_true(n > 0);
  assert_int_equal(*numbers, '\n');
}

static void test_recorded(void **state)
{
  char *data = NULL;
  size_t size = 0, n = 0;
  (void)state;
  CHECK_STATUS_OK(
      cx_file_read(CX_TEST_DIR "/partitioned.txt", 1 << 20, &data, &size));
  for (char *at = data, *end; (end = strstr(at, DASHES)) != NULL; n++) {
    const char *numbers = end + strlen(DASHES);
    *end = '\0';
    check(at, numbers, false);
    check(at, numbers, true);
    at = strstr(numbers, DASHES) + strlen(DASHES);
  }
  assert_int_equal(n, 3);
  assert_true(parts_n_split > 0);
  cx_free(data);
}

// ---- what moves ----

// Adds n updates, of which each device has a part, into zeros of so many rows.
static void check_moves(int rows, int n, const char *there, const char *absent)
{
  cx_text text = { 0 }, out = { 0 };
  cx_text_format(
      &text,
      "sdy.mesh @mesh = <[\"a\"=2, \"b\"=2]>\n"
      "func.func @main(%%i: tensor<%dx1xi32> {sdy.sharding = "
      "#sdy.sharding<@mesh, [{\"a\", \"b\"}, {}]>}, %%u: tensor<%dx8xf32> "
      "{sdy.sharding = #sdy.sharding<@mesh, [{\"a\", \"b\"}, {}]>}) -> "
      "tensor<%dx8xf32> {\n"
      "%%z = stablehlo.constant dense<0.0> : tensor<%dx8xf32>\n"
      "%%s = \"stablehlo.scatter\"(%%z, %%i, %%u) <{scatter_dimension_numbers = "
      "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
      "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n"
      "^bb0(%%p: tensor<f32>, %%q: tensor<f32>):\n"
      "%%r = stablehlo.add %%p, %%q : tensor<f32>\n"
      "stablehlo.return %%r : tensor<f32>\n"
      "}) : (tensor<%dx8xf32>, tensor<%dx1xi32>, tensor<%dx8xf32>) -> "
      "tensor<%dx8xf32>\n"
      "return %%s : tensor<%dx8xf32>\n}\n",
      n, n, rows, rows, rows, n, n, rows, rows);
  const cpu_lower_compile_options options = { .n_partitions = DEVICES };
  CHECK_STATUS_OK(
      cpu_lower_optimized(cx_text_str(&text), text.size, &options, &out));
  assert_non_null(strstr(cx_text_str(&out), there));
  assert_null(strstr(cx_text_str(&out), absent));
  assert_null(strstr(cx_text_str(&out), "sdy"));
  cx_text_free(&text);
  cx_text_free(&out);
}

static void test_fewest_bytes(void **state)
{
  (void)state;
  check_moves(4096, 64, "all_gather", "all_reduce");  // the updates
  check_moves(4, 4096, "all_reduce", "all_gather");   // the table
}

// ---- refused ----

#define AB "<[\"a\"=2, \"b\"=2]>"

typedef struct refusal {
  const char *mesh, *sharding;  // of a tensor<6x8xf32>, after '<@mesh, '
  uint32_t n_replicas;
  calx_code code;
  const char *words;
} refusal;

static const refusal refusals[] = {
  { AB, "[{\"c\"}, {}]", 1, CALX_INVALID_ARGUMENT, "no axis 'c'" },
  { AB, "[{\"a\", \"a\"}, {}]", 1, CALX_INVALID_ARGUMENT, "there twice" },
  { AB, "[{\"a\"}, {\"a\"}]", 1, CALX_INVALID_ARGUMENT, "two dimensions" },
  { AB, "[{\"a\"}]", 1, CALX_INVALID_ARGUMENT, "1 dimensions" },
  { AB, "[{\"a\", \"b\"}, {}]", 1, CALX_UNIMPLEMENTED, "not equal" },
  { AB, "[{\"a\":(1)2}, {}]", 1, CALX_UNIMPLEMENTED, "part of an axis" },
  { AB, "[{}, {}], unreduced=max{\"a\"}", 1, CALX_UNIMPLEMENTED, "than a sum" },
  { AB, "[{\"a\"}, {}], unreduced={\"a\"}", 1, CALX_INVALID_ARGUMENT,
    "is unreduced" },
  { AB, "[{\"a\"}, {}]", 2, CALX_UNIMPLEMENTED, "2 replicas" },
  { "<[\"a\"=2]>", "[{\"a\"}, {}]", 1, CALX_INVALID_ARGUMENT,
    "mesh of 2 devices" },
  { "<[\"a\"=2, \"b\"=2], device_ids=[0, 1, 1, 3]>", "[{\"a\"}, {}]", 1,
    CALX_INVALID_ARGUMENT, "each of 0 to 3 once" },
  { "<[\"a\"=0]>", "[{}, {}]", 1, CALX_INVALID_ARGUMENT, "1 to 65536" },
  { "<[\"a\"=4611686018427387904, \"b\"=4]>", "[{}, {}]", 1,
    CALX_INVALID_ARGUMENT, "1 to 65536" },
  { AB "\nsdy.mesh @other = <[\"c\"=4], device_ids=[1, 0, 2, 3]>", "[{}, {}]",
    1, CALX_UNIMPLEMENTED, "different orders" },
  { AB "\nsdy.mesh @other = <[\"c\"=4]>", "[{\"c\"}, {}]", 1,
    CALX_INVALID_ARGUMENT, "no axis 'c'" },
};

// Of a parameter, a constraint and a result.
static void refuse(const refusal *r, int place)
{
  cx_text sharding = { 0 }, text = { 0 }, shardings = { 0 };
  cpu_threads *pool = NULL;
  cpu_run_program *p = NULL;
  cx_text_format(&sharding, " {sdy.sharding = #sdy.sharding<@mesh, %s>}",
                 r->sharding);
  cx_text_format(&text, "sdy.mesh @mesh = %s\n", r->mesh);
  cx_text_format(&text,
                 "func.func @main(%%x: tensor<6x8xf32>%s) -> "
                 "(tensor<6x8xf32>%s) {\n",
                 place == 0 ? cx_text_str(&sharding) : "",
                 place == 1 ? cx_text_str(&sharding) : "");
  if (place == 2) {
    cx_text_format(&text,
                   "%%y = sdy.sharding_constraint %%x <@mesh, %s> : "
                   "tensor<6x8xf32>\n",
                   r->sharding);
  }
  cx_text_format(&text, "return %%%c : tensor<6x8xf32>\n}\n",
                 place == 2 ? 'y' : 'x');
  CHECK_STATUS_OK(cpu_threads_new(1, &pool));
  const cpu_lower_compile_options options = { .n_replicas = r->n_replicas,
                                              .n_partitions = DEVICES,
                                              .shardings = &shardings,
                                              .threads = pool };
  CHECK_STATUS(r->code,
               cpu_lower_compile(cx_text_str(&text), text.size, &options, &p),
               r->words);
  assert_null(p);
  cpu_threads_free(pool);
  cx_text_free(&sharding);
  cx_text_free(&text);
  cx_text_free(&shardings);
}

static void test_refused(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    // A constraint that does not divide evenly is followed in part.
    const bool uneven = strcmp(refusals[i].words, "not equal") == 0;
    for (int place = 0; place < (uneven ? 2 : 3); place++) {
      refuse(&refusals[i], place);
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_recorded),
                                      cmocka_unit_test(test_fewest_bytes),
                                      cmocka_unit_test(test_refused) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
