// hlo/build: the builder itself, and how it makes one operation.
#include "hlo/build.h"

#include <string.h>

#include "base/alloc.h"
#include "hlo/build_op.h"
#include "hlo/infer.h"
#include "hlo/verify.h"

// ---- the builder ----

static bool add_func(cx_hlo_builder *b, const char *module_name,
                     const char *name)
{
  cx_hlo_module *m = b->module;
  const cx_hlo_str copy = cx_hlo_str_copy(m, name, strlen(name));
  m->name = cx_hlo_str_copy(m, module_name, strlen(module_name));
  if (copy.s == NULL || m->name.s == NULL) return false;
  b->func = cx_hlo_func_new(m, copy);
  if (b->func == NULL) return false;
  b->func->visibility = (cx_hlo_str){ "public", 6 };
  return true;
}

static bool add_params(cx_hlo_builder *b, const cx_hlo_type *params, size_t n)
{
  cx_hlo_module *m = b->module;
  cx_hlo_any *types = CX_ARENA_ARRAY(&m->arena, cx_hlo_any, n);
  b->block = cx_hlo_block_new(m, &b->func->body, n);
  if (types == NULL || b->block == NULL) return false;
  for (size_t i = 0; i < n; i++) {
    types[i].tensor = params[i];
    types[i].tensor.dims = cx_hlo_ints_copy(m, params[i].dims, params[i].rank);
    if (types[i].tensor.dims == NULL) return false;
    b->block->args[i].type = types[i];
  }
  b->func->params = types;
  b->func->n_params = n;
  return true;
}

calx_status *cx_hlo_builder_new(const char *module_name, const char *name,
                                const cx_hlo_type *params, size_t n_params,
                                cx_hlo_builder **out_builder)
{
  *out_builder = NULL;
  cx_hlo_builder *b = cx_calloc(1, sizeof *b);
  if (b == NULL) return cx_out_of_memory();
  b->module = cx_hlo_module_new();
  if (b->module == NULL || !add_func(b, module_name, name) ||
      !add_params(b, params, n_params)) {
    cx_hlo_builder_free(b);
    return cx_out_of_memory();
  }
  *out_builder = b;
  return NULL;
}

void cx_hlo_builder_free(cx_hlo_builder *b)
{
  if (b == NULL) return;
  calx_status_free(b->failed);
  cx_hlo_module_free(b->module);
  cx_free(b);
}

void cx_hlo_builder_fail(cx_hlo_builder *b, calx_status *status)
{
  if (b->failed != NULL) {
    calx_status_free(status);
    return;
  }
  b->failed = status;
}

static void no_memory(cx_hlo_builder *b)
{
  cx_hlo_builder_fail(b, cx_out_of_memory());
}

cx_hlo_value *cx_hlo_param(cx_hlo_builder *b, size_t index)
{
  cx_hlo_block *entry = b->func->body.first;
  if (b->failed != NULL) return NULL;
  if (index < entry->n_args) return &entry->args[index];
  cx_hlo_builder_fail(
      b, cx_error(CALX_INTERNAL, "parameter %zu of %zu", index, entry->n_args));
  return NULL;
}

bool cx_hlo_add_named(cx_hlo_module *m, cx_hlo_named_list *list,
                      const char *name, const cx_hlo_attr *attr)
{
  cx_hlo_named *items = CX_ARENA_ARRAY(&m->arena, cx_hlo_named, list->n + 1);
  const cx_hlo_str copy = cx_hlo_str_copy(m, name, strlen(name));
  if (items == NULL || copy.s == NULL || attr == NULL) return false;
  if (list->n != 0) memcpy(items, list->items, list->n * sizeof *items);
  items[list->n] = (cx_hlo_named){ copy, attr };
  list->items = items;
  list->n++;
  return true;
}

void cx_hlo_param_alias(cx_hlo_builder *b, size_t param, size_t result)
{
  if (b->failed != NULL) return;
  cx_hlo_module *m = b->module;
  cx_hlo_func *f = b->func;
  if (param >= f->n_params) {
    cx_hlo_builder_fail(
        b, cx_error(CALX_INTERNAL, "parameter %zu of %zu", param, f->n_params));
    return;
  }
  if (f->param_attrs == NULL) {
    f->param_attrs = CX_ARENA_ARRAY(&m->arena, cx_hlo_named_list, f->n_params);
  }
  if (f->param_attrs == NULL ||
      !cx_hlo_add_named(m, &f->param_attrs[param], "tf.aliasing_output",
                        cx_hlo_attr_int(m, CX_HLO_I32, (int64_t)result))) {
    no_memory(b);
  }
}

