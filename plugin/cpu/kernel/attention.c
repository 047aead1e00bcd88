// kernel/attention: see attention.h. The heads of all batches are divided among
// the threads; the rows of a head too, where heads are fewer.
#include "kernel/attention.h"

#include <string.h>

#include "base/alloc.h"
#include "kernel/half.h"
#include "kernel/lanes.h"

// Floats of a strip, so that two of them stay in a core's cache.
#define STRIP_FLOATS 65536
#define MOST_STRIP_ROWS 60  // a multiple of the product's tiles
#define LEAST_STRIP_ROWS 6
// A score this far below its row's largest one has a probability of 0.
#define VANISHES 104.0F

// Matrices in a thread's scratch.
enum {
  K_TURNED,  // (width, keys) in panels
  V_DENSE,   // (keys, value_width)
  Q_ROWS,    // (strip, width)
  OUT_ROWS,  // (strip, value_width)
  SCORES,    // (strip, keys)
  ROW_SUMS,  // (2, strip)
  // Of the gradient:
  K_DENSE,
  V_TURNED,
  GRADS,    // (strip, keys)
  DQ_ROWS,  // (strip, width)
  DK_DENSE,
  DV_DENSE,
  MATRICES
};

typedef struct attention_plan {
  cpu_kernel_attention_desc d;
  const cpu_kernel_attention_loops *loops;
  int64_t batches, parts;  // parts: of the rows of a batch
  int64_t strip;           // rows
  int64_t wide_keys, wide, wide_value;  // sizes in scratch
  float scale, hidden, factor[4];
  size_t at[MATRICES], scratch_at, scratch_each;  // floats; bytes
} attention_plan;

// ---- checking ---------------------------------------------------------------

static int64_t columns_of(const cpu_kernel_attention_desc *d, int t)
{
  switch (t) {
    case CPU_KERNEL_ATTENTION_MASK: return d->keys;
    case CPU_KERNEL_ATTENTION_V:
    case CPU_KERNEL_ATTENTION_OUT:
    case CPU_KERNEL_ATTENTION_DV: return d->value_width;
    default: return d->width;
  }
}

static int64_t rows_of(const cpu_kernel_attention_desc *d, int t)
{
  return t == CPU_KERNEL_ATTENTION_K || t == CPU_KERNEL_ATTENTION_V ||
                 t == CPU_KERNEL_ATTENTION_DK || t == CPU_KERNEL_ATTENTION_DV
             ? d->keys
             : d->rows;
}

// Adds to the offset of a tensor's last element; false: it is too large.
static bool reach(int64_t size, int64_t stride, int64_t *io_last)
{
  if (stride < 0 || stride >= CPU_KERNEL_MOST ||
      (size > 1 && stride > CPU_KERNEL_MOST / (size - 1))) {
    return false;
  }
  *io_last += stride * (size - 1);
  return *io_last < CPU_KERNEL_MOST;
}

// The elements from the first to the last one; -1: too many.
static int64_t extent(const cpu_kernel_attention_desc *d, int t)
{
  const cpu_kernel_attention_layout *l = &d->layout[t];
  int64_t last = 0;
  bool ok = reach(rows_of(d, t), l->row, &last) &&
            reach(columns_of(d, t), l->column, &last);
  for (int64_t i = 0; ok && i < d->n_batch; i++) {
    ok = reach(d->batch[i], l->batch[i], &last);
  }
  return ok ? last + 1 : -1;
}

// All sizes are above 0 and their product is bounded.
static bool is_sound(const cpu_kernel_attention_desc *d, int64_t *batches)
{
  if ((d->type != CX_HLO_F32 && d->type != CX_HLO_BF16) || d->backward < 0 ||
      d->backward > 1 || d->masking < 0 ||
      d->masking >= CPU_KERNEL_ATTENTION_MASKINGS || d->n_batch < 0 ||
      d->n_batch > CPU_KERNEL_ATTENTION_DIMS) {
    return false;
  }
  int64_t bound = 1, n = 0;
  const int64_t sizes[4] = { d->rows, d->keys, d->width, d->value_width };
  if (!cpu_kernel_count(d->n_batch, d->batch, &bound, batches) ||
      !cpu_kernel_count(4, sizes, &bound, &n) || *batches == 0 || n == 0) {
    return false;
  }
  return d->masking == CPU_KERNEL_ATTENTION_NO_MASK ||
         d->layout[CPU_KERNEL_ATTENTION_MASK].column == 1;
}

