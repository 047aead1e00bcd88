// Direct algorithms at sizes that the interpreter takes too long for: compared
// with plain loops.
#include "lower/compile.h"
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

static cpu_threads *pool;

// Runs a program on these arguments. The caller frees the results.
static void run_text(const char *text, void *const *args, void **results)
{
  const cpu_lower_compile_options options = { .threads = pool };
  cpu_run_program *p = NULL;
  CHECK_STATUS_OK(cpu_lower_compile(text, strlen(text), &options, &p));
  const cpu_run_program_info *info = cpu_run_program_info_of(p);
  assert_int_equal(info->n_interpreted, 0);
  for (size_t i = 0; i < info->n_results; i++) {
    const size_t bytes = (size_t)cx_hlo_type_bytes(&info->results[i]);
    results[i] = aligned_alloc(64, (bytes + 64) / 64 * 64);
  }
  cpu_run_context *context = NULL;
  CHECK_STATUS_OK(cpu_run_context_new(pool, &context));
  cpu_coll_launch launch = { .n_replicas = 1, .n_partitions = 1 };
  CHECK_STATUS_OK(cpu_run_program_run(p, context, &launch, args, results));
  cpu_run_context_free(context);
  cpu_run_program_free(p);
}

// Numbers that look random, of a fixed seed.
static uint32_t next_number(uint64_t *state)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 32);
}

// ---- scans ----

#define ROW 70001

static void scans_of_long_rows(void **unused)
{
  (void)unused;
  static const char text[] =
      "func.func @main(%x: tensor<2x70001xi32>, %y: tensor<70001xf32>) -> "
      "(tensor<2x70001xi32>, tensor<70001xf32>) {\n"
      "  %z = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %m = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
      "  %0 = \"stablehlo.reduce_window\"(%x, %z) <{window_dimensions = "
      "array<i64: 1, 70001>, padding = dense<[[0, 0], [70000, 0]]> : "
      "tensor<2x2xi64>}> ({\n"
      "  ^bb0(%a: tensor<i32>, %b: tensor<i32>):\n"
      "    %c = stablehlo.add %a, %b : tensor<i32>\n"
      "    stablehlo.return %c : tensor<i32>\n"
      "  }) : (tensor<2x70001xi32>, tensor<i32>) -> tensor<2x70001xi32>\n"
      "  %1 = \"stablehlo.reduce_window\"(%y, %m) <{window_dimensions = "
      "array<i64: 70001>, padding = dense<[[0, 70000]]> : tensor<1x2xi64>}> "
      "({\n"
      "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
      "    %c = stablehlo.maximum %a, %b : tensor<f32>\n"
      "    stablehlo.return %c : tensor<f32>\n"
      "  }) : (tensor<70001xf32>, tensor<f32>) -> tensor<70001xf32>\n"
      "  return %0, %1 : tensor<2x70001xi32>, tensor<70001xf32>\n}";
  int32_t *x = malloc((size_t)2 * ROW * 4);
  float *y = malloc((size_t)ROW * 4);
  uint64_t state = 1;
  for (size_t i = 0; i < (size_t)2 * ROW; i++) {
    x[i] = (int32_t)next_number(&state);
  }
  // Falls from both ends, so that the last maximum is near the middle.
  for (int i = 0; i < ROW; i++) {
    y[i] = (float)(next_number(&state) % 1000) - (float)abs(i - ROW / 2) / 8;
  }
  void *results[2];
  run_text(text, (void *[]){ x, y }, results);
  const int32_t *sums = results[0];
  const float *most = results[1];
  for (int r = 0; r < 2; r++) {
    uint32_t sum = 0;
    for (int i = 0; i < ROW; i++) {
      sum += (uint32_t)x[r * ROW + i];
      assert_int_equal(sums[r * ROW + i], (int32_t)sum);
    }
  }
  float largest = y[ROW - 1];
  for (int i = ROW; i-- > 0;) {
    if (y[i] > largest) largest = y[i];
    assert_true(most[i] == largest);
  }
  free(x);
  free(y);
  free(results[0]);
  free(results[1]);
}

// ---- sorts ----

// [outer, n, inner] along n; f32 as JAX compares them, f64 by total order, or
// integers.
typedef struct sort_case {
  const char *elem;
  int bytes;
  int64_t outer, n, inner;
  bool descending;
  int64_t keep;  // the first elements of positions; 0: all
  bool beside;   // positions are read, not known
} sort_case;

