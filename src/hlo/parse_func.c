// hlo/parse: functions, in both forms.
#include <string.h>

#include "hlo/reader.h"

static calx_status *new_func(cx_hlo_reader *r, const char *at, cx_hlo_str name,
                             cx_hlo_func **out)
{
  if (cx_hlo_func_find(r->module, name) != NULL) {
    return CX_HLO_FAIL(r, at, "the function '%.*s' is there already",
                       (int)name.n, name.s);
  }
  *out = cx_hlo_func_new(r->module, name);
  return *out == NULL ? cx_out_of_memory() : NULL;
}

// ---- generic ----

const cx_hlo_attr *cx_hlo_find_named(const cx_hlo_reader *r, size_t mark,
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

calx_status *cx_hlo_take_named(cx_hlo_reader *r, size_t mark,
                               const char *const *known, cx_hlo_named_list *out)
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
  return CX_HLO_TAKE(r, r->named_stack, mark, &out->items);
}

// arg_attrs = [{…}, …]: one dictionary per parameter or result
static calx_status *read_attr_lists(cx_hlo_reader *r, const cx_hlo_parts *p,
                                    const char *name, size_t n,
                                    cx_hlo_named_list **out)
{
  const cx_hlo_attr *list =
      cx_hlo_find_named(r, p->named, name, CX_HLO_ATTR_LIST);
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

static calx_status *fill_generic(cx_hlo_reader *r, const cx_hlo_parts *p,
                                 const cx_hlo_non_tensor *type, cx_hlo_func *f)
{
  static const char *const known[] = { "sym_name",      "sym_visibility",
                                       "arg_attrs",     "res_attrs",
                                       "function_type", NULL };
  const cx_hlo_attr *visibility =
      cx_hlo_find_named(r, p->named, "sym_visibility", CX_HLO_ATTR_STRING);
  if (visibility != NULL) f->visibility = visibility->as.text;
  f->params = type->parts;
  f->n_params = type->n_inputs;
  f->results = type->parts + type->n_inputs;
  f->n_results = type->n_parts - type->n_inputs;
  f->loc = p->loc;
  cx_hlo_move_region(&p->regions->region, &f->body);
  CALX_TRY(read_attr_lists(r, p, "arg_attrs", f->n_params, &f->param_attrs));
  CALX_TRY(read_attr_lists(r, p, "res_attrs", f->n_results, &f->result_attrs));
  return cx_hlo_take_named(r, p->named, known, &f->attrs);
}

// "func.func"() <{function_type = …, sym_name = "…", …}> (region) : () -> ()
calx_status *cx_hlo_make_func(cx_hlo_reader *r, const cx_hlo_parts *p)
{
  const cx_hlo_attr *name =
      cx_hlo_find_named(r, p->named, "sym_name", CX_HLO_ATTR_STRING);
  const cx_hlo_attr *type =
      cx_hlo_find_named(r, p->named, "function_type", CX_HLO_ATTR_TYPE);
  cx_hlo_func *f = NULL;
  if (name == NULL || type == NULL || type->as.type.non_tensor == NULL ||
      type->as.type.non_tensor->kind != CX_HLO_NON_TENSOR_FUNCTION ||
      p->n_regions != 1) {
    return CX_HLO_FAIL(r, p->at,
                       "a function needs sym_name, function_type and "
                       "one region");
  }
  CALX_TRY(new_func(r, p->at, name->as.text, &f));
  CALX_TRY(fill_generic(r, p, type->as.type.non_tensor, f));
  r->any_stack.n = p->types;
  return NULL;
}

// ---- pretty ----

// The head of a function, whose names, types and attributes are on the stacks.
typedef struct head {
  size_t groups, types, lists;  // where they begin
  size_t n_params;
} head;

// dict?, pushed onto attr_stack
static calx_status *push_dict(cx_hlo_reader *r, bool allowed)
{
  static const cx_hlo_attr empty = { .kind = CX_HLO_ATTR_DICT };
  const cx_hlo_attr *dict = &empty;
  if (allowed && cx_hlo_scan_peek(&r->scan) == '{') {
    CALX_TRY(cx_hlo_read_dict_attr(r, &dict));
  }
  return CX_HLO_PUSH(r->attr_stack, dict);
}

// typed ::= type dict? loc?. Without the dictionary, a '{' begins the body.
static calx_status *read_typed(cx_hlo_reader *r, bool with_dict)
{
  const cx_hlo_loc *ignored = NULL;
  CALX_TRY(cx_hlo_read_pushed_type(r));
  CALX_TRY(push_dict(r, with_dict));
  return with_dict ? cx_hlo_read_trailing_loc(r, &ignored) : NULL;
}

// ('%' name ':')? typed
static calx_status *read_param(cx_hlo_reader *r)
{
  if (cx_hlo_scan_peek(&r->scan) == '%') {
    CALX_TRY(cx_hlo_read_name(r));
    CALX_TRY(cx_hlo_scan_need(&r->scan, ":"));
  }
  return read_typed(r, true);
}

static calx_status *read_result(cx_hlo_reader *r)
{
  return read_typed(r, true);
}

// results ::= '->' (type | '(' (typed (',' typed)*)? ')')
static calx_status *read_results(cx_hlo_reader *r)
{
  if (!cx_hlo_scan_accept(&r->scan, "->")) return NULL;
  if (cx_hlo_scan_peek(&r->scan) != '(') return read_typed(r, false);
  return cx_hlo_read_items(r, "(", ')', read_result);
}

// The n dictionaries on attr_stack from `from` on; NULL where all are empty.
static calx_status *take_dicts(cx_hlo_reader *r, size_t from, size_t n,
                               cx_hlo_named_list **out)
{
  bool any = false;
  for (size_t i = 0; i < n; i++) {
    any |= r->attr_stack.v[from + i]->as.dict.n != 0;
  }
  if (!any) return NULL;
  *out = CX_ARENA_ARRAY(&r->module->arena, cx_hlo_named_list, n);
  if (*out == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    const cx_hlo_attr *dict = r->attr_stack.v[from + i];
    (*out)[i] = (cx_hlo_named_list){ dict->as.dict.items, dict->as.dict.n };
  }
  return NULL;
}

// Takes types and attributes from the stacks. The types stay there for the
// body.
static calx_status *fill_pretty(cx_hlo_reader *r, const head *h, cx_hlo_func *f)
{
  const size_t n = r->any_stack.n - h->types;
  size_t end = r->any_stack.n;
  const cx_hlo_any *types = NULL;
  CALX_TRY(CX_HLO_TAKE(r, r->any_stack, h->types, &types));
  r->any_stack.n = end;
  f->params = types;
  f->n_params = h->n_params;
  f->results = types + h->n_params;
  f->n_results = n - h->n_params;
  CALX_TRY(take_dicts(r, h->lists, f->n_params, &f->param_attrs));
  CALX_TRY(
      take_dicts(r, h->lists + f->n_params, f->n_results, &f->result_attrs));
  r->attr_stack.n = h->lists;
  return NULL;
}

// '{' … '}'. The arguments of the first block are the parameters.
static calx_status *read_body(cx_hlo_reader *r, const head *h, const char *at,
                              cx_hlo_func *f)
{
  const cx_hlo_block_args args = { h->groups, h->types, f->n_params };
  cx_hlo_parts p = { .at = at };
  if (r->group_stack.n - h->groups != f->n_params) {
    return CX_HLO_FAIL(r, at, "a function with a body names its parameters");
  }
  CALX_TRY(cx_hlo_read_region(r, &p, &args));
  cx_hlo_move_region(&p.regions->region, &f->body);
  return NULL;
}

static void read_visibility(cx_hlo_scan *s, cx_hlo_str *out)
{
  static const char *const words[] = { "public", "private", "nested" };
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (!cx_hlo_scan_accept_word(s, words[i])) continue;
    *out = (cx_hlo_str){ words[i], strlen(words[i]) };
    return;
  }
}

