// Row C8 of Lightning's acceptance list: one weight in two layers trains as
// one, on one device and on several.
#include "boring.h"

enum { RANKS = 8 };

// One weight in two layers, one of them nested.
typedef struct shared {
  calx_module *root, *inner, *first, *last;
  double sum;  // of both uses' gradients, as two weights have them
} shared;

static calx_tensor *shared_forward(void *self, calx_tensor *x)
{
  shared *m = self;
  return calx_forward(m->last, calx_tanh(calx_forward(m->first, x)));
}

static calx_module *shared_model(calx_trainer *t, void *self)
{
  (void)t;
  shared *m = self;
  m->root = calx_module_new("Shared", shared_forward, m);
  m->first = calx_nn_linear(m->root, "layer_1", 32, 32, .no_bias = true);
  m->inner = calx_module_child(m->root, "inner", "Inner", NULL, NULL);
  m->last = calx_nn_linear(m->inner, "layer_3", 32, 32, .no_bias = true);
  calx_module_tie(m->root, "inner.layer_3.weight",
                  calx_module_find(m->root, "layer_1.weight"));
  return m->root;
}

static calx_tensor *shared_step(calx_trainer *t, void *self,
                                const calx_batch *batch, int64_t i)
{
  (void)t, (void)i;
  shared *m = self;
  calx_tensor *w = calx_module_find(m->root, "layer_1.weight");
  calx_tensor *a = calx_mul(calx_detach(w), 1),
              *b = calx_mul(calx_detach(w), 1);
  calx_requires_grad(a, true);
  calx_requires_grad(b, true);
  calx_tensor *y =
      calx_linear(calx_tanh(calx_linear(batch->data, a, NULL)), b, NULL);
  calx_backward(calx_mean(calx_square(calx_sub(y, 1))));
  m->sum = calx_item(calx_sum(calx_abs(calx_add(calx_grad(a), calx_grad(b)))));
  y = calx_forward(m->root, batch->data);
  return calx_mean(calx_square(calx_sub(y, 1)));
}

static void check_sum(calx_trainer *t, void *self)
{
  (void)t;
  const shared *m = self;
  calx_tensor *w = calx_module_find(m->root, "layer_1.weight");
  const double sum = m->sum;
  assert_true(sum > 0);
  CHECK_CLOSE(calx_item(calx_sum(calx_abs(calx_grad(w)))), sum, 1e-5 * sum);
}

static void check_shared(calx_trainer *t, void *self)
{
  (void)t;
  const shared *m = self;
  assert_ptr_equal(calx_module_find(m->root, "layer_1.weight"),
                   calx_module_find(m->root, "inner.layer_3.weight"));
  assert_int_equal(calx_module_param_count(m->root), 32 * 32);
}

static void shared_optimizers(calx_trainer *t, void *self)
{
  calx_trainer_add_optimizer(t, calx_sgd(((shared *)self)->root, .lr = 0.1));
}

// Its gradient is the sum of both uses. Ties that break are train_steps'.
static void test_row_C8(void **state)
{
  (void)state;
  const calx_lightning_module m =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(shared),
                            .configure_model = shared_model,
                            .configure_optimizers = shared_optimizers,
                            .training_step = shared_step,
                            .hooks = { .on_after_backward = check_sum,
                                       .on_train_end = check_shared });
  for (int devices = 1; devices <= RANKS; devices += RANKS - 1) {
    calx_dataset *data = boring_dataset(2 * devices);
    calx_loader *loader = calx_loader_new(data);
    calx_trainer *t = calx_trainer_new(.devices = devices, .max_epochs = 1,
                                       .barebones = true);
    CHECK_STATUS_OK(calx_trainer_fit(t, &m, .train_dataloader = loader));
    calx_trainer_free(t);
    calx_loader_free(loader);
    calx_dataset_free(data);
    calx_shutdown();
  }
}

static int begin(void **state)
{
  setenv("CPU_NUM_DEVICES", "8", 1);
  return support_setup(state);
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_row_C8) };
  return cmocka_run_group_tests(tests, begin, NULL);
}
