// coll/reduce: plain loops over blocks that stay in the first cache; the
// compiler makes vectors of them. bf16 and f16 are added up in f32 and rounded
// once. NaN wins in maximum and minimum; integers wrap.
#include "coll/reduce.h"

#include <string.h>

#include "base/status.h"
#include "hlo/number.h"
#include "kernels/half.h"

enum { BLOCK = 1024, MOST_BYTES = 16 };  // elements; bytes of the widest

// ---- what the region does ----

static bool known(cx_hlo_op_kind kind)
{
  switch (kind) {
    case CX_HLO_OP_ADD:
    case CX_HLO_OP_MULTIPLY:
    case CX_HLO_OP_MAXIMUM:
    case CX_HLO_OP_MINIMUM:
    case CX_HLO_OP_AND:
    case CX_HLO_OP_OR:
    case CX_HLO_OP_XOR: return true;
    default: return false;
  }
}

// The one operation on both arguments that the block returns; OTHER: none.
static cx_hlo_op_kind kind_of(const cx_hlo_block *b)
{
  const cx_hlo_op *op = b->first;
  if (op == b->last || op->next != b->last || !known(op->kind) ||
      b->last->n_operands != 1 || b->last->operands[0] != op->results) {
    return CX_HLO_OP_OTHER;
  }
  const cx_hlo_value *x = op->operands[0], *y = op->operands[1];
  const bool both = (x == &b->args[0] && y == &b->args[1]) ||
                    (x == &b->args[1] && y == &b->args[0]);
  return both ? op->kind : CX_HLO_OP_OTHER;
}

cx_coll_reducer cx_coll_reducer_of(const cx_hlo_module *m, const cx_hlo_op *op)
{
  cx_coll_reducer r = { .module = m,
                        .kind = CX_HLO_OP_ADD,
                        .from = op->operands[0]->type.tensor.elem,
                        .elem = op->results[0].type.tensor.elem };
  if (op->n_regions == 0) return r;
  r.region = &op->regions[0];
  r.kind = kind_of(r.region->first);
  return r;
}

bool cx_coll_reducer_same(const cx_coll_reducer *a, const cx_coll_reducer *b)
{
  if (a->region == b->region && a->region != NULL) return true;
  return a->kind == b->kind && a->kind != CX_HLO_OP_OTHER && a->elem == b->elem;
}

// ---- loops: a[i] = a[i] op x[i] ----

typedef void loop(void *a, const void *x, int64_t n);

#define LOOP(name, type, value)                           \
  static void name(void *out, const void *in, int64_t n)  \
  {                                                       \
    type *restrict a = out;                               \
    const type *restrict x = in;                          \
    for (int64_t i = 0; i < n; i++) a[i] = (type)(value); \
  }

