// lazy/sync/closure: the user's functions that run after a step, when its
// values are there: to print a loss without a read in the middle of the step.
//
// A device that has closures has a record here, found by the device. What was
// added waits in `added` until the next sync of the device's rank, which runs
// it or, asynchronous ones, moves it to `queue`. A thread of the record runs
// the queue; it leaves after a while without work and is started again by the
// next one.
//
// An asynchronous closure gets tensors of its own with the step's values, so
// that the rank may assign to its tensors meanwhile, and no later step is given
// their memory.
//
// Locks: `lock` guards the records and is never held while a closure runs. Only
// the device's rank adds to a record, syncs and ends it.
#include "lazy/sync/closure.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/thread.h"
#include "lazy/internal.h"

#define MOST_QUEUED 100
#define IDLE_MS 3000

typedef struct closure {
  struct closure *next;
  calx_closure_fn *fn;
  void *user;
  bool async;
  calx_site site;  // of the add
  size_t n;
  calx_tensor *tensors[];  // (n) retained
} closure;

typedef struct closure_list {
  closure *first, *last;
  size_t count;
} closure_list;

typedef struct closure_record {
  struct closure_record *next;
  calx_device *device;
  closure_list added, queue;
  calx_status *failed;  // of an asynchronous closure; nobody was told
  cx_thread thread;
  bool runs;    // the thread, until it has decided to leave
  bool ending;  // it leaves as soon as the queue is empty
  cx_cond changed;
} closure_record;

static cx_mutex lock = CX_MUTEX_INIT;
static closure_record *records;
static _Thread_local closure_record
    *working;  // whose thread the calling one is

// ---- lists ------------------------------------------------------------------

static void append(closure_list *list, closure *c)
{
  c->next = NULL;
  if (list->last != NULL) {
    list->last->next = c;
  } else {
    list->first = c;
  }
  list->last = c;
  list->count++;
}

static closure *pop(closure_list *list)
{
  closure *c = list->first;
  if (c == NULL) return NULL;
  list->first = c->next;
  if (list->first == NULL) list->last = NULL;
  list->count--;
  return c;
}

static void closure_free(closure *c)
{
  for (size_t i = 0; i < c->n; i++) calx_release(c->tensors[i]);
  cx_free(c);
}

static void drop_all(closure_list *list)
{
  for (closure *c; (c = pop(list)) != NULL;) closure_free(c);
}

// Under the lock.
static closure_record *find(const calx_device *device)
{
  closure_record *r = records;
  while (r != NULL && r->device != device) r = r->next;
  return r;
}

// Under the lock. Makes one where there is none; NULL: no memory.
static closure_record *find_or_make(calx_device *device)
{
  closure_record *r = find(device);
  if (r != NULL) return r;
  r = cx_calloc(1, sizeof *r);
  if (r == NULL) return NULL;
  cx_cond_init(&r->changed);
  r->device = device;
  r->next = records;
  records = r;
  return r;
}

// ---- running one ------------------------------------------------------------

// In a scope of its own; what it left there is its failure, too.
static calx_status *call(const closure *c)
{
  calx_scope *scope = calx_scope_begin();
  calx_status *status = c->fn(c->user, c->tensors, c->n);
  status = cx_status_first(status, calx_scope_end(scope));
  if (status == NULL) return NULL;
  return cx_annotate(status, "in the step closure that was added at %s:%d",
                     cx_site_file(&c->site), c->site.line);
}

// ---- the thread -------------------------------------------------------------

// Under the lock, which it gives up for the closure.
static void run_queued(closure_record *r)
{
  closure *c = pop(&r->queue);
  cx_cond_broadcast(&r->changed);
  cx_unlock(&lock);
  calx_status *status = call(c);
  closure_free(c);
  cx_lock(&lock);
  if (status == NULL) return;
  r->failed = status;
  closure_list rest = r->queue;
  r->queue = (closure_list){ 0 };
  cx_cond_broadcast(&r->changed);  // there is room, and none is wanted
  cx_unlock(&lock);
  drop_all(&rest);
  cx_lock(&lock);
}

