// hlo/build: loops.
#include "base/arena.h"
#include "hlo/build.h"
#include "hlo/build_op.h"

void cx_hlo_while(cx_hlo_builder *b, size_t n, cx_hlo_value *const *inits,
                  cx_hlo_body_fn *condition, cx_hlo_body_fn *body, void *user,
                  cx_hlo_value **out)
{
  for (size_t i = 0; i < n; i++) out[i] = NULL;
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_WHILE, inits, n, n, 2);
  cx_hlo_build_like_operands(b, op, 0, 1, condition, user);
  cx_hlo_build_like_operands(b, op, 1, n, body, user);
  if (cx_hlo_build_end(b, op) == NULL) return;
  for (size_t i = 0; i < n; i++) out[i] = &op->results[i];
}
