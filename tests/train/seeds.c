// Lightning's pages on TPUs, version 1.5 (P) and 1.9 (A), line by line: what a
// program does there, on eight devices of the CPU. Of the other lines:
//
//   tpu_cores=8, tpu_cores=[5], accelerator="tpu"   train_options, train_start
//   --max_epochs=5 --batch_size=32, --tpu_cores     train_options_args
//   export XRT_TPU_CONFIG=…                         pjrt_xrt, cli_doctor
//   python -m torch_xla.distributed.xla_dist …      cli_hosts
//   lsof -w /lib/libtpu.so | … kill -9              cli_doctor
//   --metadata startup-script=…                     cli_startup
//   Performance considerations                      cli_troubles
#include <pthread.h>
#include <unistd.h>

#include "boring.h"
#include "said.h"

enum { RANKS = 8, SAMPLES = 64, IN = 32, MIDDLE = 10 };

// ---- the page's module ------------------------------------------------------

typedef struct sharing {
  calx_module *root, *layer[3];
} sharing;

static calx_tensor *forward(void *self, calx_tensor *x)
{
  for (int i = 0; i < 3; i++) x = calx_forward(((sharing *)self)->layer[i], x);
  return x;
}

static calx_module *model(calx_trainer *t, void *self)
{
  (void)t;
  static const char *const names[] = { "layer_1", "layer_2", "layer_3" };
  static const int64_t sizes[] = { IN, MIDDLE, IN, MIDDLE };
  sharing *m = self;
  m->root = calx_module_new("WeightSharingModule", forward, m);
  for (int i = 0; i < 3; i++) {
    m->layer[i] = calx_nn_linear(m->root, names[i], sizes[i], sizes[i + 1],
                                 .no_bias = true);
  }
  return m->root;
}

static void tie(calx_trainer *t, void *self)
{
  (void)t;
  calx_module *root = ((sharing *)self)->root;
  calx_module_tie(root, "layer_3.weight",
                  calx_module_find(root, "layer_1.weight"));
}

static calx_module *tied_model(calx_trainer *t, void *self)
{
  calx_module *root = model(t, self);
  tie(t, self);
  return root;
}

static void optimizers(calx_trainer *t, void *self)
{
  calx_trainer_add_optimizer(t, calx_sgd(((sharing *)self)->root, .lr = 0.1));
}

static calx_tensor *loss_of(calx_trainer *t, void *self,
                            const calx_batch *batch, int64_t i)
{
  (void)t, (void)i;
  return calx_cross_entropy(calx_forward(((sharing *)self)->root, batch->data),
                            batch->target);
}

#define MODULE(...)                                         \
  CALX_LIGHTNING_MODULE(.self_size = sizeof(sharing),       \
                        .configure_model = model,           \
                        .configure_optimizers = optimizers, \
                        .training_step = loss_of, __VA_ARGS__)

// ---- a fit ------------------------------------------------------------------

typedef struct run {
  calx_trainer *trainer;
  calx_status *status;
} run;

static run fit(const calx_lightning_module *m, const calx_trainer_options *o,
               calx_dataset *data, calx_sampler *sampler)
{
  calx_loader *loader =
      calx_loader_new(data, .batch_size = 4, .sampler = sampler);
  run r = { .trainer = calx_trainer_new_with(o) };
  r.status = calx_trainer_fit(r.trainer, m, .train_dataloader = loader);
  calx_loader_free(loader);
  return r;
}

#define OPTIONS(...)                                                     \
  &CALX_TRAINER_OPTIONS(.max_epochs = 1, BORING_ALONE, .devices = RANKS, \
                        .no_model_summary = true, __VA_ARGS__)

// --fake_data
static calx_dataset *fake_data(void)
{
  return calx_dataset_fake(SAMPLES, .image_size = CALX_DIMS(IN));
}

static void fit_well(const calx_lightning_module *m,
                     const calx_trainer_options *o)
{
  calx_dataset *data = fake_data();
  run r = fit(m, o, data, NULL);
  CHECK_STATUS_OK(r.status);
  calx_trainer_free(r.trainer);
  calx_dataset_free(data);
}

// P, A: "That's it! Your model will train on all 8 TPU cores."
static void test_eight_devices(void **state)
{
  (void)state;
  const calx_lightning_module m = MODULE();
  calx_dataset *data = fake_data();
  run r = fit(&m, OPTIONS(), data, NULL);
  CHECK_STATUS_OK(r.status);
  assert_int_equal(calx_trainer_global_step(r.trainer), SAMPLES / RANKS / 4);
  calx_trainer_free(r.trainer);
  calx_dataset_free(data);
}

