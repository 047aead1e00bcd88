// hlo/build_sdy: Shardy's annotations (github.com/openxla/shardy), whose
// attributes are texts.
#include <string.h>

#include "hlo/build_op.h"

static const cx_hlo_attr *text_attr(cx_hlo_module *m, cx_hlo_attr_kind kind,
                                    const char *text)
{
  return cx_hlo_attr_text(m, kind, text, strlen(text));
}

// An operation of that dialect, in no block.
static bool name_op(cx_hlo_module *m, cx_hlo_op *op, const char *name,
                    const cx_hlo_named_list *attrs)
{
  op->name = cx_hlo_str_copy(m, name, strlen(name));
  op->extra = attrs->items;
  op->n_extra = (uint32_t)attrs->n;
  return op->name.s != NULL;
}

cx_hlo_value *cx_hlo_sharding_constraint(cx_hlo_builder *b, cx_hlo_value *x,
                                         const char *sharding)
{
  cx_hlo_named_list attrs = { 0 };
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_OTHER, &x, 1, 1, 0);
  if (op == NULL) return NULL;
  if (!cx_hlo_add_named(b->module, &attrs, "sharding",
                        text_attr(b->module, CX_HLO_ATTR_TEXT, sharding)) ||
      !name_op(b->module, op, "sdy.sharding_constraint", &attrs)) {
    cx_hlo_builder_fail(b, cx_out_of_memory());
    return NULL;
  }
  return cx_hlo_build_end(b, op);
}

bool cx_hlo_declare_mesh(cx_hlo_module *m, const char *mesh)
{
  cx_hlo_named_list attrs = { 0 };
  cx_hlo_op *op = cx_hlo_op_new(m, CX_HLO_OP_OTHER, 0, 0, 0);
  if (op == NULL ||
      !cx_hlo_add_named(m, &attrs, "mesh",
                        text_attr(m, CX_HLO_ATTR_TEXT, mesh)) ||
      !cx_hlo_add_named(m, &attrs, "sym_name",
                        text_attr(m, CX_HLO_ATTR_STRING, "mesh")) ||
      !name_op(m, op, "sdy.mesh", &attrs)) {
    return false;
  }
  cx_hlo_op_append(&m->others, op);
  return true;
}

static bool shard(cx_hlo_module *m, cx_hlo_named_list **lists, size_t n,
                  size_t i, const char *sharding)
{
  if (*lists == NULL) *lists = CX_ARENA_ARRAY(&m->arena, cx_hlo_named_list, n);
  return *lists != NULL &&
         cx_hlo_add_named(m, &(*lists)[i], "sdy.sharding",
                          text_attr(m, CX_HLO_ATTR_TEXT, sharding));
}

bool cx_hlo_shard_param(cx_hlo_module *m, size_t i, const char *sharding)
{
  cx_hlo_func *f = cx_hlo_entry(m);
  return shard(m, &f->param_attrs, f->n_params, i, sharding);
}

bool cx_hlo_shard_result(cx_hlo_module *m, size_t i, const char *sharding)
{
  cx_hlo_func *f = cx_hlo_entry(m);
  return shard(m, &f->result_attrs, f->n_results, i, sharding);
}
