// hlo/print: modules, functions, operations.
#include "hlo/print.h"

#include <string.h>

#include "base/alloc.h"
#include "hlo/ops.h"

typedef struct printer {
  cx_text *out;
  bool locations;
  cx_text *bare;      // receives the text without locations; may be NULL
  size_t bare_until;  // bytes of `out` that it has, with the locations
  uint32_t *names;    // by the number of a value: its number in the text
  uint32_t next_arg;  // within the function
  uint32_t next_op;
  size_t depth;  // of indentation
} printer;

// Ends the line and indents the next.
static void newline(printer *p)
{
  static const char spaces[] = "                                ";
  cx_text_char(p->out, '\n');
  for (size_t left = 2 * p->depth; left > 0;) {
    const size_t n = left < sizeof spaces - 1 ? left : sizeof spaces - 1;
    cx_text_append_n(p->out, spaces, n);
    left -= n;
  }
}

// Copies what was printed since the last location to the text without
// locations.
static void copy_bare(printer *p)
{
  if (p->bare == NULL || cx_text_failed(p->out)) return;
  cx_text_append_n(p->bare, p->out->data + p->bare_until,
                   p->out->size - p->bare_until);
}

static void print_loc(printer *p, const cx_hlo_loc *loc)
{
  if (!p->locations || loc == NULL || loc->line == 0) return;
  copy_bare(p);
  cx_text_append_n(p->out, " loc(", 5);
  cx_hlo_string_print(p->out, loc->file);
  cx_text_char(p->out, ':');
  cx_text_int(p->out, loc->line);
  cx_text_char(p->out, ':');
  cx_text_int(p->out, loc->column);
  cx_text_char(p->out, ')');
  p->bare_until = p->out->size;
}

// ---- values ----

// %3, %3#1 of an operation with several results, %arg0
static void print_value(printer *p, const cx_hlo_value *v)
{
  if (v->op == NULL) {
    cx_text_append_n(p->out, "%arg", 4);
  } else {
    cx_text_char(p->out, '%');
  }
  cx_text_int(p->out, p->names[v->number]);
  if (v->op != NULL && v->op->n_results > 1) {
    cx_text_char(p->out, '#');
    cx_text_int(p->out, v->index);
  }
}

static void print_results(printer *p, const cx_hlo_op *op)
{
  if (op->n_results == 0) return;
  const uint32_t name = p->next_op++;
  for (uint32_t i = 0; i < op->n_results; i++) {
    p->names[op->results[i].number] = name;
  }
  cx_text_char(p->out, '%');
  cx_text_int(p->out, name);
  if (op->n_results > 1) {
    cx_text_char(p->out, ':');
    cx_text_int(p->out, op->n_results);
  }
  cx_text_append_n(p->out, " = ", 3);
}

// ---- operations ----

// <{the attributes of ops.def}>
static void print_properties(printer *p, const cx_hlo_op *op)
{
  const cx_hlo_op_info *info = cx_hlo_op_info_of(op->kind);
  bool first = true;
  for (size_t i = 0; i < info->n_attrs; i++) {
    if (op->attrs[i] == NULL) continue;
    const char *name = cx_hlo_name_info_of(info->attrs[i].id)->name;
    cx_text_append(p->out, first ? " <{" : ", ");
    first = false;
    cx_hlo_named_print(p->out, (cx_hlo_str){ name, strlen(name) },
                       op->attrs[i]);
  }
  if (!first) cx_text_append_n(p->out, "}>", 2);
}

static void print_dict(printer *p, cx_hlo_named_list list)
{
  if (list.n == 0) return;
  cx_text_char(p->out, ' ');
  cx_hlo_dict_print(p->out, list.items, list.n);
}

// : (operand types) -> result types
static void print_signature(printer *p, const cx_hlo_op *op)
{
  cx_text *out = p->out;
  cx_text_append_n(out, " : (", 4);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (i != 0) cx_text_append_n(out, ", ", 2);
    cx_hlo_any_print(out, &op->operands[i]->type);
  }
  const cx_hlo_non_tensor *non_tensor =
      op->n_results == 1 ? op->results[0].type.non_tensor : NULL;
  const bool bare =
      op->n_results == 1 &&
      (non_tensor == NULL || non_tensor->kind != CX_HLO_NON_TENSOR_FUNCTION);
  cx_text_append(out, bare ? ") -> " : ") -> (");
  for (uint32_t i = 0; i < op->n_results; i++) {
    if (i != 0) cx_text_append_n(out, ", ", 2);
    cx_hlo_any_print(out, &op->results[i].type);
  }
  if (!bare) cx_text_char(out, ')');
}

static void print_region(printer *p, const cx_hlo_region *region);

static void print_op(printer *p, const cx_hlo_op *op)
{
  newline(p);
  print_results(p, op);
  if (op->kind == CX_HLO_OP_OTHER) {
    cx_hlo_string_print(p->out, op->name);
  } else {
    cx_text_char(p->out, '"');
    cx_text_append(p->out, cx_hlo_op_info_of(op->kind)->name);
    cx_text_char(p->out, '"');
  }
  cx_text_char(p->out, '(');
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (i != 0) cx_text_append_n(p->out, ", ", 2);
    print_value(p, op->operands[i]);
  }
  cx_text_char(p->out, ')');
  print_properties(p, op);
  if (op->n_regions != 0) {
    cx_text_append_n(p->out, " (", 2);
    for (uint32_t i = 0; i < op->n_regions; i++) {
      if (i != 0) cx_text_append_n(p->out, ", ", 2);
      print_region(p, &op->regions[i]);
    }
    cx_text_char(p->out, ')');
  }
  print_dict(p, (cx_hlo_named_list){ op->extra, op->n_extra });
  print_signature(p, op);
  print_loc(p, op->loc);
}

