// hlo/bytecode: tables of numbers, each for both directions.
#include "hlo/bytecode_codes.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

static const unsigned char choices[CX_HLO_CHOICE_COUNT] = {
  [CX_HLO_COMPARISON_DIRECTION] = CX_HLO_VHLO_DIRECTION,
  [CX_HLO_COMPARISON_TYPE] = CX_HLO_VHLO_COMPARE_TYPE,
  [CX_HLO_FFT_TYPE] = CX_HLO_VHLO_FFT,
  [CX_HLO_PRECISION] = CX_HLO_VHLO_PRECISION,
  [CX_HLO_RNG_ALGORITHM] = CX_HLO_VHLO_RNG_ALGORITHM,
  [CX_HLO_RNG_DISTRIBUTION] = CX_HLO_VHLO_RNG_DISTRIBUTION,
  [CX_HLO_TRANSPOSE] = CX_HLO_VHLO_TRANSPOSE,
  [CX_HLO_ACCURACY_MODE] = CX_HLO_VHLO_ACCURACY_MODE,
};

cx_hlo_choice cx_hlo_vhlo_choice(uint64_t code)
{
  int i = 0;
  while (i < CX_HLO_CHOICE_COUNT && choices[i] != code) i++;
  return (cx_hlo_choice)i;
}

uint64_t cx_hlo_vhlo_choice_code(cx_hlo_choice family)
{
  return choices[family];
}

// ---- element types ----

static const unsigned char builtin_elems[] = { [CX_HLO_BUILTIN_T_INDEX] =
                                                   CX_HLO_INDEX,
                                               [3] = CX_HLO_BF16,
                                               [4] = CX_HLO_F16,
                                               [5] = CX_HLO_F32,
                                               [6] = CX_HLO_F64 };

static const unsigned char vhlo_elems[] = {
  [0] = CX_HLO_I1,
  [2] = CX_HLO_BF16,
  [3] = CX_HLO_F16,
  [4] = CX_HLO_F32,
  [5] = CX_HLO_F64,
  [6] = CX_HLO_F8E4M3FN,
  [7] = CX_HLO_F8E5M2,
  [9] = CX_HLO_INDEX,
  [10] = CX_HLO_I4,
  [11] = CX_HLO_I8,
  [12] = CX_HLO_I16,
  [13] = CX_HLO_I32,
  [14] = CX_HLO_I64,
  [15] = CX_HLO_UI4,
  [16] = CX_HLO_UI8,
  [17] = CX_HLO_UI16,
  [18] = CX_HLO_UI32,
  [19] = CX_HLO_UI64,
  [27] = CX_HLO_F8E4M3FNUZ,
  [28] = CX_HLO_F8E5M2FNUZ,
  [29] = CX_HLO_F8E4M3B11FNUZ,
  [31] = CX_HLO_I2,
  [32] = CX_HLO_UI2,
  [34] = CX_HLO_TF32,
  [35] = CX_HLO_F8E4M3,
  [36] = CX_HLO_F8E3M4,
  [37] = CX_HLO_F4E2M1FN,
  [38] = CX_HLO_F6E2M3FN,
  [39] = CX_HLO_F6E3M2FN,
  [40] = CX_HLO_F8E8M0FNU,
};

_Static_assert(CX_HLO_INVALID == 0, "a gap of these tables is no type");

static cx_hlo_elem elem_at(const unsigned char *list, size_t n, uint64_t code)
{
  return code < n ? (cx_hlo_elem)list[code] : CX_HLO_INVALID;
}

static uint64_t code_of(const unsigned char *list, size_t n, cx_hlo_elem elem)
{
  size_t i = 0;
  while (i < n && (list[i] != elem || elem == CX_HLO_INVALID)) i++;
  return i < n ? i : CX_HLO_NO_CODE;
}

cx_hlo_elem cx_hlo_builtin_elem(uint64_t code)
{
  return elem_at(builtin_elems, COUNT(builtin_elems), code);
}

cx_hlo_elem cx_hlo_vhlo_elem(uint64_t code)
{
  return elem_at(vhlo_elems, COUNT(vhlo_elems), code);
}

uint64_t cx_hlo_builtin_elem_code(cx_hlo_elem elem)
{
  return code_of(builtin_elems, COUNT(builtin_elems), elem);
}

uint64_t cx_hlo_vhlo_elem_code(cx_hlo_elem elem)
{
  return code_of(vhlo_elems, COUNT(vhlo_elems), elem);
}
