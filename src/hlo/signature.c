// hlo/parse: the entry's types, from text in either form.
//
// The pretty form has a spelling of its own for every operation, but functions
// are spelled in one way, and bodies are in braces: so the functions can be
// found, and their heads read, without knowing a single operation.
#include <string.h>

#include "hlo/infer.h"
#include "hlo/parse.h"
#include "hlo/reader.h"

// A function's head; its types lie in the reader's arena.
typedef struct head {
  cx_hlo_str name;
  const cx_hlo_any *types;  // parameters, then results
  size_t n_params, n_types;
  const char *at;
} head;

typedef struct finder {
  cx_hlo_reader r;
  head entry;  // main, or the first
  size_t n_funcs;
  bool has_main;
  int64_t num_replicas, num_partitions;
} finder;

static calx_status *note_func(finder *f, const head *h)
{
  const bool main = cx_hlo_str_equal(h->name, "main");
  f->n_funcs++;
  if (main && f->has_main) {
    return CX_HLO_FAIL(&f->r, h->at, "there is a function 'main' already");
  }
  if (main || f->n_funcs == 1) f->entry = *h;
  f->has_main |= main;
  return NULL;
}

// Takes the types that were pushed since `mark`.
static calx_status *take_types(finder *f, size_t mark, head *h)
{
  h->n_types = f->r.any_stack.n - mark;
  return CX_HLO_COPY(&f->r, f->r.any_stack, mark, &h->types)
             ? NULL
             : cx_out_of_memory();
}

// {mhlo.num_replicas = 4 : i32, …}: what was pushed since `mark`
static void take_counts(finder *f, size_t mark)
{
  for (size_t i = mark; i < f->r.named_stack.n; i++) {
    const cx_hlo_named *item = &f->r.named_stack.v[i];
    if (item->attr->kind != CX_HLO_ATTR_INT) continue;
    const int64_t n = item->attr->as.integer;
    if (cx_hlo_str_equal(item->name, "mhlo.num_replicas")) f->num_replicas = n;
    if (cx_hlo_str_equal(item->name, "mhlo.num_partitions")) {
      f->num_partitions = n;
    }
  }
  f->r.named_stack.n = mark;
}

static calx_status *skip_dict(finder *f)
{
  if (cx_hlo_scan_peek(&f->r.scan) != '{') return NULL;
  return cx_hlo_scan_balanced(&f->r.scan);
}

// ---- pretty functions ----

// typed ::= type dict? loc?; its type is pushed
static calx_status *read_typed(finder *f)
{
  cx_hlo_reader *r = &f->r;
  cx_hlo_any type;
  const cx_hlo_loc *loc = NULL;
  CALX_TRY(cx_hlo_read_type(r, &type));
  if (!CX_HLO_ROOM(r->any_stack)) return cx_out_of_memory();
  r->any_stack.v[r->any_stack.n++] = type;
  CALX_TRY(skip_dict(f));
  return cx_hlo_read_trailing_loc(r, &loc);
}

// params ::= '(' (('%' name ':')? typed (',' …)*)? ')'
static calx_status *read_params(finder *f)
{
  cx_hlo_scan *s = &f->r.scan;
  CALX_TRY(cx_hlo_scan_need(s, "("));
  if (cx_hlo_scan_accept(s, ")")) return NULL;
  do {
    if (cx_hlo_scan_accept(s, "%")) {
      cx_hlo_scan_suffix(s);
      CALX_TRY(cx_hlo_scan_need(s, ":"));
    }
    CALX_TRY(read_typed(f));
  } while (cx_hlo_scan_accept(s, ","));
  return cx_hlo_scan_need(s, ")");
}

// results ::= '->' (type | '(' (typed (',' typed)*)? ')')
static calx_status *read_results(finder *f)
{
  cx_hlo_scan *s = &f->r.scan;
  if (!cx_hlo_scan_accept(s, "->")) return NULL;
  if (!cx_hlo_scan_accept(s, "(")) return read_typed(f);
  if (cx_hlo_scan_accept(s, ")")) return NULL;
  do {
    CALX_TRY(read_typed(f));
  } while (cx_hlo_scan_accept(s, ","));
  return cx_hlo_scan_need(s, ")");
}

