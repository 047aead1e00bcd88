// calx_trainer_save_checkpoint(), what goes into a checkpoint beside the
// weights, checkpoints of runs that fail, and a run that is killed.
#include <signal.h>
#include <sys/wait.h>

#include "saving.h"
#include "support/long.h"

enum { WEIGHTS = 2 * BORING_FEATURES };

static const float *weights_in(const calx_value *state_dict)
{
  return calx_host_data(
      calx_value_as_tensor(calx_value_get(state_dict, "layer.weight")));
}

static calx_value *load(const char *name)
{
  calx_value *value;
  CHECK_STATUS_OK(calx_load(saving_path(name), &value));
  return value;
}

static bool has(const calx_value *checkpoint, const char *key)
{
  return calx_value_get(checkpoint, key) != NULL;
}

// ---- after a run ------------------------------------------------------------

// Row C17: what the device has is on the host, and no device is wanted to read
// it.
static void test_row_C17(void **state)
{
  (void)state;
  saving s = { VALUES(1, 2), .batches = 3 };
  float weights[WEIGHTS];
  boring b;
  calx_callback *c =
      calx_model_checkpoint(.monitor = "loss", .filename = "best");
  calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 1);
  CHECK_STATUS_OK(saving_fit(t, &s));
  CHECK_STATUS_OK(calx_trainer_save_checkpoint(t, saving_path("a/b/all.ckpt")));
  CHECK_STATUS_OK(calx_trainer_save_checkpoint(t, saving_path("light.ckpt"),
                                               .weights_only = true));
  CHECK_STATUS_OK(
      calx_trainer_save_checkpoint(t, saving_path("plain.safetensors")));
  calx_module *model = boring_model(NULL, &b);
  CHECK_STATUS_OK(calx_trainer_load_weights(t, model));
  CHECK_STATUS_OK(calx_tensor_read(calx_module_find(model, "layer.weight"),
                                   weights, sizeof weights));
  calx_module_free(model);
  calx_trainer_free(t);
  calx_callback_free(c);
  calx_shutdown();
  static const char *const names[] = { "checkpoints/best.ckpt", "a/b/all.ckpt",
                                       "light.ckpt", "plain.safetensors" };
  for (int i = 0; i < 4; i++) {
    calx_value *value = load(names[i]);
    const calx_value *dict =
        i == 3 ? value : calx_value_get(value, "state_dict");
    assert_memory_equal(weights_in(dict), weights, sizeof weights);
    assert_int_equal(has(value, "callbacks"), i < 2);
    calx_value_free(value);
  }
}

// The weights that are saved of a run's trainer stay beside all other state.
static void test_after_evaluation(void **state)
{
  (void)state;
  saving s = { VALUES(1, 2), .batches = 2 };
  calx_lightning_module module = saving_module(&s);
  calx_dataset *data = boring_dataset(2);
  calx_loader *loader = calx_loader_new(data);
  calx_callback *c = calx_model_checkpoint(.monitor = "loss");
  calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 1);
  CHECK_STATUS(CALX_FAILED_PRECONDITION,
               calx_trainer_save_checkpoint(t, saving_path("x.ckpt")),
               "Saving a checkpoint is only possible if a model is attached");
  CHECK_STATUS_OK(saving_fit(t, &s));
  CHECK_STATUS_OK(calx_trainer_test(t, &module, .test_dataloader = loader,
                                    .not_verbose = true));
  CHECK_STATUS_OK(calx_trainer_save_checkpoint(t, saving_path("x.ckpt"),
                                               .weights_only = true));
  CHECK_STATUS_OK(calx_trainer_save_checkpoint(t, saving_path("y.ckpt")));
  calx_value *x = load("x.ckpt"), *y = load("y.ckpt");
  assert_false(has(x, "callbacks"));
  assert_true(has(y, "callbacks"));
  calx_value_free(x);
  calx_value_free(y);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_save_checkpoint(t, ""),
               "the file has no name");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_save_checkpoint(NULL, "x"),
               "the trainer is NULL");
  calx_trainer_free(t);
  calx_callback_free(c);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// ---- hooks and states -------------------------------------------------------

