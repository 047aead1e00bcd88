// resume: a run that is interrupted and goes on in new objects has the same
// bits as one that is not. And optimisers' states, calx's and PyTorch's.
#include "calx/autograd.h"
#include "calx/io.h"
#include "files.h"

enum { SAMPLES = 40, BATCH = 8, FEATURES = 6 };

typedef struct training {
  calx_module *model, *hidden, *head;
  calx_optimizer *opt;
  calx_dataset *data;
  calx_loader *loader;
} training;

typedef calx_optimizer *make_optimizer(calx_module *model);

static calx_optimizer *make_sgd(calx_module *m)
{
  return calx_sgd(m, .lr = 0.05, .momentum = 0.9, .weight_decay = 1e-4);
}

static calx_optimizer *make_adam(calx_module *m)
{
  return calx_adam(m, .lr = 0.01, .amsgrad = true);
}

static calx_optimizer *make_adamw(calx_module *m)
{
  return calx_adamw(m, .lr = 0.01);
}

static calx_optimizer *make_plain(calx_module *m)
{
  return calx_sgd(m, .lr = 0.05);
}

static calx_status *get_sample(void *user, int64_t index, void *const *fields)
{
  (void)user;
  float *x = fields[0];
  for (int i = 0; i < FEATURES; i++) {
    x[i] = (float)((index * 7 + i * i) % 13) / 13;
  }
  *(float *)fields[1] = x[0] + 2 * x[1] - x[2];
  return NULL;
}

static training begin(make_optimizer *make, uint64_t seed)
{
  const calx_field fields[] = {
    { .name = "data", .dtype = CALX_F32, .rank = 1, .dims = { FEATURES } },
    { .name = "target", .dtype = CALX_F32, .rank = 1, .dims = { 1 } },
  };
  training t = { .model = NULL };
  calx_manual_seed(seed);
  t.model = calx_module_new("Net", NULL, NULL);
  t.hidden = calx_nn_linear(t.model, "hidden", FEATURES, 8);
  t.head = calx_nn_linear(t.model, "head", 8, 1);
  t.opt = make(t.model);
  t.data = calx_dataset_new(SAMPLES, fields, 2, get_sample, NULL, NULL);
  t.loader = calx_loader_new(t.data, .batch_size = BATCH, .shuffle = true);
  CHECK_STATUS_OK(calx_module_error(t.model));
  CHECK_STATUS_OK(calx_optimizer_error(t.opt));
  return t;
}

static void end(training *t)
{
  calx_loader_free(t->loader);
  calx_dataset_free(t->data);
  calx_optimizer_free(t->opt);
  calx_module_free(t->model);
}

// `steps` steps with noise on the inputs, over the ends of epochs.
static void train(training *t, int steps)
{
  calx_batch b;
  for (int i = 0; i < steps; i++) {
    calx_scope *s = calx_scope_begin();
    while (!calx_loader_next(t->loader, &b)) {
      const calx_status *error = calx_scope_error();
      assert_null(error);
    }
    calx_tensor *noise = calx_randn(CALX_SHAPE(BATCH, FEATURES));
    calx_tensor *x =
        calx_add(b.data, calx_mul(noise, calx_full(CALX_SCALAR, 0.1)));
    calx_tensor *y =
        calx_forward(t->head, calx_tanh(calx_forward(t->hidden, x)));
    calx_optimizer_zero_grad(t->opt);
    calx_backward(calx_mean(calx_square(calx_sub(y, b.target))));
    calx_optimizer_step(t->opt);
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(s));
  }
}

