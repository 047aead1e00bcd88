// A metric of several ranks has the value of one rank that got all batches,
// where the ranks have different numbers of batches, or none.
#include "calx/calx.h"
#include "cases.h"

// What a rank returns where something is not so.
static calx_status *unless(bool right, const char *what, const metric_case *c)
{
  if (right) return NULL;
  return calx_status_new(CALX_INTERNAL, "rank %d of %d: %s of %s of %s",
                         calx_global_ordinal(), calx_world_size(), what,
                         c->metric, c->data_name);
}

// ---- values -----------------------------------------------------------------

// Batch i is that of rank i % world.
static calx_status *try_case(const metric_case *c)
{
  calx_scope *scope = calx_scope_begin();
  calx_metric *m = case_metric(c);
  for (size_t i = 0; i < calx_value_count(c->data); i++) {
    if ((int)i % calx_world_size() != calx_global_ordinal()) continue;
    const calx_value *batch = calx_value_item(c->data, i);
    calx_metric_update(m, case_tensor(batch, 0), case_tensor(batch, 1));
    calx_sync(NULL);
  }
  calx_tensor *value = calx_metric_compute(m);
  calx_status *status = cx_status_copy(calx_scope_error());
  if (status == NULL) {
    status =
        unless(case_is(value, calx_value_get(c->one, "compute")), "value", c);
  }
  calx_metric_free(m);
  return cx_status_first(status, calx_scope_end(scope));
}

static calx_status *try_cases(int index, void *user)
{
  (void)index;
  for (size_t i = 0; i < cases_count(user); i += 5) {
    const metric_case c = cases_at(user, i);
    CALX_TRY(try_case(&c));
  }
  return NULL;
}

static void on_ranks(const char *n, calx_rank_fn *fn, void *user)
{
  setenv("CPU_NUM_DEVICES", n, 1);
  CHECK_STATUS_OK(calx_launch(fn, user));
  calx_shutdown();
}

static void test_values(void **state)
{
  (void)state;
  calx_value *file = cases_open();
  on_ranks("2", try_cases, file);
  on_ranks("4", try_cases, file);
  calx_value_free(file);
}

// ---- what is wrong with one rank is told to all
// ------------------------------

static calx_tensor *labels(int64_t a, int64_t b)
{
  const int64_t values[] = { a, b };
  return calx_tensor_from(values, CALX_I64, CALX_SHAPE(2));
}

static calx_status *wants(calx_metric *m, calx_code code, const char *piece)
{
  calx_scope *scope = calx_scope_begin();
  calx_metric_compute(m);
  calx_status *got = calx_scope_end(scope), *wrong = NULL;
  if (calx_status_code(got) != code ||
      (piece != NULL && strstr(calx_status_message(got), piece) == NULL)) {
    wrong = calx_status_new(CALX_INTERNAL, "rank %d: %s", calx_global_ordinal(),
                            calx_status_message(got));
  }
  calx_status_free(got);
  calx_metric_free(m);
  return wrong;
}

static calx_status *bad_label(int index, void *user)
{
  (void)user;
  calx_metric *m = calx_metric_accuracy(.task = "multiclass", .num_classes = 4);
  calx_metric_update(m, labels(0, 1), labels(0, index == 1 ? 4 : 3));
  return wants(m, CALX_INVALID_ARGUMENT, "Detected 1 values");
}

static calx_status *other_classes(int index, void *user)
{
  (void)user;
  calx_metric *m = calx_metric_confusion_matrix(.task = "multiclass",
                                                .num_classes = 2 + index);
  calx_metric_update(m, labels(0, 1), labels(1, 1));
  return wants(m, CALX_INVALID_ARGUMENT, "the states of rank 1 do not fit");
}

static calx_status *no_update(int index, void *user)
{
  (void)index, (void)user;
  CALX_TRY(wants(calx_metric_auroc(.task = "binary"), CALX_FAILED_PRECONDITION,
                 "No samples"));
  return wants(calx_metric_accuracy(.task = "binary"), CALX_OK, NULL);
}

static calx_status *too_few(int index, void *user)
{
  (void)user;
  calx_metric *m = calx_metric_r2_score();
  if (index == 1) {
    calx_tensor *x = calx_ones(CALX_SHAPE(1));
    calx_metric_update(m, x, x);
  }
  return wants(m, CALX_FAILED_PRECONDITION, "at least two samples");
}

static void test_failures(void **state)
{
  (void)state;
  on_ranks("2", bad_label, NULL);
  on_ranks("2", other_classes, NULL);
  on_ranks("2", no_update, NULL);
  on_ranks("2", too_few, NULL);
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_values),
                                      SUPPORT_TEST(test_failures) };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
