// hlo/types: one row for each element type, and what follows from it.
#include "hlo/types.h"

#include <stdio.h>
#include <string.h>

typedef enum kind {
  KIND_NONE,
  KIND_BOOL,
  KIND_SIGNED,
  KIND_UNSIGNED,
  KIND_FLOAT,
  KIND_COMPLEX
} kind;

typedef struct elem_row {
  const char *name;
  kind kind;
  unsigned char bytes;
  unsigned char bits;
  calx_dtype dtype;
} elem_row;

static const elem_row rows[CX_HLO_ELEM_COUNT] = {
  [CX_HLO_INVALID] = { "invalid", KIND_NONE, 0, 0, CALX_DTYPE_DEFAULT },
  [CX_HLO_I1] = { "i1", KIND_BOOL, 1, 1, CALX_BOOL },
  [CX_HLO_I2] = { "i2", KIND_SIGNED, 1, 2, CALX_DTYPE_DEFAULT },
  [CX_HLO_I4] = { "i4", KIND_SIGNED, 1, 4, CALX_DTYPE_DEFAULT },
  [CX_HLO_I8] = { "i8", KIND_SIGNED, 1, 8, CALX_I8 },
  [CX_HLO_I16] = { "i16", KIND_SIGNED, 2, 16, CALX_I16 },
  [CX_HLO_I32] = { "i32", KIND_SIGNED, 4, 32, CALX_I32 },
  [CX_HLO_I64] = { "i64", KIND_SIGNED, 8, 64, CALX_I64 },
  [CX_HLO_UI2] = { "ui2", KIND_UNSIGNED, 1, 2, CALX_DTYPE_DEFAULT },
  [CX_HLO_UI4] = { "ui4", KIND_UNSIGNED, 1, 4, CALX_DTYPE_DEFAULT },
  [CX_HLO_UI8] = { "ui8", KIND_UNSIGNED, 1, 8, CALX_U8 },
  [CX_HLO_UI16] = { "ui16", KIND_UNSIGNED, 2, 16, CALX_U16 },
  [CX_HLO_UI32] = { "ui32", KIND_UNSIGNED, 4, 32, CALX_U32 },
  [CX_HLO_UI64] = { "ui64", KIND_UNSIGNED, 8, 64, CALX_U64 },
  [CX_HLO_BF16] = { "bf16", KIND_FLOAT, 2, 16, CALX_BF16 },
  [CX_HLO_F16] = { "f16", KIND_FLOAT, 2, 16, CALX_F16 },
  [CX_HLO_F32] = { "f32", KIND_FLOAT, 4, 32, CALX_F32 },
  [CX_HLO_F64] = { "f64", KIND_FLOAT, 8, 64, CALX_F64 },
  [CX_HLO_F8E5M2] = { "f8E5M2", KIND_FLOAT, 1, 8, CALX_DTYPE_DEFAULT },
  [CX_HLO_F8E4M3FN] = { "f8E4M3FN", KIND_FLOAT, 1, 8, CALX_DTYPE_DEFAULT },
  [CX_HLO_F8E4M3B11FNUZ] = { "f8E4M3B11FNUZ", KIND_FLOAT, 1, 8,
                             CALX_DTYPE_DEFAULT },
  [CX_HLO_F8E5M2FNUZ] = { "f8E5M2FNUZ", KIND_FLOAT, 1, 8, CALX_DTYPE_DEFAULT },
  [CX_HLO_F8E4M3FNUZ] = { "f8E4M3FNUZ", KIND_FLOAT, 1, 8, CALX_DTYPE_DEFAULT },
  [CX_HLO_F8E4M3] = { "f8E4M3", KIND_FLOAT, 1, 8, CALX_DTYPE_DEFAULT },
  [CX_HLO_F8E3M4] = { "f8E3M4", KIND_FLOAT, 1, 8, CALX_DTYPE_DEFAULT },
  [CX_HLO_F8E8M0FNU] = { "f8E8M0FNU", KIND_FLOAT, 1, 8, CALX_DTYPE_DEFAULT },
  [CX_HLO_F4E2M1FN] = { "f4E2M1FN", KIND_FLOAT, 1, 4, CALX_DTYPE_DEFAULT },
  [CX_HLO_F6E2M3FN] = { "f6E2M3FN", KIND_FLOAT, 1, 6, CALX_DTYPE_DEFAULT },
  [CX_HLO_F6E3M2FN] = { "f6E3M2FN", KIND_FLOAT, 1, 6, CALX_DTYPE_DEFAULT },
  [CX_HLO_C64] = { "complex<f32>", KIND_COMPLEX, 8, 64, CALX_C64 },
  [CX_HLO_C128] = { "complex<f64>", KIND_COMPLEX, 16, 128, CALX_C128 },
  [CX_HLO_INDEX] = { "index", KIND_NONE, 8, 64, CALX_DTYPE_DEFAULT },
  [CX_HLO_TF32] = { "tf32", KIND_NONE, 4, 19, CALX_DTYPE_DEFAULT },
  [CX_HLO_TOKEN] = { "token", KIND_NONE, 0, 0, CALX_DTYPE_DEFAULT },
};

static const elem_row *row_of(cx_hlo_elem e)
{
  return &rows[(unsigned)e < CX_HLO_ELEM_COUNT ? e : CX_HLO_INVALID];
}

const char *cx_hlo_elem_name(cx_hlo_elem e)
{
  return row_of(e)->name;
}
size_t cx_hlo_elem_bytes(cx_hlo_elem e)
{
  return row_of(e)->bytes;
}
unsigned cx_hlo_elem_bits(cx_hlo_elem e)
{
  return row_of(e)->bits;
}
calx_dtype cx_hlo_elem_dtype(cx_hlo_elem e)
{
  return row_of(e)->dtype;
}

