// The table of results beside Lightning's (row D12).
#include "tables.h"

static size_t under_way;  // which of the recorded ones

static calx_tensor *log_values(calx_trainer *t, void *self,
                               const calx_batch *batch, int64_t i)
{
  (void)self, (void)batch, (void)i;
  for (int k = 0; k < 12 && results[under_way].values[k].name != NULL; k++) {
    if (results[under_way].values[k].loader != calx_trainer_dataloader_idx(t)) {
      continue;
    }
    calx_trainer_log(
        t, results[under_way].values[k].name,
        calx_full(CALX_SHAPE(1), (double)results[under_way].values[k].value));
  }
  return NULL;
}

static calx_status *evaluate(const calx_lightning_module *module, bool is_test,
                             size_t n)
{
  calx_dataset *data = boring_dataset(1);
  calx_loader *loader = calx_loader_new(data);
  const calx_loader *loaders[12];
  for (size_t i = 0; i < n; i++) loaders[i] = loader;
  calx_trainer *t = calx_trainer_new(.devices = 1, .no_progress_bar = true,
                                     .no_logger = true);
  calx_status *status =
      is_test ? calx_trainer_test(t, module, .dataloaders = loaders,
                                  .n_dataloaders = n)
              : calx_trainer_validate(t, module, .dataloaders = loaders,
                                      .n_dataloaders = n);
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
  return status;
}

static const char *printed(const calx_lightning_module *module, bool is_test,
                           size_t n)
{
  const int before = tables_begin(stdout);
  calx_status *status = evaluate(module, is_test, n);
  const char *text = tables_end(stdout, before);
  CHECK_STATUS_OK(status);
  return text;
}

static void test_row_D12(void **state)
{
  (void)state;
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .test_step = log_values,
                            .validation_step = log_values);
  for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
    char columns[16];
    under_way = i;
    snprintf(columns, sizeof columns, "%d", results[i].columns);
    setenv("COLUMNS", columns, 1);
    if (strcmp(results[i].encoding, "utf-8") != 0) {
      setenv("LC_ALL", "de_DE.ISO-8859-1", 1);
    }
    tables_check(
        printed(&module, results[i].is_test, (size_t)results[i].loaders),
        results[i].text, i);
    unsetenv("LC_ALL");
  }
}

// ---- which values -----------------------------------------------------------

static calx_tensor *log_levels(calx_trainer *t, void *self,
                               const calx_batch *batch, int64_t i)
{
  (void)self, (void)batch, (void)i;
  calx_tensor *one = calx_full(CALX_SHAPE(1), 1);
  static const char *const own[] = { "first", "second" };
  calx_trainer_log(t, "both", one, .on_step = 1, .on_epoch = 1);
  calx_trainer_log(t, "step", one, .on_step = 1, .on_epoch = 0);
  calx_trainer_log(t, "hidden", one, .no_logger = true);
  calx_trainer_log(t, own[calx_trainer_dataloader_idx(t)], one,
                   .no_dataloader_idx = true);
  return NULL;
}

static void log_end(calx_trainer *t, void *self)
{
  (void)self;
  calx_trainer_log_number(t, "end", 2.5);
}

// Those that loggers get, of an epoch. What the end of the epoch logs is of no
// loader.
static void test_values(void **state)
{
  (void)state;
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .test_step = log_levels,
                            .hooks.on_test_epoch_end = log_end);
  setenv("COLUMNS", "75", 1);
  const char *text = printed(&module, true, 2);
  static const char wanted[] =
      "\n       both_epoch                   1.0                      1.0\n"
      "           end                      2.5                      2.5\n"
      "          first                     1.0\n"
      "         second                                              1.0\n";
  if (strstr(text, wanted) == NULL) print_error("%s\n", text);
  assert_non_null(strstr(text, wanted));
  assert_null(strstr(text, "step"));
  assert_null(strstr(text, "hidden"));
  unsetenv("COLUMNS");
}

// One name of two loaders without their numbers is refused, as in Lightning.
static calx_tensor *log_once(calx_trainer *t, void *self,
                             const calx_batch *batch, int64_t i)
{
  (void)self, (void)batch, (void)i;
  calx_trainer_log(t, "x", calx_full(CALX_SHAPE(1), 1),
                   .no_dataloader_idx = true);
  return NULL;
}

static void test_same_name(void **state)
{
  (void)state;
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .test_step = log_once);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, evaluate(&module, true, 2),
               "You called `self.log(x, ...)` twice in `test_step` with "
               "different arguments.");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_row_D12),
    SUPPORT_TEST(test_values),
    SUPPORT_TEST(test_same_name),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
