// coll/failures: see failures.h.
#include "coll/failures.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "coll/messages.h"

static cpu_coll_report report_of(const cpu_coll_participant *p,
                                 cpu_coll_cause cause)
{
  return (cpu_coll_report){ .cause = cause,
                            .launch = p->launch,
                            .submission = p->submission };
}

calx_status *cpu_coll_check_job(const cpu_coll_launch *l,
                                const cpu_coll_submission *submission)
{
  const calx_segment_head *job = l->coll->job;
  const uint32_t code = atomic_load(&job->failed);
  if (code == 0) return NULL;
  char reason[CALX_SEGMENT_MESSAGE + 1] = { 0 };
  memcpy(reason, job->message, CALX_SEGMENT_MESSAGE);
  return cpu_coll_error(&(cpu_coll_report){ .cause = CPU_COLL_REPORTED,
                                            .launch = l,
                                            .submission = submission,
                                            .reason = reason,
                                            .code = (calx_code)code });
}

// ---- what a device publishes ----

static void set_failure(cpu_coll_failure *out, bool common,
                        const calx_status *why)
{
  const char *message = cx_status_sentence(why);
  *out = (cpu_coll_failure){ .code = (uint32_t)calx_status_code(why),
                             .common = common };
  memcpy(out->message, message, strnlen(message, sizeof out->message - 1));
}

void cpu_coll_set_common(const cpu_coll_participant *p, const calx_status *why)
{
  if (p->self->reported) return;
  p->self->reported = true;
  set_failure(&p->self->failure, true, why);
}

// Writes why the launch failed: what this device found to be wrong with all
// members, or else that this device failed.
static void write_failure(cpu_coll_state *s, const cpu_coll_local_device *self,
                          const cpu_coll_launch *l, const calx_status *how)
{
  cpu_coll_failure failure = self->failure;
  if (!self->reported) {
    const uint32_t device = cpu_coll_device(l);
    calx_status *why =
        cpu_coll_error(&(cpu_coll_report){ .cause = CPU_COLL_FAILED,
                                           .launch = l,
                                           .devices = &device,
                                           .n_devices = 1,
                                           .reason = cx_status_sentence(how) });
    set_failure(&failure, false, why);
    calx_status_free(why);
  }
  cpu_coll_failure_write(s, &failure, l->number);
}

void cpu_coll_publish_failure(const cpu_coll_launch *l, const calx_status *how)
{
  const cpu_coll_local_device *self = cpu_coll_self(l);
  cpu_coll_state *states = cpu_coll_states_of(l->coll, l->device_group);
  cpu_coll_state *s = &states[self->slot];
  // The reason first: a member that finds this device absent reads it.
  if (atomic_load(&s->failed) != l->number) write_failure(s, self, l, how);
  if (atomic_load(&s->launch) == l->number) {
    atomic_store(&s->step, cpu_coll_step(l->n_done, 0));
  }
  cpu_coll_wake_all(l->coll, states);
}

// ---- what another device has published ----

static bool has_failed(const cpu_coll_participant *p, uint32_t i)
{
  return atomic_load(&cpu_coll_state_of(p, i)->failed) == p->launch->number;
}

// Whether member i will never arrive: its launch failed or ended, or it is in a
// later one.
static bool is_absent(const cpu_coll_participant *p, uint32_t i, uint64_t step)
{
  const cpu_coll_state *s = cpu_coll_state_of(p, i);
  const uint64_t launch = p->launch->number;
  if (!cpu_coll_is_awaited(p, i)) return has_failed(p, i);
  return (has_failed(p, i) || atomic_load(&s->ended) >= launch ||
          atomic_load(&s->launch) > launch) &&
         !cpu_coll_has_arrived(p, i, step);
}

static calx_status *absent_error(const cpu_coll_participant *p, uint32_t i)
{
  cpu_coll_failure *failure = &p->self->failure;
  cpu_coll_report r = report_of(p, CPU_COLL_ENDED);
  p->self->reported = cpu_coll_failure_read(cpu_coll_state_of(p, i),
                                            p->launch->number, failure);
  if (!p->self->reported) {
    r.devices = &p->group->members[i];
    r.n_devices = 1;
    return cpu_coll_error(&r);
  }
  r.cause = CPU_COLL_REPORTED;
  r.reason = failure->message;
  r.code = (calx_code)failure->code;
  if (failure->common) r.submission = NULL;
  return cpu_coll_error(&r);
}

// Another device found that this one submitted a different operation.
static calx_status *check_accusers(const cpu_coll_participant *p)
{
  cpu_coll_failure *failure = &p->self->failure;
  const uint32_t me = cpu_coll_device_of_slot(p->coll, p->self->slot) + 1;
  for (uint32_t i = 0; i < p->coll->topology.n_world; i++) {
    if (i == p->self->slot ||
        !cpu_coll_failure_read(&p->self->states[i], p->launch->number,
                               failure) ||
        (failure->differ[0] != me && failure->differ[1] != me)) {
      continue;
    }
    p->self->reported = true;
    return cx_error((calx_code)failure->code, "%s", failure->message);
  }
  return NULL;
}

