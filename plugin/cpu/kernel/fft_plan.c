// kernel/fft_plan: see fft_plan.h.
#include "kernel/fft_plan.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

// ---- sizes ------------------------------------------------------------------

// Sets the factors, the largest first: the first stage multiplies by no roots.
// False: a prime factor is too large.
static bool factor(int64_t n, cpu_kernel_fft_stages *l)
{
  int64_t rest = n;
  int twos = 0, k = 0, odd[CPU_KERNEL_FFT_FACTORS], n_odd = 0;
  for (; rest > 1 && rest % 2 == 0; rest /= 2) twos++;
  for (int p = 3; p <= CPU_KERNEL_FFT_PRIME && rest > 1; p += 2) {
    for (; rest % p == 0; rest /= p) odd[n_odd++] = p;
  }
  *l = (cpu_kernel_fft_stages){ .n = n };
  if (rest > 1) return false;
  while (n_odd > 0 && odd[n_odd - 1] > 8) l->factors[k++] = odd[--n_odd];
  for (; twos >= 5 || twos == 3; twos -= 3) l->factors[k++] = 8;
  while (n_odd > 0 && odd[n_odd - 1] > 4) l->factors[k++] = odd[--n_odd];
  for (; twos >= 2; twos -= 2) l->factors[k++] = 4;
  while (n_odd > 0) l->factors[k++] = odd[--n_odd];
  if (twos > 0) l->factors[k++] = 2;
  l->n_factors = k;
  return true;
}

// The time of a number in a block: one for moving it, and that of the stages.
static double block_cost(const cpu_kernel_fft_stages *l)
{
  double cost = 3;
  for (int i = 0; i < l->n_factors; i++) {
    const int f = l->factors[i];
    cost += f > 8 ? 1 + f / 4.0 : 1.5;
  }
  return cost;
}

// Splits into the two factors that cost least, with empty lanes in mind. False:
// it is so short that lines are better transformed in blocks.
static bool split(int64_t n, int64_t lanes, cpu_kernel_fft_line *l)
{
  double best = 0;
  for (int64_t a = lanes / 2 + 1; a <= n / a * 8; a++) {
    if (n % a != 0 || n / a <= lanes / 2) continue;
    cpu_kernel_fft_stages first, second;
    if (!factor(a, &first) || !factor(n / a, &second)) continue;
    const int64_t blocks_a = (a + lanes - 1) / lanes;
    const int64_t blocks_b = (second.n + lanes - 1) / lanes;
    double cost = (double)(blocks_b * a) * block_cost(&first) +
                  (double)(blocks_a * second.n) * block_cost(&second);
    if (best != 0 && cost >= best) continue;
    best = cost;
    l->first = first;
    l->second = second;
  }
  return best != 0;
}

static void set_wide(int64_t wide, int64_t lanes, bool along,
                     cpu_kernel_fft_line *l)
{
  l->wide = wide;
  (void)factor(wide, &l->first);
  (void)factor(1, &l->second);
  if (along && wide >= lanes * lanes) (void)split(wide, lanes, l);
}

// At least 2 n - 1 numbers, with small factors.
static int64_t convolution(int64_t n)
{
  int64_t best = 0;
  for (int64_t odd = 1; odd <= 15; odd += 2) {
    if (odd == 11 || odd == 13) continue;
    int64_t wide = odd;
    while (wide < 2 * n - 1) wide *= 2;
    if (best == 0 || wide < best) best = wide;
  }
  return best;
}

void cpu_kernel_fft_line_set(int64_t n, cpu_kernel_math math, bool along,
                             bool halved, cpu_kernel_fft_line *out)
{
  const int64_t lanes = cpu_kernel_fft_get(math)->lanes;
  cpu_kernel_fft_stages whole;
  *out = (cpu_kernel_fft_line){ .n = n, .halved = halved };
  set_wide(factor(n, &whole) ? n : convolution(n), lanes, along, out);
}

// ---- tables -----------------------------------------------------------------

// Numbers are put one after the other, each table aligned.
typedef struct table_writer {
  cpu_kernel_math math;
  unsigned char *at;  // NULL: only counts
  size_t bytes;
} table_writer;

static void put(const table_writer *w, void *table, int64_t i, double v)
{
  if (w->math == CPU_KERNEL_F64) {
    ((double *)table)[i] = v;
  } else {
    ((float *)table)[i] = (float)v;
  }
}

// Room for n numbers, rounded up to whole vectors.
static void *room(table_writer *w, int64_t n)
{
  const size_t size = 2 * cpu_kernel_math_bytes(w->math);
  void *here = w->at == NULL ? NULL : w->at + w->bytes;
  w->bytes += ((size_t)n * size + 128 + 63) / 64 * 64;
  return here;
}

// cos and sin of 2 pi k / n, from an angle of at most an eighth of a turn.
static void turn(int64_t k, int64_t n, double out[2])
{
  k %= n;
  const int64_t eighth = 8 * k / n;  // of a turn
  const int64_t near = (eighth + 1) / 2;
  // The angle from the nearest quarter of a turn, in quarters of n.
  const double angle = acos(-1.0) / 2 * ((double)(4 * k - near * n) / (double)n);
  const double c = cos(angle), s = sin(angle);
  switch (near % 4) {
    case 0: out[0] = c, out[1] = s; break;
    case 1: out[0] = -s, out[1] = c; break;
    case 2: out[0] = -c, out[1] = -s; break;
    default: out[0] = s, out[1] = -c; break;
  }
}