void cx_hlo_module_attr_int(cx_hlo_builder *b, const char *name, int64_t value)
{
  if (b->failed != NULL) return;
  const cx_hlo_attr *attr = cx_hlo_attr_int(b->module, CX_HLO_I32, value);
  if (!cx_hlo_add_named(b->module, &b->module->attrs, name, attr)) no_memory(b);
}

void cx_hlo_builder_at(cx_hlo_builder *b, const char *file, int line)
{
  if (b->failed != NULL) return;
  const cx_hlo_loc *last = b->loc;
  b->loc = NULL;
  if (file == NULL) return;
  const bool same_file = last != NULL && cx_hlo_str_equal(last->file, file);
  if (same_file && last->line == line) {
    b->loc = last;
    return;
  }
  cx_hlo_loc *loc = CX_ARENA_NEW(&b->module->arena, cx_hlo_loc);
  if (loc == NULL) {
    no_memory(b);
    return;
  }
  loc->file =
      same_file ? last->file : cx_hlo_str_copy(b->module, file, strlen(file));
  loc->line = line;
  if (loc->file.s == NULL) no_memory(b);
  b->loc = loc;
}

static void set_results(cx_hlo_builder *b, cx_hlo_value *const *results,
                        size_t n)
{
  cx_hlo_op *end =
      cx_hlo_build_begin(b, CX_HLO_OP_FUNC_RETURN, results, n, 0, 0);
  cx_hlo_build_end(b, end);
  if (b->failed != NULL) return;
  cx_hlo_any *types = CX_ARENA_ARRAY(&b->module->arena, cx_hlo_any, n);
  if (types == NULL) {
    no_memory(b);
    return;
  }
  for (size_t i = 0; i < n; i++) types[i] = results[i]->type;
  b->func->results = types;
  b->func->n_results = n;
}

calx_status *cx_hlo_builder_finish(cx_hlo_builder *b,
                                   cx_hlo_value *const *results,
                                   size_t n_results, cx_hlo_module **out_module)
{
  *out_module = NULL;
  set_results(b, results, n_results);
#if CX_DEBUG
  if (b->failed == NULL) b->failed = cx_hlo_verify(b->module);
#endif
  calx_status *status = b->failed;
  b->failed = NULL;
  if (status == NULL) {
    *out_module = b->module;
    b->module = NULL;
  }
  cx_hlo_builder_free(b);
  return status;
}

// ---- one operation ----

cx_hlo_op *cx_hlo_build_begin(cx_hlo_builder *b, cx_hlo_op_kind kind,
                              cx_hlo_value *const *operands, size_t n_operands,
                              size_t n_results, size_t n_regions)
{
  if (b->failed != NULL) return NULL;
  cx_hlo_op *op =
      cx_hlo_op_new(b->module, kind, n_operands, n_results, n_regions);
  if (op == NULL) {
    no_memory(b);
    return NULL;
  }
  for (size_t i = 0; i < n_operands; i++) {
    op->operands[i] = operands[i];
    if (operands[i] != NULL) continue;
    cx_hlo_builder_fail(b, cx_error(CALX_INTERNAL, "%s: operand %zu is NULL",
                                    cx_hlo_op_short(kind), i));
    return NULL;
  }
  op->loc = b->loc;
  return op;
}

void cx_hlo_build_attr(cx_hlo_builder *b, cx_hlo_op *op, cx_hlo_attr_id id,
                       const cx_hlo_attr *attr)
{
  if (op == NULL) return;
  if (attr == NULL) {
    no_memory(b);
    return;
  }
  const cx_hlo_op_info *info = cx_hlo_op_info_of(op->kind);
  for (size_t i = 0; i < info->n_attrs; i++) {
    if (info->attrs[i].id == id) op->attrs[i] = attr;
  }
}

void cx_hlo_build_int(cx_hlo_builder *b, cx_hlo_op *op, cx_hlo_attr_id id,
                      int64_t v)
{
  if (op == NULL) return;
  const cx_hlo_elem elem = (cx_hlo_elem)cx_hlo_name_info_of(id)->detail;
  cx_hlo_build_attr(b, op, id, cx_hlo_attr_int(b->module, elem, v));
}