// ---- samplers ---------------------------------------------------------------

static struct {
  pthread_mutex_t lock;
  int times[SAMPLES];
} seen = { .lock = PTHREAD_MUTEX_INITIALIZER };

static calx_status *number(void *user, int64_t index, void *const *fields)
{
  (void)user;
  float *x = fields[0];
  for (int i = 0; i < IN; i++) x[i] = (float)index;
  *(int64_t *)fields[1] = 0;
  return NULL;
}

static void note(calx_trainer *t, void *self, const calx_batch *batch,
                 int64_t i)
{
  (void)t, (void)self, (void)i;
  float rows[4 * IN];
  calx_status *status = calx_tensor_read(batch->data, rows, sizeof rows);
  if (status != NULL) {
    calx_scope_set_error(status);
    return;
  }
  pthread_mutex_lock(&seen.lock);
  for (int k = 0; k < 4; k++) seen.times[(int)rows[k * IN]]++;
  pthread_mutex_unlock(&seen.lock);
}

static void see(calx_sampler *(*sampler_of)(calx_dataset *))
{
  const calx_field fields[] = {
    { .dtype = CALX_F32, .rank = 1, .dims = { IN } }, { .dtype = CALX_I64 }
  };
  calx_dataset *data = calx_dataset_new(SAMPLES, fields, 2, number, NULL, NULL);
  calx_sampler *sampler = sampler_of != NULL ? sampler_of(data) : NULL;
  const calx_lightning_module m = MODULE(.hooks.on_train_batch_start = note);
  memset(seen.times, 0, sizeof seen.times);
  run r = fit(&m, OPTIONS(), data, sampler);
  CHECK_STATUS_OK(r.status);
  calx_trainer_free(r.trainer);
  calx_sampler_free(sampler);
  calx_dataset_free(data);
}

// P, A: "Lightning automatically inserts the correct samplers".
static void test_samplers_are_inserted(void **state)
{
  (void)state;
  see(NULL);
  for (int i = 0; i < SAMPLES; i++) assert_int_equal(seen.times[i], 1);
}

static calx_sampler *of_one_rank(calx_dataset *data)
{
  return calx_distributed_sampler(data, .num_replicas = 8, .rank = 3,
                                  .no_shuffle = true);
}

// P, A: "If for some reason you still need to, this is how to construct the
// sampler": it is taken as it is.
static void test_own_sampler(void **state)
{
  (void)state;
  see(of_one_rank);
  for (int i = 0; i < SAMPLES; i++) {
    assert_int_equal(seen.times[i], i % 8 == 3 ? RANKS : 0);
  }
}

// ---- precision --------------------------------------------------------------

static calx_tensor *bf16_loss(calx_trainer *t, void *self,
                              const calx_batch *batch, int64_t i)
{
  sharing *s = self;
  const calx_dtype computed =
      calx_tensor_dtype(calx_forward(s->root, batch->data));
  const calx_dtype kept =
      calx_tensor_dtype(calx_module_find(s->root, "layer_1.weight"));
  if (computed != CALX_BF16 || kept != CALX_F32) {
    calx_scope_set_error(
        calx_status_new(CALX_INTERNAL, "%d from %d", computed, kept));
  }
  return loss_of(t, self, batch, i);
}

// P, A: precision=16, "Under the hood the xla library will use the bfloat16
// type".
static void test_precision(void **state)
{
  (void)state;
  const calx_lightning_module m = MODULE(.training_step = bf16_loss);
  fit_well(&m, OPTIONS(.precision = "16"));
}

// ---- weight tying -----------------------------------------------------------

static void read_weight(calx_module *root, const char *name, float *out)
{
  CHECK_STATUS_OK(calx_tensor_read(calx_module_find(root, name), out,
                                   MIDDLE * IN * sizeof *out));
}

