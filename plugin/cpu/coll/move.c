// coll/move: see move.h.
//
// A stream is what one member sends to another one, in several transfers of
// which UNDER_WAY are posted at a time. All streams of a member advance
// together, so no two can wait for each other. all_to_all and reduce_scatter
// send a host only the ranges that its members read, unless these are too many
// or too short.
#include "coll/move.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "coll/remote.h"
#include "coll/state.h"

enum { UNDER_WAY = 4, MIN_RUN = 4096, MAX_RUNS = 4096 };

// A range of an operand buffer.
typedef struct byte_range {
  size_t at, bytes;
} byte_range;

typedef struct operand_stream {
  uint32_t member;
  bool sends;
  unsigned char *buffer;
  const byte_range *runs;  // NULL: a transfer of no bytes
  size_t n_runs;
  size_t next, used;       // the current run, and its bytes that are posted
  uint32_t started, done;  // transfers
  bool ended;              // all is posted
  cpu_coll_transfer transfers[UNDER_WAY];
} operand_stream;

typedef struct operand_transfers {
  cpu_coll_participant *participant;
  const cpu_coll_layout *operands;
  size_t total;
  operand_stream *streams;
  uint32_t n_streams;
  byte_range *runs;  // of all streams
  size_t n_runs, room;
} operand_transfers;

// ---- who receives what ------------------------------------------------------

// The member of a host that receives what member i sends to that host.
static uint32_t receiver(const cpu_coll_host_group *group, uint32_t i)
{
  return group->members[i % group->n];
}

static bool is_wanted(const cpu_coll_participant *p, uint32_t i,
                      const cpu_coll_host_group *group)
{
  const cx_hlo_op *op = p->submission->op;
  if (op->kind == CX_HLO_OP_COLLECTIVE_BROADCAST) return i == 0;
  if (op->kind != CX_HLO_OP_COLLECTIVE_PERMUTE) return true;
  for (uint32_t k = 0; k < group->n; k++) {
    const uint32_t to = p->group->members[group->members[k]];
    if (cpu_coll_source_of(op, p->launch->n_partitions, to) ==
        p->group->members[i]) {
      return true;
    }
  }
  return false;
}

// Whether a member could finish without a transfer from each other host.
static bool needs_leave(const cx_hlo_op *op, size_t total)
{
  return total == 0 || op->kind == CX_HLO_OP_COLLECTIVE_BROADCAST ||
         op->kind == CX_HLO_OP_COLLECTIVE_PERMUTE;
}

// ---- runs -------------------------------------------------------------------

static bool add_run(operand_transfers *m, size_t at, size_t bytes)
{
  if (m->n_runs == m->room) {
    const size_t room = 2 * m->room + 16;
    byte_range *grown = cx_realloc(m->runs, room * sizeof *grown);
    if (grown == NULL) return false;
    m->runs = grown;
    m->room = room;
  }
  m->runs[m->n_runs++] = (byte_range){ at, bytes };
  return true;
}

// An operand as outer x members x bytes.
typedef struct split {
  int64_t outer;
  size_t bytes;
} split;

static split split_of(const cpu_coll_participant *p, uint32_t operand)
{
  const cx_hlo_op *op = p->submission->op;
  const cx_hlo_type *t = &p->submission->operands[operand].type;
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
  s.bytes /= p->group->n;
  return s;
}

// The ranges of an operand that the members of a host read.
static bool add_ranges(operand_transfers *m, uint32_t operand,
                       const cpu_coll_host_group *group)
{
  const split s = split_of(m->participant, operand);
  for (int64_t o = 0; o < s.outer; o++) {
    for (uint32_t k = 0; k < group->n;) {
      const uint32_t first = group->members[k];
      uint32_t n = 1;
      while (k + n < group->n && group->members[k + n] == first + n) n++;
      const size_t at =
          ((size_t)o * m->participant->group->n + first) * s.bytes;
      if (!add_run(m, m->operands[operand].at + at, n * s.bytes)) return false;
      k += n;
    }
  }
  return true;
}

static bool add_runs(operand_transfers *m, const cpu_coll_host_group *group)
{
  const cx_hlo_op *op = m->participant->submission->op;
  bool ranges =
      op->kind == CX_HLO_OP_ALL_TO_ALL || op->kind == CX_HLO_OP_REDUCE_SCATTER;
  for (uint32_t i = 0; i < op->n_operands && ranges; i++) {
    const split s = split_of(m->participant, i);
    ranges = s.bytes >= MIN_RUN && s.outer * group->n <= MAX_RUNS;
  }
  if (!ranges) return m->total == 0 || add_run(m, 0, m->total);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (!add_ranges(m, i, group)) return false;
  }
  return true;
}

// ---- the list of streams ----------------------------------------------------

