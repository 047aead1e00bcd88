// kernel/lanes_pack: copies tensors to lanes and back.
#include <stdbool.h>
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

// ---- the elements of an image, as runs --------------------------------------

// A dimension of an image: its steps in the tensor, in elements, and among
// lanes, in vectors. Of two dimensions: after each `inner` elements the next
// one is `outer` vectors from the first of them.
typedef struct image_run {
  int64_t size, step, vectors;
  int64_t inner, outer;
} image_run;

static image_run plain_run(int64_t size, int64_t step, int64_t vectors)
{
  return (image_run){ size, step, vectors, size, 0 };
}

static bool is_plain(const image_run *r)
{
  return r->inner == r->size;
}

// Where an element is among lanes.
static int64_t lanes_at(const image_run *r, int64_t element)
{
  return (element / r->inner * r->outer + element % r->inner * r->vectors) *
         CPU_KERNEL_LANES;
}

typedef struct image_runs {
  int n;
  image_run of[3];  // the last one has the smallest step in the tensor
} image_runs;

static void add_run(image_runs *l, int64_t size, int64_t step, int64_t vectors)
{
  if (size == 1) return;
  int at = l->n++;
  for (; at > 0 && l->of[at - 1].step < step; at--) l->of[at] = l->of[at - 1];
  l->of[at] = plain_run(size, step, vectors);
}

// Neighbours that are one dimension on both sides are merged. So are the last
// two if they are one dimension in the tensor, and the last one alone is short.
static image_runs runs_of(const cpu_kernel_lanes_images *m,
                          const cpu_kernel_lanes_layout *p)
{
  image_runs all = { 0 }, l = { 0 };
  add_run(&all, m->rows, m->row, p->width * p->channels);
  add_run(&all, m->columns, m->column, p->hole * p->channels);
  add_run(&all, m->channels, m->channel, 1);
  for (int i = 0; i < all.n; i++) {
    const image_run *next = &all.of[i];
    image_run *last = l.n > 0 ? &l.of[l.n - 1] : NULL;
    const bool one = last != NULL && last->step == next->size * next->step;
    if (one && last->vectors == next->size * next->vectors) {
      *last = plain_run(last->size * next->size, next->step, next->vectors);
    } else if (one && next->step == 1 && next->size < CPU_KERNEL_LANES) {
      *last = (image_run){ last->size * next->size, 1, next->vectors,
                           next->size, last->vectors };
    } else {
      l.of[l.n++] = *next;
    }
  }
  if (l.n == 0) l.of[l.n++] = plain_run(1, 1, 1);
  return l;
}

typedef struct lanes_transfer {
  const cpu_kernel_lanes_loops *loops;
  int64_t lane, lanes;  // the step from image to image, and how many there are
  const float *from;
  float *to;
} lanes_transfer;

// Copies the elements of a run, whose offsets are in elements.
typedef void run_fn(const lanes_transfer *c, const image_run *run,
                    int64_t tensor, int64_t lanes);

static void each_run(const image_runs *l, run_fn *run, const lanes_transfer *c)
{
  const image_run none = plain_run(1, 0, 0);
  const image_run *a = l->n > 2 ? &l->of[0] : &none;
  const image_run *b = l->n > 1 ? &l->of[l->n - 2] : &none;
  for (int64_t i = 0; i < a->size; i++) {
    for (int64_t k = 0; k < b->size; k++) {
      run(c, &l->of[l->n - 1], i * a->step + k * b->step,
          (i * a->vectors + k * b->vectors) * CPU_KERNEL_LANES);
    }
  }
}

// ---- into lanes and back ----------------------------------------------------

#define TILE (CPU_KERNEL_LANES * CPU_KERNEL_LANES)

// Where the tile at element q of n begins: the last one overlaps the one before
// it. *out_n: its elements.
static int64_t tile_of(int64_t q, int64_t n, int64_t *out_n)
{
  *out_n = n < CPU_KERNEL_LANES ? n : CPU_KERNEL_LANES;
  return q + *out_n > n ? n - *out_n : q;
}

// Elements of a run that are fetched ahead: neighbours in an image lie apart.
#define AHEAD 24

static void pack_run(const lanes_transfer *c, const image_run *run,
                     int64_t tensor, int64_t lanes)
{
  const float *from = c->from + tensor;
  float *to = c->to + lanes;
  const int64_t step = run->vectors * CPU_KERNEL_LANES;
  const bool full = c->lanes == CPU_KERNEL_LANES;
  int64_t n;
  if (c->lane == 1 && full) {
    for (int64_t q = 0; q < run->size; q++) {
      __builtin_prefetch(from + (q + AHEAD) * run->step);
      memcpy(to + q * step, from + q * run->step,
             CPU_KERNEL_LANES * sizeof *to);
    }
    return;
  }
  if (run->step != 1 || c->lane == 1) {
    for (int64_t q = 0; q < run->size; q++) {
      for (int64_t i = 0; i < c->lanes; i++) {
        to[lanes_at(run, q) + i] = from[q * run->step + i * c->lane];
      }
    }
    return;
  }
  for (int64_t q = 0; q < run->size; q += CPU_KERNEL_LANES) {
    const int64_t at = tile_of(q, run->size, &n);
    const bool whole = full && n == CPU_KERNEL_LANES;
    if (whole && is_plain(run)) {
      c->loops->transpose(from + at, c->lane, to + at * step, step);
      continue;
    }
    float turned[TILE];
    if (whole) {
      c->loops->transpose(from + at, c->lane, turned, CPU_KERNEL_LANES);
    } else {
      float tile[TILE] = { 0 };
      for (int64_t i = 0; i < c->lanes; i++) {
        memcpy(tile + i * CPU_KERNEL_LANES, from + i * c->lane + at,
               (size_t)n * sizeof *tile);
      }
      c->loops->transpose(tile, CPU_KERNEL_LANES, turned, CPU_KERNEL_LANES);
    }
    for (int64_t k = 0; k < n; k++) {
      memcpy(to + lanes_at(run, at + k), turned + k * CPU_KERNEL_LANES,
             CPU_KERNEL_LANES * sizeof *to);
    }
  }
}

