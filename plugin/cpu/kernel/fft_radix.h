// kernel/fft_radix: the stages of Stockham's algorithm for one element type T,
// included by fft_width.h once for each.

typedef T FFT_OF(lanes)
    __attribute__((vector_size(FFT_BYTES), aligned(sizeof(T))));
#define VEC FFT_OF(lanes)
typedef struct FFT_OF(number) {
  VEC re, im;
} FFT_OF(number);
#define NUMBER FFT_OF(number)

INLINE NUMBER FFT_OF(times)(NUMBER x, NUMBER y)
{
  return (NUMBER){ x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re };
}

INLINE NUMBER FFT_OF(times_one)(NUMBER x, const T *w)
{
  return (NUMBER){ x.re * w[0] - x.im * w[1], x.re * w[1] + x.im * w[0] };
}

INLINE NUMBER FFT_OF(plus)(NUMBER x, NUMBER y)
{
  return (NUMBER){ x.re + y.re, x.im + y.im };
}

INLINE NUMBER FFT_OF(minus)(NUMBER x, NUMBER y)
{
  return (NUMBER){ x.re - y.re, x.im - y.im };
}

// x + i y and x - i y.
INLINE NUMBER FFT_OF(plus_i)(NUMBER x, NUMBER y)
{
  return (NUMBER){ x.re - y.im, x.im + y.re };
}

INLINE NUMBER FFT_OF(minus_i)(NUMBER x, NUMBER y)
{
  return (NUMBER){ x.re + y.im, x.im - y.re };
}

INLINE void FFT_OF(two)(NUMBER *a, NUMBER *b)
{
  const NUMBER sum = FFT_OF(plus)(*a, *b);
  *b = FFT_OF(minus)(*a, *b);
  *a = sum;
}

INLINE void FFT_OF(four)(NUMBER *v0, NUMBER *v1, NUMBER *v2, NUMBER *v3)
{
  const NUMBER a = FFT_OF(plus)(*v0, *v2), b = FFT_OF(minus)(*v0, *v2);
  const NUMBER c = FFT_OF(plus)(*v1, *v3), d = FFT_OF(minus)(*v1, *v3);
  *v0 = FFT_OF(plus)(a, c);
  *v1 = FFT_OF(minus_i)(b, d);
  *v2 = FFT_OF(minus)(a, c);
  *v3 = FFT_OF(plus_i)(b, d);
}

INLINE void FFT_OF(eight)(NUMBER *v)
{
  const T c = (T)0.70710678118654752440;
  FFT_OF(four)(&v[0], &v[2], &v[4], &v[6]);
  FFT_OF(four)(&v[1], &v[3], &v[5], &v[7]);
  // Times e^(-pi i / 4), -i and e^(-3 pi i / 4).
  const NUMBER p = { (v[3].re + v[3].im) * c, (v[3].im - v[3].re) * c };
  const NUMBER q = v[5];
  const NUMBER r = { (v[7].im - v[7].re) * c, (v[7].re + v[7].im) * -c };
  const NUMBER e0 = v[0], e1 = v[2], e2 = v[4], e3 = v[6], o = v[1];
  v[0] = FFT_OF(plus)(e0, o);
  v[4] = FFT_OF(minus)(e0, o);
  v[1] = FFT_OF(plus)(e1, p);
  v[5] = FFT_OF(minus)(e1, p);
  v[2] = FFT_OF(minus_i)(e2, q);
  v[6] = FFT_OF(plus_i)(e2, q);
  v[3] = FFT_OF(plus)(e3, r);
  v[7] = FFT_OF(minus)(e3, r);
}