size_t cpu_kernel_attention_sizes(const cpu_kernel_desc *desc,
                                  size_t sizes[CPU_KERNEL_BUFFERS])
{
  cpu_kernel_attention_desc d;
  memcpy(&d, desc, sizeof d);
  int64_t batches = 0;
  if (d.kind != CPU_KERNEL_ATTENTION || !is_sound(&d, &batches)) return 0;
  size_t count = 0;
  for (int t = 0; t < CPU_KERNEL_ATTENTION_TENSORS; t++) {
    if (!cpu_kernel_attention_has(&d, t)) continue;
    const size_t each = t != CPU_KERNEL_ATTENTION_MASK
                            ? cx_hlo_elem_bytes((cx_hlo_elem)d.type)
                        : d.masking == CPU_KERNEL_ATTENTION_ADD ? 4
                                                                : 1;
    const int64_t n = extent(&d, t);
    if (n < 0) return 0;
    sizes[count++] = (size_t)n * each;
  }
  return count;
}

double cpu_kernel_attention_flops(const cpu_kernel_desc *desc)
{
  const cpu_kernel_attention_desc *d =
      (const cpu_kernel_attention_desc *)desc->words;
  int64_t batches = 0;
  if (!is_sound(d, &batches)) return 0;
  const double each =
      2 * (double)batches * (double)d->rows * (double)d->keys;
  const double width = (double)d->width, value = (double)d->value_width;
  return d->backward != 0 ? each * (3 * width + 2 * value)
                          : each * (width + value);
}

// ---- memory -----------------------------------------------------------------

static int64_t offset(const attention_plan *p, int t, int64_t batch)
{
  int64_t at = 0;
  for (int64_t i = p->d.n_batch - 1; i >= 0; i--) {
    at += batch % p->d.batch[i] * p->d.layout[t].batch[i];
    batch /= p->d.batch[i];
  }
  return at;
}

// Rows of a head, which become dense rows of `to_row` elements, padded with
// zeros.
static void take(const attention_plan *p, int t, const void *from,
                 int64_t batch, int64_t first, int64_t n, float *to,
                 int64_t to_row)
{
  const cpu_kernel_attention_layout *l = &p->d.layout[t];
  const int64_t columns = columns_of(&p->d, t);
  const int64_t base = offset(p, t, batch);
  for (int64_t i = 0; i < n; i++, to += to_row) {
    const int64_t at = base + (first + i) * l->row;
    if (p->d.type == CX_HLO_BF16) {
      const uint16_t *x = (const uint16_t *)from + at;
      for (int64_t j = 0; j < columns; j++) {
        to[j] = cpu_kernel_bf16_widen(x[j * l->column]);
      }
    } else if (l->column == 1) {
      memcpy(to, (const float *)from + at, sizeof *to * (size_t)columns);
    } else {
      const float *x = (const float *)from + at;
      for (int64_t j = 0; j < columns; j++) to[j] = x[j * l->column];
    }
    memset(to + columns, 0, sizeof *to * (size_t)(to_row - columns));
  }
}

// The inverse, times `factor` and, if there are any, over the rows' sums.
static void give(const attention_plan *p, int t, void *out, int64_t batch,
                 int64_t first, int64_t n, const float *x, int64_t x_row,
                 const float *sums)
{
  const cpu_kernel_attention_layout *l = &p->d.layout[t];
  const int64_t columns = columns_of(&p->d, t);
  const int64_t base = offset(p, t, batch);
  const float factor = p->factor[t - CPU_KERNEL_ATTENTION_OUT];
  for (int64_t i = 0; i < n; i++, x += x_row) {
    const int64_t at = base + (first + i) * l->row;
    const float by = sums == NULL ? factor : factor / sums[i];
    if (p->d.type == CX_HLO_BF16) {
      uint16_t *to = (uint16_t *)out + at;
      for (int64_t j = 0; j < columns; j++) {
        to[j * l->column] = cpu_kernel_bf16_round(x[j] * by);
      }
    } else if (l->column == 1) {
      float *to = (float *)out + at;
      for (int64_t j = 0; j < columns; j++) to[j] = x[j] * by;
    } else {
      float *to = (float *)out + at;
      for (int64_t j = 0; j < columns; j++) to[j * l->column] = x[j] * by;
    }
  }
}

