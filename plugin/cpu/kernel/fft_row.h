// kernel/fft_row: passes over the numbers of one line for one element type T,
// included by fft_width.h once for each. Lines that this module makes have room
// for whole vectors.

INLINE NUMBER FFT_OF(reverse)(NUMBER x)
{
  return (NUMBER){ SHUFFLE(x.re, x.re, BACKWARDS, 0),
                   SHUFFLE(x.im, x.im, BACKWARDS, 0) };
}

static void FFT_OF(open_real)(const T *from, int64_t n, int64_t k, T *to)
{
  VEC re = { 0 };
  const int64_t here = n - k < LANES ? n - k : LANES;
  memcpy(&re, from + k, (size_t)here * sizeof(T));
  FFT_OF(put)(to + 2 * k, (NUMBER){ re, { 0 } });
}

// ---- pairs of numbers k and n - k -------------------------------------------

// What is done with a pair: see fft_block.h; a HALF line gets its mirror.
enum { FFT_OF(PACK), FFT_OF(UNPACK), FFT_OF(MIRROR) };

INLINE void FFT_OF(pair)(const int what, NUMBER *low, NUMBER *high, NUMBER w)
{
  if (what == FFT_OF(PACK)) {
    *low = FFT_OF(swap)(*low, true);
    *high = FFT_OF(swap)(*high, true);
    FFT_OF(pack_pair)(low, high, w);
  } else if (what == FFT_OF(UNPACK)) {
    FFT_OF(unpack_pair)(low, high, w);
  } else {
    *high = *low;
    *low = FFT_OF(conjugate)(*low);
  }
}

// The pairs of k to k + LANES, but not beyond the middle. What is read at n - k
// of a HALF line is not used.
INLINE void FFT_OF(pairs)(const int what, const T *halves, int64_t n, int64_t k,
                          const T *from, T *to)
{
  const bool reads = what != FFT_OF(MIRROR);
  NUMBER w = { { 0 }, { 0 } }, high = w;
  if (2 * (k + LANES - 1) < n) {
    const int64_t mirror = 2 * (n - k - LANES + 1);
    NUMBER low = FFT_OF(get)(from + 2 * k);
    if (reads) {
      w = FFT_OF(get)(halves + 2 * k);
      high = FFT_OF(reverse)(FFT_OF(get)(from + mirror));
    }
    FFT_OF(pair)(what, &low, &high, w);
    FFT_OF(put)(to + 2 * k, low);
    FFT_OF(put)(to + mirror, FFT_OF(reverse)(high));
    return;
  }
  for (int64_t i = k; 2 * i <= n && i < k + LANES; i++) {
    NUMBER low = FFT_OF(get_some)(from + 2 * i, 1);
    if (reads) {
      w = FFT_OF(get_some)(halves + 2 * i, 1);
      high = FFT_OF(get_some)(from + 2 * (n - i), 1);
    }
    FFT_OF(pair)(what, &low, &high, w);
    FFT_OF(put_some)(to + 2 * i, low, 1);
    FFT_OF(put_some)(to + 2 * (n - i), high, 1);
  }
}

static void FFT_OF(open)(const cpu_kernel_fft_row *r, int64_t lo, int64_t hi)
{
  const int64_t n = r->line->n;
  const T *from = r->from, *halves = r->line->halves;
  T *to = r->to;
  for (int64_t i = lo; i < hi; i++) {
    if (r->form == CPU_KERNEL_FFT_REAL) {
      FFT_OF(open_real)(from, n, i * LANES, to);
      continue;
    }
    const int64_t k = 1 + i * LANES;
    if (r->form == CPU_KERNEL_FFT_HALF) {
      FFT_OF(pairs)(FFT_OF(MIRROR), halves, n, k, from, to);
    } else {
      FFT_OF(pairs)(FFT_OF(PACK), halves, n, k, from, to);
    }
  }
  if (lo > 0 || r->form == CPU_KERNEL_FFT_REAL) return;
  const bool half = r->form == CPU_KERNEL_FFT_HALF;
  to[0] = half ? from[0] : from[0] - from[2 * n];
  to[1] = half ? 0 : from[0] + from[2 * n];
}

static void FFT_OF(unpack)(const cpu_kernel_fft_row *r, int64_t lo, int64_t hi)
{
  const int64_t n = r->line->n;
  T *x = r->to;
  for (int64_t i = lo; i < hi; i++) {
    FFT_OF(pairs)(FFT_OF(UNPACK), r->line->halves, n, 1 + i * LANES, x, x);
  }
  if (lo > 0) return;
  const T re = x[0], im = x[1];
  x[0] = re + im;
  x[2 * n] = re - im;
  x[1] = x[2 * n + 1] = 0;
}

// ---- products ---------------------------------------------------------------

static void FFT_OF(chirp)(const cpu_kernel_fft_row *r, int64_t lo, int64_t hi)
{
  const int64_t n = r->line->n;
  const T *from = r->from, *chirp = r->line->chirp;
  T *to = r->to;
  for (int64_t k = lo * LANES; k < hi * LANES; k += LANES) {
    NUMBER x = { { 0 }, { 0 } };
    if (k < n) {
      x = FFT_OF(swap)(FFT_OF(get_some)(from + 2 * k, n - k), r->swap);
      x = FFT_OF(times)(x, FFT_OF(get)(chirp + 2 * k));
    }
    FFT_OF(put)(to + 2 * k, x);
  }
}

static void FFT_OF(filter)(const cpu_kernel_fft_row *r, int64_t lo, int64_t hi)
{
  const T *filter = r->line->filter;
  T *x = r->to;
  for (int64_t k = lo * LANES; k < hi * LANES; k += LANES) {
    const NUMBER z = FFT_OF(times)(FFT_OF(get)(x + 2 * k),
                                   FFT_OF(get)(filter + 2 * k));
    FFT_OF(put)(x + 2 * k, FFT_OF(conjugate)(z));
  }
}

static void FFT_OF(close)(const cpu_kernel_fft_row *r, int64_t lo, int64_t hi)
{
  const int64_t n = cpu_kernel_fft_count(
      r->line->n,
      r->form == CPU_KERNEL_FFT_HALF ? r->form : CPU_KERNEL_FFT_NUMBERS);
  const T *from = r->from, *chirp = r->line->chirp;
  const T factor = (T)r->scale;
  T *to = r->to;
  for (int64_t k = lo * LANES; k < hi * LANES && k < n; k += LANES) {
    NUMBER x = FFT_OF(get)(from + 2 * k);
    if (chirp != NULL) {
      x = FFT_OF(times)(FFT_OF(conjugate)(x), FFT_OF(get)(chirp + 2 * k));
    }
    x = FFT_OF(scale)(FFT_OF(swap)(x, r->swap), factor);
    const int64_t here = n - k < LANES ? n - k : LANES;
    if (r->form == CPU_KERNEL_FFT_REAL) {
      memcpy(to + k, &x.re, (size_t)here * sizeof(T));
    } else {
      FFT_OF(put_some)(to + 2 * k, x, here);
    }
  }
}
