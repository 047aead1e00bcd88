// Values of torchmetrics and scikit-learn, which record.py wrote: of each batch
// and of all. A sample of the cases, the first of each metric on each data and
// one of three; all of them with CALX_TEST_LONG=1.
#include "cases.h"
#include "support/long.h"

static void check(const metric_case *c, const char *what, calx_tensor *got,
                  const calx_value *wanted)
{
  if (case_is(got, wanted)) return;
  const calx_value *o = calx_value_get(c->one, "options");
  print_error("%s of %s, %s:", c->metric, c->data_name, what);
  for (size_t i = 0; i < calx_value_count(o); i++) {
    print_error(" %s", calx_value_key(o, i));
  }
  fail_msg(" (average %s)",
           text(o, "average") != NULL ? text(o, "average") : "-");
}

// wants: also the batch's own values.
static void pass(const metric_case *c, calx_metric *m, bool wants)
{
  const calx_value *forward = calx_value_get(c->one, "forward");
  for (size_t i = 0; i < calx_value_count(c->data); i++) {
    calx_scope *scope = calx_scope_begin();
    const calx_value *batch = calx_value_item(c->data, i);
    calx_tensor *preds = case_tensor(batch, 0), *target = case_tensor(batch, 1);
    if (wants) {
      calx_tensor *value = calx_metric_forward(m, preds, target);
      calx_sync(value);
      check(c, "of a batch", value, calx_value_item(forward, i));
    } else {
      calx_metric_update(m, preds, target);
      calx_sync(NULL);
    }
    CHECK_STATUS_OK(calx_scope_end(scope));
  }
  calx_scope *scope = calx_scope_begin();
  calx_tensor *value = calx_metric_compute(m);
  check(c, "of all", value, calx_value_get(c->one, "compute"));
  const calx_value *sklearn = calx_value_get(c->one, "sklearn");
  if (sklearn != NULL) check(c, "by scikit-learn", value, sklearn);
  CHECK_STATUS_OK(calx_scope_end(scope));
}

static void try_case(const metric_case *c, size_t i)
{
  calx_metric *m = case_metric(c);
  assert_non_null(m);
  CHECK_STATUS_OK(cx_status_copy(calx_metric_error(m)));
  assert_string_equal(calx_metric_name(m), text(c->one, "name"));
  pass(c, m, i % 2 == 0);
  if (i % 8 == 0) {
    calx_metric_reset(m);
    pass(c, m, false);
  }
  calx_metric_free(m);
}

static void test_values(void **state)
{
  (void)state;
  calx_value *file = cases_open();
  assert_true(cases_count(file) > 200);
  const size_t every = (size_t)long_or(1, 3);
  metric_case last = { .metric = "", .data_name = "" };
  for (size_t i = 0; i < cases_count(file); i++) {
    const metric_case c = cases_at(file, i);
    const bool is_first = strcmp(c.metric, last.metric) != 0 ||
                          strcmp(c.data_name, last.data_name) != 0;
    if (is_first || i % every == 0) try_case(&c, i);
    last = c;
  }
  calx_value_free(file);
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_values) };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
