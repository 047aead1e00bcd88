// hlo/bytecode: writes operations, blocks and regions. bytecode_program.c tells
// how values are numbered; here only the module and its functions are isolated.
//
// Operations of other dialects than VHLO work on builtin types, so casts stand
// before and behind them. The reader drops them.
#include <string.h>

#include "hlo/bytecode_writer.h"

#define CAST "unrealized_conversion_cast"

static void put_region(cx_hlo_bytecode_writer *w, const cx_hlo_region *region,
                       size_t base, bool is_other);

// The operation whose parts follow.
static void put_head(cx_hlo_bytecode_writer *w, size_t dialect,
                     const char *name, size_t n, unsigned has,
                     const cx_hlo_loc *loc)
{
  cx_hlo_write_number(
      w, cx_hlo_pool_add(w, &w->op_names, (uint32_t)dialect, name, n));
  cx_text_char(&w->out, (char)has);
  cx_hlo_write_number(w, cx_hlo_write_loc(w, loc));
}

static bool is_other(const cx_hlo_op *op)
{
  return op->kind == CX_HLO_OP_OTHER ||
         strncmp(cx_hlo_op_info_of(op->kind)->name, "chlo.", 5) == 0;
}

// ---- values ----

// Arguments, results, and the values of the casts.
static size_t count_block_values(const cx_hlo_block *block, bool in_other)
{
  size_t n = block->n_args * (in_other ? 2 : 1);
  for (const cx_hlo_op *op = block->first; op != NULL; op = op->next) {
    n += op->n_results;
    if (is_other(op)) n += op->n_operands + op->n_results;
  }
  return n;
}

static size_t count_values(const cx_hlo_region *region, bool in_other)
{
  size_t n = 0;
  for (const cx_hlo_block *b = region->first; b != NULL; b = b->next) {
    n += count_block_values(b, in_other);
  }
  return n;
}

static size_t count_ops(const cx_hlo_block *block, bool in_other)
{
  size_t n = in_other && block->n_args != 0;
  for (const cx_hlo_op *op = block->first; op != NULL; op = op->next) {
    n++;
    if (!is_other(op)) continue;
    n += (size_t)(op->n_operands != 0) + (op->n_results != 0);
  }
  return n;
}

// results and operands of an operation, from its head on
static void put_types(cx_hlo_bytecode_writer *w, const cx_hlo_value *results,
                      size_t n, bool vhlo)
{
  if (n == 0) return;
  cx_hlo_write_number(w, n);
  for (size_t i = 0; i < n; i++) {
    cx_hlo_write_number(w, cx_hlo_write_type(w, &results[i].type, vhlo));
  }
}

// Casts of an operation's operands, which become builtin values `next` and on.
static void put_operand_cast(cx_hlo_bytecode_writer *w, const cx_hlo_op *op,
                             size_t *next)
{
  const size_t n = op->n_operands;
  if (n == 0) return;
  put_head(w, CX_HLO_WRITES_BUILTIN, CAST, strlen(CAST),
           CX_HLO_HAS_RESULTS | CX_HLO_HAS_OPERANDS, NULL);
  cx_hlo_write_number(w, n);
  for (size_t i = 0; i < n; i++) {
    cx_hlo_write_number(w, cx_hlo_write_type(w, &op->operands[i]->type, false));
  }
  cx_hlo_write_number(w, n);
  for (size_t i = 0; i < n; i++) {
    const size_t v = op->operands[i]->number;
    cx_hlo_write_number(w, w->vhlo_values[v]);
  }
  for (size_t i = 0; i < n; i++) {
    w->builtin_values[op->operands[i]->number] = (*next)++;
  }
}

// Casts of values with builtin types to VHLO's.
static void put_value_cast(cx_hlo_bytecode_writer *w, const cx_hlo_value *v,
                           size_t n, size_t *next)
{
  if (n == 0) return;
  put_head(w, CX_HLO_WRITES_BUILTIN, CAST, strlen(CAST),
           CX_HLO_HAS_RESULTS | CX_HLO_HAS_OPERANDS, NULL);
  put_types(w, v, n, true);
  cx_hlo_write_number(w, n);
  for (size_t i = 0; i < n; i++) {
    cx_hlo_write_number(w, w->builtin_values[v[i].number]);
  }
  for (size_t i = 0; i < n; i++) w->vhlo_values[v[i].number] = (*next)++;
}

