// Progress bars: their texts beside tqdm's and Rich's, when they are drawn and
// what that costs.
#include "train/bar.h"

#include <time.h>

#include "boring.h"
#include "lightning_text.h"
#include "train/internal.h"

// ---- the runs that progress_bar.py watches
// -----------------------------------

static void mark(const char *name, int64_t i)
{
  printf("\033]0;");  // a title, which a terminal does not show in its lines
  printf(name, (int)i);
  printf("\a");
  fflush(stdout);
}

static void pause_ms(long ms)
{
  nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

static calx_tensor *number(double value)
{
  return calx_full(CALX_SHAPE(1), value);
}

static calx_tensor *train(calx_trainer *t, void *self, const calx_batch *batch,
                          int64_t i)
{
  (void)i;
  const double epoch = (double)calx_trainer_current_epoch(t);
  calx_trainer_log(t, "train_loss", number(1 / (1 + epoch)), .prog_bar = true);
  calx_trainer_log(t, "acc", number(0.25 * (1 + epoch)), .prog_bar = true,
                   .on_step = 1, .on_epoch = 1);
  return boring_loss(self, batch);
}

static calx_tensor *validate(calx_trainer *t, void *self,
                             const calx_batch *batch, int64_t i)
{
  (void)self, (void)batch, (void)i;
  calx_trainer_log(t, "val_loss", number(0.5 + calx_trainer_dataloader_idx(t)),
                   .prog_bar = true);
  return NULL;
}

static calx_tensor *test(calx_trainer *t, void *self, const calx_batch *batch,
                         int64_t i)
{
  (void)t, (void)self, (void)batch, (void)i;
  return NULL;
}

static void on_last(calx_trainer *t, void *self, const calx_batch *batch,
                    int64_t i)
{
  (void)self, (void)batch;
  const int loader = calx_trainer_dataloader_idx(t);
  const char *stage = calx_trainer_stage(t);
  if (i + 1 != calx_trainer_num_eval_batches(t, (size_t)loader)) return;
  mark(strcmp(stage, "test") == 0      ? "test %d last"
       : strcmp(stage, "predict") == 0 ? "predict %d last"
                                       : "validation %d last",
       loader);
}

static void on_sanity_check_end(calx_trainer *t, void *self)
{
  (void)t, (void)self;
  mark("sanity end", 0);
}

static void on_validation_end(calx_trainer *t, void *self)
{
  (void)self;
  if (!calx_trainer_sanity_checking(t)) mark("validation end", 0);
}

static void on_train_epoch_end(calx_trainer *t, void *self)
{
  (void)self;
  mark("epoch %d end", calx_trainer_current_epoch(t));
}

static const calx_lightning_module watched_module =
    CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                          .configure_model = boring_model,
                          .configure_optimizers = boring_optimizers,
                          .training_step = train, .validation_step = validate,
                          .test_step = test,
                          .hooks = { .on_sanity_check_end = on_sanity_check_end,
                                     .on_validation_batch_end = on_last,
                                     .on_test_batch_end = on_last,
                                     .on_predict_batch_end = on_last,
                                     .on_validation_end = on_validation_end,
                                     .on_train_epoch_end =
                                         on_train_epoch_end });

// tqdm, rich, with _leave, _lower, _prints, _steps, _summary.
static calx_callback *bar_of(const char *kind, int64_t rate)
{
  const bool leaves = strstr(kind, "leave") != NULL;
  const int position = strstr(kind, "lower") != NULL;
  return strncmp(kind, "rich", 4) == 0
             ? calx_rich_progress_bar(.refresh_rate = rate, .leave = leaves)
             : calx_tqdm_progress_bar(.refresh_rate = rate, .leave = leaves,
                                      .process_position = position);
}

