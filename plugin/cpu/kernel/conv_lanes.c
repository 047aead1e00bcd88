// kernel/conv_lanes: convolutions with few channels, 16 images at a time; see
// lanes.h.
//
// A block of 16 images at a time is transposed into lanes, convolved and, of
// forward and of an input gradient, transposed back, all in one thread's cache.
// Nothing is copied where the tensors have that order already, as opt/lanes.c
// makes them: (blocks, height, width, channels, 16), where the blocks are a
// third spatial dimension. A gradient by the weights sums over the images: each
// part of the blocks has sums of its own, lane by lane, which are added up at
// the end.
#include <string.h>

#include "base/alloc.h"
#include "kernel/conv_lanes.h"

// Limits above which vectors of channels are full, or blocks leave the cache.
#define MOST_CHANNELS 12
#define MOST_OUTS 64
#define MOST_BLOCK ((int64_t)1 << 18)  // floats
#define MOST_SUMS ((int64_t)1 << 20)
// After so many blocks the sums of a gradient in f32 are added up in f64.
#define SUMMED_BLOCKS 16

typedef struct lanes_plan {
  cpu_kernel_conv_desc d;
  const cpu_kernel_lanes_loops *loops;
  cpu_kernel_lanes l;  // of a gradient: outs padded to loops->gradient_outs[by]
  bool gradient;
  int by;
  int64_t count, blocks;  // images
  int64_t parts, slices;  // of a gradient's blocks; of the result's rows
  // The input; the kernel; the result (of a gradient: features as channels).
  cpu_kernel_lanes_images x, g, y;
  bool x_there, g_there, y_there;              // in the order of lanes
  int64_t x_floats, y_floats, g_floats, sums;  // of a block; floats
  // In scratch; y_at: g's.
  size_t w_at, x_at, y_at, sums_at, total_at;
} lanes_plan;

// To (outs / OUTS, taps, channels, OUTS), padded with zeros.
static void pack_weights(const lanes_plan *p, const float *from, float *to)
{
  const cpu_kernel_lanes *l = &p->l;
  const cpu_kernel_lanes_images *w = &p->g;
  from += w->first;
  for (int64_t o = 0; o < l->outs; o += CPU_KERNEL_LANES_OUTS) {
    for (int64_t t = 0; t < l->taps[0] * l->taps[1]; t++) {
      for (int64_t c = 0; c < l->channels; c++) {
        const float *at = from + c * w->lane + t / l->taps[1] * w->row +
                          t % l->taps[1] * w->column;
        for (int64_t i = 0; i < CPU_KERNEL_LANES_OUTS; i++) {
          *to++ = o + i < l->outs ? at[(o + i) * w->channel] : 0;
        }
      }
    }
  }
}

// ---- running ----------------------------------------------------------------

typedef struct lanes_job {
  const lanes_plan *p;
  cpu_threads *pool;
  const float *lhs, *rhs;
  float *out, *w, *x, *y, *sums;
  double *total;
} lanes_job;

// A block of a tensor in the order of lanes: itself, or a copy at `to`.
static const float *in_lanes(const cpu_kernel_lanes_images *m, bool there,
                             const float *from, int64_t block,
                             const cpu_kernel_lanes_layout *layout, float *to)
{
  if (there) return from + m->first + block * m->block;
  cpu_kernel_lanes_pack(m, from, block, layout, to);
  return to;
}

// Items: blocks, slices of the rows.
static void run_forward(void *user, int64_t lo, int64_t hi)
{
  const lanes_job *j = user;
  const lanes_plan *p = j->p;
  const int64_t rank = cpu_kernel_rank(j->pool);
  const cpu_kernel_lanes_layout input = cpu_kernel_lanes_input(&p->l);
  float *copy = j->x + rank * p->x_floats, *results = j->y + rank * p->y_floats;
  const float *x = NULL;
  for (int64_t i = lo; i < hi; i++) {
    const int64_t b = i / p->slices, slice = i % p->slices;
    const int64_t rows = p->l.results[0];
    float *y = p->y_there ? j->out + b * p->y.block : results;
    if (i == lo || slice == 0) {
      x = in_lanes(&p->x, p->x_there, j->lhs, b, &input, copy);
    }
    p->loops->forward(&p->l, x, j->w, slice * rows / p->slices,
                      (slice + 1) * rows / p->slices, y);
    if (!p->y_there) cpu_kernel_lanes_unpack(&p->y, y, b, j->out);
  }
}

// The layout of a gradient's kernel, whose out features are padded.
static cpu_kernel_lanes_layout kernel_layout(const lanes_plan *p)
{
  cpu_kernel_lanes_layout layout = cpu_kernel_lanes_dense(&p->g);
  layout.channels = p->l.outs;
  return layout;
}

