// spmd/factor: see factor.h.
#include "spmd/factor.h"

#include "hlo/infer.h"
#include "spmd/spmd.h"

int32_t cx_spmd_factor(cx_spmd_rule *r, bool reduces)
{
  r->reduces[r->n_factors] = reduces;
  return (int32_t)r->n_factors++;
}

void cx_spmd_pair(cx_spmd_rule *r, size_t t, int64_t a, size_t u, int64_t b,
                  bool reduces)
{
  r->factors[t][a] = r->factors[u][b] = cx_spmd_factor(r, reduces);
}

bool cx_spmd_is_identity(const cx_hlo_op *op)
{
  static const char *const names[] = { "sdy.sharding_constraint", "sdy.reshard",
                                       "builtin.unrealized_conversion_cast" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (cx_hlo_str_equal(op->name, names[i])) return true;
  }
  return false;
}

// The literal that the value repeats.
static const cx_hlo_elements *repeated(const cx_hlo_value *v)
{
  while (v->op != NULL && (v->op->kind == CX_HLO_OP_BROADCAST_IN_DIM ||
                           cx_spmd_is_identity(v->op))) {
    v = v->op->operands[0];
  }
  return cx_hlo_literal_of(v);
}

bool cx_spmd_may_repeat(cx_hlo_op_kind kind, const cx_hlo_value *init)
{
  const cx_hlo_elements *e = repeated(init);
  switch (kind) {
    case CX_HLO_OP_MAXIMUM:
    case CX_HLO_OP_MINIMUM:
    case CX_HLO_OP_AND:
    case CX_HLO_OP_OR: return true;
    case CX_HLO_OP_ADD: break;
    default: return false;
  }
  if (e == NULL) return false;
  for (size_t i = 0; i < e->size; i++) {
    if (e->data[i] != 0) return false;
  }
  return true;
}
