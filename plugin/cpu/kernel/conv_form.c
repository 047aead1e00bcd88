// kernel/conv_form: which of oneDNN's convolutions a StableHLO convolution is.
//
// Let a forward convolution of stride s, dilation d, low padding p and a kernel
// of K taps compute y from x. ops/conv.c of the library and JAX write in
// StableHLO
//   the gradient by x: y' dilated by s, convolved with the reversed kernel at
//     stride 1, dilation d, low padding d * (K - 1) - p;
//   the gradient by w: batch and features of x exchanged, y' as the kernel,
//     dilated by s, at stride d, low padding p; groups become batch groups.
// Here the forward convolution is found from such a gradient. The high padding
// follows from the sizes; up to s - 1 more of it changes nothing.
#include "kernel/conv_form.h"

#include <string.h>

// Larger ones are run by loops: oneDNN computes offsets in 32 bits.
#define MOST_SIZE ((int64_t)1 << 24)
#define MOST_ELEMENTS ((int64_t)1 << 31)
#define MOST_DISTANCE 1024
#define MOST_TAPS 1024

static void set_tensor(cpu_kernel_conv_tensor *t, const cpu_kernel_conv_form *f,
                       int64_t first, int64_t first_stride, int64_t second,
                       int64_t second_stride)
{
  t->n = 2 + f->n;
  t->size[0] = first;
  t->stride[0] = first_stride;
  t->size[1] = second;
  t->stride[1] = second_stride;
}

// Weights as ([groups,] out, in), from a tensor without a dimension of groups:
// its out or in dimension has those of all groups.
static int set_weights(cpu_kernel_conv_form *f, int64_t groups, int64_t out,
                       int64_t out_stride, int64_t in, int64_t in_stride,
                       bool groups_in_out)
{
  cpu_kernel_conv_tensor *w = &f->weights;
  int at = 0;
  f->groups = groups;
  if (groups > 1) {
    w->size[0] = groups;
    w->stride[0] = groups_in_out ? out * out_stride : in * in_stride;
    at = 1;
  }
  w->size[at] = out;
  w->stride[at] = out_stride;
  w->size[at + 1] = in;
  w->stride[at + 1] = in_stride;
  w->n = at + 2 + f->n;
  return at + 2;
}