// func ::= 'func.func' ('public' | 'private' | 'nested')? '@' name params
//          results? ('attributes' dict)? body?, from behind the word
static calx_status *read_pretty(finder *f)
{
  cx_hlo_reader *r = &f->r;
  cx_hlo_scan *s = &r->scan;
  const size_t mark = r->any_stack.n;
  if (!cx_hlo_scan_accept_word(s, "public") &&
      !cx_hlo_scan_accept_word(s, "private")) {
    cx_hlo_scan_accept_word(s, "nested");
  }
  cx_hlo_scan_space(s);
  head h = { .at = s->at };
  CALX_TRY(cx_hlo_scan_need(s, "@"));
  if (cx_hlo_scan_sees(s, "\"")) {
    CALX_TRY(cx_hlo_scan_string(s, &r->module->arena, &h.name));
  } else {
    h.name = cx_hlo_scan_suffix(s);
  }
  CALX_TRY(read_params(f));
  h.n_params = r->any_stack.n - mark;
  CALX_TRY(read_results(f));
  CALX_TRY(take_types(f, mark, &h));
  if (cx_hlo_scan_accept_word(s, "attributes")) CALX_TRY(skip_dict(f));
  if (cx_hlo_scan_peek(s) == '{') CALX_TRY(cx_hlo_scan_braces(s));
  return note_func(f, &h);
}

// ---- generic functions ----

static const cx_hlo_attr *find_named(const cx_hlo_reader *r, size_t mark,
                                     const char *name)
{
  for (size_t i = mark; i < r->named_stack.n; i++) {
    if (cx_hlo_str_equal(r->named_stack.v[i].name, name)) {
      return r->named_stack.v[i].attr;
    }
  }
  return NULL;
}

// '(' region (',' region)* ')', unread
static calx_status *skip_regions(cx_hlo_scan *s)
{
  CALX_TRY(cx_hlo_scan_need(s, "("));
  do {
    CALX_TRY(cx_hlo_scan_braces(s));
  } while (cx_hlo_scan_accept(s, ","));
  return cx_hlo_scan_need(s, ")");
}

// func ::= '"func.func"' '(' ')' ('<' dict '>')? '(' region ')' dict?, from
// behind the string
static calx_status *read_generic(finder *f)
{
  cx_hlo_reader *r = &f->r;
  cx_hlo_scan *s = &r->scan;
  const size_t mark = r->named_stack.n;
  head h = { .at = s->at };
  CALX_TRY(cx_hlo_scan_need(s, "("));
  CALX_TRY(cx_hlo_scan_need(s, ")"));
  if (cx_hlo_scan_accept(s, "<")) {
    CALX_TRY(cx_hlo_read_dict(r));
    CALX_TRY(cx_hlo_scan_need(s, ">"));
  }
  CALX_TRY(skip_regions(s));
  if (cx_hlo_scan_peek(s) == '{') CALX_TRY(cx_hlo_read_dict(r));
  const cx_hlo_attr *name = find_named(r, mark, "sym_name");
  const cx_hlo_attr *type = find_named(r, mark, "function_type");
  r->named_stack.n = mark;
  const cx_hlo_odd *odd =
      type == NULL || type->kind != CX_HLO_ATTR_TYPE ? NULL : type->as.type.odd;
  if (name == NULL || name->kind != CX_HLO_ATTR_STRING || odd == NULL ||
      odd->kind != CX_HLO_ODD_FUNCTION) {
    return CX_HLO_FAIL(r, h.at, "a function needs sym_name and function_type");
  }
  h.name = name->as.text;
  h.types = odd->parts;
  h.n_params = odd->n_inputs;
  h.n_types = odd->n_parts;
  return note_func(f, &h);
}

// ---- the file ----

// 'module' ('@' name)? ('attributes' dict)? '{', from behind the word
static calx_status *enter_pretty_module(finder *f)
{
  cx_hlo_scan *s = &f->r.scan;
  cx_hlo_str ignored;
  if (cx_hlo_scan_accept(s, "@")) {
    if (cx_hlo_scan_sees(s, "\"")) {
      CALX_TRY(cx_hlo_scan_quoted(s, &ignored));
    } else {
      cx_hlo_scan_suffix(s);
    }
  }
  if (cx_hlo_scan_accept_word(s, "attributes")) {
    const size_t mark = f->r.named_stack.n;
    CALX_TRY(cx_hlo_read_dict(&f->r));
    take_counts(f, mark);
  }
  return cx_hlo_scan_need(s, "{");
}

// '"builtin.module"' '(' ')' ('<' dict '>')? '(' '{', from behind the string
static calx_status *enter_generic_module(finder *f)
{
  cx_hlo_scan *s = &f->r.scan;
  CALX_TRY(cx_hlo_scan_need(s, "("));
  CALX_TRY(cx_hlo_scan_need(s, ")"));
  if (cx_hlo_scan_accept(s, "<")) {
    const size_t mark = f->r.named_stack.n;
    CALX_TRY(cx_hlo_read_dict(&f->r));
    take_counts(f, mark);
    CALX_TRY(cx_hlo_scan_need(s, ">"));
  }
  CALX_TRY(cx_hlo_scan_need(s, "("));
  return cx_hlo_scan_need(s, "{");
}

