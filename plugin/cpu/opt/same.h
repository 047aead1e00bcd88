// opt/same: whether two operations compute the same from the same operands.
#ifndef CPU_OPT_SAME_H
#define CPU_OPT_SAME_H

#include "hlo/module.h"

bool cpu_opt_attr_same(const cx_hlo_attr *a, const cx_hlo_attr *b);
// Compares kind, operands, attributes, result types and small regions.
bool cpu_opt_same(const cx_hlo_op *a, const cx_hlo_op *b);
// Equal for operations that are the same.
uint64_t cpu_opt_hash(const cx_hlo_op *op);
// Whether the regions, of one block each, differ only in the names of values.
bool cpu_opt_region_same(const cx_hlo_region *a, const cx_hlo_region *b);

#endif
