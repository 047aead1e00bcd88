// coll/pieces: sums of operands that lie in several processes.
//
// All operands together are one row of elements, which goes through the window
// in pieces. Of each piece every member has a slice: it gets the others' part
// of that slice, combines it with its own, which it reads where it is, and
// gives the result to the others. Three things happen between two barriers:
// a piece is brought, the one before is combined, the one before that is taken;
// so a device needs two places for what it brings and two for what it makes,
// and a row of n pieces costs n + 1 barriers.
//
// Where other hosts have members too, a combined slice is exchanged with theirs
// (mpi_exchange.h) before it is taken, LAG pieces later. Hosts of which each
// has as many members agree about the slices; else the first member of each
// host has all of a piece for its slice.
#include "coll/pieces.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "coll/copy.h"
#include "coll/mpi_exchange.h"
#include "coll/mpi_far.h"
#include "coll/mpi_move.h"

enum { BLOCK = 2048, LINE = 64, LAG = CPU_COLL_OUTS - 2 };

// ---- the row ----

typedef struct row {
  cpu_coll_visit *visit;
  const cpu_coll_reducer *reducer;
  const cpu_coll_part *part;
  uint32_t n, me;              // of this host
  uint32_t lag;                // from what is combined to what is taken
  uint32_t outs;               // places for it
  bool leads;                  // slices are the first member's
  cpu_coll_mpi_exchange *far;  // NULL: nobody's, or not of this member
  bool taken;                  // whether this member gets the result
  cpu_coll_copy *copy;         // to the results
  int64_t elements;            // of all operands
  int64_t piece;               // elements
  size_t in, out;              // bytes of an element
  const void **x;              // [n]
} row;

// The elements [at, at + n) of an operand.
typedef struct span {
  uint32_t operand;
  int64_t at, n;
} span;

// What lies at `from` of the row, up to `to` at most.
static span span_at(const row *r, int64_t from, int64_t to)
{
  uint32_t i = 0;
  int64_t first = 0;
  for (;; i++) {
    const int64_t n = cx_hlo_type_elements(&r->part->operands[i].type);
    if (from < first + n) {
      const int64_t end = to < first + n ? to : first + n;
      return (span){ i, from - first, end - from };
    }
    first += n;
  }
}

typedef struct range {
  int64_t lo, hi;
} range;

static range piece_of(const row *r, int64_t k)
{
  const int64_t lo = k * r->piece;
  const int64_t left = r->elements - lo;
  return (range){ lo, lo + (left < r->piece ? left : r->piece) };
}

// Member i's slice of a piece, in elements of the piece.
static range slice_of(const row *r, int64_t k, uint32_t i)
{
  const range p = piece_of(r, k);
  const int64_t n = p.hi - p.lo;
  if (r->leads) return (range){ i == 0 ? 0 : n, n };
  const int64_t share = ((n + r->n - 1) / r->n + LINE - 1) / LINE * LINE;
  const int64_t lo = share * i < n ? share * i : n;
  return (range){ lo, n - lo < share ? n : lo + share };
}

static void bring_range(const row *r, int64_t first, range of,
                        unsigned char *to)
{
  for (int64_t at = of.lo; at < of.hi;) {
    const span s = span_at(r, first + at, first + of.hi);
    const unsigned char *x = r->part->operands[s.operand].data;
    memcpy(to + (size_t)at * r->in, x + (size_t)s.at * r->in,
           (size_t)s.n * r->in);
    at += s.n;
  }
}

// What the others need of this member's piece.
static void bring(const row *r, int64_t k)
{
  const range p = piece_of(r, k);
  const range own = slice_of(r, k, r->me);
  unsigned char *to =
      cpu_coll_piece_in(r->visit, cpu_coll_near(r->visit, r->me), k & 1);
  bring_range(r, p.lo, (range){ 0, own.lo }, to);
  bring_range(r, p.lo, (range){ own.hi, p.hi - p.lo }, to);
}

static void take(const row *r, const span *s, const unsigned char *from)
{
  unsigned char *y = r->part->results[s->operand].data;
  y += (size_t)s->at * r->out;
  r->copy(y, from, (size_t)s->n * r->out);
}

// Where member i's slice of a piece is, once it is combined.
static unsigned char *out_of(const row *r, int64_t k, uint32_t i)
{
  return cpu_coll_piece_out(r->visit, cpu_coll_near(r->visit, i),
                            (unsigned)(k % r->outs));
}

