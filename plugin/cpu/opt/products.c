// opt/products: matrix products of narrow types, and slices of products.
//
// - A product of two operands that were widened from bf16 to f32, or of a few
//   rows with a matrix that was widened from bf16, f16 or i8, is one of the
//   narrow numbers: the kernel widens them as it reads them, exactly.
// - Numbers of less than 8 bits, and floats of 8, are converted first, because
//   kernels do not take them.
// - A product without contracted dimensions, as of rows with a number each, is
// a
//   multiplication of elements, which joins a loop.
// - A slice of a product that nothing else uses becomes a product of slices, if
//   that saves more multiplications than it copies elements.
#include "base/alloc.h"
#include "hlo/infer.h"
#include "opt/edit.h"
#include "opt/passes.h"

// Rows of which kernel/rows.h takes no more, and the least columns and inner
// elements that it takes.
#define FEW_ROWS 8
#define LEAST_COLUMNS 16
#define LEAST_INNER 8
// Multiplications that cost as much as copying an element.
#define COPY_COST 4

typedef struct counts {
  const uint32_t *uses;  // by number
  size_t n;
} counts;

static cx_hlo_dot_dims dims_of(const cx_hlo_op *dot)
{
  const cx_hlo_dot_numbers *d =
      cx_hlo_op_struct(dot, CX_HLO_A_DOT_DIMENSION_NUMBERS);
  return (cx_hlo_dot_dims){ .lhs_batch = d->lhs_batch.v,
                            .rhs_batch = d->rhs_batch.v,
                            .n_batch = d->lhs_batch.n,
                            .lhs_contract = d->lhs_contract.v,
                            .rhs_contract = d->rhs_contract.v,
                            .n_contract = d->lhs_contract.n };
}

// The same product of other operands.
static cx_hlo_value *product(cpu_opt_walk *w, const cx_hlo_op *dot,
                             cx_hlo_value *x, cx_hlo_value *y, cx_hlo_elem out)
{
  const cx_hlo_dot_dims d = dims_of(dot);
  return x == NULL || y == NULL ? NULL
                                : cx_hlo_dot_general(&w->b, x, y, &d, out);
}

// ---- widened operands -------------------------------------------------------

// What v was widened from, if kernels read that; else v.
static cx_hlo_value *narrow_of(cx_hlo_value *v)
{
  const cx_hlo_op *op = cpu_opt_made_by(v, CX_HLO_OP_CONVERT);
  if (op == NULL || v->type.tensor.elem != CX_HLO_F32) return v;
  const cx_hlo_elem from = op->operands[0]->type.tensor.elem;
  const bool read =
      from == CX_HLO_BF16 || from == CX_HLO_F16 || from == CX_HLO_I8;
  return read ? op->operands[0] : v;
}

// The product of the sizes of these dimensions.
static int64_t count(const cx_hlo_type *t, const int64_t *dims, size_t n)
{
  int64_t product = 1;
  for (size_t i = 0; i < n; i++) product *= t->dims[dims[i]];
  return product;
}

// Whether kernel/rows.h multiplies a few rows, of operand `rows`, with the
// other operand.
static bool is_of_few_rows(const cx_hlo_op *dot, int rows)
{
  const cx_hlo_dot_dims d = dims_of(dot);
  const cx_hlo_type *const t[2] = { &dot->operands[0]->type.tensor,
                                    &dot->operands[1]->type.tensor };
  const int64_t inner = count(t[0], d.lhs_contract, d.n_contract);
  const int64_t shared = inner * count(t[0], d.lhs_batch, d.n_batch);
  return inner >= LEAST_INNER && shared > 0 &&
         cx_hlo_type_elements(t[rows]) / shared <= FEW_ROWS &&
         cx_hlo_type_elements(t[1 - rows]) / shared >= LEAST_COLUMNS;
}

static void read_narrow(cpu_opt_walk *w, cx_hlo_op *dot)
{
  if (dot->results[0].type.tensor.elem != CX_HLO_F32) return;
  cx_hlo_value *x = narrow_of(dot->operands[0]);
  cx_hlo_value *y = narrow_of(dot->operands[1]);
  const bool both =
      x->type.tensor.elem == CX_HLO_BF16 && y->type.tensor.elem == CX_HLO_BF16;
  if (!both) {
    if (!is_of_few_rows(dot, 1)) x = dot->operands[0];
    if (!is_of_few_rows(dot, 0)) y = dot->operands[1];
  }
  if (x == dot->operands[0] && y == dot->operands[1]) return;
  cpu_opt_replace(w, dot, product(w, dot, x, y, CX_HLO_F32));
}

