// kernel/conv_implicit: convolutions as implicit matrix products (implicit.h):
// which they are, and their points and taps.
//
//              rows                         columns     inner elements
//   forward    points (the result's         features    taps of the kernel,
//              pixels of all images)        that come   features that go in
//                                           out
//   gradient   taps (the result's pixels),  the same    points (pixels of the
//   by weights batch                                    kernel, of all images)
//
// An input gradient with strides has holes in its input. Of its results those
// with the same remainders meet the same taps; they are one class, whose input
// has no holes.
#include "base/alloc.h"
#include "kernel/conv.h"
#include "kernel/implicit.h"

#define DIMS CPU_KERNEL_IMPLICIT_DIMS
#define MOST_CLASSES CPU_KERNEL_IMPLICIT_CLASSES
#define MOST_TAPS 1024
#define MOST_INNER (INT64_C(1) << 22)

// Adds a line whose rows are `order` apart, so that those farther apart are
// outside; lines of one element have no effect.
static void add_line(cpu_kernel_implicit_class *c,
                     const cpu_kernel_implicit_line *l, int64_t order,
                     int64_t orders[DIMS + 1])
{
  c->points *= l->size;
  if (l->size == 1) return;
  int at = c->n_lines++;
  for (; at > 0 && orders[at - 1] < order; at--) {
    c->lines[at] = c->lines[at - 1];
    orders[at] = orders[at - 1];
  }
  c->lines[at] = *l;
  orders[at] = order;
}

// Positions of a kernel, or of a result, along one dimension: `offset` is where
// the first one reads, and they are `step` apart in an input whose elements are
// `hole` apart.
typedef struct tap_line {
  int64_t size, step, offset, hole, other;
  bool reversed;
} tap_line;

// Adds the taps that meet an element of the input, not a hole.
static void add_taps(cpu_kernel_implicit_plan *p, const tap_line *dims,
                     int64_t n, int64_t *io_taps)
{
  int64_t total = 1;
  for (int64_t i = 0; i < n; i++) total *= dims[i].size;
  for (int64_t which = 0; which < total; which++) {
    cpu_kernel_implicit_tap t = { .other = 0 };
    bool meets = true;
    int64_t rest = which;
    for (int64_t i = n - 1; i >= 0; i--) {
      const tap_line *l = &dims[i];
      const int64_t at = rest % l->size;
      const int64_t shift = at * l->step + l->offset;
      rest /= l->size;
      meets = meets && shift % l->hole == 0;
      t.shift[i] = shift / l->hole;
      t.other += (l->reversed ? l->size - 1 - at : at) * l->other;
    }
    if (meets) p->taps[(*io_taps)++] = t;
  }
}

static void set_input(cpu_kernel_implicit_plan *p,
                      const cpu_kernel_conv_desc *d,
                      const cpu_kernel_conv_tensors *s)
{
  for (int64_t i = 0; i < DIMS; i++) {
    p->in[i] = i < d->n_dims ? d->dims[i].in : 1;
    p->stride[i] = i < d->n_dims ? s->stride[0][2 + i] : 0;
  }
  p->b_row = s->stride[1][0];
  p->b_column = s->stride[1][1];
}

// The class of the results whose positions have these remainders, divided by
// the distance of the input's elements.
static void add_class(cpu_kernel_implicit_plan *p,
                      const cpu_kernel_conv_desc *d,
                      const cpu_kernel_conv_tensors *s,
                      const int64_t remainder[DIMS], int64_t *io_taps)
{
  cpu_kernel_implicit_class *c = &p->classes[p->n_classes];
  *c = (cpu_kernel_implicit_class){ .points = 1, .first_tap = *io_taps };
  int64_t orders[DIMS + 1];
  tap_line taps[DIMS];
  const int64_t *result = s->stride[2];
  add_line(c,
           &(cpu_kernel_implicit_line){ d->batch, s->stride[0][0], result[0],
                                        -1, 0 },
           result[0], orders);
  for (int64_t i = 0; i < d->n_dims; i++) {
    const cpu_kernel_conv_dim *m = &d->dims[i];
    const int64_t hole = m->in_dilation, r = remainder[i];
    const int64_t n = r < m->out ? (m->out - r + hole - 1) / hole : 0;
    add_line(c,
             &(cpu_kernel_implicit_line){ n, 0, hole * result[2 + i], (int)i,
                                          hole == 1 ? m->stride : 1 },
             result[2 + i], orders);
    c->row += r * result[2 + i];
    taps[i] = (tap_line){ m->kernel, m->kernel_dilation,  r - m->low,
                          hole,      s->stride[1][2 + i], m->reversed != 0 };
  }
  if (c->points == 0) return;
  add_taps(p, taps, d->n_dims, io_taps);
  c->taps = *io_taps - c->first_tap;
  p->n_classes++;
}