// ---- operations ----

// regions ::= (number << 1 | isolated) region*
static void put_regions(cx_hlo_bytecode_writer *w, const cx_hlo_op *op,
                        size_t base, bool in_other)
{
  if (op->n_regions == 0) return;
  cx_hlo_write_number(w, (uint64_t)op->n_regions << 1);
  for (uint32_t i = 0; i < op->n_regions; i++) {
    put_region(w, &op->regions[i], base, in_other);
  }
}

static unsigned parts_of(const cx_hlo_op *op)
{
  return (op->n_results != 0 ? CX_HLO_HAS_RESULTS : 0u) |
         (op->n_operands != 0 ? CX_HLO_HAS_OPERANDS : 0u) |
         (op->n_regions != 0 ? CX_HLO_HAS_REGIONS : 0u);
}

static void put_operands(cx_hlo_bytecode_writer *w, const cx_hlo_op *op,
                         const size_t *numbers)
{
  if (op->n_operands == 0) return;
  cx_hlo_write_number(w, op->n_operands);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    cx_hlo_write_number(w, numbers[op->operands[i]->number]);
  }
}

// "stablehlo.add" is vhlo.add_v1.
static void put_vhlo(cx_hlo_bytecode_writer *w, const cx_hlo_op *op,
                     size_t *next, size_t base)
{
  char name[80];
  const unsigned version = cx_hlo_vhlo_version(op);
  const cx_hlo_property_list *list = cx_hlo_write_list(w, op->kind, version);
  const int n =
      snprintf(name, sizeof name, "%s_v%u", cx_hlo_op_short(op->kind), version);
  put_head(w, CX_HLO_WRITES_VHLO, name, (size_t)n,
           parts_of(op) | (op->n_extra != 0 ? CX_HLO_HAS_ATTRS : 0u) |
               (list->n != 0 ? CX_HLO_HAS_PROPERTIES : 0u),
           op->loc);
  if (op->n_extra != 0) {
    cx_hlo_write_number(
        w, cx_hlo_write_dict(w, op->extra, op->n_extra, false, true));
  }
  if (list->n != 0) {
    cx_hlo_write_number(w, cx_hlo_write_properties(w, op, list));
  }
  put_types(w, op->results, op->n_results, true);
  put_operands(w, op, w->vhlo_values);
  for (uint32_t i = 0; i < op->n_results; i++) {
    w->vhlo_values[op->results[i].number] = (*next)++;
  }
  put_regions(w, op, base, false);
}

// All attributes of another dialect's operation, those of ops.def first.
static bool put_other_attrs(cx_hlo_bytecode_writer *w, const cx_hlo_op *op)
{
  const cx_hlo_op_info *info = cx_hlo_op_info_of(op->kind);
  cx_hlo_named items[CX_HLO_MOST_PROPERTIES];
  size_t n = 0;
  for (size_t i = 0; i < info->n_attrs; i++) {
    const char *name = cx_hlo_name_info_of(info->attrs[i].id)->name;
    if (op->attrs[i] == NULL) continue;
    items[n++] = (cx_hlo_named){ { name, strlen(name) }, op->attrs[i] };
  }
  if (n == 0) {
    cx_hlo_write_number(
        w, cx_hlo_write_dict(w, op->extra, op->n_extra, false, false));
    return true;
  }
  for (uint32_t i = 0; i < op->n_extra; i++) {
    if (n == CX_HLO_MOST_PROPERTIES) return false;
    items[n++] = op->extra[i];
  }
  cx_hlo_write_number(w, cx_hlo_write_dict(w, items, n, false, false));
  return true;
}

static bool has_attrs(const cx_hlo_op *op)
{
  const size_t n = cx_hlo_op_info_of(op->kind)->n_attrs;
  bool any = op->n_extra != 0;
  for (size_t i = 0; i < n; i++) any |= op->attrs[i] != NULL;
  return any;
}

