// mnist: twenty steps of the convolutional network on real digits, on 1, 2 and
// 4 ranks that share PyTorch's batches, against PyTorch's losses in f64
// (CALX_SHARED, oracle/mnist.*).
#include "calx/autograd.h"
#include "ranks.h"
#include "support/long.h"
#include "support/mnist_net.h"
#include "support/safetensors.h"

enum { BATCH = 128, STEPS = 20, PIXELS = 28 * 28 };

static safetensors *oracle;
static safetensors_entry images, labels;
static double wanted[STEPS];

// (u8 / 255 - 0.1307) / 0.3081: this rank's part of a step's batch.
static calx_tensor *pixels_of(int step, int64_t n)
{
  float x[BATCH * PIXELS];
  int64_t first = (step % 3) * BATCH + calx_global_ordinal() * n;
  for (int64_t i = 0; i < n * PIXELS; i++) {
    x[i] =
        ((float)images.data[first * PIXELS + i] / 255.0F - 0.1307F) / 0.3081F;
  }
  return calx_tensor_from(x, CALX_F32, CALX_SHAPE(n, 1, 28, 28));
}

static calx_tensor *labels_of(int step, int64_t n)
{
  int64_t first = (step % 3) * BATCH + calx_global_ordinal() * n;
  return calx_tensor_from(labels.data + first * 8, CALX_I64, CALX_SHAPE(n));
}

static calx_status *train(int index, void *user)
{
  double *losses = user;
  int64_t n = BATCH / calx_world_size();
  mnist_net m;
  CALX_TRY(mnist_net_make(&m, CALX_F32));
  calx_convert_sync_batchnorm(m.root);
  CALX_TRY(safetensors_load(oracle, "init/", m.root));
  calx_optimizer *opt = calx_sgd(m.root, .lr = 0.01, .momentum = 0.5);
  CALX_TRY(calx_optimizer_error(opt));
  for (int s = 0; s < STEPS; s++) {
    calx_scope *scope = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    calx_tensor *loss =
        calx_nll_loss(calx_forward(m.root, pixels_of(s, n)), labels_of(s, n));
    calx_backward(loss);
    double value = calx_item(calx_dist_step(opt, loss));
    if (index == 0) losses[s] = value;
    CALX_TRY(calx_scope_end(scope));
  }
  calx_optimizer_free(opt);
  calx_module_free(m.root);
  return NULL;
}

static void test_losses(void **state)
{
  (void)state;
  set_devices(4);
  const int last = (int)all_or_sample(4, 2);
  for (int n = (int)all_or_sample(1, 2); n <= last; n *= 2) {
    double losses[STEPS], most = 0;
    CHECK_STATUS_OK(calx_launch(train, losses, .devices = n));
    for (int s = 0; s < STEPS; s++) {
      CHECK_CLOSE(losses[s], wanted[s], 3e-4);
      most = fmax(most, fabs(losses[s] - wanted[s]));
    }
    print_message("  %d ranks: losses %.2e\n", n, most);
  }
}

static int open_oracle(void **state)
{
  oracle = safetensors_open("oracle/mnist.safetensors");
  assert_true(safetensors_find(oracle, "images_u8", &images));
  assert_true(safetensors_find(oracle, "labels", &labels));
  json_t *facts = safetensors_json("oracle/mnist.json");
  json_t *list = json_object_get(facts, "loss_f64");
  for (size_t s = 0; s < STEPS; s++) {
    wanted[s] = json_number_value(json_array_get(list, s));
  }
  json_decref(facts);
  return support_setup(state);
}

static int close_oracle(void **state)
{
  (void)state;
  safetensors_close(oracle);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_losses) };
  return cmocka_run_group_tests(tests, open_oracle, close_oracle);
}
