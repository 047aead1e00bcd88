// coll/mpi_move: streams of bytes between regions.
//
// A stream is what one member sends another, in pieces, a few under way. All
// streams of a member go on side by side, so no two can wait for each other.
// all_to_all and reduce_scatter send a host only what its members will read,
// where that lies in runs worth sending by themselves.
#include "coll/mpi_move.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "coll/mpi_far.h"
#include "coll/state.h"

enum { UNDER_WAY = 4, LEAST_RUN = 4096, MOST_RUNS = 4096 };

typedef struct run {
  size_t at, bytes;
} run;

typedef struct stream {
  uint32_t member;
  bool sends;
  unsigned char *region;
  const run *runs;  // NULL: a message of nothing
  size_t n_runs;
  size_t next, used;       // the run that goes on, and how much of it went
  uint32_t started, done;  // transfers
  bool ended;              // nothing more is to be started
  cpu_coll_mpi_transfer transfers[UNDER_WAY];
} stream;

typedef struct move {
  cpu_coll_visit *visit;
  const cpu_coll_mpi_layout *operands;
  size_t total;
  stream *streams;
  uint32_t n_streams;
  run *runs;  // those of all streams
  size_t n_runs, room;
} move;

// ---- who needs what ---------------------------------------------------------

// The member of a side that receives what member i sends there.
static uint32_t receiver(const cpu_coll_side *side, uint32_t i)
{
  return side->members[i % side->n];
}

static bool is_wanted(const cpu_coll_visit *v, uint32_t i,
                      const cpu_coll_side *side)
{
  const cx_hlo_op *op = v->part->op;
  if (op->kind == CX_HLO_OP_COLLECTIVE_BROADCAST) return i == 0;
  if (op->kind != CX_HLO_OP_COLLECTIVE_PERMUTE) return true;
  for (uint32_t k = 0; k < side->n; k++) {
    const uint32_t to = v->group->members[side->members[k]];
    if (cpu_coll_source_of(op, v->launch->n_partitions, to) ==
        v->group->members[i]) {
      return true;
    }
  }
  return false;
}

// Whether members may finish without having got anything of all others.
static bool needs_leave(const cx_hlo_op *op, size_t total)
{
  return total == 0 || op->kind == CX_HLO_OP_COLLECTIVE_BROADCAST ||
         op->kind == CX_HLO_OP_COLLECTIVE_PERMUTE;
}

// ---- runs -------------------------------------------------------------------

static bool add_run(move *m, size_t at, size_t bytes)
{
  if (m->n_runs == m->room) {
    const size_t room = 2 * m->room + 16;
    run *grown = cx_realloc(m->runs, room * sizeof *grown);
    if (grown == NULL) return false;
    m->runs = grown;
    m->room = room;
  }
  m->runs[m->n_runs++] = (run){ at, bytes };
  return true;
}

// An operand as outer x members x bytes.
typedef struct split {
  int64_t outer;
  size_t bytes;
} split;

static split split_of(const cpu_coll_visit *v, uint32_t operand)
{
  const cx_hlo_op *op = v->part->op;
  const cx_hlo_type *t = &v->part->operands[operand].type;
  const int64_t d = cx_hlo_op_int(op, op->kind == CX_HLO_OP_ALL_TO_ALL
                                          ? CX_HLO_A_SPLIT_DIMENSION
                                          : CX_HLO_A_SCATTER_DIMENSION);
  split s = { 1, cx_hlo_elem_bytes(t->elem) };
  for (int64_t i = 0; i < (int64_t)t->rank; i++) {
    if (i < d) {
      s.outer *= t->dims[i];
    } else {
      s.bytes *= (size_t)t->dims[i];
    }
  }
  s.bytes /= v->group->n;
  return s;
}

// The parts of an operand that the members of a side read.
static bool add_parts(move *m, uint32_t operand, const cpu_coll_side *side)
{
  const split s = split_of(m->visit, operand);
  for (int64_t o = 0; o < s.outer; o++) {
    for (uint32_t k = 0; k < side->n;) {
      const uint32_t first = side->members[k];
      uint32_t n = 1;
      while (k + n < side->n && side->members[k + n] == first + n) n++;
      const size_t at = ((size_t)o * m->visit->group->n + first) * s.bytes;
      if (!add_run(m, m->operands[operand].at + at, n * s.bytes)) return false;
      k += n;
    }
  }
  return true;
}

static bool add_runs(move *m, const cpu_coll_side *side)
{
  const cx_hlo_op *op = m->visit->part->op;
  bool parts =
      op->kind == CX_HLO_OP_ALL_TO_ALL || op->kind == CX_HLO_OP_REDUCE_SCATTER;
  for (uint32_t i = 0; i < op->n_operands && parts; i++) {
    const split s = split_of(m->visit, i);
    parts = s.bytes >= LEAST_RUN && s.outer * side->n <= MOST_RUNS;
  }
  if (!parts) return m->total == 0 || add_run(m, 0, m->total);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (!add_parts(m, i, side)) return false;
  }
  return true;
}

// ---- the list of streams ----------------------------------------------------

