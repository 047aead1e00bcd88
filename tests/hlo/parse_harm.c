// Text that means harm, or comes without memory to read it.
#include "hlo/check.h"

static void check_refused(const char *text, const char *piece)
{
  cx_hlo_module *m = NULL;
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_hlo_parse(text, strlen(text), "f.mlir", &m), piece);
  assert_null(m);
}

// n times `open`, then the middle, then n times `close`.
static void check_deep(const char *before, const char *open, const char *middle,
                       const char *close, const char *after, size_t n,
                       const char *piece)
{
  cx_text text = { 0 };
  cx_text_append(&text, before);
  for (size_t i = 0; i < n; i++) cx_text_append(&text, open);
  cx_text_append(&text, middle);
  for (size_t i = 0; i < n; i++) cx_text_append(&text, close);
  cx_text_append(&text, after);
  cx_hlo_module *m = NULL;
  calx_status *status = cx_hlo_parse(cx_text_str(&text), text.size, "f", &m);
  if (piece == NULL) {
    CHECK_OK(status);
    check_identity(m);
  } else {
    CHECK_FAILS(CALX_INVALID_ARGUMENT, status, piece);
  }
  cx_hlo_module_free(m);
  cx_text_free(&text);
}

static const char *const files[] = {
  "forms.mlir", "../../fuzz/hlo_parse_corpus/step.mlir",
  "../../fuzz/hlo_parse_corpus/module.mlir"
};

static void test_depth(void **state)
{
  (void)state;
  static const size_t counts[] = { 100, 200, 1000000 };
  const char *func =
      "\"func.func\"() <{function_type = () -> (), sym_name = "
      "\"f\"}> ({ ";
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    const size_t n = counts[i];
    const char *piece = n > 128 ? "nests deeper than 128" : NULL;
    const char *brackets = n > 256 ? "nest deeper than 256" : NULL;
    check_deep(func, "\"x.y\"() ({ ", "", "}) : () -> () ", "}) : () -> ()", n,
               piece);
    check_deep("func.func @f(%p: tensor<i1>) { ",
               "stablehlo.while() cond { stablehlo.return %p : tensor<i1> } do "
               "{ ",
               "stablehlo.return", "} ", "}", n, piece);
    check_deep(
        "\"func.func\"() <{function_type = () -> (), sym_name = \"f\", "
        "a = ",
        "[", "1", "]", "}> ({}) : () -> ()", n, piece);
    check_deep(
        "\"func.func\"() <{function_type = () -> (), sym_name = \"f\", "
        "a = ",
        "tuple<", "i1", ">", "}> ({}) : () -> ()", n, piece);
    check_deep(
        "\"func.func\"() <{function_type = () -> (), sym_name = \"f\", "
        "a = #x.y<",
        "[", "1", "]", ">}> ({}) : () -> ()", n, brackets);
    check_deep(
        "\"func.func\"() <{function_type = () -> (), sym_name = "
        "\"f\"}> ({}) : () -> () loc(",
        "\"a\"(", "unknown", ")", ")", n, piece);
  }
}

// Aliases of aliases: of types and of attributes, wide and deep.
static void check_aliases(char mark, const char *first, const char *open,
                          const char *close, bool wide, const char *piece)
{
  cx_text text = { 0 };
  const int n = wide ? 40 : 100000;
  cx_text_format(&text, "%ca0 = %s\n", mark, first);
  for (int i = 1; i < n; i++) {
    cx_text_format(&text, "%ca%d = %s%ca%d", mark, i, open, mark, i - 1);
    if (wide) cx_text_format(&text, ", %ca%d", mark, i - 1);
    cx_text_format(&text, "%s\n", close);
  }
  check_refused(cx_text_str(&text), piece);
  cx_text_free(&text);
}

static void test_aliases(void **state)
{
  (void)state;
  check_aliases('#', "1", "[", "]", true, "aliases stand for more than");
  check_aliases('!', "i1", "tuple<", ">", true, "aliases stand for more than");
  check_aliases('#', "1", "[", "]", false, "nests deeper than 128");
  check_aliases('!', "i1", "tuple<", ">", false, "nests deeper than 128");
}

