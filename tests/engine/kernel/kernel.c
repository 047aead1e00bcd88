// Kernels: damaged descriptions, forks, several threads, choices, and which of
// oneDNN's convolutions is recognised.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread.h"
#include "case.h"
#include "kernel/gemm.h"
#include "kernel/matmul.h"
#include "kernel/onednn.h"
#include "support/skip.h"

static const cx_hlo_elem f32[3] = { CX_HLO_F32, CX_HLO_F32, CX_HLO_F32 };

static cpu_threads *make_pool(int threads)
{
  cpu_threads *pool;
  assert_null(cpu_threads_new(threads, &pool));
  return pool;
}

// ---- damaged descriptions ---------------------------------------------------

static bool try_kernel(cpu_kernel_desc *desc, cpu_threads *pool)
{
  calx_status *status = NULL;
  const bool made = desc_run_zeros(desc, pool, &status);
  calx_status_free(status);
  return made;
}

static int64_t pick_word(int64_t old)
{
  switch (pick(8)) {
    case 0: return 0;
    case 1: return -1;
    case 2: return INT64_MAX - (int64_t)pick(3);
    case 3: return INT64_MIN + (int64_t)pick(3);
    case 4: return (int64_t)((uint64_t)old << pick(40));
    case 5: return (int64_t)pick(64);
    case 6: return (int64_t)((uint64_t)old + pick(3) - 1);
    default: return (int64_t)((uint64_t)1 << pick(64));
  }
}

static void hostile_descriptions(void **state)
{
  (void)state;
  cpu_threads *pool = make_pool(2);
  size_t made = 0, refused = 0;
  for (int i = 0; i < 200; i++) {
    pick_seed(7000 + (uint64_t)i);
    kernel_case c;
    (i % 2 == 0   ? dot_case
     : i % 8 != 7 ? conv_case
                  : implicit_conv_case)(&c, f32);
    cpu_kernel_desc desc;
    assert_true(cpu_kernel_describe(c.op, &desc));
    desc.words[1] = c.choice;
    for (int k = 0; k < 10; k++) {
      cpu_kernel_desc bad = desc;
      for (unsigned n = 1 + pick(3); n > 0; n--) {
        // Of the words that this kind of description uses.
        unsigned at = 1 + pick(pick(2) ? 20 : CPU_KERNEL_WORDS - 1);
        bad.words[at] = pick_word(bad.words[at]);
      }
      if (try_kernel(&bad, pool)) {
        made++;
      } else {
        refused++;
      }
    }
    // Neighbours whose product is too large.
    for (int at = 1; at + 1 < CPU_KERNEL_WORDS; at++) {
      cpu_kernel_desc bad = desc;
      bad.words[at] = bad.words[at + 1] = (int64_t)1 << 40;
      if (try_kernel(&bad, pool)) {
        made++;
      } else {
        refused++;
      }
    }
    case_free(&c);
  }
  for (int i = 0; i < 200; i++) {
    cpu_kernel_desc bad;
    for (int k = 0; k < CPU_KERNEL_WORDS; k++) bad.words[k] = pick_word(k);
    bad.words[0] = i % 3;
    refused += !try_kernel(&bad, pool);
  }
  print_message("%zu made, %zu refused\n", made, refused);
  assert_true(refused > 500 && made > 50);
  cpu_threads_free(pool);
}

static void types_without_kernels(void **state)
{
  (void)state;
  const int64_t dims[2] = { 2, 2 }, one[1] = { 1 }, zero[1] = { 0 };
  static const cx_hlo_elem none[] = { CX_HLO_F8E5M2, CX_HLO_I4, CX_HLO_UI2,
                                      CX_HLO_F4E2M1FN };
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    const cx_hlo_type t = { none[i], 2, dims }, both[2] = { t, t };
    const cx_hlo_dot_dims d = { .lhs_contract = one,
                                .rhs_contract = zero,
                                .n_contract = 1 };
    cx_hlo_builder *b;
    assert_null(cx_hlo_builder_new("m", "main", both, 2, &b));
    cx_hlo_value *v = cx_hlo_dot_general(b, cx_hlo_param(b, 0),
                                         cx_hlo_param(b, 1), &d, none[i]);
    cx_hlo_module *m;
    assert_null(cx_hlo_builder_finish(b, &v, 1, &m));
    cpu_kernel_desc desc;
    assert_false(
        cpu_kernel_describe(cx_hlo_entry(m)->body.first->first, &desc));
    cx_hlo_module_free(m);
  }
}

