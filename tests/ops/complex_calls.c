// complex_calls: complex tensors on the host and back, what refuses them, and
// gradients beside differences. Values beside PyTorch's: torch_complex.py.
#include <complex.h>
#undef I

#include "calx/calx.h"
#include "support/long.h"
#include "support/support.h"

static calx_tensor *c64(calx_dims shape)
{
  static const float data[200] = { 1, 2, -3, 0.5f, 0.25f, -1, 2, 2 };
  return calx_tensor_from(data, CALX_C64, shape);
}

// ---- host data --------------------------------------------------------------

static void test_host(void **state)
{
  (void)state;
  const float _Complex narrow[2] = { 1 - 2 * _Complex_I, 3 * _Complex_I };
  const double wide[4] = { 1, -2, 0, 3 };  // as C's complex type has them
  float _Complex back[2];
  double _Complex wide_back[2];
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = calx_tensor_from(narrow, CALX_C64, CALX_SHAPE(2));
  calx_tensor *y = calx_tensor_from(wide, CALX_C128, CALX_SHAPE(2));
  CHECK_STATUS_OK(calx_tensor_read(x, back, sizeof back));
  assert_memory_equal(back, narrow, sizeof back);
  CHECK_STATUS_OK(calx_tensor_read(calx_conj(y), wide_back, sizeof wide_back));
  assert_true(creal(wide_back[0]) == 1 && cimag(wide_back[0]) == 2);
  assert_true(creal(wide_back[1]) == 0 && cimag(wide_back[1]) == -3);
  CHECK_STATUS_OK(calx_tensor_read(calx_mul(x, 2.5), back, sizeof back));
  assert_true(crealf(back[0]) == 2.5f && cimagf(back[0]) == -5);
  assert_int_equal(calx_tensor_dtype(calx_abs(y)), CALX_F64);
  assert_true(calx_item(calx_sum(calx_imag(x))) == 1);
  CHECK_STATUS_OK(calx_scope_end(s));
}

// An update of a durable tensor, which the engine may make in place.
static void test_update(void **state)
{
  (void)state;
  const float _Complex start = _Complex_I;
  float _Complex back;
  calx_tensor *z = calx_retain(calx_tensor_from(&start, CALX_C64, CALX_SCALAR));
  for (int i = 0; i < 3; i++) {
    calx_scope *s = calx_scope_begin();
    calx_mul_(z, calx_tensor_from(&start, CALX_C64, CALX_SCALAR));
    calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(s));
  }
  CHECK_STATUS_OK(calx_tensor_read(z, &back, sizeof back));
  assert_true(crealf(back) == 1 && cimagf(back) == 0);
  calx_release(z);
}

// ---- what is refused --------------------------------------------------------

#define REFUSES(call, words)                                        \
  do {                                                              \
    calx_scope *s_ = calx_scope_begin();                            \
    (void)(call);                                                   \
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s_), words); \
  } while (0)
#define X c64(CALX_SHAPE(2, 3))
#define REAL(name) REFUSES(calx_##name(X), #name ": c64[")

static void test_functions(void **state)
{
  (void)state;
  REAL(floor);
  REAL(sign);
  REAL(relu);
  REAL(erf);
  REAL(amax);
  REAL(silu);
  REAL(isposinf);
  REAL(nan_to_num);
  REAL(nansum);
  REFUSES(calx_gelu(X), "gelu: c64[");
  REFUSES(calx_lt(X, 1), "lt: c64[");
  REFUSES(calx_maximum(X, X), "maximum: c64[");
  REFUSES(calx_clamp_min(X, 0), "clamp_min: c64[");
  REFUSES(calx_sort(X), "sort: c64[");
  REFUSES(calx_mse_loss(X, X), "mse_loss: c64[");
  REFUSES(calx_normalize(X), "normalize: c64[");
  REFUSES(calx_cosine_similarity(X, X), "cosine_similarity: c64[2,3] is");
  REFUSES(calx_dropout(X, .p = 0.5), "dropout: ");
  REFUSES(calx_softmax(X, 1), "softmax: c64[2,3] is not floating");
  REFUSES(calx_log_softmax(X, 1), "log_softmax: c64[2,3] is not floating");
  REFUSES(calx_bitwise_and(X, X), "bitwise_and: c64[2,3] has no bits");
  REFUSES(calx_atan2(X, X), "atan2: c64[");
  REFUSES(calx_div(X, 2, .rounding = CALX_ROUND_FLOOR), "div_rounded: c64");
  REFUSES(calx_cholesky(c64(CALX_SHAPE(2, 2))), "cholesky: c64[2,2]");
  REFUSES(calx_arange(0, 3, 1, .dtype = CALX_C64), "arange: c64[3] is complex");
  REFUSES(calx_conv1d(X, X), "conv1d: ");
}