void cx_hlo_build_ints(cx_hlo_builder *b, cx_hlo_op *op, cx_hlo_attr_id id,
                       const int64_t *v, size_t n)
{
  if (op == NULL) return;
  cx_hlo_build_attr(b, op, id, cx_hlo_attr_ints(b->module, CX_HLO_I64, v, n));
}

void cx_hlo_build_declare(cx_hlo_builder *b, cx_hlo_op *op, size_t result,
                          const cx_hlo_type *type)
{
  if (op == NULL) return;
  cx_hlo_type *to = &op->results[result].type.tensor;
  *to = *type;
  to->dims = cx_hlo_ints_copy(b->module, type->dims, type->rank);
  if (to->dims == NULL) no_memory(b);
}

// The rule overwrites the declared types, so it works on a copy.
static calx_status *infer_results(cx_hlo_builder *b, cx_hlo_op *op)
{
  cx_hlo_any one;
  cx_hlo_any *types = &one;
  if (op->n_results > 1) {
    types = CX_ARENA_ARRAY(&b->module->arena, cx_hlo_any, op->n_results);
    if (types == NULL) return cx_out_of_memory();
  }
  for (size_t i = 0; i < op->n_results; i++) types[i] = op->results[i].type;
  cx_hlo_infer in = { op, b->module, &b->module->arena, types };
  CALX_TRY(cx_hlo_infer_run(&in));
  for (size_t i = 0; i < op->n_results; i++) op->results[i].type = types[i];
  return NULL;
}

cx_hlo_value *cx_hlo_build_end(cx_hlo_builder *b, cx_hlo_op *op)
{
  if (op == NULL || b->failed != NULL) return NULL;
  calx_status *status = infer_results(b, op);
  if (status != NULL) {
    cx_hlo_builder_fail(b, status);
    return NULL;
  }
  cx_hlo_op_append(b->block, op);
  return op->n_results == 0 ? NULL : &op->results[0];
}

static void fill_body(cx_hlo_builder *b, cx_hlo_block *block, size_t n_out,
                      cx_hlo_body_fn *body, void *user)
{
  cx_arena *arena = &b->module->arena;
  cx_hlo_value **args = CX_ARENA_ARRAY(arena, cx_hlo_value *, block->n_args);
  cx_hlo_value **out = CX_ARENA_ARRAY(arena, cx_hlo_value *, n_out);
  if (args == NULL || out == NULL) {
    no_memory(b);
    return;
  }
  for (size_t i = 0; i < block->n_args; i++) args[i] = &block->args[i];
  cx_hlo_block *outside = b->block;
  b->block = block;
  body(b, user, args, out);
  cx_hlo_build_end(b,
                   cx_hlo_build_begin(b, CX_HLO_OP_RETURN, out, n_out, 0, 0));
  b->block = outside;
}

void cx_hlo_build_body(cx_hlo_builder *b, cx_hlo_op *op, size_t region,
                       const cx_hlo_elem *args, size_t n_args, size_t n_out,
                       cx_hlo_body_fn *body, void *user)
{
  if (op == NULL || b->failed != NULL) return;
  cx_hlo_block *block =
      cx_hlo_block_new(b->module, &op->regions[region], n_args);
  if (block == NULL) {
    no_memory(b);
    return;
  }
  for (size_t i = 0; i < n_args; i++) {
    block->args[i].type.tensor.elem = args[i];
  }
  fill_body(b, block, n_out, body, user);
}

void cx_hlo_build_like_operands(cx_hlo_builder *b, cx_hlo_op *op, size_t region,
                                size_t n_out, cx_hlo_body_fn *body, void *user)
{
  if (op == NULL || b->failed != NULL) return;
  cx_hlo_block *block =
      cx_hlo_block_new(b->module, &op->regions[region], op->n_operands);
  if (block == NULL) {
    no_memory(b);
    return;
  }
  for (size_t i = 0; i < op->n_operands; i++) {
    block->args[i].type = op->operands[i]->type;
  }
  fill_body(b, block, n_out, body, user);
}

const cx_hlo_type *cx_hlo_value_type(const cx_hlo_value *v)
{
  static const cx_hlo_type none = { CX_HLO_INVALID, 0, NULL };
  return v == NULL ? &none : &v->type.tensor;
}
