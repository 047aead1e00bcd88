// ops/composite_stft: transforms of overlapping frames and their inverse,
// composed of public ops.
#include "base/dtype.h"
#include "calx/creation.h"
#include "calx/fft.h"
#include "ops/composite.h"
#include "ops/gather.h"

typedef struct frames {
  const char *op;
  int64_t n_fft, hop, win, count;
  const calx_stft_options *o;
} frames;

// ---- options ----------------------------------------------------------------

static bool sizes_fit(frames *f, calx_tensor **out)
{
  const calx_stft_options *o = f->o;
  f->hop = o->hop_length != 0 ? o->hop_length : f->n_fft / 4;
  f->win = o->win_length != 0 ? o->win_length : f->n_fft;
  if (f->n_fft >= 1 && f->n_fft <= INT32_MAX && f->hop >= 1 &&
      f->hop <= INT32_MAX && f->win >= 1 && f->win <= f->n_fft) {
    return true;
  }
  *out = cx_ops_invalid(
      "%s: n_fft %lld, hop_length %lld, win_length %lld: 1 or more are wanted, "
      "and no window longer than n_fft",
      f->op, (long long)f->n_fft, (long long)f->hop, (long long)f->win);
  return false;
}

// The window of n_fft numbers, zeros on both sides of a shorter one; NULL:
// ones.
static bool window_of(const frames *f, calx_dtype dtype, calx_device *device,
                      calx_tensor **out_window, calx_tensor **out)
{
  calx_tensor *w = f->o->window;
  *out_window = NULL;
  if (w != NULL) {
    if (cx_ops_unfit(f->op, &w, 1, out)) return false;
    const cx_graph_shape *s = cx_lazy_tensor_shape(w);
    if (s->rank != 1 || s->dims[0] != f->win || cx_dtype_is_complex(s->dtype)) {
      *out = cx_ops_invalid("%s: the window is %s, a real [%lld] is wanted",
                            f->op, cx_graph_shape_str(s), (long long)f->win);
      return false;
    }
  } else {
    if (f->win == f->n_fft) return true;
    calx_create_options c = { .size = sizeof c,
                              .dtype = dtype,
                              .device = device };
    w = calx_ones_with(calx_dims_of(&f->win, 1), &c);
  }
  const int64_t left = (f->n_fft - f->win) / 2;
  const int64_t pad[2] = { left, f->n_fft - f->win - left };
  *out_window =
      f->win == f->n_fft ? w : calx_pad_with(w, calx_dims_of(pad, 2), NULL);
  return true;
}

static calx_fft_options fft_options(const frames *f, int64_t n)
{
  return (calx_fft_options){ .size = sizeof(calx_fft_options),
                             .n = n,
                             .norm = f->o->normalized ? CALX_FFT_ORTHO
                                                      : CALX_FFT_BACKWARD };
}

// The index of number i of frame t: t hop + i. Rank 2.
static calx_tensor *indices_of(const frames *f, calx_device *device)
{
  calx_create_options c = { .size = sizeof c,
                            .dtype = CALX_I64,
                            .device = device };
  calx_tensor *t = calx_arange_with(0, (double)f->count, 1, &c);
  calx_tensor *i = calx_arange_with(0, (double)f->n_fft, 1, &c);
  t = calx_mul(t,
               cx_ops_weak_as(cx_ops_number((double)f->hop), CALX_I64, device));
  return cx_ops_plus(calx_unsqueeze(t, 1), i);
}

// ---- stft -------------------------------------------------------------------

static calx_tensor *centered(const frames *f, calx_tensor *x)
{
  const calx_stft_options *o = f->o;
  const int64_t by[2] = { f->n_fft / 2, f->n_fft / 2 };
  calx_pad_options p = { .size = sizeof p };
  if (!o->pad_zeros) p.mode = o->pad_mode != 0 ? o->pad_mode : CALX_PAD_REFLECT;
  // What is not constant is padded along one of three dimensions.
  calx_tensor *y = calx_pad_with(calx_unsqueeze(x, 1), calx_dims_of(by, 2), &p);
  return calx_squeeze(y, 1);
}

// x (B, L) -> (B, frequencies, frames)
static calx_tensor *stft(frames *f, calx_tensor *x)
{
  calx_tensor *window, *bad;
  calx_device *device = calx_tensor_device(x);
  const calx_dtype part = cx_dtype_part(cx_lazy_tensor_shape(x)->dtype);
  if (!window_of(f, part, device, &window, &bad)) return bad;
  if (!f->o->no_center) x = centered(f, x);
  if (cx_lazy_tensor_poisoned(x)) return x;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (s->dims[1] < f->n_fft) {
    return cx_ops_invalid("%s: n_fft is %lld, and there are %lld numbers",
                          f->op, (long long)f->n_fft, (long long)s->dims[1]);
  }
  f->count = 1 + (s->dims[1] - f->n_fft) / f->hop;
  calx_tensor *y = cx_ops_take(x, indices_of(f, device), 1);
  if (window != NULL) y = calx_mul(y, window);
  if (cx_lazy_tensor_poisoned(y)) return y;
  const calx_fft_options o = fft_options(f, 0);
  const bool all =
      f->o->twosided || cx_dtype_is_complex(cx_lazy_tensor_shape(y)->dtype);
  y = all ? calx_fft_with(y, &o) : calx_rfft_with(y, &o);
  return calx_transpose(y, 1, 2);
}

