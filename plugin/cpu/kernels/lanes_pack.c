// kernels/lanes_pack: tensors into lanes and back.
#include <stdatomic.h>
#include <string.h>

#include "kernels/conv_lanes.h"

static const cx_lanes_loops *choose(void)
{
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
    return &cx_lanes_64;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return &cx_lanes_32;
  }
#endif
  return &cx_lanes_16;
}

const cx_lanes_loops *cx_lanes_get(void)
{
  // Whoever comes first: all choose the same.
  static const cx_lanes_loops *_Atomic chosen;
  const cx_lanes_loops *l = atomic_load_explicit(&chosen, memory_order_relaxed);
  if (l == NULL) {
    l = choose();
    atomic_store_explicit(&chosen, l, memory_order_relaxed);
  }
  return l;
}

// ---- into lanes and back ----------------------------------------------------

static int64_t lanes_left(const cx_lanes_images *m, int64_t block)
{
  const int64_t left = m->count - block * CX_LANES;
  return left < CX_LANES ? left : CX_LANES;
}

// A pixel of each lane; the lanes beyond `lanes` are zero.
static void pack_pixel(const float *from, int64_t lane, int64_t lanes,
                       float *to)
{
  if (lanes == CX_LANES && lane == 1) {
    memcpy(to, from, CX_LANES * sizeof *to);
    return;
  }
  for (int64_t i = 0; i < lanes; i++) to[i] = from[i * lane];
  for (int64_t i = lanes; i < CX_LANES; i++) to[i] = 0;
}

void cx_lanes_pack(const cx_lanes_images *m, const float *from, int64_t block,
                   const cx_lanes *l, float *to)
{
  const cx_lanes_loops *loops = cx_lanes_get();
  const int64_t low = l == NULL ? 0 : l->low[1];
  const int64_t hole = l == NULL ? 1 : l->hole[1];
  const int64_t width = l == NULL ? m->columns : l->width;
  const int64_t lanes = lanes_left(m, block);
  const bool flat = lanes == CX_LANES && m->column == 1 &&
                    (m->rows == 1 || m->row == m->columns);
  const int64_t pixels = m->rows * m->columns;
  from += m->first + block * CX_LANES * m->lane;
  float tile[CX_LANES * CX_LANES];
  const int64_t ahead = 8 * m->column;  // pixels lie in lines far apart
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
        loops->transpose(image + q, m->lane, tile, CX_LANES);
      } else {
        const float *at = image + row * m->row + column * m->column;
        __builtin_prefetch(at + ahead);
        pack_pixel(at, m->lane, lanes, tile);
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

void cx_lanes_unpack(const cx_lanes_images *m, const float *from, int64_t block,
                     float *to)
{
  const cx_lanes_loops *loops = cx_lanes_get();
  const int64_t lanes = lanes_left(m, block);
  const bool flat = lanes == CX_LANES && m->column == 1 &&
                    (m->rows == 1 || m->row == m->columns);
  const int64_t pixels = m->rows * m->columns;
  to += block * CX_LANES * m->lane;
  for (int64_t c = 0; c < m->channels; c++) {
    float *image = to + c * m->channel;
    for (int64_t q = 0; q < pixels;) {
      if (flat && q + CX_LANES <= pixels) {
        loops->transpose(from + q * CX_LANES, CX_LANES, image + q, m->lane);
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

// ---- descriptions -----------------------------------------------------------

bool cx_lanes_are_near(const cx_conv_desc *d)
{
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

void cx_lanes_of(const cx_conv_desc *d, cx_lanes *l)
{
  static const cx_conv_dim none = { .in = 1,
                                    .kernel = 1,
                                    .out = 1,
                                    .stride = 1,
                                    .in_dilation = 1,
                                    .kernel_dilation = 1 };
  for (int64_t i = 0; i < 2; i++) {
    const int64_t at = i - 2 + d->n_dims;
    const cx_conv_dim *m = at < 0 ? &none : &d->dims[at];
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

int64_t cx_lanes_stride(const cx_conv_desc *d, const int64_t *strides,
                        int64_t i)
{
  const int64_t at = i - 2 + d->n_dims;
  return at < 0 ? 0 : strides[2 + at];
}
