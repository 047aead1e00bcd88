// api/types: element types, shapes, and copies between layouts.
//
// On host and device an element of less than 8 bits takes a byte. On the way in
// an element is cut to its bits, and an integer is then extended, since
// programs rely on that. On the way out only its bits remain, as in XLA's
// plugins. A boolean becomes 0 or 1 on the way in.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"

typedef struct row {
  const char *name;
  cx_hlo_elem elem;
  unsigned char bytes;
  unsigned char bits;  // of a narrow type; else 0
  bool is_signed;      // of a narrow type
} row;

static const row rows[] = {
  [PJRT_Buffer_Type_PRED] = { "pred", CX_HLO_I1, 1, 1, false },
  [PJRT_Buffer_Type_S8] = { "s8", CX_HLO_I8, 1, 0, false },
  [PJRT_Buffer_Type_S16] = { "s16", CX_HLO_I16, 2, 0, false },
  [PJRT_Buffer_Type_S32] = { "s32", CX_HLO_I32, 4, 0, false },
  [PJRT_Buffer_Type_S64] = { "s64", CX_HLO_I64, 8, 0, false },
  [PJRT_Buffer_Type_U8] = { "u8", CX_HLO_UI8, 1, 0, false },
  [PJRT_Buffer_Type_U16] = { "u16", CX_HLO_UI16, 2, 0, false },
  [PJRT_Buffer_Type_U32] = { "u32", CX_HLO_UI32, 4, 0, false },
  [PJRT_Buffer_Type_U64] = { "u64", CX_HLO_UI64, 8, 0, false },
  [PJRT_Buffer_Type_F16] = { "f16", CX_HLO_F16, 2, 0, false },
  [PJRT_Buffer_Type_F32] = { "f32", CX_HLO_F32, 4, 0, false },
  [PJRT_Buffer_Type_F64] = { "f64", CX_HLO_F64, 8, 0, false },
  [PJRT_Buffer_Type_BF16] = { "bf16", CX_HLO_BF16, 2, 0, false },
  [PJRT_Buffer_Type_C64] = { "c64", CX_HLO_C64, 8, 0, false },
  [PJRT_Buffer_Type_C128] = { "c128", CX_HLO_C128, 16, 0, false },
  [PJRT_Buffer_Type_F8E5M2] = { "f8e5m2", CX_HLO_F8E5M2, 1, 0, false },
  [PJRT_Buffer_Type_F8E4M3FN] = { "f8e4m3fn", CX_HLO_F8E4M3FN, 1, 0, false },
  [PJRT_Buffer_Type_F8E4M3B11FNUZ] = { "f8e4m3b11fnuz", CX_HLO_F8E4M3B11FNUZ, 1,
                                       0, false },
  [PJRT_Buffer_Type_F8E5M2FNUZ] = { "f8e5m2fnuz", CX_HLO_F8E5M2FNUZ, 1, 0,
                                    false },
  [PJRT_Buffer_Type_F8E4M3FNUZ] = { "f8e4m3fnuz", CX_HLO_F8E4M3FNUZ, 1, 0,
                                    false },
  [PJRT_Buffer_Type_S4] = { "s4", CX_HLO_I4, 1, 4, true },
  [PJRT_Buffer_Type_U4] = { "u4", CX_HLO_UI4, 1, 4, false },
  [PJRT_Buffer_Type_TOKEN] = { "token", CX_HLO_TOKEN, 0, 0, false },
  [PJRT_Buffer_Type_S2] = { "s2", CX_HLO_I2, 1, 2, true },
  [PJRT_Buffer_Type_U2] = { "u2", CX_HLO_UI2, 1, 2, false },
  [PJRT_Buffer_Type_F8E4M3] = { "f8e4m3", CX_HLO_F8E4M3, 1, 0, false },
  [PJRT_Buffer_Type_F8E3M4] = { "f8e3m4", CX_HLO_F8E3M4, 1, 0, false },
  [PJRT_Buffer_Type_F8E8M0FNU] = { "f8e8m0fnu", CX_HLO_F8E8M0FNU, 1, 0, false },
  [PJRT_Buffer_Type_F4E2M1FN] = { "f4e2m1fn", CX_HLO_F4E2M1FN, 1, 4, false },
  [PJRT_Buffer_Type_S1] = { "s1", CX_HLO_INVALID, 1, 1, true },
  [PJRT_Buffer_Type_U1] = { "u1", CX_HLO_INVALID, 1, 1, false },
  [PJRT_Buffer_Type_F6E2M3FN] = { "f6e2m3fn", CX_HLO_F6E2M3FN, 1, 6, false },
  [PJRT_Buffer_Type_F6E3M2FN] = { "f6e3m2fn", CX_HLO_F6E3M2FN, 1, 6, false },
};