// (wide_keys, wide) becomes (columns, wide_keys) in panels.
static void turn(const attention_plan *p, const float *x, int64_t wide,
                 float *to)
{
  const int64_t panel = CPU_KERNEL_ATTENTION_PANEL;
  for (int64_t i = 0; i < p->wide_keys; i += CPU_KERNEL_LANES) {
    float *at = to + i / panel * panel * wide + i % panel;
    for (int64_t j = 0; j < wide; j += CPU_KERNEL_LANES) {
      cpu_kernel_lanes_get()->transpose(x + i * wide + j, wide, at + j * panel,
                                        panel);
    }
  }
}

// ---- one head ---------------------------------------------------------------

typedef struct attention_run {
  const attention_plan *p;
  cpu_threads *pool;
  unsigned char *scratch;
  void *tensors[CPU_KERNEL_ATTENTION_TENSORS];
} attention_run;

typedef struct head {
  const attention_run *r;
  const attention_plan *p;
  int64_t batch;
  float *m[MATRICES];
  bool finite;  // what a probability of 0 is multiplied with
  int64_t row, rows;  // of the strip
  cpu_kernel_attention_strip strip;
} head;

static head head_of(const attention_run *r, int64_t batch)
{
  const attention_plan *p = r->p;
  head h = { .r = r, .p = p, .batch = batch };
  float *scratch = (float *)(r->scratch + (size_t)cpu_kernel_rank(r->pool) *
                                              p->scratch_each);
  for (int i = 0; i < MATRICES; i++) h.m[i] = scratch + p->at[i];
  h.strip = (cpu_kernel_attention_strip){ .scores = h.m[SCORES],
                                          .row = p->wide_keys,
                                          .keys = p->d.keys,
                                          .scale = p->scale,
                                          .hidden = p->hidden,
                                          .masking = (int)p->d.masking,
                                          .most = h.m[ROW_SUMS],
                                          .total = h.m[ROW_SUMS] + p->strip };
  return h;
}

// Takes K and V. Without the gradient V_TURNED is free: K is dense there first.
static void begin_head(head *h)
{
  const attention_plan *p = h->p;
  const attention_run *r = h->r;
  float *k = h->m[K_DENSE], *v = h->m[V_DENSE];
  const int64_t keys = p->d.keys, more = p->wide_keys - keys;
  take(p, CPU_KERNEL_ATTENTION_K, r->tensors[CPU_KERNEL_ATTENTION_K], h->batch,
       0, keys, k, p->wide);
  take(p, CPU_KERNEL_ATTENTION_V, r->tensors[CPU_KERNEL_ATTENTION_V], h->batch,
       0, keys, v, p->wide_value);
  memset(k + keys * p->wide, 0, sizeof *k * (size_t)(more * p->wide));
  memset(v + keys * p->wide_value, 0,
         sizeof *v * (size_t)(more * p->wide_value));
  turn(p, k, p->wide, h->m[K_TURNED]);
  h->finite = p->loops->is_finite(v, p->wide_keys * p->wide_value);
  if (p->d.backward == 0) return;
  turn(p, v, p->wide_value, h->m[V_TURNED]);
  h->finite = h->finite && p->loops->is_finite(k, p->wide_keys * p->wide);
}

// The columns that the mask shows to some row of the strip; false: none.
static bool shown_columns(const head *h, int64_t *lo, int64_t *hi)
{
  const cpu_kernel_attention_strip *s = &h->strip;
  const unsigned char *mask = s->mask;
  const bool keep = s->masking == CPU_KERNEL_ATTENTION_KEEP;
  unsigned char hidden[8];  // in a row
  memset(hidden, keep ? 0 : 1, sizeof hidden);
  *lo = s->keys;
  *hi = 0;
  for (int64_t i = 0; i < h->rows; i++, mask += s->mask_row) {
    int64_t from = 0, to = s->keys;
    while (from < *lo && (mask[from] != 0) != keep) from++;
    while (to - 8 >= *hi && memcmp(mask + to - 8, hidden, 8) == 0) to -= 8;
    while (to > *hi && (mask[to - 1] != 0) != keep) to--;
    if (from < *lo) *lo = from;
    if (to > *hi) *hi = to;
  }
  return *lo < *hi;
}

static void compute_scores(head *h)
{
  const attention_plan *p = h->p;
  cpu_kernel_attention_strip *s = &h->strip;
  const int64_t panel_floats = CPU_KERNEL_ATTENTION_PANEL * p->wide;
  p->loops->multiply(&(cpu_kernel_attention_product){
      .m = h->rows,
      .n = s->hi - s->lo,
      .k = p->d.width,
      .a = h->m[Q_ROWS],
      .a_row = p->wide,
      .a_column = 1,
      .b = h->m[K_TURNED] + s->lo / CPU_KERNEL_ATTENTION_PANEL * panel_floats,
      .b_row = CPU_KERNEL_ATTENTION_PANEL,
      .b_panel = panel_floats,
      .c = s->scores + s->lo,
      .c_row = s->row });
  p->loops->softmax(s);
}

