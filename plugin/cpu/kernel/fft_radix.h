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

// ---- numbers in memory ------------------------------------------------------

INLINE NUMBER FFT_OF(get)(const T *from)
{
  const VEC *v = (const VEC *)from;
  return (NUMBER){ SHUFFLE(v[0], v[1], EVERY, 0),
                   SHUFFLE(v[0], v[1], EVERY, 1) };
}

INLINE void FFT_OF(put)(T *to, NUMBER x)
{
  VEC *v = (VEC *)to;
  v[0] = SHUFFLE(x.re, x.im, IN_TURN, 0);
  v[1] = SHUFFLE(x.re, x.im, IN_TURN, 1);
}

// n numbers; the other lanes are not used.
INLINE NUMBER FFT_OF(get_some)(const T *from, int64_t n)
{
  if (n >= LANES) return FFT_OF(get)(from);
  T some[2 * LANES] = { 0 };
#if FFT_MASKS
  const uint32_t mask = ((uint32_t)1 << 2 * n) - 1;
  for (int i = 0; i < 2; i++) {
    *(VEC *)(some + i * LANES) =
        MASKED_LOAD(mask >> i * LANES, from + i * LANES);
  }
#else
  memcpy(some, from, (size_t)n * 2 * sizeof(T));
#endif
  return FFT_OF(get)(some);
}

INLINE void FFT_OF(put_some)(T *to, NUMBER x, int64_t n)
{
  if (n >= LANES) {
    FFT_OF(put)(to, x);
    return;
  }
  T some[2 * LANES];
  FFT_OF(put)(some, x);
#if FFT_MASKS
  const uint32_t mask = ((uint32_t)1 << 2 * n) - 1;
  for (int i = 0; i < 2; i++) {
    MASKED_STORE(to + i * LANES, mask >> i * LANES,
                 *(const VEC *)(some + i * LANES));
  }
#else
  memcpy(to, some, (size_t)n * 2 * sizeof(T));
#endif
}

INLINE NUMBER FFT_OF(swap)(NUMBER x, bool swapped)
{
  return swapped ? (NUMBER){ x.im, x.re } : x;
}

INLINE NUMBER FFT_OF(scale)(NUMBER x, T factor)
{
  return (NUMBER){ x.re * factor, x.im * factor };
}

INLINE NUMBER FFT_OF(conjugate)(NUMBER x)
{
  return (NUMBER){ x.re, -x.im };
}

// ---- butterflies and stages
// --------------------------------------------------

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

// Where the numbers of a stage are: x[i] or y[i], or in memory at from + i *
// from_step or to + i * to_step. EXCHANGED: with parts exchanged, and results
// times `scale`.
enum { FFT_OF(VECTORS), FFT_OF(MEMORY), FFT_OF(EXCHANGED) };

// `count` butterflies of x to y, at multiples of `skip` and `skip` * radix.
// Their inputs are `rest` apart and meet the roots w, their outputs are `done`
// apart.
typedef struct FFT_OF(walk) {
  int64_t count, skip, rest, done;
  const T *turns, *w;
  const NUMBER *x;
  NUMBER *y;
  const T *from;
  T *to;
  int64_t from_step, to_step;
  T scale;
} FFT_OF(walk);

INLINE void FFT_OF(butterflies)(const int radix, const bool turned,
                                const int source, const int sink,
                                const FFT_OF(walk) * b)
{
  const NUMBER *restrict x = b->x;
  NUMBER *restrict y = b->y;
  const T *restrict w = b->w, *restrict from = b->from;
  T *restrict to = b->to;
  for (int64_t s = 0; s < b->count; s++) {
    NUMBER v[MOST_RADIX];
    for (int q = 0; q < radix; q++) {
      const int64_t i = s * b->skip + q * b->rest;
      v[q] = source == FFT_OF(VECTORS) ? x[i]
                                       : FFT_OF(get)(from + i * b->from_step);
      if (source == FFT_OF(EXCHANGED)) v[q] = FFT_OF(swap)(v[q], true);
      if (turned && q > 0) v[q] = FFT_OF(times_one)(v[q], w + 2 * (q - 1));
    }
    switch (radix) {
      case 2: FFT_OF(two)(&v[0], &v[1]); break;
      case 4: FFT_OF(four)(&v[0], &v[1], &v[2], &v[3]); break;
      case 8: FFT_OF(eight)(v); break;
      default: FFT_OF(odd)(radix, b->turns, v); break;
    }
    for (int q = 0; q < radix; q++) {
      const int64_t i = s * b->skip * radix + q * b->done;
      if (sink == FFT_OF(VECTORS)) {
        y[i] = v[q];
      } else if (sink == FFT_OF(MEMORY)) {
        FFT_OF(put)(to + i * b->to_step, v[q]);
      } else {
        FFT_OF(put)
        (to + i * b->to_step,
         FFT_OF(scale)(FFT_OF(swap)(v[q], true), b->scale));
      }
    }
  }
}