static char order[1024];

static void note(const char *what)
{
  snprintf(order + strlen(order), sizeof order - strlen(order), "%s ", what);
}

static void set(calx_value *dict, const char *key, int64_t number)
{
  CHECK_STATUS_OK(calx_value_set(dict, key, calx_value_int(number)));
}

static void module_saves(calx_trainer *t, void *self, calx_value *checkpoint)
{
  (void)t, (void)self;
  note("module");
  set(checkpoint, "mine", 5);
}

static void module_loads(calx_trainer *t, void *self, calx_value *checkpoint)
{
  (void)t, (void)self;
  note("module");
  assert_int_equal(calx_value_as_int(calx_value_get(checkpoint, "mine")), 5);
}

static void callback_saves(calx_trainer *t, void *self, calx_value *checkpoint)
{
  (void)t, (void)self;
  note("callback");
  assert_true(has(checkpoint, "state_dict") && has(checkpoint, "callbacks"));
}

static void callback_loads(calx_trainer *t, void *self, calx_value *checkpoint)
{
  (void)t, (void)self, (void)checkpoint;
  note("callback");
}

static void put_state(calx_trainer *t, void *self, calx_value *state)
{
  (void)t;
  set(state, "count", *(int *)self + 7);
}

static void put_nothing(calx_trainer *t, void *self, calx_value *state)
{
  (void)t, (void)self, (void)state;
}

static void take_state(calx_trainer *t, void *self, const calx_value *state)
{
  (void)t, (void)self;
  note("state");
  assert_int_equal(calx_value_as_int(calx_value_get(state, "count")), 7);
}

static void take_data_state(calx_trainer *t, void *self,
                            const calx_value *state)
{
  (void)t, (void)self;
  note("data");
  assert_int_equal(calx_value_as_int(calx_value_get(state, "count")), 7);
}

static void test_hooks(void **state)
{
  (void)state;
  saving s = { 0 };
  calx_lightning_module module = saving_module(&s);
  module.hooks.on_save_checkpoint = module_saves;
  module.hooks.on_load_checkpoint = module_loads;
  const calx_lightning_data_module data_module =
      CALX_LIGHTNING_DATA_MODULE(.self_size = sizeof(int),
                                 .state_dict = put_state,
                                 .load_state_dict = take_data_state);
  calx_callback *c[] = {
    calx_callback_new(.self_size = sizeof(int), .state_key = "Counter",
                      .state_dict = put_state, .load_state_dict = take_state,
                      .hooks = { .on_save_checkpoint = callback_saves,
                                 .on_load_checkpoint = callback_loads }),
    calx_callback_new(.state_key = "Empty", .state_dict = put_nothing)
  };
  calx_dataset *data = boring_dataset(2);
  calx_loader *loader = calx_loader_new(data);
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = 1, BORING_ALONE,
                       .callbacks = c, .n_callbacks = 2);
  order[0] = '\0';
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader,
                                   .datamodule = &data_module));
  assert_string_equal(order, "callback module ");
  CHECK_STATUS_OK(calx_trainer_save_checkpoint(t, saving_path("x.ckpt")));
  calx_value *x = load("x.ckpt");
  const calx_value *states = calx_value_get(x, "callbacks");
  assert_int_equal(calx_value_count(states), 1);
  assert_string_equal(calx_value_key(states, 0), "Counter");
  calx_value_free(x);
  order[0] = '\0';
  CHECK_STATUS_OK(calx_trainer_test(
      t, &module, .test_dataloader = loader, .datamodule = &data_module,
      .ckpt_path = saving_path("x.ckpt"), .not_verbose = true));
  assert_string_equal(order, "module data module ");
  calx_trainer_free(t);
  t = calx_trainer_new(.devices = 1, .max_epochs = 2, BORING_ALONE,
                       .callbacks = c, .n_callbacks = 1);
  order[0] = '\0';
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader,
                                   .datamodule = &data_module,
                                   .ckpt_path = saving_path("x.ckpt")));
  assert_string_equal(order, "module data callback state callback module ");
  calx_trainer_free(t);
  calx_callback_free(c[0]);
  calx_callback_free(c[1]);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// ---- in a run ---------------------------------------------------------------

