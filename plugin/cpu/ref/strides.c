// ref/strides: lists of an operation, and copies between tensors of any
// strides.
#include <string.h>

#include "ref/inner.h"

bool cpu_ref_has(cx_hlo_ints list, int64_t v)
{
  for (size_t i = 0; i < list.n; i++) {
    if (list.v[i] == v) return true;
  }
  return false;
}

int64_t cpu_ref_list_at(const cx_hlo_op *op, cx_hlo_attr_id id, size_t i)
{
  const cx_hlo_attr *attr = cx_hlo_op_attr(op, id);
  if (attr == NULL) return cx_hlo_op_int(op, id);
  return i < attr->as.ints.n ? attr->as.ints.v[i] : 0;
}

int64_t cpu_ref_padding_at(const cx_hlo_op *op, size_t i, size_t side)
{
  const cx_hlo_attr *attr = cx_hlo_op_attr(op, CX_HLO_A_PADDING);
  return attr == NULL ? 0
                      : cx_hlo_elements_int(&attr->as.elements, 2 * i + side);
}

void cpu_ref_strides(const cx_hlo_type *t, int64_t *out)
{
  int64_t step = 1;
  for (size_t i = t->rank; i-- > 0;) {
    out[i] = step;
    // Unsigned: beside an empty dimension others may be of any size.
    const uint64_t size = (uint64_t)t->dims[i];
    if (size != 0) step = (int64_t)((uint64_t)step * size);
  }
}

bool cpu_ref_next(size_t rank, const int64_t *dims, int64_t *at)
{
  for (size_t i = rank; i-- > 0;) {
    if (++at[i] < dims[i]) return true;
    at[i] = 0;
  }
  return false;
}

void cpu_ref_fill(size_t bytes, void *dst, size_t n, const void *element)
{
  if (n == 0) return;
  memmove(dst, element, bytes);
  // What is filled already is copied behind itself, so its size doubles.
  for (size_t done = 1; done < n;) {
    const size_t k = n - done < done ? n - done : done;
    memcpy((char *)dst + done * bytes, dst, k * bytes);
    done += k;
  }
}

#define ROW(type)                                                 \
  for (int64_t i = 0; i < n; i++) {                               \
    type x;                                                       \
    memcpy(&x, src + i * src_step * (int64_t)sizeof x, sizeof x); \
    memcpy(dst + i * dst_step * (int64_t)sizeof x, &x, sizeof x); \
  }                                                               \
  return

static void copy_row(size_t bytes, int64_t n, char *dst, int64_t dst_step,
                     const char *src, int64_t src_step)
{
  typedef struct wide {
    uint64_t v[2];
  } wide;
  if (dst_step == 1 && src_step == 1) {
    memcpy(dst, src, (size_t)n * bytes);
    return;
  }
  switch (bytes) {
    case 1: ROW(uint8_t);
    case 2: ROW(uint16_t);
    case 4: ROW(uint32_t);
    case 8: ROW(uint64_t);
    default: ROW(wide);
  }
}

void cpu_ref_copy(size_t bytes, size_t rank, const int64_t *dims, void *dst,
                  const int64_t *dst_step, const void *src,
                  const int64_t *src_step)
{
  int64_t at[CPU_REF_RANK];
  char *to = dst;
  const char *from = src;
  for (size_t i = 0; i < rank; i++) {
    if (dims[i] <= 0) return;
    at[i] = 0;
  }
  const size_t outer = rank == 0 ? 0 : rank - 1;
  const int64_t n = rank == 0 ? 1 : dims[outer];
  const int64_t a = rank == 0 ? 1 : dst_step[outer];
  const int64_t b = rank == 0 ? 1 : src_step[outer];
  const int64_t size = (int64_t)bytes;
  for (;;) {
    copy_row(bytes, n, to, a, from, b);
    size_t i = outer;
    for (; i-- > 0;) {
      to += dst_step[i] * size;
      from += src_step[i] * size;
      if (++at[i] < dims[i]) break;
      to -= dst_step[i] * size * dims[i];
      from -= src_step[i] * size * dims[i];
      at[i] = 0;
    }
    if (i == SIZE_MAX) return;
  }
}

calx_status *cpu_ref_zero(const cpu_ref_tensor *t)
{
  const size_t bytes = cpu_ref_count(t) * cx_hlo_elem_bytes(t->type.elem);
  if (bytes != 0) memset(t->data, 0, bytes);
  return NULL;
}

void cpu_ref_copy_strided(const cpu_ref_call *c, int64_t first,
                          const int64_t *step)
{
  const cpu_ref_tensor *out = c->out;
  int64_t to[CPU_REF_RANK];
  cpu_ref_strides(&out->type, to);
  cpu_ref_copy(cx_hlo_elem_bytes(out->type.elem), out->type.rank,
               out->type.dims, out->data, to, cpu_ref_at(c->in, (size_t)first),
               step);
}