static void check_same_bits(calx_module *a, calx_module *b)
{
  calx_value *x, *y;
  CHECK_STATUS_OK(calx_module_state_dict(a, &x));
  CHECK_STATUS_OK(calx_module_state_dict(b, &y));
  for (size_t i = 0; i < calx_value_count(x); i++) {
    calx_tensor *p = calx_value_as_tensor(calx_value_item(x, i));
    calx_tensor *q = calx_value_as_tensor(calx_value_item(y, i));
    float u[256], v[256];
    size_t n = (size_t)calx_tensor_numel(p) * sizeof *u;
    CHECK_STATUS_OK(calx_tensor_read(p, u, n));
    CHECK_STATUS_OK(calx_tensor_read(q, v, n));
    assert_memory_equal(u, v, n);
  }
  calx_value_free(x);
  calx_value_free(y);
}

static void check_resume(make_optimizer *make, int before)
{
  enum { ALL = 13 };
  const char *path = file_in_folder("run.pt");
  training a = begin(make, 5);
  train(&a, before);
  calx_value *user = calx_value_container(CALX_KIND_DICT);
  CHECK_STATUS_OK(calx_value_set(user, "loss", calx_value_float(0.5)));
  calx_checkpoint c = { .size = sizeof c,
                        .model = a.model,
                        .optimizer = a.opt,
                        .loader = calx_loader_state(a.loader),
                        .user = user };
  CHECK_STATUS_OK(calx_checkpoint_save(path, &c));
  CHECK_CLOSE(calx_value_as_float(calx_value_get(user, "loss")), 0.5, 0);
  calx_value_free(user);
  train(&a, ALL - before);  // on the same device: its draws go on

  training b = begin(make, 77);
  train(&b, 2);
  calx_checkpoint d = { .size = sizeof d,
                        .model = b.model,
                        .optimizer = b.opt };
  CHECK_STATUS_OK(calx_checkpoint_load(path, &d));
  assert_int_equal(calx_optimizer_steps(b.opt), before);
  CHECK_CLOSE(calx_value_as_float(calx_value_get(d.user, "loss")), 0.5, 0);
  calx_value_free(d.user);
  CHECK_STATUS_OK(calx_loader_load_state(b.loader, d.loader));
  train(&b, ALL - before);
  assert_int_equal(calx_optimizer_steps(b.opt), ALL);
  check_same_bits(a.model, b.model);
  end(&a);
  end(&b);
  files_in_folder(true);
}

static void test_sgd(void **state)
{
  (void)state;
  check_resume(make_sgd, 3);
  check_resume(make_plain, 3);
}

static void test_adam(void **state)
{
  (void)state;
  check_resume(make_adam, 5);  // at the end of an epoch
  check_resume(make_adamw, 8);
}

static void test_before_the_first_step(void **state)
{
  (void)state;
  check_resume(make_adamw, 0);
}

// Nothing changes where the optimiser or the model does not fit.
static void test_other_run(void **state)
{
  (void)state;
  const char *path = file_in_folder("run.pt");
  training a = begin(make_sgd, 1), b = begin(make_adam, 2);
  calx_module *other = calx_module_new("Other", NULL, NULL);
  calx_nn_linear(other, "hidden", FEATURES, 8);
  calx_nn_linear(other, "head", 8, 1, .no_bias = true);
  calx_optimizer *small = make_sgd(other);
  train(&a, 2);
  train(&b, 2);
  calx_checkpoint c = { .size = sizeof c,
                        .model = a.model,
                        .optimizer = a.opt };
  CHECK_STATUS_OK(calx_checkpoint_save(path, &c));
  float before[8], after[8];
  calx_tensor *bias = calx_module_find(b.model, "hidden.bias");
  CHECK_STATUS_OK(calx_tensor_read(bias, before, sizeof before));
  calx_checkpoint d = { .size = sizeof d,
                        .model = b.model,
                        .optimizer = small };
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_checkpoint_load(path, &d),
               "doesn't match the size of optimizer's group: 4 parameters, the "
               "optimiser has 3");
  d.model = other;
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_checkpoint_load(path, &d),
               "Unexpected key(s) in state_dict: \"head.bias\"");
  CHECK_STATUS_OK(calx_tensor_read(bias, after, sizeof after));
  assert_memory_equal(before, after, sizeof before);
  calx_value *dict;
  CHECK_STATUS_OK(calx_module_state_dict(b.model, &dict));
  CHECK_STATUS_OK(calx_save(dict, path));
  calx_value_free(dict);
  d.model = b.model;
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_checkpoint_load(path, &d),
               "no checkpoint of calx");
  d.model = NULL;
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_checkpoint_load(path, &d),
               "no model");
  calx_optimizer_free(small);
  calx_module_free(other);
  end(&a);
  end(&b);
  files_in_folder(true);
}