// ---- types that kernels do not take -----------------------------------------

// The type that e is computed in; e if kernels take it.
static cx_hlo_elem computed_in(cx_hlo_elem e)
{
  if (cx_hlo_elem_is_plain(e)) return e;
  if (cx_hlo_elem_is_float(e)) return CX_HLO_F32;
  if (!cx_hlo_elem_is_int(e)) return e;
  return cx_hlo_elem_is_unsigned(e) ? CX_HLO_UI8 : CX_HLO_I8;
}

static cx_hlo_value *converted(cpu_opt_walk *w, cx_hlo_value *v, cx_hlo_elem to)
{
  return v == NULL || v->type.tensor.elem == to ? v
                                                : cx_hlo_convert(&w->b, v, to);
}

// Integers keep their result's type, which wraps. False: nothing to do.
static bool widen(cpu_opt_walk *w, cx_hlo_op *dot)
{
  const cx_hlo_elem x = dot->operands[0]->type.tensor.elem;
  const cx_hlo_elem y = dot->operands[1]->type.tensor.elem;
  const cx_hlo_elem out = dot->results[0].type.tensor.elem;
  const cx_hlo_elem wide = cx_hlo_elem_is_float(out) ? computed_in(out) : out;
  if (!cx_hlo_elem_is_plain(wide) || !cx_hlo_elem_is_plain(computed_in(x)) ||
      !cx_hlo_elem_is_plain(computed_in(y)) ||
      (wide == out && computed_in(x) == x && computed_in(y) == y)) {
    return false;
  }
  cx_hlo_value *l = converted(w, dot->operands[0], computed_in(x));
  cx_hlo_value *r = converted(w, dot->operands[1], computed_in(y));
  cx_hlo_value *v = product(w, dot, l, r, wide);
  cpu_opt_replace(w, dot, converted(w, v, out));
  return true;
}

// Where the list has `dim`; n: nowhere.
static size_t index_of(const int64_t *dims, size_t n, size_t dim)
{
  size_t i = 0;
  while (i < n && dims[i] != (int64_t)dim) i++;
  return i;
}

// ---- slices -----------------------------------------------------------------

typedef struct cut {
  const cx_hlo_op *slice;
  cx_hlo_dot_dims d;
  size_t next;  // of the result's dimensions that one operand has
} cut;

// The part of an operand that the slice needs; the operand if it needs all.
static cx_hlo_value *cut_operand(cpu_opt_walk *w, cut *c, cx_hlo_value *x,
                                 const int64_t *batch, const int64_t *contract)
{
  const cx_hlo_type *t = &x->type.tensor;
  int64_t *start = cpu_opt_list(w, 3 * t->rank + 1);
  if (start == NULL) return NULL;
  int64_t *limit = start + t->rank, *stride = limit + t->rank;
  bool whole = true;
  for (size_t i = 0; i < t->rank; i++) {
    limit[i] = t->dims[i];
    stride[i] = 1;
    if (index_of(contract, c->d.n_contract, i) < c->d.n_contract) continue;
    size_t at = index_of(batch, c->d.n_batch, i);
    if (at == c->d.n_batch) at = c->next++;
    start[i] = cx_hlo_op_int_at(c->slice, CX_HLO_A_START_INDICES, at);
    limit[i] = cx_hlo_op_int_at(c->slice, CX_HLO_A_LIMIT_INDICES, at);
    stride[i] = cx_hlo_op_int_at(c->slice, CX_HLO_A_STRIDES, at);
    whole = whole && c->slice->results[0].type.tensor.dims[at] == t->dims[i];
  }
  return whole ? x : cx_hlo_slice(&w->b, x, start, limit, stride);
}

