// kernel/conv_form: which of oneDNN's convolutions a StableHLO convolution is.
//
// Let a forward convolution of stride s, dilation d, low padding p and a kernel
// of K taps compute y from x. In StableHLO the library and JAX write
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

const int cpu_kernel_conv_roles[CPU_KERNEL_CONV_FORMS][3] = {
  [CPU_KERNEL_CONV_FORWARD] = { 0, 1, 2 },
  [CPU_KERNEL_CONV_INPUT] = { 2, 1, 0 },
  [CPU_KERNEL_CONV_WEIGHTS] = { 0, 2, 1 },
};

static void add_dim(cpu_kernel_conv_tensor *t, int64_t size, int64_t stride)
{
  t->size[t->n] = size;
  t->stride[t->n++] = stride;
}

// Weights are ([groups,] out, in). In StableHLO the dimension of the features,
// one of the two, has those of all groups.
static void set_tensors(const cpu_kernel_conv_desc *d,
                        const cpu_kernel_conv_tensors *s,
                        cpu_kernel_conv_form *f)
{
  const int *role = cpu_kernel_conv_roles[f->kind];
  // The gradient by the weights has the images as features of lhs.
  const int batch = f->kind == CPU_KERNEL_CONV_WEIGHTS;
  const int out = f->kind != CPU_KERNEL_CONV_INPUT;  // of the weights
  const int64_t *weights = s->stride[role[1]];
  int64_t size[2] = { s->size[role[1]][0], s->size[role[1]][1] };
  f->groups =
      f->kind == CPU_KERNEL_CONV_WEIGHTS ? d->batch_groups : d->feature_groups;
  size[1] /= f->groups;
  add_dim(&f->src, s->size[role[0]][batch], s->stride[role[0]][batch]);
  add_dim(&f->src, s->size[role[0]][1 - batch], s->stride[role[0]][1 - batch]);
  add_dim(&f->dst, s->size[role[2]][0], s->stride[role[2]][0]);
  add_dim(&f->dst, s->size[role[2]][1], s->stride[role[2]][1]);
  if (f->groups > 1) add_dim(&f->weights, f->groups, size[1] * weights[1]);
  add_dim(&f->weights, size[out], weights[out]);
  add_dim(&f->weights, size[1 - out], weights[1 - out]);
  for (int i = 0; i < f->n; i++) {
    for (int t = 0; t < 3; t++) {
      add_dim(&f->tensors[t], s->size[role[t]][2 + i],
              s->stride[role[t]][2 + i]);
    }
  }
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

// The forward convolution along spatial dimension i; false: there is none.
static bool set_dim(const cpu_kernel_conv_dim *m, cpu_kernel_conv_form *f,
                    int i)
{
  const bool by_weights = f->kind == CPU_KERNEL_CONV_WEIGHTS;
  const bool by_input = f->kind == CPU_KERNEL_CONV_INPUT;
  const bool reversed = m->kernel > 1 && m->reversed != by_input;
  if ((by_input ? m->stride : m->in_dilation) != 1 ||
      (by_weights && reversed)) {
    return false;
  }
  f->stride[i] = by_weights ? m->kernel_dilation
                 : by_input ? m->in_dilation
                            : m->stride;
  f->dilation[i] = by_weights ? m->stride : m->kernel_dilation;
  f->low[i] = by_input ? (m->kernel - 1) * m->kernel_dilation - m->low : m->low;
  f->turned_dim[i] = reversed;
  f->turned = f->turned || reversed;
  const int at = f->weights.n - f->n + i;
  return set_padding(f, i, f->src.size[2 + i], f->weights.size[at],
                     f->dst.size[2 + i]);
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
  if ((kind == CPU_KERNEL_CONV_WEIGHTS ? d->feature_groups : d->batch_groups) !=
      1) {
    return false;
  }
  cpu_kernel_conv_tensors s;
  cpu_kernel_conv_tensors_of(d, &s);
  const bool absent = d->n_dims == 0;
  *out =
      (cpu_kernel_conv_form){ .kind = kind, .n = absent ? 1 : (int)d->n_dims };
  for (int t = 0; t < 3 && absent; t++) s.size[t][2] = s.stride[t][2] = 1;
  set_tensors(d, &s, out);
  for (int i = 0; i < out->n; i++) {
    if (!set_dim(absent ? &cpu_kernel_conv_absent_dim : &d->dims[i], out, i)) {
      return false;
    }
  }
  for (int t = 0; t < 3; t++) {
    if (!is_moderate(&out->tensors[t])) return false;
  }
  int64_t taps = 1;
  for (int i = 0; i < out->n; i++) {
    taps *= out->weights.size[out->weights.n - out->n + i];
  }
  return taps <= MOST_TAPS;
}

static void count_spatial(const cpu_kernel_conv_desc *d, int64_t *out_taps,
                          int64_t *out_results)
{
  *out_taps = *out_results = 1;
  for (int64_t i = 0; i < d->n_dims; i++) {
    *out_taps *= d->dims[i].kernel;
    *out_results *= d->dims[i].out;
  }
}

// A gradient by the weights has the images as features. Images are mostly
// stored one after the other, so its features come first. So they do in a
// forward convolution of images that are stored last, but that has many
// results; a gradient has as many as there are taps in the forward convolution.
bool cpu_kernel_conv_seems_by_weights(const cpu_kernel_conv_desc *d)
{
  int64_t taps, results;
  count_spatial(d, &taps, &results);
  return d->at[0][1] == 0 && d->at[0][0] != 0 && results / 8 <= taps;
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
  bool reversed = false;
  int64_t taps, results;
  count_spatial(d, &taps, &results);
  for (int64_t i = 0; i < d->n_dims; i++) {
    reversed = reversed || d->dims[i].reversed;
  }
  int which = d->batch_groups > 1 || cpu_kernel_conv_seems_by_weights(d) ||
                      taps > 16 * results
                  ? 2
              : reversed ? 1
                         : 0;
  memcpy(out, orders[which], sizeof orders[which]);
}

void cpu_kernel_conv_view_in_order(const cpu_kernel_conv_desc *d, int which,
                                   const cpu_kernel_conv_form *form,
                                   cpu_kernel_view *io)
{
  cpu_kernel_conv_tensors s;
  cpu_kernel_conv_tensors_of(d, &s);
  const int64_t *stride = s.stride[which], *size = s.size[which];
  const int64_t n = d->n_dims + 2;
  int64_t order[CPU_KERNEL_CONV_DIMS + 2];
  for (int64_t i = 0; i < n; i++) order[s.at[which][i]] = i;
  for (int64_t position = 0; position < n; position++) {
    const int64_t i = order[position];
    const bool turned = form != NULL && i >= 2 && form->turned_dim[i - 2];
    if (turned) io->first += (size[i] - 1) * stride[i];
    cpu_kernel_view_add(io, size[i], turned ? -stride[i] : stride[i]);
  }
}
