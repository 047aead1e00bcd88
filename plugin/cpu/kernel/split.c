// kernel/split: see split.h.
//
// c and the inner elements are divided into parts, which are computed by one
// thread each. A part's inner elements are divided into blocks. Of a block the
// thread packs the part's columns of b in panels of 32, which stay in its
// second cache. Then it packs the part's rows of a in bands of 32, each of
// which it multiplies with all panels at once.
#include "kernel/split.h"

#if defined(__x86_64__)

#include <math.h>

#include "kernel/split_pack.h"
#include "kernel/split_tiles.h"

#define MOST_STEPS (CPU_KERNEL_SPLIT_INNER / STEP)  // of a block
// Of a part: 1.1 MB.
#define MOST_PANELS (CPU_KERNEL_SPLIT_MOST_LINES / BAND)

// Of each thread.
typedef struct scratch {
  _Alignas(64) float gathered[BAND * CPU_KERNEL_SPLIT_INNER];
  cpu_kernel_split_sums sums[2];
  unsigned char packed[];  // a band, and the panels of a part
} scratch;

typedef struct job {
  const cpu_kernel_split *s;
  cpu_threads *pool;
  unsigned char *memory;  // scratch of each thread
  size_t each;
  int64_t n_bands, n_panels;
  int64_t steps, blocks;  // of the inner elements
  int64_t down, across;   // parts, one below the other and side by side
  int64_t depth;          // parts of the inner elements
  _Atomic bool special;   // an infinity or NaN was found
} job;

// What a thread works on: a part of c, a block of inner elements.
typedef struct split_block {
  cpu_kernel_split s;  // where its sums belong
  bool first;          // of the part's inner elements
  int64_t band, last_band, panel, last_panel;
  int64_t number, k, inner;  // of the block; the first of it, how many
} split_block;

static void set_block(const job *j, int64_t number, split_block *x)
{
  x->number = number;
  x->k = j->steps * number / j->blocks * STEP;
  x->inner = least(j->steps * (number + 1) / j->blocks * STEP, j->s->k) - x->k;
}

// ---- packing ----------------------------------------------------------------

// Sets where the lines begin; copies them if there is a function for it.
static void find_lines(const cpu_kernel_split *s, const float *operand,
                       cpu_kernel_split_gather *gather, int64_t first,
                       int64_t k, float *to, cpu_kernel_split_lines *io_l)
{
  if (gather == NULL) {
    io_l->from = operand + first * io_l->apart + k * io_l->next;
    return;
  }
  gather(s->user, first, io_l->n, k, io_l->inner, to);
  io_l->from = to;
  if (io_l->next == 1) {
    io_l->apart = io_l->inner;
  } else {
    io_l->next = BAND;
  }
}

static void pack_band(const job *j, const split_block *x, int64_t band,
                      float *gathered, cpu_kernel_split_packed *to)
{
  const cpu_kernel_split *s = j->s;
  const int64_t first = band * BAND;
  cpu_kernel_split_lines l = { .n = least(s->m - first, BAND),
                               .inner = x->inner,
                               .apart = s->a_row,
                               .next = s->a_column };
  find_lines(s, s->a, s->gather_a, first, x->k, gathered, &l);
  cpu_kernel_split_find_exponents(&l, &to->exponent);
  cpu_kernel_split_pack_lines(&l, to);
}

static cpu_kernel_split_packed *panel_at(const job *j, unsigned char *panels,
                                         int64_t i)
{
  void *at = panels + i * cpu_kernel_split_panel_bytes(j->s->k);
  return at;
}

static cpu_kernel_split_packed *band_of(scratch *t)
{
  return (cpu_kernel_split_packed *)(void *)t->packed;
}

static unsigned char *panels_of(const job *j, scratch *t)
{
  return (unsigned char *)panel_at(j, t->packed, 1);
}

// Columns from `first` on, n of them.
static cpu_kernel_split_lines columns_of(const job *j, const split_block *x,
                                         int64_t first, int64_t n,
                                         float *gathered)
{
  const cpu_kernel_split *s = j->s;
  cpu_kernel_split_lines l = { .n = least(s->n - first, n),
                               .inner = x->inner,
                               .apart = s->b_column,
                               .next = s->b_row,
                               .pairs = true };
  find_lines(s, s->b, s->gather_b, first, x->k, gathered, &l);
  return l;
}

