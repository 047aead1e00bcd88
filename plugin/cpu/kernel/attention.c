// kernel/attention: see attention.h. The heads of all batches are divided among
// the threads; the rows of a head too, where heads are fewer.
#include <string.h>

#include "kernel/attention_plan.h"
#include "kernel/lanes.h"

// A score this far below its row's largest one has a probability of 0.
#define VANISHES 104.0F

// ---- memory -----------------------------------------------------------------

static int64_t offset(const cpu_kernel_attention_plan *p, int t, int64_t batch)
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
static void take(const cpu_kernel_attention_plan *p, int t, const void *from,
                 int64_t batch, int64_t first, int64_t n, float *to,
                 int64_t to_row)
{
  const cpu_kernel_attention_layout *l = &p->d.layout[t];
  const int64_t columns = cpu_kernel_attention_columns(&p->d, t);
  const int64_t base = offset(p, t, batch);
  for (int64_t i = 0; i < n; i++, to += to_row) {
    const int64_t at = base + (first + i) * l->row;
    if (l->column == 1) {
      memcpy(to, (const float *)from + at, sizeof *to * (size_t)columns);
    } else {
      const float *x = (const float *)from + at;
      for (int64_t j = 0; j < columns; j++) to[j] = x[j * l->column];
    }
    memset(to + columns, 0, sizeof *to * (size_t)(to_row - columns));
  }
}

// The inverse, times `factor` and, if there are any, over the rows' sums.
static void give(const cpu_kernel_attention_plan *p, int t, void *out,
                 int64_t batch, int64_t first, int64_t n, const float *x,
                 int64_t x_row, const float *sums)
{
  const cpu_kernel_attention_layout *l = &p->d.layout[t];
  const int64_t columns = cpu_kernel_attention_columns(&p->d, t);
  const int64_t base = offset(p, t, batch);
  const float factor = p->factor[t - CPU_KERNEL_ATTENTION_OUT];
  for (int64_t i = 0; i < n; i++, x += x_row) {
    const int64_t at = base + (first + i) * l->row;
    const float by = sums == NULL ? factor : factor / sums[i];
    float *to = (float *)out + at;
    for (int64_t j = 0; j < columns; j++) to[j * l->column] = x[j] * by;
  }
}

// (wide_keys, wide) becomes (columns, wide_keys) in panels.
static void turn(const cpu_kernel_attention_plan *p, const float *x,
                 int64_t wide, float *to)
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

typedef struct heads_run {
  const cpu_kernel_attention_plan *p;
  cpu_threads *pool;
  unsigned char *scratch;
  void *tensors[CPU_KERNEL_ATTENTION_TENSORS];
} heads_run;

typedef struct one_head {
  const heads_run *r;
  const cpu_kernel_attention_plan *p;
  int64_t batch;
  float *m[CPU_KERNEL_ATTENTION_MATRICES];
  bool finite;        // what a probability of 0 is multiplied with
  int64_t row, rows;  // of the strip
  cpu_kernel_attention_strip strip;
} one_head;

static one_head head_of(const heads_run *r, int64_t batch)
{
  const cpu_kernel_attention_plan *p = r->p;
  one_head h = { .r = r, .p = p, .batch = batch };
  float *scratch = (float *)(r->scratch + (size_t)cpu_kernel_rank(r->pool) *
                                              p->scratch_each);
  for (int i = 0; i < CPU_KERNEL_ATTENTION_MATRICES; i++)
    h.m[i] = scratch + p->at[i];
  h.strip = (cpu_kernel_attention_strip){
    .scores = h.m[CPU_KERNEL_ATTENTION_SCORES],
    .row = p->wide_keys,
    .keys = p->d.keys,
    .scale = p->scale,
    .hidden = p->hidden,
    .masking = (int)p->d.masking,
    .most = h.m[CPU_KERNEL_ATTENTION_ROW_SUMS],
    .total = h.m[CPU_KERNEL_ATTENTION_ROW_SUMS] + p->strip
  };
  return h;
}

// Takes K and V. Without the gradient CPU_KERNEL_ATTENTION_V_TURNED is free: K
// is dense there first.
static void begin_head(one_head *h)
{
  const cpu_kernel_attention_plan *p = h->p;
  const heads_run *r = h->r;
  float *k = h->m[CPU_KERNEL_ATTENTION_K_DENSE],
        *v = h->m[CPU_KERNEL_ATTENTION_V_DENSE];
  const int64_t keys = p->d.keys, more = p->wide_keys - keys;
  take(p, CPU_KERNEL_ATTENTION_K, r->tensors[CPU_KERNEL_ATTENTION_K], h->batch,
       0, keys, k, p->wide);
  take(p, CPU_KERNEL_ATTENTION_V, r->tensors[CPU_KERNEL_ATTENTION_V], h->batch,
       0, keys, v, p->wide_value);
  memset(k + keys * p->wide, 0, sizeof *k * (size_t)(more * p->wide));
  memset(v + keys * p->wide_value, 0,
         sizeof *v * (size_t)(more * p->wide_value));
  turn(p, k, p->wide, h->m[CPU_KERNEL_ATTENTION_K_TURNED]);
  h->finite = p->loops->is_finite(v, p->wide_keys * p->wide_value);
  if (p->d.backward == 0) return;
  turn(p, v, p->wide_value, h->m[CPU_KERNEL_ATTENTION_V_TURNED]);
  h->finite = h->finite && p->loops->is_finite(k, p->wide_keys * p->wide);
}

