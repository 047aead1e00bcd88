// hlo/reader: stacks, lists, locations and aliases.
#include "hlo/reader.h"

#include <string.h>

calx_status *cx_hlo_reader_start(cx_hlo_reader *r, const char *text,
                                 size_t size, const char *file)
{
  *r = (cx_hlo_reader){ .scan = { .start = text,
                                  .at = text,
                                  .end = text + size,
                                  .file = file == NULL ? "text" : file } };
  if (size > UINT32_MAX / 2) {
    return cx_invalid("%s: %zu bytes are too many", r->scan.file, size);
  }
  const uint64_t seed = (uint64_t)(uintptr_t)r ^ (uint64_t)(uintptr_t)text;
  r->values.seed = r->types.seed = r->attrs.seed = r->locs.seed = seed;
  r->resources.seed = seed;
  r->module = cx_hlo_module_new();
  if (r->module == NULL) return cx_out_of_memory();
  r->module->arena.limit = CX_HLO_MEMORY + size * CX_HLO_MEMORY_PER_BYTE;
  return NULL;
}

void cx_hlo_reader_free(cx_hlo_reader *r)
{
  cx_hlo_names_free(&r->values);
  cx_hlo_names_free(&r->types);
  cx_hlo_names_free(&r->attrs);
  cx_hlo_names_free(&r->locs);
  cx_hlo_names_free(&r->resources);
  cx_free(r->any_stack.v);
  cx_free(r->named_stack.v);
  cx_free(r->attr_stack.v);
  cx_free(r->int_stack.v);
  cx_free(r->group_stack.v);
  cx_free(r->use_stack.v);
  cx_hlo_module_free(r->module);
}

calx_status *cx_hlo_reader_take(cx_hlo_reader *r, const void *items, size_t *n,
                                size_t mark, size_t bytes, void *out)
{
  const size_t count = *n - mark;
  void *copy = cx_arena_alloc_array(&r->module->arena, bytes, count);
  *n = mark;
  if (copy == NULL) return cx_out_of_memory();
  if (count != 0) {
    memcpy(copy, (const char *)items + mark * bytes, count * bytes);
  }
  memcpy(out, &copy, sizeof copy);
  return NULL;
}

calx_status *cx_hlo_reader_str(cx_hlo_reader *r, const char *s, size_t n,
                               cx_hlo_str *out)
{
  *out = cx_hlo_str_copy(r->module, s, n);
  return out->s == NULL ? cx_out_of_memory() : NULL;
}

calx_status *cx_hlo_reader_attr(const cx_hlo_attr *attr,
                                const cx_hlo_attr **out)
{
  *out = attr;
  return attr == NULL ? cx_out_of_memory() : NULL;
}

calx_status *cx_hlo_reader_deeper(cx_hlo_reader *r)
{
  if (++r->depth > r->deepest) r->deepest = r->depth;
  if (r->depth <= CX_HLO_DEEPEST) return NULL;
  return CX_HLO_FAIL(r, r->scan.at, "nests deeper than %d", CX_HLO_DEEPEST);
}

calx_status *cx_hlo_read_items(cx_hlo_reader *r, const char *open, char close,
                               cx_hlo_item_fn *item)
{
  CALX_TRY(cx_hlo_scan_need(&r->scan, open));
  for (bool first = true; cx_hlo_scan_peek(&r->scan) != close; first = false) {
    if (!first) CALX_TRY(cx_hlo_scan_need(&r->scan, ","));
    CALX_TRY(item(r));
  }
  r->scan.at++;
  return NULL;
}

static calx_status *read_int(cx_hlo_reader *r)
{
  int64_t v = 0;
  CALX_TRY(cx_hlo_scan_int(&r->scan, &v));
  return CX_HLO_PUSH(r->int_stack, v);
}

// ints ::= '[' (integer (',' integer)*)? ']'
calx_status *cx_hlo_read_ints(cx_hlo_reader *r, cx_hlo_ints *out)
{
  const size_t mark = r->int_stack.n;
  CALX_TRY(cx_hlo_read_items(r, "[", ']', read_int));
  out->n = r->int_stack.n - mark;
  return CX_HLO_TAKE(r, r->int_stack, mark, &out->v);
}

calx_status *cx_hlo_read_text(cx_hlo_reader *r, const char *from,
                              const cx_hlo_attr **out)
{
  cx_hlo_attr *attr = cx_hlo_attr_new(r->module, CX_HLO_ATTR_TEXT);
  CALX_TRY(cx_hlo_reader_attr(attr, out));
  return cx_hlo_reader_str(r, from, (size_t)(r->scan.at - from),
                           &attr->as.text);
}

