// ref/contract: numbers of a class, packed, and sums of their products.
#ifndef CPU_REF_CONTRACT_H
#define CPU_REF_CONTRACT_H

#include "ref/inner.h"

typedef union cpu_ref_number {
  double complex c;
  double r;
  int64_t i;
} cpu_ref_number;

size_t cpu_ref_number_bytes(cpu_ref_class class);
void cpu_ref_load_numbers(cpu_ref_class class, cx_hlo_elem e, const void *p,
                          size_t n, void *out);
void cpu_ref_store_numbers(cpu_ref_class class, cx_hlo_elem e, void *p,
                           size_t n, const void *v);
// *acc += sum of a[i] b[i], as elements of type e add and multiply.
void cpu_ref_add_dot(cx_hlo_elem e, const void *a, const void *b, size_t n,
                     cpu_ref_number *acc);
// Rounds v to element i of `data`.
void cpu_ref_store_number_at(cx_hlo_elem e, void *data, size_t i,
                             const cpu_ref_number *v);
// The elements of x as numbers, row-major with its dimensions in this order.
calx_status *cpu_ref_pack(cpu_ref_machine *m, const cx_hlo_op *op,
                          const cpu_ref_tensor *x, const int64_t *order,
                          cpu_ref_class class,
                          cpu_ref_buffer **out) CALX_MUST_USE;

#endif
