// ref/shape: values, and operations that move elements about.
//
// Most of them are one copy between two grids of steps.
#include <string.h>

#include "ref/inner.h"

static size_t size_of(const cpu_ref_tensor *t)
{
  return cx_hlo_elem_bytes(t->type.elem);
}

// ---- values ----

calx_status *cpu_ref_constant(const cpu_ref_call *c)
{
  const cx_hlo_attr *value = cx_hlo_op_attr(c->op, CX_HLO_A_VALUE);
  const size_t n = cpu_ref_count(c->out);
  const size_t bytes = size_of(c->out);
  const cx_hlo_elements *e = value == NULL ? NULL : &value->as.elements;
  if (e == NULL || (n != 0 && e->size < (e->splat ? 1 : n) * bytes)) {
    return cpu_ref_bad(c->op, CALX_INVALID_ARGUMENT,
                       "the literal of %s is cut off", CPU_REF_SHAPE(c->out));
  }
  if (e->splat) {
    cpu_ref_fill(bytes, c->out->data, n, e->data);
  } else if (n != 0) {
    memcpy(c->out->data, e->data, n * bytes);
  }
  return NULL;
}

calx_status *cpu_ref_iota(const cpu_ref_call *c)
{
  const cpu_ref_tensor *out = c->out;
  const int64_t d = cx_hlo_op_int(c->op, CX_HLO_A_IOTA_DIMENSION);
  if (d < 0 || d >= (int64_t)out->type.rank) {
    return cpu_ref_bad(c->op, CALX_INVALID_ARGUMENT, "%s has no dimension %lld",
                       CPU_REF_SHAPE(out), (long long)d);
  }
  const size_t n = cpu_ref_count(out);
  const int64_t size = out->type.dims[d];
  int64_t step[CPU_REF_RANK];
  cpu_ref_strides(&out->type, step);
  int64_t v[CPU_REF_CHUNK];
  for (size_t at = 0; at < n; at += CPU_REF_CHUNK) {
    const size_t k = n - at < CPU_REF_CHUNK ? n - at : CPU_REF_CHUNK;
    for (size_t i = 0; i < k; i++) {
      v[i] = (int64_t)(at + i) / step[d] % size;
    }
    cpu_ref_convert(CX_HLO_I64, v, out->type.elem, cpu_ref_at(out, at), k);
  }
  return NULL;
}

calx_status *cpu_ref_reshape(const cpu_ref_call *c)
{
  const size_t bytes = cpu_ref_count(c->out) * size_of(c->out);
  if (c->in->data != c->out->data && bytes != 0) {
    memcpy(c->out->data, c->in->data, bytes);
  }
  return NULL;
}

static uint64_t bits_at(const cpu_ref_tensor *t, unsigned bits, size_t i)
{
  const uint64_t v = cx_hlo_load_bits(t->type.elem, cpu_ref_at(t, i));
  return bits < 64 ? v & ((UINT64_C(1) << bits) - 1) : v;
}

// Element i of `to` bits: a part of one of `from` bits, or several of them; one
// width divides the other.
static uint64_t cut_bits(const cpu_ref_tensor *t, unsigned from, unsigned to,
                         size_t i)
{
  if (from >= to) {
    const size_t parts = from / to;
    const uint64_t v = bits_at(t, from, i / parts) >> (i % parts * to);
    return to < 64 ? v & ((UINT64_C(1) << to) - 1) : v;
  }
  uint64_t v = 0;
  for (size_t k = 0; k < to / from; k++) {
    v |= bits_at(t, from, i * (to / from) + k) << (k * from);
  }
  return v;
}

// The bits of all elements, one after the other, are cut anew: i1 is one bit,
// i4 four.
calx_status *cpu_ref_bitcast(const cpu_ref_call *c)
{
  const cpu_ref_tensor *in = c->in, *out = c->out;
  const unsigned from = cx_hlo_elem_bits(in->type.elem);
  const unsigned to = cx_hlo_elem_bits(out->type.elem);
  const size_t n = cpu_ref_count(in);
  const size_t n_out = cpu_ref_count(out);
  if (n * from != n_out * to) {
    return cpu_ref_bad(c->op, CALX_INVALID_ARGUMENT, "%s and %s differ in bits",
                       CPU_REF_SHAPE(in), CPU_REF_SHAPE(out));
  }
  if (from >= 8 && to >= 8) {
    if (n != 0) memcpy(out->data, in->data, n * size_of(in));
    return NULL;
  }
  const bool is_float = cx_hlo_elem_is_float(out->type.elem);
  for (size_t i = 0; i < n_out; i++) {
    const uint64_t v = cut_bits(in, from, to, i);
    void *p = cpu_ref_at(out, i);
    if (is_float) {
      cx_hlo_store_bits(out->type.elem, p, v);
    } else {
      cx_hlo_store_int(out->type.elem, p, (int64_t)v);
    }
  }
  return NULL;
}

