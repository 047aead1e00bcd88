// coll/remote: see remote.h.
#include "coll/remote.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "coll/failures.h"
#include "coll/messages.h"
#include "threads/threads.h"

enum { FIRST_TAG = 2, YIELDS = 500 };

// ---- hosts ------------------------------------------------------------------

// What each process sends to the others at the start.
typedef struct host_info {
  uint32_t first, n;  // the devices of its host
  uint32_t n_own;     // how many of them are its own
} host_info;

// The hosts' devices must be blocks that follow each other and cover the world.
static calx_status *read_hosts(cpu_coll *coll, const host_info *all, uint32_t n)
{
  uint32_t next = 0;
  for (uint32_t i = 0; i < n; i++) {
    const host_info *t = &all[i];
    const uint32_t device = i * coll->topology.n_own;
    if (t->n_own != coll->topology.n_own) {
      return cx_error(
          CALX_INVALID_ARGUMENT, "process %u has %u devices, process %u has %u",
          (unsigned)i, (unsigned)t->n_own,
          (unsigned)(coll->topology.own_first / coll->topology.n_own),
          (unsigned)coll->topology.n_own);
    }
    if (device == next && t->first == next && t->n != 0 &&
        t->n <= coll->topology.n_world - next && t->n % t->n_own == 0) {
      coll->hosts[coll->n_hosts++] = (cpu_coll_host){ t->first, t->n };
      next += t->n;
    }
    const cpu_coll_host *host =
        &coll->hosts[coll->n_hosts - (coll->n_hosts > 0)];
    if (device < next && t->first == host->first && t->n == host->n) continue;
    return cx_invalid(
        "process %u says that its host has devices %u to %u, but the processes "
        "before it do not",
        (unsigned)i, (unsigned)t->first, (unsigned)(t->first + t->n - 1));
  }
  return NULL;
}

