// Data modules: what is called when, on each rank; they win over loaders that
// are given beside them.
#include <stdatomic.h>

#include "boring.h"

static char order[1024];
static atomic_int prepared, set_up;

static void note(const char *what)
{
  if (calx_global_ordinal() != 0) return;
  strncat(order, what, sizeof order - 1 - strlen(order));
  strncat(order, " ", sizeof order - 1 - strlen(order));
}

typedef struct boring_data {
  calx_dataset *dataset;
  calx_loader *train, *val;
} boring_data;

static calx_status *prepare_data(void *user)
{
  (void)user;
  atomic_fetch_add(&prepared, 1);
  note("prepare_data");
  return NULL;
}

static void setup(calx_trainer *t, void *self)
{
  boring_data *d = self;
  atomic_fetch_add(&set_up, 1);
  note("setup");
  note(calx_trainer_stage(t));
  d->dataset = boring_dataset(8);
  d->train = calx_loader_new(d->dataset, .batch_size = 2);
  d->val = calx_loader_new(d->dataset, .batch_size = 4);
}

static calx_loader *train_dataloader(calx_trainer *t, void *self)
{
  (void)t;
  note("train_dataloader");
  return ((boring_data *)self)->train;
}

static calx_loader *val_dataloader(calx_trainer *t, void *self)
{
  (void)t;
  note("val_dataloader");
  return ((boring_data *)self)->val;
}

static void teardown(calx_trainer *t, void *self)
{
  (void)t;
  boring_data *d = self;
  note("teardown");
  calx_loader_free(d->train);
  calx_loader_free(d->val);
  calx_dataset_free(d->dataset);
}

static void on_exception(calx_trainer *t, void *self)
{
  (void)t, (void)self;
  note("on_exception");
}

static const calx_lightning_data_module data =
    CALX_LIGHTNING_DATA_MODULE(.self_size = sizeof(boring_data),
                               .prepare_data = prepare_data, .setup = setup,
                               .train_dataloader = train_dataloader,
                               .val_dataloader = val_dataloader,
                               .on_exception = on_exception,
                               .teardown = teardown);

static const calx_lightning_module module =
    CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                          .configure_model = boring_model,
                          .configure_optimizers = boring_optimizers,
                          .training_step = boring_step,
                          .validation_step = boring_step);

static void fit(int devices)
{
  order[0] = '\0';
  prepared = set_up = 0;
  calx_trainer *t =
      calx_trainer_new(.devices = devices, .max_epochs = 1, .barebones = true);
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .datamodule = &data));
  assert_int_equal(calx_trainer_global_step(t), 4 / devices);
  calx_trainer_free(t);
}

// Row B4, and that data is prepared once on a host and set up on each rank.
static void test_row_B4(void **state)
{
  (void)state;
  fit(1);
  assert_string_equal(order,
                      "prepare_data setup fit train_dataloader val_dataloader "
                      "teardown ");
  calx_shutdown();
  fit(2);
  assert_int_equal(prepared, 1);
  assert_int_equal(set_up, 2);
}

static void test_wins(void **state)
{
  (void)state;
  calx_dataset *other = boring_dataset(64);
  calx_loader *loader = calx_loader_new(other);
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = 1, .barebones = true);
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader,
                                   .datamodule = &data));
  assert_int_equal(calx_trainer_global_step(t), 4);
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(other);
}

static calx_tensor *failing_step(calx_trainer *t, void *self,
                                 const calx_batch *batch, int64_t i)
{
  (void)self, (void)batch, (void)i;
  calx_trainer_log(t, "", NULL);
  return NULL;
}

static void test_exception(void **state)
{
  (void)state;
  order[0] = '\0';
  const calx_lightning_module failing =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = failing_step);
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = 1, .barebones = true);
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_trainer_fit(t, &failing, .datamodule = &data), "the name");
  assert_non_null(strstr(order, "on_exception teardown "));
  assert_int_equal(calx_trainer_exit_code(t), 1);
  calx_trainer_free(t);
}

static int begin(void **state)
{
  setenv("CPU_NUM_DEVICES", "2", 1);
  return support_setup(state);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_row_B4),
    SUPPORT_TEST(test_wins),
    SUPPORT_TEST(test_exception),
  };
  return cmocka_run_group_tests(tests, begin, NULL);
}
