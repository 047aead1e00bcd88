// opt/attention_find: finds one attention and its gradient.
//
// The search begins at an exponential. The product above it makes the scores;
// from there on every operation that uses them, or what comes of them, must be
// one whose meaning is known (attention_facts.c), up to the products that the
// kernel computes. Then no score is needed in memory, and the operations
// between are dead.
#include "opt/attention.h"

// Operations that are looked at between an exponential and its product.
#define MOST_ABOVE 24
// Scores of a head below which a kernel does not pay; elements of a head's keys
// above which they do not stay near a core.
#define LEAST_SCORES 1024
#define LEAST_ROWS 4
#define MOST_KEYS ((int64_t)1 << 20)
// Heads from which the gradient is computed by the kernel, whose threads divide
// heads.
#define LEAST_HEADS 4

static int64_t size_of(const cx_hlo_value *v, const cpu_opt_axes *axes,
                       int axis)
{
  for (size_t i = 0; i < v->type.tensor.rank; i++) {
    if (axes->of[i] == axis) return v->type.tensor.dims[i];
  }
  return 1;
}

// ---- products ---------------------------------------------------------------

static void set_input(cpu_opt_attention *a, int t, cx_hlo_value *v,
                      const cpu_opt_axes *axes)
{
  a->inputs[t] = v;
  a->input_axes[t] = *axes;
}

static bool is_input(const cpu_opt_attention *a, int t, cx_hlo_value *v,
                     const cpu_opt_axes *axes)
{
  return a->inputs[t] != NULL &&
         cpu_opt_same_origin(a->inputs[t], &a->input_axes[t], v, axes, false);
}

// The scores' product, with operand `q` as the queries.
static bool begin(cpu_opt_attention *a, cx_hlo_op *op, int q)
{
  const cx_hlo_dot_numbers *n =
      cx_hlo_op_attr(op, CX_HLO_A_DOT_DIMENSION_NUMBERS)->as.fields;
  const cx_hlo_ints batch = q == 0 ? n->lhs_batch : n->rhs_batch;
  const cx_hlo_ints inner = q == 0 ? n->lhs_contract : n->rhs_contract;
  const cx_hlo_type *type = &op->operands[q]->type.tensor;
  cpu_opt_axes axes, other;
  if (type->rank > CPU_OPT_AXIS_RANK) return false;
  int n_rows = 0;
  for (size_t i = 0; i < type->rank; i++) {
    axes.of[i] = type->dims[i] == 1 ? CPU_OPT_AXIS_ONE : CPU_OPT_AXIS_ROW;
    n_rows += type->dims[i] != 1;
  }
  for (size_t i = 0; i < batch.n; i++) {
    if (type->dims[batch.v[i]] == 1) continue;
    if (a->desc.n_batch == CPU_KERNEL_ATTENTION_DIMS) return false;
    a->desc.batch[a->desc.n_batch] = type->dims[batch.v[i]];
    axes.of[batch.v[i]] = (int)a->desc.n_batch++;
    n_rows--;
  }
  for (size_t i = 0; i < inner.n; i++) {
    if (type->dims[inner.v[i]] == 1) continue;
    axes.of[inner.v[i]] = CPU_OPT_AXIS_WIDTH;
    n_rows--;
  }
  cpu_opt_fact *score = &a->facts[op->results[0].number];
  *score = (cpu_opt_fact){ .kind = CPU_OPT_FACT_SCORE };
  int contracted = 0;
  if (n_rows != 1 ||
      !cpu_opt_axes_product(op, q, &axes, a->desc.n_batch, CPU_OPT_AXIS_COLUMN,
                            &other, &score->axes, &contracted)) {
    return false;
  }
  set_input(a, CPU_KERNEL_ATTENTION_Q, op->operands[q], &axes);
  set_input(a, CPU_KERNEL_ATTENTION_K, op->operands[1 - q], &other);
  a->scale = 1;
  a->desc.type = type->elem;
  a->desc.rows = size_of(op->operands[q], &axes, CPU_OPT_AXIS_ROW);
  a->desc.width = size_of(op->operands[q], &axes, CPU_OPT_AXIS_WIDTH);
  a->desc.keys = size_of(op->operands[1 - q], &other, CPU_OPT_AXIS_COLUMN);
  return contracted == CPU_OPT_AXIS_WIDTH;
}