// At most two elements.
static calx_value *filled(float x, calx_dims shape)
{
  float data[2] = { x, x };
  calx_scope *s = calx_scope_begin();
  calx_value *v = calx_value_tensor(calx_host_tensor(data, CALX_F32, shape));
  CHECK_STATUS_OK(calx_scope_end(s));
  return v;
}

// Sizes, hyperparameters and groups that are wrong.
static void test_wrong_state(void **state)
{
  (void)state;
  training a = begin(make_adamw, 1);
  train(&a, 2);
  calx_value *d;
  CHECK_STATUS_OK(calx_optimizer_state_dict(a.opt, &d));
  calx_value *group = calx_value_item(calx_value_get(d, "param_groups"), 0);
  calx_value *first = calx_value_get_at(calx_value_get(d, "state"), 0);
  CHECK_CLOSE(calx_item(calx_value_as_tensor(calx_value_get(first, "step"))), 2,
              0);
  CHECK_STATUS_OK(calx_value_set(group, "lr", calx_value_float(-1)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_optimizer_load_state_dict(a.opt, d),
               "'lr' is float -1, wanted is a number of 0 or more, finite");
  CHECK_STATUS_OK(calx_value_set(group, "lr", calx_value_string("high")));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_optimizer_load_state_dict(a.opt, d),
               "'lr' is str, wanted");
  CHECK_STATUS_OK(calx_value_set(group, "lr", filled(0.25f, CALX_SHAPE(2))));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_optimizer_load_state_dict(a.opt, d),
               "'lr' is Tensor, wanted");
  // As PyTorch's capturable optimisers have it.
  CHECK_STATUS_OK(calx_value_set(group, "lr", filled(0.25f, CALX_SCALAR)));
  CHECK_STATUS_OK(calx_optimizer_load_state_dict(a.opt, d));
  CHECK_CLOSE(calx_optimizer_lr(a.opt), 0.25, 0);
  calx_tensor *b = calx_module_find(a.model, "head.bias");
  CHECK_STATUS_OK(calx_value_set(first, "exp_avg", calx_value_tensor(b)));
  CHECK_STATUS(
      CALX_INVALID_ARGUMENT, calx_optimizer_load_state_dict(a.opt, d),
      "'exp_avg' of 'hidden.weight' is f32[1], the parameter f32[8,6]");
  CHECK_STATUS_OK(calx_value_set(d, "param_groups", calx_value_int(1)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_optimizer_load_state_dict(a.opt, d),
               "a different number of parameter groups");
  calx_value_free(d);
  end(&a);
}

// The state of another rule is refused, not dropped; Adam's is AdamW's too, and
// an optimiser that was never stepped has none.
static void test_another_rule(void **state)
{
  (void)state;
  training adam = begin(make_adamw, 1), sgd = begin(make_sgd, 2);
  calx_value *empty, *d;
  CHECK_STATUS_OK(calx_optimizer_state_dict(adam.opt, &empty));
  CHECK_STATUS_OK(calx_optimizer_load_state_dict(sgd.opt, empty));
  calx_value_free(empty);
  train(&adam, 2);
  train(&sgd, 2);
  double lr = calx_optimizer_lr(sgd.opt);
  calx_optimizer_set_lr(adam.opt, 2 * lr);
  CHECK_STATUS_OK(calx_optimizer_state_dict(adam.opt, &d));
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_optimizer_load_state_dict(sgd.opt, d),
               "sgd: load_state_dict: the state of 'hidden.weight' is another "
               "optimiser's: it has 'exp_avg' and no 'momentum_buffer'");
  CHECK_CLOSE(calx_optimizer_lr(sgd.opt), lr, 0);
  calx_optimizer *plain = calx_adam(adam.model);
  CHECK_STATUS_OK(calx_optimizer_load_state_dict(plain, d));
  calx_optimizer_free(plain);
  calx_value_free(d);
  CHECK_STATUS_OK(calx_optimizer_state_dict(sgd.opt, &d));
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_optimizer_load_state_dict(adam.opt, d),
               "another "
               "optimiser's: it has 'momentum_buffer' and no 'exp_avg'");
  calx_value_free(d);
  end(&adam);
  end(&sgd);
}