static calx_status *add_stream(move *m, uint32_t from, uint32_t member,
                               bool sends, const cpu_coll_side *side)
{
  stream *s = &m->streams[m->n_streams];
  *s = (stream){ .member = member, .sends = sends };
  CALX_TRY(cpu_coll_region(m->visit, from, m->total, &s->region));
  // Until all are known, runs are counted.
  s->next = m->n_runs;
  if (!add_runs(m, side)) return cx_out_of_memory();
  s->n_runs = m->n_runs - s->next;
  m->n_streams += s->n_runs > 0;
  return NULL;
}

static void add_leave(move *m, uint32_t member, bool sends)
{
  m->streams[m->n_streams++] = (stream){ .member = member, .sends = sends };
}

static calx_status *list(move *m)
{
  cpu_coll_visit *v = m->visit;
  const uint32_t me = v->group->me;
  const cpu_coll_side *own = &v->sides[v->own_side];
  const bool leave = needs_leave(v->part->op, m->total);
  m->streams =
      cx_calloc(2 * (size_t)v->group->n + 2 * v->n_sides, sizeof *m->streams);
  if (m->streams == NULL) return cx_out_of_memory();
  for (uint32_t i = 0; i < v->n_sides; i++) {
    const cpu_coll_side *side = &v->sides[i];
    if (i == v->own_side) continue;
    const uint32_t to = receiver(side, me);
    if (is_wanted(v, me, side)) CALX_TRY(add_stream(m, me, to, true, side));
    if (leave) add_leave(m, to, false);
    for (uint32_t k = 0; k < side->n; k++) {
      const uint32_t from = side->members[k];
      if (receiver(own, from) != me) continue;
      if (is_wanted(v, from, own)) {
        CALX_TRY(add_stream(m, from, from, false, own));
      }
      if (leave) add_leave(m, from, true);
    }
  }
  for (uint32_t i = 0; i < m->n_streams; i++) {
    stream *s = &m->streams[i];
    if (s->n_runs > 0) s->runs = m->runs + s->next;
    s->next = 0;
  }
  return NULL;
}

// ---- going ------------------------------------------------------------------

static void start(move *m, stream *s, cpu_coll_mpi_channel channel, size_t at,
                  size_t bytes)
{
  cpu_coll_mpi_transfer *t = &s->transfers[s->started++ % UNDER_WAY];
  *t = cpu_coll_mpi_far_transfer(m->visit, s->member, channel, s->sends,
                                 s->region + at, bytes);
  cpu_coll_mpi_link_post(m->visit->window->link, t);
}

static void start_next(move *m, stream *s)
{
  if (s->runs == NULL) {
    static unsigned char nothing;
    s->region = &nothing;
    start(m, s, CPU_COLL_MPI_LEAVE, 0, 0);
    s->ended = true;
    return;
  }
  const run *r = &s->runs[s->next];
  const size_t left = r->bytes - s->used;
  const size_t bytes =
      left < CPU_COLL_MPI_TRANSFER ? left : CPU_COLL_MPI_TRANSFER;
  start(m, s, CPU_COLL_MPI_FIRST, r->at + s->used, bytes);
  s->used += bytes;
  if (s->used < r->bytes) return;
  s->used = 0;
  s->ended = ++s->next == s->n_runs;
}

// Whether anything moved; *left: streams that are not done.
static bool advance(move *m, uint32_t *left)
{
  bool moved = false;
  *left = 0;
  for (uint32_t i = 0; i < m->n_streams; i++) {
    stream *s = &m->streams[i];
    while (s->done < s->started &&
           atomic_load(&s->transfers[s->done % UNDER_WAY].done)) {
      s->done++;
      moved = true;
    }
    while (!s->ended && s->started - s->done < UNDER_WAY) start_next(m, s);
    *left += !s->ended || s->done < s->started;
  }
  return moved;
}

static calx_status *go(move *m)
{
  for (cpu_coll_mpi_wait wait = { 0 };;) {
    uint32_t left = 0;
    const uint32_t bell = cpu_coll_mpi_link_bell(m->visit->window->link);
    const bool moved = advance(m, &left);
    if (left == 0) return NULL;
    if (moved) {
      wait = (cpu_coll_mpi_wait){ 0 };
    } else {
      CALX_TRY(cpu_coll_mpi_far_pause(m->visit, &wait, bell));
    }
  }
}

calx_status *cpu_coll_mpi_move(cpu_coll_visit *v,
                               const cpu_coll_mpi_layout *operands,
                               size_t total)
{
  move m = { .visit = v, .operands = operands, .total = total };
  calx_status *status = list(&m);
  bool lost = false;
  if (status == NULL) {
    status = go(&m);
    lost = status != NULL;
  }
  // What MPI may still write to stays.
  if (lost) cpu_coll_mpi_far_lose(v);
  if (!lost) cx_free(m.streams);
  cx_free(m.runs);
  return status;
}

void cpu_coll_mpi_move_trim(const cpu_coll_visit *v)
{
  const cpu_coll_side *own = &v->sides[v->own_side];
  for (uint32_t i = 0; i < v->group->n; i++) {
    const uint32_t place = v->self->members[i];
    if (place < v->window->share.n || receiver(own, i) != v->group->me) {
      continue;
    }
    cpu_coll_trim_region(v->window, place);
  }
}
