// lazy/muster: a program with collectives runs on all ranks or on none.
//
// Before the launch each rank brings what it is about to run to its process's
// muster, and agrees with the others on the graph's key. Agreement on a key of
// which a rank has not run the program yet is only agreement to compile it: a
// second one follows, when that is done, so that a rank that fails to keeps all
// from launching. Whether there is a second one follows from what all ranks did
// together, so all know it without asking.
//
// The first rank of a process that comes back from the last agreement launches
// for all of them, in one call: then either all of the process's devices run
// the program or none does, whatever the plugin. (Ours would take each device's
// launch from its own thread as well; XLA's CPU and CUDA would wait for ever
// when one of them failed.)
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/differ.h"
#include "lazy/program.h"
#include "world/world.h"

// Held by nobody who waits for other ranks.
static struct {
  cx_mutex lock;
  cx_cond launched;
  char why[1024];  // the last launch that ranks here did not agree on
} muster = { .lock = CX_MUTEX_INIT, .launched = PTHREAD_COND_INITIALIZER };

// Of this process; all of them have a device.
static int local_ranks(void)
{
  int n = cx_world_self()->devices;
  while (n > 0 && cx_lazy_device_at(n - 1) == NULL) n--;
  return n;
}

// ---- what differs -----------------------------------------------------------

// The first words are kept; takes the text.
static void keep_why(cx_text *text)
{
  if (muster.why[0] == '\0') {
    snprintf(muster.why, sizeof muster.why, "%s", cx_text_str(text));
  }
  cx_text_free(text);
}

void cx_lazy_ranks_reset(void)
{
  cx_lock(&muster.lock);
  muster.why[0] = '\0';
  for (int i = 0; cx_lazy_device_at(i) != NULL; i++) {
    cx_lazy_device_at(i)->share.number = 0;
    atomic_store(&cx_lazy_device_at(i)->rank_ended, false);
  }
  cx_unlock(&muster.lock);
}

static void say_ranks(const calx_device *ours, const calx_device *theirs,
                      cx_text *out)
{
  char we[24], they[24];
  snprintf(we, sizeof we, "rank %d", cx_lazy_device_rank(ours));
  snprintf(they, sizeof they, "rank %d", cx_lazy_device_rank(theirs));
  cx_graph_outline *outline =
      cx_graph_outline_new(theirs->share.passage->run->order);
  if (outline == NULL) return;
  cx_graph_outline_compare(outline, they, ours->share.passage->run->order, we,
                           out);
  cx_graph_outline_free(outline);
}

// Words the difference to a rank of this process that has come before and
// waits. Under the muster's lock.
static void look_for_difference(calx_device *d)
{
  for (int i = 0; i < local_ranks(); i++) {
    calx_device *other = cx_lazy_device_at(i);
    if (other == d || other->share.state != CX_LAZY_SHARE_BROUGHT ||
        other->share.number != d->share.number ||
        cx_hash_equal(other->share.passage->run->order->hash,
                      d->share.passage->run->order->hash)) {
      continue;
    }
    cx_text text = { 0 };
    cx_text_append(&text, "the ranks' programs differ, none was run: ");
    say_ranks(d, other, &text);
    keep_why(&text);
    return;
  }
}

static void note_failure(const calx_device *d, const calx_status *status)
{
  cx_text text = { 0 };
  cx_text_format(&text, "rank %d could not make its program: %s",
                 cx_lazy_device_rank(d), cx_status_sentence(status));
  cx_lock(&muster.lock);
  keep_why(&text);
  cx_unlock(&muster.lock);
}

// ---- agreeing ---------------------------------------------------------------

static void bring(cx_lazy_passage *p)
{
  calx_device *d = p->run->device;
  cx_lock(&muster.lock);
  d->share = (cx_lazy_share){ .state = CX_LAZY_SHARE_BROUGHT,
                              .number = d->share.number + 1,
                              .passage = p };
  look_for_difference(d);
  cx_unlock(&muster.lock);
}

static void withdraw(calx_device *d)
{
  cx_lock(&muster.lock);
  d->share.state = CX_LAZY_SHARE_NONE;
  d->share.passage = NULL;
  cx_unlock(&muster.lock);
}

// The first collective, for other ranks' messages.
static void name_collective(const cx_graph_order *o, char *out, size_t size)
{
  size_t i = 0;
  while ((cx_node_flags(o->nodes[i]) & CX_GRAPH_NODE_COLLECTIVE) == 0) i++;
  const cx_graph_node *node = o->nodes[i];
  snprintf(out, size, "%s at %s:%d", node->op->name,
           node->site.file != NULL ? node->site.file : "?", node->site.line);
}