static void describe_forward(cpu_kernel_implicit_plan *p,
                             const cpu_kernel_conv_desc *d,
                             const cpu_kernel_conv_tensors *s)
{
  int64_t taps = 0, classes = 1;
  p->run = d->features;
  for (int64_t i = 0; i < d->n_dims; i++) classes *= d->dims[i].in_dilation;
  p->apart = classes > 1;
  for (int64_t which = 0; which < classes; which++) {
    int64_t remainder[DIMS] = { 0 }, rest = which;
    for (int64_t i = 0; i < d->n_dims; i++) {
      remainder[i] = rest % d->dims[i].in_dilation;
      rest /= d->dims[i].in_dilation;
    }
    add_class(p, d, s, remainder, &taps);
  }
}

static void describe_by_weights(cpu_kernel_implicit_plan *p,
                                const cpu_kernel_conv_desc *d,
                                const cpu_kernel_conv_tensors *s)
{
  cpu_kernel_implicit_class *c = &p->classes[p->n_classes++];
  *c = (cpu_kernel_implicit_class){ .points = 1 };
  int64_t orders[DIMS + 1];
  tap_line taps[DIMS];
  p->transposed = true;
  p->run = d->batch;
  add_line(
      c, &(cpu_kernel_implicit_line){ d->features, s->stride[0][1], 0, -1, 0 },
      s->stride[1][0], orders);
  for (int64_t i = 0; i < d->n_dims; i++) {
    const cpu_kernel_conv_dim *m = &d->dims[i];
    add_line(c,
             &(cpu_kernel_implicit_line){ m->kernel, 0, 0, (int)i,
                                          m->kernel_dilation },
             s->stride[1][2 + i], orders);
    taps[i] =
        (tap_line){ m->out, m->stride, -m->low, 1, s->stride[2][2 + i], false };
  }
  p->b_row = p->n;  // the points are in the order of the kernel's elements
  add_taps(p, taps, d->n_dims, &c->taps);
}

typedef enum form { NEITHER, FORWARD, BY_WEIGHTS } form;

static form form_of(const cpu_kernel_conv_desc *d,
                    const cpu_kernel_conv_tensors *s)
{
  int64_t taps = 1, results = 1, classes = 1;
  bool plain = true;  // neither holes nor a reversed kernel
  if (d->n_dims < 1 || d->n_dims > DIMS || d->feature_groups != 1 ||
      d->batch_groups != 1 || s->stride[2][1] != 1 ||
      d->features > MOST_INNER || cpu_kernel_conv_flops(d) == 0) {
    return NEITHER;
  }
  for (int i = 0; i < 3; i++) {
    if (d->types[i] != CX_HLO_F32) return NEITHER;
  }
  for (int64_t i = 0; i < d->n_dims; i++) {
    const cpu_kernel_conv_dim *m = &d->dims[i];
    if (m->kernel > MOST_INNER || m->in_dilation > MOST_CLASSES ||
        (m->in_dilation > 1 && m->stride > 1)) {
      return NEITHER;
    }
    plain = plain && m->in_dilation == 1 && m->reversed == 0;
    classes *= m->in_dilation;
    taps = taps > MOST_INNER / m->kernel ? MOST_INNER + 1 : taps * m->kernel;
    results *= m->out < MOST_TAPS ? m->out : MOST_TAPS + 1;
  }
  if (s->stride[0][1] == 1 && taps <= MOST_TAPS && classes <= MOST_CLASSES &&
      d->features <= MOST_INNER / taps &&
      (s->stride[1][0] == 1 || s->stride[1][1] == 1)) {
    return FORWARD;
  }
  const bool rows = s->stride[2][0] == d->kernel_out;
  return s->stride[0][0] == 1 && rows && plain && s->stride[1][1] == 1 &&
                 results <= MOST_TAPS && d->features <= MOST_INNER / taps
             ? BY_WEIGHTS
             : NEITHER;
}

// Fewer leave vectors or rows empty, or do not make up for the gathering.
#define LEAST_RUN 16
#define LEAST_SPLIT_RUN 32
#define LEAST_COLUMNS 32
#define LEAST_FLOPS 4e6
// With more pixels oneDNN's copies of the weights cost little, but split
// products are faster than all of its algorithms but Winograd's.
#define MOST_PIXELS 512

