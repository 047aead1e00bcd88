// lazy/tensor/untaken: errors that nobody took are logged: when a read in a
// root scope fails, when a thread ends, at calx_shutdown() and when the process
// exits.
//
// Only a root scope keeps an error for longer than a step. The list of root
// scopes is for the exit, when other threads' may still be there: their errors
// are written and read under the list's lock.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "lazy/internal.h"

static struct {
  cx_mutex lock;
  calx_scope *first;
} roots = { .lock = CX_MUTEX_INIT };

enum { KNOWN = 16 };

// What this thread's lines have reported, so that consequences of one error,
// which come again and again in a loop, are reported once.
static _Thread_local struct {
  cx_hash hashes[KNOWN];
  int n;
} reported;

static cx_hash hash_of(const calx_status *status)
{
  const char *message = calx_status_message(status);
  return cx_hash_bytes(message, strlen(message), 0);
}

static bool was_reported(const calx_status *status)
{
  cx_hash hash = hash_of(status);
  bool found = reported.n == KNOWN;
  for (int i = 0; i < reported.n && !found; i++) {
    found = cx_hash_equal(reported.hashes[i], hash);
  }
  return found;
}

void cx_lazy_log_untaken(calx_status *status)
{
  if (status == NULL) return;
  cx_log(
      "error that nobody took: %s (%s); calx_scope_end() and "
      "calx_scope_take_error() give it to the program",
      calx_status_message(status), calx_code_name(calx_status_code(status)));
  calx_status_free(status);
}

void cx_lazy_root_add(calx_scope *root)
{
  root->process = getpid();
  cx_lock(&roots.lock);
  root->next_root = roots.first;
  if (root->next_root != NULL) root->next_root->root_link = &root->next_root;
  root->root_link = &roots.first;
  roots.first = root;
  cx_unlock(&roots.lock);
}

void cx_lazy_root_remove(calx_scope *root)
{
  cx_lock(&roots.lock);
  *root->root_link = root->next_root;
  if (root->next_root != NULL) root->next_root->root_link = root->root_link;
  cx_unlock(&roots.lock);
}

void cx_lazy_root_pin(calx_scope *root, calx_status *status)
{
  calx_status *rest = status;
  cx_lock(&roots.lock);
  if (root->error == NULL) {
    root->error = status;
    root->reported = false;
    rest = NULL;
  } else if (root->reported && !was_reported(status)) {
    // Of those after the one that a read reported, the first is kept to be
    // reported.
    rest = root->later;
    root->later = status;
    root->reported = false;
  }
  cx_unlock(&roots.lock);
  calx_status_free(rest);
}

calx_status *cx_lazy_root_take(calx_scope *root)
{
  cx_lock(&roots.lock);
  calx_status *status = root->error, *later = root->later;
  root->error = root->later = NULL;
  root->reported = false;
  cx_unlock(&roots.lock);
  calx_status_free(later);
  return status;
}

// The root's error that was not reported yet, as a copy. Under the list's lock.
static calx_status *unreported(calx_scope *root)
{
  if (root->reported) return NULL;
  root->reported = true;
  const calx_status *status = root->later != NULL ? root->later : root->error;
  if (status != NULL && reported.n < KNOWN) {
    reported.hashes[reported.n++] = hash_of(status);
  }
  return cx_status_copy(status);
}

void cx_lazy_root_report(calx_scope *root)
{
  cx_lock(&roots.lock);
  calx_status *status = unreported(root);
  cx_unlock(&roots.lock);
  cx_lazy_log_untaken(status);
}

void cx_lazy_report_failed_read(void)
{
  if (cx_lazy_self.top != NULL && cx_lazy_self.top->is_root)
    cx_lazy_root_report(cx_lazy_self.top);
}

// ---- at exit ----------------------------------------------------------------

static void report_roots(void)
{
  pid_t process = getpid();
  for (calx_status *status = cx_out_of_memory(); status != NULL;) {
    status = NULL;
    cx_lock(&roots.lock);
    for (calx_scope *s = roots.first; s != NULL && status == NULL;
         s = s->next_root) {
      if (s->process == process) status = unreported(s);
    }
    cx_unlock(&roots.lock);
    cx_lazy_log_untaken(status);
  }
}

// What the program's callback logs to may be gone by now: standard error is
// not.
static void at_exit(void)
{
  calx_log_set(NULL, NULL);
  const calx_scope *root = cx_lazy_self.top;
  while (root != NULL && root->parent != NULL) root = root->parent;
  bool own = root != NULL && root->process == getpid();
  for (const calx_scope *s = cx_lazy_self.top; own && s != root;
       s = s->parent) {
    cx_lazy_log_untaken(cx_status_copy(s->error));
  }
  report_roots();
  if (cx_lazy_self.lost) cx_lazy_log_untaken(cx_out_of_memory());
}

void cx_lazy_report_at_exit(void)
{
  static atomic_flag registered = ATOMIC_FLAG_INIT;
  if (!atomic_flag_test_and_set(&registered)) atexit(at_exit);
}
