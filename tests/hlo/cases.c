// All text of upstream's test suite: CALX_SHARED's stablehlo_cases. Every
// module is read, printed and read again to the same text, written as bytecode
// and read again, and so is its entry's signature; a program of fixed sizes and
// plain types is verified, and others are refused by name.
#include "base/file.h"
#include "hlo/check.h"

static void shared_path(char *out, size_t room, const char *name)
{
  const char *shared = getenv("CALX_SHARED");
  snprintf(out, room, "%s/stablehlo_cases/%s",
           shared == NULL ? CX_TEST_DIR "/../../../shared" : shared, name);
}

static char *read_shared(const char *name)
{
  char path[1024];
  shared_path(path, sizeof path, name);
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

typedef struct counts {
  size_t files, modules, verified, refused;
  size_t changed;  // by bytecode
} counts;

// The test runner's own comparisons.
static bool is_check(const cx_hlo_op *op)
{
  return op->kind == CX_HLO_OP_OTHER && strncmp(op->name.s, "check.", 6) == 0;
}

// Takes them out of the functions: they have no results.
static void drop_checks(cx_hlo_module *m)
{
  for (cx_hlo_func *f = m->first; f != NULL; f = f->next) {
    cx_hlo_block *block = f->body.first;
    cx_hlo_op *kept = NULL;
    cx_hlo_op *op = block == NULL ? NULL : block->first;
    for (; op != NULL; op = op->next) {
      if (is_check(op)) continue;
      *(kept == NULL ? &block->first : &kept->next) = op;
      op->previous = kept;
      kept = op;
    }
    if (kept != NULL) kept->next = NULL;
  }
}

// The module as bytecode reads back to the same text, but where that says a
// default.
static void check_written(const cx_hlo_module *m, counts *n)
{
  cx_text text = { 0 }, back = { 0 };
  cx_hlo_print(m, &text);
  check_bytecode(m, &back);
  n->changed += strcmp(cx_text_str(&text), cx_text_str(&back)) != 0;
  cx_text_free(&text);
  cx_text_free(&back);
}

static void check_module(const char *name, const char *text, size_t size,
                         bool is_static, counts *n)
{
  cx_hlo_signature s;
  cx_hlo_module *m = NULL;
  CHECK_OK(cx_hlo_parse(text, size, name, &m));
  check_identity(m);
  check_written(m, n);
  calx_status *status = cx_hlo_parse_signature(text, size, name, &s);
  if (is_static) CHECK_OK(status);
  if (!is_static) calx_status_free(status);
  cx_hlo_signature_free(&s);
  drop_checks(m);
  status = cx_hlo_verify(m);
  if (status == NULL) {
    n->verified++;
  } else {
    if (is_static) CHECK_OK(status);
    CHECK_FAILS(CALX_UNIMPLEMENTED, status, "not ");
    n->refused++;
  }
  cx_hlo_module_free(m);
  n->modules++;
}

// A file holds several modules, with a line "// -----" between them.
static void check_modules(const char *name, const char *text, bool is_static,
                          counts *n)
{
  while (text != NULL) {
    const char *end = strstr(text, "// -----");
    const size_t size = end == NULL ? strlen(text) : (size_t)(end - text);
    check_module(name, text, size, is_static, n);
    text = end == NULL ? NULL : end + 8;
  }
  n->files++;
}

static void test_cases(void **state)
{
  (void)state;
  char *list = read_shared("list.tsv");
  if (list == NULL) {
    print_message("the folder of the cases is not here\n");
    skip();
  }
  counts fixed = { 0 };
  counts others = { 0 };
  size_t skipped = 0;
  for (char *line = strtok(list, "\n"); line; line = strtok(NULL, "\n")) {
    char *tab = strchr(line, '\t');
    if (tab == NULL) continue;
    *tab = '\0';
    const bool bytecode = strstr(tab + 1, "bytecode_golden") != NULL;
    const bool is_static = strncmp(tab + 1, "static", 6) == 0;
    char *text = bytecode ? NULL : read_shared(line);
    if (text == NULL) {
      skipped++;
      continue;
    }
    check_modules(line, text, is_static, is_static ? &fixed : &others);
    cx_free(text);
  }
  cx_free(list);
  print_message(
      "static: %zu files, %zu modules, %zu verified; others: %zu "
      "files, %zu modules, %zu verified, %zu refused by name; %zu "
      "skipped (bytecode, the list's head)\n",
      fixed.files, fixed.modules, fixed.verified, others.files, others.modules,
      others.verified, others.refused, skipped);
  assert_int_equal(fixed.files, 820);
  assert_int_equal(fixed.modules, fixed.verified);
  assert_int_equal(others.files, 176);
  assert_int_equal(fixed.changed + others.changed, 10);
}

// Upstream's bytecode has quantized types, meshes and buffers, which a module
// keeps as text.
static void test_bytecode(void **state)
{
  static const char *const versions[] = {
    "0_9", "0_12", "0_15", "0_18", "1_4", "1_7", "1_11", "1_14", "1_18", "1_20"
  };
  (void)state;
  char *list = read_shared("list.tsv");
  if (list == NULL) {
    print_message("the folder of the cases is not here\n");
    skip();
  }
  cx_free(list);
  for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
    char path[1024];
    char *bytes = NULL;
    size_t size = 0;
    cx_hlo_module *m = NULL;
    cx_text text = { 0 };
    char name[100];
    snprintf(name, sizeof name,
             "tests/vhlo/stablehlo_legalize_to_vhlo.%s_0.mlir.bc", versions[i]);
    shared_path(path, sizeof path, name);
    CHECK_OK(cx_file_read(path, 0, &bytes, &size));
    CHECK_OK(cx_hlo_parse(bytes, size, versions[i], &m));
    check_identity(m);
    cx_hlo_print(m, &text);
    assert_non_null(
        strstr(cx_text_str(&text), "tensor<!quant.uniform<i8:f32, 34.0:16>>"));
    if (i >= 3) {  // since 0.18: types per axis
      assert_non_null(strstr(cx_text_str(&text),
                             "tensor<2x!quant.uniform<i8:f32:0, {34.0:16, "
                             "34.0:16}>>"));
    }
    if (i >= 8) {  // since 1.18: meshes
      assert_non_null(strstr(
          cx_text_str(&text),
          "replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, "
          "axes = [#stablehlo.axis_ref<name = \"x\", sub_axis_info = (1)2>, "
          "#stablehlo.axis_ref<name = \"y\">]>"));
    }
    cx_text_free(&text);
    cx_hlo_module_free(m);
    cx_free(bytes);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { CHECK_TEST(test_cases),
                                      CHECK_TEST(test_bytecode) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