static const sort_case sorts[] = {
  { "f32", 4, 1, 5, 1, false, 0, false },
  { "f32", 4, 3, 96, 2, true, 0, false },
  { "f32", 4, 7, 97, 1, false, 0, true },
  { "f32", 4, 2, 5000, 3, false, 0, false },
  { "f32", 4, 1, 70001, 1, true, 0, true },
  { "f32", 4, 3, 70001, 1, false, 0, false },
  { "f32", 4, 5, 3000, 1, true, 10, false },
  { "f32", 4, 7, 300, 1, true, 10, false },
  { "f32", 4, 2, 301, 3, false, 32, true },
  { "f32", 4, 2, 301, 1, true, 33, false },
  { "f32", 4, 2, 3000, 2, false, 750, true },
  { "f32", 4, 2, 3000, 2, false, 751, false },
  { "f64", 8, 3, 50, 1, true, 0, false },
  { "f64", 8, 2, 4097, 1, false, 0, true },
  { "f64", 8, 1, 66000, 1, true, 0, false },
  { "f64", 8, 3, 1000, 2, true, 1, false },
  { "i32", 4, 2, 20, 5, true, 0, false },
  { "i32", 4, 1, 100000, 1, false, 0, false },
  { "i32", 4, 4, 30000, 1, true, 100, true },
  { "i64", 8, 2, 300, 1, false, 0, true },
  { "i64", 8, 1, 5000, 1, true, 7, false },
  { "i32", 4, 2, 4000, 1, false, 1, true },
  { "ui8", 1, 2, 90, 2, false, 0, true },
  { "ui8", 1, 1, 6000, 1, true, 0, false },
};

static const char as_jax[] =
    "    %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "    %w = stablehlo.constant dense<0x7FC00000> : tensor<f32>\n"
    "    %1 = stablehlo.compare EQ, %a, %z, FLOAT : (tensor<f32>, tensor<f32>) "
    "-> tensor<i1>\n"
    "    %2 = stablehlo.select %1, %z, %a : tensor<i1>, tensor<f32>\n"
    "    %3 = stablehlo.compare NE, %a, %a, FLOAT : (tensor<f32>, tensor<f32>) "
    "-> tensor<i1>\n"
    "    %s = stablehlo.select %3, %w, %2 : tensor<i1>, tensor<f32>\n"
    "    %5 = stablehlo.compare EQ, %b, %z, FLOAT : (tensor<f32>, tensor<f32>) "
    "-> tensor<i1>\n"
    "    %6 = stablehlo.select %5, %z, %b : tensor<i1>, tensor<f32>\n"
    "    %7 = stablehlo.compare NE, %b, %b, FLOAT : (tensor<f32>, tensor<f32>) "
    "-> tensor<i1>\n"
    "    %t = stablehlo.select %7, %w, %6 : tensor<i1>, tensor<f32>\n";

static void sort_text(const sort_case *c, char *out, size_t room)
{
  const bool jax = strcmp(c->elem, "f32") == 0;
  const char *how = jax || strcmp(c->elem, "f64") == 0 ? "TOTALORDER"
                    : c->elem[0] == 'u'                ? "UNSIGNED"
                                                       : "SIGNED";
  const int64_t keep = c->keep == 0 ? c->n : c->keep;
  char whole[128], part[128];
  snprintf(whole, sizeof whole, "%lldx%lldx%lldx", (long long)c->outer,
           (long long)c->n, (long long)c->inner);
  snprintf(part, sizeof part, "%lldx%lldx%lldx", (long long)c->outer,
           (long long)keep, (long long)c->inner);
  snprintf(
      out, room,
      "func.func @main(%%x: tensor<%s%s>, %%p: tensor<%si32>) -> "
      "(tensor<%s%s>, tensor<%si32>) {\n"
      "  %%i = stablehlo.iota dim = 1 : tensor<%si32>\n"
      "  %%0:2 = \"stablehlo.sort\"(%%x, %s) <{dimension = 1 : i64, is_stable "
      "= true}> ({\n"
      "  ^bb0(%%a: tensor<%s>, %%b: tensor<%s>, %%c: tensor<i32>, %%d: "
      "tensor<i32>):\n"
      "%s"
      "    %%less = stablehlo.compare %s, %s, %s : (tensor<%s>, tensor<%s>) "
      "-> tensor<i1>\n"
      "    stablehlo.return %%less : tensor<i1>\n"
      "  }) : (tensor<%s%s>, tensor<%si32>) -> (tensor<%s%s>, tensor<%si32>)\n"
      "  %%v = stablehlo.slice %%0#0 [0:%lld, 0:%lld, 0:%lld] : "
      "(tensor<%s%s>) -> tensor<%s%s>\n"
      "  %%k = stablehlo.slice %%0#1 [0:%lld, 0:%lld, 0:%lld] : "
      "(tensor<%si32>) -> tensor<%si32>\n"
      "  return %%v, %%k : tensor<%s%s>, tensor<%si32>\n}",
      whole, c->elem, whole, part, c->elem, part, whole,
      c->beside ? "%p" : "%i", c->elem, c->elem, jax ? as_jax : "",
      c->descending ? "GT" : "LT", jax ? "%s, %t" : "%a, %b", how, c->elem,
      c->elem, whole, c->elem, whole, whole, c->elem, whole,
      (long long)c->outer, (long long)keep, (long long)c->inner, whole, c->elem,
      part, c->elem, (long long)c->outer, (long long)keep, (long long)c->inner,
      whole, part, part, c->elem, part);
}

