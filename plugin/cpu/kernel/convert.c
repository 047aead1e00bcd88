// kernel/convert: converts between the element types of tensors and the few
// types that kernels compute in.
//
// Reading is a strided gather, one row at a time, so that a copy can also
// transpose, reverse and take one part of complex numbers. Rounding to bf16 and
// f16 is to nearest, ties to even; a NaN stays a NaN.
#include <string.h>

#include "kernel/half.h"
#include "kernel/internal.h"

size_t cpu_kernel_math_bytes(cpu_kernel_math m)
{
  return m == CPU_KERNEL_F32 || m == CPU_KERNEL_U32 ? 4 : 8;
}

bool cpu_kernel_math_is(cpu_kernel_math m, cx_hlo_elem e)
{
  switch (m) {
    case CPU_KERNEL_F32: return e == CX_HLO_F32;
    case CPU_KERNEL_F64: return e == CX_HLO_F64;
    case CPU_KERNEL_U32: return e == CX_HLO_I32 || e == CX_HLO_UI32;
    default: return e == CX_HLO_I64 || e == CX_HLO_UI64;
  }
}

bool cpu_kernel_math_of(const int64_t types[3], cpu_kernel_math *math,
                        bool *complex)
{
  bool any_float = false, wide = false;
  for (int i = 2; i >= 0; i--) {
    const cx_hlo_elem e = (cx_hlo_elem)types[i];
    if (types[i] <= CX_HLO_INVALID || types[i] >= CX_HLO_ELEM_COUNT ||
        !cx_hlo_elem_is_plain(e)) {
      return false;
    }
    if (i == 2) *complex = cx_hlo_elem_is_complex(e);
    if (cx_hlo_elem_is_complex(e) && !*complex) return false;
    any_float = any_float || cx_hlo_elem_is_float(e) || *complex;
    wide = wide || e == CX_HLO_F64 || e == CX_HLO_C128;
  }
  const cx_hlo_elem out = (cx_hlo_elem)types[2];
  if (any_float) {
    *math = wide ? CPU_KERNEL_F64 : CPU_KERNEL_F32;
    return cx_hlo_elem_is_float(out) || *complex;
  }
  *math =
      out == CX_HLO_I64 || out == CX_HLO_UI64 ? CPU_KERNEL_U64 : CPU_KERNEL_U32;
  return out != CX_HLO_I1 || (types[0] == CX_HLO_I1 && types[1] == CX_HLO_I1);
}

// ---- reading ----------------------------------------------------------------

// n elements `stride` apart, from a pointer to the first.
typedef void row_fn(const void *from, int64_t stride, void *to, int64_t n);

#define ROW(name, FROM, TO, VALUE)                                        \
  static void name(const void *from, int64_t stride, void *to, int64_t n) \
  {                                                                       \
    const FROM *restrict x = from;                                        \
    TO *restrict y = to;                                                  \
    if (stride == 1) {                                                    \
      for (int64_t i = 0; i < n; i++) {                                   \
        const FROM v = x[i];                                              \
        y[i] = (TO)(VALUE);                                               \
      }                                                                   \
    } else {                                                              \
      for (int64_t i = 0; i < n; i++) {                                   \
        const FROM v = x[i * stride];                                     \
        y[i] = (TO)(VALUE);                                               \
      }                                                                   \
    }                                                                     \
  }

typedef struct pair32 {
  float re, im;
} pair32;
typedef struct pair64 {
  double re, im;
} pair64;