static bool saves(const cx_hlo_op *dot, const cx_hlo_op *slice)
{
  const cx_hlo_type *x = &dot->operands[0]->type.tensor;
  const cx_hlo_dot_dims d = dims_of(dot);
  const double left_out =
      (double)cx_hlo_type_elements(&dot->results[0].type.tensor) -
      (double)cx_hlo_type_elements(&slice->results[0].type.tensor);
  const double copied =
      (double)cx_hlo_type_elements(x) +
      (double)cx_hlo_type_elements(&dot->operands[1]->type.tensor);
  return left_out * (double)count(x, d.lhs_contract, d.n_contract) >=
         COPY_COST * copied;
}

static void cut_product(cpu_opt_walk *w, cx_hlo_op *slice)
{
  const counts *c = w->user;
  const cx_hlo_value *all = slice->operands[0];
  const cx_hlo_op *dot = cpu_opt_made_by(all, CX_HLO_OP_DOT_GENERAL);
  if (dot == NULL || dot->block != slice->block || all->number >= c->n ||
      c->uses[all->number] != 1 || !saves(dot, slice)) {
    return;
  }
  cut part = { slice, dims_of(dot), 0 };
  part.next = part.d.n_batch;
  cx_hlo_value *x = cut_operand(w, &part, dot->operands[0], part.d.lhs_batch,
                                part.d.lhs_contract);
  cx_hlo_value *y = cut_operand(w, &part, dot->operands[1], part.d.rhs_batch,
                                part.d.rhs_contract);
  cpu_opt_replace(w, slice, product(w, dot, x, y, all->type.tensor.elem));
}

// ---- the pass ---------------------------------------------------------------

// ---- products without contraction
// --------------------------------------------------

// The operand broadcast to the result, whose first dimensions are the batch's.
// The operand's others are the result's from `first` on.
static cx_hlo_value *along(cpu_opt_walk *w, cx_hlo_value *x,
                           const cx_hlo_type *to, const int64_t *batch,
                           size_t n_batch, size_t first)
{
  const size_t rank = x->type.tensor.rank;
  int64_t *dims = cpu_opt_list(w, rank);
  if (dims == NULL) return NULL;
  for (size_t i = 0; i < rank; i++) {
    const size_t k = index_of(batch, n_batch, i);
    dims[i] = (int64_t)(k < n_batch ? k : first++);
  }
  return cpu_opt_broadcast(&w->b, x, to, dims);
}

static bool multiply_elements(cpu_opt_walk *w, cx_hlo_op *op)
{
  const cx_hlo_type *to = &op->results[0].type.tensor;
  cx_hlo_value *x = op->operands[0], *y = op->operands[1];
  const cx_hlo_dot_dims d = dims_of(op);
  if (d.n_contract != 0 || x->type.tensor.elem != to->elem ||
      y->type.tensor.elem != to->elem) {
    return false;
  }
  const size_t free_of_x = x->type.tensor.rank - d.n_batch;
  x = along(w, x, to, d.lhs_batch, d.n_batch, d.n_batch);
  y = along(w, y, to, d.rhs_batch, d.n_batch, d.n_batch + free_of_x);
  x = cx_hlo_binary(&w->b, CX_HLO_OP_MULTIPLY, x, y);
  if (cx_hlo_elem_is_float(to->elem) || cx_hlo_elem_is_complex(to->elem)) {
    // A sum begins with 0, which makes 0 of -0.
    x = cx_hlo_binary(&w->b, CX_HLO_OP_ADD, x, cx_hlo_splat(&w->b, *to, 0));
  }
  cpu_opt_replace(w, op, x);
  return true;
}

static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *op)
{
  if (op->kind == CX_HLO_OP_DOT_GENERAL && multiply_elements(w, op)) {
    return NULL;
  }
  if (op->kind == CX_HLO_OP_SLICE) cut_product(w, op);
  if (op->kind == CX_HLO_OP_DOT_GENERAL && !widen(w, op)) read_narrow(w, op);
  return NULL;
}

calx_status *cpu_opt_products(cx_hlo_module *m, bool *changed)
{
  uint32_t *uses = cpu_opt_uses(m, cx_hlo_entry(m));
  if (uses == NULL) return cx_out_of_memory();
  counts c = { uses, m->n_values };
  calx_status *status =
      cpu_opt_walk_func(m, cx_hlo_entry(m), visit, &c, changed);
  cx_free(uses);
  return status;
}
