// Random programs with random shardings: partitioned for 2, 4 and 8 devices
// they give what the interpreter gives for the whole program.
//
// All values are 16x16 small integers in f32, so sums are exact in any order:
// each operation is followed by a remainder of 7.
#include "base/text.h"
#include "parts.h"
#include "sharded_index.h"
#include "support/long.h"

enum { SIDE = 16, PARAMS = 3, VALUES = 12 };
enum { PROGRAMS = 200, SAMPLE = 50 };  // with CALX_TEST_LONG=1 all
#define WHOLE "tensor<16x16xf32>"
#define CUBE "tensor<4x4x16xf32>"

static uint32_t seed;
static uint32_t draw(uint32_t n)
{
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 16) % n;
}

// ---- programs ----

typedef struct mesh {
  uint32_t n;
  const char *text;
  const char *axes[3];
  uint32_t n_axes;
} mesh;

static const mesh meshes[] = {
  { 2, "<[\"a\"=2]>", { "a" }, 1 },
  { 4, "<[\"a\"=2, \"b\"=2]>", { "a", "b" }, 2 },
  { 4, "<[\"a\"=2, \"b\"=2], device_ids=[2, 0, 3, 1]>", { "a", "b" }, 2 },
  { 8, "<[\"a\"=2, \"b\"=4]>", { "a", "b" }, 2 },
  { 8, "<[\"a\"=2, \"b\"=2, \"c\"=2]>", { "a", "b", "c" }, 3 },
};

// <@mesh, [{…}, {…}]>: each axis in the first dimension, the second, or none;
// or, of 4 places, unreduced
static void put_sharding(cx_text *t, const mesh *m, uint32_t n_places)
{
  uint32_t place[3];
  bool unreduced = false;
  for (uint32_t i = 0; i < m->n_axes; i++) place[i] = draw(n_places);
  cx_text_append(t, "<@mesh, [");
  for (uint32_t d = 0; d < 2; d++) {
    bool first = true;
    cx_text_append(t, d == 0 ? "{" : ", {");
    for (uint32_t i = 0; i < m->n_axes; i++) {
      if (place[i] != d) continue;
      cx_text_format(t, "%s\"%s\"", first ? "" : ", ", m->axes[i]);
      first = false;
    }
    cx_text_append(t, "}");
  }
  cx_text_append(t, "]");
  for (uint32_t i = 0; i < m->n_axes; i++) {
    if (place[i] != 3) continue;
    cx_text_format(t, "%s\"%s\"", unreduced ? ", " : ", unreduced={",
                   m->axes[i]);
    unreduced = true;
  }
  cx_text_append(t, unreduced ? "}>" : ">");
}

// The program of one device: its own rows of the first axis, times two.
static void put_manual(cx_text *t, const mesh *m, bool sharded, uint32_t n,
                       uint32_t x)
{
  if (!sharded) {
    cx_text_format(t, "%%r%u = stablehlo.add %%v%u, %%v%u : " WHOLE "\n", n, x,
                   x);
    return;
  }
  const char *a = m->axes[0];
  cx_text_format(t,
                 "%%r%u = sdy.manual_computation(%%v%u) in_shardings="
                 "[<@mesh, [{\"%s\"}, {}]>] out_shardings=[<@mesh, "
                 "[{\"%s\"}, {}]>] manual_axes={\"%s\"} (%%k%u: "
                 "tensor<8x16xf32>) {\n%%h%u = stablehlo.add %%k%u, %%k%u : "
                 "tensor<8x16xf32>\nsdy.return %%h%u : tensor<8x16xf32>\n} "
                 ": (" WHOLE ") -> " WHOLE "\n",
                 n, x, a, a, a, n, n, n, n, n);
}

#define REDUCER(op)                                              \
  " applies stablehlo." op " across dimensions = [%u] : (" WHOLE \
  ", tensor<f32>) -> tensor<16xf32>\n"

