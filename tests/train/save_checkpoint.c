// calx_trainer_save_checkpoint(), and what goes into a checkpoint beside the
// weights.
#include "saving.h"

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
    calx_value *value = saving_load(names[i]);
    const calx_value *dict =
        i == 3 ? value : calx_value_get(value, "state_dict");
    assert_memory_equal(saving_weights_in(dict), weights, sizeof weights);
    assert_int_equal(saving_has(value, "callbacks"), i < 2);
    calx_value_free(value);
  }
}

// A model of the program's gets the weights of a checkpoint, of weights alone,
// and of a part of a larger model's.
static void test_load_from_checkpoint(void **state)
{
  (void)state;
  saving s = { VALUES(1, 2), .batches = 3 };
  calx_callback *c = calx_model_checkpoint(.monitor = "loss");
  calx_trainer *t = SAVING_TRAINER(c, .max_epochs = 1);
  CHECK_STATUS_OK(saving_fit(t, &s));
  const char *names[] = { "whole.ckpt", "plain.safetensors" };
  boring b;
  for (int i = 0; i < 2; i++) {
    CHECK_STATUS_OK(calx_trainer_save_checkpoint(t, saving_path(names[i])));
    float wanted[WEIGHTS], weights[WEIGHTS];
    calx_module *model = boring_model(NULL, &b);
    CHECK_STATUS_OK(calx_trainer_load_weights(t, model));
    CHECK_STATUS_OK(calx_tensor_read(calx_module_find(model, "layer.weight"),
                                     wanted, sizeof wanted));
    calx_module_free(model);
    model = boring_model(NULL, &b);
    CHECK_STATUS_OK(
        calx_module_load_from_checkpoint(model, saving_path(names[i])));
    CHECK_STATUS_OK(calx_tensor_read(calx_module_find(model, "layer.weight"),
                                     weights, sizeof weights));
    assert_memory_equal(weights, wanted, sizeof wanted);
    calx_module_free(model);
  }
  calx_module *layer = calx_nn_linear(NULL, NULL, BORING_FEATURES, 2);
  CHECK_STATUS_OK(calx_module_load_from_checkpoint(
      layer, saving_path("whole.ckpt"), .prefix = "layer."));
  CHECK_STATUS(
      CALX_INVALID_ARGUMENT,
      calx_module_load_from_checkpoint(layer, saving_path("whole.ckpt")),
      "Missing key(s) in state_dict: \"weight\"");
  CHECK_STATUS(CALX_NOT_FOUND,
               calx_module_load_from_checkpoint(layer, saving_path("no.ckpt")),
               "no.ckpt");
  calx_module_free(layer);
  calx_trainer_free(t);
  calx_callback_free(c);
  calx_shutdown();
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
  calx_value *x = saving_load("x.ckpt"), *y = saving_load("y.ckpt");
  assert_false(saving_has(x, "callbacks"));
  assert_true(saving_has(y, "callbacks"));
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
  assert_true(saving_has(checkpoint, "state_dict") &&
              saving_has(checkpoint, "callbacks"));
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
  calx_value *x = saving_load("x.ckpt");
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
    calx_value *value = saving_load("here.ckpt");
    const calx_value *left = calx_value_get(t->checkpoint, "state_dict");
    assert_memory_equal(saving_weights_in(calx_value_get(value, "state_dict")),
                        saving_weights_in(left), WEIGHTS * sizeof(float));
    calx_value_free(value);
    calx_trainer_free(t);
    calx_loader_free(loader);
    calx_dataset_free(data);
    calx_shutdown();
  }
}

static int begin(void **state)
{
  setenv("CPU_NUM_DEVICES", "2", 1);
  return support_setup(state);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SAVING_TEST(test_row_C17),          SAVING_TEST(test_load_from_checkpoint),
    SAVING_TEST(test_after_evaluation), SAVING_TEST(test_hooks),
    SAVING_TEST(test_in_a_run),
  };
  return cmocka_run_group_tests(tests, begin, NULL);
}
