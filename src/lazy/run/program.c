// lazy/run/program: compiled graphs by their full key, shared by all devices.
//
// The 128-bit hash finds, the key decides. Threads that want the same new
// program compile it once: the first makes the entry, the others wait for it.
// Of a graph whose slice starts differ from those it was compiled with, a
// second program is made that takes them as slots; it serves every later start.
//
// The table keeps CALX_PROGRAM_LIMIT programs; the one that was not run for the
// longest time goes first. Programs with collectives are counted apart: all
// ranks run them in one order, so all processes drop the same ones, whatever
// else a process runs. A rank that knows a program must not meet one that does
// not.
#include "lazy/run/program.h"
#include "lazy/cache/disk.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/metrics.h"
#include "base/trace.h"
#include "graph/differ.h"

CX_COUNTER(cached_compile, "CachedCompile");
CX_COUNTER(numbers_changed, "DeviceDataCacheMiss");

typedef enum state { COMPILING, READY, FAILED } variant_state;

// One executable of an entry: with constant starts, or with starts as slots.
typedef struct variant {
  variant_state state;
  cx_pjrt_executable *executable;
  int64_t *starts;  // of the constant one; n_promotable
} variant;

struct cx_lazy_program {
  cx_lazy_program *next;  // in its bucket
  cx_hash hash;
  cx_graph_outline *outline;
  calx_site site;
  bool is_sync, train, together;
  size_t users;     // executions that hold it
  int64_t used_at;  // by the table's clock
  size_t n_promotable;
  variant constant, dynamic;
  int64_t number;             // order of making
  cx_lazy_slot_cache *slots;  // per device
  int n_devices;
};

enum { BUCKETS = 4096 };

static struct {
  cx_mutex lock;
  cx_cond changed;
  bool ready;
  cx_lazy_program *buckets[BUCKETS];
  int64_t made;     // programs ever
  int64_t clock;    // of uses
  size_t count[2];  // without and with collectives
  pid_t process;    // that made the newest program
} table = { .lock = CX_MUTEX_INIT, .changed = PTHREAD_COND_INITIALIZER };

static cx_lazy_program **bucket_of(cx_hash hash)
{
  return &table.buckets[hash.low % BUCKETS];
}

static void program_free(cx_lazy_program *p)
{
  for (int i = 0; p->slots != NULL && i < p->n_devices; i++) {
    cx_pjrt_buffer_release(p->slots[i].buffer);
    cx_free(p->slots[i].words);
  }
  cx_free(p->slots);
  cx_pjrt_executable_release(p->constant.executable);
  cx_pjrt_executable_release(p->dynamic.executable);
  cx_free(p->constant.starts);
  cx_graph_outline_free(p->outline);
  cx_free(p);
}

static void unlink_program(cx_lazy_program *p)
{
  cx_lazy_program **at = bucket_of(p->hash);
  while (*at != p) at = &(*at)->next;
  *at = p->next;
  table.count[p->together]--;
  program_free(p);
}

void cx_lazy_programs_free(void)
{
  cx_lock(&table.lock);
  for (size_t i = 0; i < BUCKETS; i++) {
    while (table.buckets[i] != NULL) unlink_program(table.buckets[i]);
  }
  cx_lazy_program_count_reset();
  cx_unlock(&table.lock);
  cx_lazy_recompile_forget();
}

// At the exit another thread may hold the lock for as long as it compiles: then
// nothing is reported. What a log callback writes to may be gone by then.
static void report_at_exit(void)
{
  if (table.process != getpid() || !cx_trylock(&table.lock)) return;
  calx_log_set(NULL, NULL);
  cx_lazy_recompile_report_rest();
  cx_unlock(&table.lock);
}

// ---- finding ----------------------------------------------------------------

static bool is_program(const cx_lazy_program *p, const cx_graph_order *o)
{
  const cx_graph_key *key = cx_graph_outline_key(p->outline);
  return cx_hash_equal(p->hash, o->hash) && key->count == o->key.count &&
         memcmp(key->words, o->key.words, key->count * sizeof *key->words) == 0;
}

static cx_lazy_program *find(const cx_graph_order *o)
{
  cx_lazy_program *p = *bucket_of(o->hash);
  while (p != NULL && !is_program(p, o)) p = p->next;
  return p;
}

static cx_lazy_program *program_new(const cx_lazy_run *run)
{
  cx_lazy_program *p = cx_calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  const cx_graph_order *o = run->order;
  p->n_devices = (int)cx_pjrt_client_device_count(run->device->client);
  p->slots = cx_calloc((size_t)p->n_devices + 1, sizeof *p->slots);
  p->constant.starts = cx_calloc(o->n_promotable + 1, sizeof(int64_t));
  p->outline = cx_graph_outline_new(o);
  if (p->slots == NULL || p->constant.starts == NULL || p->outline == NULL) {
    program_free(p);
    return NULL;
  }
  p->hash = o->hash;
  p->site = run->site;
  p->is_sync = run->is_sync;
  p->train = run->train;
  p->together = (o->flags & CX_GRAPH_NODE_COLLECTIVE) != 0;
  p->n_promotable = o->n_promotable;
  p->constant.state = p->dynamic.state = FAILED;  // not made yet
  return p;
}

