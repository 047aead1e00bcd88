// LearningRateMonitor beside Lightning's: row D13 of its acceptance list. What
// is wanted is what Lightning 2.6.6 wrote for the same schedules.
#include "boring.h"
#include "rows.h"
#include "said.h"

static void one_sgd(calx_trainer *t, void *self)
{
  calx_optimizer *opt = calx_sgd(((boring *)self)->root, .lr = 0.1,
                                 .momentum = 0.9, .weight_decay = 0.01);
  calx_trainer_add_optimizer(t, opt, .lr_scheduler = calx_step_lr(opt, 1));
}

static void two_adams(calx_trainer *t, void *self)
{
  calx_module *root = ((boring *)self)->root;
  calx_tensor *weight = calx_module_find(root, "layer.weight");
  calx_tensor *bias = calx_module_find(root, "layer.bias");
  calx_trainer_add_optimizer(
      t, calx_adam(NULL, .lr = 0.01, .params = &weight, .n_params = 1));
  calx_trainer_add_optimizer(
      t, calx_adam(NULL, .lr = 0.02, .params = &bias, .n_params = 1));
  calx_trainer_add_optimizer(
      t, calx_rprop(NULL, .lr = 0.03, .params = &bias, .n_params = 1));
}

static void two_groups(calx_trainer *t, void *self)
{
  calx_module *root = ((boring *)self)->root;
  calx_tensor *weight = calx_module_find(root, "layer.weight");
  calx_tensor *bias = calx_module_find(root, "layer.bias");
  calx_optimizer *opt =
      calx_adam(NULL, .lr = 0.1, .params = &weight, .n_params = 1);
  calx_optimizer_add_param_group(opt, NULL, .lr = 0.5, .params = &bias,
                                 .n_params = 1);
  calx_trainer_add_optimizer(t, opt,
                             .lr_scheduler = calx_exponential_lr(opt, 0.5),
                             .interval = "step");
}

// The optimisers' own steps do not matter here.
static calx_tensor *manual_step(calx_trainer *t, void *self,
                                const calx_batch *batch, int64_t i)
{
  (void)i;
  calx_optimizer_zero_grad(calx_trainer_optimizer(t, 0));
  calx_trainer_manual_backward(t, boring_loss(self, batch));
  calx_trainer_optimizer_step(t, 0);
  return NULL;
}

static void sum_rates(calx_trainer *t, void *self)
{
  (void)self;
  calx_trainer_log_number(t, "sum", calx_trainer_callback_metric(t, "lr-SGD"),
                          .reduce_fx = "sum", .sync_dist = true,
                          .no_logger = true);
}

// Two epochs of 8 batches, of which each fourth is logged.
static calx_trainer *fit(calx_trainer_hook_fn *optimizers, bool by_hand,
                         calx_callback *c, int devices, rows *out)
{
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = optimizers,
                            .manual_optimization = by_hand,
                            .training_step =
                                by_hand ? manual_step : boring_step,
                            .hooks = { .on_train_epoch_end = sum_rates });
  calx_dataset *data = boring_dataset(8 * devices);
  calx_loader *loader = calx_loader_new(data);
  calx_logger *logger = rows_logger(out);
  *out = (rows){ 0 };
  calx_trainer *t =
      calx_trainer_new(.devices = devices, .max_epochs = 2,
                       .no_progress_bar = true, .no_checkpointing = true,
                       .log_every_n_steps = 4, .loggers = &logger,
                       .n_loggers = 1, .callbacks = &c, .n_callbacks = 1);
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader));
  calx_callback_free(c);
  calx_logger_free(logger);
  calx_loader_free(loader);
  calx_dataset_free(data);
  return t;
}

