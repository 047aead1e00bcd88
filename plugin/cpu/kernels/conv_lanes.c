// kernels/conv_lanes: convolutions with few channels, 16 images at once; see
// lanes.h.
//
// Forward and input gradients take a block of 16 images at a time: its input is
// transposed into lanes, convolved and transposed back, all in one thread's
// cache. A gradient by the weights sums over the images, so there all blocks
// are transposed first, and each row of the result then goes through them.
#include <stdio.h>
#include <string.h>

#include <pthread.h>

#include "base/alloc.h"
#include "kernels/conv.h"
#include "kernels/lanes.h"

// Beyond these, vectors of channels are full, or the blocks leave the cache.
#define MOST_CHANNELS 12
#define MOST_OUTS 64
#define MOST_BLOCK ((int64_t)1 << 18)  // floats
#define MOST_ALL ((int64_t)1 << 24)

// One tensor with lanes: strides in elements.
typedef struct images {
  int64_t channels, rows, columns;
  int64_t lane, channel, row, column;
  int64_t first;
} images;

typedef struct lanes_plan {
  cx_conv_desc d;
  const cx_lanes_loops *loops;
  cx_lanes l;
  bool gradient;
  int64_t count, blocks;  // images
  images x, g, y;         // g: the gradient's kernel; y: the forward's result
  int64_t w_stride[4], w_first;  // in, out, rows, columns
  int64_t out_stride[4];         // of the gradient: batch, features, spatial
  int64_t x_floats, y_floats, g_floats;  // of a block
  size_t w_at, x_at, y_at;               // in scratch; y_at: g's
} lanes_plan;

static const cx_lanes_loops *chosen = &cx_lanes_16;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void choose(void)
{
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
    chosen = &cx_lanes_64;
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    chosen = &cx_lanes_32;
  }
#endif
}

const cx_lanes_loops *cx_lanes_get(void)
{
  pthread_once(&once, choose);
  return chosen;
}

// ---- into lanes and back ----------------------------------------------------

static int64_t lanes_left(const lanes_plan *p, int64_t block)
{
  const int64_t left = p->count - block * CX_LANES;
  return left < CX_LANES ? left : CX_LANES;
}

// A pixel of each lane; the lanes beyond `lanes` are zero.
static void pack_pixel(const float *from, int64_t lane, int64_t lanes,
                       float *to)
{
  for (int64_t i = 0; i < lanes; i++) to[i] = from[i * lane];
  for (int64_t i = lanes; i < CX_LANES; i++) to[i] = 0;
}

// Images of a block into (channels, rows, width, 16), columns `hole` apart from
// `low` on, the others zero.
static void pack_images(const lanes_plan *p, const images *m, const float *from,
                        int64_t block, int64_t low, int64_t hole, int64_t width,
                        float *to)
{
  const int64_t lanes = lanes_left(p, block);
  const bool flat = lanes == CX_LANES && m->column == 1 &&
                    (m->rows == 1 || m->row == m->columns);
  const int64_t pixels = m->rows * m->columns;
  from += m->first + block * CX_LANES * m->lane;
  float tile[CX_LANES * CX_LANES];
  for (int64_t c = 0; c < m->channels; c++) {
    float *plane = to + c * m->rows * width * CX_LANES;
    const float *image = from + c * m->channel;
    if (width != m->columns) {
      memset(plane, 0, sizeof *plane * (size_t)(m->rows * width * CX_LANES));
    }
    int64_t row = 0, column = 0;
    for (int64_t q = 0; q < pixels;) {
      const bool whole = flat && q + CX_LANES <= pixels;
      const int64_t n = whole ? CX_LANES : 1;
      if (whole) {
        p->loops->transpose(image + q, m->lane, tile, CX_LANES);
      } else {
        pack_pixel(image + row * m->row + column * m->column, m->lane, lanes,
                   tile);
      }
      for (int64_t i = 0; i < n; i++) {
        const int64_t at = row * width + low + column * hole;
        memcpy(plane + at * CX_LANES, tile + i * CX_LANES,
               CX_LANES * sizeof *tile);
        if (++column == m->columns) {
          column = 0;
          row++;
        }
      }
      q += n;
    }
  }
}

