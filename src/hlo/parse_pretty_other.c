// hlo/parse: pretty forms of dialects that ops.def does not know.
//
// These are Shardy's, which sharded programs have (github.com/openxla/shardy),
// and those of the check dialect, which StableHLO's tests have. They become
// attributes with the names and spellings of the generic form.
#include <string.h>

#include "hlo/pretty.h"

// ---- check ----

// item ::= use | word '=' number | literal, which is the attribute `value`
static calx_status *read_check_item(cx_hlo_reader *r)
{
  cx_hlo_scan *s = &r->scan;
  const cx_hlo_attr *attr = NULL;
  cx_hlo_str word = { NULL, 0 };
  if (cx_hlo_scan_peek(s) == '%') return cx_hlo_read_use(r);
  if (cx_hlo_scan_sees(s, "dense")) {
    CALX_TRY(cx_hlo_read_attr(r, &attr));
    return cx_hlo_push_named(r, "value", attr);
  }
  if (!cx_hlo_scan_word(s, &word)) return cx_hlo_scan_expected(s, "a value");
  cx_hlo_str name;
  CALX_TRY(cx_hlo_reader_str(r, word.s, word.n, &name));
  CALX_TRY(cx_hlo_scan_need(s, "="));
  CALX_TRY(cx_hlo_read_number(r, false, &attr));
  return cx_hlo_push_named(r, name.s, attr);
}

// check ::= item (',' item)* dict? (':' type (',' type)*)?
// The types are those of the operands, which are known.
static calx_status *read_check(cx_hlo_reader *r, cx_hlo_parts *p)
{
  cx_hlo_scan *s = &r->scan;
  do {
    CALX_TRY(read_check_item(r));
  } while (cx_hlo_scan_accept(s, ","));
  CALX_TRY(cx_hlo_read_optional_dict(r));
  if (cx_hlo_scan_accept(s, ":")) {
    do {
      cx_hlo_any ignored;
      CALX_TRY(cx_hlo_read_type(r, &ignored));
    } while (cx_hlo_scan_accept(s, ","));
  }
  return cx_hlo_pretty_known_types(r, p);
}

// ---- sdy ----

// Pushes the text of a bracket, between a prefix and a suffix.
static calx_status *push_text(cx_hlo_reader *r, const char *name,
                              const char *prefix, const char *suffix)
{
  const char *from = cx_hlo_scan_here(&r->scan);
  CALX_TRY(cx_hlo_scan_balanced(&r->scan));
  const size_t n = (size_t)(r->scan.at - from);
  const size_t before = strlen(prefix);
  const size_t after = strlen(suffix);
  cx_hlo_attr *attr = cx_hlo_attr_new(r->module, CX_HLO_ATTR_TEXT);
  char *text = cx_arena_alloc(&r->module->arena, before + n + after + 1);
  if (attr == NULL || text == NULL) return cx_out_of_memory();
  memcpy(text, prefix, before);
  memcpy(text + before, from, n);
  memcpy(text + before + n, suffix, after);
  attr->as.text = (cx_hlo_str){ text, before + n + after };
  return cx_hlo_push_named(r, name, attr);
}

// mesh ::= '@' name '=' '<' … '>' dict?
static calx_status *read_mesh(cx_hlo_reader *r, cx_hlo_parts *p)
{
  cx_hlo_attr *name = cx_hlo_attr_new(r->module, CX_HLO_ATTR_STRING);
  (void)p;
  if (name == NULL) return cx_out_of_memory();
  CALX_TRY(cx_hlo_read_symbol_name(r, &name->as.text));
  CALX_TRY(cx_hlo_scan_need(&r->scan, "="));
  CALX_TRY(push_text(r, "mesh", "#sdy.mesh", ""));
  CALX_TRY(cx_hlo_push_named(r, "sym_name", name));
  return cx_hlo_read_optional_dict(r);
}

// sharding_constraint ::= use sharding dict? ':' type
static calx_status *read_constraint(cx_hlo_reader *r, cx_hlo_parts *p)
{
  CALX_TRY(cx_hlo_read_use(r));
  CALX_TRY(push_text(r, "sharding", "#sdy.sharding", ""));
  CALX_TRY(cx_hlo_read_optional_dict(r));
  return cx_hlo_pretty_types(r, p, CX_HLO_TYPES_SAME);
}

