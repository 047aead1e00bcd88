// Collectives in background: the results have the bits of the plain order,
// steps run beside collectives, and a failure ends all collectives that have
// started. The programs have only products and collectives, so they need no
// jit.
#include "devices.h"

#define T "tensor<1024x1024xf32>"

static void compare(uint32_t n, chain_end end, size_t least)
{
  cx_text text = { 0 };
  chain_text(&text, 6, n, end);
  twins both;
  twins_new(&both, n, &text);
  print_message("%zu overlap, %zu and %zu bytes\n",
                both.beside.info->n_overlapped, both.plain.info->arena_bytes,
                both.beside.info->arena_bytes);
  assert_true(both.beside.info->n_overlapped >= least);
  assert_true(both.beside.info->arena_bytes <=
              both.plain.info->arena_bytes + both.plain.info->arena_bytes / 4);
  const int64_t before = devices_beside();
  devices_run_well(&both.plain);
  assert_int_equal(devices_beside(), before);
  devices_run_well(&both.beside);
  assert_true(devices_beside() > before);
  assert_true(devices_equal(&both.plain, &both.beside));
  for (int i = 0; i < 10; i++) {
    devices_run_well(&both.beside);
    assert_true(devices_equal(&both.plain, &both.beside));
  }
  twins_free(&both);
  cx_text_free(&text);
}

static void same_sums(void **unused)
{
  (void)unused;
  compare(2, CHAIN_SUMS, 4);
  compare(4, CHAIN_SUMS, 4);
}

static void same_shares(void **unused)
{
  (void)unused;
  compare(2, CHAIN_SHARES, 4);
}

static void start(devices *w, cx_text *text)
{
  chain_text(text, 4, 2, CHAIN_SUMS);
  devices_new(w, 2, cx_text_str(text), false);
}

static void end(devices *w, cx_text *text)
{
  devices_free(w);
  cx_text_free(text);
}

// Device 1 starts after device 0 has continued beside the collective.
static void goes_on(void **unused)
{
  (void)unused;
  devices w;
  cx_text text = { 0 };
  start(&w, &text);
  w.d[1].after_beside = devices_beside() + 4;
  devices_run_well(&w);
  end(&w, &text);
}

static void member_fails(void **unused)
{
  (void)unused;
  devices w;
  cx_text text = { 0 };
  start(&w, &text);
  w.d[1].after_beside = devices_beside() + 1;
  w.d[1].dies = "out of luck";
  devices_run(&w);
  calx_status *status = w.d[0].status;
  w.d[0].status = NULL;
  CHECK_STATUS(CALX_ABORTED, status, "replica 1", "out of luck");
  w.d[1].after_beside = 0;
  w.d[1].dies = NULL;
  devices_run_well(&w);
  end(&w, &text);
}

static void member_is_late(void **unused)
{
  (void)unused;
  devices w;
  cx_text text = { 0 };
  start(&w, &text);
  cpu_coll_launch launch = { .coll = w.coll,
                             .devices = devices_numbers,
                             .device_group = w.device_group,
                             .number = ++w.run,
                             .n_replicas = 2,
                             .n_partitions = 1,
                             .timeout_ms = 100 };
  calx_status *status = cpu_run_program_run(w.program, w.d[0].context, &launch,
                                            w.d[0].args, w.d[0].results);
  cpu_coll_end(&launch, status);
  CHECK_STATUS(CALX_DEADLINE_EXCEEDED, status, "all_reduce", "replica 1");
  devices_run_well(&w);
  end(&w, &text);
}

// Each device fails at a different step while a sum is running.
static void step_fails(void **unused)
{
  (void)unused;
  cx_text text = { 0 };
  cx_text_append(&text,
                 "func.func @main(%a: tensor<256x128xf32>, %b: "
                 "tensor<128x128xf32>, %n: tensor<i32>) -> "
                 "(tensor<128x128xf32>, tensor<256x128xf32>) {\n");
  chain_all_reduce(&text, "%s", "%b", "tensor<128x128xf32>", 2);
  cx_text_append(
      &text,
      "%c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
      "(tensor<256x128xf32>, tensor<128x128xf32>) -> tensor<256x128xf32>\n"
      "%d = stablehlo.set_dimension_size %c, %n, dim = 0 : "
      "(tensor<256x128xf32>, tensor<i32>) -> tensor<256x128xf32>\n"
      "return %s, %d : tensor<128x128xf32>, tensor<256x128xf32> }");
  devices w;
  devices_new(&w, 2, cx_text_str(&text), false);
  assert_int_equal(w.info->n_overlapped, 1);
  for (int i = 0; i < 5; i++) {
    w.d[1].after_beside = devices_beside() + 1;
    devices_run(&w);
    for (int k = 0; k < 2; k++) {
      calx_status *status = w.d[k].status;
      w.d[k].status = NULL;
      if (status == NULL) fail_msg("it did not fail");
      assert_non_null(
          strstr(calx_status_message(status), "set_dimension_size"));
      calx_status_free(status);
    }
  }
  // The size that there is.
  w.d[1].after_beside = 0;
  for (int k = 0; k < 2; k++) *(int32_t *)w.d[k].args[2] = 256;
  devices_run_well(&w);
  end(&w, &text);
}