// The columns that the mask shows to some row of the strip; false: none.
static bool shown_columns(const one_head *h, int64_t *lo, int64_t *hi)
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

static void compute_scores(one_head *h)
{
  const cpu_kernel_attention_plan *p = h->p;
  cpu_kernel_attention_strip *s = &h->strip;
  const int64_t panel_floats = CPU_KERNEL_ATTENTION_PANEL * p->wide;
  p->loops->multiply(&(cpu_kernel_attention_product){
      .m = h->rows,
      .n = s->hi - s->lo,
      .k = p->d.width,
      .a = h->m[CPU_KERNEL_ATTENTION_Q_ROWS],
      .a_row = p->wide,
      .a_column = 1,
      .b = h->m[CPU_KERNEL_ATTENTION_K_TURNED] +
           s->lo / CPU_KERNEL_ATTENTION_PANEL * panel_floats,
      .b_row = CPU_KERNEL_ATTENTION_PANEL,
      .b_panel = panel_floats,
      .c = s->scores + s->lo,
      .c_row = s->row });
  p->loops->softmax(s);
}

// Whether the scores that were left out have a probability of 0 in each row,
// which no NaN hides.
static bool may_leave_out(const one_head *h)
{
  bool may = h->finite;
  for (int64_t i = 0; i < h->rows; i++) {
    may = may && h->strip.most[i] - h->strip.hidden >= VANISHES;
  }
  return may;
}

