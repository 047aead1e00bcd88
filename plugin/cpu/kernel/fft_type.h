// kernel/fft_type: Fourier transforms for one element type T, included by
// fft_width.h once for each.

typedef T FFT_OF(lanes)
    __attribute__((vector_size(FFT_BYTES), aligned(sizeof(T))));
typedef struct FFT_OF(number) {
  FFT_OF(lanes) re, im;
} FFT_OF(number);
#define VEC FFT_OF(lanes)
#define NUMBER FFT_OF(number)
#define LANES ((int64_t)(FFT_BYTES / sizeof(T)))

static NUMBER FFT_OF(times)(NUMBER x, T re, T im)
{
  return (NUMBER){ x.re * re - x.im * im, x.re * im + x.im * re };
}

static NUMBER FFT_OF(plus)(NUMBER x, NUMBER y)
{
  return (NUMBER){ x.re + y.re, x.im + y.im };
}

static NUMBER FFT_OF(minus)(NUMBER x, NUMBER y)
{
  return (NUMBER){ x.re - y.re, x.im - y.im };
}

// x + factor i y.
static NUMBER FFT_OF(plus_i)(NUMBER x, NUMBER y, T factor)
{
  return (NUMBER){ x.re - y.im * factor, x.im + y.re * factor };
}

static void FFT_OF(three)(NUMBER v[5], T sign)
{
  const T sine = sign * (T)0.86602540378443864676;
  const NUMBER sum = FFT_OF(plus)(v[1], v[2]), d = FFT_OF(minus)(v[1], v[2]);
  const NUMBER m = { v[0].re - sum.re * (T)0.5, v[0].im - sum.im * (T)0.5 };
  v[0] = FFT_OF(plus)(v[0], sum);
  v[1] = FFT_OF(plus_i)(m, d, sine);
  v[2] = FFT_OF(plus_i)(m, d, -sine);
}

static void FFT_OF(four)(NUMBER v[5], T sign)
{
  const NUMBER a = FFT_OF(plus)(v[0], v[2]), b = FFT_OF(minus)(v[0], v[2]);
  const NUMBER c = FFT_OF(plus)(v[1], v[3]), d = FFT_OF(minus)(v[1], v[3]);
  v[0] = FFT_OF(plus)(a, c);
  v[1] = FFT_OF(plus_i)(b, d, sign);
  v[2] = FFT_OF(minus)(a, c);
  v[3] = FFT_OF(plus_i)(b, d, -sign);
}

static void FFT_OF(five)(NUMBER v[5], T sign)
{
  const T c1 = (T)0.30901699437494742410, c2 = (T)-0.80901699437494742410;
  const T s1 = sign * (T)0.95105651629515357212;
  const T s2 = sign * (T)0.58778525229247312917;
  const NUMBER a = FFT_OF(plus)(v[1], v[4]), b = FFT_OF(plus)(v[2], v[3]);
  const NUMBER c = FFT_OF(minus)(v[1], v[4]), d = FFT_OF(minus)(v[2], v[3]);
  const NUMBER m = { v[0].re + a.re * c1 + b.re * c2,
                     v[0].im + a.im * c1 + b.im * c2 };
  const NUMBER n = { v[0].re + a.re * c2 + b.re * c1,
                     v[0].im + a.im * c2 + b.im * c1 };
  const NUMBER p = { c.re * s1 + d.re * s2, c.im * s1 + d.im * s2 };
  const NUMBER q = { c.re * s2 - d.re * s1, c.im * s2 - d.im * s1 };
  v[0] = FFT_OF(plus)(v[0], FFT_OF(plus)(a, b));
  v[1] = FFT_OF(plus_i)(m, p, 1);
  v[4] = FFT_OF(plus_i)(m, p, -1);
  v[2] = FFT_OF(plus_i)(n, q, 1);
  v[3] = FFT_OF(plus_i)(n, q, -1);
}

// One factor of Stockham's algorithm: `done` is the product of those before it.
// sign: -1, or 1 for the inverse.
static void FFT_OF(stage)(const cpu_kernel_fft_line *l, int64_t done, int radix,
                          T sign, const NUMBER *x, NUMBER *y)
{
  const T *roots = l->roots;
  const int64_t rest = l->wide / radix, step = rest / done;
  for (int64_t j = 0; j < rest; j++) {
    const int64_t k = j % done;
    NUMBER v[5];
    v[0] = x[j];
    for (int q = 1; q < radix; q++) {
      const T *w = roots + 2 * (k * q * step);
      v[q] = FFT_OF(times)(x[j + q * rest], w[0], -sign * w[1]);
    }
    switch (radix) {
      case 2: {
        const NUMBER sum = FFT_OF(plus)(v[0], v[1]);
        v[1] = FFT_OF(minus)(v[0], v[1]);
        v[0] = sum;
        break;
      }
      case 3: FFT_OF(three)(v, sign); break;
      case 4: FFT_OF(four)(v, sign); break;
      default: FFT_OF(five)(v, sign); break;
    }
    NUMBER *to = y + (j - k) * radix + k;
    for (int q = 0; q < radix; q++) to[q * done] = v[q];
  }
}

