// kernel/fft_block: blocks of lines for one element type T, included by
// fft_width.h once for each.

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

// n numbers; the other lanes are zeros.
INLINE NUMBER FFT_OF(get_some)(const T *from, int64_t n)
{
  if (n >= LANES) return FFT_OF(get)(from);
  T some[2 * LANES] = { 0 };
  memcpy(some, from, (size_t)n * 2 * sizeof(T));
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
  memcpy(to, some, (size_t)n * 2 * sizeof(T));
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

// ---- lines whose numbers are neighbours -------------------------------------

INLINE void FFT_OF(transpose)(VEC *r)
{
#define EXCHANGE(s)                          \
  for (int i = 0; (s) < LANES && i < LANES; i++) { \
    if ((i & (s)) != 0) continue;            \
    const VEC a = r[i], b = r[i + (s)];      \
    r[i] = SHUFFLE(a, b, LOW, s);            \
    r[i + (s)] = SHUFFLE(a, b, HIGH, s);     \
  }
  EXCHANGE(1)
  EXCHANGE(2)
#if LANES > 4
  EXCHANGE(4)
#endif
#if LANES > 8
  EXCHANGE(8)
#endif
#undef EXCHANGE
}

// The first of the LANES elements of a line of n that are moved together; the
// last ones move some again.
INLINE int64_t FFT_OF(chunk)(int64_t i, int64_t n)
{
  return i + LANES <= n || n < LANES ? i : n - LANES;
}

// A vector of x for each element of the lines; `real`: each second one.
INLINE void FFT_OF(load_along)(const T *from, int64_t lane, int64_t lines,
                               int64_t n, bool real, bool swapped, VEC *x)
{
  for (int64_t i = 0; i < n; i += LANES) {
    const int64_t at = FFT_OF(chunk)(i, n);
    VEC r[LANES];
    for (int64_t k = 0; k < LANES; k++) {
      const T *row = from + (k < lines ? k : 0) * lane + at;
      if (n >= LANES) {
        r[k] = *(const VEC *)row;
      } else {
        T some[LANES] = { 0 };
        memcpy(some, row, (size_t)n * sizeof(T));
        r[k] = *(const VEC *)some;
      }
    }
    FFT_OF(transpose)(r);
    for (int64_t k = 0; k < LANES && at + k < n; k++) {
      if (real) {
        x[2 * (at + k)] = r[k];
        x[2 * (at + k) + 1] = (VEC){ 0 };
      } else {
        x[(at + k) ^ swapped] = r[k];
      }
    }
  }
}

INLINE void FFT_OF(store_along)(const VEC *x, int64_t n, bool real,
                                bool swapped, T factor, T *to, int64_t lane,
                                int64_t lines)
{
  for (int64_t i = 0; i < n; i += LANES) {
    const int64_t at = FFT_OF(chunk)(i, n);
    VEC r[LANES];
    for (int64_t k = 0; k < LANES; k++) {
      const int64_t element = at + k < n ? at + k : at;
      r[k] = x[real ? 2 * element : element ^ swapped] * factor;
    }
    FFT_OF(transpose)(r);
    for (int64_t k = 0; k < lines; k++) {
      if (n >= LANES) {
        *(VEC *)(to + k * lane + at) = r[k];
      } else {
        memcpy(to + k * lane, &r[k], (size_t)n * sizeof(T));
      }
    }
  }
}

// ---- real lines -------------------------------------------------------------

// Of the exchanged parts of the numbers k and n - k of a PACKED line, and of w
// = e^(-pi i k / n), makes those of the line that is transformed.
INLINE void FFT_OF(pack_pair)(NUMBER *low, NUMBER *high, NUMBER w)
{
  const NUMBER mirror = FFT_OF(conjugate)(*high);
  const NUMBER even = FFT_OF(minus)(*low, mirror);
  const NUMBER odd = FFT_OF(times)(FFT_OF(plus)(*low, mirror), w);
  const NUMBER other = FFT_OF(plus_i)(even, odd);
  *low = FFT_OF(minus_i)(even, odd);
  *high = (NUMBER){ -other.re, other.im };
}

// The other direction, without the exchange.
INLINE void FFT_OF(unpack_pair)(NUMBER *low, NUMBER *high, NUMBER w)
{
  const NUMBER mirror = FFT_OF(conjugate)(*high);
  const NUMBER even = FFT_OF(scale)(FFT_OF(plus)(*low, mirror), (T)0.5);
  const NUMBER twice = FFT_OF(times)(FFT_OF(minus)(*low, mirror), w);
  const NUMBER odd = { twice.im * (T)0.5, twice.re * (T)-0.5 };
  *low = FFT_OF(plus)(even, odd);
  *high = FFT_OF(conjugate)(FFT_OF(minus)(even, odd));
}

INLINE NUMBER FFT_OF(broadcast)(const T *w)
{
  const VEC zero = { 0 };
  return (NUMBER){ zero + w[0], zero + w[1] };
}

// The real parts of exchanged numbers are the imaginary ones: those of numbers
// 0 and n of a PACKED line are zeros.
static void FFT_OF(pack)(const T *halves, int64_t n, NUMBER *x)
{
  x[0].re = x[n].re = (VEC){ 0 };
  for (int64_t k = 0; 2 * k <= n; k++) {
    FFT_OF(pack_pair)(&x[k], &x[n - k], FFT_OF(broadcast)(halves + 2 * k));
  }
}

static void FFT_OF(unpack_block)(const T *halves, int64_t n, NUMBER *x)
{
  const NUMBER first = x[0];
  for (int64_t k = 1; 2 * k <= n; k++) {
    FFT_OF(unpack_pair)(&x[k], &x[n - k], FFT_OF(broadcast)(halves + 2 * k));
  }
  x[0] = (NUMBER){ first.re + first.im, { 0 } };
  x[n] = (NUMBER){ first.re - first.im, { 0 } };
}

// Conjugates what is there of a HALF line: the rest is its mirror.
static void FFT_OF(mirror)(int64_t n, NUMBER *x)
{
  if (n > 0) x[0].im = (VEC){ 0 };
  for (int64_t k = 1; 2 * k < n; k++) {
    x[n - k] = x[k];
    x[k] = FFT_OF(conjugate)(x[k]);
  }
}

// ---- blocks -----------------------------------------------------------------

// `lines` lines of `line` numbers.
static void FFT_OF(load)(const cpu_kernel_fft_blocks *b, const T *from,
                         int64_t lines, int64_t line, NUMBER *x)
{
  const cpu_kernel_fft_place *p = &b->from;
  const int64_t n = cpu_kernel_fft_count(line, p->form);
  if (p->form == CPU_KERNEL_FFT_REAL) {
    FFT_OF(load_along)(from, p->lane, lines, n, true, false, (VEC *)x);
  } else if (p->step == 2) {
    FFT_OF(load_along)
    (from, p->lane, lines, 2 * n, false, b->swap_from, (VEC *)x);
  } else {
    for (int64_t k = 0; k < n; k++) {
      x[k] = FFT_OF(swap)(FFT_OF(get_some)(from + k * p->step, lines),
                          b->swap_from);
    }
  }
  if (p->form == CPU_KERNEL_FFT_HALF) FFT_OF(mirror)(line, x);
  if (p->form == CPU_KERNEL_FFT_PACKED) {
    FFT_OF(pack)(b->line->halves, line, x);
  }
}

static void FFT_OF(store)(const cpu_kernel_fft_blocks *b, NUMBER *x,
                          int64_t lines, int64_t line, T *to)
{
  const cpu_kernel_fft_place *p = &b->to;
  const int64_t n = cpu_kernel_fft_count(line, p->form);
  const T factor = (T)b->scale;
  if (p->form == CPU_KERNEL_FFT_PACKED) {
    FFT_OF(unpack_block)(b->line->halves, line, x);
  }
  if (p->form == CPU_KERNEL_FFT_REAL) {
    FFT_OF(store_along)
    ((const VEC *)x, n, true, false, factor, to, p->lane, lines);
  } else if (p->step == 2) {
    FFT_OF(store_along)
    ((const VEC *)x, 2 * n, false, b->swap_to, factor, to, p->lane, lines);
  } else {
    for (int64_t k = 0; k < n; k++) {
      const NUMBER z = FFT_OF(swap)(x[k], b->swap_to);
      FFT_OF(put_some)(to + k * p->step, FFT_OF(scale)(z, factor), lines);
    }
  }
}

// 2 j k = j^2 + k^2 - (j - k)^2 makes the sum a convolution with a chirp. The
// second transform is an inverse one, by conjugates.
static NUMBER *FFT_OF(convolve)(const cpu_kernel_fft_line *l, NUMBER *x,
                                NUMBER *y)
{
  const T *chirp = l->chirp, *filter = l->filter;
  for (int64_t k = 0; k < l->n; k++) {
    x[k] = FFT_OF(times_one)(x[k], chirp + 2 * k);
  }
  memset(x + l->n, 0, (size_t)(l->wide - l->n) * sizeof *x);
  NUMBER *z = FFT_OF(stages)(&l->first, x, y);
  for (int64_t k = 0; k < l->wide; k++) {
    z[k] = FFT_OF(conjugate)(FFT_OF(times_one)(z[k], filter + 2 * k));
  }
  z = FFT_OF(stages)(&l->first, z, z == x ? y : x);
  for (int64_t k = 0; k < l->n; k++) {
    z[k] = FFT_OF(times_one)(FFT_OF(conjugate)(z[k]), chirp + 2 * k);
  }
  return z;
}

static void FFT_OF(turn)(const cpu_kernel_fft_line *l, int64_t block, NUMBER *x)
{
  const int64_t n = l->first.n;
  const T *steps = (const T *)l->steps + 2 * block * n;
  const NUMBER *turns = l->turns;
  for (int64_t k = 0; k < n; k++) {
    x[k] = FFT_OF(times)(x[k], FFT_OF(times_one)(turns[k], steps + 2 * k));
  }
}

static void FFT_OF(run)(const cpu_kernel_fft_blocks *b, int64_t lo, int64_t hi,
                        void *scratch)
{
  const cpu_kernel_fft_line *l = b->line;
  const bool convolves = l->second.n == 1 && l->wide != l->n;
  const int64_t line = convolves ? l->n : b->stages->n;
  const int64_t blocks = (b->lines + LANES - 1) / LANES;
  NUMBER *x = scratch, *y = x + b->stages->n + 1;
  for (int64_t i = lo; i < hi; i++) {
    const int64_t group = i / blocks, first = i % blocks * LANES;
    const int64_t n = b->lines - first < LANES ? b->lines - first : LANES;
    FFT_OF(load)(b,
                 (const T *)b->from.at + group * b->from.group +
                     first * b->from.lane,
                 n, line, x);
    NUMBER *z = convolves ? FFT_OF(convolve)(l, x, y)
                          : FFT_OF(stages)(b->stages, x, y);
    if (b->turned) FFT_OF(turn)(l, first / LANES, z);
    FFT_OF(store)(b, z, n, line,
                  (T *)b->to.at + group * b->to.group + first * b->to.lane);
  }
}