// ---- locations ----

// The location that an alias names. Its definition may follow later.
static cx_hlo_loc *alias_loc(cx_hlo_reader *r, cx_hlo_str name)
{
  const cx_hlo_name *known = cx_hlo_names_find(&r->locs, name);
  if (known != NULL) return known->item;
  cx_hlo_loc *loc = CX_ARENA_NEW(&r->module->arena, cx_hlo_loc);
  if (loc == NULL || !cx_hlo_names_add(&r->locs, name, loc, 1)) return NULL;
  return loc;
}

static calx_status *read_loc_body(cx_hlo_reader *r, const cx_hlo_loc **out);

// file-loc ::= string ':' integer ':' integer ('to' integer? ':' integer)?
static calx_status *read_file_loc(cx_hlo_reader *r, cx_hlo_str file,
                                  const cx_hlo_loc **out)
{
  cx_hlo_loc *loc = CX_ARENA_NEW(&r->module->arena, cx_hlo_loc);
  if (loc == NULL) return cx_out_of_memory();
  loc->file = file;
  CALX_TRY(cx_hlo_scan_need(&r->scan, ":"));
  CALX_TRY(cx_hlo_scan_int(&r->scan, &loc->line));
  CALX_TRY(cx_hlo_scan_need(&r->scan, ":"));
  CALX_TRY(cx_hlo_scan_int(&r->scan, &loc->column));
  if (loc->line < 0 || loc->column < 0) {
    return CX_HLO_FAIL(r, r->scan.at, "no line or column is negative");
  }
  *out = loc;
  if (!cx_hlo_scan_accept_word(&r->scan, "to")) return NULL;
  int64_t last = 0;
  if (cx_hlo_scan_peek(&r->scan) != ':') {
    CALX_TRY(cx_hlo_scan_int(&r->scan, &last));
  }
  CALX_TRY(cx_hlo_scan_need(&r->scan, ":"));
  return cx_hlo_scan_int(&r->scan, &last);
}

// fused-loc ::= 'fused' ('<' attribute '>')? '[' location (',' location)* ']'
// The result is the first known one.
static calx_status *read_fused_loc(cx_hlo_reader *r, const cx_hlo_loc **out)
{
  if (cx_hlo_scan_peek(&r->scan) == '<') {
    CALX_TRY(cx_hlo_scan_balanced(&r->scan));
  }
  CALX_TRY(cx_hlo_scan_need(&r->scan, "["));
  do {
    const cx_hlo_loc *one = NULL;
    CALX_TRY(read_loc_body(r, &one));
    if (*out == NULL) *out = one;
  } while (cx_hlo_scan_accept(&r->scan, ","));
  return cx_hlo_scan_need(&r->scan, "]");
}

// call-loc ::= 'callsite' '(' location 'at' location ')'
static calx_status *read_call_loc(cx_hlo_reader *r, const cx_hlo_loc **out)
{
  const cx_hlo_loc *caller = NULL;
  CALX_TRY(cx_hlo_scan_need(&r->scan, "("));
  CALX_TRY(read_loc_body(r, out));
  if (!cx_hlo_scan_accept_word(&r->scan, "at")) {
    return cx_hlo_scan_expected(&r->scan, "'at'");
  }
  CALX_TRY(read_loc_body(r, &caller));
  if (*out == NULL) *out = caller;
  return cx_hlo_scan_need(&r->scan, ")");
}

// named-loc ::= string ('(' location ')')? | file-loc
static calx_status *read_named_loc(cx_hlo_reader *r, const cx_hlo_loc **out)
{
  cx_hlo_str name;
  CALX_TRY(cx_hlo_scan_string(&r->scan, &r->module->arena, &name));
  if (cx_hlo_scan_peek(&r->scan) == ':') return read_file_loc(r, name, out);
  if (!cx_hlo_scan_accept(&r->scan, "(")) return NULL;
  CALX_TRY(read_loc_body(r, out));
  return cx_hlo_scan_need(&r->scan, ")");
}