// (channels, rows, columns, 16) into a block's images.
static void unpack_images(const lanes_plan *p, const images *m,
                          const float *from, int64_t block, float *to)
{
  const int64_t lanes = lanes_left(p, block);
  const bool flat = lanes == CX_LANES && m->column == 1 &&
                    (m->rows == 1 || m->row == m->columns);
  const int64_t pixels = m->rows * m->columns;
  to += block * CX_LANES * m->lane;
  for (int64_t c = 0; c < m->channels; c++) {
    float *image = to + c * m->channel;
    for (int64_t q = 0; q < pixels;) {
      if (flat && q + CX_LANES <= pixels) {
        p->loops->transpose(from + q * CX_LANES, CX_LANES, image + q, m->lane);
        q += CX_LANES;
        continue;
      }
      float *at = image + q / m->columns * m->row + q % m->columns * m->column;
      for (int64_t i = 0; i < lanes; i++) {
        at[i * m->lane] = from[q * CX_LANES + i];
      }
      q++;
    }
    from += pixels * CX_LANES;
  }
}

// (outs / OUTS, channels, taps, OUTS), filled up with zeros.
static void pack_weights(const lanes_plan *p, const float *from, float *to)
{
  const cx_lanes *l = &p->l;
  from += p->w_first;
  for (int64_t o = 0; o < l->outs; o += CX_LANES_OUTS) {
    for (int64_t c = 0; c < l->channels; c++) {
      for (int64_t t = 0; t < l->taps[0] * l->taps[1]; t++) {
        const float *at = from + c * p->w_stride[0] +
                          t / l->taps[1] * p->w_stride[2] +
                          t % l->taps[1] * p->w_stride[3];
        for (int64_t i = 0; i < CX_LANES_OUTS; i++) {
          *to++ = o + i < l->outs ? at[(o + i) * p->w_stride[1]] : 0;
        }
      }
    }
  }
}

// ---- running ----------------------------------------------------------------

typedef struct job {
  const lanes_plan *p;
  cx_pool *pool;
  const float *lhs, *rhs;
  float *out, *w, *x, *y;
} job;

static void run_forward(void *user, int64_t lo, int64_t hi)
{
  const job *j = user;
  const lanes_plan *p = j->p;
  const cx_pool_place here = cx_pool_here();
  const int64_t rank = here.pool == j->pool ? here.rank : 0;
  float *x = j->x + rank * p->x_floats, *y = j->y + rank * p->y_floats;
  for (int64_t b = lo; b < hi; b++) {
    pack_images(p, &p->x, j->lhs, b, p->l.low[1], p->l.hole[1], p->l.width, x);
    p->loops->forward(&p->l, x, j->w, y);
    unpack_images(p, &p->y, y, b, j->out);
  }
}

// Of each block first x, then g.
static void run_pack(void *user, int64_t lo, int64_t hi)
{
  const job *j = user;
  const lanes_plan *p = j->p;
  for (int64_t i = lo; i < hi; i++) {
    const int64_t b = i / 2;
    if (i % 2 == 0) {
      pack_images(p, &p->x, j->lhs, b, p->l.low[1], p->l.hole[1], p->l.width,
                  j->x + b * p->x_floats);
    } else {
      pack_images(p, &p->g, j->rhs, b, 0, 1, p->g.columns,
                  j->y + b * p->g_floats);
    }
  }
}

// Items: out features by GRADS, channels, rows of the result.
static void run_gradient(void *user, int64_t lo, int64_t hi)
{
  const job *j = user;
  const lanes_plan *p = j->p;
  const cx_lanes *l = &p->l;
  const int64_t plane = l->in[0] * l->width * CX_LANES;
  const int64_t taps = l->taps[0] * l->taps[1] * CX_LANES;
  float sums[CX_LANES_GRADS * MOST_OUTS];
  for (int64_t i = lo; i < hi; i++) {
    const int64_t row = i % l->results[0];
    const int64_t c = i / l->results[0] % l->channels;
    const int64_t o = i / l->results[0] / l->channels * CX_LANES_GRADS;
    p->loops->gradient(l, p->blocks, j->x + c * plane, p->x_floats,
                       j->y + o * taps, p->g_floats, row, sums);
    for (int64_t k = 0; k < CX_LANES_GRADS && o + k < l->outs; k++) {
      float *to = j->out + c * p->out_stride[0] + (o + k) * p->out_stride[1] +
                  row * p->out_stride[2];
      for (int64_t u = 0; u < l->results[1]; u++) {
        to[u * p->out_stride[3]] = sums[k * l->results[1] + u];
      }
    }
  }
}