// The run of lightning_session.py.
static calx_status *run_session(const char *kind)
{
  calx_callback *bar = bar_of(kind, kind[0] == 'r' ? 10 : 1);
  calx_logger *logger = calx_csv_logger("logs", .flush_logs_every_n_steps = 1);
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = 2, .loggers = &logger,
                       .n_loggers = 1, .callbacks = &bar, .n_callbacks = 1,
                       .no_checkpointing = true, .no_model_summary = true,
                       .val_check_interval = 0.5);
  calx_dataset *data[] = { boring_dataset(6), boring_dataset(3),
                           boring_dataset(2) };
  calx_loader *loaders[3];
  for (int i = 0; i < 3; i++) loaders[i] = calx_loader_new(data[i]);
  const calx_loader *const two[] = { loaders[1], loaders[2] };
  calx_value *predictions = NULL;
  CALX_TRY(calx_trainer_fit(t, &watched_module, .train_dataloader = loaders[0],
                            .dataloaders = two, .n_dataloaders = 2));
  mark("fit done", 0);
  CALX_TRY(calx_trainer_validate(t, &watched_module, .dataloaders = two,
                                 .n_dataloaders = 2, .not_verbose = true));
  mark("validate done", 0);
  CALX_TRY(calx_trainer_test(t, &watched_module, .dataloaders = two,
                             .n_dataloaders = 2, .not_verbose = true));
  mark("test done", 0);
  CALX_TRY(calx_trainer_predict(t, &watched_module, &predictions,
                                .dataloaders = two, .n_dataloaders = 2));
  mark("predict done", 0);
  calx_value_free(predictions);
  calx_trainer_free(t);
  calx_callback_free(bar);
  calx_logger_free(logger);
  for (int i = 0; i < 3; i++) {
    calx_loader_free(loaders[i]);
    calx_dataset_free(data[i]);
  }
  return NULL;
}

// What a run of one loader is.
typedef struct watched_run {
  long batches, rate, ms, devices, per_execution;
  bool prints;
} watched_run;

static calx_tensor *train_slowly(calx_trainer *t, void *self,
                                 const calx_batch *batch, int64_t i)
{
  const watched_run *run = calx_trainer_user(t);
  pause_ms(run->ms);
  if (run->prints) calx_master_print("batch %d\n", (int)i);
  return boring_loss(self, batch);
}

// What it cost, on standard error.
static void report_costs(void)
{
  calx_metric_data compile, execute;
  calx_metric_value("CompileTime", &compile);
  calx_metric_value("ExecuteTime", &execute);
  fprintf(stderr, "%lld %lld %lld\n", (long long)compile.samples,
          (long long)execute.samples,
          (long long)calx_counter_value("aten::_local_scalar_dense"));
}

// One epoch with a pause in each batch, or three.
static calx_status *run_epochs(const char *kind, watched_run *run)
{
  const bool has_bar = strcmp(kind, "none") != 0;
  const bool counts_steps = strstr(kind, "steps") != NULL;
  calx_callback *bar = bar_of(kind, run->rate);
  calx_lightning_module module = watched_module;
  run->prints = strstr(kind, "prints") != NULL;
  module.user = run;
  module.validation_step = NULL;
  module.training_step = run->ms > 0 ? train_slowly : train;
  calx_trainer *t =
      calx_trainer_new(.devices = (int)run->devices,
                       .max_epochs = counts_steps  ? -1
                                     : run->ms > 0 ? 1
                                                   : 3,
                       .max_steps = counts_steps ? 3 : -1,
                       .steps_per_execution = run->per_execution,
                       .callbacks = &bar, .n_callbacks = has_bar,
                       .no_progress_bar = !has_bar, .no_logger = true,
                       .no_checkpointing = true,
                       .no_model_summary = strstr(kind, "summary") == NULL);
  calx_dataset *data = boring_dataset(run->batches * run->devices);
  calx_loader *loader = calx_loader_new(data);
  CALX_TRY(calx_trainer_fit(t, &module, .train_dataloader = loader));
  report_costs();
  calx_trainer_free(t);
  calx_callback_free(bar);
  calx_loader_free(loader);
  calx_dataset_free(data);
  return NULL;
}

