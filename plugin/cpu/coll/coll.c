// coll/coll: one collective, from its groups to the choice of how data move.
//
// The members of a group wait until all have arrived, work, and wait until all
// have finished. In between each member reads all members' operands: in place
// if all are devices of one process, else from staging buffers (reductions) or
// operand buffers (all other operations). Operands that lie in memory which a
// member writes at the same time are copied first.
#include "coll/coll.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "coll/groups.h"
#include "coll/move.h"
#include "coll/operations.h"
#include "coll/participant.h"
#include "coll/segment.h"
#include "coll/staged.h"

enum { LINE = 64, LARGE = 16 << 20 };

static size_t bytes_of(const cpu_ref_tensor *t)
{
  return (size_t)cx_hlo_type_bytes(&t->type);
}

// To whole cache lines.
static size_t round_up(size_t size)
{
  return (size + LINE - 1) / LINE * LINE;
}

// ---- operands that must be copied ----

static bool overlap(const cpu_ref_tensor *a, const cpu_ref_tensor *b)
{
  const uintptr_t x = (uintptr_t)a->data, y = (uintptr_t)b->data;
  return x < y + bytes_of(b) && y < x + bytes_of(a);
}

// An all_reduce reads and writes each element at the same index, so it can run
// in place.
static bool must_copy(const cx_hlo_op *op, uint32_t i,
                      const cpu_ref_tensor *operands,
                      const cpu_ref_tensor *results)
{
  for (uint32_t k = 0; k < op->n_results; k++) {
    const bool in_place = cpu_coll_is_all_reduce(op) && i == k &&
                          operands[i].data == results[k].data &&
                          bytes_of(&operands[i]) == bytes_of(&results[k]);
    if (!in_place && overlap(&operands[i], &results[k])) return true;
  }
  return false;
}

// *out: the operands, copied where needed; NULL: no copy is needed.
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

// The index in the group of the device that sends to this one; -1: none does.
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

// All members are devices of this process: they work on operands and results in
// place.
static calx_status *run_direct(cpu_coll_participant *p, cpu_coll_job *j)
{
  calx_status *status = cpu_coll_participant_wait(p);
  if (status == NULL) {
    for (uint32_t i = 0; i < j->n; i++) {
      j->submissions[i] = *cpu_coll_submission_of(p, i);
    }
    status = cpu_coll_work(j);
  }
  return cpu_coll_participant_leave(p, status);
}

// Whether other members read this member's operands.
static bool is_read(const cpu_coll_job *j)
{
  return j->op->kind != CX_HLO_OP_COLLECTIVE_BROADCAST || j->me == 0;
}

// Copies this member's operands to its operand buffer, and makes `submissions`
// point to all members' operand buffers.
static calx_status *publish_operands(const cpu_coll_participant *p,
                                     const cpu_coll_job *j, size_t total,
                                     cpu_ref_tensor *tensors)
{
  const uint32_t n = j->op->n_operands;
  for (uint32_t k = 0; k < j->n; k++) {
    unsigned char *at = NULL;
    CALX_TRY(cpu_coll_operand_buffer(p, k, total, &at));
    j->submissions[k] = *p->submission;
    j->submissions[k].operands = tensors + (size_t)k * n;
    for (uint32_t i = 0; i < n; i++) {
      const cpu_ref_tensor *x = &p->submission->operands[i];
      tensors[(size_t)k * n + i] = (cpu_ref_tensor){ x->type, at };
      if (k == j->me && is_read(j)) memcpy(at, x->data, bytes_of(x));
      at += round_up(bytes_of(x));
    }
  }
  return NULL;
}

// Waits until the members of this host can read all operands.
static calx_status *wait_for_operands(cpu_coll_participant *p,
                                      const cpu_coll_layout *operands,
                                      size_t total)
{
  CALX_TRY(cpu_coll_participant_wait(p));
  if (p->n_host_groups == 1) return NULL;
  // The members of this host have seen all members of other hosts arrive.
  CALX_TRY(cpu_coll_participant_wait(p));
  CALX_TRY(cpu_coll_move(p, operands, total));
  return cpu_coll_participant_wait(p);
}

// Frees the memory of large operands of other hosts, when no member of this
// host reads them any more.
static calx_status *trim_operands(cpu_coll_participant *p, size_t total)
{
  if (p->n_host_groups == 1 || total < LARGE) return NULL;
  CALX_TRY(cpu_coll_participant_wait(p));
  cpu_coll_move_trim(p);
  return NULL;
}

// A collective that moves data, or a reduce_scatter, between processes.
static calx_status *run_with_buffers(cpu_coll_participant *p, cpu_coll_job *j)
{
  const size_t n = j->n, n_operands = j->op->n_operands;
  cpu_ref_tensor *tensors =
      cx_alloc(n_operands * (n * sizeof *tensors + sizeof(cpu_coll_layout)));
  if (tensors == NULL) return cx_out_of_memory();
  cpu_coll_layout *operands = (cpu_coll_layout *)(tensors + n * n_operands);
  size_t total = 0;
  for (size_t i = 0; i < n_operands; i++) {
    operands[i].at = total;
    total += round_up(bytes_of(&p->submission->operands[i]));
  }
  calx_status *status = publish_operands(p, j, total, tensors);
  if (status == NULL) status = wait_for_operands(p, operands, total);
  if (status == NULL) status = cpu_coll_work(j);
  if (status == NULL) status = trim_operands(p, total);
  cx_free(tensors);
  return status;
}

static calx_status *run_with_others(cpu_coll_launch *l, const cpu_coll_group *g,
                                    const cpu_coll_submission *submission,
                                    cpu_coll_job *j)
{
  cpu_coll_participant p = { .launch = l,
                             .group = g,
                             .submission = submission };
  CALX_TRY(cpu_coll_participant_begin(&p, &j->reducer));
  const bool sums = cpu_coll_is_all_reduce(submission->op) ||
                    submission->op->kind == CX_HLO_OP_COLLECTIVE_REDUCE;
  CALX_TRY(p.direct ? run_direct(&p, j)
           : sums   ? cpu_coll_reduce_staged(&p, &j->reducer)
                    : run_with_buffers(&p, j));
  l->n_done++;
  cpu_coll_participant_end(&p);
  return NULL;
}

static calx_status *run_group(cpu_coll_launch *l, const cpu_coll_group *g,
                              const cpu_coll_submission *submission)
{
  cpu_coll_submission *submissions =
      cx_alloc(g->n * (sizeof *submissions + sizeof(void *)));
  if (submissions == NULL) return cx_out_of_memory();
  cpu_coll_job j = { .op = submission->op,
                     .submissions = submissions,
                     .n = g->n,
                     .me = g->me,
                     .source = source_in(submission->op, l, g),
                     .reducer = cpu_coll_reducer_of(submission->module,
                                                    submission->op),
                     .x = (const void **)(submissions + g->n) };
  j.reducer.context.replica = l->replica;
  j.reducer.context.partition = l->partition;
  calx_status *status = NULL;
  if (g->n == 1) {
    *submissions = *submission;
    status = cpu_coll_work(&j);
    if (status == NULL) l->n_done++;
  } else {
    status = run_with_others(l, g, submission, &j);
  }
  cx_free(submissions);
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
    // A device that is in no group of a broadcast gets zeros.
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
    const cpu_coll_submission submission = { m, op,
                                             copies == NULL ? operands : copies,
                                             results };
    status = run_group(launch, &g, &submission);
  }
  cx_free(copies);
  cx_free(g.members);
  return status;
}