// Where the name of the dialect ends; NULL: bytecode cannot have the operation.
static const char *find_dot(const cx_hlo_op *op, cx_hlo_str name)
{
  const char *dot = name.n == 0 ? NULL : memchr(name.s, '.', name.n);
  if (dot == NULL || dot == name.s) return NULL;
  if (memchr(name.s, '\0', name.n) != NULL) return NULL;
  if (dot - name.s == 4 && memcmp(name.s, "vhlo", 4) == 0) return NULL;
  if (!cx_hlo_str_equal(name, "builtin." CAST)) return dot;
  bool same = op->n_operands == op->n_results && op->n_regions == 0;
  for (uint32_t i = 0; same && i < op->n_results; i++) {
    same = cx_hlo_any_equal(&op->operands[i]->type, &op->results[i].type);
  }
  return same ? dot : NULL;
}

static void put_other(cx_hlo_bytecode_writer *w, const cx_hlo_op *op,
                      size_t *next, size_t base)
{
  const char *known = cx_hlo_op_info_of(op->kind)->name;
  const cx_hlo_str name = op->kind == CX_HLO_OP_OTHER
                              ? op->name
                              : (cx_hlo_str){ known, strlen(known) };
  const char *dot = find_dot(op, name);
  if (dot == NULL) {
    CX_HLO_WRITE_FAIL(w, CALX_UNIMPLEMENTED,
                      "bytecode: has no operation '%.*s' between others of "
                      "StableHLO",
                      (int)name.n, name.s);
    return;
  }
  put_operand_cast(w, op, next);
  put_head(w, cx_hlo_write_dialect(w, name.s, (size_t)(dot - name.s)), dot + 1,
           name.n - (size_t)(dot + 1 - name.s),
           parts_of(op) | (has_attrs(op) ? CX_HLO_HAS_ATTRS : 0u), op->loc);
  w->in_chlo = dot - name.s == 4 && memcmp(name.s, "chlo", 4) == 0;
  const bool fits = !has_attrs(op) || put_other_attrs(w, op);
  w->in_chlo = false;
  if (!fits) {
    CX_HLO_WRITE_FAIL(w, CALX_UNIMPLEMENTED,
                      "bytecode: '%.*s' has more than %d attributes",
                      (int)name.n, name.s, CX_HLO_MOST_PROPERTIES);
  }
  put_types(w, op->results, op->n_results, false);
  put_operands(w, op, w->builtin_values);
  for (uint32_t i = 0; i < op->n_results; i++) {
    w->builtin_values[op->results[i].number] = (*next)++;
  }
  put_regions(w, op, base, true);
  put_value_cast(w, op->results, op->n_results, next);
}

// ---- blocks ----

static void put_ops(cx_hlo_bytecode_writer *w, const cx_hlo_block *block,
                    size_t *next, size_t base)
{
  for (const cx_hlo_op *op = block->first; op != NULL; op = op->next) {
    if (is_other(op)) {
      put_other(w, op, next, base);
    } else {
      put_vhlo(w, op, next, base);
    }
  }
}

// block ::= (operations << 1 | has arguments) arguments? operation*
static void put_block(cx_hlo_bytecode_writer *w, const cx_hlo_block *block,
                      size_t *next, size_t base, bool in_other)
{
  size_t *numbers = in_other ? w->builtin_values : w->vhlo_values;
  cx_hlo_write_number(
      w, (uint64_t)count_ops(block, in_other) << 1 | (block->n_args != 0));
  if (block->n_args != 0) {
    cx_hlo_write_number(w, block->n_args);
    for (size_t i = 0; i < block->n_args; i++) {
      const cx_hlo_value *arg = &block->args[i];
      cx_hlo_write_number(w, cx_hlo_write_type(w, &arg->type, !in_other) << 1);
      numbers[arg->number] = (*next)++;
    }
    cx_text_char(&w->out, 0);  // no orders of uses
  }
  if (in_other) put_value_cast(w, block->args, block->n_args, next);
  put_ops(w, block, next, base);
}