// Any odd radix: of a number and its mirror, the sum meets cosines and the
// difference sines. `turns` has cos and sin of 2 pi k / radix.
INLINE void FFT_OF(odd)(const int radix, const T *turns, NUMBER *v)
{
  const int half = radix / 2;
  NUMBER out[MOST_RADIX];
  NUMBER total = v[0];
  for (int m = 1; m <= half; m++) {
    FFT_OF(two)(&v[m], &v[radix - m]);
    total = FFT_OF(plus)(total, v[m]);
  }
  for (int k = 1; k <= half; k++) {
    NUMBER a = v[0], b = { { 0 }, { 0 } };
    for (int m = 1, at = k; m <= half; m++) {
      const T c = turns[2 * at], s = turns[2 * at + 1];
      a = (NUMBER){ a.re + v[m].re * c, a.im + v[m].im * c };
      b = (NUMBER){ b.re + v[radix - m].re * s, b.im + v[radix - m].im * s };
      at = at + k >= radix ? at + k - radix : at + k;
    }
    out[k] = FFT_OF(minus_i)(a, b);
    out[radix - k] = FFT_OF(plus_i)(a, b);
  }
  v[0] = total;
  for (int k = 1; k < radix; k++) v[k] = out[k];
}

// `count` butterflies of x to y, at multiples of `skip` and `skip` * radix.
// Their inputs are `rest` apart and meet the roots w, their outputs are `done`
// apart.
typedef struct FFT_OF(walk) {
  int64_t count, skip, rest, done;
  const T *turns, *w;
  const NUMBER *x;
  NUMBER *y;
} FFT_OF(walk);

INLINE void FFT_OF(butterflies)(const int radix, const bool turned,
                                const FFT_OF(walk) * b)
{
  const NUMBER *restrict x = b->x;
  NUMBER *restrict y = b->y;
  const T *restrict w = b->w;
  for (int64_t s = 0; s < b->count; s++) {
    NUMBER v[MOST_RADIX];
    v[0] = x[s * b->skip];
    for (int q = 1; q < radix; q++) {
      v[q] = x[s * b->skip + q * b->rest];
      if (turned) v[q] = FFT_OF(times_one)(v[q], w + 2 * (q - 1));
    }
    switch (radix) {
      case 2: FFT_OF(two)(&v[0], &v[1]); break;
      case 4: FFT_OF(four)(&v[0], &v[1], &v[2], &v[3]); break;
      case 8: FFT_OF(eight)(v); break;
      default: FFT_OF(odd)(radix, b->turns, v); break;
    }
    for (int q = 0; q < radix; q++) {
      y[s * b->skip * radix + q * b->done] = v[q];
    }
  }
}

// One factor: `done` is the product of those before it. The roots of k = 0 are
// ones.
INLINE void FFT_OF(stage)(const int radix, int64_t n, int64_t done,
                          const T *table, const NUMBER *x, NUMBER *y)
{
  const int64_t rest = n / radix;
  FFT_OF(walk) b = { rest / done, done, rest, done, table, table, x, y };
  FFT_OF(butterflies)(radix, false, &b);
  for (int64_t k = 1; k < done; k++) {
    b.w = table + 2 * (radix + k * (radix - 1));
    b.x = x + k;
    b.y = y + k;
    FFT_OF(butterflies)(radix, true, &b);
  }
}

// Returns the one of x and y that has the result.
static NUMBER *FFT_OF(stages)(const cpu_kernel_fft_stages *l, NUMBER *x,
                              NUMBER *y)
{
  int64_t done = 1;
  for (int i = 0; i < l->n_factors; i++) {
    const T *table = l->tables[i];
    switch (l->factors[i]) {
      case 2: FFT_OF(stage)(2, l->n, done, table, x, y); break;
      case 3: FFT_OF(stage)(3, l->n, done, table, x, y); break;
      case 4: FFT_OF(stage)(4, l->n, done, table, x, y); break;
      case 5: FFT_OF(stage)(5, l->n, done, table, x, y); break;
      case 7: FFT_OF(stage)(7, l->n, done, table, x, y); break;
      case 8: FFT_OF(stage)(8, l->n, done, table, x, y); break;
      default: FFT_OF(stage)(l->factors[i], l->n, done, table, x, y); break;
    }
    done *= l->factors[i];
    NUMBER *swap = x;
    x = y;
    y = swap;
  }
  return x;
}
