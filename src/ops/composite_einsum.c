// ops/composite_einsum: sums of products by Einstein's convention.
//
// Every operand has a label for each dimension; a repeated label is a diagonal.
// The operands are joined one by one: labels of both that are still needed are
// a batch, labels of both that are not are summed by the product, and labels of
// one that are not needed are summed before. A dimension of size 1 beside a
// larger one of its label is left out: the product repeats it.
#include <stdio.h>
#include <string.h>

#include "ops/autocast.h"
#include "ops/composite.h"

// The dimensions of "..." have the labels 1, 2, …, the last one 1.
enum { MOST_LABELS = CALX_MAX_RANK };

typedef struct labelled {
  calx_tensor *x;
  char labels[MOST_LABELS + 2];  // one for each dimension, and a '.' at first
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
  if (strlen(all) > CALX_MAX_RANK) {
    a->x = cx_ops_invalid(
        "einsum: the product of operands before the last has rank %zu, at most "
        "%d are possible: order them so that more is summed early",
        strlen(all), CALX_MAX_RANK);
    return;
  }
  for (const char *c = all; *c != '\0'; c++) {
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

// Reads the labels of one operand, up to ',' or "->"; a '.' stands for "...".
// NULL: it is no equation.
static const char *read_labels(const char *p, char *out)
{
  size_t n = 0;
  out[0] = '\0';
  for (; *p != '\0' && *p != ',' && *p != '-'; p++) {
    if (*p == ' ') continue;
    bool had_dots = has(out, '.');
    bool dots = strncmp(p, "...", 3) == 0 && !had_dots;
    if (!is_letter(*p) && !dots) return NULL;
    if (n == (size_t)MOST_LABELS + dots + had_dots) return NULL;
    if (dots) p += 2;
    out[n++] = *p;
    out[n] = '\0';
  }
  return p;
}

// Replaces '.' by the labels of the n dimensions of "...": the last one has
// label 1, so that dimensions of several operands meet from the end. False: too
// many.
static bool expand_dots(char *labels, size_t n)
{
  char *dots = strchr(labels, '.');
  if (dots == NULL) return true;
  if (strlen(labels) - 1 + n > MOST_LABELS) return false;
  memmove(dots + n, dots + 1, strlen(dots));
  for (size_t i = 0; i < n; i++) dots[i] = (char)(n - i);
  return true;
}

// Without "->" the result has the dimensions of "..." and then the letters that
// stand once, in order.
static void implied_result(const char *equation, char *out)
{
  size_t n = 0;
  out[n++] = '.';
  for (char c = 'A'; c <= 'z'; c++) {
    const char *first = is_letter(c) ? strchr(equation, c) : NULL;
    if (first != NULL && strchr(first + 1, c) == NULL && n <= MOST_LABELS) {
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
  size_t most = 0;  // dimensions that "..." stands for
  for (size_t i = 0; i < n; i++) {
    char *labels = operands[i].labels;
    p = read_labels(p, labels);
    if (p == NULL || (i + 1 < n && *p++ != ',')) return false;
    bool dots = has(labels, '.');
    size_t rank = calx_tensor_rank(operands[i].x);
    size_t letters = strlen(labels) - dots;
    if (letters > rank || (letters != rank && !dots)) return false;
    if (rank - letters > most) most = rank - letters;
    if (!expand_dots(labels, rank - letters)) return false;
  }
  if (*p == '\0') {
    implied_result(equation, result);
    return expand_dots(result, most);
  }
  if (p[0] != '-' || p[1] != '>') return false;
  p = read_labels(p + 2, result);
  if (p == NULL || *p != '\0' || !expand_dots(result, most)) return false;
  for (const char *c = result; *c != '\0'; c++) {
    bool known = false;
    for (size_t i = 0; i < n; i++) known |= has(operands[i].labels, *c);
    if (!known || strchr(c + 1, *c) != NULL) return false;
  }
  return true;
}

typedef struct extents {
  int64_t of[128];    // by label; 1: not seen, or 1 everywhere
  int64_t differ[2];  // two sizes of one label
} extents;

// Whether each label has one size everywhere, or else 1; in one operand it has
// one size. *out_label: one that has not.
static bool sizes_agree(const labelled *operands, size_t n, extents *out,
                        char *out_label)
{
  for (int i = 0; i < 128; i++) out->of[i] = 1;
  for (size_t i = 0; i < n; i++) {
    const char *labels = operands[i].labels;
    for (int k = 0; labels[k] != '\0'; k++) {
      int64_t *known = &out->of[(unsigned char)labels[k]];
      int64_t size = calx_tensor_dim(operands[i].x, k);
      int64_t first =
          calx_tensor_dim(operands[i].x, index_of(labels, labels[k]));
      *out_label = labels[k];
      if (size != first || (size != 1 && *known != 1 && *known != size)) {
        out->differ[0] = size != first ? first : *known;
        out->differ[1] = size;
        return false;
      }
      if (size != 1) *known = size;
    }
  }
  return true;
}

// Leaves out the dimensions of size 1 whose label has another size elsewhere.
static void drop_size_one(labelled *a, const extents *sizes)
{
  for (int i = 0; a->labels[i] != '\0';) {
    if (calx_tensor_dim(a->x, i) != 1 ||
        sizes->of[(unsigned char)a->labels[i]] == 1) {
      i++;
      continue;
    }
    a->x = calx_squeeze(a->x, i);
    remove_at(a->labels, i);
  }
}

calx_tensor *calx_einsum(const char *equation, calx_tensor *const *operands,
                         size_t count)
{
  enum { MOST_OPERANDS = 16 };
  CX_OPS_COMPOSITE_COMPLEX("einsum");
  labelled in[MOST_OPERANDS];
  char result[MOST_LABELS + 2], label[2] = "";
  extents sizes;
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
        "%s: a letter for each dimension, or \"...\" for some, is wanted, as "
        "\"ij,jk->ik\"",
        equation, count, cx_graph_shape_str(cx_lazy_tensor_shape(operands[0])));
  }
  if (!sizes_agree(in, count, &sizes, label)) {
    return cx_ops_invalid("einsum: '%.80s': '%.3s' has the sizes %lld and %lld",
                          equation, is_letter(label[0]) ? label : "...",
                          (long long)sizes.differ[0],
                          (long long)sizes.differ[1]);
  }
  for (size_t i = 0; i < count; i++) {
    take_diagonals(&in[i]);
    drop_size_one(&in[i], &sizes);
  }
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
