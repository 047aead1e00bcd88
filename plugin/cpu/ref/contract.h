// ref/contract: numbers of a class, packed, and sums of their products.
#ifndef CX_REF_CONTRACT_H
#define CX_REF_CONTRACT_H

#include "ref/inner.h"

typedef union cx_ref_number {
  double complex c;
  double r;
  int64_t i;
} cx_ref_number;

size_t cx_ref_number_bytes(cx_ref_class class);
void cx_ref_load_numbers(cx_ref_class class, cx_hlo_elem e, const void *p,
                         size_t n, void *out);
void cx_ref_store_numbers(cx_ref_class class, cx_hlo_elem e, void *p, size_t n,
                          const void *v);
// *acc += sum of a[i] b[i], as elements of type e add and multiply.
void cx_ref_add_dot(cx_hlo_elem e, const void *a, const void *b, size_t n,
                    cx_ref_number *acc);
// Rounds v to element i of `data`.
void cx_ref_store_number_at(cx_hlo_elem e, void *data, size_t i,
                            const cx_ref_number *v);
// The elements of x as numbers, row-major with its dimensions in this order.
calx_status *cx_ref_pack(cx_ref_machine *m, const cx_hlo_op *op,
                         const cx_ref_tensor *x, const int64_t *order,
                         cx_ref_class class, cx_ref_buffer **out) CALX_MUST_USE;

#endif