// Whether the scores that were left out have a probability of 0 in each row,
// which no NaN hides.
static bool may_leave_out(const head *h)
{
  bool may = h->finite;
  for (int64_t i = 0; i < h->rows; i++) {
    may = may && h->strip.most[i] - h->strip.hidden >= VANISHES;
  }
  return may;
}

// exp(score - most) of the rows from h->row on.
static void make_strip(head *h)
{
  const attention_plan *p = h->p;
  const attention_run *r = h->r;
  cpu_kernel_attention_strip *s = &h->strip;
  const int64_t left = p->d.rows - h->row;
  h->rows = s->rows = left < p->strip ? left : p->strip;
  take(p, CPU_KERNEL_ATTENTION_Q, r->tensors[CPU_KERNEL_ATTENTION_Q], h->batch,
       h->row, h->rows, h->m[Q_ROWS], p->wide);
  if (p->d.masking != CPU_KERNEL_ATTENTION_NO_MASK) {
    const cpu_kernel_attention_layout *l =
        &p->d.layout[CPU_KERNEL_ATTENTION_MASK];
    const int64_t bytes = p->d.masking == CPU_KERNEL_ATTENTION_ADD ? 4 : 1;
    const int64_t at =
        offset(p, CPU_KERNEL_ATTENTION_MASK, h->batch) + h->row * l->row;
    s->mask = (const unsigned char *)r->tensors[CPU_KERNEL_ATTENTION_MASK] +
              at * bytes;
    s->mask_row = l->row;
  }
  const int64_t panel = CPU_KERNEL_ATTENTION_PANEL;
  int64_t lo = 0, hi = 0;
  if ((s->masking == CPU_KERNEL_ATTENTION_KEEP ||
       s->masking == CPU_KERNEL_ATTENTION_HIDE) &&
      h->finite && shown_columns(h, &lo, &hi)) {
    s->lo = lo / panel * panel;
    s->hi = (hi + panel - 1) / panel * panel;
    compute_scores(h);
    if (may_leave_out(h)) return;
  }
  s->lo = 0;
  s->hi = p->wide_keys;
  compute_scores(h);
}

// The columns of the strip that are keys.
static int64_t keys_of(const head *h)
{
  const int64_t hi = h->strip.hi;
  return (hi < h->p->d.keys ? hi : h->p->d.keys) - h->strip.lo;
}

// to (strip, wide) = x (strip, keys) b (keys, wide).
static void times_keys(const head *h, const float *x, const float *b,
                       int64_t wide, float *to)
{
  h->p->loops->multiply(&(cpu_kernel_attention_product){
      .m = h->rows,
      .n = wide,
      .k = keys_of(h),
      .a = x + h->strip.lo,
      .a_row = h->strip.row,
      .a_column = 1,
      .b = b + h->strip.lo * wide,
      .b_row = wide,
      .b_panel = CPU_KERNEL_ATTENTION_PANEL,
      .c = to,
      .c_row = wide });
}

// to (keys, wide) += x (strip, keys) transposed, times b (strip, wide).
static void add_turned(const head *h, const float *x, const float *b,
                       int64_t wide, float *to)
{
  h->p->loops->multiply(&(cpu_kernel_attention_product){
      .m = keys_of(h),
      .n = wide,
      .k = h->rows,
      .a = x + h->strip.lo,
      .a_row = 1,
      .a_column = h->strip.row,
      .b = b,
      .b_row = wide,
      .b_panel = CPU_KERNEL_ATTENTION_PANEL,
      .c = to + h->strip.lo * wide,
      .c_row = wide,
      .add = true });
}

static void run_forward(void *user, int64_t from, int64_t to)
{
  const attention_run *r = user;
  const attention_plan *p = r->p;
  const int64_t strips = (p->d.rows + p->strip - 1) / p->strip;
  head h = { 0 };
  for (int64_t i = from; i < to; i++) {
    if (i == from || i % p->parts == 0) {
      h = head_of(r, i / p->parts);
      begin_head(&h);
    }
    const int64_t end = (i % p->parts + 1) * strips / p->parts;
    for (int64_t s = i % p->parts * strips / p->parts; s < end; s++) {
      h.row = s * p->strip;
      make_strip(&h);
      times_keys(&h, h.m[SCORES], h.m[V_DENSE], p->wide_value, h.m[OUT_ROWS]);
      give(p, CPU_KERNEL_ATTENTION_OUT, r->tensors[CPU_KERNEL_ATTENTION_OUT],
           h.batch, h.row, h.rows, h.m[OUT_ROWS], p->wide_value,
           h.strip.total);
    }
  }
}