static void test_conversions(void **state)
{
  (void)state;
  REFUSES(calx_to_dtype(X, CALX_F32),
          "to_dtype: c64[2,3] as f32 would lose its imaginary part");
  REFUSES(calx_to_dtype(X, CALX_I64), "as i64 would lose its imaginary part");
  REFUSES(calx_item(calx_sum(X)), "item: c64[] is complex");
  REFUSES(calx_item_int(calx_sum(X)), "item_int: c64[] is complex");
  REFUSES(calx_imag(calx_real(X)), "imag: f32[2,3] has no imaginary part");
  REFUSES(calx_complex(calx_real(X), X),
          "complex: f32[2,3] and c64[2,3]: both");
  REFUSES(calx_view_as_real(calx_real(X)), "view_as_real: f32[2,3], a complex");
  REFUSES(calx_view_as_complex(calx_real(X)),
          "view_as_complex: f32[2,3], f32 ");
  REFUSES(calx_conj(NULL), "conj: operand 0 is NULL");
  REFUSES(calx_polar(NULL, NULL), "polar: operand 0 is NULL");
  calx_scope *s = calx_scope_begin();
  calx_tensor *real = calx_zeros(CALX_SHAPE(2, 3));
  calx_assign(real, X);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "imaginary part");
  s = calx_scope_begin();
  calx_tensor *x = X;
  calx_requires_grad(x, true);
  calx_backward(calx_sum(calx_square(x)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s),
               "only for real outputs, got c64[]");
  s = calx_scope_begin();
  x = X;
  calx_requires_grad(x, true);
  calx_optimizer *opt = calx_adafactor(NULL, .params = &x, .n_params = 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_optimizer_error(opt),
               "c64[2,3], and adafactor takes real ones");
  calx_optimizer_free(opt);
  CHECK_STATUS_OK(calx_scope_end(s));
}

static void test_transforms(void **state)
{
  (void)state;
  calx_dims nine = { .count = 9 };
#define R calx_real(X)
  REFUSES(calx_fft(NULL), "fft: operand 0 is NULL");
  REFUSES(calx_rfft(X), "rfft: c64[2,3] is complex, real numbers are wanted");
  REFUSES(calx_fft(X, .n = -5), "fft: -5 numbers along dim 1 of c64[2,3]");
  REFUSES(calx_fft(X, .n = INT64_MAX), "fft: 9223372036854775807 numbers");
  REFUSES(calx_fft(X, .dim = 2), "fft: dim 2 is out of range");
  REFUSES(calx_fft(X, .norm = 7), "fft: .norm is 7, no calx_fft_norm");
  REFUSES(calx_fft(calx_sum(R)), "fft: dim -1 is out of range");
  REFUSES(calx_irfft(c64(CALX_SHAPE(1))), "irfft: 0 numbers along dim 0");
  REFUSES(calx_fft(calx_to_dtype(R, CALX_BF16)), "fft: bf16[2,3] has no");
  REFUSES(calx_fftn(X, .dims = CALX_DIMS(0, -2)),
          "dim -2 of c64[2,3] is given");
  REFUSES(calx_fftn(X, .s = CALX_DIMS(2, 2, 2)), "fftn: c64[2,3] has 2 dimens");
  REFUSES(calx_fftn(X, .s = CALX_DIMS(2), .dims = CALX_DIMS(0, 1)),
          "fftn: 1 lengths and 2 dimensions");
  REFUSES(calx_fftn(X, .dims = nine), "fftn: 0 lengths and 9 dimensions");
  REFUSES(calx_fftshift(X, .dims = nine), "fftshift: 9 dimensions");
  REFUSES(calx_fft2(c64(CALX_SHAPE(3))), "fft2: c64[3] has 1 dimensions, 2");
  REFUSES(calx_fftfreq(0), "fftfreq: n is 0");
  REFUSES(calx_rfftfreq(4, .d = (double)NAN), "rfftfreq: n is 4, .d nan");
  REFUSES(calx_fftfreq(4, .dtype = CALX_I64), "fftfreq: n is 4");
  REFUSES(calx_stft(R, 0), "stft: n_fft 0, hop_length 0");
  REFUSES(calx_stft(R, 2, .hop_length = 1, .window = R), "the window is f32");
  REFUSES(calx_stft(R, 2, .hop_length = 1, .window = c64(CALX_SHAPE(2))),
          "stft: the window is c64[2], a real [2] is wanted");
  REFUSES(calx_stft(R, 16), "stft: ");
  REFUSES(calx_istft(X, 4, .hop_length = INT64_MAX), "istft: n_fft 4, hop");
  REFUSES(calx_istft(R, 2, .hop_length = 1), "istft: x is f32[2,3]");
  REFUSES(calx_istft(X, 2, .hop_length = 1, .length = INT64_MAX), "istft: ");
}

