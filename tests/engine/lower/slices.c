// Slices that kernels read where they are: the results are the interpreter's,
// also where the operand is overwritten, and no loop copies a slice that may
// stay.
#include "support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lower/compile.h"
#include "run/layout.h"

#define MOST_VALUES 4

typedef struct slice_case {
  const char *name, *text;
  int n_loops;    // that the compiled program has; -1: any number
  int n_inside;   // slots that begin inside an argument or a result
  bool in_place;  // nothing of the size of %x is in the arena
} slice_case;

// %to: the row [at, next) of %from.
#define ROW_OF(to, from, at, next)                      \
  "%" to "_3 = stablehlo.slice %" from " [" at ":" next \
  ", 0:40, 0:16] : (tensor<3x40x16xf32>) -> "           \
  "tensor<1x40x16xf32>\n"                               \
  "%" to " = stablehlo.reshape %" to                    \
  "_3 : (tensor<1x40x16xf32>"                           \
  ") -> tensor<40x16xf32>\n"

static const slice_case cases[] = {
  { "a parameter",
    "func.func @main(%q: tensor<1x16xf32>, %x: tensor<3x40x16xf32>) -> "
    "(tensor<1x40xf32>, tensor<1x40xf32>) {\n" ROW_OF("a", "x", "0", "1") ROW_OF(
        "b", "x", "2",
        "3") "%0 = stablehlo.dot_general %q, %a, contracting_dims = [1] x [1] : "
             "(tensor<1x16xf32>, tensor<40x16xf32>) -> tensor<1x40xf32>\n"
             "%1 = stablehlo.dot_general %q, %b, contracting_dims = [1] x [1] : "
             "(tensor<1x16xf32>, tensor<40x16xf32>) -> tensor<1x40xf32>\n"
             "return %0, %1 : tensor<1x40xf32>, tensor<1x40xf32> }",
    0, 1, false },
  // The parameter's memory is written before the second product.
  { "a parameter that a result overwrites",
    "func.func @main(%q: tensor<1x16xf32>, %x: tensor<3x40x16xf32> "
    "{tf.aliasing_output = 0 : i32}) -> (tensor<3x40x16xf32>, "
    "tensor<1x40xf32>, tensor<1x40xf32>) {\n" ROW_OF(
        "a", "x", "1",
        "2") "%0 = stablehlo.dot_general %q, %a, contracting_dims = [1] x [1] : "
             "(tensor<1x16xf32>, tensor<40x16xf32>) -> tensor<1x40xf32>\n" ROW_OF(
                 "b", "x", "2",
                 "3") "%y = stablehlo.add %x, %x : tensor<3x40x16xf32>\n"
                      "%c = stablehlo.slice %0 [0:1, 0:16] : (tensor<1x40xf32>) -> "
                      "tensor<1x16xf32>\n"
                      "%r = stablehlo.slice %y [0:1, 0:1, 0:16] : (tensor<3x40x16xf32>) -> "
                      "tensor<1x1x16xf32>\n"
                      "%s = stablehlo.reshape %r : (tensor<1x1x16xf32>) -> tensor<1x16xf32>\n"
                      "%d = stablehlo.add %c, %s : tensor<1x16xf32>\n"
                      "%1 = stablehlo.dot_general %d, %b, contracting_dims = [1] x [1] : "
                      "(tensor<1x16xf32>, tensor<40x16xf32>) -> tensor<1x40xf32>\n"
                      "return %y, %0, %1 : tensor<3x40x16xf32>, tensor<1x40xf32>, "
                      "tensor<1x40xf32> }",
    3, 1, false },
  // As in a cache of keys: each is updated in place, and then read.
  { "a donated parameter updated in place",
    "func.func @main(%q: tensor<1x16xf32>, %x0: tensor<3x40x16xf32> "
    "{tf.aliasing_output = 0 : i32}, %i: tensor<i32>) -> "
    "(tensor<3x40x16xf32>, tensor<1x40xf32>) {\n"
    "%n = stablehlo.constant dense<1> : tensor<i32>\n"
    "%z = stablehlo.constant dense<0> : tensor<i32>\n"
    "%u = stablehlo.reshape %q : (tensor<1x16xf32>) -> tensor<1x1x16xf32>\n"
    "%x = stablehlo.dynamic_update_slice %x0, %u, %n, %i, %z : "
    "(tensor<3x40x16xf32>, tensor<1x1x16xf32>, tensor<i32>, tensor<i32>, "
    "tensor<i32>) -> tensor<3x40x16xf32>\n" ROW_OF(
        "a", "x", "1",
        "2") "%0 = stablehlo.dot_general %q, %a, contracting_dims = [1] x [1] : "
             "(tensor<1x16xf32>, tensor<40x16xf32>) -> tensor<1x40xf32>\n"
             "%c = stablehlo.slice %0 [0:1, 0:16] : (tensor<1x40xf32>) -> "
             "tensor<1x16xf32>\n"
             "%v = stablehlo.reshape %c : (tensor<1x16xf32>) -> tensor<1x1x16xf32>\n"
             "%y = stablehlo.dynamic_update_slice %x, %v, %n, %z, %z : "
             "(tensor<3x40x16xf32>, tensor<1x1x16xf32>, tensor<i32>, tensor<i32>, "
             "tensor<i32>) -> tensor<3x40x16xf32>\n"
             "return %y, %0 : tensor<3x40x16xf32>, tensor<1x40xf32> }",
    2, 1, true },
  { "a variable of a loop that is written in place",
    "func.func @main(%q: tensor<1x16xf32>, %x0: tensor<3x40x16xf32>) -> "
    "(tensor<3x40x16xf32>, tensor<1x40xf32>) {\n"
    "%n = stablehlo.constant dense<3> : tensor<i32>\n"
    "%one = stablehlo.constant dense<1> : tensor<i32>\n"
    "%z = stablehlo.constant dense<0> : tensor<i32>\n"
    "%o = stablehlo.constant dense<0.0> : tensor<1x40xf32>\n"
    "%h = stablehlo.constant dense<0.5> : tensor<3x40x16xf32>\n"
    "%r:3 = stablehlo.while(%i = %z, %x = %x0, %p = %o) : tensor<i32>, "
    "tensor<3x40x16xf32>, tensor<1x40xf32>\n"
    "cond { %t = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) "
    "-> tensor<i1>\n"
    "stablehlo.return %t : tensor<i1> }\n"
    "do { %j = stablehlo.add %i, %one : tensor<i32>\n" ROW_OF(
        "a", "x", "1",
        "2") "%y = stablehlo.multiply %x, %h : tensor<3x40x16xf32>\n"
             "%e = stablehlo.slice %y [0:1, 0:1, 0:16] : (tensor<3x40x16xf32>) -> "
             "tensor<1x1x16xf32>\n"
             "%f = stablehlo.reshape %e : (tensor<1x1x16xf32>) -> tensor<1x16xf32>\n"
             "%g = stablehlo.add %f, %q : tensor<1x16xf32>\n"
             "%0 = stablehlo.dot_general %g, %a, contracting_dims = [1] x [1] : "
             "(tensor<1x16xf32>, tensor<40x16xf32>) -> tensor<1x40xf32>\n"
             "%s = stablehlo.add %0, %p : tensor<1x40xf32>\n"
             "stablehlo.return %j, %y, %s : tensor<i32>, tensor<3x40x16xf32>, "
             "tensor<1x40xf32> }\n"
             "return %r#1, %r#2 : tensor<3x40x16xf32>, tensor<1x40xf32> }",
    -1, 0, false },
  { "two updates of a loop's variable",
    "func.func @main(%q: tensor<1x16xf32>, %x0: tensor<3x40x16xf32>) -> "
    "tensor<3x40x16xf32> {\n"
    "%n = stablehlo.constant dense<3> : tensor<i32>\n"
    "%one = stablehlo.constant dense<1> : tensor<i32>\n"
    "%z = stablehlo.constant dense<0> : tensor<i32>\n"
    "%u = stablehlo.reshape %q : (tensor<1x16xf32>) -> tensor<1x1x16xf32>\n"
    "%r:2 = stablehlo.while(%i = %z, %x = %x0) : tensor<i32>, "
    "tensor<3x40x16xf32>\n"
    "cond { %t = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) "
    "-> tensor<i1>\n"
    "stablehlo.return %t : tensor<i1> }\n"
    "do { %j = stablehlo.add %i, %one : tensor<i32>\n"
    "%a = stablehlo.dynamic_update_slice %x, %u, %i, %z, %z : "
    "(tensor<3x40x16xf32>, tensor<1x1x16xf32>, tensor<i32>, tensor<i32>, "
    "tensor<i32>) -> tensor<3x40x16xf32>\n"
    "%b = stablehlo.dynamic_update_slice %a, %u, %z, %j, %z : "
    "(tensor<3x40x16xf32>, tensor<1x1x16xf32>, tensor<i32>, tensor<i32>, "
    "tensor<i32>) -> tensor<3x40x16xf32>\n"
    "stablehlo.return %j, %b : tensor<i32>, tensor<3x40x16xf32> }\n"
    "return %r#1 : tensor<3x40x16xf32> }",
    -1, 0, true },
  // Rows that begin at an odd place, and rows that are cut.
  { "slices that stay copies",
    "func.func @main(%q: tensor<1x16xf32>, %x: tensor<43x16xf32>, %w: "
    "tensor<40x18xf32>, %f: tensor<700xf32>) -> (tensor<1x40xf32>, "
    "tensor<1x40xf32>, tensor<1x40xf32>) {\n"
    "%a = stablehlo.slice %f [7:647] : (tensor<700xf32>) -> tensor<640xf32>\n"
    "%b = stablehlo.reshape %a : (tensor<640xf32>) -> tensor<40x16xf32>\n"
    "%c = stablehlo.slice %w [0:40, 0:16] : (tensor<40x18xf32>) -> "
    "tensor<40x16xf32>\n"
    "%d = stablehlo.slice %x [3:43, 0:16] : (tensor<43x16xf32>) -> "
    "tensor<40x16xf32>\n"
    "%0 = stablehlo.dot_general %q, %b, contracting_dims = [1] x [1] : "
    "(tensor<1x16xf32>, tensor<40x16xf32>) -> tensor<1x40xf32>\n"
    "%1 = stablehlo.dot_general %q, %c, contracting_dims = [1] x [1] : "
    "(tensor<1x16xf32>, tensor<40x16xf32>) -> tensor<1x40xf32>\n"
    "%2 = stablehlo.dot_general %q, %d, contracting_dims = [1] x [1] : "
    "(tensor<1x16xf32>, tensor<40x16xf32>) -> tensor<1x40xf32>\n"
    "return %0, %1, %2 : tensor<1x40xf32>, tensor<1x40xf32>, "
    "tensor<1x40xf32> }",
    2, 1, false },
};

