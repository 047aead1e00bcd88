// Random programs with random shardings: partitioned for 2, 4 and 8 devices
// they give what the interpreter gives for the whole program.
//
// All values are 16x16 small integers in f32, so sums are exact in any order.
// How parameters and results are split is read from the shardings that the
// compiler reports, by a decoder of the test's own.
#include <stdlib.h>

#include "base/thread.h"
#include "lower/compile.h"
#include "support/support.h"

enum { SIDE = 16, PARAMS = 3, VALUES = 12, MOST = 8, PROGRAMS = 60 };
#define WHOLE "tensor<16x16xf32>"

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

// <@mesh, [{…}, {…}]>: each axis in the first dimension, the second, or none
static void put_sharding(cx_text *t, const mesh *m)
{
  uint32_t place[3];
  for (uint32_t i = 0; i < m->n_axes; i++) place[i] = draw(3);
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
  cx_text_append(t, "]>");
}

#define REDUCER(op)                                              \
  " applies stablehlo." op " across dimensions = [%u] : (" WHOLE \
  ", tensor<f32>) -> tensor<16xf32>\n"

// One operation %n of earlier values, before it is clamped.
static void put_op(cx_text *t, const mesh *m, bool sharded, uint32_t n)
{
  const uint32_t x = draw(n), y = draw(n), d = draw(2), e = draw(2);
  const uint32_t what = draw(11);
  if (what == 0) {
    cx_text sharding = { 0 };
    put_sharding(&sharding, m);
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
    cx_text_format(t,
                   "%%s%u = stablehlo.slice %%v%u [3:16, 0:16] : (" WHOLE
                   ") -> tensor<13x16xf32>\n%%t%u = stablehlo.slice %%v%u "
                   "[0:3, 0:16] : (" WHOLE
                   ") -> tensor<3x16xf32>\n%%r%u = "
                   "stablehlo.concatenate %%s%u, %%t%u, dim = 0 : "
                   "(tensor<13x16xf32>, tensor<3x16xf32>) -> " WHOLE "\n",
                   n, x, n, y, n, n, n);
  } else if (what == 9) {
    cx_text_format(t,
                   "%%r%u = \"stablehlo.sort\"(%%v%u) ({\n^bb0(%%p: "
                   "tensor<f32>, %%q: tensor<f32>):\n%%c = "
                   "stablehlo.compare LT, %%p, %%q : (tensor<f32>, "
                   "tensor<f32>) -> tensor<i1>\nstablehlo.return %%c : "
                   "tensor<i1>\n}) {dimension = %u : i64} : (" WHOLE
                   ") -> " WHOLE "\n",
                   n, x, d);
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
    put_sharding(&sharding, m);
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
                    "%low = stablehlo.constant dense<-3.0> : tensor<f32>\n"
                    "%high = stablehlo.constant dense<3.0> : tensor<f32>\n");
  for (uint32_t n = PARAMS; n < VALUES; n++) {
    put_op(t, m, sharded, n);
    cx_text_format(t,
                   "%%v%u = stablehlo.clamp %%low, %%r%u, %%high : "
                   "(tensor<f32>, " WHOLE ", tensor<f32>) -> " WHOLE "\n",
                   n, n);
  }
  cx_text_format(t, "return %%v%d, %%v%d : " WHOLE ", " WHOLE "\n}\n",
                 VALUES - 1, VALUES - 2);
}

// ---- shardings ----

// Where each device's block begins, and the size of the blocks.
typedef struct blocks {
  int64_t rows, columns;
  int64_t row[MOST], column[MOST];
} blocks;

static uint64_t varint(const unsigned char **at)
{
  uint64_t v = 0;
  for (int shift = 0;; shift += 7) {
    const unsigned char byte = *(*at)++;
    v |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) return v;
  }
}

// Reads one xla.OpSharding behind its size.
static const unsigned char *read_blocks(const unsigned char *at, uint32_t n,
                                        blocks *out)
{
  const unsigned char *end =
      at + 4 + (at[0] | at[1] << 8 | at[2] << 16 | at[3] << 24);
  int64_t tiles[3] = { 1, 1, 1 };
  int n_tiles = 0, n_devices = 0, devices[MOST] = { 0 };
  at += 4;
  while (at < end) {
    const uint64_t field = varint(&at) >> 3, v = varint(&at);
    if (field == 3) tiles[n_tiles++] = (int64_t)v;
    if (field == 4) devices[n_devices++] = (int)v;
  }
  assert_true(n_devices == 0 || n_devices == (int)n);
  *out = (blocks){ SIDE / tiles[0], SIDE / tiles[1], { 0 }, { 0 } };
  for (int i = 0; i < n_devices; i++) {
    out->row[devices[i]] = i / (tiles[2] * tiles[1]) * out->rows;
    out->column[devices[i]] = i / tiles[2] % tiles[1] * out->columns;
  }
  return end;
}

// ---- running ----

typedef struct device {
  cpu_run_program *program;
  cpu_coll *coll;
  uint32_t group;
  uint32_t number, n;
  float args[PARAMS][SIDE * SIDE], results[2][SIDE * SIDE];
  calx_status *status;
} device;

static const uint32_t numbers[MOST] = { 0, 1, 2, 3, 4, 5, 6, 7 };

