// lapack/describe: checks a custom call against its target's row.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "lapack/inner.h"

// ---- names ------------------------------------------------------------------

// Whether the name is the row's, and of which type: 0 for a name without one.
static bool names_target(cx_hlo_str name, const cpu_lapack_target *t,
                         char *out_type)
{
  *out_type = '\0';
  if (strlen(t->name) != name.n) return false;
  for (size_t i = 0; i < name.n; i++) {
    if (t->name[i] != '?') {
      if (t->name[i] != name.s[i]) return false;
      continue;
    }
    if (name.s[i] == '\0' || strchr(t->types, name.s[i]) == NULL) return false;
    *out_type = name.s[i];
  }
  return true;
}

static calx_status *unknown(cx_hlo_str name)
{
  cx_text all = { 0 };
  for (size_t i = 0; i < cpu_lapack_n_targets; i++) {
    const cpu_lapack_target *t = &cpu_lapack_targets[i];
    if (i > 0 && strcmp(t->name, t[-1].name) == 0) continue;
    cx_text_format(&all, "%s%s", i == 0 ? "" : ", ", t->name);
  }
  calx_status *status =
      cx_error(CALX_UNIMPLEMENTED,
               "custom_call: there is no target '%.*s': no function is "
               "registered for it, and the CPU engine has %s, "
               "where ? is s, d, c or z",
               (int)name.n, name.s, cx_text_str(&all));
  cx_text_free(&all);
  return status;
}

// The row of the name whose types have the first operand's.
static calx_status *find(const cx_hlo_op *op, cx_hlo_str name,
                         cpu_lapack_desc *out)
{
  bool named = false;
  out->type = op->n_operands == 0 ? CX_HLO_INVALID
                                  : (int64_t)op->operands[0]->type.tensor.elem;
  const char found = cpu_lapack_type_letter((cx_hlo_elem)out->type);
  for (size_t i = 0; i < cpu_lapack_n_targets; i++) {
    char asked;
    if (!names_target(name, &cpu_lapack_targets[i], &asked)) continue;
    named = true;
    if (found == '\0' || strchr(cpu_lapack_targets[i].types, found) == NULL ||
        (asked != '\0' && asked != found)) {
      continue;
    }
    out->target = (int64_t)i;
    return NULL;
  }
  if (!named) return unknown(name);
  return cx_invalid(
      "custom_call '%.*s': operand 0 must have the target's element type, got "
      "%s",
      (int)name.n, name.s,
      op->n_operands == 0 ? "none"
                          : cx_hlo_shape(&op->operands[0]->type.tensor).s);
}

// ---- shapes -----------------------------------------------------------------

// A call that is checked.
typedef struct checked {
  const cx_hlo_op *op;
  cx_hlo_str name;
  const cpu_lapack_target *t;
  cpu_lapack_desc *d;
  bool known[CPU_LAPACK_LETTERS];
  size_t batch_rank;
} checked;

static bool fits_size(checked *c, char letter, int64_t size)
{
  const int at = cpu_lapack_letter(letter);
  if (at >= 0 && !c->known[at]) {
    c->known[at] = true;
    c->d->sizes[at] = size;
    return true;
  }
  return cpu_lapack_size(c->d, letter) == size;
}

static bool fits(checked *c, const cx_hlo_any *type, const cpu_lapack_shape *s)
{
  const cx_hlo_type *t = &type->tensor;
  const cx_hlo_type *first = &c->op->operands[0]->type.tensor;
  if (type->non_tensor != NULL || t->rank != c->batch_rank + s->rank ||
      t->elem != cpu_lapack_elem((cx_hlo_elem)c->d->type, s->type)) {
    return false;
  }
  for (size_t i = 0; i < c->batch_rank; i++) {
    if (t->dims[i] < 0 || t->dims[i] != first->dims[i]) return false;
  }
  for (size_t i = 0; i < s->rank; i++) {
    const int64_t size = t->dims[c->batch_rank + i];
    if (size < 0 || !fits_size(c, s->letter[i], size)) return false;
  }
  return true;
}

// "[1, 2, 0]": the last but one dimension is the fastest, for two dimensions
// at least; else the last one.
static bool is_column_major(const cx_hlo_attr *layout, size_t rank,
                            size_t matrix_rank)
{
  if (layout->kind != CX_HLO_ATTR_ELEMENTS) return false;
  const cx_hlo_elements *e = &layout->as.elements;
  const cx_hlo_type *t = &e->type.tensor;
  if (t->rank != 1 || t->dims[0] != (int64_t)rank) return false;
  for (size_t i = 0; i < rank; i++) {
    int64_t want = (int64_t)(rank - 1 - i);
    if (matrix_rank == 2 && i < 2) want = (int64_t)(rank - 2 + i);
    if (cx_hlo_elements_int(e, i) != want) return false;
  }
  return true;
}

static calx_status *check_layout(const checked *c, const cx_hlo_attr *layouts,
                                 const char *what, size_t i, size_t rank,
                                 size_t matrix_rank)
{
  // With fewer than two dimensions there is one layout.
  if (layouts == NULL && (c->t->layout_optional || matrix_rank < 2)) {
    return NULL;
  }
  if (layouts != NULL && layouts->kind == CX_HLO_ATTR_LIST &&
      i < layouts->as.list.n &&
      is_column_major(layouts->as.list.items[i], rank, matrix_rank)) {
    return NULL;
  }
  return cx_invalid(
      "custom_call '%.*s': %s %zu must have a column-major "
      "layout (its last but one dimension first, in "
      "operand_layouts and result_layouts)",
      (int)c->name.n, c->name.s, what, i);
}

