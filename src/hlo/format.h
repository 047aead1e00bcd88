// hlo/format: how the bits of a small float are arranged.
#ifndef CX_HLO_FORMAT_H
#define CX_HLO_FORMAT_H

#include <stdint.h>

#include "hlo/types.h"

typedef enum cx_hlo_specials {
  CX_HLO_FORMAT_IEEE,    // the largest exponent holds infinity and NaNs
  CX_HLO_FORMAT_NAN_FN,  // one NaN, whose bits are all ones; no infinity
  CX_HLO_FORMAT_FNUZ,    // one NaN, whose bits would be -0; no infinity
  CX_HLO_FORMAT_FINITE   // neither
} cx_hlo_specials;

// A sign, an exponent and a mantissa of so many bits.
typedef struct cx_hlo_format {
  int exponent, mantissa, bias;
  cx_hlo_specials specials;
} cx_hlo_format;

// Of bf16, f16 and the smaller types. exponent 0: the type is not of this form.
const cx_hlo_format *cx_hlo_format_of(cx_hlo_elem e);
// The code of the largest finite number, without the sign.
uint64_t cx_hlo_format_largest(const cx_hlo_format *f);

#endif