// session KIND | epochs KIND BATCHES RATE MS DEVICES PER_EXECUTION
static int watched(int argc, char **argv)
{
  calx_status *status;
  if (argc == 3) {
    status = run_session(argv[2]);
  } else if (argc == 8) {
    watched_run run = { .batches = atol(argv[3]),
                        .rate = atol(argv[4]),
                        .ms = atol(argv[5]),
                        .devices = atol(argv[6]),
                        .per_execution = atol(argv[7]) };
    status = run_epochs(argv[2], &run);
  } else {
    status = cx_invalid("what is to be watched?");
  }
  if (status == NULL) return 0;
  fprintf(stderr, "%s\n", calx_status_message(status));
  calx_status_free(status);
  return 1;
}

// ---- texts ------------------------------------------------------------------

// Wide characters, colours, what is no UTF-8.
static void test_columns(void **state)
{
  (void)state;
  static const struct {
    const char *text;
    size_t columns, in_three;  // bytes that fit into three columns
  } rows[] = { { "", 0, 0 },       { "abcd", 4, 3 },
               { "aé█", 3, 6 },    { "数据", 4, 3 },
               { "한a😀", 5, 4 },   { "\033[1;35mabc\033[0md", 4, 14 },
               { "\033[2", 0, 3 }, { "\xff\xe6x", 3, 3 } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_int_equal(cx_text_columns(rows[i].text), rows[i].columns);
    assert_int_equal(cx_text_fit(rows[i].text, 3), rows[i].in_three);
  }
}

static void check_text(cx_text *out, const char *wanted, const char *what,
                       size_t i)
{
  if (strcmp(cx_text_str(out), wanted) != 0) {
    print_error("%s %zu:\n%s\nis not\n%s\n", what, i, cx_text_str(out), wanted);
    fail();
  }
  cx_text_free(out);
}

static void test_tqdm_numbers(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof tqdm_numbers / sizeof *tqdm_numbers; i++) {
    cx_text out = { 0 };
    cx_train_tqdm_number(&out, tqdm_numbers[i].value,
                         tqdm_numbers[i].is_integer);
    check_text(&out, tqdm_numbers[i].text, "number", i);
  }
}

static void test_tqdm_lines(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof tqdm_lines / sizeof *tqdm_lines; i++) {
    const double elapsed = tqdm_lines[i].elapsed;
    const cx_train_meter m = {
      .description = tqdm_lines[i].description,
      .n = tqdm_lines[i].n,
      .total = tqdm_lines[i].total,
      .elapsed = elapsed,
      .speed = elapsed > 0 ? (double)tqdm_lines[i].n / elapsed : 0,
      .values = tqdm_lines[i].values,
    };
    cx_text out = { 0 };
    cx_train_tqdm_line(&out, &m, tqdm_lines[i].width, tqdm_lines[i].has_utf8);
    check_text(&out, tqdm_lines[i].text, "line", i);
  }
}

// Without the colours, and without blanks that end a line.
static void strip(const char *from, cx_text *out)
{
  size_t kept = 0;
  for (; *from != '\0'; from++) {
    if (*from == '\033') {
      from = strchr(from, 'm');
    } else if (*from == '\n') {
      out->size = kept;
      cx_text_char(out, '\n');
      kept = out->size;
    } else {
      cx_text_char(out, *from);
      if (*from != ' ') kept = out->size;
    }
  }
  if (out->data != NULL) out->data[out->size = kept] = '\0';
}

static void test_rich_tables(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof rich_tables / sizeof *rich_tables; i++) {
    cx_text out = { 0 }, plain = { 0 };
    cx_train_rich_lines(&out, rich_tables[i].rows, rich_tables[i].n,
                        rich_tables[i].width, true, true);
    strip(cx_text_str(&out), &plain);
    check_text(&plain, rich_tables[i].text, "table", i);
    cx_text_free(&out);
  }
}

// ---- values -----------------------------------------------------------------

