/**
 * calx/fft.h: discrete Fourier transforms, of numbers of any length, beside
 * calx/ops.h, whose conventions hold here.
 *
 * The names are torch.fft's with calx_ in front. Integers become f32; f16 and
 * bf16 have no transform, as in PyTorch on the CPU. A transform of n numbers x
 * is X[k] = sum_j x[j] e^(-2 pi i j k / n), its inverse has a plus there and
 * the factor 1/n.
 *
 * @errors  as calx/ops.h says for all ops; also a length below 1, a dimension
 *          that is there twice, a dimension of size 0 without a length
 */
#ifndef CALX_FFT_H
#define CALX_FFT_H

#include "calx/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Where the factor 1/n is, n being how many numbers are transformed. */
typedef enum calx_fft_norm {
  CALX_FFT_BACKWARD = 0, /* in the inverse transform */
  CALX_FFT_ORTHO,        /* 1/sqrt(n) in both */
  CALX_FFT_FORWARD       /* in the forward transform */
} calx_fft_norm;

// ---- one dimension ----------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_fft_options {
  CALX_NAMED size_t size;
  /* numbers to transform: x is cropped or gets zeros; 0 = as many as x has */
  CALX_NAMED int64_t n;
  CALX_NAMED int dim; /* 0 = the last, INT32_MIN = 0 */
  CALX_NAMED calx_fft_norm norm;
} calx_fft_options;
/** The transform. @shape (…, n) -> (…, n) @dtype complex or real; the result is
 *  complex @source torch.fft.fft */
CALX_API calx_tensor *calx_fft_with(calx_tensor *x,
                                    const calx_fft_options *options);
/** The inverse transform. @shape (…, n) -> (…, n) @dtype as calx_fft
 *  @source torch.fft.ifft */
CALX_API calx_tensor *calx_ifft_with(calx_tensor *x,
                                     const calx_fft_options *options);
/** The transform of real numbers: the first half, of which the others are
 *  conjugates. @shape (…, n) -> (…, n/2 + 1) @dtype real; the result is complex
 *  @source torch.fft.rfft */
CALX_API calx_tensor *calx_rfft_with(calx_tensor *x,
                                     const calx_fft_options *options);
/** The inverse of calx_rfft. @param options .n numbers of the result, 0 = twice
 *  as many as x has, less 2 @shape (…, n/2 + 1) -> (…, n) @dtype complex or
 *  real; the result is real @source torch.fft.irfft */
CALX_API calx_tensor *calx_irfft_with(calx_tensor *x,
                                      const calx_fft_options *options);
/** The transform of numbers of which the second half are conjugates.
 *  @shape (…, n/2 + 1) -> (…, n) @dtype as calx_irfft @source torch.fft.hfft */
CALX_API calx_tensor *calx_hfft_with(calx_tensor *x,
                                     const calx_fft_options *options);
/** The inverse of calx_hfft. @shape (…, n) -> (…, n/2 + 1) @dtype as calx_rfft
 *  @source torch.fft.ihfft */
CALX_API calx_tensor *calx_ihfft_with(calx_tensor *x,
                                      const calx_fft_options *options);

// ---- several dimensions -----------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_fftn_options {
  CALX_NAMED size_t size;
  /* numbers to transform along each; none: as many as x has, which -1 means */
  CALX_NAMED calx_dims s;
  /* none: as many of the last as .s has, or all; of the functions of two
   * dimensions the last two */
  CALX_NAMED calx_dims dims;
  CALX_NAMED calx_fft_norm norm;
} calx_fftn_options;
/** calx_fft along several dimensions. @shape x any; the result has its rank
 *  @source torch.fft.fftn */
CALX_API calx_tensor *calx_fftn_with(calx_tensor *x,
                                     const calx_fftn_options *options);
/** calx_ifft along several dimensions. @shape x any; the result has its rank
 *  @source torch.fft.ifftn */
CALX_API calx_tensor *calx_ifftn_with(calx_tensor *x,
                                      const calx_fftn_options *options);
/** calx_rfft along the last of the dimensions, calx_fft along the others.
 *  @shape x rank >= 1 @source torch.fft.rfftn */
CALX_API calx_tensor *calx_rfftn_with(calx_tensor *x,
                                      const calx_fftn_options *options);
/** The inverse of calx_rfftn. @shape x rank >= 1 @source torch.fft.irfftn */
CALX_API calx_tensor *calx_irfftn_with(calx_tensor *x,
                                       const calx_fftn_options *options);
