// kernel/describe_conv: the description of a convolution: its dimensions in the
// order batch, features, spatial, and the position of each in memory.
#include "kernel/internal.h"

static int64_t at_or(cx_hlo_ints list, size_t i, int64_t otherwise)
{
  return i < list.n ? list.v[i] : otherwise;
}

// padding is a matrix of one (low, high) for each spatial dimension.
static int64_t padding_at(const cx_hlo_op *op, size_t i, size_t end)
{
  const cx_hlo_attr *a = cx_hlo_op_attr(op, CX_HLO_A_PADDING);
  if (a == NULL) return 0;
  return cx_hlo_elements_int(&a->as.elements, 2 * i + end);
}

void cpu_kernel_conv_read_dim(const cx_hlo_op *op, size_t i,
                              cpu_kernel_conv_dim *out)
{
  const cx_hlo_conv_numbers *c = cx_hlo_op_conv(op);
  const cx_hlo_type *x = &op->operands[0]->type.tensor;
  const cx_hlo_type *w = &op->operands[1]->type.tensor;
  const cx_hlo_type *y = &op->results[0].type.tensor;
  out->at[0] = c->input_spatial.v[i];
  out->at[1] = c->kernel_spatial.v[i];
  out->at[2] = c->output_spatial.v[i];
  out->in = x->dims[out->at[0]];
  out->kernel = w->dims[out->at[1]];
  out->out = y->dims[out->at[2]];
  out->stride = at_or(cx_hlo_op_ints(op, CX_HLO_A_WINDOW_STRIDES), i, 1);
  out->low = padding_at(op, i, 0);
  out->high = padding_at(op, i, 1);
  out->in_dilation = at_or(cx_hlo_op_ints(op, CX_HLO_A_LHS_DILATION), i, 1);
  out->kernel_dilation = at_or(cx_hlo_op_ints(op, CX_HLO_A_RHS_DILATION), i, 1);
  out->reversed =
      at_or(cx_hlo_op_ints(op, CX_HLO_A_WINDOW_REVERSAL), i, 0) != 0;
}

// Strides and dilations of a single element have no effect. They are set to 1,
// so that equal convolutions have equal descriptions.
static void normalise(cpu_kernel_conv_dim *d)
{
  if (d->in == 1) d->in_dilation = 1;
  if (d->out == 1) d->stride = 1;
  if (d->kernel == 1) {
    d->kernel_dilation = 1;
    d->reversed = 0;
  }
}

static bool is_nothing(const cpu_kernel_conv_dim *d)
{
  return d->in == 1 && d->kernel == 1 && d->out == 1 && d->low == 0 &&
         d->high == 0;
}

// The positions in one tensor become 0, 1, ... in the same order.
static void renumber(int64_t *const *positions, size_t n)
{
  for (int64_t next = 0; next < (int64_t)n; next++) {
    size_t least = n;
    for (size_t i = 0; i < n; i++) {
      if (*positions[i] >= next &&
          (least == n || *positions[i] < *positions[least])) {
        least = i;
      }
    }
    *positions[least] = next;
  }
}

static void renumber_all(cpu_kernel_conv_desc *out)
{
  for (size_t t = 0; t < 3; t++) {
    int64_t *positions[CPU_KERNEL_CONV_DIMS + 2] = { &out->at[t][0],
                                                     &out->at[t][1] };
    size_t n = 2;
    for (int64_t i = 0; i < out->n_dims; i++) {
      positions[n++] = &out->dims[i].at[t];
    }
    renumber(positions, n);
  }
}

bool cpu_kernel_conv_describe(const cx_hlo_op *op, cpu_kernel_conv_desc *out)
{
  const cx_hlo_type *x = &op->operands[0]->type.tensor;
  const cx_hlo_type *w = &op->operands[1]->type.tensor;
  const cx_hlo_type *y = &op->results[0].type.tensor;
  const cx_hlo_conv_numbers *c = cx_hlo_op_conv(op);
  cpu_kernel_math math;
  bool complex;
  *out = (cpu_kernel_conv_desc){
    .kind = CPU_KERNEL_CONV,
    .types = { x->elem, w->elem, y->elem },
    .batch = x->dims[c->input_batch],
    .features = x->dims[c->input_feature],
    .kernel_in = w->dims[c->kernel_input],
    .kernel_out = w->dims[c->kernel_output],
    .feature_groups = cx_hlo_op_int(op, CX_HLO_A_FEATURE_GROUP_COUNT),
    .batch_groups = cx_hlo_op_int(op, CX_HLO_A_BATCH_GROUP_COUNT),
    .at = { { c->input_batch, c->input_feature },
            { c->kernel_input, c->kernel_output },
            { c->output_batch, c->output_feature } },
  };
  if (!cpu_kernel_math_of(out->types, &math, &complex) || !cpu_kernel_fits(x) ||
      !cpu_kernel_fits(w) || !cpu_kernel_fits(y)) {
    return false;
  }
  for (size_t i = 0; i < c->input_spatial.n; i++) {
    cpu_kernel_conv_dim d;
    cpu_kernel_conv_read_dim(op, i, &d);
    normalise(&d);
    if (is_nothing(&d)) continue;
    if (out->n_dims == CPU_KERNEL_CONV_DIMS) return false;
    out->dims[out->n_dims++] = d;
  }
  renumber_all(out);
  return cpu_kernel_conv_is_sound(out);  // distances may be too large
}