static calx_status *combine(const row *r, int64_t k)
{
  const int64_t first = piece_of(r, k).lo;
  const range own = slice_of(r, k, r->me);
  unsigned char *to = out_of(r, k, r->me);
  for (int64_t at = own.lo; at < own.hi;) {
    const int64_t end = own.hi - at < BLOCK ? own.hi : at + BLOCK;
    const span s = span_at(r, first + at, first + end);
    for (uint32_t i = 0; i < r->n; i++) {
      r->x[i] = cpu_coll_piece_in(r->visit, cpu_coll_near(r->visit, i), k & 1) +
                (size_t)at * r->in;
    }
    r->x[r->me] = (const unsigned char *)r->part->operands[s.operand].data +
                  (size_t)s.at * r->in;
    unsigned char *sum = to + (size_t)at * r->out;
    CALX_TRY(cpu_coll_reduce(r->reducer, r->x, r->n, 0, s.n, sum));
    if (r->taken && r->lag == 0) take(r, &s, sum);
    at += s.n;
  }
  if (r->far == NULL) return NULL;
  return cpu_coll_mpi_exchange_begin(r->far, k, to + (size_t)own.lo * r->out,
                                     own.hi - own.lo);
}

// The slices of the result that combine() has not taken.
static void take_all(const row *r, int64_t k)
{
  const int64_t first = piece_of(r, k).lo;
  for (uint32_t i = 0; i < r->n; i++) {
    if (i == r->me && r->lag == 0) continue;
    const range of = slice_of(r, k, i);
    const unsigned char *from = out_of(r, k, i);
    for (int64_t at = of.lo; at < of.hi;) {
      const span s = span_at(r, first + at, first + of.hi);
      take(r, &s, from + (size_t)at * r->out);
      at += s.n;
    }
  }
}

static calx_status *go(const row *r)
{
  const int64_t n = (r->elements + r->piece - 1) / r->piece;
  for (int64_t t = 0; t < n + 2 + r->lag; t++) {
    const int64_t taken = t - 2 - r->lag;
    if (t < n) bring(r, t);
    if (t > 0 && t <= n) CALX_TRY(combine(r, t - 1));
    if (taken >= 0 && r->taken) take_all(r, taken);
    if (r->far != NULL && taken + 1 >= 0 && taken + 1 < n) {
      CALX_TRY(cpu_coll_mpi_exchange_end(r->far, taken + 1));
    }
    if (t <= n + r->lag) CALX_TRY(cpu_coll_visit_wait(r->visit));
  }
  return NULL;
}

// With members of other hosts: all must have come before any tells another
// what it has.
static calx_status *go_far(row *r)
{
  cpu_coll_visit *v = r->visit;
  r->lag = LAG;
  r->outs = CPU_COLL_OUTS;
  for (uint32_t i = 0; i < v->n_sides; i++) {
    r->leads = r->leads || v->sides[i].n != r->n;
  }
  CALX_TRY(cpu_coll_visit_wait(v));
  CALX_TRY(cpu_coll_visit_wait(v));
  if (r->elements == 0) return cpu_coll_mpi_move(v, NULL, 0);
  if (!r->leads || r->me == 0) {
    CALX_TRY(cpu_coll_mpi_exchange_new(v, r->reducer, r->leads ? 0 : r->me,
                                       (size_t)r->piece * r->out, &r->far));
  }
  calx_status *status = go(r);
  cpu_coll_mpi_exchange_free(r->far);
  return status;
}

calx_status *cpu_coll_reduce_in_pieces(cpu_coll_visit *v,
                                       const cpu_coll_reducer *reducer)
{
  const cpu_coll_part *part = v->part;
  row r = { .visit = v,
            .reducer = reducer,
            .part = part,
            .n = v->n_near,
            .me = v->near_me,
            .outs = 2,
            .taken = part->op->kind != CX_HLO_OP_COLLECTIVE_REDUCE ||
                     v->group->me == 0,
            .in = cx_hlo_elem_bytes(reducer->from),
            .out = cx_hlo_elem_bytes(reducer->elem) };
  for (uint32_t i = 0; i < part->op->n_operands; i++) {
    const int64_t n = cx_hlo_type_elements(&part->operands[i].type);
    r.elements += n;
    if (r.taken) continue;
    memset(part->results[i].data, 0, (size_t)n * r.out);
  }
  r.piece = (int64_t)(CPU_COLL_PIECE / (r.in > r.out ? r.in : r.out));
  r.copy = cpu_coll_copy_of((size_t)r.elements * r.out);
  r.x = cx_alloc(r.n * sizeof *r.x);
  if (r.x == NULL) return cx_out_of_memory();
  calx_status *status = v->n_sides > 1 ? go_far(&r) : go(&r);
  cx_free(r.x);
  return status;
}