// Those that need more than one line of text.
static void put_more(cx_text *t, const mesh *m, bool sharded, uint32_t n,
                     uint32_t what)
{
  const uint32_t x = draw(n), y = draw(n);
  if (what == 11) {  // batches, contracted in the middle, and their sum
    cx_text_format(t,
                   "%%s%u = stablehlo.reshape %%v%u : (" WHOLE ") -> " CUBE
                   "\n%%t%u = stablehlo.reshape %%v%u : (" WHOLE ") -> " CUBE
                   "\n%%u%u = stablehlo.dot_general %%s%u, "
                   "%%t%u, batching_dims = [0] x [0], contracting_dims = "
                   "[1] x [1] : (" CUBE ", " CUBE
                   ") -> tensor<4x16x16xf32>"
                   "\n%%r%u = stablehlo.reduce(%%u%u init: %%none) applies "
                   "stablehlo.add across dimensions = [0] : "
                   "(tensor<4x16x16xf32>, tensor<f32>) -> " WHOLE "\n",
                   n, x, n, y, n, n, n, n, n);
  } else if (what == 12) {
    cx_text_format(t,
                   "%%s%u = stablehlo.pad %%v%u, %%one, low = [0, 1], high = "
                   "[0, 2], interior = [0, 0] : (" WHOLE
                   ", tensor<f32>) -> "
                   "tensor<16x19xf32>\n%%t%u = stablehlo.reverse %%s%u, "
                   "dims = [0] : tensor<16x19xf32>\n%%r%u = "
                   "stablehlo.slice %%t%u [0:16, 2:18] : "
                   "(tensor<16x19xf32>) -> " WHOLE "\n",
                   n, x, n, n, n, n);
  } else if (what == 13) {
    cx_text_format(t,
                   "%%b%u = stablehlo.compare LT, %%v%u, %%v%u : (" WHOLE
                   ", " WHOLE
                   ") -> tensor<16x16xi1>\n%%r%u = "
                   "stablehlo.select %%b%u, %%v%u, %%zero : "
                   "tensor<16x16xi1>, " WHOLE "\n",
                   n, x, y, n, n, x);
  } else if (what == 14) {  // a loop is computed whole
    cx_text_format(t,
                   "%%i%u = stablehlo.constant dense<0> : tensor<i32>\n"
                   "%%c%u = stablehlo.constant dense<3> : tensor<i32>\n"
                   "%%d%u = stablehlo.constant dense<1> : tensor<i32>\n",
                   n, n, n);
    cx_text_format(t,
                   "%%w%u:2 = stablehlo.while(%%p%u = %%i%u, %%q%u = %%v%u) "
                   ": tensor<i32>, " WHOLE
                   "\n cond {\n%%l%u = "
                   "stablehlo.compare LT, %%p%u, %%c%u : (tensor<i32>, "
                   "tensor<i32>) -> tensor<i1>\nstablehlo.return %%l%u : "
                   "tensor<i1>\n} do {\n",
                   n, n, n, n, x, n, n, n, n);
    cx_text_format(t,
                   "%%m%u = stablehlo.add %%p%u, %%d%u : tensor<i32>\n"
                   "%%n%u = stablehlo.add %%q%u, %%v%u : " WHOLE
                   "\n"
                   "stablehlo.return %%m%u, %%n%u : tensor<i32>, " WHOLE
                   "\n}\n%%r%u = stablehlo.add %%w%u#1, %%v%u : " WHOLE "\n",
                   n, n, n, n, n, y, n, n, n, n, y);
  } else {
    put_manual(t, m, sharded, n, x);
  }
}

// A part whose first dimension no mesh divides, with a sharding for it.
static void put_uneven(cx_text *t, const mesh *m, bool sharded, uint32_t n,
                       uint32_t x, uint32_t y)
{
  cx_text sharding = { 0 };
  put_sharding(&sharding, m, 3);
  cx_text_format(t,
                 "%%s%u = stablehlo.slice %%v%u [3:16, 0:16] : (" WHOLE
                 ") -> tensor<13x16xf32>\n%%t%u = stablehlo.slice %%v%u "
                 "[0:3, 0:16] : (" WHOLE ") -> tensor<3x16xf32>\n",
                 n, x, n, y);
  if (sharded) {
    cx_text_format(t,
                   "%%u%u = sdy.sharding_constraint %%s%u %s : "
                   "tensor<13x16xf32>\n",
                   n, n, cx_text_str(&sharding));
  }
  cx_text_format(t,
                 "%%r%u = stablehlo.concatenate %%%c%u, %%t%u, dim = 0 : "
                 "(tensor<13x16xf32>, tensor<3x16xf32>) -> " WHOLE "\n",
                 n, sharded ? 'u' : 's', n, n);
  cx_text_free(&sharding);
}

// Partial sums that stay so, and are used whole too.
static void put_sum(cx_text *t, const mesh *m, bool sharded, uint32_t n,
                    uint32_t d, uint32_t e)
{
  const uint32_t x = draw(n), y = draw(n);
  cx_text sharding = { 0 };
  put_sharding(&sharding, m, 4);
  cx_text_format(t,
                 "%%s%u = stablehlo.dot_general %%v%u, %%v%u, "
                 "contracting_dims = [%u] x [%u] : (" WHOLE ", " WHOLE
                 ") -> " WHOLE "\n",
                 n, x, y, d, e);
  if (sharded) {
    cx_text_format(t, "%%t%u = sdy.sharding_constraint %%s%u %s : " WHOLE "\n",
                   n, n, cx_text_str(&sharding));
  }
  cx_text_format(t, "%%r%u = stablehlo.add %%%c%u, %%s%u : " WHOLE "\n", n,
                 sharded ? 't' : 's', n, n);
  cx_text_free(&sharding);
}