// ---- processes and threads --------------------------------------------------

typedef struct runner {
  const cpu_kernel *kernel;
  cpu_threads *pool;
  const void *lhs, *rhs;
  unsigned char *out;
  size_t bytes;
  int times;
  bool same;  // as the first time
} runner;

static void run_often(void *user)
{
  runner *r = user;
  void *scratch = NULL;
  assert_int_equal(
      posix_memalign(&scratch, 64, cpu_kernel_scratch(r->kernel) + 1), 0);
  unsigned char *out = malloc(r->bytes);
  r->same = true;
  for (int i = 0; i < r->times; i++) {
    unsigned char *to = i == 0 ? r->out : out;
    memset(to, 0xee, r->bytes);
    assert_null(kernel_run(r->kernel, r->pool, r->lhs, r->rhs, to, scratch));
    r->same = r->same && memcmp(r->out, to, r->bytes) == 0;
  }
  free(out);
  free(scratch);
}

// A convolution that two threads share: 8 images of (16, 20, 20), 32 filters.
static void large_case(kernel_case *c, int64_t stride)
{
  const int64_t x[4] = { 8, 16, 20, 20 }, w[4] = { 32, 16, 3, 3 };
  const int64_t spatial[2] = { 2, 3 }, strides[2] = { stride, stride };
  memset(c, 0, sizeof *c);
  array_init(&c->lhs, CX_HLO_F32, x, 4);
  array_init(&c->rhs, CX_HLO_F32, w, 4);
  array_fill(&c->lhs);
  array_fill(&c->rhs);
  const cx_hlo_type params[2] = { array_type(&c->lhs), array_type(&c->rhs) };
  const cx_hlo_conv_dims d = { .n_spatial = 2,
                               .input_feature = 1,
                               .input_spatial = spatial,
                               .kernel_input = 1,
                               .kernel_spatial = spatial,
                               .output_feature = 1,
                               .output_spatial = spatial,
                               .strides = strides };
  cx_hlo_builder *b;
  assert_null(cx_hlo_builder_new("m", "main", params, 2, &b));
  case_finish(c, b,
              cx_hlo_convolution(b, cx_hlo_param(b, 0), cx_hlo_param(b, 1), &d),
              CX_HLO_F32);
}

static void init_runner(runner *r, const kernel_case *c,
                        const cpu_kernel *kernel, cpu_threads *pool, int times)
{
  *r = (runner){ .kernel = kernel,
                 .pool = pool,
                 .lhs = c->lhs.data,
                 .rhs = c->rhs.data,
                 .bytes = c->out.n * 4,
                 .times = times };
  r->out = malloc(r->bytes);
}

static void threads_share_a_kernel(void **state)
{
  (void)state;
  kernel_case c;
  large_case(&c, 1);
  cpu_threads *pools[2] = { make_pool(2), make_pool(2) };
  cpu_kernel_desc desc;
  assert_true(cpu_kernel_describe(c.op, &desc));
  cpu_kernel *kernel;
  assert_null(cpu_kernel_new(&desc, pools[0], false, &kernel));
  runner r[3];
  cx_thread threads[2];
  // Two on one pool, one on another.
  for (int i = 0; i < 3; i++) init_runner(&r[i], &c, kernel, pools[i / 2], 20);
  assert_null(cx_thread_start(&threads[0], run_often, &r[1]));
  assert_null(cx_thread_start(&threads[1], run_often, &r[2]));
  run_often(&r[0]);
  cx_thread_join(&threads[0]);
  cx_thread_join(&threads[1]);
  for (int i = 0; i < 3; i++) {
    assert_true(r[i].same);
    assert_memory_equal(r[i].out, r[0].out, r[0].bytes);
    if (i > 0) free(r[i].out);
  }
  free(r[0].out);
  cpu_kernel_free(kernel);
  cpu_threads_free(pools[0]);
  cpu_threads_free(pools[1]);
  case_free(&c);
}

