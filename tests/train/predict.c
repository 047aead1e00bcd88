// Predictions: each sample once, in the order of the samples, on one device and
// on several; the hooks around them; what is refused.
#include "boring.h"

// Its data tell which sample it is.
static calx_dataset *numbered(int64_t samples)
{
  calx_scope *scope = calx_scope_begin();
  float *data = malloc((size_t)samples * sizeof *data);
  for (int64_t i = 0; i < samples; i++) data[i] = (float)i;
  calx_tensor *x = calx_host_tensor(data, CALX_F32, CALX_SHAPE(samples, 1));
  calx_dataset *dataset = calx_dataset_tensors(&x, 1);
  free(data);
  calx_status_free(calx_scope_end(scope));
  return dataset;
}

static calx_tensor *predict_step(calx_trainer *t, void *self,
                                 const calx_batch *batch, int64_t i)
{
  (void)t, (void)self, (void)i;
  return calx_mul(batch->data, 2);
}

static const calx_lightning_module module =
    CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                          .configure_model = boring_model,
                          .predict_step = predict_step);

static void check_rows(const calx_value *predictions, size_t loader,
                       int64_t samples)
{
  calx_tensor *rows =
      calx_value_as_tensor(calx_value_item(predictions, loader));
  float values[256];
  assert_int_equal(calx_tensor_numel(rows), samples);
  CHECK_STATUS_OK(
      calx_tensor_read(rows, values, (size_t)samples * sizeof *values));
  for (int64_t i = 0; i < samples; i++) {
    if (values[i] != 2 * (float)i) {
      fail_msg("row %lld is %g", (long long)i, (double)values[i]);
    }
  }
}

// Rows C11 and C19.
static void predict(int devices, int64_t samples, int64_t batch_size,
                    double limit, int64_t wanted)
{
  calx_dataset *data = numbered(samples);
  calx_loader *loader = calx_loader_new(data, .batch_size = batch_size);
  calx_trainer *t =
      calx_trainer_new(.devices = devices, .barebones = true,
                       .limit_predict_batches = limit, .max_epochs = 1);
  calx_value *predictions;
  CHECK_STATUS_OK(calx_trainer_predict(t, &module, &predictions,
                                       .predict_dataloader = loader));
  assert_int_equal(calx_value_count(predictions), 1);
  check_rows(predictions, 0, wanted);
  calx_value_free(predictions);
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
  calx_shutdown();  // ranks start before a device is used
}

static void test_row_C19(void **state)
{
  (void)state;
  predict(1, 103, 4, CALX_DEFAULT, 103);
  predict(8, 103, 4, CALX_DEFAULT, 103);
  predict(4, 103, 1, CALX_DEFAULT, 103);
  predict(8, 3, 4, CALX_DEFAULT, 3);  // some ranks have none
  predict(4, 103, 2, 3, 24);
}

static void test_two_loaders(void **state)
{
  (void)state;
  calx_dataset *few = numbered(5), *many = numbered(7);
  const calx_loader *loaders[] = { calx_loader_new(few, .batch_size = 2),
                                   calx_loader_new(many, .batch_size = 3) };
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .barebones = true, .max_epochs = 1);
  calx_value *predictions;
  CHECK_STATUS_OK(calx_trainer_predict(
      t, &module, &predictions, .dataloaders = loaders, .n_dataloaders = 2));
  check_rows(predictions, 0, 5);
  check_rows(predictions, 1, 7);
  calx_value_free(predictions);
  calx_trainer_free(t);
  for (int i = 0; i < 2; i++) calx_loader_free((calx_loader *)loaders[i]);
  calx_dataset_free(few);
  calx_dataset_free(many);
}

// ---- what else it may be ----------------------------------------------------

static calx_status *run(const calx_lightning_module *m, calx_value **out)
{
  calx_dataset *data = boring_dataset(5);
  calx_loader *loader = calx_loader_new(data, .batch_size = 2);
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .barebones = true, .max_epochs = 1);
  calx_status *status =
      calx_trainer_predict(t, m, out, .predict_dataloader = loader);
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
  return status;
}

// Without a predict_step it is the model's forward.
static void test_forward(void **state)
{
  (void)state;
  const calx_lightning_module m =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model);
  calx_value *predictions;
  CHECK_STATUS_OK(run(&m, &predictions));
  calx_tensor *rows = calx_value_as_tensor(calx_value_item(predictions, 0));
  assert_int_equal(calx_tensor_shape(rows).values[0], 5);
  assert_int_equal(calx_tensor_shape(rows).values[1], 2);
  calx_value_free(predictions);
}

static calx_tensor *one_number(calx_trainer *t, void *self,
                               const calx_batch *batch, int64_t i)
{
  (void)t, (void)self, (void)i;
  return calx_mean(batch->data);
}

static calx_tensor *odd_rows(calx_trainer *t, void *self,
                             const calx_batch *batch, int64_t i)
{
  (void)t, (void)self;
  return calx_narrow(batch->data, 1, 0, 1 + i);
}

static void test_refused(void **state)
{
  (void)state;
  const calx_lightning_module numbers =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .predict_step = one_number);
  const calx_lightning_module odd =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .predict_step = odd_rows);
  calx_value *predictions;
  CHECK_STATUS(CALX_INVALID_ARGUMENT, run(&numbers, &predictions),
               "a batch of 2 samples", "a row for each");
  assert_null(predictions);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, run(&odd, &predictions),
               "for one batch and", "for another");
}

// ---- hooks ------------------------------------------------------------------

static char order[512];
#define NOTED(name)                                              \
  static void name(calx_trainer *t, void *self)                  \
  {                                                              \
    (void)t, (void)self;                                         \
    strncat(order, #name " ", sizeof order - 1 - strlen(order)); \
  }
NOTED(on_predict_model_eval)
NOTED(on_predict_start)
NOTED(on_predict_epoch_start)
NOTED(on_predict_epoch_end)
NOTED(on_predict_end)
NOTED(on_fit_start)
NOTED(teardown)

// Row B2.
static void test_row_B2(void **state)
{
  (void)state;
  const calx_lightning_module m = CALX_LIGHTNING_MODULE(
          .self_size = sizeof(boring), .configure_model = boring_model,
          .hooks = { .on_predict_model_eval = on_predict_model_eval,
                     .on_predict_start = on_predict_start,
                     .on_predict_epoch_start = on_predict_epoch_start,
                     .on_predict_epoch_end = on_predict_epoch_end,
                     .on_predict_end = on_predict_end,
                     .on_fit_start = on_fit_start,
                     .teardown = teardown });
  calx_value *predictions;
  CHECK_STATUS_OK(run(&m, &predictions));
  calx_value_free(predictions);
  assert_string_equal(order,
                      "on_predict_model_eval on_predict_start "
                      "on_predict_epoch_start on_predict_epoch_end "
                      "on_predict_end teardown ");
}

static int begin(void **state)
{
  setenv("CPU_NUM_DEVICES", "8", 1);
  return support_setup(state);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_row_C19), SUPPORT_TEST(test_two_loaders),
    SUPPORT_TEST(test_forward), SUPPORT_TEST(test_refused),
    SUPPORT_TEST(test_row_B2),
  };
  return cmocka_run_group_tests(tests, begin, NULL);
}
