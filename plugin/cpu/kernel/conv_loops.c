// kernel/conv_loops: any convolution of any type as matrix products (gemm.h).
//
// The operands are first converted to the type that is computed in: lhs to
// (batch, spatial, features), the kernel to (spatial, in, out) with its
// reversed dimensions reversed. Then each block of results is
//   (results, taps) * (taps, out features)
// where a tap is a position of the kernel and an input feature. The left
// matrix, the patches, is made block by block, so that it stays in the cache.
// Padding and the holes of a dilated input are zeros in it.
#include <string.h>

#include "base/alloc.h"
#include "kernel/conv.h"
#include "kernel/gemm.h"

#define BLOCK_ROWS 64
#define BLOCK_TAPS 512

typedef struct loops_plan {
  cpu_kernel_conv_desc d;
  cpu_kernel_math math;
  bool complex;
  cpu_kernel_operand operands[3];  // lhs, rhs, result
  cpu_kernel_view out;  // from (batch, spatial, features) to the result's order
  bool permuted;        // which is another one
  int64_t points, taps;       // results of an image; taps of a group
  int64_t rows;               // results of a group
  cpu_kernel_operand turned;  // the result in its own order
  size_t block_at, block_bytes, patch_bytes;
} loops_plan;

// ---- planning ---------------------------------------------------------------

static void plan_views(loops_plan *p)
{
  const cpu_kernel_conv_desc *d = &p->d;
  cpu_kernel_conv_tensors s;
  cpu_kernel_conv_tensors_of(d, &s);
  cpu_kernel_view *lhs = &p->operands[0].view, *rhs = &p->operands[1].view;
  for (int t = 0; t < 3; t++) {
    p->operands[t].view.type = (cx_hlo_elem)d->types[t];
    p->operands[t].imaginary = cx_hlo_elem_is_complex((cx_hlo_elem)d->types[t]);
  }
  cpu_kernel_view_add(lhs, d->batch, s.stride[0][0]);
  for (int64_t i = 0; i < d->n_dims; i++) {
    const int64_t size = d->dims[i].kernel, stride = s.stride[1][2 + i];
    cpu_kernel_view_add(lhs, d->dims[i].in, s.stride[0][2 + i]);
    if (d->dims[i].reversed) rhs->first += (size - 1) * stride;
    cpu_kernel_view_add(rhs, size, d->dims[i].reversed ? -stride : stride);
  }
  cpu_kernel_view_add(lhs, d->features, s.stride[0][1]);
  cpu_kernel_view_add(rhs, d->kernel_in, s.stride[1][0]);
  cpu_kernel_view_add(rhs, d->kernel_out, s.stride[1][1]);
}

// The strides in the computed order, listed in the result's own order.
static void plan_result(loops_plan *p)
{
  static const cx_hlo_elem as[CPU_KERNEL_MATH_COUNT] = { CX_HLO_F32, CX_HLO_F64,
                                                         CX_HLO_UI32,
                                                         CX_HLO_UI64 };
  const cpu_kernel_conv_desc *d = &p->d;
  int64_t from[CPU_KERNEL_CONV_DIMS + 2], order[CPU_KERNEL_CONV_DIMS + 2];
  cpu_kernel_conv_tensors s;
  cpu_kernel_conv_tensors_of(d, &s);
  const int64_t *sizes = s.size[2];
  int64_t stride = sizes[1];
  from[1] = 1;
  for (int64_t i = d->n_dims; i-- > 0;) {
    from[2 + i] = stride;
    stride *= sizes[2 + i];
  }
  from[0] = stride;
  p->out.type = as[p->math];
  for (int64_t i = 0; i < d->n_dims + 2; i++) order[s.at[2][i]] = i;
  for (int64_t i = 0; i < d->n_dims + 2; i++) {
    cpu_kernel_view_add(&p->out, sizes[order[i]], from[order[i]]);
  }
  p->permuted = p->out.n > 1 || (p->out.n == 1 && p->out.stride[0] != 1);
}

static void plan_scratch(cpu_kernel *kernel, loops_plan *p)
{
  const size_t math_bytes = cpu_kernel_math_bytes(p->math);
  int64_t elements = 0;
  for (int t = 0; t < 3; t++) {
    cpu_kernel_operand *o = &p->operands[t];
    elements = (int64_t)(kernel->bytes[t] / cx_hlo_elem_bytes(o->view.type));
    cpu_kernel_operand_reserve(kernel, p->math, elements, o);
  }
  p->turned.imaginary = p->complex;
  if (p->permuted) {
    cpu_kernel_operand_reserve(kernel, p->math, elements, &p->turned);
  }
  const int64_t taps = p->taps < BLOCK_TAPS ? p->taps : BLOCK_TAPS;
  p->patch_bytes = ((size_t)(BLOCK_ROWS * taps) * math_bytes + 63) / 64 * 64;
  p->block_bytes =
      p->patch_bytes +
      cpu_kernel_gemm_panels(p->math, BLOCK_ROWS, p->d.kernel_out, taps);
  p->block_at =
      cpu_kernel_reserve(kernel, p->block_bytes * (size_t)kernel->threads);
}