static void save_here(calx_trainer *t, void *self)
{
  (void)self;
  CHECK_STATUS_OK(calx_trainer_save_checkpoint(t, saving_path("here.ckpt")));
}

static void test_in_a_run(void **state)
{
  (void)state;
  for (int devices = 1; devices <= 2; devices++) {
    saving s = { 0 };
    calx_lightning_module module = saving_module(&s);
    module.hooks.on_train_epoch_end = save_here;
    calx_dataset *data = boring_dataset(2);
    calx_loader *loader = calx_loader_new(data);
    calx_trainer *t =
        calx_trainer_new(.devices = devices, .max_epochs = 1, BORING_ALONE);
    CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader));
    calx_value *value = load("here.ckpt");
    const calx_value *left = calx_value_get(t->checkpoint, "state_dict");
    assert_memory_equal(weights_in(calx_value_get(value, "state_dict")),
                        weights_in(left), WEIGHTS * sizeof(float));
    calx_value_free(value);
    calx_trainer_free(t);
    calx_loader_free(loader);
    calx_dataset_free(data);
    calx_shutdown();
  }
}

// ---- runs that fail ---------------------------------------------------------

// The last rank's loss is none, so there is no step with it.
static calx_tensor *fail_late(calx_trainer *t, void *self,
                              const calx_batch *batch, int64_t i)
{
  calx_tensor *loss = boring_loss(self, batch);
  const bool fails = calx_trainer_current_epoch(t) == 1 && i == 1 &&
                     calx_global_ordinal() == calx_world_size() - 1;
  return fails ? calx_reshape(loss, CALX_SHAPE(7)) : loss;
}

