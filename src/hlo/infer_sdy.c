// hlo/infer: operations of Shardy, which say how values are split among devices
// (github.com/openxla/shardy). They are no operations of ops.def. A compiler
// removes them first: opt/shardy.c for one partition, src/spmd for several.
#include "hlo/infer.h"

static calx_status *identity(cx_hlo_infer *in)
{
  const cx_hlo_op *op = in->op;
  if (op->n_operands != 1 || op->n_results != 1) {
    return cx_invalid("%.*s: needs 1 operand and 1 result, found %u and %u",
                      (int)op->name.n, op->name.s, op->n_operands,
                      op->n_results);
  }
  in->results[0] = op->operands[0]->type;
  return NULL;
}

// What its body takes and returns is the declared types' parts.
static calx_status *manual(cx_hlo_infer *in)
{
  const cx_hlo_op *op = in->op;
  const cx_hlo_block *body = op->n_regions == 1 ? op->regions[0].first : NULL;
  const bool fits = body != NULL && body->next == NULL && body->last != NULL &&
                    cx_hlo_str_equal(body->last->name, "sdy.return") &&
                    body->n_args == op->n_operands &&
                    body->last->n_operands == op->n_results;
  if (fits) return NULL;
  return cx_invalid(
      "sdy.manual_computation: needs a body that takes %u values and returns "
      "%u",
      op->n_operands, op->n_results);
}

calx_status *cx_hlo_infer_sdy(cx_hlo_infer *in)
{
  static const struct {
    const char *name;
    cx_hlo_infer_fn *rule;
  } known[] = {
    { "sdy.sharding_constraint", identity },
    { "sdy.reshard", identity },
    { "builtin.unrealized_conversion_cast", identity },
    { "sdy.manual_computation", manual },
    { "sdy.return", NULL },
  };
  const cx_hlo_op *op = in->op;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (!cx_hlo_str_equal(op->name, known[i].name)) continue;
    return known[i].rule == NULL ? NULL : known[i].rule(in);
  }
  return cx_error(CALX_UNIMPLEMENTED, "%.*s: not an operation of StableHLO",
                  (int)op->name.n, op->name.s);
}