// Adds the sums of each result's lanes to its total, and clears them.
static void add_up(float *sums, int64_t results, double *total)
{
  for (int64_t i = 0; i < results; i++) {
    // Four chains of additions, because each waits for the one before.
    double sum[4] = { 0 };
    float *of = sums + i * CPU_KERNEL_LANES;
    for (int k = 0; k < CPU_KERNEL_LANES; k++) sum[k % 4] += (double)of[k];
    memset(of, 0, CPU_KERNEL_LANES * sizeof *of);
    total[i] += sum[0] + sum[1] + (sum[2] + sum[3]);
  }
}

// Items: parts of the blocks, slices of the rows.
static void run_gradient(void *user, int64_t lo, int64_t hi)
{
  const lanes_job *j = user;
  const lanes_plan *p = j->p;
  const cpu_kernel_lanes *l = &p->l;
  const int64_t rank = cpu_kernel_rank(j->pool);
  const cpu_kernel_lanes_layout input = cpu_kernel_lanes_input(l);
  const cpu_kernel_lanes_layout kernel = kernel_layout(p);
  const int64_t row = l->results[1] * l->channels * l->outs;
  float *x = j->x + rank * p->x_floats, *g = j->y + rank * p->g_floats;
  float *sums = j->sums + rank * p->sums;
  memset(sums, 0, sizeof *sums * (size_t)p->sums);
  for (int64_t i = lo; i < hi; i++) {
    const int64_t part = i / p->slices, slice = i % p->slices;
    const int64_t first = slice * l->results[0] / p->slices;
    const int64_t end = (slice + 1) * l->results[0] / p->slices;
    double *total = j->total + (part * l->results[0] + first) * row;
    memset(total, 0, sizeof *total * (size_t)((end - first) * row));
    int64_t b = part * p->blocks / p->parts, added = 0;
    while (b < (part + 1) * p->blocks / p->parts) {
      const float *from = in_lanes(&p->x, p->x_there, j->lhs, b, &input, x);
      const float *by = in_lanes(&p->g, p->g_there, j->rhs, b, &kernel, g);
      p->loops->gradient(l, p->by, from, by, first, end, sums);
      b++;
      if (++added % SUMMED_BLOCKS != 0) continue;
      add_up(sums + first * row * CPU_KERNEL_LANES, (end - first) * row, total);
    }
    add_up(sums + first * row * CPU_KERNEL_LANES, (end - first) * row, total);
  }
}

// The totals of all parts, to the result.
static void store_totals(const lanes_job *j)
{
  const lanes_plan *p = j->p;
  const cpu_kernel_lanes *l = &p->l;
  const int64_t each = p->sums / CPU_KERNEL_LANES;
  for (int64_t i = 0; i < each; i++) {
    const int64_t o = i % l->outs, c = i / l->outs % l->channels;
    const int64_t tap = i / l->outs / l->channels;
    if (o >= p->d.kernel_out) continue;
    double sum = 0;
    for (int64_t k = 0; k < p->parts; k++) sum += j->total[k * each + i];
    j->out[c * p->y.lane + o * p->y.channel + tap / l->results[1] * p->y.row +
           tap % l->results[1] * p->y.column] = (float)sum;
  }
}

static calx_status *run_lanes(const cpu_kernel *kernel, cpu_threads *pool,
                              const void *lhs, const void *rhs, void *out,
                              unsigned char *scratch)
{
  const lanes_plan *p = kernel->plan;
  lanes_job j = { .p = p,
                  .pool = pool,
                  .lhs = lhs,
                  .rhs = rhs,
                  .out = out,
                  .w = (float *)(scratch + p->w_at),
                  .x = (float *)(scratch + p->x_at),
                  .y = (float *)(scratch + p->y_at),
                  .sums = (float *)(scratch + p->sums_at),
                  .total = (double *)(void *)(scratch + p->total_at) };
  if (!p->gradient) {
    pack_weights(p, rhs, j.w);
    cpu_threads_for(pool, p->blocks * p->slices, 1, run_forward, &j);
    return NULL;
  }
  cpu_threads_for(pool, p->parts * p->slices, 1, run_gradient, &j);
  store_totals(&j);
  return NULL;
}

// ---- making -----------------------------------------------------------------

static double fill(int64_t n, int64_t of)
{
  return (double)n / (double)((n + of - 1) / of * of);
}

// Of a gradient: the index in gradient_outs of the number whose multiple is
// nearer to outs; of equally near ones, of the larger.
static int nearest(const cpu_kernel_lanes_loops *loops, int64_t outs)
{
  const int *n = loops->gradient_outs;
  const double first = fill(outs, n[0]), second = fill(outs, n[1]);
  return second > first || (second == first && n[1] > n[0]) ? 1 : 0;
}