bool cx_hlo_elem_is_plain(cx_hlo_elem e)
{
  return cx_hlo_elem_dtype(e) != CALX_DTYPE_DEFAULT;
}

bool cx_hlo_elem_is_float(cx_hlo_elem e)
{
  return row_of(e)->kind == KIND_FLOAT;
}

bool cx_hlo_elem_is_int(cx_hlo_elem e)
{
  return row_of(e)->kind == KIND_SIGNED || row_of(e)->kind == KIND_UNSIGNED;
}

bool cx_hlo_elem_is_unsigned(cx_hlo_elem e)
{
  return row_of(e)->kind == KIND_UNSIGNED;
}

bool cx_hlo_elem_is_complex(cx_hlo_elem e)
{
  return row_of(e)->kind == KIND_COMPLEX;
}

cx_hlo_elem cx_hlo_elem_part(cx_hlo_elem e)
{
  if (e == CX_HLO_C64) return CX_HLO_F32;
  return e == CX_HLO_C128 ? CX_HLO_F64 : e;
}

// The types of most programs, without a search of the table.
static cx_hlo_elem frequent(const char *s, size_t n)
{
  if (n == 3 && (s[0] == 'f' || s[0] == 'i')) {
    const bool real = s[0] == 'f';
    if (s[1] == '3' && s[2] == '2') return real ? CX_HLO_F32 : CX_HLO_I32;
    if (s[1] == '6' && s[2] == '4') return real ? CX_HLO_F64 : CX_HLO_I64;
    if (s[1] == '1' && s[2] == '6') return real ? CX_HLO_F16 : CX_HLO_I16;
  }
  if (n == 2 && s[0] == 'i' && s[1] == '1') return CX_HLO_I1;
  if (n == 4 && memcmp(s, "bf16", 4) == 0) return CX_HLO_BF16;
  return CX_HLO_INVALID;
}

cx_hlo_elem cx_hlo_elem_parse(const char *s, size_t n)
{
  const cx_hlo_elem known = frequent(s, n);
  if (known != CX_HLO_INVALID) return known;
  for (int e = CX_HLO_INVALID + 1; e < CX_HLO_TOKEN; e++) {
    const char *name = rows[e].name;
    size_t i = 0;
    while (i < n && name[i] == s[i] && name[i] != '\0') i++;
    if (i == n && name[i] == '\0') return (cx_hlo_elem)e;
  }
  return CX_HLO_INVALID;
}

cx_hlo_elem cx_hlo_elem_of(calx_dtype d)
{
  if (d == CALX_DTYPE_DEFAULT) return CX_HLO_INVALID;
  for (int e = CX_HLO_I1; e < CX_HLO_ELEM_COUNT; e++) {
    if (rows[e].dtype == d) return (cx_hlo_elem)e;
  }
  return CX_HLO_INVALID;
}

bool cx_hlo_type_equal(const cx_hlo_type *a, const cx_hlo_type *b)
{
  if (a->elem != b->elem || a->rank != b->rank) return false;
  if (a->dims == b->dims || a->rank == 0) return true;
  return memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

int64_t cx_hlo_type_elements(const cx_hlo_type *t)
{
  int64_t n = 1;
  bool overflow = false;
  for (size_t i = 0; i < t->rank; i++) {
    if (t->dims[i] < 0) return -1;
    if (t->dims[i] == 0) return 0;
    overflow |= __builtin_mul_overflow(n, t->dims[i], &n);
  }
  return overflow ? -1 : n;
}

int64_t cx_hlo_type_bytes(const cx_hlo_type *t)
{
  if (t->elem == CX_HLO_TOKEN) return 0;
  const int64_t n = cx_hlo_type_elements(t);
  const int64_t each = (int64_t)cx_hlo_elem_bytes(t->elem);
  return n < 0 || (each > 0 && n > INT64_MAX / each) ? -1 : n * each;
}

size_t cx_hlo_type_edges(const cx_hlo_type *t, int64_t i)
{
  size_t n = 0;
  for (size_t d = t->rank; d > 0 && i % t->dims[d - 1] == 0; d--) {
    i /= t->dims[d - 1];
    n++;
  }
  return n;
}

void cx_hlo_type_print(cx_text *out, const cx_hlo_type *t)
{
  if (t->elem == CX_HLO_TOKEN) {
    cx_text_append(out, "!stablehlo.token");
    return;
  }
  cx_text_append_n(out, "tensor<", 7);
  for (size_t i = 0; i < t->rank; i++) {
    if (t->dims[i] < 0) {
      cx_text_char(out, '?');
    } else {
      cx_text_int(out, t->dims[i]);
    }
    cx_text_char(out, 'x');
  }
  cx_text_append(out, cx_hlo_elem_name(t->elem));
  cx_text_char(out, '>');
}

cx_hlo_shape_text cx_hlo_shape(const cx_hlo_type *t)
{
  cx_hlo_shape_text out;
  const size_t size = sizeof out.s;
  // The last 32 bytes are kept for one more size and the ending.
  const size_t room = size - 32;
  size_t n = (size_t)snprintf(out.s, room, "%s[", cx_hlo_elem_name(t->elem));
  for (size_t i = 0; i < t->rank && n < room; i++) {
    const char *comma = i == 0 ? "" : ",";
    n += (size_t)(t->dims[i] < 0 ? snprintf(out.s + n, size - n, "%s?", comma)
                                 : snprintf(out.s + n, size - n, "%s%lld",
                                            comma, (long long)t->dims[i]));
    if (n >= room && i + 1 < t->rank) {
      n += (size_t)snprintf(out.s + n, size - n, ",…");
    }
  }
  snprintf(out.s + n, size - n, "]");
  return out;
}
