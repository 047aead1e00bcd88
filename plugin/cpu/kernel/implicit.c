// kernel/implicit: see implicit.h.
#include "kernel/implicit.h"

#include <string.h>

#include "base/alloc.h"

#define ROWS CPU_KERNEL_PACKED_ROWS
// Inner elements and rows of a block, columns of a part: what is read of both
// operands and the block of the result stay in the second cache, one panel of
// columns in the first.
#define INNER 256
#define BLOCK_ROWS 384
#define COLUMNS 768
// Inner elements of which all columns are packed at a time.
#define RUN 8

// ---- packing ----------------------------------------------------------------

// In place of rows outside of the input.
static const float zeros[INNER];

typedef struct implicit_job {
  const cpu_kernel_implicit_plan *p;
  cpu_threads *pool;
  const float *lhs, *rhs;
  float *out;
  unsigned char *scratch;
} implicit_job;

// What a thread works on: some groups of rows, some inner elements.
typedef struct implicit_block {
  const cpu_kernel_implicit_class *c;
  int64_t group, groups;  // of rows, of the class
  int64_t k, inner, all;  // inner elements: the first, how many, of all
  cpu_kernel_implicit_point *points;
  cpu_kernel_packed_segment *segments;
  int64_t of_tile;  // segments
  float *panels;    // of columns
  float *rows;      // packed, or of the result where they are apart
} implicit_block;

// Rows of the class: the first of a group.
static int64_t row_of(const implicit_block *x, int64_t group)
{
  return x->c->points * group / x->c->groups;
}

// Lists the segments of each tile's rows.
static void list_segments(const implicit_job *j, implicit_block *x)
{
  const cpu_kernel_implicit_plan *p = j->p;
  const int64_t first = row_of(x, x->group);
  cpu_kernel_packed_segment *s = x->segments;
  for (int64_t g = x->group; g < x->group + x->groups; g++) {
    const int64_t row = row_of(x, g), rows = row_of(x, g + 1) - row;
    for (int64_t k = x->k; k < x->k + x->inner; k += s++->k) {
      const cpu_kernel_implicit_tap *t = &p->taps[x->c->first_tap + k / p->run];
      const int64_t skip = k % p->run, left = x->k + x->inner - k;
      s->k = left < p->run - skip ? left : p->run - skip;
      for (int64_t i = 0; i < rows; i++) {
        const float *from = cpu_kernel_implicit_address(
            p, j->lhs, &x->points[row - first + i], t);
        s->rows[i] = from == NULL ? zeros : from + skip;
      }
    }
  }
  x->of_tile = (s - x->segments) / x->groups;
}

// A tap's run of elements of some inner elements, to the tap's groups
// [lo, hi), the first of which is at `to`.
static void pack_runs(const cpu_kernel_implicit_plan *p,
                      const float *const *from, int64_t n, int64_t lo,
                      int64_t hi, int64_t step, float *to)
{
  for (int64_t k = 0; k < n; k++, to += ROWS) {
    for (int64_t g = lo; g < hi; g++) {
      float *at = to + (g - lo) * step;
      const int64_t left = p->run - g * ROWS;
      if (from[k] == NULL || left < ROWS) memset(at, 0, sizeof *at * ROWS);
      if (from[k] == NULL) continue;
      if (left >= ROWS) {
        memcpy(at, from[k] + g * ROWS, sizeof *at * ROWS);
      } else {
        memcpy(at, from[k] + g * ROWS, sizeof *at * (size_t)left);
      }
    }
  }
}

static void pack_transposed(const implicit_job *j, const implicit_block *x)
{
  const cpu_kernel_implicit_plan *p = j->p;
  const int64_t of_tap = p->groups_of_tap, end = x->group + x->groups;
  for (int64_t g = x->group; g < end;) {
    const int64_t t = g / of_tap;
    const int64_t next = (t + 1) * of_tap < end ? (t + 1) * of_tap : end;
    const float *from[INNER];
    for (int64_t k = 0; k < x->inner; k++) {
      from[k] =
          cpu_kernel_implicit_address(p, j->lhs, &x->points[k], &p->taps[t]);
    }
    pack_runs(p, from, x->inner, g - t * of_tap, next - t * of_tap,
              ROWS * x->inner, x->rows + (g - x->group) * ROWS * x->inner);
    g = next;
  }
}

// Where the weights of an inner element begin.
static const float *weights_at(const implicit_job *j, const implicit_block *x,
                               int64_t k)
{
  const cpu_kernel_implicit_plan *p = j->p;
  if (p->transposed) return j->rhs + k * p->b_row;
  return j->rhs + p->taps[x->c->first_tap + k / p->run].other +
         k % p->run * p->b_row;
}

// A panel of the vectors [lo, hi) that are divided into panels.
typedef struct implicit_panel {
  int64_t column, n, vectors;
  float *at;
} implicit_panel;

