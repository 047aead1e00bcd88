// opt/loop_rows: rows that a loop keeps, and that are cheap functions of other
// rows that it keeps, are computed where they are read.
//
// A loop that automatic differentiation has made keeps all that the backward
// pass reads: s and s (1 - s) of a sigmoid, for instance. Where nothing but
// slices read such rows, the functions are computed of slices of the others,
// and the pass "loops" removes the variable. It would be written to memory and
// read from there; the few operations take less time.
#include "base/alloc.h"
#include "opt/loops.h"
#include "opt/passes.h"

#define MOST_OPS 4  // of a function

// Of results of loops, by number.
typedef struct row_facts {
  bool *read_otherwise;       // not by slices of rows alone
  const cx_hlo_op **dropped;  // the loop whose rows these are; NULL: they stay
  bool *needed;               // others are computed of them
  uint32_t n;
} row_facts;

// ---- rows of a loop ----

// The row that the body writes to variable i, and at which index; NULL: it does
// something else.
static const cx_hlo_value *row_of(const cx_hlo_op *loop, uint32_t i,
                                  const cx_hlo_value **out_index)
{
  const cx_hlo_op *update = cpu_opt_loop_update(loop, i);
  if (update == NULL) return NULL;
  *out_index = update->operands[2];
  const cx_hlo_op *shaped =
      cpu_opt_made_by(update->operands[1], CX_HLO_OP_RESHAPE);
  return shaped != NULL ? shaped->operands[0] : update->operands[1];
}

// The variable whose rows v is, at this index, and which stays; NULL: none.
static cx_hlo_value *kept_as(const row_facts *f, const cx_hlo_op *loop,
                             const cx_hlo_value *v, const cx_hlo_value *index,
                             const cx_hlo_value *but)
{
  for (uint32_t i = 0; i < loop->n_operands; i++) {
    const cx_hlo_value *at = NULL;
    cx_hlo_value *result = &loop->results[i];
    if (result->number < f->n && f->dropped[result->number] == NULL &&
        result != but && row_of(loop, i, &at) == v && at == index &&
        cx_hlo_type_equal(&result->type.tensor, &but->type.tensor)) {
      return result;
    }
  }
  return NULL;
}

static bool is_cheap(const cx_hlo_op *op)
{
  return op->kind == CX_HLO_OP_ADD || op->kind == CX_HLO_OP_SUBTRACT ||
         op->kind == CX_HLO_OP_MULTIPLY || op->kind == CX_HLO_OP_NEGATE;
}

// Whether v, a row of `but`, is a cheap function of others. io_ops: of which it
// may have so many more operations.
static bool is_function(const row_facts *f, const cx_hlo_op *loop,
                        const cx_hlo_value *v, const cx_hlo_value *index,
                        const cx_hlo_value *but, int *io_ops)
{
  if (cpu_opt_splat(v) != NULL) return true;
  if (kept_as(f, loop, v, index, but) != NULL) return true;
  if (v->op == NULL || v->op->block != loop->regions[1].first ||
      !is_cheap(v->op) || --*io_ops < 0) {
    return false;
  }
  for (uint32_t k = 0; k < v->op->n_operands; k++) {
    if (!is_function(f, loop, v->op->operands[k], index, but, io_ops)) {
      return false;
    }
  }
  return true;
}

static void need(row_facts *f, const cx_hlo_op *loop, const cx_hlo_value *v,
                 const cx_hlo_value *index, const cx_hlo_value *but)
{
  if (cpu_opt_splat(v) != NULL) return;
  const cx_hlo_value *kept = kept_as(f, loop, v, index, but);
  if (kept != NULL) {
    f->needed[kept->number] = true;
    return;
  }
  for (uint32_t k = 0; k < v->op->n_operands; k++) {
    need(f, loop, v->op->operands[k], index, but);
  }
}