#define TYPES (int)(sizeof rows / sizeof *rows)

static const row *row_of(int type)
{
  bool known = type > 0 && type < TYPES && rows[type].name != NULL;
  return known ? &rows[type] : NULL;
}

int cpu_api_type_of(cx_hlo_elem elem)
{
  for (int i = 1; i < TYPES; i++) {
    if (rows[i].name != NULL && rows[i].elem == elem) return i;
  }
  return PJRT_Buffer_Type_INVALID;
}

size_t cpu_api_type_bytes(int type)
{
  const row *r = row_of(type);
  return r == NULL ? 0 : r->bytes;
}

bool cpu_api_type_is_narrow(int type)
{
  const row *r = row_of(type);
  return r != NULL && r->bits > 0;
}

// ---- shapes ----

calx_status *cpu_api_shape_check(const cpu_api_shape *shape, size_t *out_bytes)
{
  const row *r = row_of(shape->type);
  if (r == NULL) {
    return cx_invalid("there is no element type %d", shape->type);
  }
  if (shape->rank > CPU_API_MAX_RANK) {
    return cx_invalid("a tensor of %zu dimensions, at most %d are supported",
                      shape->rank, CPU_API_MAX_RANK);
  }
  if (shape->rank > 0 && shape->dims == NULL) {
    return cx_invalid("%zu dimensions, but no list of them", shape->rank);
  }
  int64_t total = r->bytes;
  bool fits = true;
  bool empty = false;
  for (size_t i = 0; i < shape->rank; i++) {
    if (shape->dims[i] < 0) {
      return cx_invalid("dimension %zu of %s is negative", i,
                        cpu_api_shape_str(shape).s);
    }
    empty = empty || shape->dims[i] == 0;
    fits = fits && !__builtin_mul_overflow(total, shape->dims[i], &total);
  }
  if (!empty && (!fits || total > INT64_MAX / 2)) {
    return cx_error(CALX_RESOURCE_EXHAUSTED, "%s is larger than any memory",
                    cpu_api_shape_str(shape).s);
  }
  *out_bytes = empty ? 0 : (size_t)total;
  return NULL;
}

cpu_api_shape_text cpu_api_shape_str(const cpu_api_shape *shape)
{
  cpu_api_shape_text text;
  const size_t most = sizeof text.s - 8;  // leaves space for "…]"
  const row *r = row_of(shape->type);
  size_t n =
      (size_t)snprintf(text.s, sizeof text.s, "%s[", r == NULL ? "?" : r->name);
  for (size_t i = 0; i < shape->rank; i++) {
    char dim[24];
    size_t size = (size_t)snprintf(dim, sizeof dim, "%s%" PRId64,
                                   i == 0 ? "" : ",", shape->dims[i]);
    if (n + size > most) {
      n += (size_t)snprintf(text.s + n, sizeof text.s - n, "…");
      break;
    }
    memcpy(text.s + n, dim, size);
    n += size;
  }
  snprintf(text.s + n, sizeof text.s - n, "]");
  return text;
}

bool cpu_api_shape_equal(const cpu_api_shape *a, const cpu_api_shape *b)
{
  if (a->type != b->type || a->rank != b->rank) return false;
  for (size_t i = 0; i < a->rank; i++) {
    if (a->dims[i] != b->dims[i]) return false;
  }
  return true;
}

