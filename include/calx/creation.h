/**
 * calx/creation.h: tensors of numbers in order, of random numbers and of the
 * sizes of others, beside calx/ops.h, whose conventions hold here. The numbers
 * of random tensors come from the default stream (calx_manual_seed).
 *
 * @errors  as calx/ops.h says for all ops; also what no integer .dtype holds
 */
#ifndef CALX_CREATION_H
#define CALX_CREATION_H

#include "calx/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- numbers in order -------------------------------------------------------

/** `steps` numbers from start to end, both included. @shape (steps)
 *  @source torch.linspace */
CALX_API calx_tensor *calx_linspace_with(double start, double end,
                                         int64_t steps,
                                         const calx_create_options *options);
/** base^calx_linspace(start, end, steps); PyTorch's default base is 10.
 *  @shape (steps) @source torch.logspace */
CALX_API calx_tensor *calx_logspace_with(double start, double end,
                                         int64_t steps, double base,
                                         const calx_create_options *options);
/** 1 on the diagonal, else 0. @shape (n, m) @source torch.eye */
CALX_API calx_tensor *calx_eye_with(int64_t n, int64_t m,
                                    const calx_create_options *options);
/** Rows and columns of the elements on and below a diagonal, in order; 1: the
 *  diagonal above the main one. @shape (2, elements) @dtype default: i64
 *  @source torch.tril_indices */
CALX_API calx_tensor *calx_tril_indices_with(
    int64_t rows, int64_t columns, int64_t offset,
    const calx_create_options *options);
/** The same of those on and above it. @shape (2, elements) @dtype default: i64
 *  @source torch.triu_indices */
CALX_API calx_tensor *calx_triu_indices_with(
    int64_t rows, int64_t columns, int64_t offset,
    const calx_create_options *options);
/** Which operand of calx_meshgrid lies along the first dimension. */
typedef enum calx_meshgrid_indexing {
  CALX_INDEXING_IJ = 0, /* the first */
  CALX_INDEXING_XY      /* the second */
} calx_meshgrid_indexing;
/** Vectors, each expanded along the dimensions of the others.
 *  @param out  as many as `count` @shape each rank 0 or 1
 *  @source torch.meshgrid */
CALX_API void calx_meshgrid(calx_tensor *const *tensors, size_t count,
                            calx_meshgrid_indexing indexing, calx_tensor **out);

// ---- the sizes of another tensor --------------------------------------------
// Type and device are the other's by default too.

/** All 0. @shape as x @source torch.zeros_like */
CALX_API calx_tensor *calx_zeros_like_with(calx_tensor *x,
                                           const calx_create_options *options);
/** All 1. @shape as x @source torch.ones_like */
CALX_API calx_tensor *calx_ones_like_with(calx_tensor *x,
                                          const calx_create_options *options);
/** calx_zeros_like: no memory is left undefined here. @shape as x
 *  @source torch.empty_like */
CALX_API calx_tensor *calx_empty_like_with(calx_tensor *x,
                                           const calx_create_options *options);
/** All `value`. @shape as x @source torch.full_like */
CALX_API calx_tensor *calx_full_like_with(calx_tensor *x, double value,
                                          const calx_create_options *options);
/** As calx_rand. @shape as x @dtype floating @source torch.rand_like */
CALX_API calx_tensor *calx_rand_like_with(calx_tensor *x,
                                          const calx_create_options *options);
/** As calx_randn. @shape as x @dtype floating @source torch.randn_like */
CALX_API calx_tensor *calx_randn_like_with(calx_tensor *x,
                                           const calx_create_options *options);

// ---- random numbers ---------------------------------------------------------

/** Integers of [low, high), each as likely. @shape shape @dtype default: i64
 *  @errors also high - low above 2^53, or high not above low
 *  @source torch.randint */
CALX_API calx_tensor *calx_randint_with(int64_t low, int64_t high,
                                        calx_dims shape,
                                        const calx_create_options *options);