// The thread sanitizer cannot start threads after a fork of a process that has
// several.
#if !defined(__SANITIZE_THREAD__)
static void a_forked_child_runs_kernels(void **state)
{
  (void)state;
  kernel_case c;
  large_case(&c, 2);
  cpu_threads *pool = make_pool(2);
  cpu_kernel_desc desc;
  assert_true(cpu_kernel_describe(c.op, &desc));
  cpu_kernel *kernel;
  assert_null(cpu_kernel_new(&desc, pool, false, &kernel));
  runner r, again;
  init_runner(&r, &c, kernel, pool, 2);
  run_often(&r);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    init_runner(&again, &c, kernel, pool, 3);
    run_often(&again);
    _exit(again.same && memcmp(again.out, r.out, r.bytes) == 0 ? 0 : 1);
  }
  int result;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
  init_runner(&again, &c, kernel, pool, 2);
  run_often(&again);
  assert_memory_equal(again.out, r.out, r.bytes);
  free(again.out);
  free(r.out);
  cpu_kernel_free(kernel);
  cpu_threads_free(pool);
  case_free(&c);
}
#endif

static void pools_of_another_size(void **state)
{
  (void)state;
  kernel_case c;
  large_case(&c, 1);
  cpu_threads *two = make_pool(2), *three = make_pool(3);
  cpu_kernel_desc desc;
  assert_true(cpu_kernel_describe(c.op, &desc));
  cpu_kernel *kernel;
  assert_null(cpu_kernel_new(&desc, two, false, &kernel));
  calx_status *s =
      kernel_run(kernel, three, c.lhs.data, c.rhs.data, c.out.data, NULL);
  assert_int_equal(calx_status_code(s), CALX_INVALID_ARGUMENT);
  calx_status_free(s);
  cpu_kernel_free(kernel);
  cpu_threads_free(two);
  cpu_threads_free(three);
  case_free(&c);
}

// ---- choices ----------------------------------------------------------------

static void choices_are_kept(void **state)
{
  (void)state;
  kernel_case c;
  large_case(&c, 1);
  cpu_threads *pool = make_pool(1);
  cpu_kernel_desc first, second;
  assert_true(cpu_kernel_describe(c.op, &first));
  assert_true(cpu_kernel_describe(c.op, &second));
  assert_memory_equal(&first, &second, sizeof first);
  cpu_kernel *tuned, *stored;
  assert_null(cpu_kernel_new(&first, pool, true, &tuned));
  assert_memory_not_equal(&first, &second, sizeof first);
  second = first;
  assert_null(cpu_kernel_new(&second, pool, true, &stored));
  assert_memory_equal(&first, &second, sizeof first);
  assert_string_equal(cpu_kernel_name(tuned), cpu_kernel_name(stored));
  cpu_kernel_free(tuned);
  cpu_kernel_free(stored);
  cpu_threads_free(pool);
  case_free(&c);
}

// The three convolutions of a layer in training, as the library emits them:
// x (N, C, H, H), w (O, C / groups, K, K).
typedef struct layer {
  int64_t batch, channels, size, filters, taps, stride, padding, groups;
} layer;

static void check_form(const int64_t *lhs, const int64_t *rhs,
                       const cx_hlo_conv_dims *d, bool tune, const char *wanted)
{
  const cx_hlo_type params[2] = { { CX_HLO_F32, 4, lhs },
                                  { CX_HLO_F32, 4, rhs } };
  cx_hlo_builder *b;
  assert_null(cx_hlo_builder_new("m", "main", params, 2, &b));
  cx_hlo_value *v =
      cx_hlo_convolution(b, cx_hlo_param(b, 0), cx_hlo_param(b, 1), d);
  cx_hlo_module *m;
  assert_null(cx_hlo_builder_finish(b, &v, 1, &m));
  cpu_kernel_desc desc;
  assert_true(cpu_kernel_describe(cx_hlo_entry(m)->body.first->first, &desc));
  cpu_threads *pool = make_pool(1);
  cpu_kernel *kernel;
  assert_null(cpu_kernel_new(&desc, pool, tune, &kernel));
  const char *name = cpu_kernel_name(kernel);
  if (strncmp(name, wanted, strlen(wanted)) != 0) fail_msg("%s", name);
  cpu_kernel_free(kernel);
  cpu_threads_free(pool);
  cx_hlo_module_free(m);
}