static void backward_strip(head *h)
{
  const attention_plan *p = h->p;
  const cpu_kernel_attention_strip *s = &h->strip;
  const int64_t panel_floats = CPU_KERNEL_ATTENTION_PANEL * p->wide_value;
  take(p, CPU_KERNEL_ATTENTION_OUT, h->r->tensors[CPU_KERNEL_ATTENTION_OUT],
       h->batch, h->row, h->rows, h->m[OUT_ROWS], p->wide_value);
  p->loops->multiply(&(cpu_kernel_attention_product){
      .m = h->rows,
      .n = s->hi - s->lo,
      .k = p->d.value_width,
      .a = h->m[OUT_ROWS],
      .a_row = p->wide_value,
      .a_column = 1,
      .b = h->m[V_TURNED] + s->lo / CPU_KERNEL_ATTENTION_PANEL * panel_floats,
      .b_row = CPU_KERNEL_ATTENTION_PANEL,
      .b_panel = panel_floats,
      .c = h->m[GRADS] + s->lo,
      .c_row = s->row });
  p->loops->gradient(s, h->m[GRADS]);
  times_keys(h, h->m[GRADS], h->m[K_DENSE], p->wide, h->m[DQ_ROWS]);
  add_turned(h, h->m[GRADS], h->m[Q_ROWS], p->wide, h->m[DK_DENSE]);
  add_turned(h, h->m[SCORES], h->m[OUT_ROWS], p->wide_value, h->m[DV_DENSE]);
  give(p, CPU_KERNEL_ATTENTION_DQ, h->r->tensors[CPU_KERNEL_ATTENTION_DQ],
       h->batch, h->row, h->rows, h->m[DQ_ROWS], p->wide, NULL);
}

// Whether all rows of a tensor that a probability of 0 is multiplied with are
// finite. The first strip's scratch is free before the strips.
static bool rows_are_finite(const head *h, int t, float *scratch, int64_t wide)
{
  bool finite = true;
  for (int64_t row = 0; finite && row < h->p->d.rows; row += h->p->strip) {
    const int64_t left = h->p->d.rows - row;
    const int64_t n = left < h->p->strip ? left : h->p->strip;
    take(h->p, t, h->r->tensors[t], h->batch, row, n, scratch, wide);
    finite = h->p->loops->is_finite(scratch, n * wide);
  }
  return finite;
}

static void run_backward(void *user, int64_t from, int64_t to)
{
  const attention_run *r = user;
  const attention_plan *p = r->p;
  for (int64_t i = from; i < to; i++) {
    head h = head_of(r, i);
    begin_head(&h);
    h.finite = h.finite &&
               rows_are_finite(&h, CPU_KERNEL_ATTENTION_Q, h.m[Q_ROWS],
                               p->wide) &&
               rows_are_finite(&h, CPU_KERNEL_ATTENTION_OUT, h.m[OUT_ROWS],
                               p->wide_value);
    const size_t keys = (size_t)p->wide_keys;
    memset(h.m[DK_DENSE], 0, sizeof(float) * keys * (size_t)p->wide);
    memset(h.m[DV_DENSE], 0, sizeof(float) * keys * (size_t)p->wide_value);
    for (h.row = 0; h.row < p->d.rows; h.row += p->strip) {
      make_strip(&h);
      backward_strip(&h);
    }
    give(p, CPU_KERNEL_ATTENTION_DK, r->tensors[CPU_KERNEL_ATTENTION_DK], i, 0,
         p->d.keys, h.m[DK_DENSE], p->wide, NULL);
    give(p, CPU_KERNEL_ATTENTION_DV, r->tensors[CPU_KERNEL_ATTENTION_DV], i, 0,
         p->d.keys, h.m[DV_DENSE], p->wide_value, NULL);
  }
}