// ---- gradients beside differences -------------------------------------------

typedef calx_tensor *complex_fn(calx_tensor *z);

// clang-format off
#define EACH(M) \
  M(calx_exp(z)) M(calx_log(z)) M(calx_sqrt(z)) M(calx_tanh(z)) \
  M(calx_sin(z)) M(calx_acosh(z)) M(calx_reciprocal(z)) M(calx_abs(z)) \
  M(calx_angle(z)) M(calx_sgn(z)) M(calx_conj(z)) \
  M(calx_mul(z, calx_conj(z))) M(calx_pow(z, 3)) M(calx_pow(z, z)) \
  M(calx_div(z, calx_add(z, 2))) M(calx_matmul(z, calx_transpose(z, 0, 1))) \
  M(calx_cumprod(z, 1)) M(calx_prod(z)) M(calx_mul(z, calx_real(z))) \
  M(calx_norm(z)) M(calx_polar(calx_abs(z), calx_imag(z))) M(calx_fft(z)) \
  M(calx_ifft(z)) \
  M(calx_fft(z, .n = 5, .dim = INT32_MIN, .norm = CALX_FFT_ORTHO)) \
  M(calx_rfft(calx_real(z), .n = 5)) M(calx_rfft(calx_imag(z), .n = 6)) \
  M(calx_irfft(z)) M(calx_irfft(z, .n = 5)) M(calx_irfft(z, .n = 8)) \
  M(calx_hfft(z)) M(calx_ihfft(calx_real(z))) M(calx_fft2(z)) \
  M(calx_irfft2(z, .s = CALX_DIMS(3, 4))) M(calx_rfftn(calx_imag(z))) \
  M(calx_fftshift(z)) \
  M(calx_stft(calx_reshape(calx_view_as_real(z), CALX_SHAPE(12)), 4, .hop_length = 2)) \
  M(calx_istft(z, 4, .hop_length = 2))
// clang-format on

static calx_tensor *function(int which, calx_tensor *z)
{
  int n = 0;
#define CASE(call) \
  if (which == n++) return (call);
  EACH(CASE)
  return NULL;
}
#define COUNT(call) +1
enum { FUNCTIONS = 0 EACH(COUNT) };

// Of two real tensors the parts of a function of the complex one.
static void parts(void *user, calx_tensor *const *in, calx_tensor **out)
{
  calx_tensor *y = function(*(int *)user, calx_complex(in[0], in[1]));
  const bool is_complex = calx_tensor_dtype(y) == CALX_C128;
  out[0] = is_complex ? calx_view_as_real(y) : y;
}

static void test_gradients(void **state)
{
  (void)state;
  static const double re[] = { 0.7, -1.2, 0.4, 1.5, 0.3, -0.8 };
  static const double im[] = { 0.5, 0.9, -1.1, 0.2, -0.6, 1.3 };
  const int stride = (int)all_or_sample(1, 4);
  for (int i = 0; i < FUNCTIONS; i += stride) {
    calx_scope *s = calx_scope_begin();
    calx_tensor *in[2] = {
      calx_tensor_from(re, CALX_F64, CALX_SHAPE(3, 2)),
      calx_tensor_from(im, CALX_F64, CALX_SHAPE(3, 2)),
    };
    for (int k = 0; k < 2; k++) calx_requires_grad(in[k], true);
    calx_status *status = calx_gradcheck(parts, &i, in, 2, 1);
    if (status != NULL) {
      print_error("function %d: %s\n", i, calx_status_message(status));
    }
    CHECK_STATUS_OK(status);
    // Of the transforms and some of the others second derivatives, too.
    if (i % 3 == 0) {
      CHECK_STATUS_OK(calx_gradgradcheck(parts, &i, in, 2, 1));
    }
    CHECK_STATUS_OK(calx_scope_end(s));
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_host),       SUPPORT_TEST(test_update),
    SUPPORT_TEST(test_functions),  SUPPORT_TEST(test_conversions),
    SUPPORT_TEST(test_transforms), SUPPORT_TEST(test_gradients),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