static void check_layer(const layer *l)
{
  const int64_t size = l->size, K = l->taps, s = l->stride, p = l->padding;
  const int64_t result = (size + 2 * p - K) / s + 1;
  const int64_t dilated = (result - 1) * s + 1;
  const int64_t x[4] = { l->batch, l->channels, size, size };
  const int64_t w[4] = { l->filters, l->channels / l->groups, K, K };
  const int64_t y[4] = { l->batch, l->filters, result, result };
  const int64_t spatial[2] = { 2, 3 }, strides[2] = { s, s };
  int64_t padding[4] = { p, p, p, p };
  cx_hlo_conv_dims d = { .n_spatial = 2,
                         .input_feature = 1,
                         .input_spatial = spatial,
                         .kernel_input = 1,
                         .kernel_spatial = spatial,
                         .output_feature = 1,
                         .output_spatial = spatial,
                         .strides = strides,
                         .padding = padding,
                         .feature_groups = l->groups };
  check_form(x, w, &d, false, "convolution ");
  const int64_t low = K - 1 - p, high = size + K - 1 - low - dilated;
  const int64_t back[4] = { low, high, low, high };
  cx_hlo_conv_dims input = d;
  input.kernel_output = 1;
  input.kernel_input = 0;
  input.strides = NULL;
  input.lhs_dilation = strides;
  input.padding = back;
  // At stride 1 it is a forward convolution too.
  if (l->groups == 1) {
    check_form(y, w, &input, false, s > 1 ? "input gradient " : "convolution ");
  }
  const int64_t end = K - 1 + dilated - size - p;
  const int64_t ends[4] = { p, end, p, end };
  cx_hlo_conv_dims weight = d;
  weight.input_batch = weight.kernel_output = weight.output_batch = 1;
  weight.input_feature = weight.kernel_input = weight.output_feature = 0;
  weight.strides = NULL;
  weight.rhs_dilation = strides;
  weight.padding = ends;
  weight.feature_groups = 1;
  weight.batch_groups = l->groups;
  check_form(x, y, &weight, false, "weight gradient ");
}

static void gradients_are_recognised(void **state)
{
  (void)state;
  if (cpu_kernel_onednn_get() == NULL) skip();
  assert_true(cpu_kernel_onednn_get()->pooled);
  static const layer layers[] = {
    { 4, 1, 28, 10, 5, 1, 0, 1 },   { 4, 10, 12, 20, 5, 1, 0, 1 },
    { 4, 3, 32, 16, 7, 2, 3, 1 },   { 4, 16, 14, 32, 3, 1, 1, 1 },
    { 4, 16, 14, 32, 3, 2, 1, 1 },  { 4, 16, 14, 32, 1, 2, 0, 1 },
    { 4, 32, 14, 32, 3, 1, 1, 32 },
  };
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
    check_layer(&layers[i]);
  }
}

// Channels first and images last are a gradient's order too.
static void images_last_are_forward(void **state)
{
  (void)state;
  if (cpu_kernel_onednn_get() == NULL) skip();
  const int64_t x[4] = { 12, 28, 28, 9 }, w[4] = { 12, 3, 3, 20 };
  const int64_t spatial[2] = { 1, 2 }, padding[4] = { 1, 1, 1, 1 };
  const cx_hlo_conv_dims d = { .n_spatial = 2,
                               .input_batch = 3,
                               .input_spatial = spatial,
                               .kernel_output = 3,
                               .kernel_spatial = spatial,
                               .output_batch = 3,
                               .output_spatial = spatial,
                               .padding = padding };
  check_form(x, w, &d, false, "convolution ");
}

// MNIST's layers run 16 images at a time.
static void few_channels_use_lanes(void **state)
{
  (void)state;
  const int64_t x[4] = { 32, 10, 12, 12 }, w[4] = { 20, 10, 5, 5 };
  const int64_t y[4] = { 32, 20, 8, 8 }, spatial[2] = { 2, 3 };
  cx_hlo_conv_dims d = { .n_spatial = 2,
                         .input_feature = 1,
                         .input_spatial = spatial,
                         .kernel_input = 1,
                         .kernel_spatial = spatial,
                         .output_feature = 1,
                         .output_spatial = spatial };
  for (int tune = 0; tune < 2; tune++) {
    check_form(x, w, &d, tune != 0, "convolution of 16 images at once");
  }
  d.input_batch = d.kernel_output = d.output_batch = 1;
  d.input_feature = d.kernel_input = d.output_feature = 0;
  for (int tune = 0; tune < 2; tune++) {
    check_form(x, y, &d, tune != 0, "weight gradient of 16 images at once");
  }
}

