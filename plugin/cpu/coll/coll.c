// coll/coll: the operations. Members meet, work, and part; between the two,
// each reads all members' operands.
//
// Reductions: each member combines its own slice of the elements, in the order
// of the group, and writes it to all members' results, so every bit is computed
// once. The other operations: each member writes its own results. Operands that
// lie in memory which somebody writes meanwhile are copied before they are
// shown.
#include "coll/coll.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "coll/copy.h"
#include "coll/groups.h"
#include "coll/mpi_move.h"
#include "coll/pieces.h"
#include "coll/reduce.h"
#include "coll/say.h"
#include "coll/window.h"

enum { BLOCK = 1024, MOST_BYTES = 16, LINE = 64, LARGE = 16 << 20 };

// A member's work on one collective.
typedef struct job {
  const cx_hlo_op *op;
  cpu_coll_part *parts;  // of the group, n
  uint32_t n, me;
  int64_t source;  // collective_permute: the member that sends; -1: none
  cpu_coll_reducer reducer;
  const void **x;  // n: one operand of all members
} job;

static size_t bytes_of(const cpu_ref_tensor *t)
{
  return (size_t)cx_hlo_type_bytes(&t->type);
}

// To whole cache lines.
static size_t round_up(size_t size)
{
  return (size + LINE - 1) / LINE * LINE;
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

static void gather_operand(const job *j, uint32_t operand)
{
  for (uint32_t i = 0; i < j->n; i++) {
    j->x[i] = j->parts[i].operands[operand].data;
  }
}

// ---- reductions ----

static bool is_all_reduce(const cx_hlo_op *op)
{
  return op->kind == CX_HLO_OP_ALL_REDUCE ||
         op->kind == CX_HLO_OP_CROSS_REPLICA_SUM;
}

// Elements [lo, hi) of one operand into the results of the first `n_to`.
static calx_status *reduce_range(const job *j, uint32_t operand, int64_t lo,
                                 int64_t hi, uint32_t n_to)
{
  _Alignas(64) unsigned char block[BLOCK * MOST_BYTES];
  const size_t size = cx_hlo_elem_bytes(j->reducer.elem);
  const int64_t most = BLOCK * MOST_BYTES / (int64_t)size;
  cpu_coll_copy *copy =
      cpu_coll_copy_of(bytes_of(&j->parts[j->me].results[operand]));
  for (int64_t at = lo; at < hi; at += most) {
    const int64_t n = hi - at < most ? hi - at : most;
    CALX_TRY(cpu_coll_reduce(&j->reducer, j->x, j->n, at, n, block));
    for (uint32_t i = 0; i < n_to; i++) {
      copy(bytes(&j->parts[i].results[operand]) + (size_t)at * size, block,
           (size_t)n * size);
    }
  }
  return NULL;
}

// Slices begin on cache lines of the smallest type.
static calx_status *all_reduce(const job *j, uint32_t operand)
{
  const int64_t n =
      cx_hlo_type_elements(&j->parts[j->me].operands[operand].type);
  const int64_t share = (n / j->n / LINE + 1) * LINE;
  const int64_t lo = (int64_t)j->me * share < n ? (int64_t)j->me * share : n;
  const int64_t hi = n - lo < share ? n : lo + share;
  const bool all = is_all_reduce(j->op);
  gather_operand(j, operand);
  const cpu_ref_tensor *own = &j->parts[j->me].results[operand];
  if (!all && j->me != 0) memset(own->data, 0, bytes_of(own));
  return reduce_range(j, operand, lo, hi, all ? j->n : 1);
}

static calx_status *reduce_scatter(const job *j, uint32_t operand)
{
  const cpu_ref_tensor *y = &j->parts[j->me].results[operand];
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

static void all_gather(const job *j, uint32_t operand)
{
  const cpu_ref_tensor *y = &j->parts[j->me].results[operand];
  const cx_hlo_type *t = &j->parts[j->me].operands[operand].type;
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

// The operand is outer x A x middle x B x inner, with A and B the two
// dimensions in their order (B = 1 where they are the same); one of them is
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

// What member k sends to `me`.
static void exchange_from(const exchange *e, uint32_t n, uint32_t me,
                          uint32_t k, size_t size, const unsigned char *x,
                          unsigned char *y)
{
  const int64_t a = e->split_a ? e->a / n : e->a;
  const int64_t b = e->split_a ? e->b : e->b / n;
  const int64_t run = b * e->inner;
  // Places in units of elements: of rows of B and inner.
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

static void all_to_all(const job *j, uint32_t operand)
{
  const cpu_ref_tensor *y = &j->parts[j->me].results[operand];
  const cx_hlo_type *t = &j->parts[j->me].operands[operand].type;
  const exchange e = exchange_of(j->op, t);
  gather_operand(j, operand);
  for (uint32_t k = 0; k < j->n; k++) {
    exchange_from(&e, j->n, j->me, k, cx_hlo_elem_bytes(t->elem), j->x[k],
                  bytes(y));
  }
}

// From < 0: zeros.
static void copy_from(const job *j, int64_t from, uint32_t operand)
{
  const cpu_ref_tensor *y = &j->parts[j->me].results[operand];
  if (from < 0) {
    memset(y->data, 0, bytes_of(y));
  } else {
    memcpy(y->data, j->parts[from].operands[operand].data, bytes_of(y));
  }
}

static calx_status *work(const job *j)
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

// ---- operands that must be copied ----

static bool overlap(const cpu_ref_tensor *a, const cpu_ref_tensor *b)
{
  const uintptr_t x = (uintptr_t)a->data, y = (uintptr_t)b->data;
  return x < y + bytes_of(b) && y < x + bytes_of(a);
}

// Reductions of all read and write each element at its place.
static bool must_copy(const cx_hlo_op *op, uint32_t i,
                      const cpu_ref_tensor *operands,
                      const cpu_ref_tensor *results)
{
  for (uint32_t k = 0; k < op->n_results; k++) {
    const bool in_place = is_all_reduce(op) && i == k &&
                          operands[i].data == results[k].data &&
                          bytes_of(&operands[i]) == bytes_of(&results[k]);
    if (!in_place && overlap(&operands[i], &results[k])) return true;
  }
  return false;
}

// *out: the operands with copies where needed, or `operands` itself.
static calx_status *copy_operands(const cx_hlo_op *op,
                                  const cpu_ref_tensor *operands,
                                  const cpu_ref_tensor *results,
                                  cpu_ref_tensor **out)
{
  size_t total = 0;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (!must_copy(op, i, operands, results)) continue;
    total += round_up(bytes_of(&operands[i]));
  }
  *out = NULL;
  if (total == 0) return NULL;
  const size_t head = round_up(op->n_operands * sizeof **out);
  cpu_ref_tensor *copies = cx_alloc(head + total);
  if (copies == NULL) return cx_out_of_memory();
  unsigned char *at = (unsigned char *)copies + head;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    copies[i] = operands[i];
    if (!must_copy(op, i, operands, results)) continue;
    const size_t size = bytes_of(&operands[i]);
    memcpy(at, operands[i].data, size);
    copies[i].data = at;
    at += round_up(size);
  }
  *out = copies;
  return NULL;
}

// ---- one collective ----

// Where the device that sends stands in the group.
static int64_t source_in(const cx_hlo_op *op, const cpu_coll_launch *l,
                         const cpu_coll_group *g)
{
  if (op->kind != CX_HLO_OP_COLLECTIVE_PERMUTE) return -1;
  const int64_t device =
      cpu_coll_source_of(op, l->n_partitions, g->members[g->me]);
  for (uint32_t i = 0; i < g->n; i++) {
    if (g->members[i] == device) return i;
  }
  return -1;
}

// All of this process.
static calx_status *run_direct(cpu_coll_visit *v, job *j)
{
  calx_status *status = cpu_coll_visit_wait(v);
  if (status == NULL) {
    for (uint32_t i = 0; i < j->n; i++)
      j->parts[i] = *cpu_coll_visit_part(v, i);
    status = work(j);
  }
  return cpu_coll_visit_leave(v, status);
}

// Whether others read this member's operands.
static bool is_read(const job *j)
{
  return j->op->kind != CX_HLO_OP_COLLECTIVE_BROADCAST || j->me == 0;
}

// Copies the operands where all can see them; `parts`: as all have them.
static calx_status *show(const cpu_coll_visit *v, const job *j, size_t total,
                         cpu_ref_tensor *tensors)
{
  const uint32_t n = j->op->n_operands;
  for (uint32_t k = 0; k < j->n; k++) {
    unsigned char *at = NULL;
    CALX_TRY(cpu_coll_region(v, k, total, &at));
    j->parts[k] = *v->part;
    j->parts[k].operands = tensors + (size_t)k * n;
    for (uint32_t i = 0; i < n; i++) {
      const cpu_ref_tensor *x = &v->part->operands[i];
      tensors[(size_t)k * n + i] = (cpu_ref_tensor){ x->type, at };
      if (k == j->me && is_read(j)) memcpy(at, x->data, bytes_of(x));
      at += round_up(bytes_of(x));
    }
  }
  return NULL;
}

// After this the members of this host see all operands.
static calx_status *meet_all(cpu_coll_visit *v,
                             const cpu_coll_mpi_layout *operands, size_t total)
{
  CALX_TRY(cpu_coll_visit_wait(v));
  if (v->n_sides == 1) return NULL;
  // All of this host have seen those of the others.
  CALX_TRY(cpu_coll_visit_wait(v));
  CALX_TRY(cpu_coll_mpi_move(v, operands, total));
  return cpu_coll_visit_wait(v);
}

// Nobody of this host reads them any more.
static calx_status *give_back(cpu_coll_visit *v, size_t total)
{
  if (v->n_sides == 1 || total < LARGE) return NULL;
  CALX_TRY(cpu_coll_visit_wait(v));
  cpu_coll_mpi_move_trim(v);
  return NULL;
}

static calx_status *move_between(cpu_coll_visit *v, job *j)
{
  const size_t n = j->n, n_operands = j->op->n_operands;
  cpu_ref_tensor *tensors = cx_alloc(
      n_operands * (n * sizeof *tensors + sizeof(cpu_coll_mpi_layout)));
  if (tensors == NULL) return cx_out_of_memory();
  cpu_coll_mpi_layout *operands =
      (cpu_coll_mpi_layout *)(tensors + n * n_operands);
  size_t total = 0;
  for (size_t i = 0; i < n_operands; i++) {
    operands[i].at = total;
    total += round_up(bytes_of(&v->part->operands[i]));
  }
  calx_status *status = show(v, j, total, tensors);
  if (status == NULL) status = meet_all(v, operands, total);
  if (status == NULL) status = work(j);
  if (status == NULL) status = give_back(v, total);
  cx_free(tensors);
  return status;
}

static calx_status *run_among(cpu_coll_launch *l, const cpu_coll_group *g,
                              const cpu_coll_part *part, job *j)
{
  cpu_coll_visit v = { .launch = l, .group = g, .part = part };
  CALX_TRY(cpu_coll_visit_begin(&v, &j->reducer));
  const bool sums =
      is_all_reduce(part->op) || part->op->kind == CX_HLO_OP_COLLECTIVE_REDUCE;
  CALX_TRY(v.direct ? run_direct(&v, j)
           : sums   ? cpu_coll_reduce_in_pieces(&v, &j->reducer)
                    : move_between(&v, j));
  l->n_done++;
  cpu_coll_visit_end(&v);
  return NULL;
}

static calx_status *run_group(cpu_coll_launch *l, const cpu_coll_group *g,
                              const cpu_coll_part *part)
{
  cpu_coll_part *parts = cx_alloc(g->n * (sizeof *parts + sizeof(void *)));
  if (parts == NULL) return cx_out_of_memory();
  job j = { .op = part->op,
            .parts = parts,
            .n = g->n,
            .me = g->me,
            .source = source_in(part->op, l, g),
            .reducer = cpu_coll_reducer_of(part->module, part->op),
            .x = (const void **)(parts + g->n) };
  j.reducer.context.replica = l->replica;
  j.reducer.context.partition = l->partition;
  calx_status *status = NULL;
  if (g->n == 1) {
    *parts = *part;
    status = work(&j);
    if (status == NULL) l->n_done++;
  } else {
    status = run_among(l, g, part, &j);
  }
  cx_free(parts);
  return status;
}

calx_status *cpu_coll_run(cpu_coll_launch *launch, const cx_hlo_module *m,
                          const cx_hlo_op *op, const cpu_ref_tensor *operands,
                          const cpu_ref_tensor *results)
{
  cpu_coll_group g;
  const uint32_t device =
      launch->replica * launch->n_partitions + launch->partition;
  CALX_TRY(cpu_coll_group_of(op, launch->n_replicas, launch->n_partitions,
                             device, &g));
  if (g.n == 0) {
    // Of a broadcast, a device that is in no group gets zeros.
    for (uint32_t i = 0; i < op->n_results; i++) {
      memset(results[i].data, 0, bytes_of(&results[i]));
    }
    launch->n_done++;
    cx_free(g.members);
    return NULL;
  }
  cpu_ref_tensor *copies = NULL;
  calx_status *status = copy_operands(op, operands, results, &copies);
  if (status == NULL) {
    const cpu_coll_part part = { m, op, copies == NULL ? operands : copies,
                                 results };
    status = run_group(launch, &g, &part);
  }
  cx_free(copies);
  cx_free(g.members);
  return status;
}
