// lazy/run/collective_launch: a program with collectives runs on all ranks or
// on none.
//
// Each rank submits what it is about to run and agrees with the others on the
// graph's key. Where a rank has not run the program yet, this first agreement
// is about compiling it. A second agreement follows when every rank has
// compiled: a rank whose compilation failed keeps all from launching. Whether a
// second one is needed follows from what the ranks ran together before, so
// every rank knows it without asking.
//
// The first rank of a process that returns from the last agreement launches the
// program for all ranks of the process, in one call. Then either all of the
// process's devices run it or none does, on every plugin. (XLA's CPU and CUDA
// plugins wait for ever when one device's launch of several fails.)
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/differ.h"
#include "lazy/run/program.h"
#include "world/world.h"

// Never held while waiting for another rank.
static struct {
  cx_mutex lock;
  cx_cond launched;
  char why[1024];  // the last launch that ranks here did not agree on
} state = { .lock = CX_MUTEX_INIT, .launched = PTHREAD_COND_INITIALIZER };

// Of this process; all of them have a device.
static int local_ranks(void)
{
  int n = cx_world_self()->devices;
  while (n > 0 && cx_lazy_device_at(n - 1) == NULL) n--;
  return n;
}

// ---- what differs -----------------------------------------------------------

// Keeps the first reason; takes the text.
static void keep_why(cx_text *text)
{
  if (state.why[0] == '\0') {
    snprintf(state.why, sizeof state.why, "%s", cx_text_str(text));
  }
  cx_text_free(text);
}

void cx_lazy_ranks_reset(void)
{
  cx_lock(&state.lock);
  state.why[0] = '\0';
  for (int i = 0; cx_lazy_device_at(i) != NULL; i++) {
    cx_lazy_device_at(i)->pending.number = 0;
    atomic_store(&cx_lazy_device_at(i)->rank_ended, false);
  }
  cx_unlock(&state.lock);
}

static void format_difference(const calx_device *ours,
                              const calx_device *theirs, cx_text *out)
{
  char we[24], they[24];
  snprintf(we, sizeof we, "rank %d", cx_lazy_device_rank(ours));
  snprintf(they, sizeof they, "rank %d", cx_lazy_device_rank(theirs));
  cx_graph_outline *outline =
      cx_graph_outline_new(theirs->pending.execution->run->order);
  if (outline == NULL) return;
  cx_graph_outline_differ(outline, they, ours->pending.execution->run->order,
                          we, out);
  cx_graph_outline_free(outline);
}

// Formats the difference to a rank of this process that submitted before and
// waits. Under the lock.
static void find_difference(calx_device *d)
{
  for (int i = 0; i < local_ranks(); i++) {
    calx_device *other = cx_lazy_device_at(i);
    if (other == d || other->pending.state != CX_LAZY_LAUNCH_SUBMITTED ||
        other->pending.number != d->pending.number ||
        cx_hash_equal(other->pending.execution->run->order->hash,
                      d->pending.execution->run->order->hash)) {
      continue;
    }
    cx_text text = { 0 };
    cx_text_append(&text, "the ranks' programs differ, none was run: ");
    format_difference(d, other, &text);
    keep_why(&text);
    return;
  }
}

static void keep_failure(const calx_device *d, const calx_status *status)
{
  cx_text text = { 0 };
  cx_text_format(&text, "rank %d could not make its program: %s",
                 cx_lazy_device_rank(d), cx_status_sentence(status));
  cx_lock(&state.lock);
  keep_why(&text);
  cx_unlock(&state.lock);
}

// ---- agreeing ---------------------------------------------------------------

static void submit(cx_lazy_execution *p)
{
  calx_device *d = p->run->device;
  cx_lock(&state.lock);
  d->pending = (cx_lazy_pending_launch){ .state = CX_LAZY_LAUNCH_SUBMITTED,
                                         .number = d->pending.number + 1,
                                         .execution = p };
  find_difference(d);
  cx_unlock(&state.lock);
}

static void withdraw(calx_device *d)
{
  cx_lock(&state.lock);
  d->pending.state = CX_LAZY_LAUNCH_NONE;
  d->pending.execution = NULL;
  cx_unlock(&state.lock);
}

// The first collective, for other ranks' messages.
static void name_collective(const cx_graph_order *o, char *out, size_t size)
{
  size_t i = 0;
  while ((cx_graph_node_flags(o->nodes[i]) & CX_GRAPH_NODE_COLLECTIVE) == 0)
    i++;
  const cx_graph_node *node = o->nodes[i];
  snprintf(out, size, "%s at %s:%d", node->op->name, cx_site_file(&node->site),
           node->site.line);
}

static calx_status *with_local_reason(const cx_lazy_execution *p,
                                      calx_status *status, int differs)
{
  const cx_world_info *here = cx_world_self();
  const char *call = p->run->is_sync ? "sync" : "read";
  cx_lock(&state.lock);
  // A refused launch stays refused until the next ranks start.
  bool is_known = differs >= 0 && differs / here->devices == here->process &&
                  state.why[0] != '\0';
  calx_status *reported =
      cx_error_at(&p->run->site, calx_status_code(status), "%s: %s", call,
                  is_known ? state.why : cx_status_sentence(status));
  cx_unlock(&state.lock);
  calx_status_free(status);
  return reported;
}