static calx_status *run_attention(const cpu_kernel *kernel, cpu_threads *pool,
                                  void *const *buffers)
{
  const attention_plan *p = kernel->plan;
  attention_run r = { .p = p, .pool = pool };
  int next = 0;
  for (int t = 0; t < CPU_KERNEL_ATTENTION_TENSORS; t++) {
    if (cpu_kernel_attention_has(&p->d, t)) r.tensors[t] = buffers[next++];
  }
  r.scratch = (unsigned char *)buffers[next] + p->scratch_at;
  cpu_threads_for(pool, p->batches * p->parts, 1,
                  p->d.backward != 0 ? run_backward : run_forward, &r);
  return NULL;
}

// ---- making -----------------------------------------------------------------

bool cpu_kernel_attention_has(const cpu_kernel_attention_desc *d, int t)
{
  if (t == CPU_KERNEL_ATTENTION_MASK) {
    return d->masking != CPU_KERNEL_ATTENTION_NO_MASK;
  }
  return t <= CPU_KERNEL_ATTENTION_OUT || d->backward != 0;
}

static float number(int64_t bits)
{
  return cpu_kernel_f32_from_bits((uint32_t)bits);
}

static int64_t round_up(int64_t n, int64_t to)
{
  return (n + to - 1) / to * to;
}

static void plan_scratch(cpu_kernel *kernel, attention_plan *p)
{
  const int64_t k = p->wide_keys, n = p->strip;
  const int64_t floats[MATRICES] = {
    [K_TURNED] = k * p->wide, [V_DENSE] = k * p->wide_value,
    [Q_ROWS] = n * p->wide,   [OUT_ROWS] = n * p->wide_value,
    [SCORES] = n * k,         [ROW_SUMS] = 2 * n,
    [K_DENSE] = k * p->wide,  [V_TURNED] = k * p->wide_value,
    [GRADS] = n * k,          [DQ_ROWS] = n * p->wide,
    [DK_DENSE] = k * p->wide, [DV_DENSE] = k * p->wide_value,
  };
  const int used = p->d.backward != 0 ? MATRICES : K_DENSE + 1;
  int64_t total = 0;
  for (int i = 0; i < used; i++) {
    p->at[i] = (size_t)total;
    total += round_up(floats[i], CPU_KERNEL_ATTENTION_ROUND);
  }
  p->scratch_each = (size_t)total * sizeof(float);
  p->scratch_at =
      cpu_kernel_reserve(kernel, p->scratch_each * (size_t)kernel->threads);
}

static void plan_sizes(attention_plan *p, int threads)
{
  const cpu_kernel_attention_desc *d = &p->d;
  p->wide_keys = round_up(d->keys, CPU_KERNEL_ATTENTION_PANEL);
  p->wide = round_up(d->width, CPU_KERNEL_ATTENTION_ROUND);
  p->wide_value = round_up(d->value_width, CPU_KERNEL_ATTENTION_ROUND);
  int64_t rows = STRIP_FLOATS / p->wide_keys / LEAST_STRIP_ROWS;
  rows *= LEAST_STRIP_ROWS;
  p->strip = rows < LEAST_STRIP_ROWS  ? LEAST_STRIP_ROWS
             : rows > MOST_STRIP_ROWS ? MOST_STRIP_ROWS
                                      : rows;
  const int64_t strips = (d->rows + p->strip - 1) / p->strip;
  p->parts = 1;
  if (d->backward == 0 && p->batches < threads) {
    const int64_t wanted = (threads + p->batches - 1) / p->batches;
    p->parts = wanted < strips ? wanted : strips;
  }
  p->scale = number(d->scale);
  p->hidden = number(d->hidden);
  for (int i = 0; i < 4; i++) p->factor[i] = number(d->factor[i]);
}

calx_status *cpu_kernel_attention_new(cpu_kernel *kernel)
{
  attention_plan *p = cx_calloc(1, sizeof *p);
  if (p == NULL) return cx_out_of_memory();
  cpu_kernel_set(kernel, NULL, p, "attention");
  kernel->run_buffers = run_attention;
  memcpy(&p->d, &kernel->desc, sizeof p->d);
  kernel->n_buffers =
      (int)cpu_kernel_attention_sizes(&kernel->desc, kernel->bytes);
  if (kernel->n_buffers == 0 || !is_sound(&p->d, &p->batches)) {
    return cx_invalid("a description of an attention contradicts itself");
  }
  const int bytes = cpu_kernel_vector_bytes();
  p->loops = bytes == 64   ? &cpu_kernel_attention_64
             : bytes == 32 ? &cpu_kernel_attention_32
                           : &cpu_kernel_attention_16;
  plan_sizes(p, kernel->threads);
  plan_scratch(kernel, p);
  return NULL;
}
