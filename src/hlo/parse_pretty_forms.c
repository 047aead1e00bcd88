// hlo/parse: the pretty form of every operation that has one.
#include "hlo/pretty.h"

#define ALL CX_HLO_TYPES_ALL
#define COMPLEX CX_HLO_TYPES_COMPLEX
#define OPERANDS CX_HLO_TYPES_OPERANDS
#define PAIRWISE CX_HLO_TYPES_PAIRWISE
#define RESULT CX_HLO_TYPES_RESULT
#define SAME CX_HLO_TYPES_SAME
#define SELECT CX_HLO_TYPES_SELECT
#define VALUE CX_HLO_TYPES_VALUE
#define WORDS(...) .keywords = { __VA_ARGS__ }
// clang-format off
#define WORD(text, id) { text, CX_HLO_A_##id }
#define FORM(...) { .types = __VA_ARGS__ }
#define GENERIC { 0 }
// clang-format on
#define CX_HLO_OP(id, name, operands, results, regions, elems, rule, attrs, \
                  form)                                                     \
  [CX_HLO_OP_##id] = form,

static const cx_hlo_pretty forms[CX_HLO_OP_COUNT] = {
#include "hlo/ops.def"
};

const cx_hlo_pretty *cx_hlo_pretty_of(cx_hlo_op_kind kind)
{
  return &forms[kind];
}
