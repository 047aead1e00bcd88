// tied: one parameter under two names: the seeds' model with tied weights, its
// losses, its files.
#include "calx/autograd.h"
#include "calx/calx.h"
#include "support/safetensors.h"
#include "support/torch.h"

static safetensors *file;

typedef struct net {
  calx_module *root, *layers[3];
} net;

static calx_tensor *forward(void *self, calx_tensor *x)
{
  const net *m = self;
  for (int i = 0; i < 3; i++) x = calx_forward(m->layers[i], x);
  return x;
}

// Linear 32-10, 10-32, 32-10; the third's weight is the first's.
static void make(net *m)
{
  static const char *const names[] = { "layer_1", "layer_2", "layer_3" };
  m->root = calx_module_new("WeightSharingModule", forward, m);
  for (int i = 0; i < 3; i++) {
    m->layers[i] = calx_nn_linear(m->root, names[i], i == 1 ? 10 : 32,
                                  i == 1 ? 32 : 10, .no_bias = true);
  }
  calx_module_tie(m->root, "layer_3.weight",
                  calx_module_find(m->root, "layer_1.weight"));
  CHECK_STATUS_OK(calx_module_error(m->root));
}

static void check_tied(const net *m)
{
  calx_tensor *first = calx_module_find(m->root, "layer_1.weight");
  assert_non_null(first);
  assert_ptr_equal(calx_module_find(m->root, "layer_3.weight"), first);
  assert_int_equal(calx_module_param_count(m->root), 2 * 320);
}

static calx_tensor *outputs(const net *m)
{
  return calx_forward(m->root, safetensors_tensor(file, "tied/x", CALX_F32));
}