// '}' of a module; a generic one may have its attributes behind.
static calx_status *leave_module(finder *f)
{
  cx_hlo_scan *s = &f->r.scan;
  s->at++;
  if (!cx_hlo_scan_accept(s, ")") || cx_hlo_scan_peek(s) != '{') return NULL;
  const size_t mark = f->r.named_stack.n;
  CALX_TRY(cx_hlo_read_dict(&f->r));
  take_counts(f, mark);
  return NULL;
}

// Past one piece of something else: other dialects' declarations.
static calx_status *skip_piece(finder *f)
{
  cx_hlo_scan *s = &f->r.scan;
  cx_hlo_str ignored;
  const char c = *s->at;
  if (c == '"') return cx_hlo_scan_quoted(s, &ignored);
  if (c == '(' || c == '[' || c == '{' || c == '<') {
    return cx_hlo_scan_balanced(s);
  }
  if (!cx_hlo_scan_word(s, &ignored)) s->at++;
  return NULL;
}

static calx_status *read_top(finder *f)
{
  cx_hlo_scan *s = &f->r.scan;
  const char c = *s->at;
  if (cx_hlo_scan_accept_word(s, "func.func")) return read_pretty(f);
  if (cx_hlo_scan_accept(s, "\"func.func\"")) return read_generic(f);
  if (cx_hlo_scan_accept_word(s, "module") ||
      cx_hlo_scan_accept_word(s, "builtin.module")) {
    return enter_pretty_module(f);
  }
  if (cx_hlo_scan_accept(s, "\"builtin.module\"")) {
    return enter_generic_module(f);
  }
  if (c == '}') return leave_module(f);
  // Aliases stand at the beginning of a line.
  const bool first = s->at == s->start || s->at[-1] == '\n';
  if (first && (c == '#' || c == '!' || cx_hlo_scan_sees(s, "{-#"))) {
    return cx_hlo_read_alias(&f->r);
  }
  return skip_piece(f);
}

static calx_status *bad_type(const finder *f, size_t i)
{
  const bool param = i < f->entry.n_params;
  return cx_hlo_scan_fail(
      &f->r.scan, f->entry.at, CALX_UNIMPLEMENTED,
      "%s %zu of '%.*s' is %s, which is no plain tensor",
      param ? "parameter" : "result", param ? i : i - f->entry.n_params,
      (int)f->entry.name.n, f->entry.name.s, CX_HLO_ANY(&f->entry.types[i]));
}

// Copies out of the reader's arena, which goes away.
static calx_status *copy_types(const finder *f, cx_hlo_signature *out)
{
  const head *h = &f->entry;
  cx_hlo_type *types = CX_ARENA_ARRAY(&out->arena, cx_hlo_type, h->n_types);
  out->name = cx_arena_strndup(&out->arena, h->name.s, h->name.n);
  if (types == NULL || out->name == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < h->n_types; i++) {
    const cx_hlo_type *from = &h->types[i].tensor;
    const bool plain =
        h->types[i].odd == NULL || h->types[i].odd->kind == CX_HLO_ODD_ENCODED;
    if (!plain || cx_hlo_elem_class(from->elem) == 0) return bad_type(f, i);
    int64_t *dims = CX_ARENA_ARRAY(&out->arena, int64_t, from->rank);
    if (dims == NULL) return cx_out_of_memory();
    if (from->rank != 0) {
      memcpy(dims, from->dims, from->rank * sizeof *dims);
    }
    types[i] = (cx_hlo_type){ from->elem, from->rank, dims };
  }
  out->params = types;
  out->results = types + h->n_params;
  out->n_params = h->n_params;
  out->n_results = h->n_types - h->n_params;
  out->num_replicas = f->num_replicas;
  out->num_partitions = f->num_partitions;
  return NULL;
}

static calx_status *find_entry(finder *f)
{
  cx_hlo_scan *s = &f->r.scan;
  for (;;) {
    cx_hlo_scan_space(s);
    if (s->at == s->end) break;
    CALX_TRY(read_top(f));
  }
  if (f->has_main || f->n_funcs == 1) return NULL;
  return cx_error(CALX_INVALID_ARGUMENT,
                  "%s: %zu functions, and none is called 'main'", s->file,
                  f->n_funcs);
}

calx_status *cx_hlo_parse_signature(const char *text, size_t size,
                                    const char *file_name,
                                    cx_hlo_signature *out)
{
  finder f = { 0 };
  *out = (cx_hlo_signature){ 0 };
  calx_status *status = cx_hlo_reader_start(&f.r, text, size, file_name);
  if (status == NULL) status = find_entry(&f);
  if (status == NULL) status = copy_types(&f, out);
  if (status != NULL) cx_hlo_signature_free(out);
  cx_hlo_reader_free(&f.r);
  return status;
}

void cx_hlo_signature_free(cx_hlo_signature *signature)
{
  cx_arena_free(&signature->arena);
  *signature = (cx_hlo_signature){ 0 };
}