static implicit_panel panel_of(const cpu_kernel_implicit_plan *p,
                               const implicit_block *x, int64_t lo, int64_t hi,
                               int64_t panels, int64_t which)
{
  const int64_t lanes = p->loops->lanes;
  const int64_t at = lo + (hi - lo) * which / panels;
  const int64_t vectors = lo + (hi - lo) * (which + 1) / panels - at;
  const int64_t left = p->n - at * lanes;
  return (implicit_panel){ .column = at * lanes,
                           .n = left < vectors * lanes ? left : vectors * lanes,
                           .vectors = vectors,
                           .at = x->panels + (at - lo) * lanes * x->inner };
}

// Packs the block's inner elements of the columns of all panels. Of some inner
// elements all columns are read before the next ones: they are one run in
// memory, of a few pages.
static void pack_weights(const implicit_job *j, const implicit_block *x,
                         int64_t lo, int64_t hi, int64_t panels)
{
  const cpu_kernel_implicit_plan *p = j->p;
  const int64_t most = p->b_column == 1 ? RUN : INNER;
  for (int64_t k = 0; k < x->inner;) {
    int64_t here = x->inner - k < most ? x->inner - k : most;
    const int64_t tap_left = p->run - (x->k + k) % p->run;
    if (!p->transposed && here > tap_left) here = tap_left;
    const float *from = weights_at(j, x, x->k + k);
    for (int64_t i = 0; i < panels; i++) {
      const implicit_panel a = panel_of(p, x, lo, hi, panels, i);
      const int64_t width = a.vectors * p->loops->lanes;
      p->loops->panel(from + a.column * p->b_column, p->b_row, p->b_column,
                      here, a.n, width, a.at + k * width);
    }
    k += here;
  }
}

// ---- running ----------------------------------------------------------------

// The rows of a group: how many, and where they are stored.
static int64_t group_rows(const implicit_job *j, const implicit_block *x,
                          int64_t g, float **out_c)
{
  const cpu_kernel_implicit_plan *p = j->p;
  if (p->transposed) {
    const int64_t skip = g % p->groups_of_tap * ROWS;
    *out_c = j->out + p->taps[g / p->groups_of_tap].other + skip * p->n;
    return p->run - skip < ROWS ? p->run - skip : ROWS;
  }
  const int64_t row = row_of(x, g);
  *out_c = p->apart ? x->rows + (row - row_of(x, x->group)) * p->n
                    : j->out + row * p->n;
  return row_of(x, g + 1) - row;
}

// The block by the columns [lo, hi), in vectors.
static void multiply(const implicit_job *j, const implicit_block *x, int64_t lo,
                     int64_t hi)
{
  const cpu_kernel_implicit_plan *p = j->p;
  const int64_t most = p->loops->vectors;
  const int64_t panels = (hi - lo + most - 1) / most;
  pack_weights(j, x, lo, hi, panels);
  for (int64_t i = 0; i < panels; i++) {
    const implicit_panel b = panel_of(p, x, lo, hi, panels, i);
    for (int64_t g = 0; g < x->groups; g++) {
      float *c;
      const int64_t rows = group_rows(j, x, x->group + g, &c);
      if (p->transposed) {
        p->loops->multiply(x->inner, x->rows + g * ROWS * x->inner, rows, b.at,
                           b.vectors, b.n, c + b.column, p->n, x->k > 0);
      } else {
        p->loops->multiply_at(x->of_tile, x->segments + g * x->of_tile, rows,
                              b.at, b.vectors, b.n, c + b.column, p->n,
                              x->k > 0);
      }
    }
  }
}

// The rows of a class, from where they are together to where they are apart;
// without a tap they are zeros.
static void spread_rows(const implicit_job *j, const implicit_block *x,
                        int64_t lo, int64_t hi)
{
  const int64_t lanes = j->p->loops->lanes, n = j->p->n;
  const int64_t column = lo * lanes;
  const int64_t end = hi * lanes < n ? hi * lanes : n;
  const int64_t rows = row_of(x, x->group + x->groups) - row_of(x, x->group);
  for (int64_t i = 0; i < rows; i++) {
    float *to = j->out + x->points[i].row + column;
    const size_t bytes = sizeof *to * (size_t)(end - column);
    if (x->c->taps == 0) {
      memset(to, 0, bytes);
    } else {
      memcpy(to, x->rows + i * n + column, bytes);
    }
  }
}

static void run_block(const implicit_job *j, implicit_block *x, int64_t part)
{
  const cpu_kernel_implicit_plan *p = j->p;
  const int64_t vectors = (p->n + p->loops->lanes - 1) / p->loops->lanes;
  const int64_t lo = vectors * part / p->parts;
  const int64_t hi = vectors * (part + 1) / p->parts;
  x->all = p->transposed ? x->c->points : x->c->taps * p->run;
  if (!p->transposed) {
    const int64_t row = row_of(x, x->group);
    cpu_kernel_implicit_list(x->c, row, row_of(x, x->group + x->groups) - row,
                             x->points);
  }
  for (x->k = 0; x->k < x->all; x->k += x->inner) {
    x->inner = x->all - x->k < INNER ? x->all - x->k : INNER;
    if (p->transposed) {
      cpu_kernel_implicit_list(x->c, x->k, x->inner, x->points);
      pack_transposed(j, x);
    } else {
      list_segments(j, x);
    }
    multiply(j, x, lo, hi);
  }
  if (p->apart) spread_rows(j, x, lo, hi);
}