static calx_status *add_stream(operand_transfers *m, uint32_t from,
                               uint32_t member, bool sends,
                               const cpu_coll_host_group *group)
{
  operand_stream *s = &m->streams[m->n_streams];
  *s = (operand_stream){ .member = member, .sends = sends };
  CALX_TRY(cpu_coll_operand_buffer(m->participant, from, m->total, &s->buffer));
  // `next` is the index of the first run until all runs are known.
  s->next = m->n_runs;
  if (!add_runs(m, group)) return cx_out_of_memory();
  s->n_runs = m->n_runs - s->next;
  m->n_streams += s->n_runs > 0;
  return NULL;
}

static void add_leave(operand_transfers *m, uint32_t member, bool sends)
{
  m->streams[m->n_streams++] =
      (operand_stream){ .member = member, .sends = sends };
}

static calx_status *list(operand_transfers *m)
{
  cpu_coll_participant *p = m->participant;
  const uint32_t me = p->group->me;
  const cpu_coll_host_group *own = cpu_coll_local_group(p);
  const bool leave = needs_leave(p->submission->op, m->total);
  m->streams = cx_calloc(2 * (size_t)p->group->n + 2 * p->n_host_groups,
                         sizeof *m->streams);
  if (m->streams == NULL) return cx_out_of_memory();
  for (uint32_t i = 0; i < p->n_host_groups; i++) {
    const cpu_coll_host_group *group = &p->host_groups[i];
    if (i == p->own_host_group) continue;
    const uint32_t to = receiver(group, me);
    if (is_wanted(p, me, group)) CALX_TRY(add_stream(m, me, to, true, group));
    if (leave) add_leave(m, to, false);
    for (uint32_t k = 0; k < group->n; k++) {
      const uint32_t from = group->members[k];
      if (receiver(own, from) != me) continue;
      if (is_wanted(p, from, own)) {
        CALX_TRY(add_stream(m, from, from, false, own));
      }
      if (leave) add_leave(m, from, true);
    }
  }
  for (uint32_t i = 0; i < m->n_streams; i++) {
    operand_stream *s = &m->streams[i];
    if (s->n_runs > 0) s->runs = m->runs + s->next;
    s->next = 0;
  }
  return NULL;
}

// ---- transfers --------------------------------------------------------------

static void start(operand_transfers *m, operand_stream *s,
                  cpu_coll_channel channel, size_t at, size_t bytes)
{
  cpu_coll_transfer *t = &s->transfers[s->started++ % UNDER_WAY];
  *t = cpu_coll_remote_transfer(m->participant, s->member, channel, s->sends,
                                s->buffer + at, bytes);
  cpu_coll_link_post(m->participant->coll->link, t);
}

static void start_next(operand_transfers *m, operand_stream *s)
{
  if (s->runs == NULL) {
    static unsigned char nothing;
    s->buffer = &nothing;
    start(m, s, CPU_COLL_CHANNEL_LEAVE, 0, 0);
    s->ended = true;
    return;
  }
  const byte_range *r = &s->runs[s->next];
  const size_t left = r->bytes - s->used;
  const size_t bytes =
      left < CPU_COLL_TRANSFER_BYTES ? left : CPU_COLL_TRANSFER_BYTES;
  start(m, s, CPU_COLL_CHANNEL_FIRST, r->at + s->used, bytes);
  s->used += bytes;
  if (s->used < r->bytes) return;
  s->used = 0;
  s->ended = ++s->next == s->n_runs;
}

// Whether any transfer was done; *left: streams that are not done.
static bool advance(operand_transfers *m, uint32_t *left)
{
  bool moved = false;
  *left = 0;
  for (uint32_t i = 0; i < m->n_streams; i++) {
    operand_stream *s = &m->streams[i];
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

static calx_status *transfer_all(operand_transfers *m)
{
  for (cpu_coll_remote_wait wait = { .participant = m->participant };;) {
    uint32_t left = 0;
    cpu_coll_remote_wait_begin(&wait);
    const bool moved = advance(m, &left);
    if (left == 0) return NULL;
    CALX_TRY(cpu_coll_remote_wait_end(&wait, moved));
  }
}

calx_status *cpu_coll_move(cpu_coll_participant *p,
                           const cpu_coll_layout *operands, size_t total)
{
  operand_transfers m = { .participant = p,
                          .operands = operands,
                          .total = total };
  calx_status *status = list(&m);
  bool abandoned = false;
  if (status == NULL) {
    status = transfer_all(&m);
    abandoned = status != NULL;
  }
  // MPI may still write to abandoned streams: they are never freed.
  if (abandoned) cpu_coll_remote_abandon(p);
  if (!abandoned) cx_free(m.streams);
  cx_free(m.runs);
  return status;
}

void cpu_coll_move_trim(const cpu_coll_participant *p)
{
  const cpu_coll_host_group *own = cpu_coll_local_group(p);
  for (uint32_t i = 0; i < p->group->n; i++) {
    const uint32_t slot = p->self->members[i];
    if (slot < p->coll->topology.n_host || receiver(own, i) != p->group->me) {
      continue;
    }
    cpu_coll_trim_operands(p->coll, slot);
  }
}
