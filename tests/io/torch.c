// torch: files go to PyTorch and come back. CALX_TEST_PLUGIN_TORCH is a Python
// that has torch and safetensors; what else the suite needs of PyTorch is in
// the oracle's files.
#include "support/torch.h"
#include "calx/autograd.h"
#include "everything.h"
#include "support/mixed_net.h"

static void run(const char *verb, const char *from, const char *to)
{
  char command[1024];
  snprintf(command, sizeof command, "'%s' '%s/torch_files.py' %s '%s' '%s'",
           torch_python(), CX_TEST_DIR, verb, from, to);
  assert_int_equal(system(command), 0);
}

// torch.load(weights_only=True) takes it, and what torch.save makes of it is
// read as the same value.
static void test_pt(void **state)
{
  (void)state;
  const char *from = file_in_folder("calx.pt"),
             *to = file_in_folder("torch.pt");
  calx_value *d = everything(), *read;
  CHECK_STATUS_OK(calx_save(d, from));
  run("pt", from, to);
  CHECK_STATUS_OK(calx_load(to, &read));
  check_equal(d, read);
  calx_value_free(read);
  calx_value_free(d);
  files_in_folder(true);
}

static void test_safetensors(void **state)
{
  (void)state;
  const char *from = file_in_folder("calx.safetensors");
  const char *to = file_in_folder("torch.safetensors");
  calx_value *all = everything(), *d, *read;
  d = calx_value_container(CALX_KIND_DICT);
  for (size_t i = 0; calx_value_item(all, i) != NULL; i++) {
    calx_tensor *t = calx_value_as_tensor(calx_value_item(all, i));
    // safetensors has no c128.
    if (t != NULL && calx_tensor_dtype(t) != CALX_C128)
      put(d, calx_value_key(all, i), calx_value_tensor(t));
  }
  CHECK_STATUS_OK(calx_save(d, from));
  run("safetensors", from, to);
  CHECK_STATUS_OK(calx_load(to, &read));
  assert_int_equal(calx_value_count(read), calx_value_count(d));
  for (size_t i = 0; i < calx_value_count(d); i++) {
    check_equal(calx_value_item(d, i),
                calx_value_get(read, calx_value_key(d, i)));
  }
  calx_value_free(read);
  calx_value_free(d);
  calx_value_free(all);
  files_in_folder(true);
}

static void step(calx_module *m, calx_optimizer *opt)
{
  calx_scope *s = calx_scope_begin();
  calx_optimizer_zero_grad(opt);
  calx_tensor *y = calx_forward(m, calx_ones(CALX_SHAPE(2, 3)));
  calx_backward(calx_sum(calx_square(y)));
  calx_optimizer_step(opt);
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(s));
}

static calx_optimizer *make_sgd(calx_module *m)
{
  return calx_sgd(m, .lr = 0.05, .momentum = 0.9, .nesterov = true);
}

static calx_optimizer *make_adam(calx_module *m)
{
  return calx_adam(m, .lr = 0.05, .amsgrad = true);
}

static calx_optimizer *make_adamw(calx_module *m)
{
  return calx_adamw(m, .lr = 0.05);
}

// PyTorch goes on from a checkpoint of calx's as calx does, and calx takes the
// state that PyTorch's optimiser has then.
static void check_optimizer(const char *verb,
                            calx_optimizer *(*make)(calx_module *))
{
  const char *from = file_in_folder("run.pt"), *to = file_in_folder("torch.pt");
  calx_module *m = calx_module_new("Net", NULL, NULL);
  calx_module *fc = calx_nn_linear(m, "fc", 3, 2);
  calx_optimizer *opt = make(m);
  step(fc, opt);
  step(fc, opt);
  calx_checkpoint c = { .size = sizeof c, .model = m, .optimizer = opt };
  CHECK_STATUS_OK(calx_checkpoint_save(from, &c));
  run(verb, from, to);
  step(fc, opt);
  calx_value *v;
  CHECK_STATUS_OK(calx_load(to, &v));
  size_t n;
  double *w = support_read(calx_value_as_tensor(calx_value_get(
                               calx_value_get(v, "model"), "weight")),
                           &n);
  support_values(calx_module_find(fc, "weight"), w, n, 1e-6, __FILE__,
                 __LINE__);
  test_free(w);
  CHECK_STATUS_OK(
      calx_optimizer_load_state_dict(opt, calx_value_get(v, "optimizer")));
  if (strcmp(verb, "SGD") != 0) {  // PyTorch's does not count
    assert_int_equal(calx_optimizer_steps(opt), 3);
  }
  calx_value_free(v);
  calx_optimizer_free(opt);
  calx_module_free(m);
  files_in_folder(true);
}

static void test_optimizers(void **state)
{
  (void)state;
  check_optimizer("SGD", make_sgd);
  check_optimizer("Adam", make_adam);
  check_optimizer("AdamW", make_adamw);
}

// A model whose modules make children first: each state goes to the parameter
// that PyTorch's index means, in both directions.
static void test_order(void **state)
{
  (void)state;
  const char *from = file_in_folder("run.pt"), *to = file_in_folder("torch.pt");
  calx_module *m = mixed_net(CALX_F32);
  calx_optimizer *opt = calx_adam(m, .lr = 0.1);
  mixed_step(m, opt);
  mixed_step(m, opt);
  calx_checkpoint c = { .size = sizeof c, .model = m, .optimizer = opt };
  CHECK_STATUS_OK(calx_checkpoint_save(from, &c));
  run("mixed", from, to);
  calx_value *v;
  CHECK_STATUS_OK(calx_load(to, &v));
  // One step here, as PyTorch took one; then another with PyTorch's state.
  mixed_step(m, opt);
  for (int twice = 0; twice < 2; twice++) {
    const calx_value *wanted =
        calx_value_get(v, twice == 0 ? "model" : "next model");
    for (int i = 0; i < MIXED_PARAMS; i++) {
      size_t n;
      double *w = support_read(
          calx_value_as_tensor(calx_value_get(wanted, mixed_made[i])), &n);
      support_values(calx_module_find(m, mixed_made[i]), w, n, 1e-6, __FILE__,
                     __LINE__);
      test_free(w);
    }
    CHECK_STATUS_OK(
        calx_optimizer_load_state_dict(opt, calx_value_get(v, "optimizer")));
    if (twice == 0) mixed_step(m, opt);
  }
  calx_value_free(v);
  calx_optimizer_free(opt);
  calx_module_free(m);
  files_in_folder(true);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_pt),
    SUPPORT_TEST(test_safetensors),
    SUPPORT_TEST(test_optimizers),
    SUPPORT_TEST(test_order),
  };
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