// Which tensor a product of a value with `f` makes, from the axis it contracts;
// -1: none.
static int result_of(const cpu_opt_attention *a, const cpu_opt_fact *f,
                     const cx_hlo_op *op, int side, double *factor)
{
  cpu_opt_axes other, axes;
  int contracted = 0;
  if (!cpu_opt_axes_product(op, side, &f->axes, a->desc.n_batch,
                            CPU_OPT_AXIS_VALUE, &other, &axes, &contracted)) {
    return -1;
  }
  const bool keys = contracted == CPU_OPT_AXIS_COLUMN;
  if (!keys && contracted != CPU_OPT_AXIS_ROW) return -1;
  if (cpu_opt_is_probability(f, factor)) {
    return keys ? CPU_KERNEL_ATTENTION_OUT : CPU_KERNEL_ATTENTION_DV;
  }
  if (!cpu_opt_is_score_gradient(a, f, factor)) return -1;
  return keys ? CPU_KERNEL_ATTENTION_DQ : CPU_KERNEL_ATTENTION_DK;
}

// A product that uses probabilities or the gradients of scores.
static bool end_product(cpu_opt_attention *a, cx_hlo_op *op, int side)
{
  const cpu_opt_fact *f = &a->facts[op->operands[side]->number];
  cx_hlo_value *v = op->operands[1 - side];
  double factor = 0;
  const int t = result_of(a, f, op, side, &factor);
  if (t < 0 || a->products[t].op != NULL) return false;
  const bool of_values =
      t == CPU_KERNEL_ATTENTION_OUT || t == CPU_KERNEL_ATTENTION_DV;
  cpu_opt_axes other;
  int contracted = 0;
  cpu_opt_product *p = &a->products[t];
  if (!cpu_opt_axes_product(op, side, &f->axes, a->desc.n_batch,
                            of_values ? CPU_OPT_AXIS_VALUE : CPU_OPT_AXIS_WIDTH,
                            &other, &p->axes, &contracted)) {
    return false;
  }
  p->op = op;
  p->factor = factor;
  switch (t) {
    case CPU_KERNEL_ATTENTION_OUT:
      set_input(a, CPU_KERNEL_ATTENTION_V, v, &other);
      a->desc.value_width = size_of(v, &other, CPU_OPT_AXIS_VALUE);
      return true;
    case CPU_KERNEL_ATTENTION_DV:
      a->out_grad = v;
      a->out_grad_axes = other;
      return true;
    case CPU_KERNEL_ATTENTION_DQ:
      return is_input(a, CPU_KERNEL_ATTENTION_K, v, &other);
    default: return is_input(a, CPU_KERNEL_ATTENTION_Q, v, &other);
  }
}

// Whether the product makes the gradients of the probabilities, and if so notes
// it: v times the gradient of the result.
static void note_gradients(cpu_opt_attention *a, cx_hlo_op *op)
{
  const int v = CPU_KERNEL_ATTENTION_V;
  if (a->inputs[v] == NULL || a->grads != NULL) return;
  for (int side = 0; side < 2; side++) {
    cpu_opt_axes axes, other, result;
    int contracted = 0;
    const cpu_opt_origin o =
        cpu_opt_origin_of(a->inputs[v], &a->input_axes[v], false);
    if (!cpu_opt_axes_from(&o, op->operands[side], &axes) ||
        !cpu_opt_axes_product(op, side, &axes, a->desc.n_batch,
                              CPU_OPT_AXIS_ROW, &other, &result, &contracted) ||
        contracted != CPU_OPT_AXIS_VALUE ||
        size_of(op->operands[1 - side], &other, CPU_OPT_AXIS_ROW) !=
            a->desc.rows) {
      continue;
    }
    cpu_opt_fact *f = &a->facts[op->results[0].number];
    *f = (cpu_opt_fact){ .kind = CPU_OPT_FACT_TERMS, .axes = result, .n = 1 };
    f->terms[0] = (cpu_opt_term){ 1, 0, 1, 0, 0 };
    a->grads = op;
    set_input(a, CPU_KERNEL_ATTENTION_OUT, op->operands[1 - side], &other);
    return;
  }
}

// ---- one attention ----------------------------------------------------------

static bool knows(const cpu_opt_attention *a, const cx_hlo_value *v)
{
  return a->facts[v->number].kind != CPU_OPT_FACT_NONE;
}

