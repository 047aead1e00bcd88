// kernel/conv_dot: convolutions that are matrix products.
//
// With one tap and no padding each result is a sum over the input's features;
// in the gradient by the weights of such a convolution, over the images and all
// pixels. With channels last the three matrices are dense in memory, so neither
// weights nor images are copied to oneDNN's layouts.
#include "kernel/conv.h"

// One of the dimensions that are summed over, or of the result's rows.
typedef struct dim_line {
  int64_t size, lhs, other;  // `other`: the stride in rhs, or in the result
} dim_line;

typedef struct lines {
  int n;
  dim_line of[CPU_KERNEL_CONV_DIMS + 1];
} lines;

// Sorts by falling strides of lhs, and leaves out dimensions of one element.
static void add_line(lines *l, int64_t size, int64_t lhs, int64_t other)
{
  if (size == 1) return;
  int at = l->n++;
  for (; at > 0 && l->of[at - 1].lhs < lhs; at--) l->of[at] = l->of[at - 1];
  l->of[at] = (dim_line){ size, lhs, other };
}

static bool merge(const lines *l, cpu_kernel_pairs *out)
{
  for (int i = 0; i < l->n; i++) {
    const dim_line *next = &l->of[i];
    if (!cpu_kernel_pairs_add(out, next->size, next->lhs, next->other)) {
      return false;
    }
  }
  return true;
}

static bool split_dim(const cpu_kernel_conv_dim *m, int64_t lhs, int64_t rhs,
                      int64_t out, lines *rows, lines *inner)
{
  if (m->low != 0 || m->high > 0 || m->in_dilation != 1) return false;
  if (m->kernel == 1 && m->stride == 1 && m->in == m->out) {
    add_line(rows, m->in, lhs, out);
    return true;
  }
  if (m->out == 1 && m->kernel == m->in && m->kernel_dilation == 1 &&
      m->reversed == 0) {
    add_line(inner, m->in, lhs, rhs);
    return true;
  }
  return false;
}

// Whether rows and features of the result are a dense matrix.
static bool is_matrix(const cpu_kernel_pairs *rows, int64_t columns,
                      int64_t column)
{
  return (columns == 1 || column == 1) &&
         (rows->n == 0 || (rows->n == 1 && rows->rhs[0] == columns));
}

static bool describe(const cpu_kernel_conv_desc *d, cpu_kernel_dot_desc *out)
{
  cpu_kernel_conv_tensors s;
  cpu_kernel_conv_tensors_of(d, &s);
  const int64_t *lhs = s.stride[0], *rhs = s.stride[1], *result = s.stride[2];
  lines rows = { 0 }, inner = { 0 };
  cpu_kernel_pairs r = { 0 }, k = { 0 };
  if (d->feature_groups != 1 || d->batch_groups != 1) return false;
  add_line(&rows, d->batch, lhs[0], result[0]);
  add_line(&inner, d->features, lhs[1], rhs[0]);
  for (int64_t i = 0; i < d->n_dims; i++) {
    if (!split_dim(&d->dims[i], lhs[2 + i], rhs[2 + i], result[2 + i], &rows,
                   &inner)) {
      return false;
    }
  }
  if (!merge(&rows, &r) || !merge(&inner, &k) ||
      !is_matrix(&r, d->kernel_out, result[1])) {
    return false;
  }
  *out =
      (cpu_kernel_dot_desc){ .kind = CPU_KERNEL_DOT,
                             .types = { d->types[0], d->types[1], d->types[2] },
                             .n_columns = 1,
                             .columns = { d->kernel_out },
                             .rhs_columns = { rhs[1] } };
  return cpu_kernel_pairs_put(&r, &out->n_rows, out->rows, out->lhs_rows,
                              NULL) &&
         cpu_kernel_pairs_put(&k, &out->n_inner, out->inner, out->lhs_inner,
                              out->rhs_inner);
}

calx_status *cpu_kernel_conv_dot_new(cpu_kernel *kernel, cpu_threads *pool,
                                     bool *out_taken)
{
  const cpu_kernel_desc described = kernel->desc;
  cpu_kernel_dot_desc dot;
  *out_taken = describe(&kernel->conv, &dot);
  if (!*out_taken) return NULL;
  kernel->dot = dot;
  calx_status *status = cpu_kernel_dot_new(kernel, pool, false);
  kernel->desc = described;
  return status;
}
