// donation: a save gives nothing away, nor does the step whose pending value it
// has fetched; steps after it donate as ever.
#include "calx/debug.h"
#include "calx/io.h"
#include "files.h"

static double aliases(void)
{
  calx_metric_data data;
  calx_metric_value("InputOutputAliasCount", &data);
  return data.accumulator;
}

static calx_tensor *durable(double x)
{
  calx_tensor *t = calx_take(calx_full(CALX_SHAPE(1), x));
  calx_sync(NULL);
  return t;
}

static void save(calx_tensor *t, const char *path)
{
  calx_value *list = calx_value_container(CALX_KIND_LIST);
  CHECK_STATUS_OK(calx_value_append(list, calx_value_tensor(t)));
  CHECK_STATUS_OK(calx_save(list, path));
  calx_value_free(list);
}

static void check_file(const char *path, double wanted)
{
  calx_value *list;
  CHECK_STATUS_OK(calx_load(path, &list));
  CHECK_VALUES(calx_value_as_tensor(calx_value_item(list, 0)), 0, wanted);
  calx_value_free(list);
}

static void test_pending(void **state)
{
  (void)state;
  const char *path = file_in_folder("pending.pt");
  calx_tensor *t = durable(1);
  const double before = aliases();
  calx_scope *step = calx_scope_begin();
  calx_assign(t, calx_add(t, 1));
  save(t, path);
  save(t, path);
  check_file(path, 2);
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(step));
  assert_true(aliases() == before);
  CHECK_VALUES(t, 0, 2);

  step = calx_scope_begin();
  calx_assign(t, calx_add(t, 1));
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(step));
  assert_true(aliases() == before + 1);
  CHECK_VALUES(t, 0, 3);
  check_file(path, 2);
  calx_release(t);
  files_in_folder(true);
}

// A clone that was taken before the update is saved with the value it had.
static void test_clone(void **state)
{
  (void)state;
  const char *path = file_in_folder("clone.pt");
  calx_tensor *t = durable(1);
  calx_tensor *clone = calx_take(calx_detach(t));
  calx_assign(t, calx_mul(t, 100));
  calx_sync(NULL);
  save(clone, path);
  check_file(path, 1);
  save(t, path);
  check_file(path, 100);
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_release(clone);
  calx_release(t);
  files_in_folder(true);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_pending),
    SUPPORT_TEST(test_clone),
  };
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