// location ::= '#' alias | named-loc | call-loc | fused-loc | 'unknown'
//            | 'loc' '(' location ')'
static calx_status *read_loc_kind(cx_hlo_reader *r, const cx_hlo_loc **out)
{
  cx_hlo_scan *s = &r->scan;
  if (cx_hlo_scan_accept(s, "#")) {
    *out = alias_loc(r, cx_hlo_scan_suffix(s));
    return *out == NULL ? cx_out_of_memory() : NULL;
  }
  if (cx_hlo_scan_peek(s) == '"') return read_named_loc(r, out);
  if (cx_hlo_scan_accept_word(s, "callsite")) return read_call_loc(r, out);
  if (cx_hlo_scan_accept_word(s, "fused")) return read_fused_loc(r, out);
  if (cx_hlo_scan_accept_word(s, "unknown")) return NULL;
  if (cx_hlo_scan_accept_word(s, "loc")) return cx_hlo_read_loc(r, out);
  return cx_hlo_scan_expected(s, "a location");
}

static calx_status *read_loc_body(cx_hlo_reader *r, const cx_hlo_loc **out)
{
  *out = NULL;
  CALX_TRY(cx_hlo_reader_deeper(r));
  CALX_TRY(read_loc_kind(r, out));
  cx_hlo_reader_higher(r);
  return NULL;
}

// 'loc' '(' location ')'
calx_status *cx_hlo_read_loc(cx_hlo_reader *r, const cx_hlo_loc **out)
{
  CALX_TRY(cx_hlo_scan_need(&r->scan, "("));
  CALX_TRY(read_loc_body(r, out));
  return cx_hlo_scan_need(&r->scan, ")");
}

calx_status *cx_hlo_read_trailing_loc(cx_hlo_reader *r, const cx_hlo_loc **out)
{
  *out = NULL;
  if (!cx_hlo_scan_accept_word(&r->scan, "loc")) return NULL;
  return cx_hlo_read_loc(r, out);
}

// ---- aliases ----

static calx_status *define_loc(cx_hlo_reader *r, cx_hlo_str name)
{
  cx_hlo_loc *loc = alias_loc(r, name);
  const cx_hlo_loc *value = NULL;
  if (loc == NULL) return cx_out_of_memory();
  CALX_TRY(cx_hlo_read_loc(r, &value));
  if (value != NULL) *loc = *value;
  return NULL;
}

// Reads the definition of an alias, and measures its text and its nesting.
static calx_status *define(cx_hlo_reader *r, bool is_type, cx_hlo_str name)
{
  cx_hlo_alias *alias = CX_ARENA_NEW(&r->module->arena, cx_hlo_alias);
  if (alias == NULL) return cx_out_of_memory();
  const char *from = r->scan.at;
  const size_t expanded = r->expanded;
  r->deepest = r->depth;
  CALX_TRY(is_type ? cx_hlo_read_type(r, &alias->type)
                   : cx_hlo_read_attr(r, &alias->attr));
  alias->bytes = (size_t)(r->scan.at - from) + (r->expanded - expanded);
  alias->height = r->deepest - r->depth;
  return cx_hlo_names_add(is_type ? &r->types : &r->attrs, name, alias, 1)
             ? NULL
             : cx_out_of_memory();
}

calx_status *cx_hlo_use_alias(cx_hlo_reader *r, const cx_hlo_names *names,
                              cx_hlo_str name, const char *at,
                              const cx_hlo_alias **out)
{
  const cx_hlo_name *known = cx_hlo_names_find(names, name);
  *out = NULL;
  if (known == NULL) return NULL;
  const cx_hlo_alias *alias = known->item;
  const size_t height = r->depth + alias->height;
  r->expanded += alias->bytes;
  if (height > r->deepest) r->deepest = height;
  if (height > CX_HLO_DEEPEST) {
    return CX_HLO_FAIL(r, at, "nests deeper than %d", CX_HLO_DEEPEST);
  }
  if (r->expanded > CX_HLO_EXPANSION) {
    return CX_HLO_FAIL(r, at, "aliases stand for more than %d bytes",
                       CX_HLO_EXPANSION);
  }
  *out = alias;
  return NULL;
}

// alias ::= '#' name '=' (attribute | 'loc' '(' location ')')
//         | '!' name '=' type
calx_status *cx_hlo_read_alias(cx_hlo_reader *r)
{
  cx_hlo_scan *s = &r->scan;
  if (cx_hlo_scan_sees(s, "{-#")) return cx_hlo_skip_metadata(r);
  const bool is_type = cx_hlo_scan_accept(s, "!");
  if (!is_type) CALX_TRY(cx_hlo_scan_need(s, "#"));
  const cx_hlo_str name = cx_hlo_scan_suffix(s);
  if (name.n == 0) return cx_hlo_scan_expected(s, "an alias");
  CALX_TRY(cx_hlo_scan_need(s, "="));
  if (!is_type && cx_hlo_scan_accept_word(s, "loc")) {
    return define_loc(r, name);
  }
  return define(r, is_type, name);
}