// Number i of a table becomes e^(sign 2 pi i k / n).
static void put_turn(const table_writer *w, void *table, int64_t i, int sign,
                     int64_t k, int64_t n)
{
  double c[2];
  turn(k, n, c);
  put(w, table, 2 * i, c[0]);
  put(w, table, 2 * i + 1, sign * c[1]);
}

static void fill_stages(table_writer *w, cpu_kernel_fft_stages *l)
{
  int64_t done = 1;
  for (int i = 0; i < l->n_factors; i++) {
    const int64_t f = l->factors[i];
    void *table = room(w, f + done * (f - 1));
    l->tables[i] = table;
    for (int64_t k = 0; table != NULL && k < f; k++) {
      put_turn(w, table, k, 1, k, f);
    }
    for (int64_t k = 0; table != NULL && k < done * (f - 1); k++) {
      const int64_t turns = k / (f - 1) * (k % (f - 1) + 1);
      put_turn(w, table, f + k, -1, turns, done * f);
    }
    done *= f;
  }
}

static void fill_turns(table_writer *w, cpu_kernel_fft_line *l)
{
  const int64_t lanes = cpu_kernel_fft_get(w->math)->lanes, n = l->first.n;
  const int64_t blocks = (l->second.n + lanes - 1) / lanes;
  void *steps = room(w, blocks * n), *turns = room(w, n * lanes);
  l->steps = steps;
  l->turns = turns;
  if (w->at == NULL) return;
  for (int64_t b = 0; b < blocks; b++) {
    for (int64_t k = 0; k < n; k++) {
      put_turn(w, steps, b * n + k, -1, k * b * lanes, l->wide);
    }
  }
  for (int64_t k = 0; k < n; k++) {
    for (int64_t j = 0; j < lanes; j++) {
      double c[2];
      turn(k * j, l->wide, c);
      put(w, turns, 2 * k * lanes + j, c[0]);
      put(w, turns, (2 * k + 1) * lanes + j, -c[1]);
    }
  }
}

// The transform of the chirp's conjugate, in double.
static calx_status *fill_filter(const table_writer *w, cpu_kernel_fft_line *l,
                                void *filter)
{
  const cpu_kernel_fft_fns *fns = &cpu_kernel_fft_16[CPU_KERNEL_F64];
  table_writer own = { .math = CPU_KERNEL_F64 };
  cpu_kernel_fft_line plain = { .n = l->wide, .wide = l->wide };
  (void)factor(l->wide, &plain.first);
  (void)factor(1, &plain.second);
  fill_stages(&own, &plain.first);
  const size_t numbers = (size_t)l->wide * 2 * sizeof(double);
  const size_t block =
      (size_t)cpu_kernel_fft_block_vectors(&plain) * 16;
  unsigned char *memory = cx_calloc(1, own.bytes + numbers + block);
  if (memory == NULL) return cx_out_of_memory();
  own.at = memory;
  own.bytes = 0;
  fill_stages(&own, &plain.first);
  double *x = (double *)(memory + own.bytes);
  for (int64_t k = 0; k < l->n; k++) {
    put_turn(&own, x, k, 1, k * k % (2 * l->n), 2 * l->n);
    if (k > 0) memcpy(x + 2 * (l->wide - k), x + 2 * k, 2 * sizeof *x);
  }
  const cpu_kernel_fft_place place = { .at = (unsigned char *)x, .step = 2 };
  const cpu_kernel_fft_blocks b = { .line = &plain,
                                    .stages = &plain.first,
                                    .from = place,
                                    .to = place,
                                    .lines = 1,
                                    .scale = 1.0 / (double)l->wide };
  fns->run(&b, 0, 1, memory + own.bytes + numbers);
  for (int64_t k = 0; k < 2 * l->wide; k++) put(w, filter, k, x[k]);
  cx_free(memory);
  return NULL;
}

static calx_status *fill(table_writer *w, cpu_kernel_fft_line *l)
{
  fill_stages(w, &l->first);
  fill_stages(w, &l->second);
  if (l->second.n > 1) fill_turns(w, l);
  if (l->halved) {
    void *halves = room(w, l->n / 2 + 1);
    l->halves = halves;
    for (int64_t k = 0; halves != NULL && k <= l->n / 2; k++) {
      put_turn(w, halves, k, -1, k, 2 * l->n);
    }
  }
  if (l->wide == l->n) return NULL;
  void *chirp = room(w, l->n), *filter = room(w, l->wide);
  if (w->at == NULL) return NULL;
  l->chirp = chirp;
  l->filter = filter;
  // k^2 modulo 2n keeps the angle exact.
  for (int64_t k = 0; k < l->n; k++) {
    put_turn(w, chirp, k, -1, k * k % (2 * l->n), 2 * l->n);
  }
  return fill_filter(w, l, filter);
}

size_t cpu_kernel_fft_line_bytes(const cpu_kernel_fft_line *l,
                                 cpu_kernel_math math)
{
  table_writer w = { .math = math };
  cpu_kernel_fft_line copy = *l;
  calx_status *none = fill(&w, &copy);
  (void)none;  // it only counts
  return w.bytes;
}

calx_status *cpu_kernel_fft_line_fill(cpu_kernel_fft_line *l,
                                      cpu_kernel_math math,
                                      unsigned char *at)
{
  table_writer w = { .math = math, .at = at };
  return fill(&w, l);
}

int64_t cpu_kernel_fft_block_vectors(const cpu_kernel_fft_line *l)
{
  const int64_t most =
      l->first.n > l->second.n ? l->first.n : l->second.n;
  return 4 * (most + 1);
}
