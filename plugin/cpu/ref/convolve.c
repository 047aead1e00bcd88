// ref/convolve: convolutions of every form.
//
// The input is laid out as numbers [batch][spatial…][feature], the kernel
// [output feature][spatial…][input feature]; every element of the result is a
// sum over the kernel's positions that meet an element of the input, of one dot
// product along the features of its group.
#include <string.h>

#include "ref/contract.h"

typedef struct convolution {
  const cpu_ref_call *call;
  size_t n;  // spatial dimensions
  const cx_hlo_type *x, *kernel, *out;
  const cx_hlo_conv_numbers *d;
  const int64_t *low;  // padding
  const char *a, *b;   // packed
  int64_t N, C, O;     // batch and features of the input; output features
  int64_t groups, batch_groups;
  int64_t group_in, group_out;  // features of a group
  int64_t stride[CPU_REF_RANK], lhs[CPU_REF_RANK], rhs[CPU_REF_RANK];
  bool reversed[CPU_REF_RANK];
  int64_t in_size[CPU_REF_RANK], window[CPU_REF_RANK], out_size[CPU_REF_RANK];
} convolution;

static calx_status *bad(const convolution *c, const char *what)
{
  return cpu_ref_bad(c->call->op, CALX_INVALID_ARGUMENT,
                     "%s: input %s, kernel %s", what, cx_hlo_shape(c->x).s,
                     cx_hlo_shape(c->kernel).s);
}

static calx_status *prepare(convolution *c)
{
  const cx_hlo_conv_numbers *d = c->d;
  c->N = c->x->dims[d->input_batch];
  c->C = c->x->dims[d->input_feature];
  c->O = c->kernel->dims[d->kernel_output];
  c->groups = cx_hlo_op_int(c->call->op, CX_HLO_A_FEATURE_GROUP_COUNT);
  c->batch_groups = cx_hlo_op_int(c->call->op, CX_HLO_A_BATCH_GROUP_COUNT);
  if (c->groups < 1 || c->batch_groups < 1) return bad(c, "no groups");
  const int64_t all = c->groups > c->batch_groups ? c->groups : c->batch_groups;
  c->group_in = c->C / c->groups;
  c->group_out = c->O / all;
  if (c->group_in * c->groups != c->C || c->group_out * all != c->O ||
      c->N % c->batch_groups != 0 ||
      c->kernel->dims[d->kernel_input] != c->group_in) {
    return bad(c, "features do not fit the groups");
  }
  for (size_t i = 0; i < c->n; i++) {
    c->stride[i] = cpu_ref_list_at(c->call->op, CX_HLO_A_WINDOW_STRIDES, i);
    c->lhs[i] = cpu_ref_list_at(c->call->op, CX_HLO_A_LHS_DILATION, i);
    c->rhs[i] = cpu_ref_list_at(c->call->op, CX_HLO_A_RHS_DILATION, i);
    c->reversed[i] =
        cpu_ref_list_at(c->call->op, CX_HLO_A_WINDOW_REVERSAL, i) != 0;
    c->in_size[i] = c->x->dims[d->input_spatial.v[i]];
    c->window[i] = c->kernel->dims[d->kernel_spatial.v[i]];
    c->out_size[i] = c->out->dims[d->output_spatial.v[i]];
    if (c->stride[i] < 1 || c->lhs[i] < 1 || c->rhs[i] < 1) {
      return bad(c, "strides and dilations must be positive");
    }
  }
  return NULL;
}

// The input's element, and the kernel's, that meet at position `w` of the
// window at `o`; false: padding, or a hole of a dilation.
static bool meets(const convolution *c, const int64_t *o, const int64_t *w,
                  int64_t *x, int64_t *kernel)
{
  *x = 0;
  *kernel = 0;
  for (size_t i = 0; i < c->n; i++) {
    const int64_t at = o[i] * c->stride[i] + w[i] * c->rhs[i] - c->low[i];
    const int64_t k = c->reversed[i] ? c->window[i] - 1 - w[i] : w[i];
    if (at < 0 || at % c->lhs[i] != 0 || at / c->lhs[i] >= c->in_size[i]) {
      return false;
    }
    *x = *x * c->in_size[i] + at / c->lhs[i];
    *kernel = *kernel * c->window[i] + k;
  }
  return true;
}

static int64_t product(const int64_t *sizes, size_t n)
{
  int64_t p = 1;
  for (size_t i = 0; i < n; i++) p *= sizes[i];
  return p;
}