static void read_state(const training *t, float out[8 * FEATURES])
{
  calx_tensor *m = calx_optimizer_state(t->opt, 0, "exp_avg");
  CHECK_STATUS_OK(calx_tensor_read(m, out, 8 * FEATURES * sizeof *out));
}

// From a living optimiser: later steps of the one are not the other's, nor are
// they lost in a step that fails.
static void test_from_an_optimiser(void **state)
{
  (void)state;
  training a = begin(make_adamw, 1), b = begin(make_adamw, 2);
  float first[8 * FEATURES], now[8 * FEATURES];
  calx_value *d;
  train(&a, 2);
  read_state(&a, first);
  CHECK_STATUS_OK(calx_optimizer_state_dict(a.opt, &d));
  CHECK_STATUS_OK(calx_optimizer_load_state_dict(b.opt, d));
  calx_value_free(d);
  train(&a, 1);
  read_state(&b, now);
  assert_memory_equal(first, now, sizeof now);
  calx_scope *s = calx_scope_begin();
  calx_backward(calx_sum(calx_forward(b.hidden, calx_ones(CALX_SHAPE(2, 6)))));
  calx_optimizer_step(b.opt);
  calx_reshape(calx_scalar(1), CALX_SHAPE(77));
  calx_sync(NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "77");
  read_state(&b, now);
  assert_memory_equal(first, now, sizeof now);
  assert_int_equal(calx_optimizer_steps(b.opt), 2);
  read_state(&a, first);
  train(&b, 1);
  read_state(&a, now);
  assert_memory_equal(first, now, sizeof now);
  end(&a);
  end(&b);
}

// A checkpoint that PyTorch wrote, of AdamW after one step.
static void test_pytorchs_state(void **state)
{
  (void)state;
  calx_value *v;
  CHECK_STATUS_OK(calx_load(oracle_file("checkpoint_mixed.pt"), &v));
  calx_module *m = calx_module_new("Net", NULL, NULL);
  calx_module *fc = calx_nn_linear(m, "fc", 3, 2);
  calx_optimizer *opt = calx_adamw(m, .lr = 0.5);
  CHECK_STATUS_OK(calx_module_load_state_dict(fc, calx_value_get(v, "model")));
  CHECK_STATUS_OK(
      calx_optimizer_load_state_dict(opt, calx_value_get(v, "optimizer")));
  assert_int_equal(calx_optimizer_steps(opt), 1);
  CHECK_CLOSE(calx_optimizer_lr(opt), 1e-3, 0);
  CHECK_VALUES(calx_optimizer_state(opt, 1, "exp_avg"), 1e-8, 0.1, 0.1);
  CHECK_VALUES(calx_module_find(m, "fc.bias"), 1e-12, 0.36805036664009094,
               -0.3187769949436188);
  calx_value_free(v);
  calx_optimizer_free(opt);
  calx_module_free(m);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_sgd),
    SUPPORT_TEST(test_adam),
    SUPPORT_TEST(test_before_the_first_step),
    SUPPORT_TEST(test_other_run),
    SUPPORT_TEST(test_wrong_state),
    SUPPORT_TEST(test_another_rule),
    SUPPORT_TEST(test_from_an_optimiser),
    SUPPORT_TEST(test_pytorchs_state),
  };
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