static int64_t most(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

// The high padding with which `src` elements give `dst`.
static bool set_padding(cpu_kernel_conv_form *f, int i, int64_t src,
                        int64_t taps, int64_t dst)
{
  if (taps == 1) f->dilation[i] = 1;
  if (dst == 1) f->stride[i] = 1;
  const int64_t window = (taps - 1) * f->dilation[i] + 1;
  const int64_t least = (dst - 1) * f->stride[i] + window - src - f->low[i];
  f->high[i] = most(least, 0);
  return f->high[i] <= least + f->stride[i] - 1 && f->low[i] >= 0 &&
         f->low[i] <= MOST_DISTANCE && f->high[i] <= MOST_DISTANCE &&
         f->low[i] < most(window, 2) && f->high[i] < most(window, 2) &&
         f->stride[i] <= MOST_DISTANCE && f->dilation[i] <= MOST_DISTANCE;
}

static void turn(cpu_kernel_conv_form *f, int i, bool turned)
{
  f->turned_dim[i] = turned;
  f->turned = f->turned || turned;
}

static bool form_forward(const cpu_kernel_conv_desc *d,
                         const cpu_kernel_conv_strides *s,
                         const cpu_kernel_conv_dim *dims,
                         cpu_kernel_conv_form *f)
{
  if (d->batch_groups != 1) return false;
  set_tensor(&f->src, f, d->batch, s->lhs[0], d->features, s->lhs[1]);
  set_tensor(&f->dst, f, d->batch, s->out[0], d->kernel_out, s->out[1]);
  const int at =
      set_weights(f, d->feature_groups, d->kernel_out / d->feature_groups,
                  s->rhs[1], d->kernel_in, s->rhs[0], true);
  for (int i = 0; i < f->n; i++) {
    const cpu_kernel_conv_dim *m = &dims[i];
    if (m->in_dilation != 1) return false;
    f->src.size[2 + i] = m->in;
    f->weights.size[at + i] = m->kernel;
    f->dst.size[2 + i] = m->out;
    f->src.stride[2 + i] = s->lhs[2 + i];
    f->weights.stride[at + i] = s->rhs[2 + i];
    f->dst.stride[2 + i] = s->out[2 + i];
    f->stride[i] = m->stride;
    f->dilation[i] = m->kernel_dilation;
    f->low[i] = m->low;
    turn(f, i, m->reversed && m->kernel > 1);
    if (!set_padding(f, i, m->in, m->kernel, m->out)) return false;
  }
  return true;
}

static bool form_input(const cpu_kernel_conv_desc *d,
                       const cpu_kernel_conv_strides *s,
                       const cpu_kernel_conv_dim *dims, cpu_kernel_conv_form *f)
{
  if (d->batch_groups != 1) return false;
  set_tensor(&f->dst, f, d->batch, s->lhs[0], d->features, s->lhs[1]);
  set_tensor(&f->src, f, d->batch, s->out[0], d->kernel_out, s->out[1]);
  const int at =
      set_weights(f, d->feature_groups, d->kernel_in, s->rhs[0],
                  d->kernel_out / d->feature_groups, s->rhs[1], false);
  for (int i = 0; i < f->n; i++) {
    const cpu_kernel_conv_dim *m = &dims[i];
    if (m->stride != 1) return false;
    f->dst.size[2 + i] = m->in;
    f->weights.size[at + i] = m->kernel;
    f->src.size[2 + i] = m->out;
    f->dst.stride[2 + i] = s->lhs[2 + i];
    f->weights.stride[at + i] = s->rhs[2 + i];
    f->src.stride[2 + i] = s->out[2 + i];
    f->stride[i] = m->in_dilation;
    f->dilation[i] = m->kernel_dilation;
    f->low[i] = (m->kernel - 1) * m->kernel_dilation - m->low;
    turn(f, i, !m->reversed && m->kernel > 1);
    if (!set_padding(f, i, m->out, m->kernel, m->in)) return false;
  }
  return true;
}

static bool form_weights(const cpu_kernel_conv_desc *d,
                         const cpu_kernel_conv_strides *s,
                         const cpu_kernel_conv_dim *dims,
                         cpu_kernel_conv_form *f)
{
  if (d->feature_groups != 1) return false;
  const int64_t groups = d->batch_groups;
  set_tensor(&f->src, f, d->features, s->lhs[1], d->batch, s->lhs[0]);
  set_tensor(&f->dst, f, d->kernel_in, s->rhs[0], d->kernel_out, s->rhs[1]);
  const int at = set_weights(f, groups, d->kernel_out / groups, s->out[1],
                             d->batch / groups, s->out[0], true);
  for (int i = 0; i < f->n; i++) {
    const cpu_kernel_conv_dim *m = &dims[i];
    if (m->in_dilation != 1 || (m->reversed && m->kernel > 1)) return false;
    f->src.size[2 + i] = m->in;
    f->dst.size[2 + i] = m->kernel;
    f->weights.size[at + i] = m->out;
    f->src.stride[2 + i] = s->lhs[2 + i];
    f->dst.stride[2 + i] = s->rhs[2 + i];
    f->weights.stride[at + i] = s->out[2 + i];
    f->stride[i] = m->kernel_dilation;
    f->dilation[i] = m->stride;
    f->low[i] = m->low;
    if (!set_padding(f, i, m->in, m->out, m->kernel)) return false;
  }
  return true;
}

static bool is_moderate(const cpu_kernel_conv_tensor *t)
{
  int64_t n = 1;
  for (int i = 0; i < t->n; i++) {
    if (t->size[i] < 1 || t->size[i] > MOST_SIZE) return false;
    if (n > MOST_ELEMENTS / t->size[i]) return false;
    n *= t->size[i];
  }
  return true;
}

bool cpu_kernel_conv_form_of(const cpu_kernel_conv_desc *d,
                             cpu_kernel_conv_kind kind,
                             cpu_kernel_conv_form *out)
{
  if (d->n_dims > 3) return false;
  cpu_kernel_conv_strides s;
  cpu_kernel_conv_strides_of(d, &s);
  const cpu_kernel_conv_dim *dims = d->dims;
  memset(out, 0, sizeof *out);
  out->kind = kind;
  out->n = (int)d->n_dims;
  if (d->n_dims == 0) {
    out->n = 1;
    dims = &cpu_kernel_conv_absent_dim;
    s.lhs[2] = s.rhs[2] = s.out[2] = 1;
  }
  bool fits = kind == CPU_KERNEL_CONV_FORWARD ? form_forward(d, &s, dims, out)
              : kind == CPU_KERNEL_CONV_INPUT ? form_input(d, &s, dims, out)
                                              : form_weights(d, &s, dims, out);
  if (!fits || !is_moderate(&out->src) || !is_moderate(&out->weights) ||
      !is_moderate(&out->dst)) {
    return false;
  }
  int64_t taps = 1;
  for (int i = 0; i < out->n; i++) {
    taps *= out->weights.size[out->weights.n - out->n + i];
  }
  return taps <= MOST_TAPS;
}

void cpu_kernel_conv_likely_forms(
    const cpu_kernel_conv_desc *d,
    cpu_kernel_conv_kind out[CPU_KERNEL_CONV_FORMS])
{
  static const cpu_kernel_conv_kind orders[3][CPU_KERNEL_CONV_FORMS] = {
    { CPU_KERNEL_CONV_FORWARD, CPU_KERNEL_CONV_INPUT, CPU_KERNEL_CONV_WEIGHTS },
    { CPU_KERNEL_CONV_INPUT, CPU_KERNEL_CONV_FORWARD, CPU_KERNEL_CONV_WEIGHTS },
    { CPU_KERNEL_CONV_WEIGHTS, CPU_KERNEL_CONV_FORWARD, CPU_KERNEL_CONV_INPUT },
  };
  // Images are stored one after the other, so the first dimension is the batch
  // of the forward convolution.
  bool exchanged = d->features_at == 0 && d->batch_at != 0;
  bool reversed = false;
  int64_t taps = 1, results = 1;
  for (int64_t i = 0; i < d->n_dims; i++) {
    reversed = reversed || d->dims[i].reversed;
    taps *= d->dims[i].kernel;
    results *= d->dims[i].out;
  }
  int which = d->batch_groups > 1 || exchanged || taps > 16 * results ? 2
              : reversed                                              ? 1
                                                                      : 0;
  memcpy(out, orders[which], sizeof orders[which]);
}

void cpu_kernel_conv_view_in_order(const cpu_kernel_conv_desc *d, int which,
                                   const cpu_kernel_conv_form *form,
                                   cpu_kernel_view *io)
{
  int64_t sizes[3][CPU_KERNEL_CONV_DIMS + 2];
  cpu_kernel_conv_strides s;
  cpu_kernel_conv_strides_of(d, &s);
  cpu_kernel_conv_sizes_of(d, sizes[0], sizes[1], sizes[2]);
  const int64_t *stride = which == 0 ? s.lhs : s.rhs;
  const int64_t *size = sizes[which];
  const int64_t n = d->n_dims + 2;
  int64_t at[CPU_KERNEL_CONV_DIMS + 2], order[CPU_KERNEL_CONV_DIMS + 2];
  cpu_kernel_conv_positions_of(d, which, at);
  for (int64_t i = 0; i < n; i++) order[at[i]] = i;
  for (int64_t position = 0; position < n; position++) {
    const int64_t i = order[position];
    const bool turned = form != NULL && i >= 2 && form->turned_dim[i - 2];
    if (turned) io->first += (size[i] - 1) * stride[i];
    cpu_kernel_view_add(io, size[i], turned ? -stride[i] : stride[i]);
  }
}
