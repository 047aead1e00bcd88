// The printer: its spelling, every element type, and what MLIR itself says.
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hlo/build.h"
#include "hlo/check.h"
#include "hlo/number.h"
#include "hlo/programs.h"
#include "hlo/rules.h"

static void sum(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                cx_hlo_value **out)
{
  (void)user;
  out[0] = cx_hlo_binary(b, CX_HLO_OP_ADD, args[0], args[1]);
}

// Donation, places, a region, an operation with two results.
static cx_hlo_module *sample(void)
{
  const cx_hlo_type params[] = { TYPE(F32, 2, 3), TYPE(UI64, 2) };
  cx_hlo_builder *b = NULL;
  cx_hlo_module *m = NULL;
  CHECK_OK(cx_hlo_builder_new("step", "main", params, 2, &b));
  cx_hlo_module_attr_int(b, "mhlo.num_partitions", 1);
  cx_hlo_module_attr_int(b, "mhlo.num_replicas", 4);
  cx_hlo_value *x = cx_hlo_param(b, 0);
  cx_hlo_builder_at(b, "a \"b\"\\.c", 7);
  cx_hlo_value *init = cx_hlo_splat(b, SCALAR(F32), 0);
  cx_hlo_builder_at(b, NULL, 0);
  cx_hlo_value *results[3] = { NULL };
  cx_hlo_reduce(b, 1, &x, &init, LIST(1), 1, sum, NULL, &results[0]);
  cx_hlo_rng_bit_generator(b, cx_hlo_param(b, 1), TYPE(UI32, 2), &results[1],
                           &results[2]);
  cx_hlo_param_alias(b, 1, 1);
  CHECK_OK(cx_hlo_builder_finish(b, results, 3, &m));
  return m;
}

static void test_golden(void **state)
{
  (void)state;
  cx_hlo_module *m = sample();
  cx_text text = { 0 };
  char *expected = check_file("sample.mlir");
  cx_hlo_print(m, &text);
  assert_string_equal(cx_text_str(&text), expected);
  cx_text_clear(&text);
  cx_hlo_print_with(m, &(cx_hlo_print_options){ .no_locations = true }, &text);
  assert_null(strstr(cx_text_str(&text), "loc("));
  cx_text both = { 0 }, bare = { 0 };
  cx_hlo_print_with(m, &(cx_hlo_print_options){ .without_locations = &bare },
                    &both);
  assert_string_equal(cx_text_str(&both), expected);
  assert_string_equal(cx_text_str(&bare), cx_text_str(&text));
  cx_text_free(&both);
  cx_text_free(&bare);
  check_identity(m);
  cx_free(expected);
  cx_text_free(&text);
  cx_hlo_module_free(m);
}

// The same program, built twice and at other places: the same key.
static void test_key(void **state)
{
  (void)state;
  const cx_hlo_print_options key = { .no_locations = true };
  cx_text texts[2] = { { 0 }, { 0 } };
  for (int i = 0; i < 2; i++) {
    cx_hlo_builder *b = NULL;
    cx_hlo_module *m = NULL;
    CHECK_OK(cx_hlo_builder_new("m", "main", NULL, 0, &b));
    cx_hlo_builder_at(b, i == 0 ? "a.c" : "b.c", 10 + i);
    cx_hlo_value *x = cx_hlo_splat(b, TYPE(F32, 2), 1);
    x = cx_hlo_binary(b, CX_HLO_OP_ADD, x, x);
    CHECK_OK(cx_hlo_builder_finish(b, &x, 1, &m));
    cx_hlo_print_with(m, &key, &texts[i]);
    cx_hlo_module_free(m);
  }
  assert_string_equal(cx_text_str(&texts[0]), cx_text_str(&texts[1]));
  cx_text_free(&texts[0]);
  cx_text_free(&texts[1]);
}

// ---- constants ----

// Some numbers of the type, among them its special ones.
static size_t fill(cx_hlo_elem e, unsigned char *data, size_t n)
{
  const double specials[] = { (double)NAN, HUGE_VAL, -HUGE_VAL, -0.0,
                              1e-40,       -1.5,     1.0 / 3 };
  const size_t bytes = cx_hlo_elem_bytes(e);
  const cx_hlo_elem part = cx_hlo_elem_part(e);
  for (size_t i = 0; i < n; i++) {
    const double v = i < 7 ? specials[i] : (double)i * 0.7 - 3;
    unsigned char *at = data + i * bytes;
    if (cx_hlo_elem_is_complex(e)) {
      cx_hlo_store_real(part, at, v);
      cx_hlo_store_real(part, at + bytes / 2, -v * 2);
    } else if (cx_hlo_elem_is_float(e)) {
      cx_hlo_store_real(e, at, v);
    } else {
      cx_hlo_store_int(e, at, (int64_t)(i * UINT64_C(0x9e3779b97f4a7c15)));
    }
  }
  return n * bytes;
}