calx_status *cpu_ref_dimension_size(const cpu_ref_call *c)
{
  const int64_t d = cx_hlo_op_int(c->op, CX_HLO_A_DIMENSION);
  if (d < 0 || d >= (int64_t)c->in->type.rank) {
    return cpu_ref_bad(c->op, CALX_INVALID_ARGUMENT, "%s has no dimension %lld",
                       CPU_REF_SHAPE(c->in), (long long)d);
  }
  cx_hlo_store_int(c->out->type.elem, c->out->data, c->in->type.dims[d]);
  return NULL;
}

// ---- one copy ----

calx_status *cpu_ref_do_broadcast(const cpu_ref_call *c, cx_hlo_ints dimensions)
{
  const cpu_ref_tensor *x = c->in, *out = c->out;
  int64_t own[CPU_REF_RANK];
  int64_t from[CPU_REF_RANK] = { 0 };
  cpu_ref_strides(&x->type, own);
  for (size_t k = 0; k < x->type.rank; k++) {
    const int64_t d = k < dimensions.n ? dimensions.v[k] : -1;
    const int64_t size = x->type.dims[k];
    if (d < 0 || d >= (int64_t)out->type.rank ||
        (size != 1 && size != out->type.dims[d])) {
      return cpu_ref_bad(c->op, CALX_INVALID_ARGUMENT,
                         "dimension %zu of %s does not fit %s", k,
                         CPU_REF_SHAPE(x), CPU_REF_SHAPE(out));
    }
    from[d] = size == 1 ? 0 : own[k];
  }
  cpu_ref_copy_strided(c, 0, from);
  return NULL;
}

calx_status *cpu_ref_broadcast_in_dim(const cpu_ref_call *c)
{
  return cpu_ref_do_broadcast(
      c, cx_hlo_op_ints(c->op, CX_HLO_A_BROADCAST_DIMENSIONS));
}

calx_status *cpu_ref_broadcast(const cpu_ref_call *c)
{
  int64_t at[CPU_REF_RANK];
  const size_t before = c->out->type.rank - c->in->type.rank;
  for (size_t i = 0; i < c->in->type.rank; i++) at[i] = (int64_t)(before + i);
  return cpu_ref_do_broadcast(c, (cx_hlo_ints){ at, c->in->type.rank });
}

calx_status *cpu_ref_transpose(const cpu_ref_call *c)
{
  const cx_hlo_ints order = cx_hlo_op_ints(c->op, CX_HLO_A_PERMUTATION);
  int64_t own[CPU_REF_RANK];
  int64_t from[CPU_REF_RANK];
  cpu_ref_strides(&c->in->type, own);
  for (size_t i = 0; i < order.n; i++) from[i] = own[order.v[i]];
  cpu_ref_copy_strided(c, 0, from);
  return NULL;
}

calx_status *cpu_ref_reverse(const cpu_ref_call *c)
{
  const cpu_ref_tensor *in = c->in;
  const cx_hlo_ints dims = cx_hlo_op_ints(c->op, CX_HLO_A_DIMENSIONS);
  int64_t from[CPU_REF_RANK];
  int64_t first = 0;
  if (cpu_ref_count(in) == 0) return NULL;
  cpu_ref_strides(&in->type, from);
  for (size_t i = 0; i < in->type.rank; i++) {
    if (!cpu_ref_has(dims, (int64_t)i)) continue;
    first += (in->type.dims[i] - 1) * from[i];
    from[i] = -from[i];
  }
  cpu_ref_copy_strided(c, first, from);
  return NULL;
}

