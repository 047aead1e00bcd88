// cli/element: see element.h.
#include "element.h"

#include "abi/pjrt_types.h"

static const int types[CX_HLO_ELEM_COUNT] = {
  [CX_HLO_I1] = PJRT_Buffer_Type_PRED,
  [CX_HLO_I2] = PJRT_Buffer_Type_S2,
  [CX_HLO_I4] = PJRT_Buffer_Type_S4,
  [CX_HLO_I8] = PJRT_Buffer_Type_S8,
  [CX_HLO_I16] = PJRT_Buffer_Type_S16,
  [CX_HLO_I32] = PJRT_Buffer_Type_S32,
  [CX_HLO_I64] = PJRT_Buffer_Type_S64,
  [CX_HLO_UI2] = PJRT_Buffer_Type_U2,
  [CX_HLO_UI4] = PJRT_Buffer_Type_U4,
  [CX_HLO_UI8] = PJRT_Buffer_Type_U8,
  [CX_HLO_UI16] = PJRT_Buffer_Type_U16,
  [CX_HLO_UI32] = PJRT_Buffer_Type_U32,
  [CX_HLO_UI64] = PJRT_Buffer_Type_U64,
  [CX_HLO_BF16] = PJRT_Buffer_Type_BF16,
  [CX_HLO_F16] = PJRT_Buffer_Type_F16,
  [CX_HLO_F32] = PJRT_Buffer_Type_F32,
  [CX_HLO_F64] = PJRT_Buffer_Type_F64,
  [CX_HLO_F8E5M2] = PJRT_Buffer_Type_F8E5M2,
  [CX_HLO_F8E4M3FN] = PJRT_Buffer_Type_F8E4M3FN,
  [CX_HLO_F8E4M3B11FNUZ] = PJRT_Buffer_Type_F8E4M3B11FNUZ,
  [CX_HLO_F8E5M2FNUZ] = PJRT_Buffer_Type_F8E5M2FNUZ,
  [CX_HLO_F8E4M3FNUZ] = PJRT_Buffer_Type_F8E4M3FNUZ,
  [CX_HLO_F8E4M3] = PJRT_Buffer_Type_F8E4M3,
  [CX_HLO_F8E3M4] = PJRT_Buffer_Type_F8E3M4,
  [CX_HLO_F8E8M0FNU] = PJRT_Buffer_Type_F8E8M0FNU,
  [CX_HLO_F4E2M1FN] = PJRT_Buffer_Type_F4E2M1FN,
  [CX_HLO_F6E2M3FN] = PJRT_Buffer_Type_F6E2M3FN,
  [CX_HLO_F6E3M2FN] = PJRT_Buffer_Type_F6E3M2FN,
  [CX_HLO_C64] = PJRT_Buffer_Type_C64,
  [CX_HLO_C128] = PJRT_Buffer_Type_C128,
};

int cx_cli_element_type(cx_hlo_elem e)
{
  return e < CX_HLO_ELEM_COUNT ? types[e] : 0;
}

cx_hlo_elem cx_cli_element_of(int type)
{
  for (int e = 1; type != 0 && e < (int)CX_HLO_ELEM_COUNT; e++) {
    if (types[e] == type) return (cx_hlo_elem)e;
  }
  return CX_HLO_INVALID;
}

void cx_cli_element_extend(cx_hlo_elem e, void *data, size_t size)
{
  unsigned bits = cx_hlo_elem_bits(e);
  if (bits >= 8) return;
  unsigned mask = (1u << bits) - 1, sign = 1u << (bits - 1);
  bool is_signed = cx_hlo_elem_is_int(e) && !cx_hlo_elem_is_unsigned(e);
  unsigned char *p = data;
  for (size_t i = 0; i < size; i++) {
    unsigned v = p[i] & mask;
    if (e == CX_HLO_I1) v = p[i] != 0;
    if (is_signed) v = (v ^ sign) - sign;
    p[i] = (unsigned char)v;
  }
}
