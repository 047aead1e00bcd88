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

enum {
  BLOCK = 1024,
  MAX_BYTES = 16,  // of an element
  MAX_RANK = 256,  // the parser allows 255
  LINE = 64
};

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

// Copies a box of an operand to a box of a result: runs of `bytes`, along
// `rank` dimensions of sizes `n`. Steps are in bytes.
typedef struct box {
  size_t rank, bytes;
  int64_t n[MAX_RANK];
  size_t x_step[MAX_RANK], y_step[MAX_RANK];
} box;

static void copy_box(const box *b, size_t d, const unsigned char *x,
                     unsigned char *y)
{
  if (d == b->rank) {
    memcpy(y, x, b->bytes);
    return;
  }
  for (int64_t i = 0; i < b->n[d]; i++) {
    copy_box(b, d + 1, x + (size_t)i * b->x_step[d],
             y + (size_t)i * b->y_step[d]);
  }
}

// Each member sends this one a box of its operand: the whole, or the part with
// this member's index along the dimension `split`. The boxes follow each other
// in the result along the dimension `join`. `split` < 0: the whole.
static void gather(const cpu_coll_job *j, uint32_t operand, int64_t split,
                   int64_t join)
{
  const cpu_ref_tensor *y = &j->submissions[j->me].results[operand];
  const cx_hlo_type *t = &j->submissions[j->me].operands[operand].type;
  box b = { .rank = t->rank, .bytes = cx_hlo_elem_bytes(t->elem) };
  size_t x_step = b.bytes, y_step = b.bytes;
  for (size_t d = t->rank; d-- > 0;) {
    b.n[d] = (int64_t)d == split ? t->dims[d] / j->n : t->dims[d];
    b.x_step[d] = x_step;
    b.y_step[d] = y_step;
    if (b.bytes == x_step && b.bytes == y_step) {
      b.rank = d;
      b.bytes *= (size_t)b.n[d];
    }
    x_step *= (size_t)t->dims[d];
    y_step *= (size_t)y->type.dims[d];
  }
  const size_t x_at =
      split < 0 ? 0 : j->me * (size_t)b.n[split] * b.x_step[split];
  const size_t y_at = (size_t)b.n[join] * b.y_step[join];
  for (uint32_t k = 0; k < j->n; k++) {
    const unsigned char *x = bytes(&j->submissions[k].operands[operand]);
    copy_box(&b, 0, x + x_at, bytes(y) + k * y_at);
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
      case CX_HLO_OP_ALL_GATHER:
        gather(j, i, -1, cx_hlo_op_int(j->op, CX_HLO_A_ALL_GATHER_DIM));
        break;
      case CX_HLO_OP_ALL_TO_ALL:
        gather(j, i, cx_hlo_op_int(j->op, CX_HLO_A_SPLIT_DIMENSION),
               cx_hlo_op_int(j->op, CX_HLO_A_CONCAT_DIMENSION));
        break;
      case CX_HLO_OP_COLLECTIVE_PERMUTE: copy_from(j, j->source, i); break;
      case CX_HLO_OP_COLLECTIVE_BROADCAST: copy_from(j, 0, i); break;
      case CX_HLO_OP_REDUCE_SCATTER: CALX_TRY(reduce_scatter(j, i)); break;
      default: CALX_TRY(all_reduce(j, i)); break;
    }
  }
  return NULL;
}
