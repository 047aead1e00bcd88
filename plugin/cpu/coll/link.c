// coll/link: see link.h. One thread at a time makes progress: it starts what
// was posted, tests active transfers, and forwards received messages.
#include "coll/link.h"

#include <string.h>

#include "base/alloc.h"
#include "base/futex.h"
#include "coll/link_state.h"

enum { MESSAGE_TAG = 1, SLEEP_MS = 20 };

cpu_coll_mpi_state cpu_coll_mpi;

// ---- failures ---------------------------------------------------------------

// Takes the status; the first one stays.
static void set_failed(cpu_coll_link *l, calx_status *why)
{
  cx_lock(&l->lock);
  if (l->failed == NULL) {
    l->failed = why;
    why = NULL;
  }
  cx_unlock(&l->lock);
  calx_status_free(why);
}

static void wake_sleepers(cpu_coll_link *l)
{
  atomic_fetch_add(&l->wake_word, 1);
  if (atomic_load(&l->sleepers) != 0) {
    cx_futex_wake(&l->wake_word, CX_FUTEX_PRIVATE);
  }
}

bool cpu_coll_link_check(cpu_coll_link *l, const char *wrong)
{
  if (wrong == NULL) return true;
  set_failed(l, cx_error(CALX_UNAVAILABLE, "%s, between hosts: %s",
                         cpu_coll_mpi.api->flavour, wrong));
  atomic_store(&l->broken, true);
  wake_sleepers(l);
  return false;
}

void cpu_coll_link_abandon(cpu_coll_link *l, const char *operation,
                           uint32_t index)
{
  set_failed(l, cx_error(CALX_FAILED_PRECONDITION,
                         "the connection between hosts was given up in the "
                         "middle of %s (collective %u of its program), which "
                         "failed",
                         operation, (unsigned)index));
}

calx_status *cpu_coll_link_error(cpu_coll_link *l)
{
  cx_lock(&l->lock);
  calx_status *status = cx_status_copy(l->failed);
  cx_unlock(&l->lock);
  return status;
}

// ---- sleeping ---------------------------------------------------------------

uint32_t cpu_coll_link_wake_word(cpu_coll_link *l)
{
  return atomic_load(&l->wake_word);
}

void cpu_coll_link_sleep(cpu_coll_link *l, uint32_t wake_word)
{
  atomic_fetch_add(&l->sleepers, 1);
  if (atomic_load(&l->wake_word) == wake_word)
    cx_futex_wait(&l->wake_word, wake_word, SLEEP_MS, CX_FUTEX_PRIVATE);
  atomic_fetch_sub(&l->sleepers, 1);
}

// ---- posting ----------------------------------------------------------------

void cpu_coll_link_post(cpu_coll_link *l, cpu_coll_transfer *t)
{
  t->next = NULL;
  atomic_store(&t->done, false);
  cx_lock(&l->lock);
  *l->last_posted = t;
  l->last_posted = &t->next;
  atomic_store(&l->has_posts, true);
  cx_unlock(&l->lock);
}

void cpu_coll_link_send(cpu_coll_link *l, uint32_t process, const void *message,
                        size_t bytes)
{
  cpu_coll_transfer *t = cx_alloc(sizeof *t + bytes);
  if (t == NULL) {
    set_failed(l, cx_out_of_memory());
    return;
  }
  *t = (cpu_coll_transfer){ .data = memcpy(t + 1, message, bytes),
                            .bytes = bytes,
                            .process = process,
                            .tag = MESSAGE_TAG,
                            .sends = true,
                            .is_message = true };
  cpu_coll_link_post(l, t);
}

void cpu_coll_link_keep_polling(cpu_coll_link *l)
{
  if (atomic_fetch_add(&l->pollers, 1) != 0) return;
  cx_lock(&l->lock);
  cx_cond_signal(&l->changed);
  cx_unlock(&l->lock);
}

void cpu_coll_link_stop_polling(cpu_coll_link *l)
{
  atomic_fetch_sub(&l->pollers, 1);
}

// ---- progress ---------------------------------------------------------------

// Starts what was posted, in its order.
static void start_posted(cpu_coll_link *l)
{
  if (!atomic_load(&l->has_posts)) return;
  cx_lock(&l->lock);
  cpu_coll_transfer *t = l->posted;
  l->posted = NULL;
  l->last_posted = &l->posted;
  atomic_store(&l->has_posts, false);
  cx_unlock(&l->lock);
  *cpu_coll_link_end_of(&l->active) = t;
  for (; t != NULL && !atomic_load(&l->broken); t = t->next) {
    const int n = (int)t->bytes, process = (int)t->process;
    (void)cpu_coll_link_check(
        l, t->sends ? cpu_coll_mpi.api->send(t->data, n, process, t->tag,
                                             &t->request)
                    : cpu_coll_mpi.api->receive(t->data, n, process, t->tag,
                                                &t->request));
  }
}

// Whether anything was done.
static bool test_transfers(cpu_coll_link *l)
{
  bool any = false;
  for (cpu_coll_transfer **at = &l->active; *at != NULL;) {
    cpu_coll_transfer *t = *at;
    bool done = false;
    if (!cpu_coll_link_check(l,
                             cpu_coll_mpi.api->test(&t->request, &done, NULL)))
      return true;
    if (!done) {
      at = &t->next;
      continue;
    }
    *at = t->next;
    any = true;
    if (t->is_message) {
      cx_free(t);
    } else {
      atomic_store(&t->done, true);  // from here on its owner may free it
    }
  }
  if (any) wake_sleepers(l);
  return any;
}

static bool receive_messages(cpu_coll_link *l)
{
  bool done = false;
  int bytes = 0;
  if (!cpu_coll_mpi.receiving) {
    cpu_coll_mpi.receiving = cpu_coll_link_check(
        l, cpu_coll_mpi.api->receive(cpu_coll_mpi.message,
                                     sizeof cpu_coll_mpi.message, -1,
                                     MESSAGE_TAG, &cpu_coll_mpi.request));
    if (!cpu_coll_mpi.receiving) return false;
  }
  if (!cpu_coll_link_check(
          l, cpu_coll_mpi.api->test(&cpu_coll_mpi.request, &done, &bytes)) ||
      !done) {
    return false;
  }
  cpu_coll_mpi.receiving = false;
  l->options.on_message(l->options.user, cpu_coll_mpi.message, (size_t)bytes);
  return true;
}

// Whether anything was done.
bool cpu_coll_link_progress(cpu_coll_link *l)
{
  start_posted(l);
  if (atomic_load(&l->broken)) return false;
  bool any = test_transfers(l);
  while (!atomic_load(&l->broken) && receive_messages(l)) any = true;
  return any;
}

bool cpu_coll_link_try_progress(cpu_coll_link *l)
{
  if (atomic_flag_test_and_set(&l->inside)) return false;
  const bool any = cpu_coll_link_progress(l);
  atomic_flag_clear(&l->inside);
  return any;
}

void cpu_coll_link_poll(cpu_coll_link *l)
{
  (void)cpu_coll_link_try_progress(l);
  atomic_fetch_add_explicit(&l->polls, 1, memory_order_relaxed);
}