bool cpu_api_is_range(int64_t offset, int64_t size, size_t bytes)
{
  return offset >= 0 && size >= 0 && (uint64_t)offset <= bytes &&
         (uint64_t)size <= bytes - (uint64_t)offset;
}

// ---- layouts ----

const int64_t *cpu_api_row_major(size_t rank)
{
  static const int64_t falling[CPU_API_MAX_RANK] = {
    63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48,
    47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32,
    31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16,
    15, 14, 13, 12, 11, 10, 9,  8,  7,  6,  5,  4,  3,  2,  1,  0
  };
  return falling + (CPU_API_MAX_RANK - rank);
}

// The stride of the next dimension. A product overflows only if another
// dimension is 0, and then no stride is used.
static int64_t grow(int64_t step, int64_t dim)
{
  int64_t next = 0;
  bool fits = dim > 0 && !__builtin_mul_overflow(step, dim, &next);
  return fits ? next : step;
}

static void dense_strides(const cpu_api_shape *shape, int64_t *strides)
{
  int64_t step = (int64_t)cpu_api_type_bytes(shape->type);
  for (size_t i = shape->rank; i-- > 0;) {
    strides[i] = step;
    step = grow(step, shape->dims[i]);
  }
}

static calx_status *permuted_strides(
    const PJRT_Buffer_MemoryLayout_Tiled *tiled, const cpu_api_shape *shape,
    int64_t *strides)
{
  if (tiled->num_tiles != 0) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "a layout of %zu tiles, only layouts "
                    "without tiles are supported",
                    tiled->num_tiles);
  }
  if (tiled->minor_to_major_size != shape->rank ||
      (shape->rank > 0 && tiled->minor_to_major == NULL)) {
    return cx_invalid("a layout of %zu dimensions for %s",
                      tiled->minor_to_major_size, cpu_api_shape_str(shape).s);
  }
  uint64_t seen = 0;
  int64_t step = (int64_t)cpu_api_type_bytes(shape->type);
  for (size_t i = 0; i < shape->rank; i++) {
    int64_t d = tiled->minor_to_major[i];
    if (d < 0 || d >= (int64_t)shape->rank || (seen >> d & 1) != 0) {
      return cx_invalid("minor_to_major is no order of %zu dimensions",
                        shape->rank);
    }
    seen |= UINT64_C(1) << d;
    strides[d] = step;
    step = grow(step, shape->dims[d]);
  }
  return NULL;
}

calx_status *cpu_api_layout_strides(const PJRT_Buffer_MemoryLayout *layout,
                                    const cpu_api_shape *shape,
                                    int64_t *strides)
{
  if (layout == NULL) {
    dense_strides(shape, strides);
    return NULL;
  }
  CALX_TRY(cpu_api_check_size("PJRT_Buffer_MemoryLayout",
                              PJRT_Buffer_MemoryLayout_STRUCT_SIZE,
                              layout->struct_size));
  if (layout->type == PJRT_Buffer_MemoryLayout_Type_Tiled) {
    return permuted_strides(&layout->tiled, shape, strides);
  }
  if (layout->type != PJRT_Buffer_MemoryLayout_Type_Strides ||
      layout->strides.num_byte_strides != shape->rank ||
      (shape->rank > 0 && layout->strides.byte_strides == NULL)) {
    return cx_invalid("no layout of %s", cpu_api_shape_str(shape).s);
  }
  for (size_t i = 0; i < shape->rank; i++) {
    strides[i] = layout->strides.byte_strides[i];
  }
  return NULL;
}

// The strides of dimensions of size 1, and of tensors without elements, are not
// compared.
bool cpu_api_is_dense(const cpu_api_shape *shape, const int64_t *strides)
{
  int64_t step = (int64_t)cpu_api_type_bytes(shape->type);
  for (size_t i = 0; i < shape->rank; i++) {
    if (shape->dims[i] == 0) return true;
  }
  for (size_t i = shape->rank; i-- > 0;) {
    if (shape->dims[i] != 1 && strides[i] != step) return false;
    step *= shape->dims[i];
  }
  return true;
}

