// hlo/number: single elements of every type, as bits, numbers and text.
//
// Elements lie in memory as cx_hlo_elements keeps them. Text is exact: what is
// printed reads back to the same bits, whatever the process's locale is.
#ifndef CX_HLO_NUMBER_H
#define CX_HLO_NUMBER_H

#include "hlo/types.h"

// Integers, i1 and index; ui64 as its bits. Storing keeps the low bits.
int64_t cx_hlo_load_int(cx_hlo_elem e, const void *p);
void cx_hlo_store_int(cx_hlo_elem e, void *p, int64_t v);
// Whether the type can hold v; for ui64, v's bits are the number.
bool cx_hlo_int_fits(cx_hlo_elem e, int64_t v);

// The bits of one float element, in the low end of a word.
uint64_t cx_hlo_load_bits(cx_hlo_elem e, const void *p);
void cx_hlo_store_bits(cx_hlo_elem e, void *p, uint64_t bits);

// Floats, rounded to nearest even. Too large becomes infinity; where the type
// has none, NaN; where it has no NaN, the largest number. NaN in a type
// without is -0, as ml_dtypes has it.
double cx_hlo_load_real(cx_hlo_elem e, const void *p);
void cx_hlo_store_real(cx_hlo_elem e, void *p, double v);
uint64_t cx_hlo_real_to_bits(cx_hlo_elem e, double v);
double cx_hlo_bits_to_real(cx_hlo_elem e, uint64_t bits);

// A float type's infinities; where it has none, its lowest and highest number.
double cx_hlo_lowest_real(cx_hlo_elem e);
double cx_hlo_highest_real(cx_hlo_elem e);

// Any element as a number, rounded; v into any element: integers saturate and
// take NaN as 0, complex numbers get it as real part.
void cx_hlo_store_number(cx_hlo_elem e, void *p, double v);

// A float's digits where few are exact ("0.5", "-3.0"), else its bits in
// hexadecimal ("0x7FC00000").
void cx_hlo_print_real(cx_text *out, cx_hlo_elem e, uint64_t bits);
// One element as in a dense literal: true, -3, 0.5, (1.0, 0.5).
void cx_hlo_print_element(cx_text *out, cx_hlo_elem e, const void *p);

// The decimal number s[0..n) to the nearest double; false: it is none, or has
// more than 1,100 characters.
bool cx_hlo_read_real(const char *s, size_t n, double *out);
// The same, to the nearest element of a float type.
bool cx_hlo_read_bits(cx_hlo_elem e, const char *s, size_t n, uint64_t *out);

#endif
