// ref/dynamic: operations whose sizes are operands, where the result's type is
// known: its sizes must come out as that type says.
//
// No shape rule has seen these operations, so everything is checked here.
#include "ref/inner.h"

static calx_status *bad(const cpu_ref_call *c, const char *what)
{
  return cpu_ref_bad(c->op, CALX_INVALID_ARGUMENT, "%s do not make %s of %s",
                     what, CPU_REF_SHAPE(c->out), CPU_REF_SHAPE(c->in));
}

// A vector of n integers.
static bool read_list(const cpu_ref_tensor *t, size_t n, int64_t *out)
{
  if (t->type.rank != 1 || t->type.dims[0] != (int64_t)n ||
      cpu_ref_class_of(t->type.elem) != CPU_REF_INT) {
    return false;
  }
  for (size_t i = 0; i < n; i++) out[i] = cpu_ref_index_at(t, i);
  return true;
}

static bool sizes_fit(const cpu_ref_tensor *sizes, const cpu_ref_tensor *out)
{
  int64_t v[CPU_REF_RANK];
  if (!read_list(sizes, out->type.rank, v)) return false;
  for (size_t i = 0; i < out->type.rank; i++) {
    if (v[i] != out->type.dims[i]) return false;
  }
  return true;
}

calx_status *cpu_ref_dynamic_reshape(const cpu_ref_call *c)
{
  const cpu_ref_tensor *in = c->in, *out = c->out;
  if (!sizes_fit(&in[1], out) || in->type.elem != out->type.elem ||
      cpu_ref_count(in) != cpu_ref_count(out)) {
    return bad(c, "the sizes");
  }
  return cpu_ref_reshape(c);
}

calx_status *cpu_ref_dynamic_broadcast(const cpu_ref_call *c)
{
  const cpu_ref_tensor *in = c->in, *out = c->out;
  if (!sizes_fit(&in[1], out) || in->type.elem != out->type.elem) {
    return bad(c, "the sizes");
  }
  return cpu_ref_do_broadcast(
      c, cx_hlo_op_ints(c->op, CX_HLO_A_BROADCAST_DIMENSIONS));
}

calx_status *cpu_ref_dynamic_iota(const cpu_ref_call *c)
{
  if (!sizes_fit(c->in, c->out)) return bad(c, "the sizes");
  return cpu_ref_iota(c);
}

calx_status *cpu_ref_dynamic_pad(const cpu_ref_call *c)
{
  const cpu_ref_tensor *in = c->in, *out = c->out;
  const size_t rank = in->type.rank;
  int64_t low[CPU_REF_RANK];
  int64_t high[CPU_REF_RANK];
  int64_t interior[CPU_REF_RANK];
  bool ok = out->type.rank == rank && in[1].type.rank == 0 &&
            in[1].type.elem == in->type.elem &&
            out->type.elem == in->type.elem && read_list(&in[2], rank, low) &&
            read_list(&in[3], rank, high) && read_list(&in[4], rank, interior);
  for (size_t i = 0; i < rank && ok; i++) {
    const int64_t size = in->type.dims[i];
    int64_t n = 0;
    ok = interior[i] >= 0 &&
         !__builtin_mul_overflow(size > 0 ? size - 1 : 0, interior[i], &n) &&
         !__builtin_add_overflow(n, size, &n) &&
         !__builtin_add_overflow(n, low[i], &n) &&
         !__builtin_add_overflow(n, high[i], &n) && n == out->type.dims[i];
  }
  if (!ok) return bad(c, "the paddings");
  return cpu_ref_do_pad(c, low, interior);
}

calx_status *cpu_ref_real_dynamic_slice(const cpu_ref_call *c)
{
  const cpu_ref_tensor *in = c->in, *out = c->out;
  const size_t rank = in->type.rank;
  int64_t start[CPU_REF_RANK];
  int64_t limit[CPU_REF_RANK];
  int64_t stride[CPU_REF_RANK];
  bool ok = out->type.rank == rank && out->type.elem == in->type.elem &&
            read_list(&in[1], rank, start) && read_list(&in[2], rank, limit) &&
            read_list(&in[3], rank, stride);
  for (size_t i = 0; i < rank && ok; i++) {
    ok = start[i] >= 0 && limit[i] >= start[i] &&
         limit[i] <= in->type.dims[i] && stride[i] >= 1;
    if (!ok) break;
    const int64_t n = limit[i] - start[i];
    ok = n / stride[i] + (n % stride[i] != 0) == out->type.dims[i];
  }
  if (!ok) return bad(c, "start, limit and strides");
  return cpu_ref_do_slice(c, start, stride);
}

