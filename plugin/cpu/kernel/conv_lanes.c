// kernel/conv_lanes: convolutions with few channels, 16 images at a time; see
// lanes.h.
//
// Forward and input gradients take a block of 16 images at a time: its input is
// transposed into lanes, convolved and transposed back, all in one thread's
// cache. A gradient by the weights sums over the images, so all blocks are
// transposed first, and each row of the result is then computed from them all.
#include <string.h>

#include "base/alloc.h"
#include "kernel/conv_lanes.h"

// Limits above which vectors of channels are full, or blocks leave the cache.
#define MOST_CHANNELS 12
#define MOST_OUTS 64
#define MOST_BLOCK ((int64_t)1 << 18)  // floats
#define MOST_ALL ((int64_t)1 << 24)

typedef struct lanes_plan {
  cpu_kernel_conv_desc d;
  const cpu_kernel_lanes_loops *loops;
  cpu_kernel_lanes l;
  bool gradient;
  int64_t count, blocks;  // images
  // The input; the kernel; the result (of a gradient: features as channels).
  cpu_kernel_lanes_images x, g, y;
  int64_t x_floats, y_floats, g_floats;  // of a block
  size_t w_at, x_at, y_at;               // in scratch; y_at: g's
} lanes_plan;

// To (outs / OUTS, channels, taps, OUTS), padded with zeros.
static void pack_weights(const lanes_plan *p, const float *from, float *to)
{
  const cpu_kernel_lanes *l = &p->l;
  const cpu_kernel_lanes_images *w = &p->g;
  from += w->first;
  for (int64_t o = 0; o < l->outs; o += CPU_KERNEL_LANES_OUTS) {
    for (int64_t c = 0; c < l->channels; c++) {
      for (int64_t t = 0; t < l->taps[0] * l->taps[1]; t++) {
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
  float *out, *w, *x, *y;
} lanes_job;

static void run_forward(void *user, int64_t lo, int64_t hi)
{
  const lanes_job *j = user;
  const lanes_plan *p = j->p;
  const int64_t rank = cpu_kernel_rank(j->pool);
  float *x = j->x + rank * p->x_floats, *y = j->y + rank * p->y_floats;
  for (int64_t b = lo; b < hi; b++) {
    cpu_kernel_lanes_pack(&p->x, j->lhs, b, &p->l, x);
    p->loops->forward(&p->l, x, j->w, y);
    cpu_kernel_lanes_unpack(&p->y, y, b, j->out);
  }
}

// Items: each block's x, then its g.
static void run_pack(void *user, int64_t lo, int64_t hi)
{
  const lanes_job *j = user;
  const lanes_plan *p = j->p;
  for (int64_t i = lo; i < hi; i++) {
    const int64_t b = i / 2;
    if (i % 2 == 0) {
      cpu_kernel_lanes_pack(&p->x, j->lhs, b, &p->l, j->x + b * p->x_floats);
    } else {
      cpu_kernel_lanes_pack(&p->g, j->rhs, b, NULL, j->y + b * p->g_floats);
    }
  }
}

// Items: out features by GRADS, channels, rows of the result.
static void run_gradient(void *user, int64_t lo, int64_t hi)
{
  const lanes_job *j = user;
  const lanes_plan *p = j->p;
  const cpu_kernel_lanes *l = &p->l;
  const int64_t plane = l->in[0] * l->width * CPU_KERNEL_LANES;
  const int64_t taps = l->taps[0] * l->taps[1] * CPU_KERNEL_LANES;
  float sums[CPU_KERNEL_LANES_GRADS * MOST_OUTS];
  for (int64_t i = lo; i < hi; i++) {
    const int64_t row = i % l->results[0];
    const int64_t c = i / l->results[0] % l->channels;
    const int64_t o = i / l->results[0] / l->channels * CPU_KERNEL_LANES_GRADS;
    p->loops->gradient(l, p->blocks, j->x + c * plane, p->x_floats,
                       j->y + o * taps, p->g_floats, row, sums);
    for (int64_t k = 0; k < CPU_KERNEL_LANES_GRADS && o + k < l->outs; k++) {
      float *to =
          j->out + c * p->y.lane + (o + k) * p->y.channel + row * p->y.row;
      for (int64_t u = 0; u < l->results[1]; u++) {
        to[u * p->y.column] = sums[k * l->results[1] + u];
      }
    }
  }
}

static calx_status *run_lanes(const cpu_kernel *kernel, cpu_threads *pool,
                              const void *lhs, const void *rhs, void *out,
                              unsigned char *scratch)
{
  const lanes_plan *p = kernel->plan;
  const cpu_kernel_lanes *l = &p->l;
  lanes_job j = { p, pool, lhs, rhs, out, NULL, NULL, NULL };
  j.w = (float *)(scratch + p->w_at);
  j.x = (float *)(scratch + p->x_at);
  j.y = (float *)(scratch + p->y_at);
  if (!p->gradient) {
    pack_weights(p, rhs, j.w);
    cpu_threads_for(pool, p->blocks, 1, run_forward, &j);
    return NULL;
  }
  // The planes that pad the out features stay zero.
  const int64_t full = l->outs * l->taps[0] * l->taps[1] * CPU_KERNEL_LANES;
  for (int64_t b = 0; b < p->blocks; b++) {
    memset(j.y + b * p->g_floats + full, 0,
           sizeof(float) * (size_t)(p->g_floats - full));
  }
  cpu_threads_for(pool, 2 * p->blocks, 2, run_pack, &j);
  const int64_t outs =
      (l->outs + CPU_KERNEL_LANES_GRADS - 1) / CPU_KERNEL_LANES_GRADS;
  cpu_threads_for(pool, outs * l->channels * l->results[0], 1, run_gradient,
                  &j);
  return NULL;
}

// ---- making -----------------------------------------------------------------

static void plan_images(lanes_plan *p)
{
  const cpu_kernel_conv_desc *d = &p->d;
  cpu_kernel_conv_tensors s;
  cpu_kernel_conv_tensors_of(d, &s);
  const int lane = p->gradient ? 1 : 0;
  cpu_kernel_lanes *l = &p->l;
  l->channels = p->gradient ? d->batch : d->features;
  l->outs = d->kernel_out;
  p->count = p->gradient ? d->features : d->batch;
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
  if (p->gradient) {
    const int64_t full = (l->outs + CPU_KERNEL_LANES_GRADS - 1) /
                         CPU_KERNEL_LANES_GRADS * CPU_KERNEL_LANES_GRADS;
    p->g_floats = full * l->taps[0] * l->taps[1] * CPU_KERNEL_LANES;
  } else {
    p->y_floats = l->outs * l->results[0] * l->results[1] * CPU_KERNEL_LANES;
  }
}

// A description can have any size, so this is checked before multiplying.
static bool is_small(const cpu_kernel_conv_desc *d)
{
  if (d->feature_groups != 1 || d->batch_groups != 1 || d->n_dims < 1 ||
      d->n_dims > 2 || d->batch > 1 << 20 || d->features > 1 << 20 ||
      d->kernel_out > MOST_OUTS) {
    return false;
  }
  return cpu_kernel_lanes_are_near(d);
}

// Whether it is a gradient by the weights, as in cpu_kernel_conv_likely_forms.
static bool is_gradient(const cpu_kernel_conv_desc *d)
{
  return d->at[0][1] == 0 && d->at[0][0] != 0;
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
    return l->results[1] <= MOST_OUTS &&
           p->blocks * (p->x_floats + p->g_floats) <= MOST_ALL;
  }
  return p->blocks >= threads || 2 * p->blocks > threads;
}

static double fill(int64_t n, int64_t of)
{
  return (double)n / (double)((n + of - 1) / of * of);
}

bool cpu_kernel_conv_lanes_are_sure(const cpu_kernel_conv_desc *d)
{
  const bool gradient = is_gradient(d);
  const int64_t images = gradient ? d->features : d->batch;
  const double ours = fill(images, CPU_KERNEL_LANES) *
                      fill(d->kernel_out, gradient ? CPU_KERNEL_LANES_GRADS
                                                   : CPU_KERNEL_LANES_OUTS);
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
  const int64_t copies = p->gradient ? p->blocks : kernel->threads;
  const int64_t floats[3] = { p->gradient ? 0 : w, p->x_floats * copies,
                              y * copies };
  size_t *at[3] = { &p->w_at, &p->x_at, &p->y_at };
  kernel->scratch = 0;
  for (int i = 0; i < 3; i++) {
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
  plan_images(p);
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
