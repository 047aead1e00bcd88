// coll/staged: see staged.h.
//
// All operands together are one row of elements, which passes through staging
// buffers in chunks. Each member reduces one slice of each chunk. Between two
// barriers a member stages its operand's next chunk for the others, reduces its
// slice of the chunk before, and copies the reduced slices of the chunk before
// that to its results. Its own part of its slice it reads in place. So a device
// needs two staging buffers for operands and two for results, and a row of n
// chunks costs n + 1 barriers.
//
// With members on other hosts, a reduced slice is exchanged with theirs
// (exchange.h) and copied to the results LAG chunks later. If all hosts have
// equally many members, they cut chunks into the same slices. Else the first
// member of each host has the whole chunk as its slice.
#include "coll/staged.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "coll/copy.h"
#include "coll/exchange.h"
#include "coll/move.h"
#include "coll/remote.h"

enum { BLOCK = 2048, LINE = 64, LAG = CPU_COLL_STAGING_OUTS - 2 };

// ---- the row ----

typedef struct staged_row {
  cpu_coll_participant *participant;
  const cpu_coll_reducer *reducer;
  const cpu_coll_submission *submission;
  uint32_t n, me;    // members of this host
  uint32_t lag;      // chunks from the reduction of a slice to its copy
  uint32_t outs;     // staging buffers for results
  bool leader_only;  // the first member of the host has the whole slice
  cpu_coll_exchange *exchange;  // with other hosts; NULL: not by this member
  bool receives;                // whether this member gets the result
  cpu_coll_copy *copy;          // to the results
  int64_t elements;             // of all operands
  int64_t chunk;                // elements
  size_t in, out;               // bytes of an element of operands, of results
  const void **x;               // [n]
} staged_row;

// The elements [at, at + n) of an operand.
typedef struct span {
  uint32_t operand;
  int64_t at, n;
} span;

// The operand that has the element `from` of the row, and its elements up to
// `to`.
static span span_at(const staged_row *r, int64_t from, int64_t to)
{
  uint32_t i = 0;
  int64_t first = 0;
  for (;; i++) {
    const int64_t n = cx_hlo_type_elements(&r->submission->operands[i].type);
    if (from < first + n) {
      const int64_t end = to < first + n ? to : first + n;
      return (span){ i, from - first, end - from };
    }
    first += n;
  }
}

typedef struct staged_range {
  int64_t lo, hi;
} staged_range;

static staged_range chunk_of(const staged_row *r, int64_t k)
{
  const int64_t lo = k * r->chunk;
  const int64_t left = r->elements - lo;
  return (staged_range){ lo, lo + (left < r->chunk ? left : r->chunk) };
}

// Member i's slice of chunk k, relative to the chunk.
static staged_range slice_of(const staged_row *r, int64_t k, uint32_t i)
{
  const staged_range of = chunk_of(r, k);
  const int64_t n = of.hi - of.lo;
  if (r->leader_only) return (staged_range){ i == 0 ? 0 : n, n };
  const int64_t share = ((n + r->n - 1) / r->n + LINE - 1) / LINE * LINE;
  const int64_t lo = share * i < n ? share * i : n;
  return (staged_range){ lo, n - lo < share ? n : lo + share };
}

static void stage_range(const staged_row *r, int64_t first, staged_range of,
                        unsigned char *to)
{
  for (int64_t at = of.lo; at < of.hi;) {
    const span s = span_at(r, first + at, first + of.hi);
    const unsigned char *x = r->submission->operands[s.operand].data;
    memcpy(to + (size_t)at * r->in, x + (size_t)s.at * r->in,
           (size_t)s.n * r->in);
    at += s.n;
  }
}

// Stages the other members' slices of chunk k of this member's operands.
static void stage(const staged_row *r, int64_t k)
{
  const staged_range of = chunk_of(r, k);
  const staged_range own = slice_of(r, k, r->me);
  unsigned char *to = cpu_coll_staging(r->participant, r->me, k & 1);
  stage_range(r, of.lo, (staged_range){ 0, own.lo }, to);
  stage_range(r, of.lo, (staged_range){ own.hi, of.hi - of.lo }, to);
}

static void copy_result(const staged_row *r, const span *s,
                        const unsigned char *from)
{
  unsigned char *y = r->submission->results[s->operand].data;
  y += (size_t)s->at * r->out;
  r->copy(y, from, (size_t)s->n * r->out);
}

// The staging buffer of member i's reduced slice of chunk k.
static unsigned char *out_of(const staged_row *r, int64_t k, uint32_t i)
{
  return cpu_coll_staging(r->participant, i, 2 + (unsigned)(k % r->outs));
}

