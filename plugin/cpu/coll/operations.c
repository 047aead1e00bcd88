// coll/operations: see operations.h.
//
// A reduction: each member combines its own slice of the elements, in the order
// of the group, and writes it to all members' results. So each result is
// computed once and all members get the same bits. The other operations: each
// member writes its own results.
#include "coll/operations.h"

#include <string.h>

#include "coll/copy.h"
#include "coll/groups.h"

enum { BLOCK = 1024, MAX_BYTES = 16, LINE = 64 };

static size_t bytes_of(const cpu_ref_tensor *t)
{
  return (size_t)cx_hlo_type_bytes(&t->type);
}

static unsigned char *bytes(const cpu_ref_tensor *t)
{
  return t->data;
}

// The product of the sizes from dimension a to before b.
static int64_t product(const cx_hlo_type *t, int64_t a, int64_t b)
{
  int64_t n = 1;
  for (int64_t i = a; i < b; i++) n *= t->dims[i];
  return n;
}

static void gather_operand(const cpu_coll_job *j, uint32_t operand)
{
  for (uint32_t i = 0; i < j->n; i++) {
    j->x[i] = j->submissions[i].operands[operand].data;
  }
}

// ---- reductions ----

bool cpu_coll_is_all_reduce(const cx_hlo_op *op)
{
  return op->kind == CX_HLO_OP_ALL_REDUCE ||
         op->kind == CX_HLO_OP_CROSS_REPLICA_SUM;
}

// Reduces the elements [lo, hi) of one operand of all members and writes them
// to the results of the first `n_to` members.
static calx_status *reduce_range(const cpu_coll_job *j, uint32_t operand,
                                 int64_t lo, int64_t hi, uint32_t n_to)
{
  _Alignas(64) unsigned char block[BLOCK * MAX_BYTES];
  const size_t size = cx_hlo_elem_bytes(j->reducer.elem);
  const int64_t max_n = BLOCK * MAX_BYTES / (int64_t)size;
  cpu_coll_copy *copy =
      cpu_coll_copy_of(bytes_of(&j->submissions[j->me].results[operand]));
  for (int64_t at = lo; at < hi; at += max_n) {
    const int64_t n = hi - at < max_n ? hi - at : max_n;
    CALX_TRY(cpu_coll_reduce(&j->reducer, j->x, j->n, at, n, block));
    for (uint32_t i = 0; i < n_to; i++) {
      copy(bytes(&j->submissions[i].results[operand]) + (size_t)at * size,
           block, (size_t)n * size);
    }
  }
  return NULL;
}

// Each member reduces its own slice. Slices begin on cache lines of the
// smallest type.
static calx_status *all_reduce(const cpu_coll_job *j, uint32_t operand)
{
  const int64_t n =
      cx_hlo_type_elements(&j->submissions[j->me].operands[operand].type);
  const int64_t share = (n / j->n / LINE + 1) * LINE;
  const int64_t lo = (int64_t)j->me * share < n ? (int64_t)j->me * share : n;
  const int64_t hi = n - lo < share ? n : lo + share;
  const bool all = cpu_coll_is_all_reduce(j->op);
  gather_operand(j, operand);
  const cpu_ref_tensor *own = &j->submissions[j->me].results[operand];
  if (!all && j->me != 0) memset(own->data, 0, bytes_of(own));
  return reduce_range(j, operand, lo, hi, all ? j->n : 1);
}

static calx_status *reduce_scatter(const cpu_coll_job *j, uint32_t operand)
{
  const cpu_ref_tensor *y = &j->submissions[j->me].results[operand];
  const int64_t d = cx_hlo_op_int(j->op, CX_HLO_A_SCATTER_DIMENSION);
  const int64_t outer = product(&y->type, 0, d);
  const int64_t run = product(&y->type, d, (int64_t)y->type.rank);
  const size_t size = cx_hlo_elem_bytes(j->reducer.elem);
  gather_operand(j, operand);
  for (int64_t i = 0; i < outer; i++) {
    const int64_t from = (i * j->n + j->me) * run;
    for (int64_t at = 0; at < run; at += BLOCK) {
      const int64_t n = run - at < BLOCK ? run - at : BLOCK;
      CALX_TRY(cpu_coll_reduce(&j->reducer, j->x, j->n, from + at, n,
                               bytes(y) + (size_t)(i * run + at) * size));
    }
  }
  return NULL;
}

// ---- movements ----