// Finds the exponents of all panels at once if they need not be gathered.
static void pack_panels(const job *j, const split_block *x, float *gathered,
                        unsigned char *panels)
{
  float exponents[MOST_PANELS];
  const bool at_once = j->s->gather_b == NULL;
  if (at_once) {
    const cpu_kernel_split_lines all = columns_of(
        j, x, x->panel * BAND, (x->last_panel - x->panel) * BAND, NULL);
    cpu_kernel_split_find_exponents(&all, exponents);
  }
  for (int64_t i = 0; i < x->last_panel - x->panel; i++) {
    const cpu_kernel_split_lines l =
        columns_of(j, x, (x->panel + i) * BAND, BAND, gathered);
    if (!at_once) cpu_kernel_split_find_exponents(&l, &exponents[i]);
    cpu_kernel_split_packed *to = panel_at(j, panels, i);
    to->exponent = exponents[i];
    cpu_kernel_split_pack_lines(&l, to);
  }
}

// Reads a band's rows into the second cache before they are packed: a share of
// them while each panel of the band before is multiplied.
static void prefetch_band(const job *j, const split_block *x, int64_t band,
                          int64_t panel)
{
  const cpu_kernel_split *s = j->s;
  if (s->gather_a != NULL || band >= x->last_band) return;
  const int64_t lines = least(s->m - band * BAND, BAND);
  const float *from = s->a + band * BAND * s->a_row + x->k * s->a_column;
  const bool across = s->a_row == 1;
  const int64_t rows = across ? x->inner : lines;
  const int64_t columns = across ? lines : x->inner;
  const int64_t stride = across ? s->a_column : s->a_row;
  const int64_t panels = x->last_panel - x->panel, share = panel - x->panel;
  for (int64_t i = rows * share / panels; i < rows * (share + 1) / panels;
       i++) {
    for (int64_t c = 0; c < columns; c += SIDE) {
      _mm_prefetch((const char *)(from + i * stride + c), _MM_HINT_T1);
    }
  }
}

// ---- multiplying ------------------------------------------------------------

// The first of the block's panels. They are packed here unless all of b is.
static unsigned char *find_panels(const job *j, const split_block *x,
                                  scratch *t)
{
  if (j->s->packed != NULL) {
    return (unsigned char *)panel_at(j, j->s->packed,
                                     x->number * j->n_panels + x->panel);
  }
  pack_panels(j, x, t->gathered, panels_of(j, t));
  return panels_of(j, t);
}

static void multiply_block(job *j, const split_block *x, scratch *t)
{
  cpu_kernel_split_packed *band = band_of(t);
  unsigned char *panels = find_panels(j, x, t);
  cpu_kernel_split_sums *before = &t->sums[0], *next = &t->sums[1];
  before->exponent = 0;
  before->m = before->n = before->rows = before->written = 0;
  for (int64_t i = x->band; i < x->last_band; i++) {
    pack_band(j, x, i, t->gathered, band);
    finish_stores();
    for (int64_t p = x->panel; p < x->last_panel; p++) {
      const cpu_kernel_split_packed *panel = panel_at(j, panels, p - x->panel);
      next->exponent = band->exponent + panel->exponent;
      if (isnan(next->exponent)) {
        atomic_store(&j->special, true);
        return;
      }
      next->first = x->first;
      next->m = i * BAND;
      next->n = p * BAND;
      next->rows = least(BAND, x->s.m - next->m);
      next->written = 0;
      prefetch_band(j, x, i + 1, p);
      cpu_kernel_split_multiply(&x->s, x->inner, band, panel, before, next);
      cpu_kernel_split_sums *written = before;
      before = next;
      next = written;
    }
  }
  cpu_kernel_split_write(&x->s, before, BAND);
}

// The product with the memory for the sums of part `deep` of the inner
// elements.
static cpu_kernel_split part_of(const job *j, int64_t deep)
{
  cpu_kernel_split s = *j->s;
  if (deep > 0) {
    s.c = s.sums + (deep - 1) * s.m * s.n;
    s.c_rows = NULL;
  }
  return s;
}

static void multiply_part(job *j, int64_t part, void *memory)
{
  const int64_t deep = part / (j->down * j->across);
  const int64_t across = part / j->down % j->across, down = part % j->down;
  split_block x = { .s = part_of(j, deep),
                    .first = true,
                    .band = j->n_bands * down / j->down,
                    .last_band = j->n_bands * (down + 1) / j->down,
                    .panel = j->n_panels * across / j->across,
                    .last_panel = j->n_panels * (across + 1) / j->across };
  const int64_t end = j->blocks * (deep + 1) / j->depth;
  for (int64_t b = j->blocks * deep / j->depth;
       b < end && !atomic_load(&j->special); b++) {
    set_block(j, b, &x);
    multiply_block(j, &x, memory);
    x.first = false;
  }
}

static void multiply_parts(void *user, int64_t lo, int64_t hi)
{
  job *j = user;
  void *memory = j->memory + j->each * (size_t)cpu_kernel_rank(j->pool);
  configure();
  for (int64_t i = lo; i < hi; i++) multiply_part(j, i, memory);
  _tile_release();
}