static void work(void *user)
{
  closure_record *r = user;
  working = r;
  calx_device_set_current(r->device);
  cx_lock(&lock);
  bool idle = false;
  while (r->queue.first != NULL || !(r->ending || idle)) {
    if (r->queue.first != NULL) {
      run_queued(r);
    } else {
      idle = !cx_cond_wait_ms(&r->changed, &lock, IDLE_MS);
    }
  }
  r->runs = false;
  cx_cond_broadcast(&r->changed);
  cx_unlock(&lock);
  calx_status_free(cx_lazy_scope_end_thread());
}

// Under the lock.
static calx_status *start_thread(closure_record *r)
{
  if (r->runs) return NULL;
  // A program that returns from main() has its last lines printed.
  static bool ends_at_exit;
  if (!ends_at_exit) ends_at_exit = atexit(cx_lazy_closures_end) == 0;
  cx_thread_join(&r->thread);  // one that has left
  r->runs = true;
  calx_status *status = cx_thread_start(&r->thread, work, r);
  if (status != NULL) r->runs = false;
  return status;
}

// ---- after a sync -----------------------------------------------------------

// Gives the closure tensors of its own.
static calx_status *keep_values(closure *c)
{
  calx_scope *scope = calx_scope_begin();
  for (size_t i = 0; i < c->n; i++) {
    calx_tensor *t = c->tensors[i];
    if (calx_tensor_is_host(t)) continue;
    c->tensors[i] = calx_retain(cx_lazy_tensor_detached(t));
    calx_release(t);
  }
  return calx_scope_end(scope);
}

// Waits for room in the queue.
static calx_status *enqueue(calx_device *device, closure *c)
{
  calx_status *status = keep_values(c);
  cx_lock(&lock);
  closure_record *r = find_or_make(device);
  while (r != NULL && r->failed == NULL && r->queue.count >= MOST_QUEUED) {
    cx_cond_wait(&r->changed, &lock);
  }
  if (r == NULL && status == NULL) status = cx_out_of_memory();
  if (status == NULL) status = start_thread(r);
  bool wanted = status == NULL && r->failed == NULL;
  if (wanted) {
    append(&r->queue, c);
    cx_cond_broadcast(&r->changed);
  }
  cx_unlock(&lock);
  if (!wanted) closure_free(c);
  return status;
}

// Under the lock. r may be NULL.
static closure_list take_added(closure_record *r)
{
  closure_list added = { 0 };
  if (r == NULL) return added;
  added = r->added;
  r->added = (closure_list){ 0 };
  return added;
}

static closure_list take_added_of(const calx_device *device)
{
  cx_lock(&lock);
  closure_list added = take_added(find(device));
  cx_unlock(&lock);
  return added;
}

void cx_lazy_closures_drop(calx_device *device)
{
  closure_list added = take_added_of(device);
  drop_all(&added);
}

void cx_lazy_closures_run(calx_device *device)
{
  closure_list added = take_added_of(device);
  for (closure *c; !cx_lazy_scope_failed() && (c = pop(&added)) != NULL;) {
    if (c->async) {
      cx_lazy_scope_pin(enqueue(device, c));
    } else {
      cx_lazy_scope_pin(call(c));
      closure_free(c);
    }
  }
  drop_all(&added);
}

// ---- adding one -------------------------------------------------------------

static calx_status *check_add(calx_closure_fn *fn, calx_tensor *const *tensors,
                              size_t n, const calx_step_closure_options *given,
                              calx_step_closure_options *out)
{
  CALX_TRY(cx_options_take("step closure", given, out, sizeof *out));
  if (fn == NULL) {
    return cx_invalid("step closure: the function is NULL");
  }
  if (tensors == NULL && n != 0) {
    return cx_invalid("step closure: %zu tensors at NULL", n);
  }
  for (size_t i = 0; i < n; i++) {
    if (tensors[i] == NULL) {
      return cx_invalid("step closure: tensor %zu is NULL", i);
    }
    const calx_status *error = calx_tensor_error(tensors[i]);
    if (error != NULL) return cx_status_copy(error);
  }
  return NULL;
}

