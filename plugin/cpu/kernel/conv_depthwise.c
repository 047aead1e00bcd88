// kernel/conv_depthwise: the gradient by the weights of a convolution in many
// groups of one channel, 16 groups at a time.
//
// In StableHLO it has as many batch groups as channels: the batch of lhs is the
// channels, its features are the images; the in features of the kernel are the
// images, its taps are the pixels of the gradient. oneDNN's kernels for it
// reach a fiftieth of the processor's speed. Here a vector holds the same pixel
// of 16 channels, so that sums over pixels and images need no sums over lanes.
// Images are loaded into the cache one by one.
#include <string.h>

#include "base/alloc.h"
#include "kernel/conv_lanes.h"
#include "kernel/onednn.h"

#define MOST_IMAGE ((int64_t)1 << 20)  // floats
// Images that are added up in f32; their sums are added up in f64.
#define SUMMED_IMAGES 4

typedef struct depthwise_plan {
  cpu_kernel_lanes l;
  int64_t images, blocks;
  cpu_kernel_lanes_images x, g, y;
  int64_t x_floats, g_floats, y_floats;
  size_t x_at, g_at, y_at, total_at;  // in scratch
} depthwise_plan;

typedef struct depthwise_job {
  const depthwise_plan *p;
  cpu_threads *pool;
  const float *lhs, *rhs;
  float *out, *x, *g, *y;
  double *total;
} depthwise_job;

static void run_blocks(void *user, int64_t lo, int64_t hi)
{
  const depthwise_job *j = user;
  const depthwise_plan *p = j->p;
  const int64_t rank = cpu_kernel_rank(j->pool);
  float *x = j->x + rank * p->x_floats, *g = j->g + rank * p->g_floats;
  float *y = j->y + rank * p->y_floats;
  double *total = j->total + rank * p->y_floats;
  const cpu_kernel_lanes_layout input = cpu_kernel_lanes_input(&p->l);
  const cpu_kernel_lanes_layout dense = cpu_kernel_lanes_dense(&p->g);
  for (int64_t b = lo; b < hi; b++) {
    memset(y, 0, sizeof *y * (size_t)p->y_floats);
    memset(total, 0, sizeof *total * (size_t)p->y_floats);
    for (int64_t n = 0; n < p->images; n++) {
      cpu_kernel_lanes_pack(&p->x, j->lhs + n * p->x.channel, b, &input, x);
      cpu_kernel_lanes_pack(&p->g, j->rhs + n * p->g.channel, b, &dense, g);
      cpu_kernel_lanes_get()->depthwise(&p->l, x, g, y);
      if ((n + 1) % SUMMED_IMAGES != 0 && n + 1 < p->images) continue;
      for (int64_t i = 0; i < p->y_floats; i++) total[i] += (double)y[i];
      memset(y, 0, sizeof *y * (size_t)p->y_floats);
    }
    for (int64_t i = 0; i < p->y_floats; i++) y[i] = (float)total[i];
    cpu_kernel_lanes_unpack(&p->y, y, b, j->out);
  }
}

static calx_status *run_depthwise(const cpu_kernel *kernel, cpu_threads *pool,
                                  const void *lhs, const void *rhs, void *out,
                                  unsigned char *scratch)
{
  const depthwise_plan *p = kernel->plan;
  depthwise_job j = { .p = p,
                      .pool = pool,
                      .lhs = lhs,
                      .rhs = rhs,
                      .out = out,
                      .x = (float *)(scratch + p->x_at),
                      .g = (float *)(scratch + p->g_at),
                      .y = (float *)(scratch + p->y_at),
                      .total = (double *)(void *)(scratch + p->total_at) };
  cpu_threads_for(pool, p->blocks, 1, run_blocks, &j);
  return NULL;
}

static bool is_depthwise(const cpu_kernel_conv_desc *d)
{
  return d->batch_groups >= 8 && d->batch_groups <= 1 << 20 &&
         d->batch == d->batch_groups && d->kernel_out == d->batch_groups &&
         d->n_dims <= 2 && cpu_kernel_lanes_are_near(d);
}

static void plan_images(depthwise_plan *p, const cpu_kernel_conv_desc *d)
{
  const cpu_kernel_lanes *l = &p->l;
  cpu_kernel_conv_tensors s;
  cpu_kernel_conv_tensors_of(d, &s);
  const int64_t n = d->batch_groups;
  p->x = cpu_kernel_lanes_images_of(d, s.stride[0], 0, n, 1, l->in);
  p->g = cpu_kernel_lanes_images_of(d, s.stride[1], 1, n, 1, l->taps);
  p->y = cpu_kernel_lanes_images_of(d, s.stride[2], 1, n, 1, l->results);
  cpu_kernel_lanes_reverse(d, &p->g);
}

calx_status *cpu_kernel_conv_depthwise_new(cpu_kernel *kernel, bool always,
                                           bool *out_taken)
{
  *out_taken = false;
  const cpu_kernel_conv_desc *d = &kernel->conv;
  if (!is_depthwise(d)) return NULL;
  depthwise_plan *p = cx_calloc(1, sizeof *p);
  if (p == NULL) return cx_out_of_memory();
  cpu_kernel_lanes *l = &p->l;
  cpu_kernel_lanes_of(d, l);
  l->channels = l->outs = 1;
  p->images = d->features;
  p->blocks = (d->batch_groups + CPU_KERNEL_LANES - 1) / CPU_KERNEL_LANES;
  p->x_floats = l->in[0] * l->width * CPU_KERNEL_LANES;
  p->g_floats = l->taps[0] * l->taps[1] * CPU_KERNEL_LANES;
  p->y_floats = l->results[0] * l->results[1] * CPU_KERNEL_LANES;
  if (p->x_floats > MOST_IMAGE || p->g_floats > MOST_IMAGE ||
      p->y_floats > MOST_IMAGE ||
      (!always && p->y_floats <= 9 * CPU_KERNEL_LANES &&
       cpu_kernel_onednn_get() != NULL)) {
    cx_free(p);
    return NULL;
  }
  plan_images(p, d);
  const size_t bytes = sizeof(float) * (size_t)kernel->threads;
  kernel->scratch = 0;
  p->x_at = cpu_kernel_reserve(kernel, bytes * (size_t)p->x_floats);
  p->g_at = cpu_kernel_reserve(kernel, bytes * (size_t)p->g_floats);
  p->y_at = cpu_kernel_reserve(kernel, bytes * (size_t)p->y_floats);
  p->total_at = cpu_kernel_reserve(kernel, 2 * bytes * (size_t)p->y_floats);
  cpu_kernel_set(kernel, run_depthwise, p,
                 "weight gradient of 16 groups at once");
  *out_taken = true;
  return NULL;
}