// failed: why this rank cannot run the program, for the messages of the others;
// NULL: it can.
static calx_status *agree(const cx_lazy_execution *p, cx_hash key,
                          const calx_status *failed)
{
  char what[256];
  if (failed != NULL) {
    snprintf(what, sizeof what, "a failed compilation: %s",
             cx_status_sentence(failed));
  } else {
    name_collective(p->run->order, what, sizeof what);
  }
  cx_world_proposal a = { .rank = cx_lazy_device_rank(p->run->device),
                          .key = key,
                          .what = what };
  int differs;
  calx_status *status = cx_world_agree(&a, cx_world_timeout_ms(), &differs);
  return status == NULL ? NULL : with_local_reason(p, status, differs);
}

// ---- which variant ----------------------------------------------------------

// Constant starts serve only ranks that all have the same. Those of other
// processes are not known here. Under the lock.
static cx_lazy_choice choose(const cx_lazy_execution *p)
{
  size_t n = p->run->order->n_promotable;
  if (n == 0) return CX_LAZY_CHOICE_CONSTANT;
  if (cx_world_self()->processes > 1) return CX_LAZY_CHOICE_DYNAMIC;
  for (int i = 0; i < local_ranks(); i++) {
    const cx_lazy_execution *other = cx_lazy_device_at(i)->pending.execution;
    if (other == NULL || memcmp(other->promotable, p->promotable,
                                n * sizeof *p->promotable) != 0) {
      return CX_LAZY_CHOICE_DYNAMIC;
    }
  }
  return cx_lazy_program_wants(p);
}

// A rank that was faster may have chosen, and launched, for this one.
static cx_lazy_choice find_choice(const cx_lazy_execution *p)
{
  const cx_lazy_pending_launch *pending = &p->run->device->pending;
  cx_lock(&state.lock);
  cx_lazy_choice choice = pending->state == CX_LAZY_LAUNCH_TAKEN
                              ? (cx_lazy_choice)pending->choice
                              : choose(p);
  cx_unlock(&state.lock);
  return choice;
}

// ---- launching --------------------------------------------------------------

typedef struct group_launch {
  cx_pjrt_executable *executable;
  size_t n_ranks, n_args, n_out;
  void *block;            // of what follows
  calx_device **devices;  // in the order of the replicas
  cx_pjrt_buffer **args, **out;
  cx_pjrt_event **done;
} group_launch;

// Under the lock: all ranks have submitted, and no other rank launches.
static calx_status *gather(const cx_lazy_execution *p, group_launch *l)
{
  for (size_t r = 0; r < l->n_ranks; r++) {
    size_t index = cx_pjrt_executable_device(l->executable, r);
    calx_device *d = cx_lazy_device_at((int)index);
    if (d == NULL || (int)index >= local_ranks() ||
        d->pending.state != CX_LAZY_LAUNCH_SUBMITTED) {
      return cx_error_at(&p->run->site, CALX_ABORTED,
                         "%s is not at this launch, to which all agreed",
                         calx_device_name(d));
    }
    l->devices[r] = d;
    for (size_t i = 0; i < l->n_args; i++) {
      l->args[r * l->n_args + i] = d->pending.execution->args[i];
    }
  }
  return NULL;
}

static calx_status *check_ranks(const cx_lazy_execution *p, size_t n)
{
  if (n == (size_t)local_ranks()) return NULL;
  return cx_error_at(&p->run->site, CALX_UNIMPLEMENTED,
                     "the program runs on %zu devices of this process, which "
                     "has %d ranks: plugin platform '%s' has no collectives "
                     "across processes",
                     n, local_ranks(),
                     cx_pjrt_client_platform(p->run->device->client));
}

// All states are TAKEN: the ranks wait, so their executions do not change.
static calx_status *execute(const group_launch *l)
{
  int64_t start = cx_now_ns();
  CALX_TRY(cx_pjrt_execute_all(l->executable, l->args, l->n_ranks * l->n_args,
                               l->out, l->done));
  for (size_t r = 0; r < l->n_ranks; r++) {
    const cx_lazy_execution *p = l->devices[r]->pending.execution;
    cx_lazy_launch_count(l->done[r], start, l->devices[r]->index, true);
    for (size_t i = 0; i < l->n_out; i++) p->out[i] = l->out[r * l->n_out + i];
    *p->out_done = l->done[r];
  }
  return NULL;
}

