// The pass that gives images the order of lanes changes most random networks,
// and they compute the same.
#include "cases.h"
#include "network.h"
#include "opt/passes.h"

static void test_networks(void **state)
{
  (void)state;
  size_t n_changed = 0;
  for (unsigned seed = 0; seed < 200; seed++) {
    cx_hlo_module *m = network_new(seed), *original = network_new(seed);
    bool changed = false;
    CHECK_OK(cpu_opt_lanes(m, &changed));
    CHECK_OK(cx_hlo_verify(m));
    n_changed += changed;
    if (changed && !run_equal(original, m)) fail_msg("network %u", seed);
    cx_hlo_module_free(m);
    cx_hlo_module_free(original);
  }
  print_message("%zu networks changed\n", n_changed);
  assert_true(n_changed >= 100);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_networks) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