// Channels last, with one tap: large ones are split, or use oneDNN's product,
// others gemm.h.
static void products_are_dots(void **state)
{
  (void)state;
  if (cpu_kernel_onednn_get() == NULL) skip();
  const int64_t x[4] = { 4, 14, 14, 240 }, w[4] = { 1, 1, 240, 192 };
  const int64_t small[4] = { 1, 1, 240, 16 }, spatial[2] = { 1, 2 };
  const int64_t filters[2] = { 0, 1 };
  cx_hlo_conv_dims d = { .n_spatial = 2,
                         .input_feature = 3,
                         .input_spatial = spatial,
                         .kernel_input = 2,
                         .kernel_output = 3,
                         .kernel_spatial = filters,
                         .output_feature = 3,
                         .output_spatial = spatial };
  const char *large = cpu_kernel_has_tiles() ? "split bf16" : "dnnl_sgemm";
  for (int tune = 0; tune < 2; tune++) {
    check_form(x, w, &d, tune != 0, large);
    check_form(x, small, &d, tune != 0, "loops");
  }
  d.input_batch = 3;
  d.input_feature = d.kernel_input = 0;
  d.kernel_spatial = spatial;
  d.output_batch = 2;
  d.output_spatial = filters;
  check_form(x, x, &d, true, large);
}

// A deterministic choice; measuring may decide otherwise.
static void products_of_bf16_are_native(void **state)
{
  (void)state;
#if defined(__x86_64__)
  if (cpu_kernel_onednn_get() == NULL) skip();
  if (!__builtin_cpu_supports("avx512bf16")) SKIP_HERE("AVX512-BF16");
  static const cx_hlo_elem bf16[3] = { CX_HLO_BF16, CX_HLO_BF16, CX_HLO_BF16 };
  cpu_threads *pool = make_pool(2);
  kernel_case c;
  large_dot_case(&c, bf16);
  cpu_kernel_desc desc;
  assert_true(cpu_kernel_describe(c.op, &desc));
  cpu_kernel *kernel;
  assert_null(cpu_kernel_new(&desc, pool, false, &kernel));
  assert_string_equal(cpu_kernel_name(kernel), "bf16 matmul");
  cpu_kernel_free(kernel);
  // The measured choice is kept with the description.
  assert_null(cpu_kernel_new(&desc, pool, true, &kernel));
  cpu_kernel_free(kernel);
  const cpu_kernel_desc chosen = desc;
  assert_true(cpu_kernel_describe(c.op, &desc));
  assert_memory_not_equal(&desc, &chosen, sizeof desc);
  case_free(&c);
  cpu_threads_free(pool);
#else
  skip();
#endif
}

// A convolution with channels last, of `taps` x `taps` taps, whose pixels are
// `hole` apart.
static void check_channels_last(const int64_t x[4], int64_t hole, int64_t taps,
                                int64_t filters_out, const char *wanted)
{
  const int64_t w[4] = { taps, taps, x[3], filters_out }, half = taps / 2;
  const int64_t spatial[2] = { 1, 2 }, filters[2] = { 0, 1 };
  const int64_t padding[4] = { half, half, half, half };
  const int64_t holes[2] = { hole, hole };
  const cx_hlo_conv_dims d = { .n_spatial = 2,
                               .input_feature = 3,
                               .input_spatial = spatial,
                               .kernel_input = 2,
                               .kernel_output = 3,
                               .kernel_spatial = filters,
                               .output_feature = 3,
                               .output_spatial = spatial,
                               .padding = padding,
                               .lhs_dilation = holes };
  check_form(x, w, &d, true, wanted);
}

// Winograd's algorithm of oneDNN needs AVX-512.
static void many_tiles_use_winograd(void **state)
{
  (void)state;
#if defined(__x86_64__)
  if (cpu_kernel_onednn_get() == NULL) skip();
  if (!__builtin_cpu_supports("avx512bw")) SKIP_HERE("AVX-512");
  const int64_t x[4] = { 4, 14, 14, 32 }, small[4] = { 8, 8, 8, 64 };
  check_channels_last(x, 1, 3, 32, "convolution jit_wino");
  check_channels_last(small, 1, 3, 64, "convolution jit_wino");
  if (cpu_kernel_has_tiles()) return;  // then products of bf16 are faster
  // Enough tiles; too few tiles; too many results that are not wanted.
  const int64_t many[4] = { 8, 7, 7, 256 }, few[4] = { 7, 7, 7, 256 };
  const int64_t odd[4] = { 6, 9, 9, 256 };
  check_channels_last(many, 1, 3, 256, "convolution jit_wino");
  check_channels_last(few, 1, 3, 256, "implicit product");
  check_channels_last(odd, 1, 3, 256, "implicit product");
#else
  SKIP_HERE("AVX-512");
#endif
}