typedef struct values {
  float *items[MOST_VALUES];
  size_t n, elements[MOST_VALUES];
} values;

static void make_values(values *v, const cx_hlo_type *types, size_t n)
{
  v->n = n;
  for (size_t i = 0; i < n; i++) {
    v->elements[i] = (size_t)cx_hlo_type_elements(&types[i]);
    v->items[i] = aligned_alloc(64, (v->elements[i] * 4 + 64) / 64 * 64);
    for (size_t k = 0; k < v->elements[i]; k++) {
      v->items[i][k] = (float)((k * 7 + i * 3) % 11) - 4.5F;
    }
    if (types[i].elem == CX_HLO_I32) memcpy(v->items[i], &(int32_t){ 7 }, 4);
  }
}

static cpu_threads *pool;

static void count(const slice_case *c, const cpu_run_program *p)
{
  int inside = 0;
  for (size_t i = 0; i < p->n_slots; i++) {
    const cpu_run_slot *slot = &p->slots[i];
    inside += slot->offset != 0;
    if (!c->in_place || slot->kind != CPU_RUN_SLOT_ARENA) continue;
    assert_true(slot->bytes < 3 * 40 * 16 * 4);
  }
  assert_int_equal(inside, c->n_inside);
  if (c->n_loops >= 0) assert_int_equal(p->n_loops, c->n_loops);
}

