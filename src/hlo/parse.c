// hlo/parse: functions and the module, in generic form.
#include "hlo/parse.h"

#include <string.h>

#include "hlo/reader.h"

// ---- functions ----

static const cx_hlo_attr *find_named(const cx_hlo_reader *r, size_t mark,
                                     const char *name, cx_hlo_attr_kind kind)
{
  for (size_t i = mark; i < r->named_stack.n; i++) {
    const cx_hlo_named *item = &r->named_stack.v[i];
    if (cx_hlo_str_equal(item->name, name) && item->attr->kind == kind) {
      return item->attr;
    }
  }
  return NULL;
}

// Copies what is none of `known` to the arena, and cuts the stack.
static calx_status *take_others(cx_hlo_reader *r, size_t mark,
                                const char *const *known,
                                cx_hlo_named_list *out)
{
  size_t left = mark;
  for (size_t i = mark; i < r->named_stack.n; i++) {
    const cx_hlo_named item = r->named_stack.v[i];
    size_t k = 0;
    while (known[k] != NULL && !cx_hlo_str_equal(item.name, known[k])) k++;
    if (known[k] == NULL) r->named_stack.v[left++] = item;
  }
  r->named_stack.n = left;
  out->n = left - mark;
  return CX_HLO_COPY(r, r->named_stack, mark, &out->items) ? NULL
                                                           : cx_out_of_memory();
}

// arg_attrs = [{…}, …]: one dictionary per parameter or result
static calx_status *read_attr_lists(cx_hlo_reader *r, const cx_hlo_parts *p,
                                    const char *name, size_t n,
                                    cx_hlo_named_list **out)
{
  const cx_hlo_attr *list = find_named(r, p->named, name, CX_HLO_ATTR_LIST);
  if (list == NULL || list->as.list.n == 0) return NULL;
  if (list->as.list.n != n) {
    return CX_HLO_FAIL(r, p->at, "%s has %zu dictionaries for %zu types", name,
                       list->as.list.n, n);
  }
  *out = CX_ARENA_ARRAY(&r->module->arena, cx_hlo_named_list, n);
  if (*out == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    const cx_hlo_attr *dict = list->as.list.items[i];
    if (dict->kind != CX_HLO_ATTR_DICT) {
      return CX_HLO_FAIL(r, p->at, "%s must hold dictionaries", name);
    }
    (*out)[i] = (cx_hlo_named_list){ dict->as.dict.items, dict->as.dict.n };
  }
  return NULL;
}

static calx_status *fill_func(cx_hlo_reader *r, const cx_hlo_parts *p,
                              const cx_hlo_odd *type, cx_hlo_func *f)
{
  static const char *const known[] = { "sym_name",      "sym_visibility",
                                       "arg_attrs",     "res_attrs",
                                       "function_type", NULL };
  const cx_hlo_attr *visibility =
      find_named(r, p->named, "sym_visibility", CX_HLO_ATTR_STRING);
  if (visibility != NULL) f->visibility = visibility->as.text;
  f->params = type->parts;
  f->n_params = type->n_inputs;
  f->results = type->parts + type->n_inputs;
  f->n_results = type->n_parts - type->n_inputs;
  f->loc = p->loc;
  cx_hlo_move_region(&p->regions->region, &f->body);
  CALX_TRY(read_attr_lists(r, p, "arg_attrs", f->n_params, &f->param_attrs));
  CALX_TRY(read_attr_lists(r, p, "res_attrs", f->n_results, &f->result_attrs));
  return take_others(r, p->named, known, &f->attrs);
}

// "func.func"() <{function_type = …, sym_name = "…", …}> (region) : () -> ()
static calx_status *make_func(cx_hlo_reader *r, const cx_hlo_parts *p)
{
  const cx_hlo_attr *name =
      find_named(r, p->named, "sym_name", CX_HLO_ATTR_STRING);
  const cx_hlo_attr *type =
      find_named(r, p->named, "function_type", CX_HLO_ATTR_TYPE);
  if (name == NULL || type == NULL || type->as.type.odd == NULL ||
      type->as.type.odd->kind != CX_HLO_ODD_FUNCTION || p->n_regions != 1) {
    return CX_HLO_FAIL(r, p->at,
                       "a function needs sym_name, function_type and "
                       "one region");
  }
  if (cx_hlo_func_find(r->module, name->as.text) != NULL) {
    return CX_HLO_FAIL(r, p->at, "the function '%.*s' is there already",
                       (int)name->as.text.n, name->as.text.s);
  }
  cx_hlo_func *f = cx_hlo_func_new(r->module, name->as.text);
  if (f == NULL) return cx_out_of_memory();
  CALX_TRY(fill_func(r, p, type->as.type.odd, f));
  r->any_stack.n = p->types;
  return NULL;
}

