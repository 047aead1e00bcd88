// spmd/factor: how the files of the operations fill a rule.
#ifndef CX_SPMD_FACTOR_H
#define CX_SPMD_FACTOR_H

#include "spmd/rule.h"

// One more factor; its number.
int32_t cx_spmd_factor(cx_spmd_rule *r, bool reduces);
// Dimension a of tensor t and dimension b of tensor u are cut together.
void cx_spmd_pair(cx_spmd_rule *r, size_t t, int64_t a, size_t u, int64_t b,
                  bool reduces);
// Whether a reduction that begins with this value on each device gives the same
// as one that begins with it once.
bool cx_spmd_may_repeat(cx_hlo_op_kind kind, const cx_hlo_value *init);
void cx_spmd_gather_rule(cx_spmd_rule *r, const cx_hlo_op *op);
void cx_spmd_scatter_rule(cx_spmd_rule *r, const cx_hlo_op *op);

#endif