// Returns the one of x and y that has the result.
static NUMBER *FFT_OF(stages)(const cpu_kernel_fft_line *l, T sign, NUMBER *x,
                              NUMBER *y)
{
  int64_t done = 1;
  for (int i = 0; i < l->n_factors; i++) {
    FFT_OF(stage)(l, done, l->factors[i], sign, x, y);
    done *= l->factors[i];
    NUMBER *swap = x;
    x = y;
    y = swap;
  }
  return x;
}

// 2 j k = j^2 + k^2 - (j - k)^2 makes the sum a convolution with a chirp.
static NUMBER *FFT_OF(convolve)(const cpu_kernel_fft_line *l, NUMBER *x,
                                NUMBER *y)
{
  const T *chirp = l->chirp, *filter = l->filter;
  const T part = 1 / (T)l->wide;
  for (int64_t k = 0; k < l->n; k++) {
    x[k] = FFT_OF(times)(x[k], chirp[2 * k], chirp[2 * k + 1]);
  }
  memset(x + l->n, 0, (size_t)(l->wide - l->n) * sizeof *x);
  NUMBER *z = FFT_OF(stages)(l, -1, x, y);
  for (int64_t k = 0; k < l->wide; k++) {
    z[k] = FFT_OF(times)(z[k], filter[2 * k], filter[2 * k + 1]);
  }
  z = FFT_OF(stages)(l, 1, z, z == x ? y : x);
  for (int64_t k = 0; k < l->n; k++) {
    z[k] = FFT_OF(times)(z[k], chirp[2 * k] * part, chirp[2 * k + 1] * part);
  }
  return z;
}

// Reads one line to a lane.
static void FFT_OF(load)(const cpu_kernel_fft_pass *p, int64_t line,
                         int64_t lane, NUMBER *x)
{
  const int64_t n = p->line->n, parts = p->from_real ? 1 : 2;
  const T *from =
      (const T *)p->from +
      (line / p->inner * p->have * p->inner + line % p->inner) * parts;
  for (int64_t k = 0; k < p->have; k++) {
    const T *number = from + k * p->inner * parts;
    x[k].re[lane] = number[0];
    x[k].im[lane] = p->from_real ? 0 : number[1];
  }
  if (!p->to_real) return;
  // A real line's first number is real, and its middle one.
  x[0].im[lane] = 0;
  if (n % 2 == 0) x[n / 2].im[lane] = 0;
  for (int64_t k = p->have; k < n; k++) {
    x[k].re[lane] = x[n - k].re[lane];
    x[k].im[lane] = -x[n - k].im[lane];
  }
}

static void FFT_OF(store)(const cpu_kernel_fft_pass *p, int64_t line,
                          int64_t lane, const NUMBER *x)
{
  const int64_t parts = p->to_real ? 1 : 2;
  const T scale = p->inverse ? 1 / (T)p->line->n : 1;
  T *to = (T *)p->to +
          (line / p->inner * p->keep * p->inner + line % p->inner) * parts;
  for (int64_t k = 0; k < p->keep; k++) {
    T *number = to + k * p->inner * parts;
    number[0] = x[k].re[lane] * scale;
    if (!p->to_real) number[1] = x[k].im[lane] * scale;
  }
}

static void FFT_OF(run)(const cpu_kernel_fft_pass *p, int64_t lo, int64_t hi,
                        void *scratch)
{
  const cpu_kernel_fft_line *l = p->line;
  for (int64_t i = lo; i < hi; i++) {
    NUMBER *x = scratch, *y = x + l->wide;
    const int64_t first = i * LANES;
    const int64_t n = p->lines - first < LANES ? p->lines - first : LANES;
    if (n < LANES) memset(x, 0, (size_t)l->n * sizeof *x);
    for (int64_t k = 0; k < n; k++) FFT_OF(load)(p, first + k, k, x);
    const NUMBER *z = l->wide != l->n
                          ? FFT_OF(convolve)(l, x, y)
                          : FFT_OF(stages)(l, p->inverse ? 1 : -1, x, y);
    for (int64_t k = 0; k < n; k++) FFT_OF(store)(p, first + k, k, z);
  }
}

#undef T
#undef FFT_OF
#undef VEC
#undef NUMBER
#undef LANES