static calx_status *combine(const staged_row *r, int64_t k)
{
  const int64_t first = chunk_of(r, k).lo;
  const staged_range own = slice_of(r, k, r->me);
  unsigned char *to = out_of(r, k, r->me);
  for (int64_t at = own.lo; at < own.hi;) {
    const int64_t end = own.hi - at < BLOCK ? own.hi : at + BLOCK;
    const span s = span_at(r, first + at, first + end);
    for (uint32_t i = 0; i < r->n; i++) {
      r->x[i] = cpu_coll_staging(r->participant, i, k & 1) + (size_t)at * r->in;
    }
    r->x[r->me] =
        (const unsigned char *)r->submission->operands[s.operand].data +
        (size_t)s.at * r->in;
    unsigned char *sum = to + (size_t)at * r->out;
    CALX_TRY(cpu_coll_reduce(r->reducer, r->x, r->n, 0, s.n, sum));
    if (r->receives && r->lag == 0) copy_result(r, &s, sum);
    at += s.n;
  }
  if (r->exchange == NULL) return NULL;
  return cpu_coll_exchange_begin(r->exchange, k, to + (size_t)own.lo * r->out,
                                 own.hi - own.lo);
}

// Copies the reduced slices of chunk k that combine() has not copied yet.
static void copy_slices(const staged_row *r, int64_t k)
{
  const int64_t first = chunk_of(r, k).lo;
  for (uint32_t i = 0; i < r->n; i++) {
    if (i == r->me && r->lag == 0) continue;
    const staged_range of = slice_of(r, k, i);
    const unsigned char *from = out_of(r, k, i);
    for (int64_t at = of.lo; at < of.hi;) {
      const span s = span_at(r, first + at, first + of.hi);
      copy_result(r, &s, from + (size_t)at * r->out);
      at += s.n;
    }
  }
}

static calx_status *run(const staged_row *r)
{
  const int64_t n = (r->elements + r->chunk - 1) / r->chunk;
  for (int64_t t = 0; t < n + 2 + r->lag; t++) {
    const int64_t copied = t - 2 - r->lag;
    if (t < n) stage(r, t);
    if (t > 0 && t <= n) CALX_TRY(combine(r, t - 1));
    if (copied >= 0 && r->receives) copy_slices(r, copied);
    if (r->exchange != NULL && copied + 1 >= 0 && copied + 1 < n) {
      CALX_TRY(cpu_coll_exchange_end(r->exchange, copied + 1));
    }
    if (t <= n + r->lag) CALX_TRY(cpu_coll_participant_wait(r->participant));
  }
  return NULL;
}

// All members must have arrived before a host sends to another one.
static calx_status *run_between_hosts(staged_row *r)
{
  cpu_coll_participant *p = r->participant;
  r->lag = LAG;
  r->outs = CPU_COLL_STAGING_OUTS;
  for (uint32_t i = 0; i < p->n_host_groups; i++) {
    r->leader_only = r->leader_only || p->host_groups[i].n != r->n;
  }
  CALX_TRY(cpu_coll_participant_wait(p));
  CALX_TRY(cpu_coll_participant_wait(p));
  if (r->elements == 0) return cpu_coll_move(p, NULL, 0);
  if (!r->leader_only || r->me == 0) {
    CALX_TRY(cpu_coll_exchange_new(p, r->reducer, r->leader_only ? 0 : r->me,
                                   (size_t)r->chunk * r->out, &r->exchange));
  }
  calx_status *status = run(r);
  cpu_coll_exchange_free(r->exchange);
  return status;
}

calx_status *cpu_coll_reduce_staged(cpu_coll_participant *p,
                                    const cpu_coll_reducer *reducer)
{
  const cpu_coll_submission *submission = p->submission;
  staged_row r = { .participant = p,
                   .reducer = reducer,
                   .submission = submission,
                   .n = cpu_coll_local_group(p)->n,
                   .me = p->local_index,
                   .outs = 2,
                   .receives =
                       submission->op->kind != CX_HLO_OP_COLLECTIVE_REDUCE ||
                       p->group->me == 0,
                   .in = cx_hlo_elem_bytes(reducer->from),
                   .out = cx_hlo_elem_bytes(reducer->elem) };
  for (uint32_t i = 0; i < submission->op->n_operands; i++) {
    const int64_t n = cx_hlo_type_elements(&submission->operands[i].type);
    r.elements += n;
    if (r.receives) continue;
    memset(submission->results[i].data, 0, (size_t)n * r.out);
  }
  r.chunk = (int64_t)(CPU_COLL_STAGING_BYTES / (r.in > r.out ? r.in : r.out));
  r.copy = cpu_coll_copy_of((size_t)r.elements * r.out);
  r.x = cx_alloc(r.n * sizeof *r.x);
  if (r.x == NULL) return cx_out_of_memory();
  calx_status *status = p->n_host_groups > 1 ? run_between_hosts(&r) : run(&r);
  cx_free(r.x);
  return status;
}