// manual_computation ::= uses 'in_shardings' '=' list 'out_shardings' '=' list
//                        'manual_axes' '=' set args region dict? ':' function
static calx_status *read_manual(cx_hlo_reader *r, cx_hlo_parts *p)
{
  const size_t groups = r->group_stack.n;
  const size_t types = r->any_stack.n;
  CALX_TRY(cx_hlo_read_uses(r));
  CALX_TRY(cx_hlo_pretty_word(r, "in_shardings"));
  CALX_TRY(push_text(r, "in_shardings", "#sdy.sharding_per_value<", ">"));
  CALX_TRY(cx_hlo_pretty_word(r, "out_shardings"));
  CALX_TRY(push_text(r, "out_shardings", "#sdy.sharding_per_value<", ">"));
  CALX_TRY(cx_hlo_pretty_word(r, "manual_axes"));
  CALX_TRY(push_text(r, "manual_axes", "#sdy<manual_axes", ">"));
  CALX_TRY(cx_hlo_read_args(r));
  const cx_hlo_block_args args = { groups, types, r->group_stack.n - groups };
  CALX_TRY(cx_hlo_read_region(r, p, &args));
  r->group_stack.n = groups;
  r->any_stack.n = types;
  CALX_TRY(cx_hlo_read_optional_dict(r));
  return cx_hlo_pretty_types(r, p, CX_HLO_TYPES_ALL);
}

// return ::= (use (',' use)* dict? ':' types)?
static calx_status *read_return(cx_hlo_reader *r, cx_hlo_parts *p)
{
  CALX_TRY(cx_hlo_read_bare_uses(r));
  CALX_TRY(cx_hlo_read_optional_dict(r));
  return cx_hlo_pretty_types(r, p, CX_HLO_TYPES_OPERANDS);
}

// ---- func ----

// constant ::= dict? '@' function ':' type
static calx_status *read_constant(cx_hlo_reader *r, cx_hlo_parts *p)
{
  cx_hlo_attr *value = cx_hlo_attr_new(r->module, CX_HLO_ATTR_SYMBOL);
  if (value == NULL) return cx_out_of_memory();
  CALX_TRY(cx_hlo_read_optional_dict(r));
  CALX_TRY(cx_hlo_read_symbol_name(r, &value->as.text));
  CALX_TRY(cx_hlo_push_named(r, "value", value));
  CALX_TRY(cx_hlo_scan_need(&r->scan, ":"));
  p->n_inputs = 0;
  return cx_hlo_read_pushed_type(r);
}

// ---- the whole ----

calx_status *cx_hlo_read_other(cx_hlo_reader *r, cx_hlo_parts *p)
{
  static const struct {
    const char *name;
    cx_hlo_pretty_fn *read;
  } known[] = {
    { "sdy.mesh", read_mesh },
    { "sdy.sharding_constraint", read_constraint },
    { "sdy.reshard", read_constraint },
    { "sdy.manual_computation", read_manual },
    { "sdy.return", read_return },
    { "func.constant", read_constant },
  };
  if (cx_hlo_str_equal(p->name, "func.func") ||
      cx_hlo_str_equal(p->name, "module") ||
      cx_hlo_str_equal(p->name, "builtin.module")) {
    return CX_HLO_FAIL(r, p->at, "%.*s stands inside of an operation",
                       (int)p->name.n, p->name.s);
  }
  CALX_TRY(cx_hlo_reader_str(r, p->name.s, p->name.n, &p->name));
  if (p->name.n > 6 && memcmp(p->name.s, "check.", 6) == 0) {
    return read_check(r, p);
  }
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (cx_hlo_str_equal(p->name, known[i].name)) return known[i].read(r, p);
  }
  return cx_hlo_scan_fail(&r->scan, p->at, CALX_UNIMPLEMENTED,
                          "'%.*s' is no operation of StableHLO; others are "
                          "read in generic form only: \"dialect.name\"(…)",
                          (int)p->name.n, p->name.s);
}
