// hlo/parse: the file and its module, and what a caller must know of it.
#include "hlo/parse.h"

#include <string.h>

#include "hlo/bytecode.h"
#include "hlo/infer.h"
#include "hlo/reader.h"

// ---- the items of a module ----

static bool accept_module_word(cx_hlo_scan *s)
{
  return cx_hlo_scan_accept_word(s, "module") ||
         cx_hlo_scan_accept_word(s, "builtin.module");
}

// A function, or a declaration of another dialect: sdy.mesh. Its values are not
// visible in other functions.
static calx_status *read_top(cx_hlo_reader *r)
{
  cx_hlo_scan *s = &r->scan;
  const size_t scope = r->values.n;
  cx_hlo_parts p;
  if (cx_hlo_scan_accept_word(s, "func.func")) return cx_hlo_read_func(r);
  const char *at = cx_hlo_scan_here(s);
  if (accept_module_word(s) || cx_hlo_scan_sees(s, "\"builtin.module\"")) {
    return cx_hlo_scan_fail(s, at, CALX_UNIMPLEMENTED,
                            "a module inside of a module");
  }
  CALX_TRY(cx_hlo_read_parts(r, &p));
  if (cx_hlo_str_equal(p.name, "func.func")) return cx_hlo_make_func(r, &p);
  CALX_TRY(cx_hlo_make_op(r, &p, &r->module->others));
  cx_hlo_names_cut(&r->values, scope);
  return NULL;
}

// '{' label? top* '}'
static calx_status *read_tops(cx_hlo_reader *r)
{
  cx_hlo_scan *s = &r->scan;
  CALX_TRY(cx_hlo_scan_need(s, "{"));
  if (cx_hlo_scan_accept(s, "^")) {
    cx_hlo_scan_suffix(s);
    CALX_TRY(cx_hlo_scan_need(s, ":"));
  }
  while (!cx_hlo_scan_accept(s, "}")) CALX_TRY(read_top(r));
  return NULL;
}

// ---- the module ----

// module ::= '"builtin.module"' '(' ')' ('<' dict '>')? '(' tops ')' dict?
//            ':' '(' ')' '->' '(' ')' loc?, from behind the string
static calx_status *read_generic(cx_hlo_reader *r)
{
  static const char *const known[] = { "sym_name", "sym_visibility", NULL };
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
  CALX_TRY(read_tops(r));
  CALX_TRY(cx_hlo_scan_need(s, ")"));
  CALX_TRY(cx_hlo_read_optional_dict(r));
  const cx_hlo_attr *name =
      cx_hlo_find_named(r, mark, "sym_name", CX_HLO_ATTR_STRING);
  if (name != NULL) r->module->name = name->as.text;
  CALX_TRY(cx_hlo_take_named(r, mark, known, &r->module->attrs));
  CALX_TRY(cx_hlo_scan_need(s, ":"));
  return cx_hlo_read_function_types(r, &ignored);
}

// module ::= 'module' ('@' name)? ('attributes' dict)? tops, from behind the
// word
static calx_status *read_pretty(cx_hlo_reader *r)
{
  static const char *const none[] = { NULL };
  cx_hlo_scan *s = &r->scan;
  const size_t mark = r->named_stack.n;
  if (cx_hlo_scan_peek(s) == '@') {
    CALX_TRY(cx_hlo_read_symbol_name(r, &r->module->name));
  }
  if (cx_hlo_scan_accept_word(s, "attributes")) CALX_TRY(cx_hlo_read_dict(r));
  CALX_TRY(cx_hlo_take_named(r, mark, none, &r->module->attrs));
  return read_tops(r);
}

// file ::= (alias | module loc? | top)*
static calx_status *read_text(cx_hlo_reader *r)
{
  cx_hlo_scan *s = &r->scan;
  bool module = false;
  for (;;) {
    const char c = cx_hlo_scan_peek(s);
    const char *at = s->at;
    if (s->at == s->end) break;
    if (c == '#' || c == '!' || c == '{') {
      CALX_TRY(cx_hlo_read_alias(r));
      continue;
    }
    const bool pretty = accept_module_word(s);
    if (pretty || cx_hlo_scan_accept(s, "\"builtin.module\"")) {
      if (module || r->module->first != NULL) {
        return CX_HLO_FAIL(r, at, "a file holds one module");
      }
      module = true;
      CALX_TRY(pretty ? read_pretty(r) : read_generic(r));
      CALX_TRY(cx_hlo_read_trailing_loc(r, &r->module->loc));
    } else if (module) {
      return cx_hlo_scan_expected(s, "the end");
    } else {
      CALX_TRY(read_top(r));
    }
  }
  if (module || r->module->first != NULL) return NULL;
  return cx_hlo_scan_expected(s, "a module");
}