// ---- the limit ------------------------------------------------------------

// More than can be under way, so that none of those is dropped.
enum { LEAST_PROGRAMS = CX_LAZY_MAX_FLIGHTS + 1 };

static size_t most_programs(void)
{
  int64_t n = cx_lazy_env_int("CALX_PROGRAM_LIMIT", 512);
  return n > LEAST_PROGRAMS ? (size_t)n : LEAST_PROGRAMS;
}

static cx_lazy_program *longest_unused(bool together)
{
  cx_lazy_program *oldest = NULL;
  for (size_t i = 0; i < BUCKETS; i++) {
    for (cx_lazy_program *p = table.buckets[i]; p != NULL; p = p->next) {
      if (p->together != together || p->users != 0) continue;
      if (oldest == NULL || p->used_at < oldest->used_at) oldest = p;
    }
  }
  return oldest;
}

static void add_program(cx_lazy_program *p)
{
  size_t most = most_programs();
  while (table.count[p->together] >= most) {
    cx_lazy_program *oldest = longest_unused(p->together);
    if (oldest == NULL) break;
    unlink_program(oldest);
  }
  static bool registered;
  if (!registered) registered = atexit(report_at_exit) == 0;
  table.process = getpid();
  table.count[p->together]++;
  p->number = ++table.made;
  p->next = *bucket_of(p->hash);
  *bucket_of(p->hash) = p;
}

// Under the table's lock.
static void hold(cx_lazy_execution *execution, cx_lazy_program *p)
{
  p->used_at = ++table.clock;
  if (execution->program == p) return;
  if (execution->program != NULL) execution->program->users--;
  p->users++;
  execution->program = p;
}

void cx_lazy_program_release(cx_lazy_execution *execution)
{
  cx_lock(&table.lock);
  if (execution->program != NULL) execution->program->users--;
  execution->program = NULL;
  cx_unlock(&table.lock);
}

// ---- why it is compiled -----------------------------------------------------

static bool same_site(const cx_lazy_program *p, const cx_lazy_run *run)
{
  return p->is_sync && p->train == run->train &&
         p->site.line == run->site.line && p->site.file == run->site.file;
}

// Whether p is nearer to the order than q, or as near and newer.
static bool is_nearer(const cx_lazy_program *p, const cx_lazy_program *q,
                      const cx_graph_order *o)
{
  size_t a = cx_graph_outline_common(p->outline, o);
  size_t b = cx_graph_outline_common(q->outline, o);
  if (a != b) return a > b;
  a = cx_graph_outline_excess(p->outline, o);
  b = cx_graph_outline_excess(q->outline, o);
  return a != b ? a < b : p->number > q->number;
}

// After the first two programs of a call site, a miss is explained by its
// nearest known graph. Under the table's lock. Returns an error when
// CALX_RECOMPILE wants one.
static calx_status *explain_miss(const cx_lazy_run *run)
{
  if (!run->is_sync) return NULL;
  size_t known = 0;
  for (size_t i = 0; i < BUCKETS; i++) {
    for (const cx_lazy_program *p = table.buckets[i]; p != NULL; p = p->next) {
      known += same_site(p, run);
    }
  }
  if (known < 2 || !cx_lazy_recompile_wanted(run)) return NULL;
  const cx_lazy_program *nearest = NULL;
  for (size_t i = 0; i < BUCKETS; i++) {
    for (const cx_lazy_program *p = table.buckets[i]; p != NULL; p = p->next) {
      if (!same_site(p, run)) continue;
      if (nearest == NULL || is_nearer(p, nearest, run->order)) nearest = p;
    }
  }
  cx_text why = { 0 };
  cx_graph_outline_differ(nearest->outline, NULL, run->order, NULL, &why);
  calx_status *status = cx_lazy_recompile_report(run, known, cx_text_str(&why));
  cx_text_free(&why);
  return status;
}

// ---- one entry's variant ----------------------------------------------------

// The variant for these starts. Under the table's lock.
static cx_lazy_choice wants(const cx_lazy_program *p, const int64_t *promotable)
{
  bool made = p->constant.state != FAILED;
  bool constant = !made || p->n_promotable == 0 ||
                  memcmp(p->constant.starts, promotable,
                         p->n_promotable * sizeof *promotable) == 0;
  return constant ? CX_LAZY_CHOICE_CONSTANT : CX_LAZY_CHOICE_DYNAMIC;
}

static variant *choose(cx_lazy_program *p, const int64_t *promotable,
                       cx_lazy_choice choice)
{
  if (choice == CX_LAZY_CHOICE_FREE) choice = wants(p, promotable);
  return choice == CX_LAZY_CHOICE_CONSTANT ? &p->constant : &p->dynamic;
}