static calx_tensor *log_index(calx_trainer *t, void *self,
                              const calx_batch *batch, int64_t i)
{
  calx_trainer_log(t, "index", calx_full(CALX_SHAPE(1), (double)i),
                   .prog_bar = true);
  return boring_loss(self, batch);
}

static void check_age(calx_trainer *t, void *self, const calx_batch *batch,
                      int64_t i)
{
  (void)self, (void)batch;
  double value;
  const int64_t before = calx_counter_value("aten::_local_scalar_dense");
  const bool is_known = cx_train_bar_read(t, 0, &value);
  assert_true(is_known || i < 2);
  if (is_known) assert_in_range((int64_t)value, i < 2 ? 0 : i - 2, i);
  assert_int_equal(calx_counter_value("aten::_local_scalar_dense"), before);
}

// Row C3: what is shown is two steps old at most.
static void test_row_C3(void **state)
{
  (void)state;
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = log_index,
                            .hooks = { .on_train_batch_end = check_age });
  calx_dataset *data = boring_dataset(40);
  calx_loader *loader = calx_loader_new(data);
  calx_trainer *t = calx_trainer_new(.devices = 1, .no_progress_bar = true,
                                     .no_logger = true, .max_epochs = 1);
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader));
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// ---- options ----------------------------------------------------------------

static calx_status *error_of(calx_callback *const *callbacks, size_t n,
                             bool no_progress_bar)
{
  calx_trainer *t =
      calx_trainer_new(.callbacks = callbacks, .n_callbacks = n,
                       .no_progress_bar = no_progress_bar, .devices = 1);
  calx_status *status = calx_trainer_error(t);
  calx_trainer_free(t);
  for (size_t i = 0; i < n; i++) calx_callback_free(callbacks[i]);
  return status;
}

#define ERROR_OF(no_progress_bar, ...)                                       \
  error_of((calx_callback *const[]){ __VA_ARGS__ },                          \
           sizeof((calx_callback *const[]){ __VA_ARGS__ }) / sizeof(void *), \
           no_progress_bar)

static void test_options(void **state)
{
  (void)state;
  CHECK_STATUS_OK(ERROR_OF(false, calx_tqdm_progress_bar(.leave = true)));
  CHECK_STATUS_OK(ERROR_OF(false, calx_rich_progress_bar(.refresh_rate = 0)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               ERROR_OF(false, calx_tqdm_progress_bar(.leave = true),
                        calx_rich_progress_bar(.leave = true)),
               "You added multiple progress bar callbacks to the Trainer, but "
               "currently only one progress bar is supported.");
  CHECK_STATUS(
      CALX_INVALID_ARGUMENT,
      ERROR_OF(true, calx_tqdm_progress_bar(.leave = true)),
      "Trainer was configured with `enable_progress_bar=False` but found "
      "`TQDMProgressBar` in callbacks list.");
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               ERROR_OF(true, calx_rich_progress_bar(.leave = true)),
               "but found `RichProgressBar` in callbacks list.");
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               ERROR_OF(false, calx_tqdm_progress_bar(.refresh_rate = -1)),
               "tqdm_progress_bar: refresh_rate is -1");
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               ERROR_OF(false, calx_rich_progress_bar(.refresh_rate = -2)),
               "rich_progress_bar: refresh_rate is -2");
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               ERROR_OF(false, calx_tqdm_progress_bar(.process_position = -1)),
               "process_position is -1");
  setenv("TQDM_MINITERS", "x", 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               ERROR_OF(false, calx_tqdm_progress_bar(.refresh_rate = 1)),
               "TQDM_MINITERS is 'x'");
  unsetenv("TQDM_MINITERS");
}

int main(int argc, char **argv)
{
  if (argc > 1) return watched(argc, argv);
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_columns),    SUPPORT_TEST(test_tqdm_numbers),
    SUPPORT_TEST(test_tqdm_lines), SUPPORT_TEST(test_rich_tables),
    SUPPORT_TEST(test_options),    SUPPORT_TEST(test_row_C3),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
