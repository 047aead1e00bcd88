// ops/recurrent_loop: the loop over the steps of a sequence.
#include "ops/recurrent.h"

static cx_hlo_value *number(cx_ops_loop *l, int64_t value)
{
  return cx_hlo_splat_int(l->b, (cx_hlo_type){ l->index, 0, NULL }, value);
}

static void goes_on(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                    cx_hlo_value **out)
{
  cx_ops_loop *l = user;
  out[0] = cx_hlo_compare(b, CX_HLO_LT, args[0], number(l, l->steps));
}

static void body(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                 cx_hlo_value **out)
{
  cx_ops_loop *l = user;
  bool used[CX_OPS_VARS];
  for (int i = 0, n = 0; i < CX_OPS_VARS; i++) {
    used[i] = l->v[i] != NULL;
    if (used[i]) l->v[i] = args[n++];
  }
  cx_hlo_value *done = args[CX_OPS_VAR_STEP];
  l->at = l->down ? cx_hlo_binary(b, CX_HLO_OP_SUBTRACT,
                                  number(l, l->steps - 1), done)
                  : done;
  l->step(l);
  l->v[CX_OPS_VAR_STEP] = cx_hlo_binary(b, CX_HLO_OP_ADD, done, number(l, 1));
  for (int i = 0, n = 0; i < CX_OPS_VARS; i++) {
    if (used[i]) out[n++] = l->v[i];
  }
}

void cx_ops_emit_loop(cx_ops_loop *l)
{
  l->index = cx_ops_index_dtype(l->steps) == CALX_I64 ? CX_HLO_I64 : CX_HLO_I32;
  l->v[CX_OPS_VAR_STEP] = number(l, 0);
  cx_hlo_value *list[CX_OPS_VARS], *out[CX_OPS_VARS];
  bool used[CX_OPS_VARS];
  size_t n = 0;
  for (int i = 0; i < CX_OPS_VARS; i++) {
    used[i] = l->v[i] != NULL;
    if (used[i]) list[n++] = l->v[i];
  }
  cx_hlo_while(l->b, n, list, goes_on, body, l, out);
  n = 0;
  for (int i = 0; i < CX_OPS_VARS; i++) l->v[i] = used[i] ? out[n++] : NULL;
}

cx_hlo_value *cx_ops_loop_read(cx_ops_loop *l, int var)
{
  const cx_hlo_type *type = cx_hlo_value_type(l->v[var]);
  if (type->rank != 3) return NULL;  // the builder has failed
  cx_hlo_value *starts[3] = { l->at, number(l, 0), number(l, 0) };
  int64_t sizes[3] = { 1, type->dims[1], type->dims[2] };
  cx_hlo_value *row = cx_hlo_dynamic_slice(l->b, l->v[var], starts, sizes);
  row = cx_hlo_reshape(l->b, row, sizes + 1, 2);
  return l->elem == l->wide ? row : cx_hlo_convert(l->b, row, l->wide);
}

void cx_ops_loop_write(cx_ops_loop *l, int var, cx_hlo_value *row)
{
  const cx_hlo_type *type = cx_hlo_value_type(l->v[var]);
  if (type->rank != 3) return;
  cx_hlo_value *starts[3] = { l->at, number(l, 0), number(l, 0) };
  int64_t sizes[3] = { 1, type->dims[1], type->dims[2] };
  if (l->elem != l->wide) row = cx_hlo_convert(l->b, row, l->elem);
  row = cx_hlo_reshape(l->b, row, sizes, 3);
  l->v[var] = cx_hlo_dynamic_update_slice(l->b, l->v[var], row, starts);
}
