// The reader of bytecode, on what StableHLO's own writer made
// (bytecode_record.py), and ours. bytecode.tar.xz has NN.bc, each with its text
// NN.mlir; sN.bc has operations of Shardy, which the verifier may refuse by
// name, and of CHLO, which the writer makes composites.
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "hlo/check.h"
#include "hlo/print.h"
#include "hlo/verify.h"

static char folder[256];  // of the files

static char *read_file(const char *name, const char *ending, size_t *out_size)
{
  char path[512];
  char *data = NULL;
  snprintf(path, sizeof path, "%s/%.2s.%s", folder, name, ending);
  CHECK_OK(cx_file_read(path, 0, &data, out_size));
  return data;
}

static void print(const char *bytes, size_t size, const char *name,
                  cx_text *out)
{
  cx_hlo_module *m = NULL;
  CHECK_OK(cx_hlo_parse(bytes, size, name, &m));
  if (name[0] != 's') CHECK_OK(cx_hlo_verify(m));
  cx_hlo_print_with(m, &(cx_hlo_print_options){ .no_locations = true }, out);
  cx_hlo_module_free(m);
}

static void compare(const char *name)
{
  cx_text ours = { 0 }, theirs = { 0 };
  size_t size = 0, text_size = 0;
  char *bytes = read_file(name, "bc", &size);
  char *text = read_file(name, "mlir", &text_size);
  print(bytes, size, name, &ours);
  print(text, text_size, name, &theirs);
  assert_string_equal(cx_text_str(&ours), cx_text_str(&theirs));
  cx_text_free(&ours);
  cx_text_free(&theirs);
  cx_free(bytes);
  cx_free(text);
}

static void test_programs(void **state)
{
  (void)state;
  int n = 0, n_others = 0;
  DIR *files = opendir(folder);
  assert_non_null(files);
  for (struct dirent *e; (e = readdir(files)) != NULL;) {
    if (strlen(e->d_name) != 5 || strcmp(e->d_name + 2, ".bc") != 0) continue;
    compare(e->d_name);
    n++;
    n_others += e->d_name[0] == 's';
  }
  closedir(files);
  print_message("%d programs\n", n);
  assert_true(n >= 50);
  assert_int_equal(n_others, 4);
}

// What the writer makes of the text reads back to it.
static void check_written(const char *name)
{
  cx_text text = { 0 }, back = { 0 };
  cx_hlo_module *m = NULL;
  size_t size = 0;
  char *source = read_file(name, "mlir", &size);
  CHECK_OK(cx_hlo_parse(source, size, name, &m));
  cx_hlo_print(m, &text);
  check_bytecode(m, &back);
  assert_string_equal(cx_text_str(&text), cx_text_str(&back));
  cx_hlo_module_free(m);
  cx_text_free(&text);
  cx_text_free(&back);
  cx_free(source);
}

static void test_written(void **state)
{
  (void)state;
  DIR *files = opendir(folder);
  assert_non_null(files);
  for (struct dirent *e; (e = readdir(files)) != NULL;) {
    if (strlen(e->d_name) == 5 && strcmp(e->d_name + 2, ".bc") == 0) {
      check_written(e->d_name);
    }
  }
  closedir(files);
}

static const char located[] =
    "module @m attributes {a.b = [1 : i8, -1 : i64, 0.5 : f64, true, \"s\",\n"
    "    array<i64: 1, 2>, tensor<2xf32>, @f, unit, #x.y<\"z\">,\n"
    "    dense<[true, false]> : tensor<2xi1>]} {\n"
    "  func.func private @f(tensor<?xf32, #stablehlo.bounds<4>>)\n"
    "  func.func @main(%x: tensor<4xf32> {a.c = unit}) -> tensor<4xf32> {\n"
    "    %y = stablehlo.tanh %x {a.d = array<i64>, a.e = @f} : tensor<4xf32>\n"
    "        loc(\"a.c\":7:3)\n"
    "    %z = \"other.op\"(%y) ({\n"
    "    ^bb0(%v: tensor<4xf32>):\n"
    "      %w = stablehlo.negate %v : tensor<4xf32>\n"
    "      \"other.end\"(%w, %y) : (tensor<4xf32>, tensor<4xf32>) -> ()\n"
    "    }) {a = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>\n"
    "    stablehlo.custom_call @f(%z) {has_side_effect = true, "
    "operand_layouts = [dense<0> : tensor<1xindex>], result_layouts = []} : "
    "(tensor<4xf32>) -> ()\n"
    "    return %z : tensor<4xf32> loc(\"a.c\":8:3)\n"
    "  } loc(\"a.c\":6:1)\n"
    "}\n";