// Constants of one type: none, one, few, and many elements, and a splat.
static cx_hlo_module *constants(cx_hlo_elem e)
{
  unsigned char data[40 * 16] = { 0 };
  cx_hlo_builder *b = NULL;
  cx_hlo_module *m = NULL;
  CHECK_OK(cx_hlo_builder_new("constants", "main", NULL, 0, &b));
  cx_hlo_value *x[5];
  x[0] = cx_hlo_constant(b, (cx_hlo_type){ e, 2, LIST(3, 0) }, NULL, 0);
  x[1] =
      cx_hlo_constant(b, (cx_hlo_type){ e, 0, NULL }, data, fill(e, data, 1));
  x[2] = cx_hlo_constant(b, (cx_hlo_type){ e, 3, LIST(2, 1, 4) }, data,
                         fill(e, data, 8));
  x[3] = cx_hlo_constant(b, (cx_hlo_type){ e, 2, LIST(8, 5) }, data,
                         fill(e, data, 40));
  x[4] = cx_hlo_splat_int(b, (cx_hlo_type){ e, 1, LIST(7) }, 1);
  CHECK_OK(cx_hlo_builder_finish(b, x, 5, &m));
  return m;
}

static const cx_hlo_attr *value_of(const cx_hlo_module *m, size_t i)
{
  const cx_hlo_op *op = m->first->body.first->first;
  for (; i > 0; i--) op = op->next;
  return cx_hlo_op_attr(op, CX_HLO_A_VALUE);
}

static void test_constants(void **state)
{
  (void)state;
  size_t n = 0;
  for (int e = CX_HLO_I1; e <= CX_HLO_INDEX; e++) {
    cx_hlo_module *m = constants((cx_hlo_elem)e);
    cx_text text = { 0 };
    check_identity(m);
    cx_hlo_print(m, &text);
    cx_hlo_module *again = check_parse(cx_text_str(&text));
    for (size_t i = 0; i < 5; i++) {
      const cx_hlo_elements *a = &value_of(m, i)->as.elements;
      const cx_hlo_elements *b = &value_of(again, i)->as.elements;
      assert_true(cx_hlo_any_equal(&a->type, &b->type));
      assert_int_equal(a->splat, b->splat);
      assert_int_equal(a->size, b->size);
      assert_memory_equal(a->data, b->data, a->size);
    }
    cx_text_free(&text);
    cx_hlo_module_free(again);
    cx_hlo_module_free(m);
    n++;
  }
  print_message("%zu element types\n", n);
}

// ---- mlir-opt ----

// MLIR 19 has no such types.
static bool is_newer(cx_hlo_elem e)
{
  return e == CX_HLO_F8E3M4 || e == CX_HLO_F8E8M0FNU || e == CX_HLO_F4E2M1FN ||
         e == CX_HLO_F6E2M3FN || e == CX_HLO_F6E3M2FN;
}

static void add_piece(FILE *f, const cx_hlo_module *m, size_t *n)
{
  cx_text text = { 0 };
  cx_hlo_print(m, &text);
  if ((*n)++ != 0) fputs("// -----\n", f);
  fputs(cx_text_str(&text), f);
  cx_text_free(&text);
}

static void add_rules(FILE *f, size_t *n)
{
  char *text = check_file("rules.txt");
  for (rule r = { .next = text }; rule_next(&r);) {
    if (strcmp(r.verdict, "ok") != 0) continue;
    cx_text module = { 0 };
    rule_module(&r, &module);
    cx_hlo_module *m = check_parse(cx_text_str(&module));
    add_piece(f, m, n);
    cx_hlo_module_free(m);
    cx_text_free(&module);
  }
  cx_free(text);
}

// Every program of these tests in one file; how many they are.
static size_t write_all(FILE *f)
{
  size_t n = 0;
  cx_hlo_module *m = NULL;
  for (size_t i = 0; i < n_programs; i++) {
    CHECK_OK(program_module(&programs[i], &m));
    add_piece(f, m, &n);
    cx_hlo_module_free(m);
  }
  for (int e = CX_HLO_I1; e <= CX_HLO_INDEX; e++) {
    if (is_newer((cx_hlo_elem)e)) continue;
    m = constants((cx_hlo_elem)e);
    add_piece(f, m, &n);
    cx_hlo_module_free(m);
  }
  m = sample();
  add_piece(f, m, &n);
  cx_hlo_module_free(m);
  char *text = check_file("forms.mlir");
  m = check_parse(text);
  add_piece(f, m, &n);
  cx_hlo_module_free(m);
  cx_free(text);
  add_rules(f, &n);
  return n;
}

static void test_mlir_opt(void **state)
{
  (void)state;
  const char *folder = getenv("TMPDIR");
  char path[512];
  snprintf(path, sizeof path, "%s/calx_print_XXXXXX",
           folder == NULL ? "/tmp" : folder);
  FILE *f = fdopen(mkstemp(path), "w");
  assert_non_null(f);
  const size_t n = write_all(f);
  fclose(f);
  char command[1024];
  snprintf(command, sizeof command,
           "mlir-opt-19 --allow-unregistered-dialect --split-input-file %s "
           "-o /dev/null",
           path);
  const int status = system(command);
  unlink(path);
  print_message("%zu modules\n", n);
  assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
  const struct CMUnitTest mlir_opt[] = { CHECK_TEST(test_mlir_opt) };
  if (argc == 2 && strcmp(argv[1], "mlir-opt") == 0) {
    return cmocka_run_group_tests(mlir_opt, NULL, NULL);
  }
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_golden),
    CHECK_TEST(test_key),
    CHECK_TEST(test_constants),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