static void unpack_run(const lanes_transfer *c, const image_run *run,
                       int64_t tensor, int64_t lanes)
{
  const float *from = c->from + lanes;
  float *to = c->to + tensor;
  const int64_t step = run->vectors * CPU_KERNEL_LANES;
  const bool full = c->lanes == CPU_KERNEL_LANES;
  int64_t n;
  if (run->step != 1 || c->lane == 1) {
    for (int64_t q = 0; q < run->size; q++) {
      for (int64_t i = 0; i < c->lanes; i++) {
        to[q * run->step + i * c->lane] = from[lanes_at(run, q) + i];
      }
    }
    return;
  }
  for (int64_t q = 0; q < run->size; q += CPU_KERNEL_LANES) {
    const int64_t at = tile_of(q, run->size, &n);
    if (full && n == CPU_KERNEL_LANES && is_plain(run)) {
      c->loops->transpose(from + at * step, step, to + at, c->lane);
      continue;
    }
    float tile[TILE] = { 0 }, turned[TILE];
    for (int64_t k = 0; k < n; k++) {
      memcpy(tile + k * CPU_KERNEL_LANES, from + lanes_at(run, at + k),
             CPU_KERNEL_LANES * sizeof *tile);
    }
    c->loops->transpose(tile, CPU_KERNEL_LANES, turned, CPU_KERNEL_LANES);
    for (int64_t i = 0; i < c->lanes; i++) {
      memcpy(to + i * c->lane + at, turned + i * CPU_KERNEL_LANES,
             (size_t)n * sizeof *to);
    }
  }
}

static lanes_transfer transfer_of(const cpu_kernel_lanes_images *m,
                                  int64_t block)
{
  const int64_t left = m->count - block * CPU_KERNEL_LANES;
  return (lanes_transfer){ .loops = cpu_kernel_lanes_get(),
                           .lane = m->lane,
                           .lanes = left < CPU_KERNEL_LANES
                                        ? left
                                        : CPU_KERNEL_LANES };
}

bool cpu_kernel_lanes_are_there(const cpu_kernel_lanes_images *m,
                                const cpu_kernel_lanes_layout *layout)
{
  const int64_t pixel = m->channels * CPU_KERNEL_LANES;
  return m->lane == 1 && m->count % CPU_KERNEL_LANES == 0 &&
         (m->channels == 1 || m->channel == CPU_KERNEL_LANES) &&
         (m->columns == 1 || m->column == pixel) &&
         (m->rows == 1 || m->row == m->columns * pixel) &&
         layout->width == m->columns && layout->low == 0 && layout->hole == 1 &&
         layout->channels == m->channels;
}

void cpu_kernel_lanes_pack(const cpu_kernel_lanes_images *m, const float *from,
                           int64_t block, const cpu_kernel_lanes_layout *layout,
                           float *to)
{
  lanes_transfer c = transfer_of(m, block);
  const image_runs l = runs_of(m, layout);
  if (layout->width != m->columns || layout->channels != m->channels ||
      c.lanes < CPU_KERNEL_LANES) {
    memset(to, 0,
           sizeof *to * (size_t)(m->rows * layout->width * layout->channels *
                                 CPU_KERNEL_LANES));
  }
  c.from = from + m->first + block * m->block;
  c.to = to + layout->low * layout->channels * CPU_KERNEL_LANES;
  each_run(&l, pack_run, &c);
}

void cpu_kernel_lanes_unpack(const cpu_kernel_lanes_images *m,
                             const float *from, int64_t block, float *to)
{
  lanes_transfer c = transfer_of(m, block);
  const cpu_kernel_lanes_layout layout = cpu_kernel_lanes_dense(m);
  const image_runs l = runs_of(m, &layout);
  c.from = from;
  c.to = to + block * m->block;
  each_run(&l, unpack_run, &c);
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

cpu_kernel_lanes_layout cpu_kernel_lanes_input(const cpu_kernel_lanes *l)
{
  return (cpu_kernel_lanes_layout){ l->width, l->low[1], l->hole[1],
                                    l->channels };
}

cpu_kernel_lanes_layout cpu_kernel_lanes_dense(const cpu_kernel_lanes_images *m)
{
  return (cpu_kernel_lanes_layout){ m->columns, 0, 1, m->channels };
}

cpu_kernel_lanes_images cpu_kernel_lanes_images_of(
    const cpu_kernel_conv_desc *d, const int64_t *strides, int lane,
    int64_t count, int64_t channels, const int64_t size[2])
{
  const int64_t n = d->n_dims;  // one dimension is the columns
  return (cpu_kernel_lanes_images){
    .count = count,
    .channels = channels,
    .rows = size[0],
    .columns = size[1],
    .block = n > 2 ? strides[2] : CPU_KERNEL_LANES * strides[lane],
    .lane = strides[lane],
    .channel = strides[1 - lane],
    .row = n < 2 ? 0 : strides[n],
    .column = n < 1 ? 0 : strides[n + 1]
  };
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