// ---- the module ----

// Functions, and declarations of other dialects: sdy.mesh.
static calx_status *read_top(cx_hlo_reader *r)
{
  cx_hlo_parts p;
  CALX_TRY(cx_hlo_read_parts(r, &p));
  if (cx_hlo_str_equal(p.name, "func.func")) return make_func(r, &p);
  if (cx_hlo_str_equal(p.name, "builtin.module")) {
    return cx_hlo_scan_fail(&r->scan, p.at, CALX_UNIMPLEMENTED,
                            "a module inside of a module");
  }
  return cx_hlo_make_op(r, &p, &r->module->others);
}

static calx_status *read_module_dict(cx_hlo_reader *r, size_t mark)
{
  static const char *const known[] = { "sym_name", "sym_visibility", NULL };
  const cx_hlo_attr *name = find_named(r, mark, "sym_name", CX_HLO_ATTR_STRING);
  if (name != NULL) r->module->name = name->as.text;
  return take_others(r, mark, known, &r->module->attrs);
}

// module ::= '"builtin.module"' '(' ')' ('<' dict '>')? '(' '{' label? top* '}'
//            ')' dict? ':' '(' ')' '->' '(' ')' loc?
static calx_status *read_module(cx_hlo_reader *r)
{
  cx_hlo_scan *s = &r->scan;
  const size_t mark = r->named_stack.n;
  size_t ignored = 0;
  CALX_TRY(cx_hlo_scan_need(s, "("));
  CALX_TRY(cx_hlo_scan_need(s, ")"));
  if (cx_hlo_scan_accept(s, "<")) {
    CALX_TRY(cx_hlo_read_dict(r));
    CALX_TRY(cx_hlo_scan_need(s, ">"));
  }
  CALX_TRY(cx_hlo_scan_need(s, "("));
  CALX_TRY(cx_hlo_scan_need(s, "{"));
  if (cx_hlo_scan_accept(s, "^")) {
    cx_hlo_scan_suffix(s);
    CALX_TRY(cx_hlo_scan_need(s, ":"));
  }
  while (!cx_hlo_scan_accept(s, "}")) CALX_TRY(read_top(r));
  CALX_TRY(cx_hlo_scan_need(s, ")"));
  if (cx_hlo_scan_peek(s) == '{') CALX_TRY(cx_hlo_read_dict(r));
  CALX_TRY(read_module_dict(r, mark));
  CALX_TRY(cx_hlo_scan_need(s, ":"));
  CALX_TRY(cx_hlo_read_function_types(r, &ignored));
  return cx_hlo_read_trailing_loc(r, &r->module->loc);
}

// file ::= (alias | '"builtin.module"' … | top)*
static calx_status *read_file(cx_hlo_reader *r)
{
  cx_hlo_scan *s = &r->scan;
  bool module = false;
  for (;;) {
    const char c = cx_hlo_scan_peek(s);
    if (s->at == s->end) break;
    if (c == '#' || c == '!' || c == '{') {
      CALX_TRY(cx_hlo_read_alias(r));
    } else if (cx_hlo_scan_accept(s, "\"builtin.module\"")) {
      if (module || r->module->first != NULL) {
        return CX_HLO_FAIL(r, s->at, "a file holds one module");
      }
      module = true;
      CALX_TRY(read_module(r));
    } else if (module) {
      return cx_hlo_scan_expected(s, "the end");
    } else {
      CALX_TRY(read_top(r));
    }
  }
  if (module || r->module->first != NULL) return NULL;
  return cx_hlo_scan_expected(s, "a module");
}

calx_status *cx_hlo_parse(const char *text, size_t size, const char *file_name,
                          cx_hlo_module **out)
{
  cx_hlo_reader r;
  *out = NULL;
  calx_status *status = cx_hlo_reader_start(&r, text, size, file_name);
  if (status == NULL) status = read_file(&r);
  if (status == NULL) {
    *out = r.module;
    r.module = NULL;
  }
  cx_hlo_reader_free(&r);
  return status;
}