static void fit_and_fail(int devices, calx_callback **callbacks, bool fails)
{
  saving s = { 0 };
  calx_lightning_module module = saving_module(&s);
  if (fails) module.training_step = fail_late;
  module.validation_step = NULL;
  calx_dataset *data = boring_dataset(3 * devices);
  calx_loader *loader = calx_loader_new(data);
  calx_trainer *t =
      calx_trainer_new(.devices = devices, .max_epochs = 2,
                       .no_progress_bar = true, .no_model_summary = true,
                       .no_logger = true, .default_root_dir = saving_path(""),
                       .callbacks = callbacks, .n_callbacks = 2);
  calx_status *status =
      calx_trainer_fit(t, &module, .train_dataloader = loader);
  if (fails) {
    CHECK_STATUS(CALX_INVALID_ARGUMENT, status, "reshape");
  } else {
    CHECK_STATUS_OK(status);
  }
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// A file's weights are those after so many steps.
static void check_steps(int devices, const char *file, int64_t steps)
{
  saving s = { .batches = 3, .logs_training = true };
  calx_shutdown();
  calx_trainer *t =
      calx_trainer_new(.devices = devices, .max_steps = steps, BORING_ALONE);
  CHECK_STATUS_OK(saving_fit(t, &s));
  calx_value *value = load(file);
  assert_memory_equal(weights_in(calx_value_get(value, "state_dict")),
                      weights_in(calx_value_get(t->checkpoint, "state_dict")),
                      WEIGHTS * sizeof(float));
  calx_value_free(value);
  calx_trainer_free(t);
  calx_shutdown();
}

static void check_failed(int devices)
{
  calx_callback *c[] = { calx_model_checkpoint(.save_on_exception = true,
                                               .every_n_epochs = 9,
                                               .save_last = true),
                         calx_on_exception_checkpoint(saving_path("failed")) };
  fit_and_fail(devices, c, true);
  CHECK_FILES("failed", "on_exception.ckpt");
  CHECK_FILES("checkpoints", "epoch=1-step=4.ckpt last.ckpt");
  CHECK_LINE(" was raised with message: ");
  CHECK_LINE("/checkpoints/epoch=1-step=4.ckpt");
  check_steps(devices, "failed/on_exception.ckpt", 4);
  calx_callback_free(c[0]);
  // The next run goes on from it, and one that ends well removes it.
  c[0] = calx_model_checkpoint(.dirpath = saving_path("none"));
  fit_and_fail(devices, c, false);
  CHECK_LINE("The last model of the previous `fit` call will be used.");
  CHECK_LINE("failed/on_exception.ckpt");
  CHECK_FILES("failed", "");
  calx_callback_free(c[0]);
  calx_callback_free(c[1]);
}

static void test_failed(void **state)
{
  (void)state;
  check_failed(1);
}

static void test_failed_ranks(void **state)
{
  (void)state;
  check_failed(2);
}

// ---- row E22 ----------------------------------------------------------------

// The process that is killed: it saves after each batch.
static int save_for_ever(const char *folder)
{
  snprintf(saving_root, sizeof saving_root, "%s", folder);
  saving s = { .batches = 1000 };
  calx_callback *c =
      calx_model_checkpoint(.filename = "{step}", .save_last = true,
                            .every_n_train_steps = 1);
  calx_trainer *t = SAVING_TRAINER(c, .max_epochs = -1);
  calx_status *status = saving_fit(t, &s);
  fprintf(stderr, "%s\n", calx_status_message(status));
  return 1;
}

static void start_and_kill(int after_ms)
{
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    setenv("SAVE_FOR_EVER", saving_root, 1);
    execl("/proc/self/exe", "save_for_ever", (char *)NULL);
    _exit(127);
  }
  int how;
  for (int i = 0; i < 6000 && access(saving_path("checkpoints"), F_OK) != 0;
       i++) {
    usleep(10000);
  }
  usleep((useconds_t)after_ms * 1000);
  assert_int_equal(kill(child, SIGKILL), 0);
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFSIGNALED(how));
}

static int load_all(void)
{
  int n = 0;
  DIR *dir = opendir(saving_path("checkpoints"));
  assert_non_null(dir);
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    char name[300];
    const char *end = strrchr(e->d_name, '.');
    if (end == NULL || strcmp(end, ".ckpt") != 0) continue;
    snprintf(name, sizeof name, "checkpoints/%s", e->d_name);
    calx_value *value = load(name);
    assert_true(has(value, "state_dict") && has(value, "callbacks"));
    calx_value_free(value);
    n++;
  }
  closedir(dir);
  return n;
}

static void test_row_E22(void **state)
{
  (void)state;
  int found = 0;
  for (int i = 0; i < (int)long_or(60, 6); i++) {
    start_and_kill(20 + 37 * i % 200);
    found += load_all();
  }
  assert_true(found > 0);
}

static int begin(void **state)
{
  setenv("CPU_NUM_DEVICES", "2", 1);
  return support_setup(state);
}

int main(void)
{
  const char *folder = getenv("SAVE_FOR_EVER");
  if (folder != NULL) return save_for_ever(folder);
  const struct CMUnitTest tests[] = {
    SAVING_TEST(test_row_C17), SAVING_TEST(test_after_evaluation),
    SAVING_TEST(test_hooks),   SAVING_TEST(test_in_a_run),
    SAVING_TEST(test_failed),  SAVING_TEST(test_failed_ranks),
    SAVING_TEST(test_row_E22),
  };
  return cmocka_run_group_tests(tests, begin, NULL);
}