static void visit_loop(row_facts *f, const cx_hlo_op *loop)
{
  const cpu_opt_loop_count c = cpu_opt_loop_count_of(loop);
  for (uint32_t i = 0; i < loop->n_operands && c.n > 0; i++) {
    const cx_hlo_value *index = NULL, *result = &loop->results[i];
    const cx_hlo_value *row = row_of(loop, i, &index);
    int ops = MOST_OPS;
    if (row == NULL || result->number >= f->n ||
        f->read_otherwise[result->number] || f->needed[result->number] ||
        result->type.tensor.dims[0] != c.n ||
        !is_function(f, loop, row, index, result, &ops) ||
        !cpu_opt_loop_permutes(&c, index)) {
      continue;
    }
    need(f, loop, row, index, result);
    f->dropped[result->number] = loop;
  }
}

// ---- slices ----

// v, of the row that `slice` takes, computed again.
static cx_hlo_value *again(cpu_opt_walk *w, const row_facts *f,
                           const cx_hlo_op *slice, const cx_hlo_value *v,
                           const cx_hlo_value *index)
{
  const cx_hlo_value *from = slice->operands[0];
  const cx_hlo_type *type = &slice->results[0].type.tensor;
  const unsigned char *element = cpu_opt_splat(v);
  if (element != NULL) return cpu_opt_splat_like(&w->b, type, element);
  cx_hlo_value *kept = kept_as(f, f->dropped[from->number], v, index, from);
  if (kept != NULL) {
    return cx_hlo_dynamic_slice(&w->b, kept, slice->operands + 1, type->dims);
  }
  cx_hlo_value *operands[2] = { NULL, NULL };
  for (uint32_t k = 0; k < v->op->n_operands; k++) {
    operands[k] = again(w, f, slice, v->op->operands[k], index);
    if (operands[k] == NULL) return NULL;
  }
  cx_hlo_op *made = cpu_opt_begin_like(&w->b, v->op, operands);
  if (made == NULL) return NULL;
  cx_hlo_build_declare(&w->b, made, 0, type);
  return cx_hlo_build_end(&w->b, made);
}

static void visit_slice(cpu_opt_walk *w, const row_facts *f, cx_hlo_op *slice)
{
  const cx_hlo_value *from = slice->operands[0];
  const cx_hlo_op *loop = from->number < f->n ? f->dropped[from->number] : NULL;
  if (loop == NULL) return;
  const cx_hlo_value *index = NULL;
  const cx_hlo_value *row =
      row_of(loop, (uint32_t)(from - loop->results), &index);
  cpu_opt_replace(w, slice, again(w, f, slice, row, index));
}

static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *op)
{
  if (op->kind == CX_HLO_OP_WHILE) visit_loop(w->user, op);
  if (op->kind == CX_HLO_OP_DYNAMIC_SLICE) visit_slice(w, w->user, op);
  return NULL;
}

// ---- the pass ----

static void find_reads(const cx_hlo_func *func, row_facts *f)
{
  for (const cx_hlo_op *op = cpu_opt_first(func->body.first); op != NULL;
       op = cpu_opt_next(op)) {
    const bool slices = op->kind == CX_HLO_OP_DYNAMIC_SLICE &&
                        cpu_opt_is_row(&op->operands[0]->type.tensor,
                                       &op->results[0].type.tensor);
    for (uint32_t k = 0; k < op->n_operands; k++) {
      const uint32_t number = op->operands[k]->number;
      if (number < f->n && !(slices && k == 0)) {
        f->read_otherwise[number] = true;
      }
    }
  }
}

calx_status *cpu_opt_loop_rows(cx_hlo_module *m, bool *changed)
{
  cx_hlo_func *func = cx_hlo_entry(m);
  if (!cpu_opt_any(func, cpu_opt_is_loop)) return NULL;
  row_facts f = { .n = m->n_values };
  const size_t n = (size_t)f.n + 1;
  f.read_otherwise = cx_calloc(n, sizeof *f.read_otherwise);
  f.needed = cx_calloc(n, sizeof *f.needed);
  f.dropped = cx_calloc(n, sizeof *f.dropped);
  calx_status *status = NULL;
  if (f.read_otherwise == NULL || f.needed == NULL || f.dropped == NULL) {
    status = cx_out_of_memory();
  } else {
    find_reads(func, &f);
    status = cpu_opt_walk_func(m, func, visit, &f, changed);
  }
  cx_free(f.read_otherwise);
  cx_free(f.needed);
  cx_free(f.dropped);
  return status;
}
