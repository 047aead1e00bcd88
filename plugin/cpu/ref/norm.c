// ref/norm: batch normalisation. One feature at a time; sums in double.
#include <math.h>
#include <string.h>

#include "ref/inner.h"

// The elements of one feature: `outer` runs of `inner` neighbours.
typedef struct features {
  size_t n, outer, inner;
} features;

static features features_of(const cx_hlo_op *op, const cx_hlo_type *x)
{
  const size_t d = (size_t)cx_hlo_op_int(op, CX_HLO_A_FEATURE_INDEX);
  features f = { (size_t)x->dims[d], 1, 1 };
  for (size_t i = 0; i < d; i++) f.outer *= (size_t)x->dims[i];
  for (size_t i = d + 1; i < x->rank; i++) f.inner *= (size_t)x->dims[i];
  return f;
}

static double epsilon_of(const cx_hlo_op *op)
{
  const cx_hlo_attr *attr = cx_hlo_op_attr(op, CX_HLO_A_EPSILON);
  return attr == NULL ? 0 : cx_hlo_bits_to_real(attr->elem, attr->as.bits);
}

static double get(const cpu_ref_tensor *t, size_t i)
{
  double v;
  cpu_ref_load_reals(t->type.elem, cpu_ref_at(t, i), 1, &v);
  return v;
}

static void put(const cpu_ref_tensor *t, size_t i, double v)
{
  cpu_ref_store_reals(t->type.elem, cpu_ref_at(t, i), 1, &v);
}

#define EACH(f, c, at)                                                      \
  for (size_t o_ = 0; o_ < (f).outer; o_++)                                 \
    for (size_t at = (o_ * (f).n + (c)) * (f).inner, end_ = at + (f).inner; \
         at < end_; at++)

// scale (x - mean) / sqrt(variance + epsilon) + offset
static void normalize(const cx_hlo_op *op, features f, size_t c,
                      const cpu_ref_tensor *x, const cpu_ref_tensor *scale,
                      const cpu_ref_tensor *offset, double mean,
                      double variance, const cpu_ref_tensor *out)
{
  const double a = get(scale, c) / sqrt(variance + epsilon_of(op));
  const double b = get(offset, c);
  EACH(f, c, i) put(out, i, (get(x, i) - mean) * a + b);
}

calx_status *cpu_ref_norm_inference(const cpu_ref_call *call)
{
  const cpu_ref_tensor *in = call->in, *out = call->out;
  const features f = features_of(call->op, &in->type);
  for (size_t c = 0; c < f.n; c++) {
    normalize(call->op, f, c, in, &in[1], &in[2], get(&in[3], c),
              get(&in[4], c), out);
  }
  return NULL;
}

calx_status *cpu_ref_norm_training(const cpu_ref_call *call)
{
  const cpu_ref_tensor *in = call->in, *out = call->out;
  const features f = features_of(call->op, &in->type);
  const double n = (double)(f.outer * f.inner);
  for (size_t c = 0; c < f.n; c++) {
    double mean = 0;
    double variance = 0;
    EACH(f, c, i) mean += get(in, i);
    mean /= n;
    EACH(f, c, i) variance += (get(in, i) - mean) * (get(in, i) - mean);
    variance /= n;
    put(&out[1], c, mean);
    put(&out[2], c, variance);
    normalize(call->op, f, c, in, &in[1], &in[2], mean, variance, &out[0]);
  }
  return NULL;
}

// With y = (x - mean) / s and s = sqrt(variance + epsilon):
// grad_scale = sum g y, grad_offset = sum g, and
// grad_operand = scale / s (g - mean of g - y mean of (g y)).
calx_status *cpu_ref_norm_grad(const cpu_ref_call *call)
{
  const cpu_ref_tensor *in = call->in, *out = call->out;
  const features f = features_of(call->op, &in->type);
  const double n = (double)(f.outer * f.inner);
  const cpu_ref_tensor *grad = &in[4];
  for (size_t c = 0; c < f.n; c++) {
    const double mean = get(&in[2], c);
    const double s = sqrt(get(&in[3], c) + epsilon_of(call->op));
    double sum = 0;
    double sum_y = 0;
    EACH(f, c, i)
    {
      sum += get(grad, i);
      sum_y += get(grad, i) * ((get(in, i) - mean) / s);
    }
    const double a = get(&in[1], c) / s;
    EACH(f, c, i)
    {
      const double y = (get(in, i) - mean) / s;
      put(&out[0], i, a * (get(grad, i) - sum / n - y * (sum_y / n)));
    }
    put(&out[1], c, sum_y);
    put(&out[2], c, sum);
  }
  return NULL;
}