// An element as a number in the order of the sort.
static int64_t rank_of(const sort_case *c, const unsigned char *p)
{
  int64_t v = 0;
  memcpy(&v, p, (size_t)c->bytes);
  if (c->elem[0] == 'i') return c->bytes == 4 ? (int32_t)v : v;
  if (c->elem[0] == 'u') return v;
  if (c->bytes == 8) return v < 0 ? INT64_MIN - v - 1 : v;
  const uint32_t bits = (uint32_t)v, size = bits & 0x7FFFFFFF;
  if (size > 0x7F800000) return 0x7F800001;
  return bits >> 31 ? -(int64_t)size : size;
}

typedef struct ranked {
  int64_t rank;
  int32_t at;
} ranked;

static int by_rank(const void *a, const void *b)
{
  const ranked *x = a, *y = b;
  if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
  return x->at < y->at ? -1 : 1;
}

static void check_line(const sort_case *c, const unsigned char *x,
                       const unsigned char *values, const int32_t *positions)
{
  const int64_t keep = c->keep == 0 ? c->n : c->keep;
  const size_t step = (size_t)(c->inner * c->bytes);
  ranked *line = malloc((size_t)c->n * sizeof *line);
  for (int64_t i = 0; i < c->n; i++) {
    const int64_t rank = rank_of(c, x + (size_t)i * step);
    line[i] = (ranked){ c->descending ? -1 - rank : rank, (int32_t)i };
  }
  qsort(line, (size_t)c->n, sizeof *line, by_rank);
  for (int64_t i = 0; i < keep; i++) {
    const int32_t at = line[i].at;
    assert_int_equal(positions[i * c->inner], c->beside ? at * 3 + 1 : at);
    assert_memory_equal(values + (size_t)i * step, x + (size_t)at * step,
                        (size_t)c->bytes);
  }
  free(line);
}

// Many equal ones, both zeros, infinities, NaNs of both signs, limits.
static void fill_sorted(const sort_case *c, unsigned char *x, int64_t n)
{
  static const uint32_t odd[] = { 0x80000000, 0,          0x7FC00000,
                                  0xFFC00001, 0x7F800000, 0xFF800000,
                                  0x7FFFFFFF, 1 };
  uint64_t state = 7;
  for (int64_t i = 0; i < n; i++) {
    const uint32_t r = next_number(&state);
    uint64_t v = (uint64_t)next_number(&state) << 32 | r;
    if (r % 5 == 0) v = (uint64_t)odd[r / 5 % 8] << (c->bytes == 8 ? 32 : 0);
    if (r % 5 == 1) v = 0x3F800000 + r / 5 % 4;
    memcpy(x + i * c->bytes, &v, (size_t)c->bytes);
  }
}

static void sorts_as_stable_ones(void **unused)
{
  (void)unused;
  for (size_t k = 0; k < sizeof sorts / sizeof sorts[0]; k++) {
    const sort_case *c = &sorts[k];
    const int64_t total = c->outer * c->n * c->inner;
    const int64_t keep = c->keep == 0 ? c->n : c->keep;
    char text[8192];
    sort_text(c, text, sizeof text);
    unsigned char *x = malloc((size_t)(total * c->bytes));
    int32_t *p = malloc((size_t)total * 4);
    fill_sorted(c, x, total);
    for (int64_t i = 0; i < total; i++) {
      p[i] = (int32_t)(i / c->inner % c->n) * 3 + 1;
    }
    void *results[2];
    run_text(text, (void *[]){ x, p }, results);
    for (int64_t line = 0; line < c->outer * c->inner; line++) {
      const int64_t o = line / c->inner, i = line % c->inner;
      const int64_t to = o * keep * c->inner + i;
      check_line(c, x + (o * c->n * c->inner + i) * c->bytes,
                 (unsigned char *)results[0] + to * c->bytes,
                 (int32_t *)results[1] + to);
    }
    free(x);
    free(p);
    free(results[0]);
    free(results[1]);
  }
}