static calx_status *run_lanes(const cx_kernel *kernel, cx_pool *pool,
                              const void *lhs, const void *rhs, void *out,
                              unsigned char *scratch)
{
  const lanes_plan *p = kernel->plan;
  const cx_lanes *l = &p->l;
  job j = { p, pool, lhs, rhs, out, NULL, NULL, NULL };
  j.w = (float *)(scratch + p->w_at);
  j.x = (float *)(scratch + p->x_at);
  j.y = (float *)(scratch + p->y_at);
  if (!p->gradient) {
    pack_weights(p, rhs, j.w);
    cx_pool_for(pool, p->blocks, 1, run_forward, &j);
    return NULL;
  }
  // The planes that fill the out features up stay zero.
  const int64_t full = l->outs * l->taps[0] * l->taps[1] * CX_LANES;
  for (int64_t b = 0; b < p->blocks; b++) {
    memset(j.y + b * p->g_floats + full, 0,
           sizeof(float) * (size_t)(p->g_floats - full));
  }
  cx_pool_for(pool, 2 * p->blocks, 2, run_pack, &j);
  const int64_t outs = (l->outs + CX_LANES_GRADS - 1) / CX_LANES_GRADS;
  cx_pool_for(pool, outs * l->channels * l->results[0], 1, run_gradient, &j);
  return NULL;
}

// ---- making -----------------------------------------------------------------

static void plan_dims(lanes_plan *p)
{
  static const cx_conv_dim none = { .in = 1,
                                    .kernel = 1,
                                    .out = 1,
                                    .stride = 1,
                                    .in_dilation = 1,
                                    .kernel_dilation = 1 };
  cx_lanes *l = &p->l;
  for (int64_t i = 0; i < 2; i++) {
    const int64_t at = i - 2 + p->d.n_dims;
    const cx_conv_dim *m = at < 0 ? &none : &p->d.dims[at];
    l->in[i] = m->in;
    l->taps[i] = m->kernel;
    l->results[i] = m->out;
    l->stride[i] = m->stride;
    l->dilation[i] = m->kernel_dilation;
    l->low[i] = m->low;
    l->hole[i] = m->in_dilation;
  }
  const int64_t end = l->low[1] + (l->in[1] - 1) * l->hole[1] + 1;
  const int64_t reach = (l->results[1] - 1) * l->stride[1] +
                        (l->taps[1] - 1) * l->dilation[1] + 1;
  l->width = end > reach ? end : reach;
}

// The last two of the spatial strides; of one dimension the rows have none.
static int64_t spatial_stride(const lanes_plan *p, const int64_t *strides,
                              int64_t i)
{
  const int64_t at = i - 2 + p->d.n_dims;
  return at < 0 ? 0 : strides[2 + at];
}

static void plan_images(lanes_plan *p)
{
  const cx_conv_desc *d = &p->d;
  cx_conv_strides s;
  cx_conv_strides_of(d, &s);
  const int lane = p->gradient ? 1 : 0;
  cx_lanes *l = &p->l;
  l->channels = p->gradient ? d->batch : d->features;
  l->outs = d->kernel_out;
  p->count = p->gradient ? d->features : d->batch;
  p->blocks = (p->count + CX_LANES - 1) / CX_LANES;
  p->x = (images){ l->channels,
                   l->in[0],
                   l->in[1],
                   s.lhs[lane],
                   s.lhs[1 - lane],
                   spatial_stride(p, s.lhs, 0),
                   spatial_stride(p, s.lhs, 1),
                   0 };
  p->y = (images){ l->outs,
                   l->results[0],
                   l->results[1],
                   s.out[0],
                   s.out[1],
                   spatial_stride(p, s.out, 0),
                   spatial_stride(p, s.out, 1),
                   0 };
  p->w_stride[0] = s.rhs[0];
  p->w_stride[1] = s.rhs[1];
  p->out_stride[0] = s.out[0];
  p->out_stride[1] = s.out[1];
  for (int64_t i = 0; i < 2; i++) {
    const int64_t at = i - 2 + d->n_dims;
    const int64_t stride = spatial_stride(p, s.rhs, i);
    const bool turned = at >= 0 && d->dims[at].reversed != 0;
    if (turned) p->w_first += (l->taps[i] - 1) * stride;
    p->w_stride[2 + i] = turned ? -stride : stride;
    p->out_stride[2 + i] = spatial_stride(p, s.out, i);
  }
  p->g = (images){ l->outs,  l->taps[0],     l->taps[1],     s.rhs[0],
                   s.rhs[1], p->w_stride[2], p->w_stride[3], p->w_first };
}