// Adds the sums of all parts of the inner elements: of the rows [lo, hi).
static void add_sums(void *user, int64_t lo, int64_t hi)
{
  const job *j = user;
  const cpu_kernel_split *s = j->s;
  for (int64_t i = lo; i < hi; i++) {
    float *row = s->c + (s->c_rows != NULL ? s->c_rows[i] : i * s->n);
    for (int64_t deep = 1; deep < j->depth; deep++) {
      const float *sums = s->sums + ((deep - 1) * s->m + i) * s->n;
      for (int64_t c = 0; c < s->n; c++) row[c] += sums[c];
    }
  }
}

// ---- running ----------------------------------------------------------------

size_t cpu_kernel_split_scratch(int64_t n, int64_t k)
{
  // Prefetching reads a step behind the last panel.
  const int64_t panels = least(parts_of(n, BAND), MOST_PANELS);
  return sizeof(scratch) +
         (size_t)((panels + 1) * cpu_kernel_split_panel_bytes(k) + STEP_BYTES);
}

// Each thread gets as many parts as the others, or has so many that it does not
// matter. Not more than that: for each part rows and columns are packed again.
#define MANY_PARTS 4
// Multiplications that are worth a thread.
#define THREAD_WORTH ((double)(1 << 18))
// Additions that are.
#define SUMS_WORTH 16384

static int64_t threads_for(const job *j)
{
  const cpu_kernel_split *s = j->s;
  const double worth =
      (double)s->m * (double)s->n * (double)s->k / THREAD_WORTH;
  const int64_t threads = cpu_threads_inside() ? 1 : cpu_threads_size(j->pool);
  return worth < (double)threads ? (int64_t)worth : threads;
}

static void divide(job *j)
{
  const int64_t threads = threads_for(j);
  j->down = 1;
  j->across = j->s->packed != NULL ? 1 : parts_of(j->n_panels, MOST_PANELS);
  if (threads <= 1) return;
  while (j->depth * j->down * j->across % threads != 0 &&
         j->depth * j->down * j->across < MANY_PARTS * threads &&
         (j->down < j->n_bands || j->across < j->n_panels)) {
    if (j->n_bands / j->down >= j->n_panels / j->across) {
      j->down++;
    } else {
      j->across++;
    }
  }
}

static job job_of(const cpu_kernel_split *s, cpu_threads *pool)
{
  const int64_t steps = parts_of(s->k, STEP);
  return (job){ .s = s,
                .pool = pool,
                .n_bands = parts_of(s->m, BAND),
                .n_panels = parts_of(s->n, BAND),
                .steps = steps,
                .blocks = parts_of(steps, MOST_STEPS),
                .depth = s->sums == NULL
                             ? 1
                             : cpu_kernel_split_depth(s->m, s->n, s->k) };
}

bool cpu_kernel_split_run(const cpu_kernel_split *s, cpu_threads *pool,
                          unsigned char *memory, size_t each)
{
  job j = job_of(s, pool);
  j.memory = memory;
  j.each = each;
  divide(&j);
  cpu_threads_for(pool, j.depth * j.down * j.across, 1, multiply_parts, &j);
  if (atomic_load(&j.special)) return false;
  if (j.depth > 1) {
    cpu_threads_for(pool, s->m, SUMS_WORTH / (j.depth * s->n) + 1, add_sums,
                    &j);
  }
  return true;
}

static void pack_range(void *user, int64_t lo, int64_t hi)
{
  const job *j = user;
  for (int64_t i = lo; i < hi; i++) {
    const int64_t panel = i % j->n_panels;
    split_block x = { .panel = panel, .last_panel = panel + 1 };
    set_block(j, i / j->n_panels, &x);
    pack_panels(j, &x, NULL, (unsigned char *)panel_at(j, j->s->packed, i));
  }
}

void cpu_kernel_split_pack(const cpu_kernel_split *s, cpu_threads *pool)
{
  job j = job_of(s, pool);
  cpu_threads_for(pool, j.blocks * j.n_panels, 1, pack_range, &j);
}

#else

size_t cpu_kernel_split_scratch(int64_t n, int64_t k)
{
  (void)n;
  (void)k;
  return 0;
}

void cpu_kernel_split_pack(const cpu_kernel_split *s, cpu_threads *pool)
{
  (void)s;
  (void)pool;
}

bool cpu_kernel_split_run(const cpu_kernel_split *s, cpu_threads *pool,
                          unsigned char *memory, size_t each)
{
  (void)s;
  (void)pool;
  (void)memory;
  (void)each;
  return false;
}

#endif