// Loads what a fit left into a model whose weights are not tied.
static void check_tied(const calx_lightning_module *m)
{
  const int before = said_count("The model layers do not match");
  float one[MIDDLE * IN], three[MIDDLE * IN];
  calx_dataset *data = fake_data();
  run r = fit(m, OPTIONS(), data, NULL);
  CHECK_STATUS_OK(r.status);
  calx_shutdown();
  sharing s;
  calx_scope *scope = calx_scope_begin();
  calx_module *root = model(NULL, &s);
  CHECK_STATUS_OK(calx_trainer_load_weights(r.trainer, root));
  read_weight(root, "layer_1.weight", one);
  read_weight(root, "layer_3.weight", three);
  assert_memory_equal(one, three, sizeof one);
  CHECK_STATUS_OK(calx_scope_end(scope));
  calx_module_free(root);
  calx_trainer_free(r.trainer);
  calx_dataset_free(data);
  calx_shutdown();
  assert_int_equal(said_count("The model layers do not match"), before);
}

// P, A: "Any weights that require to be tied should be done in the
// on_post_move_to_device model hook"; here the model may do it, too.
static void test_tied_weights(void **state)
{
  (void)state;
  const calx_lightning_module in_hook =
                                  MODULE(.hooks.on_post_move_to_device = tie),
                              in_model = MODULE(.configure_model = tied_model);
  said_begin();
  check_tied(&in_hook);
  check_tied(&in_model);
  said_end();
}

static void break_tie(calx_trainer *t, void *self)
{
  (void)t;
  calx_nn_linear(((sharing *)self)->root, "layer_4", 3, 3, .no_bias = true);
}

// P, A: "If the lengths do not match Lightning throws a warning message."
static void test_layer_count(void **state)
{
  (void)state;
  const calx_lightning_module m =
      MODULE(.hooks.on_post_move_to_device = break_tie);
  said_begin();
  fit_well(&m, OPTIONS());
  said_end();
  assert_int_equal(said_count("The model layers do not match after moving to "
                              "the target device. If your model employs weight "
                              "sharing on TPU, please tie your weights using "
                              "the `on_post_move_to_device` model hook."),
                   1);
  assert_int_equal(said_count("Layer count: [Before: 3 After: 4]"), 1);
}

// ---- troubleshooting --------------------------------------------------------

// P: "Cannot replicate if number of devices (1) is different from 8".
static void test_device_used_before(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  calx_sync(calx_ones(CALX_SHAPE(2)));
  CHECK_STATUS_OK(calx_scope_end(scope));
  const calx_lightning_module m = MODULE();
  calx_dataset *data = fake_data();
  run r = fit(&m, OPTIONS(), data, NULL);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, r.status,
               "Do not use the XLA device before calling calx_launch");
  calx_trainer_free(r.trainer);
  calx_dataset_free(data);
}

// P: "PyTorch XLA only supports Tensor objects for CPU to TPU data transfer."
static void test_no_tensor(void **state)
{
  (void)state;
  const calx_field meta = { .name = "meta", .dtype = (calx_dtype)99 };
  calx_dataset *data = calx_dataset_new(SAMPLES, &meta, 1, number, NULL, NULL);
  const calx_lightning_module m = MODULE();
  run r = fit(&m, OPTIONS(), data, NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, r.status,
               "dataset: field 0, 'meta', has no such dtype");
  calx_trainer_free(r.trainer);
  calx_dataset_free(data);
}

// P: Trainer(tpu_cores=8, strategy="tpu_spawn_debug"), "Example Metrics
// report".
static void test_debug_strategy(void **state)
{
  (void)state;
  const calx_lightning_module m = MODULE();
  FILE *file = tmpfile();
  assert_non_null(file);
  const int before = dup(STDERR_FILENO);
  assert_int_equal(dup2(fileno(file), STDERR_FILENO), STDERR_FILENO);
  fit_well(&m, OPTIONS(.strategy = "tpu_spawn_debug"));
  assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
  close(before);
  static char text[1 << 16];
  rewind(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  assert_non_null(strstr(text, "Metric: CompileTime\n"));
  assert_non_null(strstr(text, "Metric: ExecuteTime\n"));
  assert_non_null(strstr(text, "  TotalSamples: "));
  assert_non_null(strstr(text, "  Percentiles: "));
}

int main(void)
{
  setenv("CPU_NUM_DEVICES", "8", 1);
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_eight_devices),
    SUPPORT_TEST(test_samplers_are_inserted),
    SUPPORT_TEST(test_own_sampler),
    SUPPORT_TEST(test_precision),
    SUPPORT_TEST(test_tied_weights),
    SUPPORT_TEST(test_layer_count),
    SUPPORT_TEST(test_device_used_before),
    SUPPORT_TEST(test_no_tensor),
    SUPPORT_TEST(test_debug_strategy),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