// Winograd's algorithm has 3 x 3 taps, neither strides nor dilation, and
// computes tiles of 4 x 4 results. Split products are faster if many results of
// the tiles are not wanted, and there are many channels.
#define WINOGRAD_TAPS 3
#define WINOGRAD_TILE 4
#define WINOGRAD_CHANNELS 256
#define WINOGRAD_WASTE 1.25

static bool is_for_winograd(const cpu_kernel_conv_desc *d, form is, int64_t run)
{
  double waste = 1;
  for (int64_t i = 0; i < d->n_dims; i++) {
    const cpu_kernel_conv_dim *m = &d->dims[i];
    const int64_t taps = is == FORWARD ? m->kernel : m->out;
    const int64_t results = is == FORWARD ? m->out : m->kernel;
    if (taps != WINOGRAD_TAPS || m->stride > 1 || m->in_dilation > 1 ||
        m->kernel_dilation > 1) {
      return false;
    }
    waste *= (double)((results + WINOGRAD_TILE - 1) / WINOGRAD_TILE *
                      WINOGRAD_TILE) /
             (double)results;
  }
  return d->n_dims == 2 && (waste < WINOGRAD_WASTE || run < WINOGRAD_CHANNELS ||
                            d->kernel_out < WINOGRAD_CHANNELS);
}

// Whether oneDNN's Winograd is faster for it than all but split products.
static bool suits_winograd(const cpu_kernel_conv_desc *d)
{
  cpu_kernel_conv_candidates candidates;
  cpu_kernel_conv_onednn_candidates(d, &candidates);
  return candidates.sure != CPU_KERNEL_CONV_CHOICE_NONE;
}

bool cpu_kernel_conv_implicit_suits(const cpu_kernel_conv_desc *d)
{
  cpu_kernel_conv_tensors s;
  cpu_kernel_conv_tensors_of(d, &s);
  const form is = form_of(d, &s);
  const int64_t run = is == FORWARD ? d->features : d->batch;
  int64_t pixels = is == FORWARD ? d->batch : d->features;
  int64_t taps = 1;  // that each result meets, at least
  for (int64_t i = 0; is != NEITHER && i < d->n_dims; i++) {
    const cpu_kernel_conv_dim *m = &d->dims[i];
    if (m->kernel > m->in_dilation) taps *= m->kernel / m->in_dilation;
    // Of results that meet the same taps.
    pixels *= is == FORWARD ? (m->out + m->in_dilation - 1) / m->in_dilation
                            : m->kernel;
  }
  if (is == NEITHER || run < LEAST_RUN || d->kernel_out < LEAST_COLUMNS ||
      cpu_kernel_conv_flops(d) < LEAST_FLOPS) {
    return false;
  }
  const bool splits =
      run >= LEAST_SPLIT_RUN &&
      cpu_kernel_implicit_splits(is == FORWARD ? pixels : run, d->kernel_out,
                                 is == FORWARD ? taps * run : pixels);
  if (pixels > MOST_PIXELS) return splits && !is_for_winograd(d, is, run);
  return splits || !suits_winograd(d);
}

// From so many operations on it is mostly faster than oneDNN (decisions 110 and
// 113). Measuring would choose oneDNN: it runs a small part of the convolution,
// which takes most of its time to pack.
#define SURE_FLOPS 2e8

bool cpu_kernel_conv_implicit_is_sure(const cpu_kernel_conv_desc *d)
{
  return cpu_kernel_conv_implicit_suits(d) &&
         cpu_kernel_conv_flops(d) >= SURE_FLOPS;
}

calx_status *cpu_kernel_conv_implicit_new(cpu_kernel *kernel, bool *out_taken)
{
  const cpu_kernel_conv_desc *d = &kernel->conv;
  cpu_kernel_conv_tensors s;
  *out_taken = false;
  cpu_kernel_conv_tensors_of(d, &s);
  const form is = form_of(d, &s);
  if (is == NEITHER) return NULL;
  cpu_kernel_implicit_plan *p = cx_calloc(1, sizeof *p);
  if (p == NULL) return cx_out_of_memory();
  p->n = d->kernel_out;
  p->taps = cx_calloc(MOST_TAPS, sizeof *p->taps);
  if (p->taps == NULL) {
    cx_free(p);
    return cx_out_of_memory();
  }
  set_input(p, d, &s);
  if (is == FORWARD) {
    describe_forward(p, d, &s);
  } else {
    describe_by_weights(p, d, &s);
  }
  cpu_kernel_implicit_set(kernel, p);
  *out_taken = true;
  return NULL;
}