static void all_gather(const cpu_coll_job *j, uint32_t operand)
{
  const cpu_ref_tensor *y = &j->submissions[j->me].results[operand];
  const cx_hlo_type *t = &j->submissions[j->me].operands[operand].type;
  const int64_t d = cx_hlo_op_int(j->op, CX_HLO_A_ALL_GATHER_DIM);
  const int64_t outer = product(t, 0, d);
  const size_t run =
      (size_t)product(t, d, (int64_t)t->rank) * cx_hlo_elem_bytes(t->elem);
  gather_operand(j, operand);
  for (int64_t i = 0; i < outer; i++) {
    for (uint32_t k = 0; k < j->n; k++) {
      memcpy(bytes(y) + ((size_t)i * j->n + k) * run,
             (const unsigned char *)j->x[k] + (size_t)i * run, run);
    }
  }
}

// all_to_all. The operand is outer x A x middle x B x inner, with A and B the
// two dimensions in their order (B = 1 where they are the same). One of them is
// split, the other grows.
typedef struct exchange {
  int64_t outer, a, middle, b, inner;
  bool split_a, same;
} exchange;

static exchange exchange_of(const cx_hlo_op *op, const cx_hlo_type *t)
{
  const int64_t split = cx_hlo_op_int(op, CX_HLO_A_SPLIT_DIMENSION);
  const int64_t join = cx_hlo_op_int(op, CX_HLO_A_CONCAT_DIMENSION);
  const int64_t low = split < join ? split : join;
  const int64_t high = split < join ? join : split;
  const int64_t rank = (int64_t)t->rank;
  exchange e = { .outer = product(t, 0, low),
                 .a = t->dims[low],
                 .middle = 1,
                 .b = 1,
                 .inner = product(t, high + 1, rank),
                 .split_a = split <= join,
                 .same = split == join };
  if (e.same) return e;
  e.middle = product(t, low + 1, high);
  e.b = t->dims[high];
  return e;
}

// Copies the part of member k's operand that belongs to `me`.
static void exchange_from(const exchange *e, uint32_t n, uint32_t me,
                          uint32_t k, size_t size, const unsigned char *x,
                          unsigned char *y)
{
  const int64_t a = e->split_a ? e->a / n : e->a;
  const int64_t b = e->split_a ? e->b : e->b / n;
  const int64_t run = b * e->inner;
  // Strides and offsets in elements; a row is B x inner.
  const int64_t x_row = e->b * e->inner;
  const int64_t y_row = e->split_a && !e->same ? run * n : run;
  const int64_t y_a = e->split_a && !e->same ? a : a * n;
  const int64_t x_first = e->split_a ? me * a * e->middle * x_row : me * run;
  const int64_t y_first =
      e->split_a && !e->same ? k * run : k * a * e->middle * y_row;
  for (int64_t o = 0; o < e->outer; o++) {
    const int64_t from = x_first + o * e->a * e->middle * x_row;
    const int64_t to = y_first + o * y_a * e->middle * y_row;
    for (int64_t i = 0; i < a * e->middle; i++) {
      memcpy(y + (size_t)(to + i * y_row) * size,
             x + (size_t)(from + i * x_row) * size, (size_t)run * size);
    }
  }
}

static void all_to_all(const cpu_coll_job *j, uint32_t operand)
{
  const cpu_ref_tensor *y = &j->submissions[j->me].results[operand];
  const cx_hlo_type *t = &j->submissions[j->me].operands[operand].type;
  const exchange e = exchange_of(j->op, t);
  gather_operand(j, operand);
  for (uint32_t k = 0; k < j->n; k++) {
    exchange_from(&e, j->n, j->me, k, cx_hlo_elem_bytes(t->elem), j->x[k],
                  bytes(y));
  }
}

// `from` < 0: zeros.
static void copy_from(const cpu_coll_job *j, int64_t from, uint32_t operand)
{
  const cpu_ref_tensor *y = &j->submissions[j->me].results[operand];
  if (from < 0) {
    memset(y->data, 0, bytes_of(y));
  } else {
    memcpy(y->data, j->submissions[from].operands[operand].data, bytes_of(y));
  }
}

calx_status *cpu_coll_work(const cpu_coll_job *j)
{
  for (uint32_t i = 0; i < j->op->n_operands; i++) {
    switch (j->op->kind) {
      case CX_HLO_OP_ALL_GATHER: all_gather(j, i); break;
      case CX_HLO_OP_ALL_TO_ALL: all_to_all(j, i); break;
      case CX_HLO_OP_COLLECTIVE_PERMUTE: copy_from(j, j->source, i); break;
      case CX_HLO_OP_COLLECTIVE_BROADCAST: copy_from(j, 0, i); break;
      case CX_HLO_OP_REDUCE_SCATTER: CALX_TRY(reduce_scatter(j, i)); break;
      default: CALX_TRY(all_reduce(j, i)); break;
    }
  }
  return NULL;
}