// func ::= 'func.func' ('public' | 'private' | 'nested')? '@' name params
//          results? ('attributes' dict)? body? loc?, from behind the word
calx_status *cx_hlo_read_func(cx_hlo_reader *r)
{
  static const char *const none[] = { NULL };
  cx_hlo_scan *s = &r->scan;
  head h = { r->group_stack.n, r->any_stack.n, r->attr_stack.n, 0 };
  const size_t named = r->named_stack.n;
  cx_hlo_str visibility = { NULL, 0 };
  cx_hlo_str name = { NULL, 0 };
  cx_hlo_func *f = NULL;
  read_visibility(s, &visibility);
  const char *at = cx_hlo_scan_here(s);
  CALX_TRY(cx_hlo_read_symbol_name(r, &name));
  CALX_TRY(new_func(r, at, name, &f));
  f->visibility = visibility;
  CALX_TRY(cx_hlo_read_items(r, "(", ')', read_param));
  h.n_params = r->any_stack.n - h.types;
  CALX_TRY(read_results(r));
  CALX_TRY(fill_pretty(r, &h, f));
  if (cx_hlo_scan_accept_word(s, "attributes")) CALX_TRY(cx_hlo_read_dict(r));
  CALX_TRY(cx_hlo_take_named(r, named, none, &f->attrs));
  if (cx_hlo_scan_peek(s) == '{') CALX_TRY(read_body(r, &h, at, f));
  r->group_stack.n = h.groups;
  r->any_stack.n = h.types;
  return cx_hlo_read_trailing_loc(r, &f->loc);
}