// ---- running ----------------------------------------------------------------

typedef struct loops_pass {
  const loops_plan *p;
  cpu_threads *pool;
  cpu_kernel_planes planes;
  unsigned char *blocks;
} loops_pass;

// The element of an image that the tap of the result reads; -1: padding or a
// hole.
static int64_t find_element(const cpu_kernel_conv_desc *d,
                            const int64_t *result, const int64_t *tap)
{
  int64_t at = 0;
  for (int64_t i = 0; i < d->n_dims; i++) {
    const cpu_kernel_conv_dim *s = &d->dims[i];
    const int64_t x =
        result[i] * s->stride + tap[i] * s->kernel_dilation - s->low;
    if (x < 0 || x > (s->in - 1) * s->in_dilation) return -1;
    if (s->in_dilation != 1 && x % s->in_dilation != 0) return -1;
    at = at * s->in + x / s->in_dilation;
  }
  return at;
}

static void step(const cpu_kernel_conv_desc *d, int64_t *index, bool of_kernel)
{
  for (int64_t i = d->n_dims; i-- > 0;) {
    const int64_t size = of_kernel ? d->dims[i].kernel : d->dims[i].out;
    if (++index[i] < size) return;
    index[i] = 0;
  }
}

static void set_index(const cpu_kernel_conv_desc *d, int64_t *index, int64_t at,
                      bool of_kernel)
{
  for (int64_t i = d->n_dims; i-- > 0;) {
    const int64_t size = of_kernel ? d->dims[i].kernel : d->dims[i].out;
    index[i] = at % size;
    at /= size;
  }
}

// One row of patches: taps [lo, hi) of one result. `image` is (spatial,
// features), at the group's first feature.
static void fill_row(const loops_plan *p, const unsigned char *image,
                     const int64_t *result, int64_t lo, int64_t hi,
                     unsigned char *to)
{
  const cpu_kernel_conv_desc *d = &p->d;
  const int64_t bytes = (int64_t)cpu_kernel_math_bytes(p->math);
  int64_t tap[CPU_KERNEL_CONV_DIMS] = { 0 };
  set_index(d, tap, lo / d->kernel_in, true);
  while (lo < hi) {
    const int64_t feature = lo % d->kernel_in;
    int64_t n = d->kernel_in - feature;
    if (n > hi - lo) n = hi - lo;
    const int64_t at = find_element(d, result, tap);
    if (at < 0) {
      memset(to, 0, (size_t)(n * bytes));
    } else {
      memcpy(to, image + (at * d->features + feature) * bytes,
             (size_t)(n * bytes));
    }
    to += n * bytes;
    lo += n;
    step(d, tap, true);
  }
}

// The patches of results [row, row + rows) of a group: taps [lo, hi).
static void fill_patches(const loops_pass *q, int64_t group, int64_t row,
                         int64_t rows, int64_t lo, int64_t hi,
                         unsigned char *to)
{
  const loops_plan *p = q->p;
  const cpu_kernel_conv_desc *d = &p->d;
  const int64_t bytes = (int64_t)cpu_kernel_math_bytes(p->math);
  const int64_t first_image =
      d->batch_groups > 1 ? group * (d->batch / d->batch_groups) : 0;
  const int64_t feature = d->batch_groups > 1 ? 0 : group * d->kernel_in;
  int64_t image_size = d->features;
  for (int64_t i = 0; i < d->n_dims; i++) image_size *= d->dims[i].in;
  for (int64_t r = 0; r < rows; r++) {
    const int64_t image = first_image + (row + r) / p->points;
    int64_t result[CPU_KERNEL_CONV_DIMS] = { 0 };
    set_index(d, result, (row + r) % p->points, false);
    fill_row(p, q->planes.lhs + (image * image_size + feature) * bytes, result,
             lo, hi, to + r * (hi - lo) * bytes);
  }
}

