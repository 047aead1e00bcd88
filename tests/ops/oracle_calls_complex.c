// How functions of complex numbers and Fourier transforms are spelled in calx.
#include <string.h>

#include "oracle.h"

static json_t *attr(const call *c, const char *name)
{
  return json_object_get(c->attrs, name);
}

static int64_t whole(const call *c, const char *name, int64_t otherwise)
{
  json_t *v = attr(c, name);
  return json_is_integer(v) ? json_integer_value(v) : otherwise;
}

static calx_dims list(const call *c, const char *name, int64_t *room)
{
  json_t *item;
  size_t i, n = json_array_size(attr(c, name));
  json_array_foreach(attr(c, name), i, item) room[i] = json_integer_value(item);
  return calx_dims_of(room, n);
}

static calx_fft_norm norm(const call *c)
{
  const char *s = json_string_value(attr(c, "norm"));
  return s == NULL                   ? CALX_FFT_BACKWARD
         : strcmp(s, "ortho") == 0   ? CALX_FFT_ORTHO
         : strcmp(s, "forward") == 0 ? CALX_FFT_FORWARD
                                     : CALX_FFT_BACKWARD;
}

// An option of which dimension 0 must be said, and a length of which -1.
static calx_fft_options one(const call *c)
{
  const int64_t dim = whole(c, "dim", -1), n = whole(c, "n", 0);
  const bool given = json_is_integer(attr(c, "n"));
  return (calx_fft_options){ .size = sizeof(calx_fft_options),
                             .n = given && n == 0 ? -1 : n,
                             .dim = dim == 0 ? INT32_MIN : (int)dim,
                             .norm = norm(c) };
}

static calx_fftn_options several(const call *c)
{
  int64_t room[8], other[8];
  return (calx_fftn_options){ .size = sizeof(calx_fftn_options),
                              .s = list(c, "s", room),
                              .dims = list(c, "dim", other),
                              .norm = norm(c) };
}

static calx_fftfreq_options freq(const call *c)
{
  json_t *d = attr(c, "d");
  return (calx_fftfreq_options){ .size = sizeof(calx_fftfreq_options),
                                 .d = json_is_number(d) ? json_number_value(d)
                                                        : 0 };
}

static calx_fftshift_options shift(const call *c)
{
  int64_t room[8];
  return (calx_fftshift_options){ .size = sizeof(calx_fftshift_options),
                                  .dims = list(c, "dim", room) };
}

#define X c->in[0]
#define Y c->in[1]
#define FROM(options, name)                             \
  static calx_tensor *call_##name(const call *c)        \
  {                                                     \
    const calx_##options##_options o = OF_##options(c); \
    return calx_##name##_with(OPERAND_##options, &o);   \
  }
#define OF_fft one
#define OF_fftn several
#define OF_fftfreq freq
#define OF_fftshift shift
#define OPERAND_fft X
#define OPERAND_fftn X
#define OPERAND_fftfreq whole(c, "n", 0)
#define OPERAND_fftshift X
// clang-format off
#define EACH_TRANSFORM(M) \
  M(fft, fft) M(fft, ifft) M(fft, rfft) M(fft, irfft) M(fft, hfft) \
  M(fft, ihfft) M(fftn, fftn) M(fftn, ifftn) M(fftn, rfftn) M(fftn, irfftn) \
  M(fftn, fft2) M(fftn, ifft2) M(fftn, rfft2) M(fftn, irfft2) \
  M(fftn, hfftn) M(fftn, ihfftn) M(fftn, hfft2) M(fftn, ihfft2) \
  M(fftfreq, fftfreq) M(fftfreq, rfftfreq) M(fftshift, fftshift) \
  M(fftshift, ifftshift)
// clang-format on
EACH_TRANSFORM(FROM)

#define ONE(name)                                \
  static calx_tensor *call_##name(const call *c) \
  {                                              \
    return calx_##name(X);                       \
  }
#define EACH_ONE(M) \
  M(real)           \
  M(imag)           \
  M(view_as_real) M(view_as_complex) M(conj) M(conj_physical) M(angle) M(sgn)
EACH_ONE(ONE)

static calx_tensor *call_complex(const call *c)
{
  return calx_complex(X, Y);
}

static bool flag(const call *c, const char *name, bool otherwise)
{
  json_t *v = attr(c, name);
  return json_is_boolean(v) ? json_is_true(v) : otherwise;
}

static calx_stft_options stft_options(const call *c)
{
  const char *mode = json_string_value(attr(c, "pad_mode"));
  const bool zeros = mode != NULL && strcmp(mode, "constant") == 0;
  const bool edge = mode != NULL && strcmp(mode, "replicate") == 0;
  return (calx_stft_options){ .size = sizeof(calx_stft_options),
                              .hop_length = whole(c, "hop_length", 0),
                              .win_length = whole(c, "win_length", 0),
                              .window = c->n_in > 1 ? Y : NULL,
                              .no_center = !flag(c, "center", true),
                              .pad_mode =
                                  edge ? CALX_PAD_REPLICATE : CALX_PAD_CONSTANT,
                              .pad_zeros = zeros,
                              .normalized = flag(c, "normalized", false),
                              .twosided = !flag(c, "onesided", true),
                              .length = whole(c, "length", 0),
                              .return_complex =
                                  flag(c, "return_complex", false) };
}

static calx_tensor *call_stft(const call *c)
{
  const calx_stft_options o = stft_options(c);
  return calx_stft_with(X, whole(c, "n_fft", 0), &o);
}

static calx_tensor *call_istft(const call *c)
{
  const calx_stft_options o = stft_options(c);
  return calx_istft_with(X, whole(c, "n_fft", 0), &o);
}

static calx_tensor *call_index_copy(const call *c)
{
  return calx_index_copy(X, (int)whole(c, "dim", 0), Y, c->in[2]);
}

static calx_tensor *call_polar(const call *c)
{
  return calx_polar(X, Y);
}

bool oracle_call_complex(call *c)
{
  static const struct {
    const char *name;
    calx_tensor *(*fn)(const call *);
  } table[] = {
#define TRANSFORM(options, name) { #name, call_##name },
#define SINGLE(name) { #name, call_##name },
    EACH_TRANSFORM(TRANSFORM) EACH_ONE(SINGLE){ "complex", call_complex },
    { "polar", call_polar },
    { "index_copy", call_index_copy },
    { "stft", call_stft },
    { "istft", call_istft },
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (strcmp(c->op, table[i].name) != 0) continue;
    c->out[0] = table[i].fn(c);
    return true;
  }
  return false;
}