/** calx_fftn along two dimensions. @shape x rank >= 2 @source torch.fft.fft2 */
CALX_API calx_tensor *calx_fft2_with(calx_tensor *x,
                                     const calx_fftn_options *options);
/** calx_ifftn along two dimensions. @shape x rank >= 2
 *  @source torch.fft.ifft2 */
CALX_API calx_tensor *calx_ifft2_with(calx_tensor *x,
                                      const calx_fftn_options *options);
/** calx_rfftn along two dimensions. @shape x rank >= 2
 *  @source torch.fft.rfft2 */
CALX_API calx_tensor *calx_rfft2_with(calx_tensor *x,
                                      const calx_fftn_options *options);
/** calx_irfftn along two dimensions. @shape x rank >= 2
 *  @source torch.fft.irfft2 */
CALX_API calx_tensor *calx_irfft2_with(calx_tensor *x,
                                       const calx_fftn_options *options);
/** calx_hfft along the last of the dimensions, calx_fft along the others.
 *  @shape x rank >= 1 @source torch.fft.hfftn */
CALX_API calx_tensor *calx_hfftn_with(calx_tensor *x,
                                      const calx_fftn_options *options);
/** The inverse of calx_hfftn. @shape x rank >= 1 @source torch.fft.ihfftn */
CALX_API calx_tensor *calx_ihfftn_with(calx_tensor *x,
                                       const calx_fftn_options *options);
/** calx_hfftn along two dimensions. @shape x rank >= 2
 *  @source torch.fft.hfft2 */
CALX_API calx_tensor *calx_hfft2_with(calx_tensor *x,
                                      const calx_fftn_options *options);
/** calx_ihfftn along two dimensions. @shape x rank >= 2
 *  @source torch.fft.ihfft2 */
CALX_API calx_tensor *calx_ihfft2_with(calx_tensor *x,
                                       const calx_fftn_options *options);

// ---- frequencies ------------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_fftfreq_options {
  CALX_NAMED size_t size;
  CALX_NAMED double d;         /* distance of the samples; 0 = 1 */
  CALX_NAMED calx_dtype dtype; /* default: f32 */
  CALX_NAMED calx_device *device;
} calx_fftfreq_options;
/** The frequencies of the numbers of calx_fft: 0, 1, …, -1, over n d.
 *  @shape (n) @dtype floating @source torch.fft.fftfreq */
CALX_API calx_tensor *calx_fftfreq_with(int64_t n,
                                        const calx_fftfreq_options *options);
/** The frequencies of the numbers of calx_rfft: 0, 1, …, n/2, over n d.
 *  @shape (n/2 + 1) @dtype floating @source torch.fft.rfftfreq */
CALX_API calx_tensor *calx_rfftfreq_with(int64_t n,
                                         const calx_fftfreq_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_fftshift_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_dims dims; /* none: all */
} calx_fftshift_options;
/** Moves frequency 0 into the middle. @shape x any
 *  @source torch.fft.fftshift */
CALX_API calx_tensor *calx_fftshift_with(calx_tensor *x,
                                         const calx_fftshift_options *options);
/** The inverse of calx_fftshift. @shape x any @source torch.fft.ifftshift */
CALX_API calx_tensor *calx_ifftshift_with(calx_tensor *x,
                                          const calx_fftshift_options *options);

// ---- short-time transforms --------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_stft_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t hop_length; /* between frames; 0 = n_fft / 4 */
  CALX_NAMED int64_t win_length; /* 0 = n_fft */
  /* NULL: ones; a real (win_length), in the middle of the n_fft numbers */
  CALX_NAMED calx_tensor *window;
  CALX_NAMED bool no_center; /* no padding: frame t begins at t hop_length */
  CALX_NAMED calx_pad_mode pad_mode; /* of x; 0 = CALX_PAD_REFLECT */
  CALX_NAMED bool pad_zeros;         /* zeros in place of .pad_mode */
  CALX_NAMED bool normalized;        /* by 1/sqrt(n_fft) */
  /* of real numbers all n_fft frequencies; of complex ones it is always so */
  CALX_NAMED bool twosided;
  /* of calx_istft: the numbers of the result, 0: as many as the frames cover */
  CALX_NAMED int64_t length;
  CALX_NAMED bool return_complex; /* of calx_istft: the frames were complex */
} calx_stft_options;
/** The transforms of overlapping frames of x times a window.
 *  @shape (L) or (B, L) -> (n_fft/2 + 1, frames) or (B, n_fft/2 + 1, frames)
 *  @dtype complex or real; the result is complex @source torch.stft */
CALX_API calx_tensor *calx_stft_with(calx_tensor *x, int64_t n_fft,
                                     const calx_stft_options *options);