static calx_status *in_own_words(const cx_lazy_passage *p, calx_status *status,
                                 int differs)
{
  const cx_world_info *here = cx_world_self();
  const char *call = p->run->is_sync ? "sync" : "read";
  calx_status *told = NULL;
  cx_lock(&muster.lock);
  // What was once refused stays so until the next ranks start.
  if (differs >= 0 && differs / here->devices == here->process &&
      muster.why[0] != '\0') {
    told = cx_error_at(&p->run->site, calx_status_code(status), "%s: %s", call,
                       muster.why);
  }
  cx_unlock(&muster.lock);
  if (told == NULL) {
    told = cx_error_at(&p->run->site, calx_status_code(status), "%s: %s", call,
                       cx_status_sentence(status));
  }
  calx_status_free(status);
  return told;
}

// What a rank brings says what failed on it; NULL: nothing.
static calx_status *agree(const cx_lazy_passage *p, cx_hash key,
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
  return status == NULL ? NULL : in_own_words(p, status, differs);
}

// ---- which variant ----------------------------------------------------------

// Constant starts serve only ranks that all have the same. Those of other
// processes are not known here. Under the muster's lock.
static cx_lazy_choice choose(const cx_lazy_passage *p)
{
  size_t n = p->run->order->n_soft;
  if (n == 0) return CX_LAZY_CHOICE_CONSTANT;
  if (cx_world_self()->processes > 1) return CX_LAZY_CHOICE_DYNAMIC;
  for (int i = 0; i < local_ranks(); i++) {
    const cx_lazy_passage *other = cx_lazy_device_at(i)->share.passage;
    if (other == NULL ||
        memcmp(other->soft, p->soft, n * sizeof *p->soft) != 0) {
      return CX_LAZY_CHOICE_DYNAMIC;
    }
  }
  return cx_lazy_program_wants(p);
}

// Whoever is quick has chosen, and launched, for the others.
static cx_lazy_choice find_choice(const cx_lazy_passage *p)
{
  const cx_lazy_share *share = &p->run->device->share;
  cx_lock(&muster.lock);
  cx_lazy_choice choice = share->state == CX_LAZY_SHARE_TAKEN
                              ? (cx_lazy_choice)share->choice
                              : choose(p);
  cx_unlock(&muster.lock);
  return choice;
}

// ---- launching --------------------------------------------------------------

typedef struct launch {
  cx_pjrt_executable *executable;
  size_t n_ranks, n_args, n_out;
  calx_device **devices;  // in the order of the replicas
  cx_pjrt_buffer **args, **out;
  cx_pjrt_event **done;
} launch;

// Under the muster's lock: all ranks are there, and nobody else launches.
static calx_status *gather(const cx_lazy_passage *p, launch *l)
{
  for (size_t r = 0; r < l->n_ranks; r++) {
    size_t index = cx_pjrt_executable_device(l->executable, r);
    calx_device *d = cx_lazy_device_at((int)index);
    if (d == NULL || (int)index >= local_ranks() ||
        d->share.state != CX_LAZY_SHARE_BROUGHT) {
      return cx_error_at(&p->run->site, CALX_ABORTED,
                         "%s is not at this launch, to which all agreed",
                         calx_device_name(d));
    }
    l->devices[r] = d;
    for (size_t i = 0; i < l->n_args; i++) {
      l->args[r * l->n_args + i] = d->share.passage->args[i];
    }
  }
  return NULL;
}

static calx_status *check_ranks(const cx_lazy_passage *p, size_t n)
{
  if (n == (size_t)local_ranks()) return NULL;
  return cx_error_at(&p->run->site, CALX_UNIMPLEMENTED,
                     "the program runs on %zu devices of this process, which "
                     "has %d ranks: plugin platform '%s' has no collectives "
                     "across processes",
                     n, local_ranks(),
                     cx_pjrt_client_platform(p->run->device->client));
}

static void hand_out(const launch *l)
{
  for (size_t r = 0; r < l->n_ranks; r++) {
    const cx_lazy_passage *p = l->devices[r]->share.passage;
    for (size_t i = 0; i < l->n_out; i++) p->out[i] = l->out[r * l->n_out + i];
    *p->out_done = l->done[r];
  }
}

// All states are TAKEN, so that the passages stay as they are.
static calx_status *execute(const launch *l)
{
  int64_t start = cx_now_ns();
  CALX_TRY(cx_pjrt_execute_all(l->executable, l->args, l->n_ranks * l->n_args,
                               l->out, l->done));
  for (size_t r = 0; r < l->n_ranks; r++) {
    cx_lazy_launch_count(l->done[r], start, l->devices[r]->index, true);
  }
  hand_out(l);
  return NULL;
}

