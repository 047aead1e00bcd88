// hlo/number: single elements of every type, as bits, numbers and text.
//
// Elements are in memory as cx_hlo_elements keeps them. Text is exact: printing
// and reading gives the same bits, in every locale.
#ifndef CX_HLO_NUMBER_H
#define CX_HLO_NUMBER_H

#include "hlo/types.h"

// Integers, i1 and index. ui64 is given by its bits. Storing keeps the low
// bits.
int64_t cx_hlo_load_int(cx_hlo_elem e, const void *p);
void cx_hlo_store_int(cx_hlo_elem e, void *p, int64_t v);
// Whether the type can hold v; for ui64, v's bits are the number.
bool cx_hlo_int_fits(cx_hlo_elem e, int64_t v);

// The bits of one float element, in the low end of a word.
uint64_t cx_hlo_load_bits(cx_hlo_elem e, const void *p);
void cx_hlo_store_bits(cx_hlo_elem e, void *p, uint64_t bits);

// Floats, rounded to nearest even. A number that is too large becomes infinity;
// in a type without infinity, NaN; in a type without NaN, the largest number.
// NaN becomes -0 in a type without NaN, as in ml_dtypes.
double cx_hlo_load_real(cx_hlo_elem e, const void *p);
void cx_hlo_store_real(cx_hlo_elem e, void *p, double v);
uint64_t cx_hlo_real_to_bits(cx_hlo_elem e, double v);
double cx_hlo_bits_to_real(cx_hlo_elem e, uint64_t bits);

// The infinities of a float type; its lowest and highest number where it has
// none.
double cx_hlo_lowest_real(cx_hlo_elem e);
double cx_hlo_highest_real(cx_hlo_elem e);

// Stores v as an element of any type. Integers saturate, and NaN becomes 0. For
// complex numbers v is the real part.
void cx_hlo_store_number(cx_hlo_elem e, void *p, double v);

// A float as a decimal number where a short one is exact ("0.5", "-3.0"), else
// its bits in hexadecimal ("0x7FC00000").
void cx_hlo_print_real(cx_text *out, cx_hlo_elem e, uint64_t bits);
// One element as in a dense literal: true, -3, 0.5, (1.0, 0.5).
void cx_hlo_print_element(cx_text *out, cx_hlo_elem e, const void *p);

// The double nearest to the decimal number s[0..n). false: s is no number, or
// has more than 1,100 characters.
bool cx_hlo_read_real(const char *s, size_t n, double *out);
// The same, for the nearest element of a float type.
bool cx_hlo_read_bits(cx_hlo_elem e, const char *s, size_t n, uint64_t *out);

#endif
