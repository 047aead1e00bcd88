// coll/mpi_far: hosts, copies of states, and who talks to whom.
#include "coll/mpi_far.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "coll/say.h"
#include "coll/state.h"

enum { FIRST_TAG = 2, YIELDS = 500 };

// ---- hosts ------------------------------------------------------------------

typedef struct told {
  uint32_t first, n, n_own;  // the host's devices, and a process's
} told;

// Blocks that follow each other and together are all devices.
static calx_status *read_hosts(cpu_coll *w, const told *all, uint32_t n)
{
  uint32_t next = 0;
  for (uint32_t i = 0; i < n; i++) {
    const told *t = &all[i];
    const uint32_t device = i * w->share.n_own;
    if (t->n_own != w->share.n_own) {
      return cx_error(
          CALX_INVALID_ARGUMENT, "process %u has %u devices, process %u has %u",
          (unsigned)i, (unsigned)t->n_own,
          (unsigned)(w->share.own / w->share.n_own), (unsigned)w->share.n_own);
    }
    if (device == next && t->first == next && t->n != 0 &&
        t->n <= w->share.all - next && t->n % t->n_own == 0) {
      w->hosts[w->n_hosts++] = (cpu_coll_host){ t->first, t->n };
      next += t->n;
    }
    const cpu_coll_host *host = &w->hosts[w->n_hosts - (w->n_hosts > 0)];
    if (device < next && t->first == host->first && t->n == host->n) continue;
    return cx_error(CALX_INVALID_ARGUMENT,
                    "process %u says that its host has devices %u to %u, which "
                    "the processes before it do not say",
                    (unsigned)i, (unsigned)t->first,
                    (unsigned)(t->first + t->n - 1));
  }
  return NULL;
}