calx_status *cpu_api_shape_read(int type, const int64_t *dims, size_t rank,
                                const PJRT_Buffer_MemoryLayout *layout,
                                cpu_api_shape *out, size_t *out_bytes)
{
  int64_t strides[CPU_API_MAX_RANK];
  *out = (cpu_api_shape){ .type = type, .rank = rank, .dims = dims };
  CALX_TRY(cpu_api_shape_check(out, out_bytes));
  CALX_TRY(cpu_api_layout_strides(layout, out, strides));
  if (cpu_api_is_dense(out, strides)) return NULL;
  return cx_error(CALX_UNIMPLEMENTED,
                  "%s with another layout than row-major on the device",
                  cpu_api_shape_str(out).s);
}

// ---- moving ----

void cpu_api_move_init(cpu_api_move *move, const cpu_api_shape *shape,
                       int narrow)
{
  move->shape = *shape;
  move->narrow = narrow;
  for (size_t i = 0; i < shape->rank; i++) move->dims[i] = shape->dims[i];
  dense_strides(shape, move->dst_strides);
  dense_strides(shape, move->src_strides);
}

// n elements, `bytes` each, at steps of ds and ss.
static void move_row(unsigned char *d, const unsigned char *s, int64_t n,
                     int64_t ds, int64_t ss, size_t bytes)
{
  if (ds == (int64_t)bytes && ss == (int64_t)bytes) {
    memcpy(d, s, (size_t)n * bytes);
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    memcpy(d + i * ds, s + i * ss, bytes);
  }
}

static void move_narrow_row(const cpu_api_move *m, unsigned char *d,
                            const unsigned char *s, int64_t n, int64_t ds,
                            int64_t ss)
{
  const row *r = row_of(m->shape.type);
  unsigned mask = (1u << r->bits) - 1;
  unsigned sign = 1u << (r->bits - 1);
  bool extend = m->narrow == CPU_API_MOVE_IN && r->is_signed;
  bool boolean = m->shape.type == PJRT_Buffer_Type_PRED;
  for (int64_t i = 0; i < n; i++) {
    unsigned v = s[i * ss];
    if (boolean) {
      v = v != 0;
    } else {
      v &= mask;
      if (extend) v = (v ^ sign) - sign;
    }
    d[i * ds] = (unsigned char)(v & 0xff);
  }
}

// The last dimensions that are dense on both sides make one row. An outer loop
// counts over the other dimensions.
void cpu_api_move_run(const cpu_api_move *m, void *dst, const void *src)
{
  size_t bytes = cpu_api_type_bytes(m->shape.type);
  size_t rank = m->shape.rank;
  int64_t n = 1;
  int64_t ds = (int64_t)bytes, ss = (int64_t)bytes;
  for (size_t i = 0; i < rank; i++) {
    if (m->dims[i] == 0) return;
  }
  if (bytes == 0) return;
  while (rank > 0 && m->dst_strides[rank - 1] == n * (int64_t)bytes &&
         m->src_strides[rank - 1] == n * (int64_t)bytes) {
    n *= m->dims[--rank];
  }
  if (n == 1 && rank > 0) {
    rank--;
    n = m->dims[rank];
    ds = m->dst_strides[rank];
    ss = m->src_strides[rank];
  }
  bool narrow =
      m->narrow != CPU_API_MOVE_AS_IS && cpu_api_type_is_narrow(m->shape.type);
  int64_t at[CPU_API_MAX_RANK] = { 0 };
  unsigned char *d = dst;
  const unsigned char *s = src;
  for (;;) {
    if (narrow) {
      move_narrow_row(m, d, s, n, ds, ss);
    } else {
      move_row(d, s, n, ds, ss, bytes);
    }
    size_t i = rank;
    while (i > 0 && ++at[i - 1] == m->dims[i - 1]) {
      i--;
      at[i] = 0;
      d -= m->dst_strides[i] * (m->dims[i] - 1);
      s -= m->src_strides[i] * (m->dims[i] - 1);
    }
    if (i == 0) return;
    d += m->dst_strides[i - 1];
    s += m->src_strides[i - 1];
  }
}