// Locations, attributes that VHLO does not have, an empty list of layouts,
// operations of other dialects with regions, and a function without a body.
static void test_all_parts(void **state)
{
  (void)state;
  cx_text text = { 0 }, back = { 0 };
  cx_hlo_module *m = check_parse(located);
  cx_hlo_print(m, &text);
  assert_non_null(strstr(cx_text_str(&text), "loc(\"a.c\":7:3)"));
  check_bytecode(m, &back);
  assert_string_equal(cx_text_str(&text), cx_text_str(&back));
  cx_hlo_module_free(m);
  cx_text_free(&text);
  cx_text_free(&back);
}

// VHLO has no absent attributes: what says the default is absent afterwards.
static void test_defaults(void **state)
{
  (void)state;
  cx_text back = { 0 };
  cx_hlo_module *m = check_parse(
      "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
      "  %y = \"stablehlo.sort\"(%x) <{dimension = 0 : i64,\n"
      "      is_stable = false}> ({\n"
      "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
      "    %c = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>,\n"
      "      tensor<f32>) -> tensor<i1>\n"
      "    stablehlo.return %c : tensor<i1>\n"
      "  }) : (tensor<4xf32>) -> tensor<4xf32>\n"
      "  return %y : tensor<4xf32>\n"
      "}\n");
  check_bytecode(m, &back);
  assert_null(strstr(cx_text_str(&back), "is_stable"));
  assert_non_null(strstr(cx_text_str(&back), "dimension = 0"));
  assert_non_null(strstr(cx_text_str(&back), "comparison_type FLOAT"));
  cx_hlo_module_free(m);
  cx_text_free(&back);
}

static void test_refused(void **state)
{
  (void)state;
  static const struct {
    const char *op, *message;
    calx_code code;
  } cases[] = {
    { "\"stablehlo.iota\"() : () -> tensor<4xf32>",
      "'iota_dimension' of stablehlo.iota is missing", CALX_INVALID_ARGUMENT },
    { "\"vhlo.add_v1\"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> "
      "tensor<4xf32>",
      "'vhlo.add_v1'", CALX_UNIMPLEMENTED },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[400];
    cx_text out = { 0 };
    snprintf(text, sizeof text,
             "func.func @main(%%x: tensor<4xf32>) {\n  %%y = %s\n  return\n}\n",
             cases[i].op);
    cx_hlo_module *m = check_parse(text);
    CHECK_FAILS(cases[i].code, cx_hlo_write_bytecode(m, &out),
                cases[i].message);
    assert_int_equal(out.size, 0);
    cx_hlo_module_free(m);
    cx_text_free(&out);
  }
}

// Each allocation fails once.
static void test_no_memory(void **state)
{
  (void)state;
  cx_hlo_module *m = check_parse(located);
  const long live = cx_alloc_live();
  bool done = false;
  for (long n = 0; !done; n++) {
    cx_text out = { 0 };
    cx_alloc_fail_at(n);
    calx_status *status = cx_hlo_write_bytecode(m, &out);
    cx_alloc_fail_at(-1);
    done = status == NULL;
    if (!done) {
      assert_int_equal(calx_status_code(status), CALX_RESOURCE_EXHAUSTED);
      calx_status_free(status);
    }
    cx_text_free(&out);
    assert_int_equal(cx_alloc_live(), live);
  }
  cx_hlo_module_free(m);
}

// Whatever is cut off, the error names the byte.
static void test_cut(void **state)
{
  (void)state;
  size_t size = 0;
  char *bytes = read_file("00", "bc", &size);
  for (size_t n = 4; n < size; n++) {
    cx_hlo_module *m = NULL;
    char *part = malloc(n);  // so that a read past its end is seen
    memcpy(part, bytes, n);
    calx_status *status = cx_hlo_parse(part, n, "cut", &m);
    assert_non_null(status);
    assert_non_null(strstr(calx_status_message(status), "cut: byte "));
    calx_status_free(status);
    free(part);
  }
  cx_free(bytes);
}