// exp(score - most) of the rows from h->row on.
static void make_strip(one_head *h)
{
  const cpu_kernel_attention_plan *p = h->p;
  const heads_run *r = h->r;
  cpu_kernel_attention_strip *s = &h->strip;
  const int64_t left = p->d.rows - h->row;
  h->rows = s->rows = left < p->strip ? left : p->strip;
  take(p, CPU_KERNEL_ATTENTION_Q, r->tensors[CPU_KERNEL_ATTENTION_Q], h->batch,
       h->row, h->rows, h->m[CPU_KERNEL_ATTENTION_Q_ROWS], p->wide);
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
static int64_t keys_of(const one_head *h)
{
  const int64_t hi = h->strip.hi;
  return (hi < h->p->d.keys ? hi : h->p->d.keys) - h->strip.lo;
}

// to (strip, wide) = x (strip, keys) b (keys, wide).
static void times_keys(const one_head *h, const float *x, const float *b,
                       int64_t wide, float *to)
{
  h->p->loops->multiply(
      &(cpu_kernel_attention_product){ .m = h->rows,
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
static void add_turned(const one_head *h, const float *x, const float *b,
                       int64_t wide, float *to)
{
  h->p->loops->multiply(
      &(cpu_kernel_attention_product){ .m = keys_of(h),
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
  const heads_run *r = user;
  const cpu_kernel_attention_plan *p = r->p;
  const int64_t strips = (p->d.rows + p->strip - 1) / p->strip;
  one_head h = { 0 };
  for (int64_t i = from; i < to; i++) {
    if (i == from || i % p->parts == 0) {
      h = head_of(r, i / p->parts);
      begin_head(&h);
    }
    const int64_t end = (i % p->parts + 1) * strips / p->parts;
    for (int64_t s = i % p->parts * strips / p->parts; s < end; s++) {
      h.row = s * p->strip;
      make_strip(&h);
      times_keys(&h, h.m[CPU_KERNEL_ATTENTION_SCORES],
                 h.m[CPU_KERNEL_ATTENTION_V_DENSE], p->wide_value,
                 h.m[CPU_KERNEL_ATTENTION_OUT_ROWS]);
      give(p, CPU_KERNEL_ATTENTION_OUT, r->tensors[CPU_KERNEL_ATTENTION_OUT],
           h.batch, h.row, h.rows, h.m[CPU_KERNEL_ATTENTION_OUT_ROWS],
           p->wide_value, h.strip.total);
    }
  }
}

static void backward_strip(one_head *h)
{
  const cpu_kernel_attention_plan *p = h->p;
  const cpu_kernel_attention_strip *s = &h->strip;
  const int64_t panel_floats = CPU_KERNEL_ATTENTION_PANEL * p->wide_value;
  take(p, CPU_KERNEL_ATTENTION_OUT, h->r->tensors[CPU_KERNEL_ATTENTION_OUT],
       h->batch, h->row, h->rows, h->m[CPU_KERNEL_ATTENTION_OUT_ROWS],
       p->wide_value);
  p->loops->multiply(&(cpu_kernel_attention_product){
      .m = h->rows,
      .n = s->hi - s->lo,
      .k = p->d.value_width,
      .a = h->m[CPU_KERNEL_ATTENTION_OUT_ROWS],
      .a_row = p->wide_value,
      .a_column = 1,
      .b = h->m[CPU_KERNEL_ATTENTION_V_TURNED] +
           s->lo / CPU_KERNEL_ATTENTION_PANEL * panel_floats,
      .b_row = CPU_KERNEL_ATTENTION_PANEL,
      .b_panel = panel_floats,
      .c = h->m[CPU_KERNEL_ATTENTION_GRADS] + s->lo,
      .c_row = s->row });
  p->loops->gradient(s, h->m[CPU_KERNEL_ATTENTION_GRADS]);
  times_keys(h, h->m[CPU_KERNEL_ATTENTION_GRADS],
             h->m[CPU_KERNEL_ATTENTION_K_DENSE], p->wide,
             h->m[CPU_KERNEL_ATTENTION_DQ_ROWS]);
  add_turned(h, h->m[CPU_KERNEL_ATTENTION_GRADS],
             h->m[CPU_KERNEL_ATTENTION_Q_ROWS], p->wide,
             h->m[CPU_KERNEL_ATTENTION_DK_DENSE]);
  add_turned(h, h->m[CPU_KERNEL_ATTENTION_SCORES],
             h->m[CPU_KERNEL_ATTENTION_OUT_ROWS], p->wide_value,
             h->m[CPU_KERNEL_ATTENTION_DV_DENSE]);
  give(p, CPU_KERNEL_ATTENTION_DQ, h->r->tensors[CPU_KERNEL_ATTENTION_DQ],
       h->batch, h->row, h->rows, h->m[CPU_KERNEL_ATTENTION_DQ_ROWS], p->wide,
       NULL);
}

// Whether all rows of a tensor that a probability of 0 is multiplied with are
// finite. The first strip's scratch is free before the strips.
static bool rows_are_finite(const one_head *h, int t, float *scratch,
                            int64_t wide)
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
  const heads_run *r = user;
  const cpu_kernel_attention_plan *p = r->p;
  for (int64_t i = from; i < to; i++) {
    one_head h = head_of(r, i);
    begin_head(&h);
    h.finite =
        h.finite &&
        rows_are_finite(&h, CPU_KERNEL_ATTENTION_Q,
                        h.m[CPU_KERNEL_ATTENTION_Q_ROWS], p->wide) &&
        rows_are_finite(&h, CPU_KERNEL_ATTENTION_OUT,
                        h.m[CPU_KERNEL_ATTENTION_OUT_ROWS], p->wide_value);
    const size_t keys = (size_t)p->wide_keys;
    memset(h.m[CPU_KERNEL_ATTENTION_DK_DENSE], 0,
           sizeof(float) * keys * (size_t)p->wide);
    memset(h.m[CPU_KERNEL_ATTENTION_DV_DENSE], 0,
           sizeof(float) * keys * (size_t)p->wide_value);
    for (h.row = 0; h.row < p->d.rows; h.row += p->strip) {
      make_strip(&h);
      backward_strip(&h);
    }
    give(p, CPU_KERNEL_ATTENTION_DK, r->tensors[CPU_KERNEL_ATTENTION_DK], i, 0,
         p->d.keys, h.m[CPU_KERNEL_ATTENTION_DK_DENSE], p->wide, NULL);
    give(p, CPU_KERNEL_ATTENTION_DV, r->tensors[CPU_KERNEL_ATTENTION_DV], i, 0,
         p->d.keys, h.m[CPU_KERNEL_ATTENTION_DV_DENSE], p->wide_value, NULL);
  }
}

calx_status *cpu_kernel_attention_run(const cpu_kernel *kernel,
                                      cpu_threads *pool, void *const *buffers)
{
  const cpu_kernel_attention_plan *p = kernel->plan;
  heads_run r = { .p = p, .pool = pool };
  int next = 0;
  for (int t = 0; t < CPU_KERNEL_ATTENTION_TENSORS; t++) {
    if (cpu_kernel_attention_has(&p->d, t)) r.tensors[t] = buffers[next++];
  }
  r.scratch = (unsigned char *)buffers[next] + p->scratch_at;
  cpu_threads_for(pool, p->batches * p->parts, 1,
                  p->d.backward != 0 ? run_backward : run_forward, &r);
  return NULL;
}