// region ::= blocks (values block*)?; its values have the numbers from `base`
// on, those of regions inside of it follow.
static void put_region(cx_hlo_bytecode_writer *w, const cx_hlo_region *region,
                       size_t base, bool in_other)
{
  size_t blocks = 0, next = base;
  for (const cx_hlo_block *b = region->first; b != NULL; b = b->next) blocks++;
  cx_hlo_write_number(w, blocks);
  if (blocks == 0) return;
  const size_t n = count_values(region, in_other);
  cx_hlo_write_number(w, n);
  for (const cx_hlo_block *b = region->first; b != NULL; b = b->next) {
    put_block(w, b, &next, base + n, in_other);
  }
}

// ---- functions and the module ----

enum { ONE_ISOLATED_REGION = 1 << 1 | 1 };

static void put_func(cx_hlo_bytecode_writer *w, const cx_hlo_func *f)
{
  static const char name[] = "func_v1";
  put_head(w, CX_HLO_WRITES_VHLO, name, sizeof name - 1,
           CX_HLO_HAS_REGIONS | CX_HLO_HAS_PROPERTIES |
               (f->attrs.n != 0 ? CX_HLO_HAS_ATTRS : 0u),
           f->loc);
  if (f->attrs.n != 0) {
    cx_hlo_write_number(
        w, cx_hlo_write_dict(w, f->attrs.items, f->attrs.n, false, true));
  }
  cx_hlo_write_number(w, cx_hlo_write_func_properties(w, f));
  cx_hlo_write_number(w, ONE_ISOLATED_REGION);
  const size_t mark = w->out.size;
  put_region(w, &f->body, 0, false);
  cx_hlo_write_section(w, mark, CX_HLO_SECTION_PROGRAM);
}

// The module's operations: one block, whose values are those of operations
// beside the functions.
static void put_tops(cx_hlo_bytecode_writer *w, const cx_hlo_module *m)
{
  const cx_hlo_block *others = &m->others;
  const size_t n = count_block_values(others, false);
  size_t next = 0;
  cx_hlo_write_number(w, 1);
  cx_hlo_write_number(w, n);
  cx_hlo_write_number(w, (count_ops(others, false) + m->n_funcs) << 1);
  put_ops(w, others, &next, n);
  for (const cx_hlo_func *f = m->first; f != NULL; f = f->next) put_func(w, f);
}

// The module's properties: its name and visibility, each of which may be
// absent.
static size_t write_name(cx_hlo_bytecode_writer *w, cx_hlo_str name)
{
  const size_t mark = w->out.size;
  size_t text = 0;
  if (name.n != 0) {
    cx_hlo_write_number(w, CX_HLO_BUILTIN_STRING);
    cx_hlo_write_number(w, cx_hlo_write_string(w, name));
    text = cx_hlo_write_entry(w, &w->attrs, CX_HLO_WRITES_BUILTIN, mark);
  }
  cx_hlo_write_number(w, name.n == 0 ? 0 : text << 1 | 1);
  cx_hlo_write_number(w, 0);
  return cx_hlo_write_entry(w, &w->properties, 0, mark);
}

void cx_hlo_write_program(cx_hlo_bytecode_writer *w, const cx_hlo_module *m)
{
  static const char name[] = "module";
  cx_hlo_write_number(w, 1 << 1);
  put_head(w, CX_HLO_WRITES_BUILTIN, name, sizeof name - 1,
           CX_HLO_HAS_REGIONS | CX_HLO_HAS_PROPERTIES |
               (m->attrs.n != 0 ? CX_HLO_HAS_ATTRS : 0u),
           m->loc);
  if (m->attrs.n != 0) {
    cx_hlo_write_number(
        w, cx_hlo_write_dict(w, m->attrs.items, m->attrs.n, false, false));
  }
  cx_hlo_write_number(w, write_name(w, m->name));
  cx_hlo_write_number(w, ONE_ISOLATED_REGION);
  const size_t mark = w->out.size;
  put_tops(w, m);
  cx_hlo_write_section(w, mark, CX_HLO_SECTION_PROGRAM);
}