// ---- different submissions ----

static calx_status *difference_error(const cpu_coll_participant *p, uint32_t a,
                                     const uint64_t *x, uint32_t b,
                                     const uint64_t *y)
{
  const uint32_t devices[2] = { a, b };
  cpu_coll_report r = report_of(p, CPU_COLL_DIFFERS);
  r.submission = NULL;
  r.devices = devices;
  r.headers[0] = x;
  r.headers[1] = y;
  calx_status *status = cpu_coll_error(&r);
  cpu_coll_set_common(p, status);
  p->self->failure.differ[0] = p->launch->devices[a] + 1;
  p->self->failure.differ[1] = p->launch->devices[b] + 1;
  return status;
}

calx_status *cpu_coll_check_headers(const cpu_coll_participant *p)
{
  const uint32_t *members = p->group->members;
  uint64_t x[CPU_COLL_FIELDS], y[CPU_COLL_FIELDS];
  cpu_coll_header_read(cpu_coll_state_of(p, 0), x);
  for (uint32_t i = 1; i < p->group->n; i++) {
    cpu_coll_header_read(cpu_coll_state_of(p, i), y);
    if (memcmp(x, y, sizeof x) != 0) {
      return difference_error(p, members[0], x, members[i], y);
    }
  }
  return NULL;
}

// A device that waits for this one with another submission, also in a group
// that this device does not know.
static calx_status *check_other_groups(const cpu_coll_participant *p)
{
  const cpu_coll_launch *l = p->launch;
  const uint64_t me = UINT64_C(1) << (l->devices[cpu_coll_device(l)] & 63);
  const uint64_t step = cpu_coll_step(l->n_done, 0);
  uint64_t x[CPU_COLL_FIELDS], y[CPU_COLL_FIELDS];
  cpu_coll_header_read(&p->self->states[p->self->slot], x);
  for (uint32_t i = 0; i < l->n_replicas * l->n_partitions; i++) {
    const cpu_coll_state *s =
        &p->self->states[cpu_coll_slot(p->coll, l->devices[i])];
    // The header is valid if the device is in the collective before and after.
    if (!cpu_coll_is_inside(s, l->number, step)) continue;
    cpu_coll_header_read(s, y);
    if (cpu_coll_is_inside(s, l->number, step) &&
        (y[CPU_COLL_FIELD_MEMBERS] & me) != 0 && memcmp(x, y, sizeof x) != 0) {
      return difference_error(p, cpu_coll_device(l), x, i, y);
    }
  }
  return NULL;
}

// ---- lost processes ----

// The member whose process has ended without arriving. It is asked for its
// arrival again after that: a process may end as soon as it has left.
static calx_status *check_processes(const cpu_coll_participant *p,
                                    uint64_t step)
{
  for (uint32_t i = 0; i < p->group->n; i++) {
    if (!cpu_coll_is_awaited(p, i) || cpu_coll_has_arrived(p, i, step) ||
        !cpu_coll_peer_has_ended(p->coll, p->self->members[i]) ||
        cpu_coll_has_arrived(p, i, step)) {
      continue;
    }
    calx_status *status =
        cpu_coll_peer_error(p->coll, p->self->members[i], p->submission);
    cpu_coll_set_common(p, status);
    return status;
  }
  return NULL;
}

// ---- all reasons ----

static calx_status *late_error(const cpu_coll_participant *p, uint64_t step)
{
  uint32_t *missing = cx_alloc(p->group->n * sizeof *missing);
  if (missing == NULL) return cx_out_of_memory();
  cpu_coll_report r = report_of(p, CPU_COLL_LATE);
  r.devices = missing;
  for (uint32_t i = 0; i < p->group->n; i++) {
    if (!cpu_coll_has_arrived(p, i, step)) {
      missing[r.n_devices++] = p->group->members[i];
    }
  }
  // A member whose time was over first has withdrawn its arrival, after it
  // published why.
  for (uint32_t i = 0; i < p->group->n; i++) {
    if (!has_failed(p, i)) continue;
    cx_free(missing);
    return absent_error(p, i);
  }
  calx_status *status = cpu_coll_error(&r);
  cx_free(missing);
  cpu_coll_set_common(p, status);
  return status;
}

calx_status *cpu_coll_check_wait(const cpu_coll_participant *p, uint64_t step,
                                 int64_t until_ns)
{
  CALX_TRY(cpu_coll_check_job(p->launch, p->submission));
  uint32_t absent = UINT32_MAX;
  for (uint32_t i = 0; i < p->group->n; i++) {
    if (!is_absent(p, i, step)) continue;
    absent = i;
    // One that failed says more than one that ended.
    if (has_failed(p, i)) break;
  }
  if (absent != UINT32_MAX) return absent_error(p, absent);
  CALX_TRY(check_accusers(p));
  CALX_TRY(check_other_groups(p));
  CALX_TRY(check_processes(p, step));
  return cx_now_ns() < until_ns ? NULL : late_error(p, step);
}