// Checked before anything is multiplied: a description can say any size.
static bool is_small(const cx_conv_desc *d)
{
  if (d->lhs_type != CX_HLO_F32 || d->rhs_type != CX_HLO_F32 ||
      d->out_type != CX_HLO_F32 || d->feature_groups != 1 ||
      d->batch_groups != 1 || d->n_dims < 1 || d->n_dims > 2 ||
      d->batch > 1 << 20 || d->features > 1 << 20 ||
      d->kernel_out > MOST_OUTS) {
    return false;
  }
  for (int64_t i = 0; i < d->n_dims; i++) {
    const cx_conv_dim *m = &d->dims[i];
    if (m->in > 1024 || m->kernel > 1024 || m->out > 1024 || m->low < 0 ||
        m->low > 1024 || m->stride > 1024 || m->kernel_dilation > 1024 ||
        m->in_dilation > 2) {
      return false;
    }
  }
  return true;
}

// Whether the weights' gradient it is: as in cx_conv_likely_forms.
static bool is_gradient(const cx_conv_desc *d)
{
  return d->features_at == 0 && d->batch_at != 0;
}

static bool is_suited(const lanes_plan *p, int threads)
{
  const cx_lanes *l = &p->l;
  if (p->count < CX_LANES || l->channels > 2 * MOST_CHANNELS ||
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

calx_status *cx_conv_lanes_new(cx_kernel *kernel, bool *out_taken)
{
  *out_taken = false;
  cx_conv_desc d;
  memcpy(&d, &kernel->desc, sizeof d);
  if (!is_small(&d)) return NULL;
  lanes_plan *p = cx_calloc(1, sizeof *p);
  if (p == NULL) return cx_out_of_memory();
  p->d = d;
  p->loops = cx_lanes_get();
  p->gradient = is_gradient(&d);
  plan_dims(p);
  plan_images(p);
  const cx_lanes *l = &p->l;
  const int64_t taps = l->taps[0] * l->taps[1];
  const int64_t results = l->results[0] * l->results[1];
  const int64_t full =
      (l->outs + CX_LANES_GRADS - 1) / CX_LANES_GRADS * CX_LANES_GRADS;
  p->x_floats = l->channels * l->in[0] * l->width * CX_LANES;
  if (p->gradient) {
    p->g_floats = full * taps * CX_LANES;
  } else {
    p->y_floats = l->outs * results * CX_LANES;
  }
  if (!is_suited(p, kernel->threads)) {
    cx_free(p);
    return NULL;
  }
  const int64_t outs = (l->outs + CX_LANES_OUTS - 1) / CX_LANES_OUTS;
  const int64_t w = p->gradient ? 0 : outs * l->channels * taps * CX_LANES_OUTS;
  const int64_t copies = p->gradient ? p->blocks : kernel->threads;
  kernel->scratch = 0;
  p->w_at = cx_kernel_reserve(kernel, sizeof(float) * (size_t)w);
  p->x_at =
      cx_kernel_reserve(kernel, sizeof(float) * (size_t)(p->x_floats * copies));
  p->y_at = cx_kernel_reserve(
      kernel, sizeof(float) *
                  (size_t)((p->gradient ? p->g_floats : p->y_floats) * copies));
  kernel->plan = p;
  kernel->free_plan = cx_free;
  kernel->run = run_lanes;
  snprintf(kernel->name, sizeof kernel->name, "%s of 16 images at once",
           p->gradient ? "weight gradient" : "convolution");
  *out_taken = true;
  return NULL;
}