static calx_status *make_launch(const cx_lazy_passage *p, launch *l,
                                void **block)
{
  *block = NULL;
  *l = (launch){ .executable = p->executable,
                 .n_ranks = cx_pjrt_executable_device_count(p->executable),
                 .n_args = p->n_args,
                 .n_out = p->run->order->n_roots };
  CALX_TRY(check_ranks(p, l->n_ranks));
  void **at = cx_calloc(l->n_ranks * (l->n_args + l->n_out + 2), sizeof *at);
  if (at == NULL) return cx_out_of_memory();
  *block = at;
  l->args = (cx_pjrt_buffer **)at;
  l->out = l->args + l->n_ranks * l->n_args;
  l->done = (cx_pjrt_event **)(l->out + l->n_ranks * l->n_out);
  l->devices = (calx_device **)(l->done + l->n_ranks);
  return NULL;
}

// What this process's ranks have brought is one rank's to launch. Under the
// muster's lock, as all that follows.
static void take_all(cx_lazy_choice choice)
{
  for (int i = 0; i < local_ranks(); i++) {
    cx_lazy_share *share = &cx_lazy_device_at(i)->share;
    if (share->state != CX_LAZY_SHARE_BROUGHT) continue;
    share->state = CX_LAZY_SHARE_TAKEN;
    share->choice = choice;
  }
}

// A launch that was tried is everybody's, however it ended.
static void end_all(const calx_status *status)
{
  for (int i = 0; i < local_ranks(); i++) {
    cx_lazy_share *share = &cx_lazy_device_at(i)->share;
    if (share->state != CX_LAZY_SHARE_TAKEN || share->tried) continue;
    share->tried = true;
    share->status = cx_status_copy(status);
  }
  cx_cond_broadcast(&muster.launched);
}

static void launch_for_all(cx_lazy_passage *p, cx_lazy_choice choice)
{
  launch l;
  void *block;
  calx_status *status = make_launch(p, &l, &block);
  if (status == NULL) status = gather(p, &l);
  take_all(choice);
  cx_unlock(&muster.lock);
  if (status == NULL) status = execute(&l);
  cx_free(block);
  cx_lock(&muster.lock);
  end_all(status);
  calx_status_free(status);
}

static calx_status *launch_together(cx_lazy_passage *p, cx_lazy_choice choice)
{
  cx_lazy_share *share = &p->run->device->share;
  cx_lock(&muster.lock);
  if (share->state == CX_LAZY_SHARE_BROUGHT) launch_for_all(p, choice);
  while (!share->tried) cx_cond_wait(&muster.launched, &muster.lock);
  calx_status *status = share->status;
  share->status = NULL;
  cx_unlock(&muster.lock);
  return status;
}

// ---- the way ----------------------------------------------------------------

// Another key than the graph's, the same on all ranks for which it went well.
static cx_hash key_of_readiness(const cx_lazy_passage *p,
                                const calx_status *status)
{
  cx_hash key = p->run->order->hash;
  key.low ^= 1;
  if (status != NULL) {
    key.high ^= (uint64_t)cx_lazy_device_rank(p->run->device) + 1;
  }
  return key;
}

// The program is made, with all ranks knowing of each that it is.
static calx_status *make_ready(cx_lazy_passage *p, cx_lazy_choice choice)
{
  calx_status *status = cx_lazy_program_get(p, choice);
  if (status == NULL) status = cx_lazy_program_args(p);
  if (status != NULL) note_failure(p->run->device, status);
  calx_status *others = agree(p, key_of_readiness(p, status), status);
  if (status == NULL) return others;
  calx_status_free(others);
  return status;
}

static calx_status *run_with_others(cx_lazy_passage *p)
{
  CALX_TRY(agree(p, p->run->order->hash, NULL));
  cx_lazy_choice choice = find_choice(p);
  if (!cx_lazy_program_ran(p, choice)) CALX_TRY(make_ready(p, choice));
  CALX_TRY(launch_together(p, choice));
  cx_lazy_program_note_ran(p, choice);
  return NULL;
}

// All ranks have one plugin, so all find the same here.
static calx_status *check_plugin(const cx_lazy_passage *p)
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

calx_status *cx_lazy_run_together(cx_lazy_passage *p)
{
  calx_device *d = p->run->device;
  CALX_TRY(check_plugin(p));
  // What may fail without the others does so before they are met.
  if (cx_lazy_program_ran(p, CX_LAZY_CHOICE_CONSTANT) ||
      cx_lazy_program_ran(p, CX_LAZY_CHOICE_DYNAMIC)) {
    CALX_TRY(cx_lazy_program_args(p));
  }
  bring(p);
  calx_status *status = run_with_others(p);
  withdraw(d);
  return status;
}