// How many blocks of 16 images the first of three spatial dimensions counts; 0:
// it does not.
static int64_t blocks_of(const cpu_kernel_conv_desc *d, bool gradient)
{
  const cpu_kernel_conv_dim *m = &d->dims[0];
  if (d->n_dims != 3 || m->low != 0 || m->high != 0 || m->stride != 1 ||
      m->in_dilation != 1 || m->kernel_dilation != 1 || m->reversed != 0 ||
      (gradient ? d->features : d->batch) != CPU_KERNEL_LANES) {
    return 0;
  }
  return m->in == (gradient ? m->kernel : m->out) ? m->in : 0;
}

// Whether the images are the last dimension of both operands, and there are
// more taps than results, as in a gradient by the weights.
static bool sums_over_lanes(const cpu_kernel_conv_desc *d)
{
  double taps = 1, results = 1;
  for (int64_t i = 0; i < d->n_dims; i++) {
    taps *= (double)d->dims[i].kernel;
    results *= (double)d->dims[i].out;
  }
  return d->features == CPU_KERNEL_LANES && d->at[0][1] == d->n_dims + 1 &&
         d->at[1][0] == d->n_dims + 1 && taps > results;
}

static bool is_gradient(const cpu_kernel_conv_desc *d)
{
  return cpu_kernel_conv_seems_by_weights(d) || sums_over_lanes(d);
}

static void plan_gradient(lanes_plan *p, int threads)
{
  cpu_kernel_lanes *l = &p->l;
  p->by = nearest(p->loops, l->outs);
  const int64_t each = p->loops->gradient_outs[p->by];
  l->outs = (l->outs + each - 1) / each * each;
  p->g_floats = l->outs * l->taps[0] * l->taps[1] * CPU_KERNEL_LANES;
  p->sums =
      l->results[0] * l->results[1] * l->channels * l->outs * CPU_KERNEL_LANES;
  p->parts = p->blocks < threads ? p->blocks : threads;
  p->slices = (threads + p->parts - 1) / p->parts;
  const cpu_kernel_lanes_layout kernel = kernel_layout(p);
  p->g_there = cpu_kernel_lanes_are_there(&p->g, &kernel);
}

static void plan_images(lanes_plan *p, int threads)
{
  const cpu_kernel_conv_desc *d = &p->d;
  cpu_kernel_conv_tensors s;
  cpu_kernel_conv_tensors_of(d, &s);
  const int lane = p->gradient ? 1 : 0;
  cpu_kernel_lanes *l = &p->l;
  const int64_t in_order = blocks_of(d, p->gradient);
  l->channels = p->gradient ? d->batch : d->features;
  l->outs = d->kernel_out;
  p->count = p->gradient ? d->features : d->batch;
  if (in_order > 0) p->count *= in_order;
  p->blocks = (p->count + CPU_KERNEL_LANES - 1) / CPU_KERNEL_LANES;
  p->x = cpu_kernel_lanes_images_of(d, s.stride[0], lane, p->count, l->channels,
                                    l->in);
  p->y = cpu_kernel_lanes_images_of(d, s.stride[2], 0, p->count, l->outs,
                                    l->results);
  // The kernel: of a gradient its images, else the weights, (in, out) as lanes
  // and channels.
  p->g =
      cpu_kernel_lanes_images_of(d, s.stride[1], 0, p->count, l->outs, l->taps);
  cpu_kernel_lanes_reverse(d, &p->g);
  p->x_floats = l->channels * l->in[0] * l->width * CPU_KERNEL_LANES;
  const cpu_kernel_lanes_layout input = cpu_kernel_lanes_input(l);
  p->x_there = cpu_kernel_lanes_are_there(&p->x, &input);
  if (p->gradient) {
    plan_gradient(p, threads);
  } else {
    const cpu_kernel_lanes_layout output = cpu_kernel_lanes_dense(&p->y);
    p->y_floats = l->outs * l->results[0] * l->results[1] * CPU_KERNEL_LANES;
    p->y_there = cpu_kernel_lanes_are_there(&p->y, &output);
    p->slices = p->y_there ? (threads + p->blocks - 1) / p->blocks : 1;
  }
  if (p->slices > l->results[0]) p->slices = l->results[0];
}

// A description can have any size, so this is checked before multiplying.
static bool is_small(const cpu_kernel_conv_desc *d)
{
  if (d->feature_groups != 1 || d->batch_groups != 1 || d->n_dims < 1 ||
      d->batch > 1 << 20 || d->features > 1 << 20 ||
      d->kernel_out > MOST_OUTS ||
      (d->n_dims > 2 && blocks_of(d, is_gradient(d)) == 0)) {
    return false;
  }
  return cpu_kernel_lanes_are_near(d);
}