static uint32_t host_of(const cpu_coll *coll, uint32_t device)
{
  uint32_t low = 0, high = coll->n_hosts;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    if (coll->hosts[middle].first <= device) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// ---- messages ---------------------------------------------------------------

typedef struct message {
  uint32_t kind, device;  // of the world
  uint64_t key, launch;   // of the device group
  uint64_t step;
  union {
    uint64_t header[CPU_COLL_FIELDS];
    cpu_coll_failure failure;
  } as;
} message;
_Static_assert(sizeof(message) <= CPU_COLL_MESSAGE_BYTES, "a message fits");

enum { ARRIVED, ENDED, FAILED };  // kinds

static size_t message_bytes(uint32_t kind)
{
  const size_t head = offsetof(message, as);
  if (kind == ARRIVED) return head + sizeof(uint64_t[CPU_COLL_FIELDS]);
  return kind == ENDED ? head : head + sizeof(cpu_coll_failure);
}

// The process of a host that writes the copies of a device's state.
static uint32_t keeper(const cpu_coll *coll, uint32_t host, uint32_t device)
{
  const cpu_coll_host *h = &coll->hosts[host];
  const uint32_t processes = h->n / coll->topology.n_own;
  return h->first / coll->topology.n_own + device % processes;
}

static void send_to(cpu_coll *coll, uint32_t host, const message *m)
{
  cpu_coll_link_send(coll->link, keeper(coll, host, m->device), m,
                     message_bytes(m->kind));
}

static message message_of(const cpu_coll *coll, const cpu_coll_launch *l,
                          uint32_t kind, const cpu_coll_state *s)
{
  return (
      message){ .kind = kind,
                .device = l->devices[cpu_coll_device(l)],
                .key = atomic_load(&coll->head->device_groups[l->device_group]),
                .launch = l->number,
                .step = atomic_load(&s->step) };
}

void cpu_coll_remote_arrived(const cpu_coll_participant *p)
{
  const cpu_coll_local_device *self = p->self;
  const cpu_coll_state *s = &self->states[self->slot];
  message m = message_of(p->coll, p->launch, ARRIVED, s);
  cpu_coll_header_read(s, m.as.header);
  for (uint32_t i = 0; i < p->n_host_groups; i++) {
    if (i != p->own_host_group) send_to(p->coll, p->host_groups[i].host, &m);
  }
  cpu_coll_link_poll(p->coll->link);
}

void cpu_coll_remote_ended(const cpu_coll_launch *l, bool failed)
{
  cpu_coll *coll = l->coll;
  if (coll->link == NULL) return;
  const uint32_t n = l->n_replicas * l->n_partitions;
  const uint32_t device = l->devices[cpu_coll_device(l)];
  const uint32_t own = host_of(coll, device);
  cpu_coll_state *s =
      &cpu_coll_states_of(coll, l->device_group)[cpu_coll_slot(coll, device)];
  message m = message_of(coll, l, failed ? FAILED : ENDED, s);
  if (failed) (void)cpu_coll_failure_read(s, l->number, &m.as.failure);
  for (uint32_t h = 0; h < coll->n_hosts; h++) {
    bool has = false;
    for (uint32_t i = 0; i < n && !has && h != own; i++) {
      has = l->devices[i] - coll->hosts[h].first < coll->hosts[h].n;
    }
    if (has) send_to(coll, h, &m);
  }
}

// ---- copies -----------------------------------------------------------------

static void copy_arrival(cpu_coll_state *s, const message *m)
{
  cpu_coll_set_launch(s, m->launch);
  cpu_coll_words_store(s->header, m->as.header, CPU_COLL_FIELDS);
  atomic_store(&s->step, m->step);
}

static void copy_end(cpu_coll_state *s, const message *m)
{
  if (m->kind == FAILED) {
    if (atomic_load(&s->launch) == m->launch) atomic_store(&s->step, m->step);
    cpu_coll_failure_write(s, &m->as.failure, m->launch);
  }
  atomic_store(&s->ended, m->launch);
}

static void on_message(void *user, const void *bytes, size_t size)
{
  cpu_coll *coll = user;
  message m = { 0 };
  uint32_t device_group = 0;
  if (size > sizeof m || size < offsetof(message, as)) return;
  memcpy(&m, bytes, size);
  if (m.kind > FAILED || size != message_bytes(m.kind) ||
      m.device >= coll->topology.n_world ||
      m.device - coll->topology.host_first < coll->topology.n_host ||
      !cpu_coll_find_device_group(coll, m.key, &device_group)) {
    return;
  }
  cpu_coll_state *states = cpu_coll_states_of(coll, device_group);
  cpu_coll_state *s = &states[cpu_coll_slot(coll, m.device)];
  if (m.kind == ARRIVED) {
    copy_arrival(s, &m);
  } else {
    copy_end(s, &m);
  }
  cpu_coll_wake_all(coll, states);
}

// ---- opening ----------------------------------------------------------------

static int tag_of(const cpu_coll *coll, uint32_t from, uint32_t to, int channel)
{
  const uint32_t n = coll->topology.n_own;
  return FIRST_TAG + (int)((from % n * n + to % n) * CPU_COLL_CHANNELS) +
         channel;
}

calx_status *cpu_coll_remote_open(cpu_coll *coll)
{
  const cpu_coll_topology *t = &coll->topology;
  const uint32_t n = t->n_world / t->n_own;
  const host_info own = { t->host_first, t->n_host, t->n_own };
  host_info *all = cx_calloc(n, sizeof *all);
  if (all == NULL) return cx_out_of_memory();
  const cpu_coll_link_options options = {
    .process = t->own_first / t->n_own,
    .processes = n,
    .max_tag = tag_of(coll, t->n_own - 1, t->n_own - 1, CPU_COLL_CHANNELS - 1),
    .timeout_ms = t->timeout_ms,
    .job = coll->job,
    .on_message = on_message,
    .user = coll,
    .meet = t->meet,
    .meet_user = t->meet_user,
    .own = &own,
    .all = all,
    .own_bytes = sizeof own
  };
  calx_status *status = cpu_coll_link_open(&options, &coll->link);
  if (status == NULL) status = read_hosts(coll, all, n);
  cx_free(all);
  return status;
}

// ---- transfers --------------------------------------------------------------

cpu_coll_transfer cpu_coll_remote_transfer(const cpu_coll_participant *p,
                                           uint32_t i, cpu_coll_channel channel,
                                           bool sends, void *data, size_t bytes)
{
  const uint32_t me = p->launch->devices[p->group->members[p->group->me]];
  const uint32_t other = p->launch->devices[p->group->members[i]];
  const int tag = sends ? tag_of(p->coll, me, other, (int)channel)
                        : tag_of(p->coll, other, me, (int)channel);
  return (cpu_coll_transfer){ .data = data,
                              .bytes = bytes,
                              .process = other / p->coll->topology.n_own,
                              .tag = tag,
                              .sends = sends };
}

void cpu_coll_remote_wait_begin(cpu_coll_remote_wait *wait)
{
  wait->wake_word = cpu_coll_link_wake_word(wait->participant->coll->link);
}

calx_status *cpu_coll_remote_wait_end(cpu_coll_remote_wait *wait, bool moved)
{
  const cpu_coll_participant *p = wait->participant;
  if (moved) {
    wait->tries = 0;
    wait->until_ns = 0;
    return NULL;
  }
  cpu_coll_link_poll(p->coll->link);
  if (++wait->tries < YIELDS) {
    cpu_threads_yield();
    return NULL;
  }
  const int64_t now = cx_now_ns();
  if (wait->until_ns == 0) {
    wait->until_ns = now + cpu_coll_limit_ms(p->launch) * 1000000;
  }
  CALX_TRY(cpu_coll_link_error(p->coll->link));
  CALX_TRY(cpu_coll_check_wait(
      p, cpu_coll_step(p->launch->n_done, p->phase + 1), INT64_MAX));
  if (now > wait->until_ns) {
    const cpu_coll_report stuck = { .cause = CPU_COLL_STUCK,
                                    .launch = p->launch,
                                    .submission = p->submission };
    return cpu_coll_error(&stuck);
  }
  cpu_coll_link_sleep(p->coll->link, wait->wake_word);
  return NULL;
}

void cpu_coll_remote_abandon(const cpu_coll_participant *p)
{
  cpu_coll_link_abandon(p->coll->link, cpu_coll_name(p->submission->op),
                        p->launch->n_done);
}
