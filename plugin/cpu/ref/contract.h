// ref/contract: packed tensors, and sums of the products of their numbers.
#ifndef CPU_REF_CONTRACT_H
#define CPU_REF_CONTRACT_H

#include "ref/inner.h"

// *acc += sum of a[i] b[i], as elements of type e add and multiply.
void cpu_ref_add_dot(cx_hlo_elem e, const void *a, const void *b, size_t n,
                     cpu_ref_number *acc);
// Rounds v to element i of `data`.
void cpu_ref_store_number_at(cx_hlo_elem e, void *data, size_t i,
                             const cpu_ref_number *v);
// The elements of x as elements of type `to`, row-major with the dimensions in
// this order.
calx_status *cpu_ref_pack(const cpu_ref_call *c, const cpu_ref_tensor *x,
                          const int64_t *order, cx_hlo_elem to,
                          cpu_ref_buffer **out) CALX_MUST_USE;
// The type of the numbers with which elements of type e are computed.
cx_hlo_elem cpu_ref_number_elem(cx_hlo_elem e);

#endif