static void run_tasks(void *user, int64_t lo, int64_t hi)
{
  const implicit_job *j = user;
  const cpu_kernel_implicit_plan *p = j->p;
  unsigned char *scratch =
      j->scratch + p->each * (size_t)cpu_kernel_rank(j->pool);
  implicit_block x = {
    .points = (cpu_kernel_implicit_point *)(void *)(scratch + p->points_at),
    .panels = (float *)(void *)(scratch + p->panels_at),
    .rows = (float *)(void *)(scratch + p->rows_at),
    .segments = (cpu_kernel_packed_segment *)(void *)(scratch + p->segments_at)
  };
  for (int64_t i = lo; i < hi; i++) {
    const int64_t number = i / p->parts;
    x.c = p->classes;
    while (number >= x.c->first_block + x.c->blocks) x.c++;
    const int64_t of = number - x.c->first_block;
    x.group = x.c->groups * of / x.c->blocks;
    x.groups = x.c->groups * (of + 1) / x.c->blocks - x.group;
    run_block(j, &x, i % p->parts);
  }
}

static calx_status *run_implicit(const cpu_kernel *kernel, cpu_threads *pool,
                                 const void *lhs, const void *rhs, void *out,
                                 unsigned char *scratch)
{
  const cpu_kernel_implicit_plan *p = kernel->plan;
  if (p->split &&
      cpu_kernel_implicit_run_split(p, pool, lhs, rhs, out, scratch)) {
    return NULL;
  }
  implicit_job j = {
    .p = p, .pool = pool, .lhs = lhs, .rhs = rhs, .out = out, .scratch = scratch
  };
  cpu_threads_for(pool, p->blocks * p->parts, 1, run_tasks, &j);
  return NULL;
}

// ---- making -----------------------------------------------------------------

// Every thread has several tasks, if the columns are enough for that.
#define TASKS 3
#define PART_COLUMNS 128

static void divide(cpu_kernel_implicit_plan *p, int64_t threads)
{
  for (int i = 0; i < p->n_classes; i++) {
    cpu_kernel_implicit_class *c = &p->classes[i];
    c->groups = p->transposed ? c->taps * p->groups_of_tap
                              : (c->points + p->group - 1) / p->group;
    c->first_block = p->blocks;
    const int64_t most = BLOCK_ROWS / p->group;
    c->blocks = (c->groups + most - 1) / most;
    p->blocks += c->blocks;
  }
  p->parts = (p->n + COLUMNS - 1) / COLUMNS;
  while (threads > 1 && p->blocks * p->parts < TASKS * threads &&
         p->n / (p->parts + 1) >= PART_COLUMNS) {
    p->parts++;
  }
}

// Columns of a part's panels, whose vectors are rounded up.
#define PANEL_COLUMNS (COLUMNS + 128)

static size_t reserve(cpu_kernel_implicit_plan *p, size_t bytes)
{
  const size_t at = p->each;
  p->each += (bytes + 63) / 64 * 64;
  return at;
}

static void plan_scratch(cpu_kernel_implicit_plan *p)
{
  const size_t points = BLOCK_ROWS > INNER ? BLOCK_ROWS : INNER;
  const int64_t each = p->transposed ? INNER : p->apart ? p->n : 0;
  const int64_t tiles = p->transposed ? 0 : BLOCK_ROWS / p->group;
  p->points_at = reserve(p, sizeof(cpu_kernel_implicit_point) * points);
  p->panels_at = reserve(p, sizeof(float) * INNER * PANEL_COLUMNS);
  p->rows_at = reserve(p, sizeof(float) * (size_t)(BLOCK_ROWS * each));
  p->segments_at = reserve(
      p, sizeof(cpu_kernel_packed_segment) * (size_t)(tiles * p->segments));
}

static void free_plan(void *user)
{
  cpu_kernel_implicit_plan *p = user;
  cx_free(p->taps);
  cx_free(p);
}

static const char *name_of(const cpu_kernel_implicit_plan *p)
{
  if (p->split) {
    return p->transposed ? "split transposed implicit product"
                         : "split implicit product";
  }
  return p->transposed ? "transposed implicit product" : "implicit product";
}

void cpu_kernel_implicit_set(cpu_kernel *kernel, cpu_kernel_implicit_plan *p)
{
  p->loops = cpu_kernel_packed_get();
  p->group = p->transposed ? ROWS : p->loops->rows;
  p->groups_of_tap = (p->run + ROWS - 1) / ROWS;
  p->segments = (INNER - 1) / p->run + 2;
  divide(p, kernel->threads);
  plan_scratch(p);
  (void)cpu_kernel_reserve(kernel, p->each * (size_t)kernel->threads);
  p->split = cpu_kernel_implicit_plan_split(kernel, p);
  cpu_kernel_set(kernel, run_implicit, p, name_of(p));
  kernel->free_plan = free_plan;
}
