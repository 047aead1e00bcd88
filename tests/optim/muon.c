// muon: 50 steps of Muon in f64 beside PyTorch's; its iteration computes in
// bf16 in both. What is refused.
// ---- the cases --------------------------------------------------------------

#define SCRIPT "muon_torch.py"
#define SECOND "V"
#define CASES(X)                                                               \
  X("Muon", "", muon, .lr = CALX_DEFAULT)                                      \
  X("Muon", "lr=0.02, momentum=0.8, nesterov=False, weight_decay=0.0", muon,   \
    .lr = 0.02, .momentum = 0.8, .no_nesterov = true,                          \
    .weight_decay = CALX_ZERO)                                                 \
  X("Muon", "lr=0.01, adjust_lr_fn='match_rms_adamw', weight_decay=0.3", muon, \
    .lr = 0.01, .adjust_lr_fn = "match_rms_adamw", .weight_decay = 0.3)        \
  X("Muon",                                                                    \
    "lr=0.01, momentum=0.3, adjust_lr_fn='original', ns_steps=2, eps=0.5, "    \
    "ns_coefficients=(2.0, -1.5, 0.5)",                                        \
    muon, .lr = 0.01, .momentum = 0.3, .adjust_lr_fn = "original",             \
    .ns_steps = 2, .eps = 0.5, .ns_coefficients = { 2, -1.5, 0.5 })

#include "torch_net.h"

// ---- W (5, 3), V (2, 5) -----------------------------------------------------

static void put_data(calx_value *dict)
{
  static const char *const names[] = { "W", "V", "x", "y" };
  for (int k = 0; k < 4; k++) {
    calx_tensor *t = calx_host_tensor(data[k], CALX_F64, CALX_SHAPE(32));
    put(dict, names[k], calx_value_tensor(t));
  }
}

static net make_net(void)
{
  net m = { .root = calx_module_new("Net", NULL, NULL) };
  calx_scope *s = calx_scope_begin();
  m.w = calx_module_param(m.root, "W", f64(0, CALX_SHAPE(5, 3)));
  m.b = calx_module_param(m.root, "V", f64(1, CALX_SHAPE(2, 5)));
  CHECK_STATUS_OK(calx_scope_end(s));
  CHECK_STATUS_OK(calx_module_error(m.root));
  return m;
}

// The gradients do not depend on the parameters: a value that is on the border
// of two bf16s, and rounds to the other one, changes no later step.
static calx_tensor *loss_at(const net *m, int step)
{
  calx_tensor *x = f64(2, CALX_SHAPE(5, 3)), *y = f64(3, CALX_SHAPE(2, 5));
  x = calx_add(x, calx_mul(f64(1, CALX_SHAPE(5, 3)), step % 7 - 3));
  y = calx_add(y, calx_mul(f64(0, CALX_SHAPE(2, 5)), step % 5 - 2));
  calx_tensor *loss = calx_sum(calx_mul(m->w, x));
  return calx_add(loss, calx_sum(calx_mul(m->b, y)));
}

// ---- what is refused --------------------------------------------------------

static void check_error(calx_optimizer *opt, const char *piece)
{
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_optimizer_error(opt), piece);
  calx_optimizer_free(opt);
}

static void test_refused(void **state)
{
  (void)state;
  net m = make_net();
  calx_scope *s = calx_scope_begin();
  calx_tensor *b = calx_module_param(m.root, "b", f64(1, CALX_SHAPE(4)));
  CHECK_STATUS_OK(calx_scope_end(s));
  check_error(calx_muon(m.root),
              "Muon only supports 2D parameters whereas we found a parameter "
              "of rank 1, f64[4]");
  calx_tensor *two[2] = { m.w, m.b };
  check_error(
      calx_muon(NULL, .params = two, .n_params = 2, .adjust_lr_fn = "half"),
      "Adjust learning rate function 'half' is not supported");
  check_error(calx_muon(NULL, .params = two, .n_params = 2, .ns_steps = 100),
              "ns_steps 100, a whole number of 1 to 99 is wanted");
  check_error(calx_muon(NULL, .params = two, .n_params = 2, .ns_steps = -1),
              "ns_steps -1");
  check_error(calx_muon(NULL, .params = two, .n_params = 2,
                        .ns_coefficients = { 1, (double)NAN, 2 }),
              "three numbers");
  check_error(calx_muon(NULL, .params = two, .n_params = 2, .lr = -1), "lr -1");
  check_error(calx_muon(NULL, .params = two, .n_params = 2, .momentum = -1),
              "momentum -1");
  calx_optimizer *opt = calx_muon(NULL, .params = two, .n_params = 2);
  CHECK_STATUS_OK(calx_optimizer_error(opt));
  assert_true(calx_optimizer_option(opt, 0, "ns_coefficients[2]") == 2.0315);
  assert_true(isnan(calx_optimizer_option(opt, 0, "ns_coefficients")));
  assert_true(isnan(calx_optimizer_option(opt, 0, "adjust_lr_fn")));
  calx_optimizer_set_option(opt, 0, "ns_steps", 2.5);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "ns_steps 2.5");
  calx_optimizer_add_param_group(opt, NULL, .params = &b, .n_params = 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "2D parameters");
  calx_value *dict;
  CHECK_STATUS_OK(calx_optimizer_state_dict(opt, &dict));
  calx_value *group = calx_value_item(calx_value_get(dict, "param_groups"), 0);
  put(group, "adjust_lr_fn", calx_value_string("third"));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_optimizer_load_state_dict(opt, dict),
               "'adjust_lr_fn' is", "original");
  put(group, "adjust_lr_fn", calx_value_none());
  CHECK_STATUS_OK(calx_optimizer_load_state_dict(opt, dict));
  calx_value_free(dict);
  calx_optimizer_free(opt);
  calx_module_free(m.root);
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_steps),
                                      SUPPORT_TEST(test_refused) };
  make_data();
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
