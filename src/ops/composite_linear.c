// ops/composite_linear: products of vectors, matrices and batches of them,
// composed of calx_matmul.
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "ops/autocast.h"
#include "ops/composite.h"

// False: *out is what the function returns.
static bool ranks_fit(const char *op, calx_tensor *const *in, uint32_t n,
                      const uint32_t *ranks, calx_tensor **out)
{
  static const char *const names[] = { "number", "vector", "matrix",
                                       "batch of matrices" };
  if (cx_ops_unfit(op, in, n, out)) return false;
  for (uint32_t i = 0; i < n; i++) {
    const cx_graph_shape *s = cx_lazy_tensor_shape(in[i]);
    if (s->rank == ranks[i]) continue;
    *out = cx_ops_invalid("%s: operand %u is %s, a %s is wanted", op, i,
                          cx_graph_shape_str(s), names[ranks[i]]);
    return false;
  }
  return true;
}

#define RANKS_OF_TWO(op, first, second)               \
  CX_OPS_COMPOSITE_COMPLEX(#op);                      \
  static const uint32_t ranks[2] = { first, second }; \
  calx_tensor *in[2] = { x, y }, *bad;                \
  if (!ranks_fit(#op, in, 2, ranks, &bad)) return bad

calx_tensor *calx_bmm(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_AUTOCAST(CX_OPS_LOWER, &x, &y);
  RANKS_OF_TWO(bmm, 3, 3);
  const cx_graph_shape *a = cx_lazy_tensor_shape(x),
                       *b = cx_lazy_tensor_shape(y);
  if (a->dims[0] != b->dims[0]) {
    return cx_ops_invalid("bmm: %s and %s have other numbers of matrices",
                          cx_graph_shape_str(a), cx_graph_shape_str(b));
  }
  return calx_matmul(x, y);
}

calx_tensor *calx_mv(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_AUTOCAST(CX_OPS_LOWER, &x, &y);
  RANKS_OF_TWO(mv, 2, 1);
  return calx_matmul(x, y);
}

calx_tensor *calx_dot(calx_tensor *x, calx_tensor *y)
{
  RANKS_OF_TWO(dot, 1, 1);
  return calx_matmul(x, y);
}

calx_tensor *calx_outer(calx_tensor *x, calx_tensor *y)
{
  RANKS_OF_TWO(outer, 1, 1);
  return calx_mul(calx_unsqueeze(x, 1), y);
}

// x times an option, of which 0 stands for 1. A whole number leaves integers
// integers.
static calx_tensor *times(calx_tensor *x, double factor)
{
  if (cx_is_default(factor) || factor == 1) return x;
  bool whole = factor == floor(factor) && fabs(factor) < 0x1p63;
  return calx_mul(
      x, whole ? calx_scalar_int((int64_t)factor) : calx_scalar(factor));
}

// beta input + alpha product; input is not used where beta is 0.
static calx_tensor *add_product(const char *op, calx_tensor *input,
                                calx_tensor *product,
                                const calx_addmm_options *o)
{
  calx_tensor *in[2] = { input, product }, *bad;
  if (cx_ops_unfit(op, in, 2, &bad)) return bad;
  const cx_graph_shape *a = cx_lazy_tensor_shape(input);
  const cx_graph_shape *p = cx_lazy_tensor_shape(product);
  bool fits = a->rank <= p->rank;
  for (uint32_t i = 1; fits && i <= a->rank; i++) {
    int64_t n = a->dims[a->rank - i];
    fits = n == 1 || n == p->dims[p->rank - i];
  }
  if (!fits) {
    return cx_ops_invalid("%s: the input %s does not broadcast to %s", op,
                          cx_graph_shape_str(a), cx_graph_shape_str(p));
  }
  if (o == NULL) return cx_ops_plus(input, product);
  if (!cx_ops_options_fit(op, o->size, sizeof *o, &bad)) return bad;
  product = times(product, o->alpha);
  if (!cx_is_default(o->beta) && o->beta == 0) return product;
  return cx_ops_plus(times(input, o->beta), product);
}

calx_tensor *calx_addmm_with(calx_tensor *input, calx_tensor *x, calx_tensor *y,
                             const calx_addmm_options *o)
{
  CX_OPS_AUTOCAST(CX_OPS_LOWER, &input, &x, &y);
  CX_OPS_COMPOSITE_COMPLEX("addmm");
  return add_product("addmm", input, calx_mm(x, y), o);
}

calx_tensor *calx_addmv_with(calx_tensor *input, calx_tensor *x, calx_tensor *y,
                             const calx_addmm_options *o)
{
  CX_OPS_AUTOCAST(CX_OPS_LOWER, &input, &x, &y);
  CX_OPS_COMPOSITE_COMPLEX("addmv");
  return add_product("addmv", input, calx_mv(x, y), o);
}

calx_tensor *calx_baddbmm_with(calx_tensor *input, calx_tensor *x,
                               calx_tensor *y, const calx_addmm_options *o)
{
  CX_OPS_AUTOCAST(CX_OPS_LOWER, &input, &x, &y);
  CX_OPS_COMPOSITE_COMPLEX("baddbmm");
  return add_product("baddbmm", input, calx_bmm(x, y), o);
}

calx_tensor *calx_addr_with(calx_tensor *input, calx_tensor *x, calx_tensor *y,
                            const calx_addmm_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("addr");
  return add_product("addr", input, calx_outer(x, y), o);
}

calx_tensor *calx_ger(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_COMPOSITE_COMPLEX("ger");
  return calx_outer(x, y);
}

// ---- einsum -----------------------------------------------------------------
//
// Every operand has a label for each dimension; a repeated label is a diagonal.
// The operands are joined one by one: labels of both that are still needed are
// a batch, labels of both that are not are summed by the product, and labels of
// one that are not needed are summed before.

enum { MOST_LABELS = CALX_MAX_RANK };

typedef struct labelled {
  calx_tensor *x;
  char labels[MOST_LABELS + 1];  // one for each dimension
} labelled;

static bool has(const char *labels, char c)
{
  return strchr(labels, c) != NULL;
}

static int index_of(const char *labels, char c)
{
  return (int)(strchr(labels, c) - labels);
}

static void remove_at(char *labels, int i)
{
  memmove(labels + i, labels + i + 1, strlen(labels + i));
}

// A label that stands twice: the diagonal of both dimensions.
static void take_diagonals(labelled *a)
{
  for (int i = 0; a->labels[i] != '\0'; i++) {
    const char *again = strchr(a->labels + i + 1, a->labels[i]);
    if (again == NULL) continue;
    char label = a->labels[i];
    int j = (int)(again - a->labels);
    calx_diagonal_options o = { .size = sizeof o, .dim1 = i, .dim2 = j };
    a->x = calx_diagonal_with(a->x, &o);
    remove_at(a->labels, j);
    remove_at(a->labels, i);
    size_t n = strlen(a->labels);
    a->labels[n] = label;
    a->labels[n + 1] = '\0';
    i--;
  }
}

// Sums over the labels that are in none of the two lists.
static void sum_others(labelled *a, const char *one, const char *two)
{
  int64_t dims[MOST_LABELS];
  size_t n = 0, kept = 0;
  for (int i = 0; a->labels[i] != '\0'; i++) {
    if (has(one, a->labels[i]) || has(two, a->labels[i])) {
      a->labels[kept++] = a->labels[i];
    } else {
      dims[n++] = i;
    }
  }
  a->labels[kept] = '\0';
  calx_reduce_options o = { .size = sizeof o, .dims = calx_dims_of(dims, n) };
  if (n != 0) a->x = calx_sum_with(a->x, &o);
}

static void order(labelled *a, const char *labels)
{
  int64_t dims[MOST_LABELS];
  size_t n = strlen(labels);
  for (size_t i = 0; i < n; i++) dims[i] = index_of(a->labels, labels[i]);
  a->x = calx_permute(a->x, calx_dims_of(dims, n));
  memmove(a->labels, labels, n + 1);
}

static int64_t size_of(const labelled *a, const char *labels)
{
  int64_t n = 1;
  for (; *labels != '\0'; labels++) {
    n *= calx_tensor_dim(a->x, index_of(a->labels, *labels));
  }
  return n;
}

// The labels of a that are in b (or are not), and are in `wanted` (or are not).
static void choose(const labelled *a, const labelled *b, bool in_b,
                   const char *wanted, bool in_wanted, char *out)
{
  for (const char *c = a->labels; *c != '\0'; c++) {
    if (has(b->labels, *c) == in_b && has(wanted, *c) == in_wanted) *out++ = *c;
  }
  *out = '\0';
}

// a becomes the product of a and b, of which the labels `wanted` are kept.
static void join(labelled *a, labelled *b, const char *wanted)
{
  char batch[MOST_LABELS + 1], summed[MOST_LABELS + 1];
  char left[MOST_LABELS + 1], right[MOST_LABELS + 1], all[4 * MOST_LABELS];
  sum_others(a, b->labels, wanted);
  sum_others(b, a->labels, wanted);
  choose(a, b, true, wanted, true, batch);
  choose(a, b, true, wanted, false, summed);
  choose(a, b, false, wanted, true, left);
  choose(b, a, false, wanted, true, right);
  cx_graph_shape out = { .rank = 0 };
  snprintf(all, sizeof all, "%s%s%s", batch, left, right);
  for (const char *c = all; *c != '\0' && out.rank < CALX_MAX_RANK; c++) {
    const labelled *from = has(a->labels, *c) ? a : b;
    out.dims[out.rank++] = calx_tensor_dim(from->x, index_of(from->labels, *c));
  }
  int64_t n[4] = { size_of(a, batch), size_of(a, left), size_of(a, summed),
                   size_of(b, right) };
  int64_t x_dims[3] = { n[0], n[1], n[2] }, y_dims[3] = { n[0], n[2], n[3] };
  snprintf(all, sizeof all, "%s%s%s", batch, left, summed);
  order(a, all);
  snprintf(all, sizeof all, "%s%s%s", batch, summed, right);
  order(b, all);
  a->x = calx_matmul(calx_reshape(a->x, calx_dims_of(x_dims, 3)),
                     calx_reshape(b->x, calx_dims_of(y_dims, 3)));
  if (cx_lazy_tensor_poisoned(a->x)) return;
  a->x = cx_ops_reshape_to(a->x, &out);
  snprintf(all, sizeof all, "%s%s%s", batch, left, right);
  snprintf(a->labels, sizeof a->labels, "%.8s", all);
}

static bool is_letter(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Reads the labels of one operand, up to ',' or "->". NULL: it is no equation.
static const char *read_labels(const char *p, char *out)
{
  size_t n = 0;
  for (; *p != '\0' && *p != ',' && *p != '-'; p++) {
    if (*p == ' ') continue;
    if (!is_letter(*p) || n == MOST_LABELS) return NULL;
    out[n++] = *p;
  }
  out[n] = '\0';
  return p;
}

// Without "->" the result has the labels that stand once, in order.
static void implied_result(const char *equation, char *out)
{
  size_t n = 0;
  for (char c = 'A'; c <= 'z'; c++) {
    const char *first = is_letter(c) ? strchr(equation, c) : NULL;
    if (first != NULL && strchr(first + 1, c) == NULL && n < MOST_LABELS) {
      out[n++] = c;
    }
  }
  out[n] = '\0';
}

// Fills the labels of all operands and of the result. False: they do not fit.
static bool read_equation(const char *equation, labelled *operands, size_t n,
                          char *result)
{
  const char *p = equation;
  for (size_t i = 0; i < n; i++) {
    p = read_labels(p, operands[i].labels);
    if (p == NULL || (i + 1 < n && *p++ != ',')) return false;
    if (strlen(operands[i].labels) != calx_tensor_rank(operands[i].x)) {
      return false;
    }
  }
  if (*p == '\0') {
    implied_result(equation, result);
    return true;
  }
  if (p[0] != '-' || p[1] != '>') return false;
  p = read_labels(p + 2, result);
  if (p == NULL || *p != '\0') return false;
  for (const char *c = result; *c != '\0'; c++) {
    bool known = false;
    for (size_t i = 0; i < n; i++) known |= has(operands[i].labels, *c);
    if (!known || strchr(c + 1, *c) != NULL) return false;
  }
  return true;
}

// Whether each label has one size everywhere. *out_label: one that has not.
static bool sizes_agree(const labelled *operands, size_t n, char *out_label)
{
  int64_t sizes[128] = { 0 };
  for (size_t i = 0; i < n; i++) {
    for (int k = 0; operands[i].labels[k] != '\0'; k++) {
      int64_t *known = &sizes[(unsigned char)operands[i].labels[k]];
      int64_t size = calx_tensor_dim(operands[i].x, k) + 1;
      if (*known == 0) *known = size;
      *out_label = operands[i].labels[k];
      if (*known != size) return false;
    }
  }
  return true;
}

calx_tensor *calx_einsum(const char *equation, calx_tensor *const *operands,
                         size_t count)
{
  enum { MOST_OPERANDS = 16 };
  CX_OPS_COMPOSITE_COMPLEX("einsum");
  labelled in[MOST_OPERANDS];
  char result[MOST_LABELS + 1], label;
  calx_tensor *bad;
  if (equation == NULL || operands == NULL || count == 0 ||
      count > MOST_OPERANDS) {
    return cx_ops_invalid("einsum: an equation and 1 to %d operands are wanted",
                          MOST_OPERANDS);
  }
  if (cx_ops_unfit("einsum", operands, (uint32_t)count, &bad)) return bad;
  for (size_t i = 0; i < count; i++) {
    in[i].x = cx_ops_autocast_one(CX_OPS_LOWER, operands[i]);
  }
  if (!read_equation(equation, in, count, result)) {
    return cx_ops_invalid(
        "einsum: '%.80s' does not fit %zu operands, the first "
        "%s: a letter for each dimension is wanted, as "
        "\"ij,jk->ik\"",
        equation, count, cx_graph_shape_str(cx_lazy_tensor_shape(operands[0])));
  }
  if (!sizes_agree(in, count, &label)) {
    return cx_ops_invalid("einsum: '%.80s': '%c' has several sizes", equation,
                          label);
  }
  for (size_t i = 0; i < count; i++) take_diagonals(&in[i]);
  for (size_t i = 1; i < count; i++) {
    char wanted[MOST_OPERANDS * MOST_LABELS + 1];
    size_t n = strlen(strcpy(wanted, result));
    for (size_t k = i + 1; k < count; k++) {
      n += strlen(strcpy(wanted + n, in[k].labels));
    }
    join(&in[0], &in[i], wanted);
    if (cx_lazy_tensor_poisoned(in[0].x)) return in[0].x;
  }
  sum_others(&in[0], result, "");
  order(&in[0], result);
  return in[0].x;
}