/** The inverse of calx_stft with the same options: overlapping frames are added
 *  and divided by the sum of the windows' squares. Where that sum is 0 the
 *  result is NaN; PyTorch reads the window and fails.
 *  @shape (n_fft/2 + 1, frames) or (B, n_fft/2 + 1, frames) -> (L) or (B, L)
 *  @dtype complex @source torch.istft */
CALX_API calx_tensor *calx_istft_with(calx_tensor *x, int64_t n_fft,
                                      const calx_stft_options *options);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_fft_options_ .dim = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_fft_options, calx_written_dim_(&o->dim);)
#endif
#ifdef __cplusplus
}
#endif

#if !defined(CALX_NO_SITES) && !defined(__cplusplus)
// clang-format off
#define calx_fft(...) CALX_FFT_(__VA_ARGS__, .size = sizeof(calx_fft_options))
#define CALX_FFT_(x, ...) (calx_at_(CALX_HERE), calx_fft_with(CALX_T_(x), CALX_O_(CALX_WRITE_(calx_fft_options, __VA_ARGS__))))
#define calx_ifft(...) CALX_IFFT_(__VA_ARGS__, .size = sizeof(calx_fft_options))
#define CALX_IFFT_(x, ...) (calx_at_(CALX_HERE), calx_ifft_with(CALX_T_(x), CALX_O_(CALX_WRITE_(calx_fft_options, __VA_ARGS__))))
#define calx_rfft(...) CALX_RFFT_(__VA_ARGS__, .size = sizeof(calx_fft_options))
#define CALX_RFFT_(x, ...) (calx_at_(CALX_HERE), calx_rfft_with(CALX_T_(x), CALX_O_(CALX_WRITE_(calx_fft_options, __VA_ARGS__))))
#define calx_irfft(...) CALX_IRFFT_(__VA_ARGS__, .size = sizeof(calx_fft_options))
#define CALX_IRFFT_(x, ...) (calx_at_(CALX_HERE), calx_irfft_with(CALX_T_(x), CALX_O_(CALX_WRITE_(calx_fft_options, __VA_ARGS__))))
#define calx_hfft(...) CALX_HFFT_(__VA_ARGS__, .size = sizeof(calx_fft_options))
#define CALX_HFFT_(x, ...) (calx_at_(CALX_HERE), calx_hfft_with(CALX_T_(x), CALX_O_(CALX_WRITE_(calx_fft_options, __VA_ARGS__))))
#define calx_ihfft(...) CALX_IHFFT_(__VA_ARGS__, .size = sizeof(calx_fft_options))
#define CALX_IHFFT_(x, ...) (calx_at_(CALX_HERE), calx_ihfft_with(CALX_T_(x), CALX_O_(CALX_WRITE_(calx_fft_options, __VA_ARGS__))))
#define calx_fftn(...) CALX_FFTN_(__VA_ARGS__, .size = sizeof(calx_fftn_options))
#define CALX_FFTN_(x, ...) (calx_at_(CALX_HERE), calx_fftn_with(CALX_T_(x), CALX_O_((&(calx_fftn_options){ __VA_ARGS__ }))))
#define calx_ifftn(...) CALX_IFFTN_(__VA_ARGS__, .size = sizeof(calx_fftn_options))
#define CALX_IFFTN_(x, ...) (calx_at_(CALX_HERE), calx_ifftn_with(CALX_T_(x), CALX_O_((&(calx_fftn_options){ __VA_ARGS__ }))))
#define calx_rfftn(...) CALX_RFFTN_(__VA_ARGS__, .size = sizeof(calx_fftn_options))
#define CALX_RFFTN_(x, ...) (calx_at_(CALX_HERE), calx_rfftn_with(CALX_T_(x), CALX_O_((&(calx_fftn_options){ __VA_ARGS__ }))))
#define calx_irfftn(...) CALX_IRFFTN_(__VA_ARGS__, .size = sizeof(calx_fftn_options))
#define CALX_IRFFTN_(x, ...) (calx_at_(CALX_HERE), calx_irfftn_with(CALX_T_(x), CALX_O_((&(calx_fftn_options){ __VA_ARGS__ }))))
#define calx_fft2(...) CALX_FFT2_(__VA_ARGS__, .size = sizeof(calx_fftn_options))
#define CALX_FFT2_(x, ...) (calx_at_(CALX_HERE), calx_fft2_with(CALX_T_(x), CALX_O_((&(calx_fftn_options){ __VA_ARGS__ }))))
#define calx_ifft2(...) CALX_IFFT2_(__VA_ARGS__, .size = sizeof(calx_fftn_options))
#define CALX_IFFT2_(x, ...) (calx_at_(CALX_HERE), calx_ifft2_with(CALX_T_(x), CALX_O_((&(calx_fftn_options){ __VA_ARGS__ }))))
#define calx_rfft2(...) CALX_RFFT2_(__VA_ARGS__, .size = sizeof(calx_fftn_options))
#define CALX_RFFT2_(x, ...) (calx_at_(CALX_HERE), calx_rfft2_with(CALX_T_(x), CALX_O_((&(calx_fftn_options){ __VA_ARGS__ }))))
#define calx_irfft2(...) CALX_IRFFT2_(__VA_ARGS__, .size = sizeof(calx_fftn_options))
#define CALX_IRFFT2_(x, ...) (calx_at_(CALX_HERE), calx_irfft2_with(CALX_T_(x), CALX_O_((&(calx_fftn_options){ __VA_ARGS__ }))))
#define calx_hfftn(...) CALX_HFFTN_(__VA_ARGS__, .size = sizeof(calx_fftn_options))
#define CALX_HFFTN_(x, ...) (calx_at_(CALX_HERE), calx_hfftn_with(CALX_T_(x), CALX_O_((&(calx_fftn_options){ __VA_ARGS__ }))))
#define calx_ihfftn(...) CALX_IHFFTN_(__VA_ARGS__, .size = sizeof(calx_fftn_options))
#define CALX_IHFFTN_(x, ...) (calx_at_(CALX_HERE), calx_ihfftn_with(CALX_T_(x), CALX_O_((&(calx_fftn_options){ __VA_ARGS__ }))))
#define calx_hfft2(...) CALX_HFFT2_(__VA_ARGS__, .size = sizeof(calx_fftn_options))
#define CALX_HFFT2_(x, ...) (calx_at_(CALX_HERE), calx_hfft2_with(CALX_T_(x), CALX_O_((&(calx_fftn_options){ __VA_ARGS__ }))))
#define calx_ihfft2(...) CALX_IHFFT2_(__VA_ARGS__, .size = sizeof(calx_fftn_options))
#define CALX_IHFFT2_(x, ...) (calx_at_(CALX_HERE), calx_ihfft2_with(CALX_T_(x), CALX_O_((&(calx_fftn_options){ __VA_ARGS__ }))))
#define calx_fftshift(...) CALX_FFTSHIFT_(__VA_ARGS__, .size = sizeof(calx_fftshift_options))
#define CALX_FFTSHIFT_(x, ...) (calx_at_(CALX_HERE), calx_fftshift_with(CALX_T_(x), CALX_O_((&(calx_fftshift_options){ __VA_ARGS__ }))))
#define calx_ifftshift(...) CALX_IFFTSHIFT_(__VA_ARGS__, .size = sizeof(calx_fftshift_options))
#define CALX_IFFTSHIFT_(x, ...) (calx_at_(CALX_HERE), calx_ifftshift_with(CALX_T_(x), CALX_O_((&(calx_fftshift_options){ __VA_ARGS__ }))))
#define calx_fftfreq(...) CALX_FFTFREQ_(__VA_ARGS__, .size = sizeof(calx_fftfreq_options))
#define CALX_FFTFREQ_(n, ...) (calx_at_(CALX_HERE), calx_fftfreq_with(n, CALX_O_((&(calx_fftfreq_options){ __VA_ARGS__ }))))
#define calx_rfftfreq(...) CALX_RFFTFREQ_(__VA_ARGS__, .size = sizeof(calx_fftfreq_options))
#define CALX_RFFTFREQ_(n, ...) (calx_at_(CALX_HERE), calx_rfftfreq_with(n, CALX_O_((&(calx_fftfreq_options){ __VA_ARGS__ }))))
#define calx_stft(x, ...) CALX_STFT_(x, __VA_ARGS__, .size = sizeof(calx_stft_options))
#define CALX_STFT_(x, n_fft, ...) (calx_at_(CALX_HERE), calx_stft_with(CALX_T_(x), n_fft, CALX_O_((&(calx_stft_options){ __VA_ARGS__ }))))
#define calx_istft(x, ...) CALX_ISTFT_(x, __VA_ARGS__, .size = sizeof(calx_stft_options))
#define CALX_ISTFT_(x, n_fft, ...) (calx_at_(CALX_HERE), calx_istft_with(CALX_T_(x), n_fft, CALX_O_((&(calx_stft_options){ __VA_ARGS__ }))))
// clang-format on
#endif
#endif