// Of few rows by many weights; and large ones of few pixels, without measuring.
// Where the input has holes, the pixels that meet the same taps count.
static void small_images_are_implicit_products(void **state)
{
  (void)state;
  const int64_t few[4] = { 1, 7, 7, 512 }, more[4] = { 4, 7, 7, 1024 };
  check_channels_last(few, 1, 1, 1024, "implicit product");
  check_channels_last(few, 1, 3, 512, "implicit product");
  const bool tiles = cpu_kernel_has_tiles();
  check_channels_last(more, 2, 1, 1024,
                      tiles ? "split implicit product" : "implicit product");
}

// With AMX, where Winograd's algorithm is not possible.
static void strided_images_are_split(void **state)
{
  (void)state;
  if (!cpu_kernel_has_tiles()) SKIP_HERE("AMX");
  const int64_t x[4] = { 8, 14, 14, 256 };
  check_channels_last(x, 2, 3, 128, "split implicit product");
}

// ---- long sums --------------------------------------------------------------

// Sums of many equal products, in all forms of gemm.h.
static void check_long(int64_t m, int64_t n, int64_t k, bool turned)
{
  const double x = (double)0.7f, want = x * x * (double)k;
  float *a = test_malloc((size_t)(m * k) * sizeof *a);
  float *b = test_malloc((size_t)(n * k) * sizeof *b);
  float *c = test_malloc((size_t)(m * n) * sizeof *c);
  for (int64_t i = 0; i < m * k; i++) a[i] = 0.7f;
  for (int64_t i = 0; i < n * k; i++) b[i] = 0.7f;
  const size_t bytes = cpu_kernel_gemm_panels(CPU_KERNEL_F32, m, n, k);
  void *panels = aligned_alloc(64, bytes);
  assert_non_null(panels);
  const cpu_kernel_gemm g = { .m = m,
                              .n = n,
                              .k = k,
                              .a = a,
                              .b = b,
                              .a_row = turned ? 1 : k,
                              .a_column = turned ? m : 1,
                              .b_row = turned ? 1 : n,
                              .b_column = turned ? k : 1,
                              .c = c,
                              .ldc = n };
  cpu_kernel_gemm_run(CPU_KERNEL_F32, &g, panels);
  for (int64_t i = 0; i < m * n; i++) {
    const double off = ((double)c[i] - want) / want;
    if (off < -2e-6 || off > 2e-6) {
      fail_msg("%d x %d x %d, element %d: %g off", (int)m, (int)n, (int)k,
               (int)i, off);
    }
  }
  free(panels);
  test_free(c);
  test_free(b);
  test_free(a);
}

static void long_products(void **state)
{
  (void)state;
  static const int64_t sizes[][3] = { { 1, 1, 1 << 22 }, { 1, 67, 1 << 18 },
                                      { 5, 1, 1 << 20 }, { 1, 5, 1 << 20 },
                                      { 3, 7, 1 << 20 }, { 70, 50, 1 << 16 },
                                      { 9, 9, 1 << 14 } };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    for (int turned = 0; turned < 2; turned++) {
      check_long(sizes[i][0], sizes[i][1], sizes[i][2], turned == 1);
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(hostile_descriptions),
    cmocka_unit_test(types_without_kernels),
    cmocka_unit_test(threads_share_a_kernel),
#if !defined(__SANITIZE_THREAD__)
    cmocka_unit_test(a_forked_child_runs_kernels),
#endif
    cmocka_unit_test(pools_of_another_size),
    cmocka_unit_test(choices_are_kept),
    cmocka_unit_test(gradients_are_recognised),
    cmocka_unit_test(images_last_are_forward),
    cmocka_unit_test(few_channels_use_lanes),
    cmocka_unit_test(products_are_dots),
    cmocka_unit_test(products_of_bf16_are_native),
    cmocka_unit_test(long_products),
    cmocka_unit_test(many_tiles_use_winograd),
    cmocka_unit_test(small_images_are_implicit_products),
    cmocka_unit_test(strided_images_are_split),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