calx_tensor *calx_stft_with(calx_tensor *x, int64_t n_fft,
                            const calx_stft_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("stft");
  calx_tensor *bad;
  if (cx_ops_unfit("stft", &x, 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(stft, o, bad);
  frames f = { .op = "stft", .n_fft = n_fft, .o = o };
  if (!sizes_fit(&f, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  const bool one = s->rank == 1;
  if ((!one && s->rank != 2) || !cx_dtype_is_inexact(s->dtype)) {
    return cx_ops_invalid(
        "stft: x is %s: floating or complex (L) or (B, L) is wanted",
        cx_graph_shape_str(s));
  }
  calx_tensor *y = stft(&f, one ? calx_unsqueeze(x, 0) : x);
  return one && !cx_lazy_tensor_poisoned(y) ? calx_squeeze(y, 0) : y;
}

// ---- istft ------------------------------------------------------------------

// Adds the frames (B, frames, n_fft) where they belong: (B, size).
static calx_tensor *added(const frames *f, calx_tensor *y, int64_t size,
                          calx_device *device)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(y);
  const int64_t flat[2] = { s->dims[0], f->count * f->n_fft };
  const int64_t whole[2] = { s->dims[0], size };
  calx_create_options c = { .size = sizeof c,
                            .dtype = s->dtype,
                            .device = device };
  calx_tensor *index =
      calx_reshape(indices_of(f, device), calx_dims_of(flat + 1, 1));
  return calx_index_add_with(calx_zeros_with(calx_dims_of(whole, 2), &c), 1,
                             index, calx_reshape(y, calx_dims_of(flat, 2)),
                             NULL);
}

// Of x (B, frequencies, frames) the frames (B, frames, n_fft) in time.
static calx_tensor *in_time(const frames *f, calx_tensor *x)
{
  const calx_fft_options o = fft_options(f, f->n_fft);
  x = calx_transpose(x, 1, 2);
  return f->o->return_complex ? calx_ifft_with(x, &o) : calx_irfft_with(x, &o);
}

// Cuts [start, start + length) out, and adds zeros behind if there is less.
static calx_tensor *cut(calx_tensor *x, int64_t start, int64_t length)
{
  const int64_t have = cx_lazy_tensor_shape(x)->dims[1] - start;
  const int64_t by[2] = { 0, length - have };
  x = calx_narrow(x, 1, start, length < have ? length : have);
  return length > have ? calx_pad_with(x, calx_dims_of(by, 2), NULL) : x;
}

static calx_tensor *istft(frames *f, calx_tensor *x)
{
  calx_tensor *window, *bad;
  calx_device *device = calx_tensor_device(x);
  const calx_dtype part = cx_dtype_part(cx_lazy_tensor_shape(x)->dtype);
  if (!window_of(f, part, device, &window, &bad)) return bad;
  const int64_t size = f->n_fft + f->hop * (f->count - 1);
  const int64_t start = f->o->no_center ? 0 : f->n_fft / 2;
  const int64_t length = f->o->length != 0 ? f->o->length : size - 2 * start;
  if (length < 1 || size <= start) {
    return cx_ops_invalid("istft: %lld frames leave no numbers",
                          (long long)f->count);
  }
  const int64_t ones[3] = { 1, f->count, f->n_fft };
  calx_create_options c = { .size = sizeof c, .dtype = part, .device = device };
  calx_tensor *squares = calx_ones_with(calx_dims_of(ones, 3), &c);
  calx_tensor *y = in_time(f, x);
  if (window != NULL) {
    y = calx_mul(y, window);
    squares = calx_expand(calx_square(window), calx_dims_of(ones, 3));
  }
  if (cx_lazy_tensor_poisoned(y) || cx_lazy_tensor_poisoned(squares)) return y;
  y = added(f, y, size, device);
  squares = added(f, squares, size, device);
  if (cx_lazy_tensor_poisoned(y) || cx_lazy_tensor_poisoned(squares)) return y;
  // Divided before zeros are added behind.
  const int64_t there = length < size - start ? length : size - start;
  y = calx_div(cut(y, start, there), cut(squares, start, there));
  return cx_lazy_tensor_poisoned(y) ? y : cut(y, 0, length);
}

static bool is_spectrum(const frames *f, const cx_graph_shape *s)
{
  if ((s->rank != 2 && s->rank != 3) || !cx_dtype_is_complex(s->dtype)) {
    return false;
  }
  const bool all = f->o->twosided || f->o->return_complex;
  const int64_t wanted = all ? f->n_fft : f->n_fft / 2 + 1;
  return s->dims[s->rank - 2] == wanted && s->dims[s->rank - 1] >= 1 &&
         s->dims[s->rank - 1] <= INT32_MAX;
}

calx_tensor *calx_istft_with(calx_tensor *x, int64_t n_fft,
                             const calx_stft_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("istft");
  calx_tensor *bad;
  if (cx_ops_unfit("istft", &x, 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(stft, o, bad);
  frames f = { .op = "istft", .n_fft = n_fft, .o = o };
  if (!sizes_fit(&f, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (!is_spectrum(&f, s) || f.hop > f.win || o->length < 0 ||
      o->length > INT32_MAX) {
    return cx_ops_invalid(
        "istft: x is %s, hop_length %lld, win_length %lld, length %lld: "
        "complex (…, %lld frequencies, frames) is wanted, and frames that "
        "overlap",
        cx_graph_shape_str(s), (long long)f.hop, (long long)f.win,
        (long long)o->length,
        (long long)(o->twosided || o->return_complex ? n_fft : n_fft / 2 + 1));
  }
  f.count = s->dims[s->rank - 1];
  const bool one = s->rank == 2;
  calx_tensor *y = istft(&f, one ? calx_unsqueeze(x, 0) : x);
  return one && !cx_lazy_tensor_poisoned(y) ? calx_squeeze(y, 0) : y;
}
