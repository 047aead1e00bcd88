// order: an optimiser's state is stored by index, in the order of PyTorch's
// module.parameters(): a module's own parameters before its children's. The
// numbers are those of torch.optim.Adam with lr=0.1 on the same model in f64.
#include "calx/io.h"
#include "support/mixed_net.h"

// By PyTorch's index.
static const char *const paths[5] = { "w", "z", "a.weight", "b.v",
                                      "b.c.weight" };

static const double average[5][4] = {
  { 0.11200000049999999, 0.26400000025, 0.41600000016666655, 0.568000000125 },
  { 2.1250000001999996, 4.500000000099999, 6.875000000066665, 9.25000000005 },
  { 0.009000000999999902, 0.028000000499999973, 0.047000000333333306,
    0.06600000024999998 },
  { 1.0560000002499998, 2.272000000125, 3.4880000000833324, 4.704000000062499 },
  { 0.42300000033333324, 0.9360000001666664, 1.449000000111111,
    1.9620000000833329 },
};
static const double square[5][4] = {
  { 0.0007993600040000009, 0.003997440006000005, 0.009754240006666677,
    0.01806976000700002 },
  { 0.25609375004000023, 1.1306250000450009, 2.629843750046669,
    4.753750000047504 },
  { 9.990000000000111e-06, 4.996000100000003e-05, 0.0001299100013333334,
    0.00024984000150000024 },
  { 0.06395904002400007, 0.2891161600280003, 0.678031360029334,
    1.2307046400300012 },
  { 0.010522710012000008, 0.049380840015000045, 0.11738439001600015,
    0.2145333600165002 },
};
static const double after_two[5][4] = {
  { 0.006782038660066311, 0.2017424931546844, 0.400882713400851,
    0.6005682834796978 },
  { 0.3011874197534112, 0.8004122277528912, 1.3002390616702588,
    1.8001664856507407 },
  { -0.06700581338032001, 0.006782046283685367, 0.10296479413987128,
    0.20174249705626712 },
  { 0.20174249217928875, 0.6005682829992528, 1.0003208372851375,
    1.400220071168333 },
  { 0.10296478796253647, 0.4008827129233338, 0.7004787077029836,
    1.0003208373675678 },
};
static const double after_three[5][4] = {
  { -0.06718092250557546, 0.10739496695616155, 0.30354162683829833,
    0.5022200665622658 },
  { 0.20487124963548023, 0.7015862715123163, 1.2009028695730137,
    1.7006233913420683 },
  { -0.0744375606370302, -0.06718091309768519, 0.013288976474289949,
    0.10739497290715544 },
  { 0.10739496546841308, 0.5022200658265079, 0.9012228193419181,
    1.300829320520812 },
  { 0.013288967337284394, 0.30354162610511987, 0.6018543151520757,
    0.9012228194674938 },
};

static void check(calx_tensor *t, const double *wanted)
{
  support_values(t, wanted, 4, 1e-12, __FILE__, __LINE__);
}

static const calx_value *entry(const calx_value *dict, int i)
{
  return calx_value_get_at(calx_value_get(dict, "state"), i);
}

static void test_state_that_is_written(void **state)
{
  (void)state;
  calx_module *m = mixed_net(CALX_F64);
  calx_optimizer *opt = calx_adam(m, .lr = 0.1);
  mixed_step(m, opt);
  mixed_step(m, opt);
  calx_value *dict;
  CHECK_STATUS_OK(calx_optimizer_state_dict(opt, &dict));
  const calx_value *groups = calx_value_get(dict, "param_groups");
  const calx_value *ids = calx_value_get(calx_value_item(groups, 0), "params");
  for (int i = 0; i < 5; i++) {
    assert_int_equal(calx_value_as_int(calx_value_item(ids, (size_t)i)), i);
    const calx_value *own = entry(dict, i);
    check(calx_value_as_tensor(calx_value_get(own, "exp_avg")), average[i]);
    check(calx_value_as_tensor(calx_value_get(own, "exp_avg_sq")), square[i]);
    check(calx_module_find(m, paths[i]), after_two[i]);
  }
  calx_value_free(dict);
  calx_optimizer_free(opt);
  calx_module_free(m);
}

static void put(calx_value *dict, const char *key, calx_value *v)
{
  CHECK_STATUS_OK(calx_value_set(dict, key, v));
}

static calx_value *host(const double *values)
{
  return calx_value_tensor(
      calx_host_tensor(values, CALX_F64, CALX_SHAPE(2, 2)));
}

// What optimizer.state_dict() of PyTorch is after two steps.
static calx_value *pytorch_state(void)
{
  calx_scope *s = calx_scope_begin();
  calx_value *dict = calx_value_container(CALX_KIND_DICT);
  calx_value *states = calx_value_container(CALX_KIND_DICT);
  calx_value *groups = calx_value_container(CALX_KIND_LIST);
  calx_value *group = calx_value_container(CALX_KIND_DICT);
  calx_value *ids = calx_value_container(CALX_KIND_LIST);
  put(dict, "state", states);
  put(dict, "param_groups", groups);
  CHECK_STATUS_OK(calx_value_append(groups, group));
  put(group, "lr", calx_value_float(0.1));
  put(group, "params", ids);
  for (int i = 0; i < 5; i++) {
    calx_value *own = calx_value_container(CALX_KIND_DICT);
    CHECK_STATUS_OK(calx_value_append(ids, calx_value_int(i)));
    CHECK_STATUS_OK(calx_value_set_at(states, i, own));
    put(own, "step", calx_value_float(2));
    put(own, "exp_avg", host(average[i]));
    put(own, "exp_avg_sq", host(square[i]));
  }
  CHECK_STATUS_OK(calx_scope_end(s));
  return dict;
}

static void test_state_that_is_loaded(void **state)
{
  (void)state;
  calx_module *m = mixed_net(CALX_F64);
  calx_scope *s = calx_scope_begin();
  calx_no_grad_begin();
  for (int i = 0; i < 5; i++) {
    calx_assign(calx_module_find(m, paths[i]),
                support_tensor(CALX_F64, CALX_SHAPE(2, 2), after_two[i]));
  }
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_optimizer *opt = calx_adam(m);
  calx_value *dict = pytorch_state();
  CHECK_STATUS_OK(calx_optimizer_load_state_dict(opt, dict));
  mixed_step(m, opt);
  for (int i = 0; i < 5; i++) {
    check(calx_module_find(m, paths[i]), after_three[i]);
  }
  calx_value_free(dict);
  calx_optimizer_free(opt);
  calx_module_free(m);
}

// A model's state dict has PyTorch's order too: a module's parameters, its
// buffers, its children.
static void test_model_state(void **state)
{
  (void)state;
  const char *const wanted[] = {
    "w", "z", "k", "a.weight", "b.v", "b.c.weight"
  };
  calx_module *m = mixed_net(CALX_F64);
  calx_value *dict;
  CHECK_STATUS_OK(calx_module_state_dict(m, &dict));
  assert_int_equal(calx_value_count(dict), 6);
  for (size_t i = 0; i < 6; i++) {
    assert_string_equal(calx_value_key(dict, i), wanted[i]);
  }
  calx_value_free(dict);
  calx_module_free(m);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_state_that_is_written),
    SUPPORT_TEST(test_state_that_is_loaded),
    SUPPORT_TEST(test_model_state),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