/** 0 … n - 1 in random order. @shape (n) @dtype default: i64
 *  @source torch.randperm */
CALX_API calx_tensor *calx_randperm_with(int64_t n,
                                         const calx_create_options *options);
/** Normal, of this mean and standard deviation: numbers, or tensors that
 *  broadcast to the shape. @shape shape @grad mean, std @source torch.normal */
CALX_API calx_tensor *calx_normal_with(calx_tensor *mean, calx_tensor *std,
                                       calx_dims shape,
                                       const calx_create_options *options);
/** 1 with the probability x, else 0. @shape x any @dtype floating; result as x
 *  @grad none @source torch.bernoulli */
CALX_API calx_tensor *calx_bernoulli(calx_tensor *x);
/** Numbers of events, drawn from Poisson's distribution, of which x are the
 *  means. Below 10 by the inverse of the distribution, from there on by W.
 *  Hormann's transformed rejection (1993). NaN of negative means.
 *  @shape x any @dtype floating; result as x @grad none
 *  @source torch.poisson */
CALX_API calx_tensor *calx_poisson(calx_tensor *x);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_multinomial_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool replacement; /* an index may be drawn again */
} calx_multinomial_options;
/** Indices drawn with probabilities that x's rows are proportional to. Without
 *  .replacement an index of weight 0 comes only behind all others, where
 *  PyTorch raises. @shape x (n) or (k, n) -> (num_samples) or (k, num_samples)
 *  @dtype x floating; result i64 @grad none @source torch.multinomial */
CALX_API calx_tensor *calx_multinomial_with(
    calx_tensor *x, int64_t num_samples,
    const calx_multinomial_options *options);
/** Cauchy's distribution. @param sigma  above 0 @shape shape @dtype floating
 *  @source torch.Tensor.cauchy_ */
CALX_API calx_tensor *calx_cauchy_with(double median, double sigma,
                                       calx_dims shape,
                                       const calx_create_options *options);
/** Exponential, of this rate. @param lambd  above 0 @shape shape
 *  @dtype floating @source torch.Tensor.exponential_ */
CALX_API calx_tensor *calx_exponential_with(double lambd, calx_dims shape,
                                            const calx_create_options *options);
/** How many trials of probability p it takes to the first success.
 *  @param p  in (0, 1) @shape shape @dtype floating
 *  @source torch.Tensor.geometric_ */
CALX_API calx_tensor *calx_geometric_with(double p, calx_dims shape,
                                          const calx_create_options *options);
/** e to the power of normal numbers of this mean and standard deviation.
 *  @param std  above 0 @shape shape @dtype floating
 *  @source torch.Tensor.log_normal_ */
CALX_API calx_tensor *calx_log_normal_with(double mean, double std,
                                           calx_dims shape,
                                           const calx_create_options *options);
/** calx_randint of x's sizes, type and device. @shape as x
 *  @source torch.randint_like */
CALX_API calx_tensor *calx_randint_like_with(
    calx_tensor *x, int64_t low, int64_t high,
    const calx_create_options *options);

// ---- windows ----------------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_window_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_dtype dtype;    /* floating; default: f32 */
  CALX_NAMED calx_device *device; /* NULL: the current device */
  CALX_NAMED bool requires_grad;
  CALX_NAMED bool symmetric; /* PyTorch's periodic = false */
  CALX_NAMED double alpha;   /* Hamming: 0 = 0.54, CALX_ZERO = 0 */
  /* Hamming: 0 = 0.46; Kaiser: 0 = 12; CALX_ZERO = 0 */
  CALX_NAMED double beta;
} calx_window_options;
/** 1 - |2 k / n - 1|, for k from 0 to n - 1; symmetric: of n - 1 for n, here
 *  and below. @shape (n) @source torch.bartlett_window */
CALX_API calx_tensor *calx_bartlett_window_with(
    int64_t n, const calx_window_options *options);
/** 0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n). @shape (n)
 *  @source torch.blackman_window */