// ---- convolution ----

static bool all_below(const int64_t *v, size_t n, size_t rank)
{
  bool seen[CPU_REF_RANK] = { false };
  for (size_t i = 0; i < n; i++) {
    if (v[i] < 0 || v[i] >= (int64_t)rank || seen[v[i]]) return false;
    seen[v[i]] = true;
  }
  return true;
}

static bool covers(int64_t first, int64_t second, cx_hlo_ints spatial,
                   const cx_hlo_type *t)
{
  int64_t v[CPU_REF_RANK];
  if (t->rank < 2 || t->rank > CPU_REF_RANK || spatial.n != t->rank - 2) {
    return false;
  }
  v[0] = first;
  v[1] = second;
  for (size_t i = 0; i < spatial.n; i++) v[2 + i] = spatial.v[i];
  return all_below(v, t->rank, t->rank);
}

static bool conv_numbers_fit(const cx_hlo_conv_numbers *d,
                             const cpu_ref_tensor *in,
                             const cpu_ref_tensor *out)
{
  return d != NULL && in[0].type.rank == in[1].type.rank &&
         in[0].type.rank == out->type.rank &&
         covers(d->input_batch, d->input_feature, d->input_spatial,
                &in[0].type) &&
         covers(d->kernel_input, d->kernel_output, d->kernel_spatial,
                &in[1].type) &&
         covers(d->output_batch, d->output_feature, d->output_spatial,
                &out->type);
}

// The dilated size; -1: too large.
static int64_t dilated(int64_t size, int64_t by)
{
  int64_t n = 0;
  if (by < 1 || size < 0) return -1;
  if (size == 0) return 0;
  if (__builtin_mul_overflow(size - 1, by, &n)) return -1;
  return n == INT64_MAX ? -1 : n + 1;
}

static bool conv_dim_fits(const cx_hlo_op *op, size_t i, int64_t size,
                          int64_t window, int64_t low, int64_t high,
                          int64_t out)
{
  int64_t n = dilated(size, cpu_ref_list_at(op, CX_HLO_A_LHS_DILATION, i));
  const int64_t w =
      dilated(window, cpu_ref_list_at(op, CX_HLO_A_RHS_DILATION, i));
  const int64_t stride = cpu_ref_list_at(op, CX_HLO_A_WINDOW_STRIDES, i);
  if (n < 0 || w < 0 || stride < 1 || __builtin_add_overflow(n, low, &n) ||
      __builtin_add_overflow(n, high, &n)) {
    return false;
  }
  return out == (n < w || n <= 0 ? 0 : (n - w) / stride + 1);
}

calx_status *cpu_ref_dynamic_conv(const cpu_ref_call *c)
{
  const cpu_ref_tensor *in = c->in, *out = c->out;
  const cx_hlo_conv_numbers *d = cx_hlo_op_conv(c->op);
  const cpu_ref_tensor *padding = &in[2];
  if (!conv_numbers_fit(d, in, out) || padding->type.rank != 2 ||
      padding->type.dims[0] != (int64_t)d->input_spatial.n ||
      padding->type.dims[1] != 2 ||
      cpu_ref_class_of(padding->type.elem) != CPU_REF_INT) {
    return bad(c, "dimension numbers and padding");
  }
  int64_t low[CPU_REF_RANK] = { 0 };
  const cx_hlo_type *t = &out->type;
  const int64_t groups = cx_hlo_op_int(c->op, CX_HLO_A_BATCH_GROUP_COUNT);
  bool ok =
      groups >= 1 &&
      t->dims[d->output_batch] == in[0].type.dims[d->input_batch] / groups &&
      t->dims[d->output_feature] == in[1].type.dims[d->kernel_output];
  for (size_t i = 0; i < d->input_spatial.n && ok; i++) {
    low[i] = cpu_ref_int_at(padding, 2 * i);
    ok = conv_dim_fits(c->op, i, in[0].type.dims[d->input_spatial.v[i]],
                       in[1].type.dims[d->kernel_spatial.v[i]], low[i],
                       cpu_ref_int_at(padding, 2 * i + 1),
                       t->dims[d->output_spatial.v[i]]);
  }
  if (!ok) return bad(c, "padding and window");
  return cpu_ref_do_convolution(c, low);
}