// One operation %n of earlier values, before its remainder.
static void put_op(cx_text *t, const mesh *m, bool sharded, uint32_t n)
{
  const uint32_t x = draw(n), y = draw(n), d = draw(2), e = draw(2);
  const uint32_t what = draw(25);
  if (what == 24) {
    put_sum(t, m, sharded, n, d, e);
  } else if (what >= 16) {
    sharded_index_put(t, n, x, y, draw(1000));
  } else if (what == 0) {
    cx_text sharding = { 0 };
    put_sharding(&sharding, m, 4);
    if (sharded) {
      cx_text_format(t,
                     "%%r%u = sdy.sharding_constraint %%v%u %s : " WHOLE "\n",
                     n, x, cx_text_str(&sharding));
    } else {
      cx_text_format(t, "%%r%u = stablehlo.add %%v%u, %%zero : " WHOLE "\n", n,
                     x);
    }
    cx_text_free(&sharding);
  } else if (what <= 2) {
    static const char *const ops[] = { "add", "multiply" };
    cx_text_format(t, "%%r%u = stablehlo.%s %%v%u, %%v%u : " WHOLE "\n", n,
                   ops[what - 1], x, y);
  } else if (what == 3) {
    cx_text_format(t,
                   "%%r%u = stablehlo.transpose %%v%u, dims = [1, 0] : (" WHOLE
                   ") -> " WHOLE "\n",
                   n, x);
  } else if (what <= 5) {
    cx_text_format(t,
                   "%%r%u = stablehlo.dot_general %%v%u, %%v%u, "
                   "contracting_dims = [%u] x [%u] : (" WHOLE ", " WHOLE
                   ") -> " WHOLE "\n",
                   n, x, y, d, e);
  } else if (what == 6) {
    cx_text_format(t, "%%s%u = stablehlo.reduce(%%v%u init: %%%s)", n, x,
                   e ? "one" : "none");
    cx_text_format(t, e ? REDUCER("maximum") : REDUCER("add"), d);
    cx_text_format(t,
                   "%%r%u = stablehlo.broadcast_in_dim %%s%u, dims = [%u] : "
                   "(tensor<16xf32>) -> " WHOLE "\n",
                   n, n, draw(2));
  } else if (what == 7) {
    cx_text_format(t,
                   "%%s%u = stablehlo.reshape %%v%u : (" WHOLE
                   ") -> "
                   "tensor<4x4x16xf32>\n%%t%u = stablehlo.transpose %%s%u, "
                   "dims = [1, 0, 2] : (tensor<4x4x16xf32>) -> "
                   "tensor<4x4x16xf32>\n%%r%u = stablehlo.reshape %%t%u : "
                   "(tensor<4x4x16xf32>) -> " WHOLE "\n",
                   n, x, n, n, n, n);
  } else if (what == 8) {
    put_uneven(t, m, sharded, n, x, y);
  } else if (what == 9) {
    cx_text_format(t,
                   "%%r%u = \"stablehlo.sort\"(%%v%u) ({\n^bb0(%%p: "
                   "tensor<f32>, %%q: tensor<f32>):\n%%c = "
                   "stablehlo.compare LT, %%p, %%q : (tensor<f32>, "
                   "tensor<f32>) -> tensor<i1>\nstablehlo.return %%c : "
                   "tensor<i1>\n}) {dimension = %u : i64} : (" WHOLE
                   ") -> " WHOLE "\n",
                   n, x, d);
  } else if (what >= 11) {
    put_more(t, m, sharded, n, what);
  } else {
    cx_text_format(t,
                   "%%s%u = stablehlo.iota dim = %u : " WHOLE
                   "\n%%r%u = "
                   "stablehlo.subtract %%v%u, %%s%u : " WHOLE "\n",
                   n, d, n, x, n);
  }
}