static calx_status *check_side(checked *c, bool results)
{
  const char *text = results ? c->t->results : c->t->operands;
  const char *what = results ? "result" : "operand";
  const size_t n = results ? c->op->n_results : c->op->n_operands;
  const cx_hlo_attr *layouts = cx_hlo_op_attr(
      c->op, results ? CX_HLO_A_RESULT_LAYOUTS : CX_HLO_A_OPERAND_LAYOUTS);
  cpu_lapack_shape s;
  size_t i = 0;
  for (; i < n && cpu_lapack_next_shape(&text, &s); i++) {
    const cx_hlo_any *type =
        results ? &c->op->results[i].type : &c->op->operands[i]->type;
    if (!fits(c, type, &s)) {
      return cx_invalid(
          "custom_call '%.*s': %s %zu of type %s does not have the target's "
          "shape where operand 0 is %s",
          (int)c->name.n, c->name.s, what, i, cx_hlo_shape(&type->tensor).s,
          cx_hlo_shape(&c->op->operands[0]->type.tensor).s);
    }
    CALX_TRY(check_layout(c, layouts, what, i, type->tensor.rank, s.rank));
  }
  size_t wanted = i;
  while (cpu_lapack_next_shape(&text, &s)) wanted++;
  if (wanted == n) return NULL;
  return cx_invalid("custom_call '%.*s': has %zu %ss, found %zu",
                    (int)c->name.n, c->name.s, wanted, what, n);
}

// ---- attributes -------------------------------------------------------------

// JAX's dictionary is mhlo.backend_config; StableHLO's is backend_config.
static const cx_hlo_attr *config_of(const cx_hlo_op *op)
{
  const cx_hlo_attr *config = cx_hlo_op_attr(op, CX_HLO_A_BACKEND_CONFIG);
  if (config != NULL && config->kind == CX_HLO_ATTR_DICT) return config;
  config = cx_hlo_named_attr(op->extra, op->n_extra, "mhlo.backend_config");
  return config != NULL && config->kind == CX_HLO_ATTR_DICT ? config : NULL;
}

static calx_status *read_flags(checked *c)
{
  const cx_hlo_attr *config = config_of(c->op);
  for (size_t i = 0; i < CPU_LAPACK_FLAGS && c->t->flags[i].name != NULL; i++) {
    const cpu_lapack_flag *f = &c->t->flags[i];
    const cx_hlo_attr *attr =
        config == NULL ? NULL
                       : cx_hlo_named_attr(config->as.dict.items,
                                           config->as.dict.n, f->name);
    const bool boolean = f->letters != NULL && f->letters[0] == '\0';
    if (attr == NULL ||
        attr->kind != (boolean ? CX_HLO_ATTR_BOOL : CX_HLO_ATTR_INT)) {
      return cx_invalid(
          "custom_call '%.*s': its backend_config must have %s "
          "'%s'",
          (int)c->name.n, c->name.s, boolean ? "the boolean" : "the integer",
          f->name);
    }
    const int64_t v = boolean ? attr->as.flag : attr->as.integer;
    c->d->flags[i] = v;
    if (boolean || f->letters == NULL) continue;
    if (!cpu_lapack_flag_has(f, v)) {
      return cx_invalid(
          "custom_call '%.*s': '%s' must be the code of one of "
          "the letters %s, got %" PRId64,
          (int)c->name.n, c->name.s, f->name, f->letters, v);
    }
  }
  return NULL;
}

// ---- the call ---------------------------------------------------------------

calx_status *cpu_lapack_describe(const cx_hlo_op *op, cpu_lapack_desc *out)
{
  memset(out, 0, sizeof *out);
  const cx_hlo_attr *target = cx_hlo_op_attr(op, CX_HLO_A_CALL_TARGET_NAME);
  checked c = { .op = op, .d = out };
  if (target != NULL && target->kind == CX_HLO_ATTR_STRING) {
    c.name = target->as.text;
  }
  CALX_TRY(find(op, c.name, out));
  c.t = &cpu_lapack_targets[out->target];
  const cx_hlo_type *first = &op->operands[0]->type.tensor;
  cpu_lapack_shape s;
  const char *text = c.t->operands;
  if (!cpu_lapack_next_shape(&text, &s) || first->rank < s.rank) {
    return cx_invalid("custom_call '%.*s': operand 0 must be a matrix, got %s",
                      (int)c.name.n, c.name.s, cx_hlo_shape(first).s);
  }
  c.batch_rank = first->rank - s.rank;
  out->batch = 1;
  for (size_t i = 0; i < c.batch_rank; i++) {
    if (first->dims[i] < 0) return cx_invalid("custom_call: a dynamic size");
    if (first->dims[i] != 0 && out->batch > INT64_MAX / first->dims[i]) {
      return cx_invalid("custom_call '%.*s': too many matrices", (int)c.name.n,
                        c.name.s);
    }
    out->batch *= first->dims[i];
  }
  CALX_TRY(check_side(&c, false));
  CALX_TRY(check_side(&c, true));
  CALX_TRY(read_flags(&c));
  if (c.t->check == NULL || c.t->check(out)) return NULL;
  return cx_invalid(
      "custom_call '%.*s': the sizes of its matrices and its "
      "backend_config contradict each other",
      (int)c.name.n, c.name.s);
}