static bool is_suited(const lanes_plan *p, int threads)
{
  const cpu_kernel_lanes *l = &p->l;
  if (p->count < CPU_KERNEL_LANES || l->channels > 2 * MOST_CHANNELS ||
      (l->channels > MOST_CHANNELS && l->outs > MOST_CHANNELS) ||
      p->x_floats > MOST_BLOCK || p->y_floats > MOST_BLOCK ||
      p->g_floats > MOST_BLOCK) {
    return false;
  }
  if (p->gradient) {
    return p->sums <= MOST_SUMS && p->sums * p->parts <= 16 * MOST_SUMS;
  }
  return p->y_there || 2 * p->blocks > threads;
}

bool cpu_kernel_conv_lanes_are_sure(const cpu_kernel_conv_desc *d)
{
  const bool gradient = is_gradient(d);
  const int64_t images = gradient ? d->features : d->batch;
  const cpu_kernel_lanes_loops *loops = cpu_kernel_lanes_get();
  const int each = gradient
                       ? loops->gradient_outs[nearest(loops, d->kernel_out)]
                       : CPU_KERNEL_LANES_OUTS;
  const double ours =
      fill(images, CPU_KERNEL_LANES) * fill(d->kernel_out, each);
  double theirs = fill(d->kernel_out, CPU_KERNEL_LANES);
  if (gradient) theirs *= fill(d->batch, CPU_KERNEL_LANES);
  return theirs <= 0.75 * ours;
}

static void plan_scratch(cpu_kernel *kernel, lanes_plan *p)
{
  const cpu_kernel_lanes *l = &p->l;
  const int64_t outs =
      (l->outs + CPU_KERNEL_LANES_OUTS - 1) / CPU_KERNEL_LANES_OUTS;
  const int64_t w =
      outs * l->channels * l->taps[0] * l->taps[1] * CPU_KERNEL_LANES_OUTS;
  const int64_t y = p->gradient ? p->g_floats : p->y_floats;
  const int64_t copies = kernel->threads;
  const int64_t floats[] = { p->gradient ? 0 : w, p->x_floats * copies,
                             y * copies, p->sums * copies,
                             2 * p->parts * p->sums / CPU_KERNEL_LANES };
  size_t *at[] = { &p->w_at, &p->x_at, &p->y_at, &p->sums_at, &p->total_at };
  kernel->scratch = 0;
  for (int i = 0; i < 5; i++) {
    *at[i] = cpu_kernel_reserve(kernel, sizeof(float) * (size_t)floats[i]);
  }
}

calx_status *cpu_kernel_conv_lanes_new(cpu_kernel *kernel, bool *out_taken)
{
  *out_taken = false;
  const cpu_kernel_conv_desc *d = &kernel->conv;
  if (!is_small(d)) return NULL;
  lanes_plan *p = cx_calloc(1, sizeof *p);
  if (p == NULL) return cx_out_of_memory();
  p->d = *d;
  p->loops = cpu_kernel_lanes_get();
  p->gradient = is_gradient(d);
  cpu_kernel_lanes_of(d, &p->l);
  plan_images(p, kernel->threads);
  if (!is_suited(p, kernel->threads)) {
    cx_free(p);
    return NULL;
  }
  plan_scratch(kernel, p);
  cpu_kernel_set(kernel, run_lanes, p,
                 p->gradient ? "weight gradient of 16 images at once"
                             : "convolution of 16 images at once");
  *out_taken = true;
  return NULL;
}

// Whether it is more than a matrix product, which convolutions of one tap are
// and, of one result, their gradients by the weights.
static bool has_windows(const cpu_kernel_conv_desc *d)
{
  for (int64_t i = 0; i < d->n_dims; i++) {
    if (d->dims[i].kernel > 1 && d->dims[i].out > 1) return true;
  }
  return false;
}

bool cpu_kernel_runs_in_lanes(const cpu_kernel_desc *convolution)
{
  const cpu_kernel x = { .desc = *convolution };
  const cpu_kernel_conv_desc d = x.conv;
  if (d.kind != CPU_KERNEL_CONV || d.n_dims != 2 || !is_small(&d) ||
      !has_windows(&d) || !cpu_kernel_conv_lanes_are_sure(&d)) {
    return false;
  }
  lanes_plan p = { .d = d,
                   .loops = cpu_kernel_lanes_get(),
                   .gradient = is_gradient(&d) };
  cpu_kernel_lanes_of(&d, &p.l);
  plan_images(&p, 1);
  return is_suited(&p, 1);
}