static calx_status *make_launch(const cx_lazy_execution *p, group_launch *l)
{
  *l =
      (group_launch){ .executable = p->executable,
                      .n_ranks = cx_pjrt_executable_device_count(p->executable),
                      .n_args = p->n_args,
                      .n_out = p->run->order->n_roots };
  CALX_TRY(check_ranks(p, l->n_ranks));
  void **at = cx_calloc(l->n_ranks * (l->n_args + l->n_out + 2), sizeof *at);
  if (at == NULL) return cx_out_of_memory();
  l->block = at;
  l->args = (cx_pjrt_buffer **)at;
  l->out = l->args + l->n_ranks * l->n_args;
  l->done = (cx_pjrt_event **)(l->out + l->n_ranks * l->n_out);
  l->devices = (calx_device **)(l->done + l->n_ranks);
  return NULL;
}

// One rank launches what the ranks of this process have submitted. This
// function and those that follow are called under the lock.
static void take_all(cx_lazy_choice choice)
{
  for (int i = 0; i < local_ranks(); i++) {
    cx_lazy_pending_launch *pending = &cx_lazy_device_at(i)->pending;
    if (pending->state != CX_LAZY_LAUNCH_SUBMITTED) continue;
    pending->state = CX_LAZY_LAUNCH_TAKEN;
    pending->choice = choice;
  }
}

// The result of the launch, good or bad, is that of every rank.
static void end_all(const calx_status *status)
{
  for (int i = 0; i < local_ranks(); i++) {
    cx_lazy_pending_launch *pending = &cx_lazy_device_at(i)->pending;
    if (pending->state != CX_LAZY_LAUNCH_TAKEN || pending->tried) continue;
    pending->tried = true;
    pending->status = cx_status_copy(status);
  }
  cx_cond_broadcast(&state.launched);
}

static void launch_for_all(cx_lazy_execution *p, cx_lazy_choice choice)
{
  group_launch l;
  calx_status *status = make_launch(p, &l);
  if (status == NULL) status = gather(p, &l);
  take_all(choice);
  cx_unlock(&state.lock);
  if (status == NULL) status = execute(&l);
  cx_free(l.block);
  cx_lock(&state.lock);
  end_all(status);
  calx_status_free(status);
}

static calx_status *launch_together(cx_lazy_execution *p, cx_lazy_choice choice)
{
  cx_lazy_pending_launch *pending = &p->run->device->pending;
  cx_lock(&state.lock);
  if (pending->state == CX_LAZY_LAUNCH_SUBMITTED) launch_for_all(p, choice);
  while (!pending->tried) cx_cond_wait(&state.launched, &state.lock);
  calx_status *status = pending->status;
  pending->status = NULL;
  cx_unlock(&state.lock);
  return status;
}

// ---- the protocol -----------------------------------------------------------

// Another key than the graph's, the same on all ranks for which it went well.
static cx_hash key_of_readiness(const cx_lazy_execution *p,
                                const calx_status *status)
{
  cx_hash key = p->run->order->hash;
  key.low ^= 1;
  if (status != NULL) {
    key.high ^= (uint64_t)cx_lazy_device_rank(p->run->device) + 1;
  }
  return key;
}

// Compiles the program, and tells every rank whether every other rank could.
static calx_status *make_ready(cx_lazy_execution *p, cx_lazy_choice choice)
{
  calx_status *status = cx_lazy_program_get(p, choice);
  if (status == NULL) status = cx_lazy_program_args(p);
  if (status != NULL) keep_failure(p->run->device, status);
  return cx_status_first(status, agree(p, key_of_readiness(p, status), status));
}

static calx_status *run_with_others(cx_lazy_execution *p)
{
  CALX_TRY(agree(p, p->run->order->hash, NULL));
  cx_lazy_choice choice = find_choice(p);
  if (!cx_lazy_program_ran(p, choice)) CALX_TRY(make_ready(p, choice));
  CALX_TRY(launch_together(p, choice));
  cx_lazy_program_note_ran(p, choice);
  return NULL;
}

// All ranks have one plugin, so all find the same here.
static calx_status *check_plugin(const cx_lazy_execution *p)
{
  const cx_world_info *here = cx_world_self();
  const cx_pjrt_client *client = p->run->device->client;
  if (here->processes == 1 || cx_pjrt_client_world_count(client) >
                                  cx_pjrt_client_device_count(client)) {
    return NULL;
  }
  char what[256];
  name_collective(p->run->order, what, sizeof what);
  return cx_error_at(&p->run->site, CALX_UNIMPLEMENTED,
                     "%s: the collectives of plugin platform '%s' work inside "
                     "one process only, this is process %d of %d (threads: "
                     "CPU_NUM_DEVICES; between processes: CALX_PLUGIN=calx)",
                     what, cx_pjrt_client_platform(client), here->process,
                     here->processes);
}

calx_status *cx_lazy_collective_launch(cx_lazy_execution *p)
{
  calx_device *d = p->run->device;
  CALX_TRY(check_plugin(p));
  // A failure of this rank alone is found before the others wait for it.
  if (cx_lazy_program_ran(p, CX_LAZY_CHOICE_CONSTANT) ||
      cx_lazy_program_ran(p, CX_LAZY_CHOICE_DYNAMIC)) {
    CALX_TRY(cx_lazy_program_args(p));
  }
  submit(p);
  calx_status *status = run_with_others(p);
  withdraw(d);
  return status;
}
