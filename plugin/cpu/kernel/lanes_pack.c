// kernel/lanes_pack: copies tensors to lanes and back.
#include <string.h>

#include "kernel/conv_lanes.h"

const cpu_kernel_lanes_loops *cpu_kernel_lanes_get(void)
{
  switch (cpu_kernel_vector_bytes()) {
    case 64: return &cpu_kernel_lanes_64;
    case 32: return &cpu_kernel_lanes_32;
    default: return &cpu_kernel_lanes_16;
  }
}

// ---- into lanes and back ----------------------------------------------------

static int64_t lanes_left(const cpu_kernel_lanes_images *m, int64_t block)
{
  const int64_t left = m->count - block * CPU_KERNEL_LANES;
  return left < CPU_KERNEL_LANES ? left : CPU_KERNEL_LANES;
}

// A pixel of each lane; lanes from `lanes` on are zero.
static void pack_pixel(const float *from, int64_t lane, int64_t lanes,
                       float *to)
{
  if (lanes == CPU_KERNEL_LANES && lane == 1) {
    memcpy(to, from, CPU_KERNEL_LANES * sizeof *to);
    return;
  }
  for (int64_t i = 0; i < lanes; i++) to[i] = from[i * lane];
  for (int64_t i = lanes; i < CPU_KERNEL_LANES; i++) to[i] = 0;
}

void cpu_kernel_lanes_pack(const cpu_kernel_lanes_images *m, const float *from,
                           int64_t block, const cpu_kernel_lanes *l, float *to)
{
  const cpu_kernel_lanes_loops *loops = cpu_kernel_lanes_get();
  const int64_t low = l == NULL ? 0 : l->low[1];
  const int64_t hole = l == NULL ? 1 : l->hole[1];
  const int64_t width = l == NULL ? m->columns : l->width;
  const int64_t lanes = lanes_left(m, block);
  const bool flat = lanes == CPU_KERNEL_LANES && m->column == 1 &&
                    (m->rows == 1 || m->row == m->columns);
  const int64_t pixels = m->rows * m->columns;
  from += m->first + block * CPU_KERNEL_LANES * m->lane;
  float tile[CPU_KERNEL_LANES * CPU_KERNEL_LANES];
  const int64_t ahead =
      8 * m->column;  // to prefetch: cache lines are far apart
  for (int64_t c = 0; c < m->channels; c++) {
    float *plane = to + c * m->rows * width * CPU_KERNEL_LANES;
    const float *image = from + c * m->channel;
    if (width != m->columns) {
      memset(plane, 0,
             sizeof *plane * (size_t)(m->rows * width * CPU_KERNEL_LANES));
    }
    int64_t row = 0, column = 0;
    for (int64_t q = 0; q < pixels;) {
      const bool whole = flat && q + CPU_KERNEL_LANES <= pixels;
      const int64_t n = whole ? CPU_KERNEL_LANES : 1;
      if (whole) {
        loops->transpose(image + q, m->lane, tile, CPU_KERNEL_LANES);
      } else {
        const float *at = image + row * m->row + column * m->column;
        __builtin_prefetch(at + ahead);
        pack_pixel(at, m->lane, lanes, tile);
      }
      for (int64_t i = 0; i < n; i++) {
        const int64_t at = row * width + low + column * hole;
        memcpy(plane + at * CPU_KERNEL_LANES, tile + i * CPU_KERNEL_LANES,
               CPU_KERNEL_LANES * sizeof *tile);
        if (++column == m->columns) {
          column = 0;
          row++;
        }
      }
      q += n;
    }
  }
}

void cpu_kernel_lanes_unpack(const cpu_kernel_lanes_images *m,
                             const float *from, int64_t block, float *to)
{
  const cpu_kernel_lanes_loops *loops = cpu_kernel_lanes_get();
  const int64_t lanes = lanes_left(m, block);
  const bool flat = lanes == CPU_KERNEL_LANES && m->column == 1 &&
                    (m->rows == 1 || m->row == m->columns);
  const int64_t pixels = m->rows * m->columns;
  to += block * CPU_KERNEL_LANES * m->lane;
  for (int64_t c = 0; c < m->channels; c++) {
    float *image = to + c * m->channel;
    for (int64_t q = 0; q < pixels;) {
      if (flat && q + CPU_KERNEL_LANES <= pixels) {
        loops->transpose(from + q * CPU_KERNEL_LANES, CPU_KERNEL_LANES,
                         image + q, m->lane);
        q += CPU_KERNEL_LANES;
        continue;
      }
      float *at = image + q / m->columns * m->row + q % m->columns * m->column;
      for (int64_t i = 0; i < lanes; i++) {
        at[i * m->lane] = from[q * CPU_KERNEL_LANES + i];
      }
      q++;
    }
    from += pixels * CPU_KERNEL_LANES;
  }
}

// ---- descriptions -----------------------------------------------------------

bool cpu_kernel_lanes_are_near(const cpu_kernel_conv_desc *d)
{
  for (int t = 0; t < 3; t++) {
    if (d->types[t] != CX_HLO_F32) return false;
  }
  for (int64_t i = 0; i < d->n_dims; i++) {
    const cpu_kernel_conv_dim *m = &d->dims[i];
    if (m->in > 1024 || m->kernel > 1024 || m->out > 1024 || m->low < 0 ||
        m->low > 1024 || m->stride > 1024 || m->kernel_dilation > 1024 ||
        m->in_dilation > 2) {
      return false;
    }
  }
  return true;
}

void cpu_kernel_lanes_of(const cpu_kernel_conv_desc *d, cpu_kernel_lanes *l)
{
  for (int64_t i = 0; i < 2; i++) {
    const int64_t at = i - 2 + d->n_dims;
    const cpu_kernel_conv_dim *m =
        at < 0 ? &cpu_kernel_conv_absent_dim : &d->dims[at];
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

cpu_kernel_lanes_images cpu_kernel_lanes_images_of(
    const cpu_kernel_conv_desc *d, const int64_t *strides, int lane,
    int64_t count, int64_t channels, const int64_t size[2])
{
  const int64_t n = d->n_dims;  // one dimension is the columns
  return (cpu_kernel_lanes_images){ .count = count,
                                    .channels = channels,
                                    .rows = size[0],
                                    .columns = size[1],
                                    .lane = strides[lane],
                                    .channel = strides[1 - lane],
                                    .row = n < 2 ? 0 : strides[n],
                                    .column = n < 1 ? 0 : strides[n + 1] };
}

void cpu_kernel_lanes_reverse(const cpu_kernel_conv_desc *d,
                              cpu_kernel_lanes_images *io)
{
  const int64_t n = d->n_dims;
  if (n > 1 && d->dims[n - 2].reversed != 0) {
    io->first += (io->rows - 1) * io->row;
    io->row = -io->row;
  }
  if (n > 0 && d->dims[n - 1].reversed != 0) {
    io->first += (io->columns - 1) * io->column;
    io->column = -io->column;
  }
}