static void put_program(cx_text *t, const mesh *m, bool sharded)
{
  if (sharded) cx_text_format(t, "sdy.mesh @mesh = %s\n", m->text);
  cx_text_append(t, "func.func @main(");
  for (int i = 0; i < PARAMS; i++) {
    cx_text sharding = { 0 };
    put_sharding(&sharding, m, 3);
    cx_text_format(t, "%s%%v%d: " WHOLE, i == 0 ? "" : ", ", i);
    if (sharded) {
      cx_text_format(t, " {sdy.sharding = #sdy.sharding%s}",
                     cx_text_str(&sharding));
    }
    cx_text_free(&sharding);
  }
  cx_text_append(t, ") -> (" WHOLE ", " WHOLE
                    ") {\n"
                    "%zero = stablehlo.constant dense<0.0> : " WHOLE
                    "\n"
                    "%none = stablehlo.constant dense<0.0> : tensor<f32>\n"
                    "%one = stablehlo.constant dense<1.0> : tensor<f32>\n"
                    "%seven = stablehlo.constant dense<7.0> : " WHOLE "\n");
  for (uint32_t n = PARAMS; n < VALUES; n++) {
    put_op(t, m, sharded, n);
    cx_text_format(
        t, "%%v%u = stablehlo.remainder %%r%u, %%seven : " WHOLE "\n", n, n);
  }
  cx_text_format(t, "return %%v%d, %%v%d : " WHOLE ", " WHOLE "\n}\n",
                 VALUES - 1, VALUES - 2);
}

// ---- running ----

static void one(const mesh *m, uint32_t number)
{
  static float args[PARAMS][SIDE * SIDE], want[2][SIDE * SIDE],
      got[2][SIDE * SIDE];
  const float *a[] = { args[0], args[1], args[2] };
  cx_text plain = { 0 }, sharded = { 0 };
  seed = number;
  put_program(&plain, m, false);
  seed = number;
  put_program(&sharded, m, true);
  for (int k = 0; k < PARAMS; k++) {
    for (int e = 0; e < SIDE * SIDE; e++) args[k][e] = (float)draw(13) - 6;
  }
  parts_run(cx_text_str(&plain), 1, true, a, (float *[]){ want[0], want[1] });
  memset(got, 0xff, sizeof got);  // NaN: a missing part is seen
  parts_run(cx_text_str(&sharded), m->n, number % 4 == 0, a,
            (float *[]){ got[0], got[1] });
  for (int k = 0; k < 2; k++) {
    for (int e = 0; e < SIDE * SIDE; e++) {
      if (got[k][e] == want[k][e]) continue;
      fail_msg("program %u, result %d, element %d: %g, the whole has %g\n%s",
               number, k, e, (double)got[k][e], (double)want[k][e],
               cx_text_str(&sharded));
    }
  }
  cx_text_free(&plain);
  cx_text_free(&sharded);
}

static void test_random(void **state)
{
  const uint32_t n = sizeof meshes / sizeof *meshes;
  (void)state;
  const uint32_t count = (uint32_t)long_or(PROGRAMS, SAMPLE);
  for (uint32_t i = 0; i < count; i++) one(&meshes[i % n], i + 1);
  assert_true(parts_n_split > count);
}

// A window as long as the dimension, which an index moves: what leaves a block
// belongs to the next device's.
static void test_moved_window(void **state)
{
  static const char *const sharding[] = {
    "", " {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}]>}"
  };
  static const float a[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
  static const float u[8] = { 11, 12, 13, 14, 15, 16, 17, 18 };
  (void)state;
  for (int index = -5; index <= 5; index++) {
    float results[2][8];
    for (int k = 0; k < 2; k++) {
      cx_text t = { 0 };
      if (k == 1) cx_text_append(&t, "sdy.mesh @mesh = <[\"a\"=2]>\n");
      cx_text_format(
          &t,
          "func.func @main(%%a: tensor<8xf32>%s, %%u: tensor<8xf32>%s) -> "
          "tensor<8xf32> {\n"
          "%%i = stablehlo.constant dense<%d> : tensor<1xi32>\n"
          "%%r = \"stablehlo.scatter\"(%%a, %%i, %%u) <{"
          "scatter_dimension_numbers = #stablehlo.scatter<"
          "update_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({\n"
          "^bb0(%%p: tensor<f32>, %%q: tensor<f32>):\n"
          "stablehlo.return %%q : tensor<f32>\n"
          "}) : (tensor<8xf32>, tensor<1xi32>, tensor<8xf32>) -> "
          "tensor<8xf32>\nreturn %%r : tensor<8xf32>\n}\n",
          sharding[k], sharding[k], index);
      parts_run(cx_text_str(&t), (uint32_t)k + 1, false,
                (const float *[]){ a, u }, (float *[]){ results[k] });
      cx_text_free(&t);
    }
    assert_memory_equal(results[0], results[1], sizeof results[0]);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_random),
                                      cmocka_unit_test(test_moved_window) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