calx_status *cpu_ref_do_slice(const cpu_ref_call *c, const int64_t *start,
                              const int64_t *stride)
{
  const cpu_ref_tensor *x = c->in, *out = c->out;
  int64_t from[CPU_REF_RANK];
  int64_t first = 0;
  cpu_ref_strides(&x->type, from);
  if (cpu_ref_count(out) == 0) return NULL;
  for (size_t i = 0; i < x->type.rank; i++) {
    int64_t last = 0;
    if (start[i] < 0 || stride[i] < 1 ||
        __builtin_mul_overflow(out->type.dims[i] - 1, stride[i], &last) ||
        __builtin_add_overflow(last, start[i], &last) ||
        last >= x->type.dims[i]) {
      return cpu_ref_bad(c->op, CALX_OUT_OF_RANGE,
                         "start %lld, step %lld of dimension %zu leave %s",
                         (long long)start[i], (long long)stride[i], i,
                         CPU_REF_SHAPE(x));
    }
    first += start[i] * from[i];
    // The product may overflow where the step does not matter.
    from[i] = out->type.dims[i] == 1 ? 0 : stride[i] * from[i];
  }
  cpu_ref_copy_strided(c, first, from);
  return NULL;
}

calx_status *cpu_ref_slice(const cpu_ref_call *c)
{
  return cpu_ref_do_slice(c, cx_hlo_op_ints(c->op, CX_HLO_A_START_INDICES).v,
                          cx_hlo_op_ints(c->op, CX_HLO_A_STRIDES).v);
}

calx_status *cpu_ref_concatenate(const cpu_ref_call *c)
{
  const int64_t d = cx_hlo_op_int(c->op, CX_HLO_A_DIMENSION);
  int64_t to[CPU_REF_RANK];
  int64_t from[CPU_REF_RANK];
  int64_t at = 0;
  cpu_ref_strides(&c->out->type, to);
  for (uint32_t i = 0; i < c->op->n_operands; i++) {
    const cx_hlo_type *t = &c->in[i].type;
    cpu_ref_strides(t, from);
    cpu_ref_copy(size_of(c->out), t->rank, t->dims,
                 cpu_ref_at(c->out, (size_t)(at * to[d])), to, c->in[i].data,
                 from);
    at += t->dims[d];
  }
  return NULL;
}

// ---- padding ----

// The operand's elements [first, first + count) of a dimension that stay in the
// result: element i stands at low + i (1 + interior).
static void visible(int64_t size, int64_t to, int64_t low, int64_t step,
                    int64_t *first, int64_t *count)
{
  *first = low >= 0 ? 0 : (-low + step - 1) / step;
  const int64_t room = to - 1 - low;
  const int64_t end = room < 0 ? 0 : room / step + 1;
  *count = (end < size ? end : size) - *first;
  if (*count < 0) *count = 0;
}

calx_status *cpu_ref_do_pad(const cpu_ref_call *c, const int64_t *low,
                            const int64_t *interior)
{
  const cpu_ref_tensor *x = c->in, *out = c->out;
  int64_t from[CPU_REF_RANK];
  int64_t to[CPU_REF_RANK];
  int64_t count[CPU_REF_RANK];
  int64_t src = 0;
  int64_t dst = 0;
  cpu_ref_fill(size_of(out), out->data, cpu_ref_count(out), c->in[1].data);
  cpu_ref_strides(&x->type, from);
  cpu_ref_strides(&out->type, to);
  for (size_t i = 0; i < x->type.rank; i++) {
    int64_t first = 0;
    if (interior[i] < 0 || interior[i] > INT64_MAX / 4 ||
        low[i] < -(INT64_MAX / 4) || low[i] > INT64_MAX / 4) {
      return cpu_ref_bad(c->op, CALX_INVALID_ARGUMENT,
                         "low %lld and interior %lld cannot pad %s",
                         (long long)low[i], (long long)interior[i],
                         CPU_REF_SHAPE(x));
    }
    const int64_t step = 1 + interior[i];
    visible(x->type.dims[i], out->type.dims[i], low[i], step, &first,
            &count[i]);
    if (count[i] == 0) return NULL;
    src += first * from[i];
    dst += (low[i] + first * step) * to[i];
    to[i] = count[i] == 1 ? 0 : to[i] * step;
  }
  cpu_ref_copy(size_of(out), x->type.rank, count, cpu_ref_at(out, (size_t)dst),
               to, cpu_ref_at(x, (size_t)src), from);
  return NULL;
}

calx_status *cpu_ref_pad(const cpu_ref_call *c)
{
  return cpu_ref_do_pad(c, cx_hlo_op_ints(c->op, CX_HLO_A_EDGE_PADDING_LOW).v,
                        cx_hlo_op_ints(c->op, CX_HLO_A_INTERIOR_PADDING).v);
}