static void put_product(cx_text *out, char to, char of, int i)
{
  cx_text_format(out,
                 "%%%c%d = stablehlo.dot_general %%%c%d, %%b, contracting_dims "
                 "= [1] x [0] : (" T ", " T ") -> " T "\n",
                 to, to == 'g' ? i + 1 : i, of, i);
}

static size_t arena_of(const cx_text *text, bool blocking, size_t *overlapped)
{
  devices w;
  devices_new(&w, 2, cx_text_str(text), blocking);
  const size_t bytes = w.info->arena_bytes;
  *overlapped = w.info->n_overlapped;
  devices_free(&w);
  return bytes;
}

// Sums whose users follow at once in the program. The users are delayed, so
// that products run beside the sums, but not until all sums, of 4 MB each, are
// done.
static void memory_has_a_limit(void **unused)
{
  (void)unused;
  enum { N = 40 };
  cx_text text = { 0 };
  cx_text_append(&text, "func.func @main(%g0: " T ", %b: " T ") -> " T " {\n");
  char s[16], g[16];
  for (int i = 0; i < N; i++) {
    put_product(&text, 'g', 'g', i);
    snprintf(s, sizeof s, "%%s%d", i);
    snprintf(g, sizeof g, "%%g%d", i + 1);
    chain_all_reduce(&text, s, g, T, 2);
    put_product(&text, 'u', 's', i);
    if (i == 0) continue;
    cx_text_format(&text,
                   "%%t%d = stablehlo.dot_general %%%c%d, %%u%d, "
                   "contracting_dims = [1] x [0] : (" T ", " T ") -> " T "\n",
                   i, i == 1 ? 'u' : 't', i - 1, i);
  }
  cx_text_format(&text, "return %%t%d : " T " }", N - 1);
  size_t none = 0, some = 0;
  const size_t plain = arena_of(&text, true, &none);
  const size_t beside = arena_of(&text, false, &some);
  print_message("%zu overlap, %zu and %zu bytes\n", some, plain, beside);
  assert_int_equal(none, 0);
  assert_true(some >= N - 2);
  assert_true(beside <= plain + ((size_t)104 << 20));
  cx_text_free(&text);
}

static void small_ones_in_place(void **unused)
{
  (void)unused;
  cx_text text = { 0 };
  cx_text_append(&text,
                 "func.func @main(%a: tensor<256x128xf32>, %b: "
                 "tensor<128x128xf32>, %n: tensor<64xf32>) -> "
                 "(tensor<64xf32>, tensor<256x128xf32>) {\n");
  chain_all_reduce(&text, "%s", "%n", "tensor<64xf32>", 2);
  cx_text_append(
      &text,
      "%c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
      "(tensor<256x128xf32>, tensor<128x128xf32>) -> tensor<256x128xf32>\n"
      "return %s, %c : tensor<64xf32>, tensor<256x128xf32> }");
  devices w;
  devices_new(&w, 2, cx_text_str(&text), false);
  assert_int_equal(w.info->n_overlapped, 0);
  devices_run_well(&w);
  end(&w, &text);
}

// Nothing runs beside the last one.
static void alone_in_place(void **unused)
{
  (void)unused;
  cx_text text = { 0 };
  chain_text(&text, 1, 2, CHAIN_SUMS);
  devices w;
  devices_new(&w, 2, cx_text_str(&text), false);
  assert_int_equal(w.info->n_overlapped, 0);
  devices_run_well(&w);
  end(&w, &text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(same_sums),
    cmocka_unit_test(same_shares),
    cmocka_unit_test(goes_on),
    cmocka_unit_test(member_fails),
    cmocka_unit_test(member_is_late),
    cmocka_unit_test(step_fails),
    cmocka_unit_test(memory_has_a_limit),
    cmocka_unit_test(small_ones_in_place),
    cmocka_unit_test(alone_in_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