// PyTorch's five losses and weights, f64 rounded to f32.
static void test_training(void **state)
{
  (void)state;
  static const double losses[] = { -0.1408647541053576, -0.20991624519572233,
                                   -0.2791658695836588, -0.34862873109519155,
                                   -0.41832002092313575 };
  net m;
  make(&m);
  calx_scope *s = calx_scope_begin();
  CHECK_STATUS_OK(safetensors_load(file, "tied/init/", m.root));
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_optimizer *opt = calx_sgd(m.root, .lr = 1e-4);
  for (int i = 0; i < 5; i++) {
    s = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    calx_tensor *loss = calx_sum(outputs(&m));
    calx_backward(loss);
    calx_optimizer_step(opt);
    calx_sync(loss);
    CHECK_CLOSE(calx_item(loss), losses[i], 1e-5);
    CHECK_STATUS_OK(calx_scope_end(s));
  }
  s = calx_scope_begin();
  static const char *const names[] = { "layer_1.weight", "layer_2.weight",
                                       "layer_3.weight" };
  for (int i = 0; i < 3; i++) {
    char stored[64];
    snprintf(stored, sizeof stored, "tied/step5/%s", names[i]);
    calx_tensor *wanted = safetensors_tensor(file, stored, CALX_F32);
    calx_tensor *apart = calx_max(
        calx_abs(calx_sub(calx_module_find(m.root, names[i]), wanted)));
    CHECK_CLOSE(calx_item(apart), 0, 1e-6);
  }
  CHECK_STATUS_OK(calx_scope_end(s));
  check_tied(&m);
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

static void visit_count(void *user, const char *path, calx_entry_kind kind,
                        calx_tensor *t)
{
  (void)path;
  (void)kind;
  (void)t;
  ++*(int *)user;
}

// What moves, loads, freezes or replaces values keeps the tie: all of it works
// on tensors, and both names have the same one.
static void test_moves(void **state)
{
  (void)state;
  net m;
  make(&m);
  calx_scope *s = calx_scope_begin();
  calx_tensor *first = calx_module_find(m.root, "layer_1.weight");
  calx_tensor *third = calx_module_find(m.root, "layer_3.weight");
  calx_init_constant(first, 2);
  CHECK_VALUES(calx_max(third), 0, 2);
  calx_sync(NULL);
  check_tied(&m);
  calx_broadcast_master_param(m.root);
  check_tied(&m);
  calx_value *dict;
  CHECK_STATUS_OK(calx_module_state_dict(m.root, &dict));
  assert_int_equal(calx_value_count(dict), 3);
  CHECK_STATUS_OK(calx_module_load_state_dict(m.root, dict));
  calx_value_free(dict);
  check_tied(&m);
  calx_module_requires_grad(m.root, false);
  assert_false(calx_tensor_requires_grad(third));
  calx_module_requires_grad(m.root, true);
  calx_module_train(m.root, false);
  check_tied(&m);
  calx_module_to(m.root, CALX_BF16);
  check_tied(&m);
  assert_int_equal(calx_tensor_dtype(third), CALX_BF16);
  CHECK_VALUES(calx_max(third), 0, 2);
  calx_module_to(m.root, CALX_F32);
  CHECK_STATUS_OK(calx_module_error(m.root));
  check_tied(&m);
  assert_int_equal(calx_tensor_dtype(first), CALX_F32);
  int names = 0, parameters = 0;
  calx_module_visit(m.root, visit_count, &names);
  calx_module_parameters(m.root, visit_count, &parameters);
  assert_int_equal(names, 3);
  assert_int_equal(parameters, 2);
  // The gradient is one too: of both uses.
  calx_backward(calx_sum(outputs(&m)));
  assert_ptr_equal(calx_grad(first), calx_grad(third));
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_module_free(m.root);
}

static void run_python(const char *program, const char *from, const char *to)
{
  char command[2048];
  snprintf(command, sizeof command, "'%s' -c \"%s\" '%s' '%s'", torch_python(),
           program, from, to);
  assert_int_equal(system(command), 0);
}

// PyTorch sees one storage under two names, as in its own file of such a model,
// and what it saves is loaded.
static void test_files(void **state)
{
  (void)state;
  const char *from = file_in_folder("calx.pt"),
             *to = file_in_folder("torch.pt");
  net m;
  make(&m);
  calx_scope *s = calx_scope_begin();
  calx_sync(NULL);
  calx_value *dict;
  CHECK_STATUS_OK(calx_module_state_dict(m.root, &dict));
  CHECK_STATUS_OK(calx_save(dict, from));
  calx_value_free(dict);
  run_python(
      "import sys, torch\n"
      "s = torch.load(sys.argv[1], weights_only=True)\n"
      "a, b = s['layer_1.weight'], s['layer_3.weight']\n"
      "assert a.data_ptr() == b.data_ptr() and len(s) == 3\n"
      "L = torch.nn.Linear\n"
      "m = torch.nn.ModuleDict({'layer_1': L(32, 10, bias=False),\n"
      "    'layer_2': L(10, 32, bias=False), 'layer_3': L(32, 10, bias=False)})\n"
      "m.layer_3.weight = m.layer_1.weight\n"
      "m.load_state_dict(s)\n"
      "torch.nn.init.constant_(m.layer_3.weight, 3.0)\n"
      "torch.save(m.state_dict(), sys.argv[2])\n",
      from, to);
  CHECK_STATUS_OK(calx_load(to, &dict));
  CHECK_STATUS_OK(calx_module_load_state_dict(m.root, dict));
  calx_value_free(dict);
  check_tied(&m);
  CHECK_VALUES(calx_min(calx_module_find(m.root, "layer_1.weight")), 0, 3);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_module_free(m.root);
  files_in_folder(true);
}

// A model's parameter that another model shares outlives it.
static void test_two_models(void **state)
{
  (void)state;
  calx_module *a = calx_nn_linear(NULL, NULL, 2, 2, .no_bias = true);
  calx_module *b = calx_module_new("B", NULL, NULL);
  calx_module_tie(b, "borrowed", calx_module_find(a, "weight"));
  CHECK_STATUS_OK(calx_module_error(b));
  calx_init_eye(calx_module_find(a, "weight"));
  calx_sync(NULL);
  calx_module_free(a);
  CHECK_VALUES(calx_module_find(b, "borrowed"), 0, 1, 0, 0, 1);
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_module_free(b);
}

static int begin(void **state)
{
  file = safetensors_open("oracle/train.safetensors");
  return support_setup(state);
}

static int end(void **state)
{
  safetensors_close(file);
  return files_end(state);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_training),
    SUPPORT_TEST(test_moves),
    SUPPORT_TEST(test_files),
    SUPPORT_TEST(test_two_models),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