static void run(void *user)
{
  device *d = user;
  cpu_threads *pool = NULL;
  cpu_run_context *context = NULL;
  _Alignas(64) float args[PARAMS][SIDE * SIDE];
  _Alignas(64) float results[2][SIDE * SIDE];
  void *a[] = { args[0], args[1], args[2] }, *r[] = { results[0], results[1] };
  memcpy(args, d->args, sizeof args);
  CHECK_STATUS_OK(cpu_threads_new(1, &pool));
  CHECK_STATUS_OK(cpu_run_context_new(pool, &context));
  cpu_coll_launch launch = { .coll = d->coll,
                             .devices = numbers,
                             .device_group = d->group,
                             .number = 1,
                             .partition = d->number,
                             .n_replicas = 1,
                             .n_partitions = d->n,
                             .timeout_ms = 60000 };
  d->status = cpu_run_program_run(d->program, context, &launch, a, r);
  cpu_coll_end(&launch, d->status);
  memcpy(d->results, results, sizeof results);
  cpu_run_context_free(context);
  cpu_threads_free(pool);
}

static cpu_run_program *compile(const char *text, uint32_t n, bool interpret,
                                cx_text *shardings)
{
  cpu_threads *pool = NULL;
  cpu_run_program *p = NULL;
  setenv("CALX_CPU_REF", interpret ? "1" : "0", 1);
  CHECK_STATUS_OK(cpu_threads_new(1, &pool));
  const cpu_lower_compile_options options = {
    .n_replicas = 1, .n_partitions = n, .shardings = shardings, .threads = pool
  };
  calx_status *status = cpu_lower_compile(text, strlen(text), &options, &p);
  if (status != NULL) fprintf(stderr, "%s", text);
  CHECK_STATUS_OK(status);
  cpu_threads_free(pool);
  return p;
}

static void run_all(device *d, cpu_run_program *p, uint32_t n)
{
  const cpu_coll_topology topology = { .fd = -1, .n_host = n, .n_own = n };
  cx_thread threads[MOST];
  cpu_coll *coll = NULL;
  CHECK_STATUS_OK(cpu_coll_new(&topology, &coll));
  for (uint32_t i = 0; i < n; i++) {
    d[i].program = p;
    d[i].coll = coll;
    d[i].n = n;
    d[i].number = i;
    if (i == 0) {
      CHECK_STATUS_OK(cpu_coll_device_group(coll, numbers, n, &d[0].group));
    }
    d[i].group = d[0].group;
  }
  for (uint32_t i = 0; i < n; i++) {
    CHECK_STATUS_OK(cx_thread_start(&threads[i], run, &d[i]));
  }
  for (uint32_t i = 0; i < n; i++) cx_thread_join(&threads[i]);
  for (uint32_t i = 0; i < n; i++) CHECK_STATUS_OK(d[i].status);
  cpu_run_program_free(p);
  cpu_coll_free(coll);
}

// Copies a device's block from the whole, or compares them.
static bool block(const blocks *b, uint32_t i, float *whole, float *part,
                  bool cut)
{
  bool same = true;
  for (int64_t r = 0; r < b->rows; r++) {
    float *from = whole + (b->row[i] + r) * SIDE + b->column[i];
    float *to = part + r * b->columns;
    const size_t bytes = (size_t)b->columns * sizeof(float);
    if (cut) memcpy(to, from, bytes);
    for (int64_t c = 0; c < b->columns; c++) same = same && from[c] == to[c];
  }
  return same;
}

static void one(const mesh *m, uint32_t number)
{
  static device whole[1], parts[MOST];
  cx_text plain = { 0 }, sharded = { 0 }, shardings = { 0 }, none = { 0 };
  seed = number;
  put_program(&plain, m, false);
  seed = number;
  put_program(&sharded, m, true);
  for (int k = 0; k < PARAMS; k++) {
    for (int e = 0; e < SIDE * SIDE; e++) {
      whole[0].args[k][e] = (float)draw(7) - 3;
    }
  }
  run_all(whole, compile(cx_text_str(&plain), 1, true, &none), 1);
  cpu_run_program *p =
      compile(cx_text_str(&sharded), m->n, number % 4 == 0, &shardings);
  const unsigned char *at = (const unsigned char *)shardings.data;
  for (int k = 0; k < PARAMS; k++) {
    blocks b;
    at = read_blocks(at, m->n, &b);
    for (uint32_t i = 0; i < m->n; i++) {
      block(&b, i, whole[0].args[k], parts[i].args[k], true);
    }
  }
  run_all(parts, p, m->n);
  for (int k = 0; k < 2; k++) {
    blocks b;
    at = read_blocks(at, m->n, &b);
    for (uint32_t i = 0; i < m->n; i++) {
      if (block(&b, i, whole[0].results[k], parts[i].results[k], false)) {
        continue;
      }
      fail_msg("program %u, result %d differs on device %u:\n%s", number, k, i,
               cx_text_str(&sharded));
    }
  }
  cx_text_free(&plain);
  cx_text_free(&sharded);
  cx_text_free(&shardings);
  cx_text_free(&none);
}

static void test_random(void **state)
{
  const uint32_t n = sizeof meshes / sizeof *meshes;
  (void)state;
  for (uint32_t i = 0; i < PROGRAMS; i++) one(&meshes[i % n], i + 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_random) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