CALX_API calx_tensor *calx_blackman_window_with(
    int64_t n, const calx_window_options *options);
/** alpha - beta cos(2 pi k / n). @shape (n) @source torch.hamming_window */
CALX_API calx_tensor *calx_hamming_window_with(
    int64_t n, const calx_window_options *options);
/** 0.5 - 0.5 cos(2 pi k / n). @shape (n) @source torch.hann_window */
CALX_API calx_tensor *calx_hann_window_with(int64_t n,
                                            const calx_window_options *options);
/** I0(beta sqrt(1 - (2 k / n - 1)^2)) / I0(beta). @shape (n)
 *  @source torch.kaiser_window */
CALX_API calx_tensor *calx_kaiser_window_with(
    int64_t n, const calx_window_options *options);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_window_options_ \
  .alpha = CALX_UNWRITTEN_, .beta = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_window_options, calx_written_(&o->alpha);
              calx_written_(&o->beta);)
#endif
#ifdef __cplusplus
}
#endif

#if !defined(CALX_NO_SITES) && !defined(__cplusplus)
// clang-format off
#define calx_linspace(start, end, ...) CALX_LINSPACE_(start, end, __VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_LINSPACE_(start, end, steps, ...) (calx_at_(CALX_HERE), calx_linspace_with(start, end, steps, CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_logspace(start, end, steps, ...) CALX_LOGSPACE_(start, end, steps, __VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_LOGSPACE_(start, end, steps, base, ...) (calx_at_(CALX_HERE), calx_logspace_with(start, end, steps, base, CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_eye(n, ...) CALX_EYE_(n, __VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_EYE_(n, m, ...) (calx_at_(CALX_HERE), calx_eye_with(n, m, CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_tril_indices(rows, columns, ...) CALX_TRIL_INDICES_(rows, columns, __VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_TRIL_INDICES_(rows, columns, offset, ...) (calx_at_(CALX_HERE), calx_tril_indices_with(rows, columns, offset, CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_triu_indices(rows, columns, ...) CALX_TRIU_INDICES_(rows, columns, __VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_TRIU_INDICES_(rows, columns, offset, ...) (calx_at_(CALX_HERE), calx_triu_indices_with(rows, columns, offset, CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_zeros_like(...) CALX_ZEROS_LIKE_(__VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_ZEROS_LIKE_(x, ...) (calx_at_(CALX_HERE), calx_zeros_like_with(CALX_T_(x), CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_ones_like(...) CALX_ONES_LIKE_(__VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_ONES_LIKE_(x, ...) (calx_at_(CALX_HERE), calx_ones_like_with(CALX_T_(x), CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_empty_like(...) CALX_EMPTY_LIKE_(__VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_EMPTY_LIKE_(x, ...) (calx_at_(CALX_HERE), calx_empty_like_with(CALX_T_(x), CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_rand_like(...) CALX_RAND_LIKE_(__VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_RAND_LIKE_(x, ...) (calx_at_(CALX_HERE), calx_rand_like_with(CALX_T_(x), CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_randn_like(...) CALX_RANDN_LIKE_(__VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_RANDN_LIKE_(x, ...) (calx_at_(CALX_HERE), calx_randn_like_with(CALX_T_(x), CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_full_like(x, ...) CALX_FULL_LIKE_(x, __VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_FULL_LIKE_(x, value, ...) (calx_at_(CALX_HERE), calx_full_like_with(CALX_T_(x), value, CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_randint(low, high, ...) CALX_RANDINT_(low, high, __VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_RANDINT_(low, high, shape, ...) (calx_at_(CALX_HERE), calx_randint_with(low, high, shape, CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_randperm(...) CALX_RANDPERM_(__VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_RANDPERM_(n, ...) (calx_at_(CALX_HERE), calx_randperm_with(n, CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_normal(mean, std, ...) CALX_NORMAL_(mean, std, __VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_NORMAL_(mean, std, shape, ...) (calx_at_(CALX_HERE), calx_normal_with(CALX_N_(mean), CALX_N_(std), shape, CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_bernoulli(x) (calx_at_(CALX_HERE), calx_bernoulli(CALX_T_(x)))
#define calx_poisson(x) (calx_at_(CALX_HERE), calx_poisson(CALX_T_(x)))
#define calx_multinomial(x, ...) CALX_MULTINOMIAL_(x, __VA_ARGS__, .size = sizeof(calx_multinomial_options))
#define CALX_MULTINOMIAL_(x, num_samples, ...) (calx_at_(CALX_HERE), calx_multinomial_with(CALX_T_(x), num_samples, CALX_O_((&(calx_multinomial_options){ __VA_ARGS__ }))))
#define calx_meshgrid(...) (calx_at_(CALX_HERE), calx_meshgrid(__VA_ARGS__))
#define calx_cauchy(median, sigma, ...) CALX_CAUCHY_(median, sigma, __VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_CAUCHY_(median, sigma, shape, ...) (calx_at_(CALX_HERE), calx_cauchy_with(median, sigma, shape, CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_exponential(lambd, ...) CALX_EXPONENTIAL_(lambd, __VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_EXPONENTIAL_(lambd, shape, ...) (calx_at_(CALX_HERE), calx_exponential_with(lambd, shape, CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_geometric(p, ...) CALX_GEOMETRIC_(p, __VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_GEOMETRIC_(p, shape, ...) (calx_at_(CALX_HERE), calx_geometric_with(p, shape, CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_log_normal(mean, std, ...) CALX_LOG_NORMAL_(mean, std, __VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_LOG_NORMAL_(mean, std, shape, ...) (calx_at_(CALX_HERE), calx_log_normal_with(mean, std, shape, CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_randint_like(x, low, ...) CALX_RANDINT_LIKE_(x, low, __VA_ARGS__, .size = sizeof(calx_create_options))
#define CALX_RANDINT_LIKE_(x, low, high, ...) (calx_at_(CALX_HERE), calx_randint_like_with(CALX_T_(x), low, high, CALX_O_((&(calx_create_options){ __VA_ARGS__ }))))
#define calx_bartlett_window(...) CALX_BARTLETT_WINDOW_(__VA_ARGS__, .size = sizeof(calx_window_options))
#define CALX_BARTLETT_WINDOW_(n, ...) (calx_at_(CALX_HERE), calx_bartlett_window_with(n, CALX_O_(CALX_WRITE_(calx_window_options, __VA_ARGS__))))
#define calx_blackman_window(...) CALX_BLACKMAN_WINDOW_(__VA_ARGS__, .size = sizeof(calx_window_options))
#define CALX_BLACKMAN_WINDOW_(n, ...) (calx_at_(CALX_HERE), calx_blackman_window_with(n, CALX_O_(CALX_WRITE_(calx_window_options, __VA_ARGS__))))
#define calx_hamming_window(...) CALX_HAMMING_WINDOW_(__VA_ARGS__, .size = sizeof(calx_window_options))
#define CALX_HAMMING_WINDOW_(n, ...) (calx_at_(CALX_HERE), calx_hamming_window_with(n, CALX_O_(CALX_WRITE_(calx_window_options, __VA_ARGS__))))
#define calx_hann_window(...) CALX_HANN_WINDOW_(__VA_ARGS__, .size = sizeof(calx_window_options))
#define CALX_HANN_WINDOW_(n, ...) (calx_at_(CALX_HERE), calx_hann_window_with(n, CALX_O_(CALX_WRITE_(calx_window_options, __VA_ARGS__))))
#define calx_kaiser_window(...) CALX_KAISER_WINDOW_(__VA_ARGS__, .size = sizeof(calx_window_options))
#define CALX_KAISER_WINDOW_(n, ...) (calx_at_(CALX_HERE), calx_kaiser_window_with(n, CALX_O_(CALX_WRITE_(calx_window_options, __VA_ARGS__))))
// clang-format on
#endif
#endif