// ^bb0(%arg0: type, …):
static void print_label(printer *p, const cx_hlo_block *block, uint32_t number)
{
  newline(p);
  cx_text_append_n(p->out, "^bb", 3);
  cx_text_int(p->out, number);
  for (size_t i = 0; i < block->n_args; i++) {
    const cx_hlo_value *arg = &block->args[i];
    p->names[arg->number] = p->next_arg++;
    cx_text_append(p->out, i == 0 ? "(" : ", ");
    print_value(p, arg);
    cx_text_append_n(p->out, ": ", 2);
    cx_hlo_any_print(p->out, &arg->type);
  }
  cx_text_append(p->out, block->n_args == 0 ? ":" : "):");
}

// {blocks}. The first block needs no label where it has no arguments. An empty
// block has a label, because it would not be read without one.
static void print_region(printer *p, const cx_hlo_region *region)
{
  cx_text_char(p->out, '{');
  uint32_t number = 0;
  for (const cx_hlo_block *b = region->first; b != NULL; b = b->next) {
    if (b->n_args != 0 || number != 0 || b->first == NULL) {
      print_label(p, b, number);
    }
    number++;
    p->depth++;
    for (const cx_hlo_op *op = b->first; op != NULL; op = op->next) {
      print_op(p, op);
    }
    p->depth--;
  }
  newline(p);
  cx_text_char(p->out, '}');
}

// ---- functions and the module ----

static void print_attr_lists(printer *p, const char *name,
                             const cx_hlo_named_list *lists, size_t n)
{
  if (lists == NULL) return;
  cx_text_append(p->out, name);
  cx_text_append_n(p->out, " = [", 4);
  for (size_t i = 0; i < n; i++) {
    if (i != 0) cx_text_append_n(p->out, ", ", 2);
    cx_hlo_dict_print(p->out, lists[i].items, lists[i].n);
  }
  cx_text_append_n(p->out, "], ", 3);
}

static void print_func(printer *p, const cx_hlo_func *f)
{
  p->next_arg = 0;
  p->next_op = 0;
  newline(p);
  cx_text_append(p->out, "\"func.func\"() <{");
  print_attr_lists(p, "arg_attrs", f->param_attrs, f->n_params);
  cx_text_append(p->out, "function_type = ");
  cx_hlo_function_print(p->out, f->params, f->n_params, f->results,
                        f->n_results);
  cx_text_append_n(p->out, ", ", 2);
  print_attr_lists(p, "res_attrs", f->result_attrs, f->n_results);
  cx_text_append(p->out, "sym_name = ");
  cx_hlo_string_print(p->out, f->name);
  if (f->visibility.n != 0) {
    cx_text_append(p->out, ", sym_visibility = ");
    cx_hlo_string_print(p->out, f->visibility);
  }
  cx_text_append_n(p->out, "}> (", 4);
  print_region(p, &f->body);
  cx_text_char(p->out, ')');
  print_dict(p, f->attrs);
  cx_text_append_n(p->out, " : () -> ()", 11);
  print_loc(p, f->loc);
}

static void print_module(printer *p, const cx_hlo_module *m)
{
  cx_text_append(p->out, "\"builtin.module\"()");
  if (m->name.n != 0) {
    cx_text_append(p->out, " <{sym_name = ");
    cx_hlo_string_print(p->out, m->name);
    cx_text_append_n(p->out, "}>", 2);
  }
  cx_text_append_n(p->out, " ({", 3);
  p->depth++;
  for (const cx_hlo_op *op = m->others.first; op != NULL; op = op->next) {
    print_op(p, op);
  }
  for (const cx_hlo_func *f = m->first; f != NULL; f = f->next) {
    print_func(p, f);
  }
  p->depth--;
  newline(p);
  cx_text_append_n(p->out, "})", 2);
  print_dict(p, m->attrs);
  cx_text_append_n(p->out, " : () -> ()", 11);
  print_loc(p, m->loc);
  cx_text_char(p->out, '\n');
}

void cx_hlo_print_with(const cx_hlo_module *m,
                       const cx_hlo_print_options *options, cx_text *out)
{
  printer p = { .out = out,
                .locations = !options->no_locations,
                .bare = options->without_locations,
                .bare_until = out->size };
  p.names = cx_calloc((size_t)m->n_values + 1, sizeof *p.names);
  if (p.names == NULL) {
    out->failed = true;
    return;
  }
  print_module(&p, m);
  copy_bare(&p);
  out->failed |= p.bare != NULL && cx_text_failed(p.bare);
  cx_free(p.names);
}

void cx_hlo_print(const cx_hlo_module *m, cx_text *out)
{
  cx_hlo_print_with(m, &(cx_hlo_print_options){ 0 }, out);
}