// Notes what comes of the operation; false: it uses what the kernel does not
// leave in memory.
static bool note(cpu_opt_attention *a, cx_hlo_op *op)
{
  int used = -1, n_used = 0;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (!knows(a, op->operands[i])) continue;
    used = (int)i;
    n_used++;
  }
  const cx_hlo_op *inner = cpu_opt_inner(op);
  for (; inner != op; inner = cpu_opt_next(inner)) {
    for (uint32_t i = 0; i < inner->n_operands; i++) {
      if (knows(a, inner->operands[i])) return false;
    }
  }
  if (op->kind == CX_HLO_OP_DOT_GENERAL) {
    if (n_used == 1) return end_product(a, op, used);
    if (n_used == 0) note_gradients(a, op);
    return n_used == 0;
  }
  if (n_used == 0) return true;
  cpu_opt_fact fact;
  if (!cpu_opt_attention_fact(a, op, &fact)) return false;
  a->facts[op->results[0].number] = fact;
  return true;
}

static bool of_type(const cpu_opt_attention *a, const cx_hlo_value *v)
{
  return v->type.tensor.elem == (cx_hlo_elem)a->desc.type;
}

// Whether what was found is a whole, and worth a kernel.
static bool is_whole(const cpu_opt_attention *a)
{
  const cpu_kernel_attention_desc *d = &a->desc;
  int n = 0;
  for (int t = CPU_KERNEL_ATTENTION_OUT; t < CPU_KERNEL_ATTENTION_TENSORS;
       t++) {
    const cx_hlo_op *op = a->products[t].op;
    if (op == NULL) continue;
    n++;
    if (!of_type(a, &op->results[0])) return false;
  }
  for (int t = 0; t <= CPU_KERNEL_ATTENTION_V; t++) {
    if (a->inputs[t] == NULL || !of_type(a, a->inputs[t])) return false;
  }
  const int64_t width = d->width > d->value_width ? d->width : d->value_width;
  if (a->products[CPU_KERNEL_ATTENTION_OUT].op == NULL ||
      d->rows < LEAST_ROWS || d->rows * d->keys < LEAST_SCORES ||
      d->keys * width > MOST_KEYS) {
    return false;
  }
  if (a->grads == NULL) return n == 1;
  int64_t heads = 1;
  for (int64_t i = 0; i < d->n_batch; i++) heads *= d->batch[i];
  return n == 4 && heads >= LEAST_HEADS && of_type(a, a->out_grad) &&
         of_type(a, a->inputs[CPU_KERNEL_ATTENTION_OUT]) &&
         is_input(a, CPU_KERNEL_ATTENTION_OUT, a->out_grad, &a->out_grad_axes);
}

static void forget(cpu_opt_attention *a, const cx_hlo_op *scores,
                   const cx_hlo_op *end)
{
  for (const cx_hlo_op *op = scores; op != end; op = op->next) {
    for (uint32_t i = 0; i < op->n_results; i++) {
      a->facts[op->results[i].number].kind = CPU_OPT_FACT_NONE;
    }
  }
}

static bool find_from(cpu_opt_fact *facts, cx_hlo_op *scores, int q,
                      cpu_opt_attention *out)
{
  *out = (cpu_opt_attention){ .facts = facts };
  bool found = begin(out, scores, q);
  cx_hlo_op *op = scores->next;
  for (; found && op != NULL; op = op->next) found = note(out, op);
  forget(out, scores, op);
  return found && is_whole(out);
}

// The product that the exponential's operand is made from; NULL: none is near.
static cx_hlo_op *product_above(const cx_hlo_op *exponential)
{
  cx_hlo_value *stack[MOST_ABOVE];
  size_t n = 0, seen = 1;
  stack[n++] = exponential->operands[0];
  while (n > 0) {
    cx_hlo_op *op = stack[--n]->op;
    if (op == NULL || op->block != exponential->block) continue;
    if (op->kind == CX_HLO_OP_DOT_GENERAL) return op;
    for (uint32_t i = op->n_operands; i-- > 0;) {
      if (seen++ == MOST_ABOVE) return NULL;
      stack[n++] = op->operands[i];
    }
  }
  return NULL;
}

bool cpu_opt_attention_find(cpu_opt_fact *facts, const cx_hlo_op *exponential,
                            cpu_opt_attention *out)
{
  cx_hlo_op *scores = product_above(exponential);
  return scores != NULL &&
         (find_from(facts, scores, 0, out) || find_from(facts, scores, 1, out));
}