// Rules take time that grows with the square of the rank.
static void test_rank(void **state)
{
  (void)state;
  cx_text text = { 0 };
  cx_text_append(&text, "!t = tensor<");
  for (int i = 0; i < 100000; i++) cx_text_append(&text, "1x");
  cx_text_append(&text, "f32>");
  check_refused(cx_text_str(&text), "more than 255 dimensions");
  cx_text_free(&text);
}

// A few words that stand for much.
static void test_expansion(void **state)
{
  (void)state;
  cx_text text = { 0 };
  cx_text_append(&text,
                 "func.func @f(%a: !stablehlo.token) { %b = "
                 "stablehlo.after_all %a");
  for (int i = 0; i < 100000; i++) cx_text_append(&text, ", %a");
  cx_text_append(&text, " : tuple<");
  for (int i = 0; i < 1000; i++) cx_text_append(&text, "i1, ");
  cx_text_append(&text, "i1> }");
  check_refused(cx_text_str(&text), "types stand for more than");
  cx_text_free(&text);
  cx_text_append(&text, "func.func @f() {\n");
  for (int i = 0; i < 1000; i++) {
    cx_text_format(&text,
                   "%%%d = stablehlo.constant dense_resource<a> : "
                   "tensor<50000xi8>\n",
                   i);
  }
  cx_text_append(&text, "}\n{-# dialect_resources: { builtin: { a: \"0x");
  for (int i = 0; i < 50004; i++) cx_text_append(&text, "0f");
  cx_text_append(&text, "\" } } #-}");
  check_refused(cx_text_str(&text), "aliases stand for more than");
  cx_text_free(&text);
}

// Every beginning of a good text is an error, or a good text.
static void check_truncated(const char *name)
{
  char *text = check_file(name);
  const size_t size = strlen(text);
  size_t refused = 0;
  for (size_t n = 0; n < size; n++) {
    char *exact = malloc(n + 1);
    memcpy(exact, text, n);
    cx_hlo_module *m = NULL;
    calx_status *status = cx_hlo_parse(exact, n, "f", &m);
    refused += status != NULL;
    calx_status_free(status);
    cx_hlo_module_free(m);
    free(exact);
  }
  assert_true(refused > size / 2);
  cx_free(text);
}

static void test_truncated(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    check_truncated(files[i]);
  }
}

static void test_many(void **state)
{
  (void)state;
  cx_text text = { 0 };
  const int n = 20000;
  for (int i = 0; i < n; i++) {
    cx_text_format(&text,
                   "\"func.func\"() <{function_type = () -> (), sym_name = "
                   "\"f%d\"}> ({ \"func.return\"() : () -> () }) : () -> ()\n",
                   i);
  }
  cx_hlo_module *m = check_parse(cx_text_str(&text));
  assert_int_equal(m->n_funcs, n);
  assert_non_null(cx_hlo_func_find(m, (cx_hlo_str){ "f19999", 6 }));
  assert_null(cx_hlo_func_find(m, (cx_hlo_str){ "f20000", 6 }));
  cx_hlo_module_free(m);
  cx_text_free(&text);
}

static void check_no_memory(const char *name)
{
  char *text = check_file(name);
  bool done = false;
  for (long n = 0; !done; n++) {
    cx_hlo_module *m = NULL;
    cx_alloc_fail_at(n);
    calx_status *status = cx_hlo_parse(text, strlen(text), "f", &m);
    cx_alloc_fail_at(-1);
    done = status == NULL;
    if (!done) {
      assert_int_equal(calx_status_code(status), CALX_RESOURCE_EXHAUSTED);
    }
    calx_status_free(status);
    cx_hlo_module_free(m);
  }
  cx_free(text);
}

static void test_no_memory(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    check_no_memory(files[i]);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_depth),     CHECK_TEST(test_aliases),
    CHECK_TEST(test_rank),      CHECK_TEST(test_expansion),
    CHECK_TEST(test_truncated), CHECK_TEST(test_many),
    CHECK_TEST(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
