// hlo/types: element types and tensor types of StableHLO.
#ifndef CX_HLO_TYPES_H
#define CX_HLO_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "calx/dtype.h"

// Every element type of the specification but the quantized ones.
typedef enum cx_hlo_elem {
  CX_HLO_INVALID = 0,
  CX_HLO_I1,
  CX_HLO_I2,
  CX_HLO_I4,
  CX_HLO_I8,
  CX_HLO_I16,
  CX_HLO_I32,
  CX_HLO_I64,
  CX_HLO_UI2,
  CX_HLO_UI4,
  CX_HLO_UI8,
  CX_HLO_UI16,
  CX_HLO_UI32,
  CX_HLO_UI64,
  CX_HLO_BF16,
  CX_HLO_F16,
  CX_HLO_F32,
  CX_HLO_F64,
  CX_HLO_F8E5M2,
  CX_HLO_F8E4M3FN,
  CX_HLO_F8E4M3B11FNUZ,
  CX_HLO_F8E5M2FNUZ,
  CX_HLO_F8E4M3FNUZ,
  CX_HLO_F8E4M3,
  CX_HLO_F8E3M4,
  CX_HLO_F8E8M0FNU,
  CX_HLO_F4E2M1FN,
  CX_HLO_F6E2M3FN,
  CX_HLO_F6E3M2FN,
  CX_HLO_C64,
  CX_HLO_C128,
  CX_HLO_INDEX,
  CX_HLO_TF32,  // names a precision of dot_general; no tensor has it
  CX_HLO_TOKEN,
  CX_HLO_ELEM_COUNT
} cx_hlo_elem;

const char *cx_hlo_elem_name(cx_hlo_elem e);  // "f32", "ui8", "complex<f32>"
cx_hlo_elem cx_hlo_elem_parse(const char *s, size_t n);  // INVALID: none
// Bytes of an element on the host. Types of less than 8 bits have one byte.
size_t cx_hlo_elem_bytes(cx_hlo_elem e);
unsigned cx_hlo_elem_bits(cx_hlo_elem e);  // i1 has 1, complex both parts
bool cx_hlo_elem_is_float(cx_hlo_elem e);
bool cx_hlo_elem_is_int(cx_hlo_elem e);  // false for i1
bool cx_hlo_elem_is_unsigned(cx_hlo_elem e);
bool cx_hlo_elem_is_complex(cx_hlo_elem e);
cx_hlo_elem cx_hlo_elem_part(cx_hlo_elem e);  // C64 -> F32; others themselves
cx_hlo_elem cx_hlo_elem_of(calx_dtype d);     // CALX_F32 -> CX_HLO_F32 …
// CALX_DTYPE_DEFAULT where calx has no such type.
calx_dtype cx_hlo_elem_dtype(cx_hlo_elem e);
// Whether calx has the type, or it is complex. Loops and kernels take such
// types.
bool cx_hlo_elem_is_plain(cx_hlo_elem e);

// A ranked tensor type. `dims` is in the arena of the module, or is the
// caller's; -1 is a dynamic size.
typedef struct cx_hlo_type {
  cx_hlo_elem elem;
  size_t rank;
  const int64_t *dims;
} cx_hlo_type;

bool cx_hlo_type_equal(const cx_hlo_type *a, const cx_hlo_type *b);
// -1: a size is dynamic, or the number overflows.
int64_t cx_hlo_type_elements(const cx_hlo_type *t);
// On the host; 0 of a token; -1 as above.
int64_t cx_hlo_type_bytes(const cx_hlo_type *t);
// In a nested list of the elements: how many lists begin before element i,
// which is how many end before it.
size_t cx_hlo_type_edges(const cx_hlo_type *t, int64_t i);
void cx_hlo_type_print(cx_text *out, const cx_hlo_type *t);  // tensor<2x3xf32>

// "f32[2,3]", for messages; cut with "…" where it does not fit.
typedef struct cx_hlo_shape_text {
  char s[128];
} cx_hlo_shape_text;
cx_hlo_shape_text cx_hlo_shape(const cx_hlo_type *t);

#endif
