// kernel/conv_desc: sizes and strides from a convolution's description, and the
// check that its numbers are consistent.
#include "kernel/conv.h"

const cpu_kernel_conv_dim cpu_kernel_conv_absent_dim = { .in = 1,
                                                         .kernel = 1,
                                                         .out = 1,
                                                         .stride = 1,
                                                         .in_dilation = 1,
                                                         .kernel_dilation = 1 };

static void sizes_of(const cpu_kernel_conv_desc *d,
                     int64_t size[3][CPU_KERNEL_CONV_DIMS + 2])
{
  size[0][0] = d->batch;
  size[0][1] = d->features;
  size[1][0] = d->kernel_in;
  size[1][1] = d->kernel_out;
  size[2][0] = d->batch / d->batch_groups;
  size[2][1] = d->kernel_out;
  for (int64_t i = 0; i < d->n_dims; i++) {
    size[0][2 + i] = d->dims[i].in;
    size[1][2 + i] = d->dims[i].kernel;
    size[2][2 + i] = d->dims[i].out;
  }
}

static void positions_of(const cpu_kernel_conv_desc *d, int tensor, int64_t *at)
{
  at[0] = d->at[tensor][0];
  at[1] = d->at[tensor][1];
  for (int64_t i = 0; i < d->n_dims; i++) at[2 + i] = d->dims[i].at[tensor];
}

// The strides of a dense tensor whose dimensions are at these positions.
static void strides_of(int64_t n, const int64_t *size, const int64_t *at,
                       int64_t *out)
{
  int64_t stride = 1;
  for (int64_t position = n; position-- > 0;) {
    for (int64_t i = 0; i < n; i++) {
      if (at[i] != position) continue;
      out[i] = stride;
      stride *= size[i] == 0 ? 1 : size[i];
    }
  }
}

void cpu_kernel_conv_tensors_of(const cpu_kernel_conv_desc *d,
                                cpu_kernel_conv_tensors *out)
{
  sizes_of(d, out->size);
  for (int t = 0; t < 3; t++) {
    positions_of(d, t, out->at[t]);
    strides_of(d->n_dims + 2, out->size[t], out->at[t], out->stride[t]);
  }
}

double cpu_kernel_conv_flops(const cpu_kernel_conv_desc *d)
{
  if (!cpu_kernel_conv_is_sound(d)) return 0;
  double flops = 2 * (double)(d->batch / d->batch_groups) *
                 (double)d->kernel_in * (double)d->kernel_out;
  for (int64_t i = 0; i < d->n_dims; i++) {
    // Of in_dilation taps one meets an element, the others meet holes.
    flops *= (double)d->dims[i].out * (double)d->dims[i].kernel /
             (double)d->dims[i].in_dilation;
  }
  return cx_hlo_elem_is_complex((cx_hlo_elem)d->types[2]) ? 4 * flops : flops;
}

// ---- checking ---------------------------------------------------------------

#define MOST_DISTANCE ((int64_t)1 << 40)

static bool is_between(int64_t x, int64_t low, int64_t high)
{
  return x >= low && x <= high;
}

// Whether the sizes along one spatial dimension are as StableHLO requires.
static bool is_sound_dim(const cpu_kernel_conv_dim *d)
{
  if (!is_between(d->in, 0, MOST_DISTANCE) ||
      !is_between(d->kernel, 0, MOST_DISTANCE) ||
      !is_between(d->out, 0, MOST_DISTANCE) ||
      !is_between(d->stride, 1, MOST_DISTANCE) ||
      !is_between(d->low, -MOST_DISTANCE, MOST_DISTANCE) ||
      !is_between(d->high, -MOST_DISTANCE, MOST_DISTANCE) ||
      !is_between(d->in_dilation, 1, MOST_DISTANCE) ||
      !is_between(d->kernel_dilation, 1, MOST_DISTANCE) ||
      !is_between(d->reversed, 0, 1) ||
      (d->in > 0 && d->in_dilation > MOST_DISTANCE / d->in) ||
      (d->kernel > 0 && d->kernel_dilation > MOST_DISTANCE / d->kernel) ||
      (d->out > 0 && d->stride > MOST_DISTANCE / d->out * 4)) {
    return false;
  }
  int64_t in = d->in == 0 ? 0 : (d->in - 1) * d->in_dilation + 1;
  int64_t padded = d->low + in + d->high;
  int64_t window =
      d->kernel == 0 ? 0 : (d->kernel - 1) * d->kernel_dilation + 1;
  int64_t out =
      padded <= 0 || window > padded ? 0 : (padded - window) / d->stride + 1;
  // describe_conv.c sets the stride of a single result to 1.
  return d->out == out || (d->out == 1 && d->stride == 1 && out >= 1);
}

static bool is_order(int64_t n, const int64_t *at)
{
  uint64_t seen = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!is_between(at[i], 0, n - 1)) return false;
    seen |= (uint64_t)1 << at[i];
  }
  return seen == ((uint64_t)1 << n) - 1;
}

bool cpu_kernel_conv_is_sound(const cpu_kernel_conv_desc *d)
{
  cpu_kernel_math math;
  bool complex;
  if (!cpu_kernel_math_of(d->types, &math, &complex) ||
      !is_between(d->n_dims, 0, CPU_KERNEL_CONV_DIMS) ||
      !is_between(d->feature_groups, 1, MOST_DISTANCE) ||
      !is_between(d->batch_groups, 1, MOST_DISTANCE) ||
      (d->feature_groups > 1 && d->batch_groups > 1) ||
      !is_between(d->kernel_in, 0, MOST_DISTANCE) ||
      !is_between(d->kernel_out, 0, MOST_DISTANCE) ||
      !is_between(d->features, 0, MOST_DISTANCE) ||
      !is_between(d->batch, 0, MOST_DISTANCE) ||
      d->features % d->feature_groups != 0 ||
      d->features / d->feature_groups != d->kernel_in ||
      d->kernel_out % d->feature_groups != 0 ||
      d->kernel_out % d->batch_groups != 0 || d->batch % d->batch_groups != 0) {
    return false;
  }
  for (int64_t i = 0; i < d->n_dims; i++) {
    if (!is_sound_dim(&d->dims[i])) return false;
  }
  for (int t = 0; t < 3; t++) {
    int64_t at[CPU_KERNEL_CONV_DIMS + 2];
    positions_of(d, t, at);
    if (!is_order(d->n_dims + 2, at)) return false;
  }
  return true;
}

bool cpu_kernel_conv_size(cpu_kernel *kernel, const cpu_kernel_conv_desc *d)
{
  int64_t sizes[3][CPU_KERNEL_CONV_DIMS + 2];
  sizes_of(d, sizes);
  for (int t = 0; t < 3; t++) {
    int64_t bound = 1, n;
    if (!cpu_kernel_count(d->n_dims + 2, sizes[t], &bound, &n)) return false;
    kernel->bytes[t] = (size_t)n * cx_hlo_elem_bytes((cx_hlo_elem)d->types[t]);
  }
  return true;
}