#define INTEGER_ROWS(TO, suffix)        \
  ROW(i8_##suffix, int8_t, TO, v)       \
  ROW(i16_##suffix, int16_t, TO, v)     \
  ROW(i32_##suffix, int32_t, TO, v)     \
  ROW(i64_##suffix, int64_t, TO, v)     \
  ROW(u1_##suffix, uint8_t, TO, v != 0) \
  ROW(u8_##suffix, uint8_t, TO, v)      \
  ROW(u16_##suffix, uint16_t, TO, v)    \
  ROW(u32_##suffix, uint32_t, TO, v)    \
  ROW(u64_##suffix, uint64_t, TO, v)
#define REAL_ROWS(TO, suffix)                                \
  ROW(bf16_##suffix, uint16_t, TO, cpu_kernel_bf16_widen(v)) \
  ROW(f16_##suffix, uint16_t, TO, cpu_kernel_f16_widen(v))   \
  ROW(f32_##suffix, float, TO, v)                            \
  ROW(f64_##suffix, double, TO, v)                           \
  ROW(c64_re_##suffix, pair32, TO, v.re)                     \
  ROW(c64_im_##suffix, pair32, TO, v.im)                     \
  ROW(c128_re_##suffix, pair64, TO, v.re)                    \
  ROW(c128_im_##suffix, pair64, TO, v.im)

INTEGER_ROWS(float, to_f32)
INTEGER_ROWS(double, to_f64)
INTEGER_ROWS(uint32_t, to_u32)
INTEGER_ROWS(uint64_t, to_u64)
REAL_ROWS(float, to_f32)
REAL_ROWS(double, to_f64)

#define ALL_INTEGERS                                                  \
  [CX_HLO_I1] = { u1_to_f32, u1_to_f64, u1_to_u32, u1_to_u64 },       \
  [CX_HLO_I8] = { i8_to_f32, i8_to_f64, i8_to_u32, i8_to_u64 },       \
  [CX_HLO_I16] = { i16_to_f32, i16_to_f64, i16_to_u32, i16_to_u64 },  \
  [CX_HLO_I32] = { i32_to_f32, i32_to_f64, i32_to_u32, i32_to_u64 },  \
  [CX_HLO_I64] = { i64_to_f32, i64_to_f64, i64_to_u32, i64_to_u64 },  \
  [CX_HLO_UI8] = { u8_to_f32, u8_to_f64, u8_to_u32, u8_to_u64 },      \
  [CX_HLO_UI16] = { u16_to_f32, u16_to_f64, u16_to_u32, u16_to_u64 }, \
  [CX_HLO_UI32] = { u32_to_f32, u32_to_f64, u32_to_u32, u32_to_u64 }, \
  [CX_HLO_UI64] = { u64_to_f32, u64_to_f64, u64_to_u32, u64_to_u64 }

static row_fn *const rows[CX_HLO_ELEM_COUNT][CPU_KERNEL_MATH_COUNT] = {
  ALL_INTEGERS,
  [CX_HLO_BF16] = { bf16_to_f32, bf16_to_f64, NULL, NULL },
  [CX_HLO_F16] = { f16_to_f32, f16_to_f64, NULL, NULL },
  [CX_HLO_F32] = { f32_to_f32, f32_to_f64, NULL, NULL },
  [CX_HLO_F64] = { f64_to_f32, f64_to_f64, NULL, NULL },
  [CX_HLO_C64] = { c64_re_to_f32, c64_re_to_f64, NULL, NULL },
  [CX_HLO_C128] = { c128_re_to_f32, c128_re_to_f64, NULL, NULL },
};

static row_fn *row_of(cx_hlo_elem type, bool imaginary, cpu_kernel_math math)
{
  if (imaginary && type == CX_HLO_C64) {
    return math == CPU_KERNEL_F32 ? c64_im_to_f32 : c64_im_to_f64;
  }
  if (imaginary && type == CX_HLO_C128) {
    return math == CPU_KERNEL_F32 ? c128_im_to_f32 : c128_im_to_f64;
  }
  return rows[type][math];
}

// Leaves out dimensions of size 1, and merges neighbours that are one dimension
// in memory.
void cpu_kernel_view_add(cpu_kernel_view *v, int64_t size, int64_t stride)
{
  if (size == 1) return;
  if (v->n > 0 && v->stride[v->n - 1] == stride * size) {
    v->size[v->n - 1] *= size;
    v->stride[v->n - 1] = stride;
    return;
  }
  v->size[v->n] = size;
  v->stride[v->n] = stride;
  v->n++;
}

typedef struct gather {
  const cpu_kernel_view *v;
  const unsigned char *from;
  unsigned char *to;
  size_t from_bytes, to_bytes;
  row_fn *row;
  int64_t row_size, row_stride;
  int n;  // dimensions outside of a row
} gather;

static void gather_rows(void *user, int64_t lo, int64_t hi)
{
  const gather *g = user;
  const cpu_kernel_view *v = g->v;
  int64_t index[CPU_KERNEL_VIEW_DIMS] = { 0 }, at = v->first;
  int64_t rest = lo;
  for (int d = g->n - 1; d >= 0; d--) {
    index[d] = rest % v->size[d];
    rest /= v->size[d];
    at += index[d] * v->stride[d];
  }
  unsigned char *to = g->to + (size_t)(lo * g->row_size) * g->to_bytes;
  for (int64_t r = lo; r < hi; r++) {
    g->row(g->from + at * (int64_t)g->from_bytes, g->row_stride, to,
           g->row_size);
    to += (size_t)g->row_size * g->to_bytes;
    for (int d = g->n - 1; d >= 0; d--) {
      at += v->stride[d];
      if (++index[d] < v->size[d]) break;
      at -= v->stride[d] * v->size[d];
      index[d] = 0;
    }
  }
}

// Elements that are worth a thread.
#define GRAIN 8192

void cpu_kernel_view_gather(const cpu_kernel_view *v, const void *from,
                            cpu_kernel_math math, void *to, cpu_threads *pool)
{
  gather g = { .v = v,
               .from = from,
               .to = to,
               .from_bytes = cx_hlo_elem_bytes(v->type),
               .to_bytes = cpu_kernel_math_bytes(math),
               .row = row_of(v->type, v->imaginary, math),
               .row_size = 1,
               .row_stride = 1 };
  if (v->imaginary && !cx_hlo_elem_is_complex(v->type)) g.row = NULL;
  g.n = v->n == 0 ? 0 : v->n - 1;
  if (v->n > 0) {
    g.row_size = v->size[v->n - 1];
    g.row_stride = v->stride[v->n - 1];
  }
  int64_t n = 1;
  for (int d = 0; d < g.n; d++) n *= v->size[d];
  if (n == 0 || g.row_size == 0) return;
  if (g.row == NULL) {
    memset(to, 0, (size_t)(n * g.row_size) * g.to_bytes);
    return;
  }
  cpu_threads_for(pool, n, GRAIN / g.row_size + 1, gather_rows, &g);
}

void cpu_kernel_operand_reserve(cpu_kernel *kernel, cpu_kernel_math math,
                                int64_t elements, cpu_kernel_operand *io)
{
  const size_t bytes = (size_t)elements * cpu_kernel_math_bytes(math);
  io->plane = (bytes + 63) / 64 * 64;
  io->at =
      cpu_kernel_reserve(kernel, io->imaginary ? 2 * io->plane : io->plane);
}

void cpu_kernel_operand_gather(const cpu_kernel_operand *o, const void *from,
                               cpu_kernel_math math, unsigned char *scratch,
                               cpu_threads *pool)
{
  cpu_kernel_view_gather(&o->view, from, math, scratch + o->at, pool);
  if (!o->imaginary) return;
  cpu_kernel_view part = o->view;
  part.imaginary = true;
  cpu_kernel_view_gather(&part, from, math, scratch + o->at + o->plane, pool);
}

// ---- writing ----------------------------------------------------------------

typedef struct store {
  const void *re, *im;
  void *out;
  cpu_kernel_math math;
  cx_hlo_elem to;
} store;

#define EACH(FROM, TO, VALUE)                             \
  do {                                                    \
    const FROM *restrict x = s->re;                       \
    TO *restrict y = s->out;                              \
    for (int64_t i = lo; i < hi; i++) y[i] = (TO)(VALUE); \
  } while (0)

#define EACH_PAIR(FROM, PAIR, PART)                      \
  do {                                                   \
    const FROM *restrict x = s->re, *restrict z = s->im; \
    PAIR *restrict y = s->out;                           \
    for (int64_t i = lo; i < hi; i++) {                  \
      y[i] = (PAIR){ (PART)x[i], (PART)z[i] };           \
    }                                                    \
  } while (0)

static void store_f32(const store *s, int64_t lo, int64_t hi)
{
  switch (s->to) {
    case CX_HLO_BF16: EACH(float, uint16_t, cpu_kernel_bf16_round(x[i])); break;
    case CX_HLO_F16: EACH(float, uint16_t, cpu_kernel_f16_round(x[i])); break;
    case CX_HLO_C64: EACH_PAIR(float, pair32, float); break;
    default: EACH(float, float, x[i]);
  }
}

static void store_f64(const store *s, int64_t lo, int64_t hi)
{
  switch (s->to) {
    case CX_HLO_BF16:
      EACH(double, uint16_t, cpu_kernel_bf16_round((float)x[i]));
      break;
    case CX_HLO_F16:
      EACH(double, uint16_t, cpu_kernel_f16_round((float)x[i]));
      break;
    case CX_HLO_F32: EACH(double, float, x[i]); break;
    case CX_HLO_C64: EACH_PAIR(double, pair32, float); break;
    case CX_HLO_C128: EACH_PAIR(double, pair64, double); break;
    default: EACH(double, double, x[i]);
  }
}

static void store_u32(const store *s, int64_t lo, int64_t hi)
{
  switch (cx_hlo_elem_bytes(s->to)) {
    case 1:
      if (s->to == CX_HLO_I1) {
        EACH(uint32_t, uint8_t, x[i] != 0);
      } else {
        EACH(uint32_t, uint8_t, x[i]);
      }
      break;
    case 2: EACH(uint32_t, uint16_t, x[i]); break;
    default: EACH(uint32_t, uint32_t, x[i]);
  }
}

static void store_piece(void *user, int64_t lo, int64_t hi)
{
  const store *s = user;
  switch (s->math) {
    case CPU_KERNEL_F32: store_f32(s, lo, hi); break;
    case CPU_KERNEL_F64: store_f64(s, lo, hi); break;
    case CPU_KERNEL_U32: store_u32(s, lo, hi); break;
    default: EACH(uint64_t, uint64_t, x[i]);
  }
}

void cpu_kernel_math_store(cpu_kernel_math math, const void *real,
                           const void *imaginary, cx_hlo_elem to, void *out,
                           int64_t n, cpu_threads *pool)
{
  store s = { real, imaginary, out, math, to };
  cpu_threads_for(pool, n, GRAIN, store_piece, &s);
}