// After saving and loading.
static void run(const slice_case *c, bool interpret, values *out)
{
  setenv("CALX_CPU_REF", interpret ? "1" : "0", 1);
  const cpu_lower_compile_options options = { .threads = pool };
  cpu_run_program *p = NULL;
  CHECK_STATUS_OK(cpu_lower_compile(c->text, strlen(c->text), &options, &p));
  cx_text bytes = { 0 };
  CHECK_STATUS_OK(cpu_run_program_save(p, &bytes));
  cpu_run_program_free(p);
  CHECK_STATUS_OK(cpu_run_program_load(bytes.data, bytes.size, pool, &p));
  cx_text_free(&bytes);
  if (!interpret) count(c, p);
  values args;
  make_values(&args, p->info.params, p->info.n_params);
  make_values(out, p->info.results, p->info.n_results);
  for (size_t i = 0; i < out->n; i++) {
    if (p->info.alias[i] < 0) continue;
    free(out->items[i]);
    out->items[i] = args.items[p->info.alias[i]];
  }
  cpu_run_context *context = NULL;
  CHECK_STATUS_OK(cpu_run_context_new(pool, &context));
  CHECK_STATUS_OK(cpu_run_program_run(p, context, NULL, (void **)args.items,
                                      (void **)out->items));
  cpu_run_context_free(context);
  for (size_t i = 0; i < out->n; i++) {
    if (p->info.alias[i] >= 0) args.items[p->info.alias[i]] = NULL;
  }
  for (size_t i = 0; i < args.n; i++) free(args.items[i]);
  cpu_run_program_free(p);
}

static void compiled_as_interpreted(void **unused)
{
  (void)unused;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    values a, b;
    print_message("%s\n", cases[i].name);
    run(&cases[i], true, &a);
    run(&cases[i], false, &b);
    for (size_t r = 0; r < a.n; r++) {
      for (size_t k = 0; k < a.elements[r]; k++) {
        if (!(fabsf(a.items[r][k] - b.items[r][k]) <= 1e-3F)) {
          fail_msg("result %zu, element %zu: compiled %g, interpreted %g", r, k,
                   (double)b.items[r][k], (double)a.items[r][k]);
        }
      }
      free(a.items[r]);
      free(b.items[r]);
    }
  }
}

int main(void)
{
  CHECK_STATUS_OK(cpu_threads_new(2, &pool));
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(compiled_as_interpreted),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  cpu_threads_free(pool);
  return failed;
}