static void test_intervals(void **state)
{
  (void)state;
  static const struct {
    const char *interval, *wanted;
  } cases[] = { { NULL, "0 lr-SGD=0.1\n8 lr-SGD=0.01\n" },
                { "epoch", "0 lr-SGD=0.1\n8 lr-SGD=0.01\n" },
                { "step",
                  "3 lr-SGD=0.1\n7 lr-SGD=0.1\n11 lr-SGD=0.01\n"
                  "15 lr-SGD=0.01\n" } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rows out;
    calx_trainer *t =
        fit(one_sgd, false,
            calx_learning_rate_monitor(.logging_interval = cases[i].interval),
            1, &out);
    assert_string_equal(out.text, cases[i].wanted);
    CHECK_CLOSE(calx_trainer_callback_metric(t, "lr-SGD"), 0.01, 1e-12);
    calx_trainer_free(t);
  }
}

static void test_row_D13(void **state)
{
  (void)state;
  rows out;
  calx_trainer *t = fit(one_sgd, false,
                        calx_learning_rate_monitor(.log_momentum = true,
                                                   .log_weight_decay = true),
                        1, &out);
  assert_string_equal(
      out.text,
      "0 lr-SGD=0.1 lr-SGD-momentum=0.9 lr-SGD-weight_decay=0.01\n"
      "8 lr-SGD=0.01 lr-SGD-momentum=0.9 lr-SGD-weight_decay=0.01\n");
  calx_trainer_free(t);
  said_begin();
  t = fit(two_adams, true, calx_learning_rate_monitor(.log_momentum = true), 1,
          &out);
  said_end();
#define ADAMS                                          \
  " lr-Adam=0.01 lr-Adam-momentum=0.9 lr-Adam-1=0.02 " \
  "lr-Adam-1-momentum=0.9 lr-Rprop=0.03 lr-Rprop-momentum=0\n"
  assert_string_equal(
      out.text, "0" ADAMS "3" ADAMS "7" ADAMS "8" ADAMS "11" ADAMS "15" ADAMS);
  assert_int_equal(said_count("You have set log_momentum=True, but some "
                              "optimizers do not have momentum."),
                   1);
  calx_trainer_free(t);
  t = fit(two_groups, false, calx_learning_rate_monitor(), 1, &out);
  assert_string_equal(
      out.text,
      "3 lr-Adam/pg1=0.0125 lr-Adam/pg2=0.0625\n"
      "7 lr-Adam/pg1=0.00078125 lr-Adam/pg2=0.00390625\n"
      "11 lr-Adam/pg1=4.8828125e-05 lr-Adam/pg2=0.000244140625\n"
      "15 lr-Adam/pg1=3.05175781e-06 lr-Adam/pg2=1.52587891e-05"
      "\n");
  calx_trainer_free(t);
}

// The first rank writes; all have the metric.
static void test_ranks(void **state)
{
  (void)state;
  rows out;
  calx_trainer *t = fit(one_sgd, false, calx_learning_rate_monitor(), 2, &out);
  assert_string_equal(out.text, "0 lr-SGD=0.1\n8 lr-SGD=0.01\n");
  CHECK_CLOSE(calx_trainer_callback_metric(t, "sum"), 0.02, 1e-12);
  calx_trainer_free(t);
}

static void test_refused(void **state)
{
  (void)state;
  calx_callback *c = calx_learning_rate_monitor(.logging_interval = "batch");
  calx_trainer *t =
      calx_trainer_new(.max_epochs = 1, .callbacks = &c, .n_callbacks = 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_error(t),
               "logging_interval should be `step` or `epoch` or `None`.");
  calx_trainer_free(t);
  calx_callback_free(c);
  c = calx_learning_rate_monitor();
  t = calx_trainer_new(.devices = 1, .max_epochs = 1, .no_logger = true,
                       .no_progress_bar = true, .no_checkpointing = true,
                       .callbacks = &c, .n_callbacks = 1);
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = boring_step);
  calx_dataset *data = boring_dataset(1);
  calx_loader *loader = calx_loader_new(data);
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_trainer_fit(t, &module, .train_dataloader = loader),
               "Cannot use `LearningRateMonitor` callback with `Trainer` that "
               "has no logger.");
  calx_trainer_free(t);
  calx_callback_free(c);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

int main(void)
{
  setenv("CPU_NUM_DEVICES", "2", 1);
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_intervals),
    SUPPORT_TEST(test_row_D13),
    SUPPORT_TEST(test_ranks),
    SUPPORT_TEST(test_refused),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