// Results [row, row + rows) of a group, over all of its taps.
static void run_block(const loops_pass *q, int64_t group, int64_t row,
                      int64_t rows)
{
  const loops_plan *p = q->p;
  const cpu_kernel_conv_desc *d = &p->d;
  const int64_t bytes = (int64_t)cpu_kernel_math_bytes(p->math);
  const size_t rank = (size_t)cpu_kernel_rank(q->pool);
  unsigned char *patches = q->blocks + rank * p->block_bytes;
  const int64_t groups = d->feature_groups * d->batch_groups;
  const int64_t out_each = d->kernel_out / groups;
  for (int64_t lo = 0; lo < p->taps; lo += BLOCK_TAPS) {
    const int64_t hi = lo + BLOCK_TAPS < p->taps ? lo + BLOCK_TAPS : p->taps;
    fill_patches(q, group, row, rows, lo, hi, patches);
    const cpu_kernel_gemm g = {
      .m = rows,
      .n = out_each,
      .k = hi - lo,
      .a = patches,
      .a_row = hi - lo,
      .a_column = 1,
      .b = q->planes.rhs + (lo * d->kernel_out + group * out_each) * bytes,
      .b_row = d->kernel_out,
      .b_column = 1,
      .c = q->planes.out + (row * d->kernel_out + group * out_each) * bytes,
      .ldc = d->kernel_out,
      .mode = lo != 0 && q->planes.mode == CPU_KERNEL_GEMM_SET
                  ? CPU_KERNEL_GEMM_ADD
                  : q->planes.mode,
    };
    cpu_kernel_gemm_run(p->math, &g, patches + p->patch_bytes);
  }
}

static void run_blocks(void *user, int64_t lo, int64_t hi)
{
  const loops_pass *q = user;
  const int64_t each = (q->p->rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
  for (int64_t i = lo; i < hi; i++) {
    const int64_t row = i % each * BLOCK_ROWS;
    const int64_t left = q->p->rows - row;
    run_block(q, i / each, row, left < BLOCK_ROWS ? left : BLOCK_ROWS);
  }
}

static void run_pass(void *user)
{
  loops_pass *q = user;
  const loops_plan *p = q->p;
  const int64_t groups = p->d.feature_groups * p->d.batch_groups;
  const int64_t blocks = (p->rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
  cpu_threads_for(q->pool, groups * blocks, 1, run_blocks, q);
}

static calx_status *run_loops(const cpu_kernel *kernel, cpu_threads *pool,
                              const void *lhs, const void *rhs, void *out,
                              unsigned char *scratch)
{
  const loops_plan *p = kernel->plan;
  const cpu_kernel_operand *o = p->operands;
  cpu_kernel_operand_gather(&o[0], lhs, p->math, scratch, pool);
  cpu_kernel_operand_gather(&o[1], rhs, p->math, scratch, pool);
  loops_pass q = { .p = p,
                   .pool = pool,
                   .planes = { scratch + o[0].at, scratch + o[1].at,
                               scratch + o[2].at, CPU_KERNEL_GEMM_SET },
                   .blocks = scratch + p->block_at };
  cpu_kernel_gemm_planes(&q.planes, o, run_pass, &q);
  const unsigned char *re = scratch + o[2].at;
  const unsigned char *im = re + o[2].plane;
  const cx_hlo_elem type = o[2].view.type;
  if (p->permuted) {
    unsigned char *turned = scratch + p->turned.at;
    cpu_kernel_view_gather(&p->out, re, p->math, turned, pool);
    re = turned;
    turned += p->turned.plane;
    if (p->complex) cpu_kernel_view_gather(&p->out, im, p->math, turned, pool);
    im = turned;
  }
  const size_t n = kernel->bytes[2] / cx_hlo_elem_bytes(type);
  cpu_kernel_math_store(p->math, re, im, type, out, (int64_t)n, pool);
  return NULL;
}

calx_status *cpu_kernel_conv_loops_new(cpu_kernel *kernel)
{
  loops_plan *p = cx_calloc(1, sizeof *p);
  if (p == NULL) return cx_out_of_memory();
  cpu_kernel_set(kernel, run_loops, p, "convolution loops");
  p->d = kernel->conv;
  const cpu_kernel_conv_desc *d = &p->d;
  (void)cpu_kernel_math_of(d->types, &p->math, &p->complex);
  p->points = 1;
  p->taps = d->kernel_in;
  for (int64_t i = 0; i < d->n_dims; i++) {
    p->points *= d->dims[i].out;
    p->taps *= d->dims[i].kernel;
  }
  p->rows = d->batch / d->batch_groups * p->points;
  plan_views(p);
  plan_result(p);
  plan_scratch(kernel, p);
  return NULL;
}
