// What the rules of ops.def accept and refuse: rules.txt, line by line; and
// that together with the builder's programs it leaves no operation out.
#include "hlo/rules.h"
#include "hlo/check.h"
#include "hlo/ops.h"
#include "hlo/programs.h"

static bool seen[CX_HLO_OP_COUNT];

static void note_kinds(const cx_hlo_region *region)
{
  for (const cx_hlo_block *b = region->first; b != NULL; b = b->next) {
    for (const cx_hlo_op *op = b->first; op != NULL; op = op->next) {
      seen[op->kind] = true;
      for (uint32_t i = 0; i < op->n_regions; i++) {
        note_kinds(&op->regions[i]);
      }
    }
  }
}

static void check_rule(const rule *r, size_t *bad)
{
  cx_text text = { 0 };
  rule_module(r, &text);
  cx_hlo_module *m = NULL;
  calx_status *status = cx_hlo_parse(cx_text_str(&text), text.size, "rule", &m);
  if (status == NULL) {
    check_identity(m);
    status = cx_hlo_verify(m);
  }
  if (status == NULL) note_kinds(&m->first->body);
  const char *message = calx_status_message(status);
  const bool right = strcmp(r->verdict, "ok") == 0
                         ? status == NULL
                         : strstr(message, r->verdict) != NULL;
  if (!right) {
    print_error("rules.txt:%zu: wanted '%s', got '%s'\n", r->line, r->verdict,
                message);
    ++*bad;
  } else if (strstr(r->verdict, "no shape rule") != NULL) {
    note_kinds(&m->first->body);  // it reads and prints, and that is all
  }
  calx_status_free(status);
  cx_hlo_module_free(m);
  cx_text_free(&text);
}

static void test_rules(void **state)
{
  (void)state;
  char *text = check_file("rules.txt");
  rule r = { .next = text };
  size_t n = 0;
  size_t bad = 0;
  for (; rule_next(&r); n++) check_rule(&r, &bad);
  print_message("%zu rules\n", n);
  cx_free(text);
  assert_true(n >= 462);
  assert_int_equal(bad, 0);
}

static void test_every_operation(void **state)
{
  (void)state;
  for (size_t i = 0; i < n_programs; i++) {
    cx_hlo_module *m = NULL;
    CHECK_OK(program_module(&programs[i], &m));
    note_kinds(&m->first->body);
    cx_hlo_module_free(m);
  }
  size_t missing = 0;
  for (int k = CX_HLO_OP_OTHER + 1; k < CX_HLO_OP_COUNT; k++) {
    if (seen[k]) continue;
    print_error("no test has %s\n", cx_hlo_op_info_of((cx_hlo_op_kind)k)->name);
    missing++;
  }
  assert_int_equal(missing, 0);
}

static void test_table(void **state)
{
  (void)state;
  for (int k = CX_HLO_OP_OTHER + 1; k < CX_HLO_OP_COUNT; k++) {
    const char *name = cx_hlo_op_info_of((cx_hlo_op_kind)k)->name;
    assert_int_equal(cx_hlo_op_find(name, strlen(name)), k);
  }
  assert_int_equal(cx_hlo_op_find("stablehlo.adde", 14), CX_HLO_OP_OTHER);
  assert_int_equal(cx_hlo_op_find("stablehlo.ad", 12), CX_HLO_OP_OTHER);
  assert_string_equal(cx_hlo_op_short(CX_HLO_OP_CALL), "call");
  assert_int_equal(cx_hlo_choice_find(CX_HLO_PRECISION, "HIGHEST", 7), 2);
  assert_int_equal(cx_hlo_choice_find(CX_HLO_PRECISION, "HIGHE", 5), -1);
  assert_null(cx_hlo_choice_value(CX_HLO_PRECISION, 3));
  assert_null(cx_hlo_choice_value(CX_HLO_PRECISION, -1));
  assert_null(cx_hlo_choice_value(CX_HLO_COMPARISON_DIRECTION, 6));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_rules),
    CHECK_TEST(test_every_operation),
    CHECK_TEST(test_table),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
