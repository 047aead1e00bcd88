// opt/approx_top_k: the custom call ApproxTopK becomes a sort, of which the
// first elements are taken. That is exact, as XLA's own is on CPUs.
//
// Its operands are n tensors and n initial values, which only an approximation
// needs. Its function compares two elements of each tensor.
#include "opt/chlo.h"

enum { MOST = 8 };  // tensors

// The function of the call, copied into a region. Its operations are few.
typedef struct comparator {
  const cx_hlo_block *block;
  cpu_opt_value *made;  // by the value: arguments, then operations
} comparator;

static size_t index_of(const comparator *c, const cx_hlo_value *v)
{
  if (v->op == NULL) return v->index;
  size_t at = c->block->n_args;
  for (const cx_hlo_op *op = v->op->previous; op != NULL; op = op->previous) {
    at++;
  }
  return at;
}

static void compare(cx_hlo_builder *b, void *user, cpu_opt_value const *args,
                    cpu_opt_value *out)
{
  const comparator *c = user;
  const cx_hlo_op *end = cx_hlo_terminator(c->block);
  size_t at = c->block->n_args;
  for (size_t i = 0; i < at; i++) c->made[i] = args[i];
  for (const cx_hlo_op *op = c->block->first; op != end; op = op->next) {
    cpu_opt_value operands[3] = { NULL, NULL, NULL };
    for (uint32_t i = 0; i < op->n_operands; i++) {
      operands[i] = c->made[index_of(c, op->operands[i])];
    }
    cx_hlo_op *r = cpu_opt_begin_like(b, op, operands);
    cx_hlo_build_declare(b, r, 0, &op->results[0].type.tensor);
    c->made[at++] = cx_hlo_build_end(b, r);
  }
  out[0] = c->made[index_of(c, end->operands[0])];
}

static const cx_hlo_func *function_of(const cx_hlo_module *m,
                                      const cx_hlo_op *op)
{
  const cx_hlo_attr *list = cx_hlo_op_attr(op, CX_HLO_A_CALLED_COMPUTATIONS);
  if (list == NULL || list->as.list.n != 1 ||
      list->as.list.items[0]->kind != CX_HLO_ATTR_SYMBOL) {
    return NULL;
  }
  return cx_hlo_func_find(m, list->as.list.items[0]->as.text);
}

// Whether the function compares elements of these tensors, by operations that
// can be copied. *out_n: how many they are.
static bool comparable(const cx_hlo_op *call, const cx_hlo_func *f,
                       size_t *out_n)
{
  const size_t n = call->n_results;
  const cx_hlo_block *block = f == NULL ? NULL : f->body.first;
  const cx_hlo_op *end = block == NULL ? NULL : cx_hlo_terminator(block);
  *out_n = 0;
  if (end == NULL || end->n_operands != 1 || block->n_args != 2 * n ||
      end->operands[0]->type.tensor.elem != CX_HLO_I1) {
    return false;
  }
  for (size_t i = 0; i < 2 * n; i++) {
    const cx_hlo_type *t = &block->args[i].type.tensor;
    if (t->rank != 0 || t->elem != call->operands[i / 2]->type.tensor.elem) {
      return false;
    }
  }
  for (const cx_hlo_op *op = block->first; op != end; op = op->next) {
    if (op->n_regions != 0 || op->n_results != 1 || op->n_operands > 3 ||
        !cpu_opt_pure(op)) {
      return false;
    }
    (*out_n)++;
  }
  return true;
}

// Whether the results are the first elements of the tensors along dimension d.
static bool shaped(const cx_hlo_op *op, int64_t d)
{
  const size_t n = op->n_results;
  if (n == 0 || n > MOST || op->n_operands != 2 * n) return false;
  const cx_hlo_type *first = &op->operands[0]->type.tensor;
  if (d < 0 || d >= (int64_t)first->rank) return false;
  for (size_t i = 0; i < n; i++) {
    const cx_hlo_type *x = &op->operands[i]->type.tensor;
    const cx_hlo_type *y = &op->results[i].type.tensor;
    if (!cpu_opt_same_dims(x, first) || x->rank != y->rank ||
        x->elem != y->elem || y->dims[d] > x->dims[d]) {
      return false;
    }
    for (size_t k = 0; k < x->rank; k++) {
      if ((int64_t)k != d && x->dims[k] != y->dims[k]) return false;
    }
  }
  return true;
}

static int64_t dimension_of(const cx_hlo_op *op)
{
  const cx_hlo_attr *all = cpu_opt_attr(op, "mhlo.backend_config");
  if (all == NULL || all->kind != CX_HLO_ATTR_DICT) return -1;
  const cx_hlo_attr *d =
      cx_hlo_named_attr(all->as.dict.items, all->as.dict.n, "reduction_dim");
  return d != NULL && d->kind == CX_HLO_ATTR_INT ? d->as.integer : -1;
}

// The elements of x that the result's shape has, from the first one on.
static cpu_opt_value first_of(cpu_opt_walk *w, cpu_opt_value x,
                              const cx_hlo_type *to)
{
  int64_t *start = cpu_opt_list(w, to->rank);
  int64_t *stride = cpu_opt_list(w, to->rank);
  if (x == NULL || start == NULL || stride == NULL) return NULL;
  for (size_t i = 0; i < to->rank; i++) stride[i] = 1;
  return cx_hlo_slice(&w->b, x, start, to->dims, stride);
}

void cpu_opt_approx_top_k(cpu_opt_walk *w, cx_hlo_op *op)
{
  const cx_hlo_func *f = function_of(w->b.module, op);
  const int64_t d = dimension_of(op);
  size_t n_ops = 0;
  if (!shaped(op, d) || !comparable(op, f, &n_ops)) return;
  comparator c = { .block = f->body.first };
  c.made = cpu_opt_values(w, c.block->n_args + n_ops + 1);
  if (c.made == NULL) return;
  cpu_opt_value out[MOST] = { NULL };
  cx_hlo_sort(&w->b, op->n_results, op->operands, d, compare, &c, out);
  for (uint32_t i = 0; i < op->n_results; i++) {
    out[i] = first_of(w, out[i], &op->results[i].type.tensor);
  }
  cpu_opt_replace_all(w, op, out);
}