// All output features of batch n at o, into sums[O].
static void add_position(const convolution *c, int64_t n, const int64_t *o,
                         cpu_ref_number *sums)
{
  const cx_hlo_elem e = c->out->elem;
  const int64_t bytes = (int64_t)cpu_ref_number_bytes(cpu_ref_class_of(e));
  const int64_t pixels = product(c->in_size, c->n);
  const int64_t positions = product(c->window, c->n);
  const int64_t batches = c->N / c->batch_groups;
  int64_t w[CPU_REF_RANK];
  for (size_t i = 0; i < c->n; i++) w[i] = 0;
  do {
    int64_t x = 0;
    int64_t k = 0;
    if (!meets(c, o, w, &x, &k)) continue;
    for (int64_t f = 0; f < c->O; f++) {
      const int64_t group = f / c->group_out;
      const int64_t batch = c->batch_groups > 1 ? group * batches + n : n;
      const int64_t feature = c->groups > 1 ? group * c->group_in : 0;
      const char *a = c->a + ((batch * pixels + x) * c->C + feature) * bytes;
      const char *b = c->b + (f * positions + k) * c->group_in * bytes;
      cpu_ref_add_dot(e, a, b, (size_t)c->group_in, &sums[f]);
    }
  } while (cpu_ref_next(c->n, c->window, w));
}

static calx_status *slide(const convolution *c, cpu_ref_number *sums)
{
  const cpu_ref_tensor *out = c->call->out;
  int64_t step[CPU_REF_RANK];
  int64_t o[CPU_REF_RANK] = { 0 };
  cpu_ref_strides(&out->type, step);
  for (int64_t n = 0; n < c->N / c->batch_groups; n++) {
    do {
      CALX_TRY(cpu_ref_interrupted(c->call->machine));
      memset(sums, 0, (size_t)c->O * sizeof *sums);
      add_position(c, n, o, sums);
      int64_t at = n * step[c->d->output_batch];
      for (size_t i = 0; i < c->n; i++) {
        at += o[i] * step[c->d->output_spatial.v[i]];
      }
      for (int64_t f = 0; f < c->O; f++) {
        cpu_ref_store_number_at(out->type.elem, out->data,
                                (size_t)(at + f * step[c->d->output_feature]),
                                &sums[f]);
      }
    } while (cpu_ref_next(c->n, c->out_size, o));
  }
  return NULL;
}

static void order_of(int64_t first, cx_hlo_ints spatial, int64_t last,
                     int64_t *out)
{
  out[0] = first;
  for (size_t i = 0; i < spatial.n; i++) out[1 + i] = spatial.v[i];
  out[1 + spatial.n] = last;
}

static calx_status *pack_and_slide(convolution *c, cpu_ref_buffer **parts)
{
  const cx_hlo_conv_numbers *d = c->d;
  const cpu_ref_tensor *in = c->call->in;
  const cx_hlo_elem number = cpu_ref_number_elem(c->out->elem);
  int64_t order[CPU_REF_RANK];
  order_of(d->input_batch, d->input_spatial, d->input_feature, order);
  CALX_TRY(cpu_ref_pack(c->call, &in[0], order, number, &parts[0]));
  order_of(d->kernel_output, d->kernel_spatial, d->kernel_input, order);
  CALX_TRY(cpu_ref_pack(c->call, &in[1], order, number, &parts[1]));
  CALX_TRY(cpu_ref_scratch(c->call, (size_t)c->O, sizeof(cpu_ref_number),
                           &parts[2]));
  c->a = (const char *)parts[0]->data;
  c->b = (const char *)parts[1]->data;
  return slide(c, (cpu_ref_number *)(void *)parts[2]->data);
}

calx_status *cpu_ref_do_convolution(const cpu_ref_call *call,
                                    const int64_t *low)
{
  const cpu_ref_tensor *in = call->in, *out = call->out;
  convolution c = { .call = call,
                    .x = &in[0].type,
                    .kernel = &in[1].type,
                    .out = &out->type,
                    .d = cx_hlo_op_conv(call->op),
                    .low = low };
  c.n = c.x->rank - 2;
  if (cpu_ref_count(out) == 0) return NULL;
  CALX_TRY(prepare(&c));
  if (cpu_ref_count(&in[0]) == 0 || cpu_ref_count(&in[1]) == 0) {
    return cpu_ref_zero(out);
  }
  cpu_ref_buffer *parts[3] = { 0 };
  calx_status *status = pack_and_slide(&c, parts);
  for (size_t i = 0; i < 3; i++)
    cpu_ref_buffer_release(call->machine, parts[i]);
  return status;
}

calx_status *cpu_ref_convolution(const cpu_ref_call *c)
{
  int64_t low[CPU_REF_RANK] = { 0 };
  for (size_t i = 0; i + 2 < c->in->type.rank; i++) {
    low[i] = cpu_ref_padding_at(c->op, i, 0);
  }
  return cpu_ref_do_convolution(c, low);
}