static closure *make(calx_closure_fn *fn, void *user,
                     calx_tensor *const *tensors, size_t n)
{
  size_t bytes;
  if (!cx_mul_size(n, sizeof *tensors, &bytes) ||
      !cx_add_size(bytes, sizeof(closure), &bytes)) {
    return NULL;
  }
  closure *c = cx_alloc(bytes);
  if (c == NULL) return NULL;
  *c = (closure){ .fn = fn, .user = user, .site = *cx_site(), .n = n };
  for (size_t i = 0; i < n; i++) c->tensors[i] = calx_retain(tensors[i]);
  return c;
}

static calx_status *add(calx_device *device, closure *c)
{
  cx_lock(&lock);
  closure_record *r = find_or_make(device);
  calx_status *failed = NULL;
  if (r != NULL && c->async) {
    failed = r->failed;
    r->failed = NULL;
  }
  if (r != NULL && failed == NULL) append(&r->added, c);
  cx_unlock(&lock);
  if (r == NULL) return cx_out_of_memory();
  if (failed == NULL) return NULL;
  return cx_annotate(failed,
                     "in an earlier asynchronous step closure, so this "
                     "one is not run");
}

void calx_add_step_closure_with(calx_closure_fn *fn, void *user,
                                calx_tensor *const *tensors, size_t n,
                                const calx_step_closure_options *options)
{
  if (cx_lazy_scope_failed()) return;
  calx_step_closure_options o;
  calx_status *status = check_add(fn, tensors, n, options, &o);
  calx_device *device = status == NULL ? cx_lazy_device_or_current(NULL) : NULL;
  if (device != NULL) {
    closure *c = make(fn, user, tensors, n);
    if (c == NULL) {
      status = cx_out_of_memory();
    } else {
      c->async = o.run_async;
      status = add(device, c);
      if (status != NULL) closure_free(c);
    }
  }
  cx_lazy_scope_pin(status);
}

// ---- the end ----------------------------------------------------------------

// Waits until the queue has run, and forgets the record where nothing waits for
// a sync. Returns what failed.
static calx_status *settle(closure_record *r)
{
  cx_lock(&lock);
  r->ending = true;
  cx_cond_broadcast(&r->changed);
  while (r->runs) cx_cond_wait(&r->changed, &lock);
  cx_thread_join(&r->thread);
  r->ending = false;
  calx_status *failed = r->failed;
  r->failed = NULL;
  bool empty = r->added.first == NULL;
  closure_record **at = &records;
  while (*at != r) at = &(*at)->next;
  if (empty) *at = r->next;
  cx_unlock(&lock);
  if (empty) {
    cx_cond_free(&r->changed);
    cx_free(r);
  }
  return failed;
}

bool cx_lazy_closures_is_worker(void)
{
  return working != NULL;
}

calx_status *calx_wait_step_closures(void)
{
  if (cx_lazy_closures_is_worker()) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "calx_wait_step_closures: called in an asynchronous step "
                    "closure, which it would wait for");
  }
  calx_device *device = cx_lazy_device_or_current(NULL);
  cx_lock(&lock);
  closure_record *r = find(device);
  cx_unlock(&lock);
  return r != NULL ? settle(r) : NULL;
}

void cx_lazy_closures_end(void)
{
  for (;;) {
    cx_lock(&lock);
    closure_record *r = records;
    if (r != NULL && r == working) r = r->next;  // this thread: it cannot end
    closure_list added = take_added(r);
    cx_unlock(&lock);
    drop_all(&added);
    if (r == NULL) return;
    calx_status_free(settle(r));
  }
}