// One factor: `done` is the product of those before it. The roots of k = 0 are
// ones.
INLINE void FFT_OF(stage)(const int radix, const int source, const int sink,
                          int64_t n, int64_t done, const T *table,
                          FFT_OF(walk) b)
{
  b.rest = n / radix;
  b.count = b.rest / done;
  b.skip = b.done = done;
  b.turns = table;
  FFT_OF(butterflies)(radix, false, source, sink, &b);
  for (int64_t k = 1; source == FFT_OF(VECTORS) && k < done; k++) {
    b.w = table + 2 * (radix + k * (radix - 1));
    b.x++;
    if (b.y != NULL) b.y++;
    if (b.to != NULL) b.to += b.to_step;
    FFT_OF(butterflies)(radix, true, source, sink, &b);
  }
}

#define FFT_STAGE(radix) \
  FFT_OF(stage)(radix, source, sink, l->n, done, l->tables[i], b)
INLINE void FFT_OF(any_stage)(const int source, const int sink,
                              const cpu_kernel_fft_stages *l, int i,
                              int64_t done, FFT_OF(walk) b)
{
  switch (l->factors[i]) {
    case 2: FFT_STAGE(2); break;
    case 3: FFT_STAGE(3); break;
    case 4: FFT_STAGE(4); break;
    case 5: FFT_STAGE(5); break;
    case 7: FFT_STAGE(7); break;
    case 8: FFT_STAGE(8); break;
    default: FFT_STAGE(l->factors[i]); break;
  }
}
#undef FFT_STAGE

// The first stage of whole vectors of lines whose numbers are `step` elements
// apart.
static void FFT_OF(first_stage)(const cpu_kernel_fft_stages *l, const T *from,
                                int64_t step, bool swapped, NUMBER *y)
{
  const FFT_OF(walk) b = { .y = y, .from = from, .from_step = step };
  if (swapped) {
    FFT_OF(any_stage)(FFT_OF(EXCHANGED), FFT_OF(VECTORS), l, 0, 1, b);
  } else {
    FFT_OF(any_stage)(FFT_OF(MEMORY), FFT_OF(VECTORS), l, 0, 1, b);
  }
}

// The last stage, likewise.
static void FFT_OF(last_stage)(const cpu_kernel_fft_stages *l, const NUMBER *x,
                               T *to, int64_t step, bool swapped, T scale)
{
  const int i = l->n_factors - 1;
  const int64_t done = l->n / l->factors[i];
  const FFT_OF(walk) b = { .x = x, .to = to, .to_step = step, .scale = scale };
  if (swapped) {
    FFT_OF(any_stage)(FFT_OF(VECTORS), FFT_OF(EXCHANGED), l, i, done, b);
  } else {
    FFT_OF(any_stage)(FFT_OF(VECTORS), FFT_OF(MEMORY), l, i, done, b);
  }
}

// The stages [i, end). Returns the one of x and y that has the result.
static NUMBER *FFT_OF(stages)(const cpu_kernel_fft_stages *l, int i, int end,
                              NUMBER *x, NUMBER *y)
{
  int64_t done = 1;
  for (int k = 0; k < i; k++) done *= l->factors[k];
  for (; i < end; i++) {
    const FFT_OF(walk) b = { .x = x, .y = y };
    FFT_OF(any_stage)(FFT_OF(VECTORS), FFT_OF(VECTORS), l, i, done, b);
    done *= l->factors[i];
    NUMBER *swap = x;
    x = y;
    y = swap;
  }
  return x;
}