// ---- scatters ----

#define UPDATES 3000
#define TARGETS 100

// So many updates of rows that several threads share them: each takes a block
// of the columns, and where rows are windows of two dimensions a part of those.
static void scatters_of_many_rows(void **unused)
{
  (void)unused;
  static const char form[] =
      "func.func @main(%%at: tensor<3000x1xi32>, %%u: tensor<3000x%sxi32>) -> "
      "tensor<100x%sxi32> {\n"
      "  %%z = stablehlo.constant dense<0> : tensor<100x%sxi32>\n"
      "  %%0 = \"stablehlo.scatter\"(%%z, %%at, %%u) "
      "<{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = "
      "[%s], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
      "index_vector_dim = 1>}> ({\n"
      "  ^bb0(%%a: tensor<i32>, %%b: tensor<i32>):\n"
      "    %%c = stablehlo.add %%a, %%b : tensor<i32>\n"
      "    stablehlo.return %%c : tensor<i32>\n"
      "  }) : (tensor<100x%sxi32>, tensor<3000x1xi32>, tensor<3000x%sxi32>) -> "
      "tensor<100x%sxi32>\n"
      "  return %%0 : tensor<100x%sxi32>\n}";
  static const struct {
    const char *row, *dims;
    int size;
  } rows[] = { { "201", "1", 201 }, { "9x25", "1, 2", 225 } };
  for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
    const char *r = rows[k].row;
    const int size = rows[k].size;
    char text[2048];
    snprintf(text, sizeof text, form, r, r, r, rows[k].dims, r, r, r, r);
    int32_t *at = malloc(UPDATES * sizeof *at);
    int32_t *u = malloc((size_t)UPDATES * (size_t)size * sizeof *u);
    int32_t *want = calloc((size_t)TARGETS * (size_t)size, sizeof *want);
    uint64_t state = 3;
    for (int i = 0; i < UPDATES; i++) {
      // Some are outside, and change nothing.
      at[i] = (int32_t)(next_number(&state) % (TARGETS + 2)) - 1;
      for (int j = 0; j < size; j++) {
        u[i * size + j] = (int32_t)(next_number(&state) % 1000);
        if (at[i] < 0 || at[i] >= TARGETS) continue;
        want[at[i] * size + j] += u[i * size + j];
      }
    }
    void *results[1];
    run_text(text, (void *[]){ at, u }, results);
    assert_memory_equal(results[0], want,
                        (size_t)TARGETS * (size_t)size * sizeof *want);
    free(at);
    free(u);
    free(want);
    free(results[0]);
  }
}

// ---- copies ----

// A prefix sum as sums of a value and itself moved by powers of two. Computed
// in one loop, each link would double the code.
static void sums_of_moved_values(void **unused)
{
  (void)unused;
  enum { N = 10000, LINKS = 14 };
  cx_text text = { 0 };
  cx_text_append(&text,
                 "func.func @main(%x: tensor<10000xi32>) -> "
                 "tensor<10000xi32> {\n"
                 "%z = stablehlo.constant dense<0> : tensor<i32>\n"
                 "%v0 = stablehlo.add %x, %x : tensor<10000xi32>\n");
  for (int i = 0; i < LINKS; i++) {
    cx_text_format(&text,
                   "%%p%d = stablehlo.pad %%v%d, %%z, low = [%d], high = "
                   "[-%d], interior = [0] : (tensor<10000xi32>, tensor<i32>) "
                   "-> tensor<10000xi32>\n"
                   "%%v%d = stablehlo.add %%v%d, %%p%d : tensor<10000xi32>\n",
                   i, i, 1 << i, 1 << i, i + 1, i, i);
  }
  cx_text_format(&text, "return %%v%d : tensor<10000xi32>\n}", LINKS);
  int32_t x[N];
  uint64_t state = 5;
  for (int i = 0; i < N; i++) x[i] = (int32_t)(next_number(&state) % 100);
  void *results[1];
  run_text(cx_text_str(&text), (void *[]){ x }, results);
  int32_t sum = 0;
  for (int i = 0; i < N; i++) {
    sum += 2 * x[i];
    assert_int_equal(((int32_t *)results[0])[i], sum);
  }
  cx_text_free(&text);
  free(results[0]);
}

int main(void)
{
  CHECK_STATUS_OK(cpu_threads_new(2, &pool));
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(scans_of_long_rows),
    cmocka_unit_test(sorts_as_stable_ones),
    cmocka_unit_test(scatters_of_many_rows),
    cmocka_unit_test(sums_of_moved_values),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  cpu_threads_free(pool);
  return failed;
}
