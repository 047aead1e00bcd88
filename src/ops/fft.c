// ops/fft: discrete Fourier transforms over the last one to three dimensions,
// of numbers of any length; composite_fft.c makes torch.fft's functions of it.
//
// A forward transform is not scaled, an inverse one is by 1/n, as StableHLO's
// are. The real transforms keep the first n/2+1 numbers of the last dimension:
// the others are their conjugates.
#include "ops/fft.h"

#include <string.h>

#include "base/dtype.h"
#include "ops/composite.h"

typedef struct fft_attrs {
  uint32_t kind, n_dims;
  int64_t length;  // of the last dimension where its numbers are real
} fft_attrs;

static bool is_real_kind(const fft_attrs *a)
{
  return a->kind == CX_HLO_RFFT || a->kind == CX_HLO_IRFFT;
}

static calx_status *infer_fft(cx_graph_node *node)
{
  const fft_attrs *a = node->attrs;
  cx_graph_shape *out = &node->out[0].shape;
  *out = *cx_in(node, 0);
  int64_t *last = &out->dims[out->rank - 1];
  if (a->kind == CX_HLO_RFFT) {
    out->dtype = cx_dtype_complex_of(out->dtype);
    *last = a->length / 2 + 1;
  } else if (a->kind == CX_HLO_IRFFT) {
    out->dtype = cx_dtype_part(out->dtype);
    *last = a->length;
  }
  return NULL;
}

// Of the operand, or where they are more of the result: how many numbers each
// transform has along its i-th dimension.
static int64_t length_of(const cx_graph_node *node, const fft_attrs *a,
                         uint32_t i)
{
  const cx_graph_shape *s = cx_in(node, 0);
  const bool last = i + 1 == a->n_dims;
  return last && is_real_kind(a) ? a->length : s->dims[s->rank - a->n_dims + i];
}

// ---- gradients --------------------------------------------------------------

// x times a number.
static calx_tensor *scaled(calx_tensor *x, double by)
{
  return by == 1 ? x : calx_mul(x, cx_ops_number(by));
}

// The last dimension from n/2+1 numbers to n, with zeros.
static calx_tensor *lengthened(calx_tensor *x, int64_t n)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  int64_t more[2] = { 0, n - s->dims[s->rank - 1] };
  return calx_pad_with(x, calx_dims_of(more, 2), NULL);
}

// Doubles what stands for itself and for its conjugate: not number 0, nor the
// middle one of an even n.
static calx_tensor *doubled(calx_tensor *x, int64_t n, calx_device *device)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  calx_create_options o = { .size = sizeof o,
                            .dtype = CALX_I64,
                            .device = device };
  const double end = (double)s->dims[s->rank - 1];
  calx_tensor *k = calx_arange_with(0, end, 1, &o);
  calx_tensor *inside = calx_bitwise_and(
      calx_gt(k, cx_ops_number(0)),
      calx_lt(k, cx_ops_weak_as(cx_ops_number((double)((n + 1) / 2)), CALX_I64,
                                device)));
  return calx_where(inside, scaled(x, 2), x);
}

static void grad_fft(cx_lazy_tape *t)
{
  const fft_attrs *a = t->attrs;
  calx_tensor *g = t->out_grads[0];
  double n = 1;
  for (uint32_t i = 0; i < a->n_dims; i++) {
    n *= (double)length_of(t->node, a, i);
  }
  switch ((cx_hlo_fft_kind)a->kind) {
    case CX_HLO_FFT:
      t->in_grads[0] =
          scaled(cx_ops_transform(CX_HLO_IFFT, g, a->n_dims, 0), n);
      break;
    case CX_HLO_IFFT:
      t->in_grads[0] =
          scaled(cx_ops_transform(CX_HLO_FFT, g, a->n_dims, 0), 1 / n);
      break;
    case CX_HLO_RFFT:
      g = cx_ops_transform(CX_HLO_IFFT, lengthened(g, a->length), a->n_dims, 0);
      t->in_grads[0] = scaled(calx_real(g), n);
      break;
    case CX_HLO_IRFFT:
      g = cx_ops_transform(CX_HLO_RFFT, g, a->n_dims, a->length);
      t->in_grads[0] = doubled(scaled(g, 1 / n), a->length, t->device);
      break;
  }
}

// ---- the op -----------------------------------------------------------------

static void emit_fft(cx_graph_emit *e)
{
  const fft_attrs *a = e->attrs;
  const cx_graph_shape *out = &e->node->out[0].shape;
  if (cx_graph_shape_numel(out) == 0) {
    e->out[0] = cx_ops_emit_splat(e, cx_hlo_elem_of(out->dtype), out, 0);
    return;
  }
  int64_t lengths[CX_OPS_FFT_DIMS];
  for (uint32_t i = 0; i < a->n_dims; i++) {
    lengths[i] = length_of(e->node, a, i);
  }
  e->out[0] =
      cx_hlo_fft(e->b, (cx_hlo_fft_kind)a->kind, e->in[0], lengths, a->n_dims);
}

static void describe_fft(const void *attrs, cx_text *out)
{
  static const char *const names[] = { "FFT", "IFFT", "RFFT", "IRFFT" };
  const fft_attrs *a = attrs;
  cx_text_format(out, "%s over %u dims", names[a->kind], a->n_dims);
}

CX_OPS_DEFINE(fft, .attr_size = sizeof(fft_attrs), .infer = infer_fft,
              .grad = grad_fft, .emit = emit_fft, .describe = describe_fft,
              .takes_complex = true)

calx_tensor *cx_ops_transform(cx_hlo_fft_kind kind, calx_tensor *x,
                              uint32_t n_dims, int64_t length)
{
  fft_attrs a;
  memset(&a, 0, sizeof a);
  a.kind = (uint32_t)kind;
  a.n_dims = n_dims;
  a.length = is_real_kind(&a) ? length : 0;
  return cx_ops_record(&cx_ops_fft, &x, 1, &a);
}