static calx_status *read_file(cx_hlo_reader *r)
{
  const cx_hlo_scan *s = &r->scan;
  return cx_hlo_is_bytecode(s->start, (size_t)(s->end - s->start))
             ? cx_hlo_read_bytecode(r)
             : read_text(r);
}

// Tells that the file's bound was reached and not that of the machine.
static calx_status *name_bound(const cx_hlo_reader *r, calx_status *status)
{
  if (status == NULL || r->module == NULL || !r->module->arena.at_limit) {
    return status;
  }
  calx_status_free(status);
  return cx_error(CALX_RESOURCE_EXHAUSTED,
                  "%s: the program of %zu bytes needs more than %zu bytes of "
                  "memory: it uses long attributes or types very often",
                  r->scan.file, (size_t)(r->scan.end - r->scan.start),
                  r->module->arena.limit);
}

calx_status *cx_hlo_parse(const char *text, size_t size, const char *file_name,
                          cx_hlo_module **out)
{
  cx_hlo_reader r;
  *out = NULL;
  calx_status *status = cx_hlo_reader_start(&r, text, size, file_name);
  if (status == NULL) status = read_file(&r);
  status = name_bound(&r, status);
  if (status == NULL) {
    *out = r.module;
    r.module->arena.limit = 0;  // for those who change the program
    r.module = NULL;
  }
  cx_hlo_reader_free(&r);
  return status;
}

// ---- the signature ----

// {mhlo.num_replicas = 4 : i32, …}; 0: not said
static int64_t find_count(const cx_hlo_module *m, const char *name)
{
  int64_t n = 0;
  for (size_t i = 0; i < m->attrs.n; i++) {
    const cx_hlo_named *item = &m->attrs.items[i];
    if (item->attr->kind == CX_HLO_ATTR_INT &&
        cx_hlo_str_equal(item->name, name)) {
      n = item->attr->as.integer;
    }
  }
  return n;
}

// Copies types, because the arena of the module is freed.
static calx_status *copy_types(cx_hlo_signature *out, const cx_hlo_func *f,
                               const char *what, const cx_hlo_any *from,
                               size_t n, cx_hlo_type **out_types)
{
  cx_hlo_type *types = CX_ARENA_ARRAY(&out->arena, cx_hlo_type, n);
  if (types == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    const cx_hlo_type *t = &from[i].tensor;
    const bool plain = from[i].non_tensor == NULL ||
                       from[i].non_tensor->kind == CX_HLO_NON_TENSOR_ENCODED;
    if (!plain || cx_hlo_elem_class(t->elem) == 0) {
      return cx_error(CALX_UNIMPLEMENTED,
                      "%s %zu of '%.*s' is %s, which is no plain tensor", what,
                      i, (int)f->name.n, f->name.s, CX_HLO_ANY(&from[i]));
    }
    int64_t *dims = CX_ARENA_ARRAY(&out->arena, int64_t, t->rank);
    if (dims == NULL) return cx_out_of_memory();
    if (t->rank != 0) memcpy(dims, t->dims, t->rank * sizeof *dims);
    types[i] = (cx_hlo_type){ t->elem, t->rank, dims };
  }
  *out_types = types;
  return NULL;
}

static calx_status *take_signature(const cx_hlo_reader *r,
                                   cx_hlo_signature *out)
{
  const cx_hlo_module *m = r->module;
  const cx_hlo_func *f = cx_hlo_entry(m);
  if (f == NULL) {
    return cx_invalid("%s: %u functions, and none is called 'main'",
                      r->scan.file, m->n_funcs);
  }
  CALX_TRY(
      copy_types(out, f, "parameter", f->params, f->n_params, &out->params));
  CALX_TRY(
      copy_types(out, f, "result", f->results, f->n_results, &out->results));
  out->name = cx_arena_strndup(&out->arena, f->name.s, f->name.n);
  out->n_params = f->n_params;
  out->n_results = f->n_results;
  out->num_replicas = find_count(m, "mhlo.num_replicas");
  out->num_partitions = find_count(m, "mhlo.num_partitions");
  return out->name == NULL ? cx_out_of_memory() : NULL;
}

calx_status *cx_hlo_parse_signature(const char *text, size_t size,
                                    const char *file_name,
                                    cx_hlo_signature *out)
{
  cx_hlo_reader r;
  *out = (cx_hlo_signature){ 0 };
  calx_status *status = cx_hlo_reader_start(&r, text, size, file_name);
  r.heads_only = true;
  if (status == NULL) status = read_file(&r);
  status = name_bound(&r, status);
  if (status == NULL) status = take_signature(&r, out);
  if (status != NULL) cx_hlo_signature_free(out);
  cx_hlo_reader_free(&r);
  return status;
}

void cx_hlo_signature_free(cx_hlo_signature *signature)
{
  cx_arena_free(&signature->arena);
  *signature = (cx_hlo_signature){ 0 };
}
