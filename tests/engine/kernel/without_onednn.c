// Kernels without oneDNN: all of them run in the module's own loops.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "case.h"
#include "kernel/conv.h"
#include "kernel/onednn.h"

// Replaces the C library's function: no file is found.
void *dlopen(const char *file, int mode);
void *dlopen(const char *file, int mode)
{
  (void)file;
  (void)mode;
  return NULL;
}

static const cx_hlo_elem f32[3] = { CX_HLO_F32, CX_HLO_F32, CX_HLO_F32 };

typedef void make_fn(kernel_case *c, const cx_hlo_elem elems[3]);

static void check(make_fn *make, int n, bool tune)
{
  cpu_threads *pool;
  assert_null(cpu_threads_new(2, &pool));
  for (int i = 0; i < n; i++) {
    pick_seed(90000 + (uint64_t)i);
    kernel_case c;
    make(&c, f32);
    assert_int_equal(case_run(&c, pool, tune), 0);
    case_free(&c);
  }
  cpu_threads_free(pool);
}

// Cases for which oneDNN is used if installed: large products, any convolution,
// and those for Winograd's algorithm; also with measured choices.
static void kernels_run_on_loops(void **state)
{
  (void)state;
  assert_null(cpu_kernel_onednn_get());
  for (int tune = 0; tune < 2; tune++) {
    check(large_dot_case, 4, tune != 0);
    check(conv_case, 20, tune != 0);
    check(product_conv_case, 4, tune != 0);
    check(winograd_conv_case, 2, tune != 0);
  }
}

// A choice that was measured with oneDNN.
static void choices_of_other_machines(void **state)
{
  (void)state;
  kernel_case c;
  winograd_conv_case(&c, f32);
  cpu_kernel_desc desc;
  assert_true(cpu_kernel_describe(c.op, &desc));
  desc.words[1] = CPU_KERNEL_CONV_CHOICE_ONEDNN;
  cpu_threads *pool;
  assert_null(cpu_threads_new(1, &pool));
  cpu_kernel *kernel;
  assert_null(cpu_kernel_new(&desc, pool, false, &kernel));
  assert_string_equal(cpu_kernel_name(kernel), "convolution loops");
  cpu_kernel_free(kernel);
  cpu_threads_free(pool);
  case_free(&c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(kernels_run_on_loops),
    cmocka_unit_test(choices_of_other_machines),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