// 400,000 constants, whose types and values have more parts together than one
// attribute may have.
static void test_large(void **state)
{
  (void)state;
  char path[512];
  char *bytes = NULL;
  size_t size = 0;
  cx_hlo_module *m = NULL;
  snprintf(path, sizeof path, "%s/large.bc", folder);
  CHECK_OK(cx_file_read(path, 0, &bytes, &size));
  CHECK_OK(cx_hlo_parse(bytes, size, "large.bc", &m));
  assert_int_equal(m->n_values, 400000);
  cx_hlo_module_free(m);
  cx_free(bytes);
}

static calx_status *parse_made(const char *name, cx_hlo_module **out)
{
  char path[512];
  char *bytes = NULL;
  size_t size = 0;
  snprintf(path, sizeof path, "%s/%s.bc", folder, name);
  CHECK_OK(cx_file_read(path, 0, &bytes, &size));
  assert_true(size < 3 << 20);
  calx_status *status = cx_hlo_parse(bytes, size, path, out);
  cx_free(bytes);
  return status;
}

// Long data that many operations use is hashed and copied for each: the reader
// bounds it all together.
static void test_repeated(void **state)
{
  (void)state;
  static const char *const names[] = { "name",     "literal",    "line",
                                       "list",     "dictionary", "type",
                                       "alias",    "tuple",      "encoding",
                                       "operands", "operation" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    cx_hlo_module *m = NULL;
    CHECK_FAILS(CALX_INVALID_ARGUMENT, parse_made(names[i], &m),
                "attributes and types have more than");
  }
}

// Lists that are made of short literals for each operation: those of equal
// dictionaries are shared, and all of a file have a bound.
static void test_lists(void **state)
{
  (void)state;
  cx_hlo_module *m = NULL;
  CHECK_OK(parse_made("shared", &m));
  assert_true(m->arena.used < 16 << 20);
  cx_hlo_module_free(m);
  CHECK_FAILS(CALX_RESOURCE_EXHAUSTED, parse_made("in_turn", &m),
              "bytes of memory: it uses long attributes");
}

static void test_signature(void **state)
{
  (void)state;
  size_t size = 0, text_size = 0;
  char *bytes = read_file("00", "bc", &size);
  char *text = read_file("00", "mlir", &text_size);
  cx_hlo_signature ours, theirs;
  CHECK_OK(cx_hlo_parse_signature(bytes, size, "00", &ours));
  CHECK_OK(cx_hlo_parse_signature(text, text_size, "00", &theirs));
  assert_string_equal(ours.name, theirs.name);
  assert_int_equal(ours.n_params, theirs.n_params);
  assert_int_equal(ours.n_results, theirs.n_results);
  for (size_t i = 0; i < ours.n_results; i++) {
    assert_true(cx_hlo_type_equal(&ours.results[i], &theirs.results[i]));
  }
  cx_hlo_signature_free(&ours);
  cx_hlo_signature_free(&theirs);
  cx_free(bytes);
  cx_free(text);
}

static int unpack(void **state)
{
  (void)state;
  char command[1024];
  const char *temporary = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/bytecode",
           temporary ? temporary : "/tmp");
  snprintf(command, sizeof command,
           "tar -xJf '" CX_TEST_DIR "/bytecode.tar.xz' -C '%s/..'", folder);
  return mkdir(folder, 0755) == 0 || errno == EEXIST ? system(command) : 1;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_programs),  cmocka_unit_test(test_written),
    cmocka_unit_test(test_all_parts), cmocka_unit_test(test_defaults),
    cmocka_unit_test(test_refused),   cmocka_unit_test(test_no_memory),
    cmocka_unit_test(test_cut),       cmocka_unit_test(test_large),
    cmocka_unit_test(test_repeated),  cmocka_unit_test(test_lists),
    cmocka_unit_test(test_signature),
  };
  return cmocka_run_group_tests(tests, unpack, NULL);
}