// Finds or makes the entry, which the execution holds from then on, and its
// variant. That is READY, or the caller is to compile it. Under the table's
// lock, which a wait gives up meanwhile.
static calx_status *claim(cx_lazy_execution *execution, cx_lazy_choice choice,
                          variant **out)
{
  const cx_lazy_run *run = execution->run;
  for (;;) {
    cx_lazy_program *p = find(run->order);
    if (p == NULL) {
      CALX_TRY(explain_miss(run));
      p = program_new(run);
      if (p == NULL) return cx_out_of_memory();
      add_program(p);
    }
    variant *v = *out = choose(p, execution->promotable, choice);
    if (v->state == COMPILING) {
      cx_cond_wait(&table.changed, &table.lock);
      continue;
    }
    hold(execution, p);
    if (v->state == READY) return NULL;
    v->state = COMPILING;
    if (v == &p->constant && p->n_promotable != 0) {
      memcpy(v->starts, execution->promotable,
             p->n_promotable * sizeof *v->starts);
    }
    return NULL;
  }
}

// Compiles what was claimed.
static calx_status *make(cx_lazy_execution *execution, variant *v)
{
  cx_lazy_program *p = execution->program;
  cx_pjrt_executable *executable;
  bool loaded;
  calx_status *status =
      cx_lazy_compile(execution->run, v == &p->dynamic, &executable, &loaded);
  if (loaded) cx_counter_add(&cached_compile, 1);
  cx_lock(&table.lock);
  v->executable = execution->executable = executable;
  v->state = status == NULL ? READY : FAILED;
  if (p->constant.state == FAILED && p->dynamic.state == FAILED) {
    execution->program = NULL;
    unlink_program(p);
  }
  cx_cond_broadcast(&table.changed);
  cx_unlock(&table.lock);
  return status;
}

calx_status *cx_lazy_program_get(cx_lazy_execution *execution,
                                 cx_lazy_choice choice)
{
  variant *v = NULL;
  cx_lock(&table.lock);
  calx_status *status = claim(execution, choice, &v);
  bool ready = status == NULL && v->state == READY;
  cx_unlock(&table.lock);
  if (status != NULL) return status;
  if (!ready) return make(execution, v);
  execution->executable = v->executable;
  cx_counter_add(&cached_compile, 1);
  return NULL;
}

cx_lazy_choice cx_lazy_program_wants(const cx_lazy_execution *execution)
{
  cx_lock(&table.lock);
  const cx_lazy_program *p = find(execution->run->order);
  cx_lazy_choice choice =
      p == NULL ? CX_LAZY_CHOICE_CONSTANT : wants(p, execution->promotable);
  cx_unlock(&table.lock);
  return choice;
}

bool cx_lazy_program_ran(cx_lazy_execution *execution, cx_lazy_choice choice)
{
  const cx_lazy_run *run = execution->run;
  cx_lock(&table.lock);
  cx_lazy_program *p = find(run->order);
  bool ran = p != NULL && p->slots[run->device->index].ran[choice];
  if (ran) {
    hold(execution, p);
    execution->executable =
        choose(p, execution->promotable, choice)->executable;
  }
  cx_unlock(&table.lock);
  return ran;
}

void cx_lazy_program_note_ran(cx_lazy_execution *execution,
                              cx_lazy_choice choice)
{
  cx_lock(&table.lock);
  execution->program->slots[execution->run->device->index].ran[choice] = true;
  cx_unlock(&table.lock);
}

// ---- arguments --------------------------------------------------------------

// All slots travel in one packed upload, only when one of them changed.
static calx_status *slot_buffer(const cx_lazy_execution *p,
                                cx_pjrt_buffer **out)
{
  cx_lazy_slot_cache *cache = &p->program->slots[p->run->device->index];
  size_t n = p->run->order->n_slots, bytes = n * sizeof *p->words;
  *out = cache->buffer;
  if (cache->buffer != NULL && memcmp(cache->words, p->words, bytes) == 0) {
    return NULL;
  }
  if (cache->words == NULL) cache->words = cx_alloc(bytes);
  if (cache->words == NULL) return cx_out_of_memory();
  cx_counter_add(&numbers_changed, 1);
  CALX_TRY(cx_lazy_upload_words(p->run->device, p->words, n, out));
  cx_pjrt_buffer_release(cache->buffer);
  cache->buffer = *out;
  memcpy(cache->words, p->words, bytes);
  return NULL;
}

calx_status *cx_lazy_program_args(cx_lazy_execution *p)
{
  const cx_graph_order *o = p->run->order;
  for (size_t i = 0; i < o->n_params; i++) {
    const cx_graph_node *node = o->params[i].node;
    p->args[i] = node->out[o->params[i].out].buffer;
    if ((cx_graph_node_flags(node) & CX_GRAPH_NODE_FAILED) != 0) {
      return cx_status_copy(node->error);
    }
  }
  return o->n_slots != 0 ? slot_buffer(p, &p->args[o->n_params]) : NULL;
}