static uint32_t host_of(const cpu_coll *w, uint32_t device)
{
  uint32_t low = 0, high = w->n_hosts;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    if (w->hosts[middle].first <= device) {
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
  uint64_t key, launch;   // of the team
  uint64_t step;
  union {
    uint64_t header[CPU_COLL_WORDS];
    cpu_coll_news news;
  } as;
} message;
_Static_assert(sizeof(message) <= CPU_COLL_MPI_MESSAGE, "a message fits");

enum { COMES, ENDED, ENDED_BADLY };

static size_t message_bytes(uint32_t kind)
{
  const size_t head = offsetof(message, as);
  if (kind == COMES) return head + sizeof(uint64_t[CPU_COLL_WORDS]);
  return kind == ENDED ? head : head + sizeof(cpu_coll_news);
}

// The process of a host that has a device's copies.
static uint32_t keeper(const cpu_coll *w, uint32_t host, uint32_t device)
{
  const cpu_coll_host *h = &w->hosts[host];
  const uint32_t processes = h->n / w->share.n_own;
  return h->first / w->share.n_own + device % processes;
}

static void tell(cpu_coll *w, uint32_t host, const message *m)
{
  cpu_coll_mpi_link_tell(w->link, keeper(w, host, m->device), m,
                         message_bytes(m->kind));
}

static message message_of(const cpu_coll *w, const cpu_coll_launch *l,
                          uint32_t kind, const cpu_coll_state *s)
{
  return (message){ .kind = kind,
                    .device = l->devices[cpu_coll_device(l)],
                    .key = atomic_load(&w->head->teams[l->team]),
                    .launch = l->number,
                    .step = atomic_load(&s->step) };
}

void cpu_coll_mpi_far_come(const cpu_coll_visit *v)
{
  const cpu_coll_own *self = v->self;
  const cpu_coll_state *s = &self->team[self->device];
  message m = message_of(v->window, v->launch, COMES, s);
  for (int i = 0; i < CPU_COLL_WORDS; i++) {
    m.as.header[i] = atomic_load(&s->header[i]);
  }
  for (uint32_t i = 0; i < v->n_sides; i++) {
    if (i != v->own_side) tell(v->window, v->sides[i].host, &m);
  }
  cpu_coll_mpi_link_poll(v->window->link);
}

void cpu_coll_mpi_far_end(cpu_coll *w, const cpu_coll_launch *l, bool failed)
{
  if (w->link == NULL) return;
  const uint32_t n = l->n_replicas * l->n_partitions;
  const uint32_t device = l->devices[cpu_coll_device(l)];
  const uint32_t own = host_of(w, device);
  const cpu_coll_state *s =
      &cpu_coll_states_of(w, l->team)[cpu_coll_place(w, device)];
  message m = message_of(w, l, failed ? ENDED_BADLY : ENDED, s);
  if (failed) cpu_coll_news_read(s, &m.as.news);
  for (uint32_t h = 0; h < w->n_hosts; h++) {
    bool has = false;
    for (uint32_t i = 0; i < n && !has && h != own; i++) {
      has = l->devices[i] - w->hosts[h].first < w->hosts[h].n;
    }
    if (has) tell(w, h, &m);
  }
}

// ---- copies -----------------------------------------------------------------

static void copy_coming(cpu_coll_state *s, const message *m)
{
  if (atomic_load(&s->launch) != m->launch) {
    atomic_store(&s->step, 0);
    atomic_store(&s->launch, m->launch);
  }
  for (int i = 0; i < CPU_COLL_WORDS; i++) {
    atomic_store_explicit(&s->header[i], m->as.header[i], memory_order_relaxed);
  }
  atomic_store(&s->step, m->step);
}

static void copy_end(cpu_coll_state *s, const message *m)
{
  if (m->kind == ENDED_BADLY) {
    if (atomic_load(&s->launch) == m->launch) atomic_store(&s->step, m->step);
    (void)atomic_exchange(&s->failed, 0);
    cpu_coll_news_write(s, &m->as.news);
    atomic_store(&s->failed, m->launch);
  }
  atomic_store(&s->ended, m->launch);
}

static void hear(void *user, const void *bytes, size_t size)
{
  cpu_coll *w = user;
  message m = { 0 };
  uint32_t slot = 0;
  if (size > sizeof m || size < offsetof(message, as)) return;
  memcpy(&m, bytes, size);
  if (m.kind > ENDED_BADLY || size != message_bytes(m.kind) ||
      m.device >= w->share.all || m.device - w->share.first < w->share.n ||
      !cpu_coll_slot_of(w, m.key, &slot)) {
    return;
  }
  cpu_coll_state *team = cpu_coll_states_of(w, slot);
  cpu_coll_state *s = &team[cpu_coll_place(w, m.device)];
  if (m.kind == COMES) {
    copy_coming(s, &m);
  } else {
    copy_end(s, &m);
  }
  for (uint32_t i = 0; i < w->share.all; i++) {
    if (atomic_load(&team[i].sleepers) != 0) cpu_coll_ring(&team[i]);
  }
}

// ---- sides ------------------------------------------------------------------

calx_status *cpu_coll_mpi_far_sides(cpu_coll_visit *v)
{
  const cpu_coll *w = v->window;
  cpu_coll_own *self = v->self;
  const uint32_t n = v->group->n;
  if (self->side_room < n) {
    uint32_t *order = cx_realloc(self->order, n * sizeof *order);
    if (order == NULL) return cx_out_of_memory();
    self->order = order;
    cpu_coll_side *sides = cx_realloc(self->sides, n * sizeof *sides);
    if (sides == NULL) return cx_out_of_memory();
    self->sides = sides;
    self->side_room = n;
  }
  uint32_t used = 0;
  v->n_sides = 0;
  for (uint32_t h = 0; h < w->n_hosts; h++) {
    const uint32_t first = used;
    for (uint32_t i = 0; i < n; i++) {
      const uint32_t device = v->launch->devices[v->group->members[i]];
      if (device - w->hosts[h].first >= w->hosts[h].n) continue;
      if (i == v->group->me) {
        v->own_side = v->n_sides;
        v->near_me = used - first;
      }
      self->order[used++] = i;
    }
    if (used == first) continue;
    self->sides[v->n_sides++] =
        (cpu_coll_side){ h, used - first, self->order + first };
  }
  v->sides = self->sides;
  v->near = self->sides[v->own_side].members;
  v->n_near = self->sides[v->own_side].n;
  return NULL;
}

// ---- opening ----------------------------------------------------------------

static int tag_of(const cpu_coll *w, uint32_t from, uint32_t to, int channel)
{
  const uint32_t n = w->share.n_own;
  return FIRST_TAG + (int)((from % n * n + to % n) * CPU_COLL_MPI_CHANNELS) +
         channel;
}

calx_status *cpu_coll_mpi_far_open(cpu_coll *w)
{
  const cpu_coll_share *s = &w->share;
  const uint32_t n = s->all / s->n_own;
  const told own = { s->first, s->n, s->n_own };
  told *all = cx_calloc(n, sizeof *all);
  w->hosts = cx_calloc(n, sizeof *w->hosts);
  if (all == NULL || w->hosts == NULL) {
    cx_free(all);
    return cx_out_of_memory();
  }
  const cpu_coll_mpi_options options = { .process = s->own / s->n_own,
                                         .processes = n,
                                         .most_tag = tag_of(
                                             w, s->n_own - 1, s->n_own - 1,
                                             CPU_COLL_MPI_CHANNELS - 1),
                                         .timeout_ms = s->timeout_ms,
                                         .news = w->news,
                                         .hear = hear,
                                         .user = w,
                                         .told = &own,
                                         .all = all,
                                         .told_bytes = sizeof own };
  calx_status *status = cpu_coll_mpi_link_open(&options, &w->link);
  if (status == NULL) status = read_hosts(w, all, n);
  cx_free(all);
  return status;
}

// ---- transfers --------------------------------------------------------------

cpu_coll_mpi_transfer cpu_coll_mpi_far_transfer(const cpu_coll_visit *v,
                                                uint32_t i,
                                                cpu_coll_mpi_channel channel,
                                                bool sends, void *data,
                                                size_t bytes)
{
  const uint32_t me = v->launch->devices[v->group->members[v->group->me]];
  const uint32_t other = v->launch->devices[v->group->members[i]];
  const int tag = sends ? tag_of(v->window, me, other, (int)channel)
                        : tag_of(v->window, other, me, (int)channel);
  return (cpu_coll_mpi_transfer){ .data = data,
                                  .bytes = bytes,
                                  .process = other / v->window->share.n_own,
                                  .tag = tag,
                                  .sends = sends };
}

static calx_status *stuck_error(const cpu_coll_visit *v)
{
  cx_text text = { 0 };
  cpu_coll_put_part(&text, v->part);
  cx_text_format(&text,
                 " (collective %u of the program): all have come, but for "
                 "%lld ms nothing has moved between the hosts",
                 (unsigned)v->launch->n_done,
                 (long long)cpu_coll_limit_ms(v->launch));
  return cpu_coll_say(CALX_DEADLINE_EXCEEDED, &text);
}

calx_status *cpu_coll_mpi_far_pause(const cpu_coll_visit *v,
                                    cpu_coll_mpi_wait *wait, uint32_t bell)
{
  cpu_coll_mpi_link_poll(v->window->link);
  if (++wait->tries < YIELDS) {
    cpu_coll_yield();
    return NULL;
  }
  const int64_t now = cx_now_ns();
  if (wait->until_ns == 0) {
    wait->until_ns = now + cpu_coll_limit_ms(v->launch) * 1000000;
  }
  CALX_TRY(cpu_coll_mpi_link_error(v->window->link));
  CALX_TRY(cpu_coll_visit_trouble(v));
  if (now > wait->until_ns) return stuck_error(v);
  cpu_coll_mpi_link_sleep(v->window->link, bell);
  return NULL;
}

void cpu_coll_mpi_far_lose(const cpu_coll_visit *v)
{
  cpu_coll_mpi_link_abandon(v->window->link, cpu_coll_name(v->part->op),
                            v->launch->n_done);
}