// ---- gather ----

// Whether the result has the sizes of the window and of the indices.
static bool gather_result_fits(const cx_hlo_gather_numbers *g,
                               const cx_hlo_type *x, const cx_hlo_type *index,
                               const cx_hlo_type *out, const int64_t *sizes)
{
  size_t w = 0;  // window dimension of the operand
  size_t b = 0;  // dimension of the indices
  for (size_t i = 0; i < out->rank; i++) {
    if (cpu_ref_has(g->offset, (int64_t)i)) {
      while (w < x->rank && (cpu_ref_has(g->collapsed, (int64_t)w) ||
                             cpu_ref_has(g->operand_batch, (int64_t)w))) {
        w++;
      }
      if (w >= x->rank || sizes[w++] != out->dims[i]) return false;
    } else {
      if ((int64_t)b == g->index_vector_dim) b++;
      if (b >= index->rank || index->dims[b++] != out->dims[i]) {
        return false;
      }
    }
  }
  return true;
}

static bool gather_fits(const cx_hlo_gather_numbers *g,
                        const cpu_ref_tensor *in, const cpu_ref_tensor *out,
                        const int64_t *sizes)
{
  const cx_hlo_type *x = &in[0].type;
  const cx_hlo_type *index = &in[1].type;
  const int64_t v = g->index_vector_dim;
  const size_t removed = g->collapsed.n + g->operand_batch.n;
  if (v < 0 || v > (int64_t)index->rank || removed > x->rank ||
      g->offset.n != x->rank - removed ||
      g->operand_batch.n != g->indices_batch.n ||
      (int64_t)g->index_map.n !=
          (v < (int64_t)index->rank ? index->dims[v] : 1) ||
      cpu_ref_class_of(index->elem) != CPU_REF_INT ||
      !all_below(g->offset.v, g->offset.n, out->type.rank) ||
      !all_below(g->collapsed.v, g->collapsed.n, x->rank) ||
      !all_below(g->operand_batch.v, g->operand_batch.n, x->rank) ||
      !all_below(g->indices_batch.v, g->indices_batch.n, index->rank) ||
      !all_below(g->index_map.v, g->index_map.n, x->rank) ||
      cpu_ref_has(g->indices_batch, v)) {
    return false;
  }
  for (size_t i = 0; i < x->rank; i++) {
    const bool dropped = cpu_ref_has(g->collapsed, (int64_t)i) ||
                         cpu_ref_has(g->operand_batch, (int64_t)i);
    if (sizes[i] < 0 || sizes[i] > x->dims[i] || (dropped && sizes[i] > 1)) {
      return false;
    }
  }
  return gather_result_fits(g, x, index, &out->type, sizes);
}

calx_status *cpu_ref_dynamic_gather(const cpu_ref_call *c)
{
  const cpu_ref_tensor *in = c->in, *out = c->out;
  const cx_hlo_gather_numbers *g =
      cx_hlo_op_struct(c->op, CX_HLO_A_GATHER_DIMENSION_NUMBERS);
  int64_t sizes[CPU_REF_RANK];
  if (!read_list(&in[2], in->type.rank, sizes) ||
      in->type.elem != out->type.elem || g == NULL ||
      !gather_fits(g, in, out, sizes)) {
    return bad(c, "indices and slice sizes");
  }
  return cpu_ref_do_gather(c, sizes);
}

// The size along the dimension must be what it is: results have static sizes.
calx_status *cpu_ref_set_dimension_size(const cpu_ref_call *c)
{
  const cpu_ref_tensor *in = c->in, *out = c->out;
  const int64_t d = cx_hlo_op_int(c->op, CX_HLO_A_DIMENSION);
  if (!cx_hlo_type_equal(&in->type, &out->type) || d < 0 ||
      d >= (int64_t)in->type.rank || in[1].type.rank != 0 ||
      cpu_ref_index_at(&in[1], 0) != in->type.dims[d]) {
    return cpu_ref_bad(c->op, CALX_UNIMPLEMENTED,
                       "sizes that change as the program runs are not "
                       "supported: %s along dimension %lld",
                       CPU_REF_SHAPE(in), (long long)d);
  }
  return cpu_ref_reshape(c);
}