#define INTEGER_LOOPS(bits)                                                \
  LOOP(add_##bits, uint##bits##_t, a[i] + x[i])                            \
  LOOP(multiply_##bits, uint##bits##_t, (uint64_t)a[i] * x[i])             \
  LOOP(and_##bits, uint##bits##_t, a[i] & x[i])                            \
  LOOP(or_##bits, uint##bits##_t, a[i] | x[i])                             \
  LOOP(xor_##bits, uint##bits##_t, a[i] ^ x[i])                            \
  LOOP(maximum_s##bits, int##bits##_t, a[i] > x[i] ? a[i] : x[i])          \
  LOOP(minimum_s##bits, int##bits##_t, a[i] < x[i] ? a[i] : x[i])          \
  LOOP(maximum_u##bits, uint##bits##_t, a[i] > x[i] ? a[i] : x[i])         \
  LOOP(minimum_u##bits, uint##bits##_t, a[i] < x[i] ? a[i] : x[i])         \
  static loop *const loops_s##bits[] = { add_##bits,      multiply_##bits, \
                                         maximum_s##bits, minimum_s##bits, \
                                         and_##bits,      or_##bits,       \
                                         xor_##bits };                     \
  static loop *const loops_u##bits[] = { add_##bits,      multiply_##bits, \
                                         maximum_u##bits, minimum_u##bits, \
                                         and_##bits,      or_##bits,       \
                                         xor_##bits };

INTEGER_LOOPS(8)
INTEGER_LOOPS(16)
INTEGER_LOOPS(32)
INTEGER_LOOPS(64)

// i1 as bytes of 0 and 1: sums are "or", products "and".
static loop *const loops_bool[] = {
  or_8, and_8, or_8, and_8, and_8, or_8, xor_8
};

// A NaN on the left stays; on the right, the comparison fails and it is taken.
#define FLOAT_LOOPS(type)                                                    \
  LOOP(add_##type, type, a[i] + x[i])                                        \
  LOOP(multiply_##type, type, a[i] * x[i])                                   \
  LOOP(maximum_##type, type, ((a[i] > x[i]) | (a[i] != a[i])) ? a[i] : x[i]) \
  LOOP(minimum_##type, type, ((a[i] < x[i]) | (a[i] != a[i])) ? a[i] : x[i]) \
  static loop *const loops_##type[] = {                                      \
    add_##type, multiply_##type, maximum_##type, minimum_##type, NULL, NULL, \
    NULL                                                                     \
  };

FLOAT_LOOPS(float)
FLOAT_LOOPS(double)

// Pairs: real, imaginary.
#define COMPLEX_LOOPS(type)                                               \
  static void add_pairs_##type(void *a, const void *x, int64_t n)         \
  {                                                                       \
    add_##type(a, x, 2 * n);                                              \
  }                                                                       \
  static void multiply_pairs_##type(void *out, const void *in, int64_t n) \
  {                                                                       \
    type *restrict a = out;                                               \
    const type *restrict x = in;                                          \
    for (int64_t i = 0; i < 2 * n; i += 2) {                              \
      const type real = a[i] * x[i] - a[i + 1] * x[i + 1];                \
      a[i + 1] = a[i] * x[i + 1] + a[i + 1] * x[i];                       \
      a[i] = real;                                                        \
    }                                                                     \
  }                                                                       \
  static loop *const loops_pairs_##type[] = {                             \
    add_pairs_##type, multiply_pairs_##type, NULL, NULL, NULL, NULL, NULL \
  };

COMPLEX_LOOPS(float)
COMPLEX_LOOPS(double)

static int place(cx_hlo_op_kind kind)
{
  switch (kind) {
    case CX_HLO_OP_ADD: return 0;
    case CX_HLO_OP_MULTIPLY: return 1;
    case CX_HLO_OP_MAXIMUM: return 2;
    case CX_HLO_OP_MINIMUM: return 3;
    case CX_HLO_OP_AND: return 4;
    case CX_HLO_OP_OR: return 5;
    default: return 6;
  }
}

// The loop that combines elements of `e`; bf16 and f16 were widened before.
static loop *loop_of(cx_hlo_op_kind kind, cx_hlo_elem e)
{
  loop *const *loops = NULL;
  switch (e) {
    case CX_HLO_I1: loops = loops_bool; break;
    case CX_HLO_I8: loops = loops_s8; break;
    case CX_HLO_I16: loops = loops_s16; break;
    case CX_HLO_I32: loops = loops_s32; break;
    case CX_HLO_I64: loops = loops_s64; break;
    case CX_HLO_UI8: loops = loops_u8; break;
    case CX_HLO_UI16: loops = loops_u16; break;
    case CX_HLO_UI32: loops = loops_u32; break;
    case CX_HLO_UI64: loops = loops_u64; break;
    case CX_HLO_BF16:
    case CX_HLO_F16:
    case CX_HLO_F32: loops = loops_float; break;
    case CX_HLO_F64: loops = loops_double; break;
    case CX_HLO_C64: loops = loops_pairs_float; break;
    case CX_HLO_C128: loops = loops_pairs_double; break;
    default: return NULL;
  }
  return kind == CX_HLO_OP_OTHER ? NULL : loops[place(kind)];
}

// ---- 16-bit floats ----

static void widen(cx_hlo_elem e, const uint16_t *restrict x, int64_t n,
                  float *restrict out)
{
  if (e == CX_HLO_BF16) {
    for (int64_t i = 0; i < n; i++) out[i] = cx_bf16_widen(x[i]);
  } else {
    for (int64_t i = 0; i < n; i++) out[i] = cx_f16_widen(x[i]);
  }
}

static void narrow(cx_hlo_elem e, const float *restrict x, int64_t n,
                   uint16_t *restrict out)
{
  if (e == CX_HLO_BF16) {
    for (int64_t i = 0; i < n; i++) out[i] = cx_bf16_round(x[i]);
  } else {
    for (int64_t i = 0; i < n; i++) out[i] = cx_f16_round(x[i]);
  }
}

static void reduce_half(const cx_coll_reducer *r, loop *f, const void *const *x,
                        uint32_t n_members, int64_t at, int64_t n, void *out)
{
  float sum[BLOCK], next[BLOCK];
  for (int64_t from = 0; from < n; from += BLOCK) {
    const int64_t k = n - from < BLOCK ? n - from : BLOCK;
    widen(r->elem, (const uint16_t *)x[0] + at + from, k, sum);
    for (uint32_t i = 1; i < n_members; i++) {
      widen(r->elem, (const uint16_t *)x[i] + at + from, k, next);
      f(sum, next, k);
    }
    narrow(r->elem, sum, k, (uint16_t *)out + from);
  }
}

// ---- any region ----

// One element in the type of the computation, which may be wider.
static void promote(const cx_coll_reducer *r, const void *x, void *out)
{
  if (r->from == r->elem) {
    memcpy(out, x, cx_hlo_elem_bytes(r->elem));
    return;
  }
  const cx_hlo_elem from = cx_hlo_elem_part(r->from);
  const cx_hlo_elem to = cx_hlo_elem_part(r->elem);
  const size_t parts = cx_hlo_elem_is_complex(r->from) ? 2 : 1;
  for (size_t i = 0; i < parts; i++) {
    const unsigned char *p =
        (const unsigned char *)x + i * cx_hlo_elem_bytes(from);
    unsigned char *q = (unsigned char *)out + i * cx_hlo_elem_bytes(to);
    if (cx_hlo_elem_is_float(from)) {
      cx_hlo_store_real(to, q, cx_hlo_load_real(from, p));
    } else {
      cx_hlo_store_int(to, q, cx_hlo_load_int(from, p));
    }
  }
}

static calx_status *interpret(const cx_coll_reducer *r, const void *const *x,
                              uint32_t n_members, int64_t at, int64_t n,
                              void *out)
{
  const cx_hlo_type type = { r->elem, 0, NULL };
  const size_t size = cx_hlo_elem_bytes(r->elem);
  const size_t from = cx_hlo_elem_bytes(r->from);
  _Alignas(16) unsigned char sum[MOST_BYTES], next[MOST_BYTES], to[MOST_BYTES];
  const cx_ref_tensor args[2] = { { type, sum }, { type, next } };
  const cx_ref_tensor result = { type, to };
  for (int64_t i = 0; i < n; i++) {
    const size_t offset = (size_t)(at + i) * from;
    promote(r, (const unsigned char *)x[0] + offset, sum);
    for (uint32_t k = 1; k < n_members; k++) {
      promote(r, (const unsigned char *)x[k] + offset, next);
      CALX_TRY(cx_ref_region(r->module, r->region, args, &result, &r->context));
      memcpy(sum, to, size);
    }
    memcpy((unsigned char *)out + (size_t)i * size, sum, size);
  }
  return NULL;
}

calx_status *cx_coll_reduce(const cx_coll_reducer *r, const void *const *x,
                            uint32_t n_members, int64_t at, int64_t n,
                            void *out)
{
  loop *f = r->from == r->elem ? loop_of(r->kind, r->elem) : NULL;
  if (f == NULL && r->region == NULL) {
    return cx_error(CALX_UNIMPLEMENTED, "cross-replica-sum of %s",
                    cx_hlo_elem_name(r->from));
  }
  if (f == NULL) return interpret(r, x, n_members, at, n, out);
  if (r->elem == CX_HLO_BF16 || r->elem == CX_HLO_F16) {
    reduce_half(r, f, x, n_members, at, n, out);
    return NULL;
  }
  const size_t size = cx_hlo_elem_bytes(r->elem);
  memcpy(out, (const unsigned char *)x[0] + (size_t)at * size,
         (size_t)n * size);
  for (uint32_t i = 1; i < n_members; i++) {
    f(out, (const unsigned char *)x[i] + (size_t)at * size, n);
  }
  return NULL;
}
