// lazy/sync/scope_end: the end of a scope, and what becomes of its step.
#include "calx/scope.h"
#include "lazy/internal.h"

// A step that failed before its sync changes nothing.
static void drop_failed_step(void)
{
  bool outermost = cx_lazy_self.top == NULL || cx_lazy_self.top->is_root;
  if (outermost && cx_lazy_device_is_open(cx_lazy_self.steps)) {
    cx_lazy_drop_step(cx_lazy_self.steps);
  }
}

static calx_status *end_no_scope(void)
{
  drop_failed_step();
  if (calx_scope_error() == cx_out_of_memory()) {
    calx_status_free(calx_scope_take_error());
  }
  return cx_out_of_memory();
}

static bool is_open(const calx_scope *scope)
{
  const calx_scope *s = cx_lazy_self.top;
  while (s != NULL && s != scope) s = s->parent;
  return s != NULL;
}

calx_status *calx_scope_end(calx_scope *scope)
{
  if (scope == &cx_lazy_no_scope) return end_no_scope();
  if (!is_open(scope)) {
    return cx_invalid(
        "calx_scope_end: this scope is not open on this thread (ended twice, "
        "or by an outer one)");
  }
  if (scope->is_root) {
    return cx_invalid("calx_scope_end: the root scope ends with its thread");
  }
  // Late failures of a device are reported to threads that take steps on it.
  calx_device *device =
      cx_lazy_device_is_open(cx_lazy_self.steps) ? cx_lazy_self.steps : NULL;
  if (device != NULL) cx_lazy_scope_pin(cx_lazy_flight_poll(device, false));
  calx_status *first = NULL;
  for (bool last = false; !last;) {
    last = cx_lazy_self.top == scope;
    // An outer scope failed before an inner one that was left open began.
    first = cx_status_first(cx_lazy_scope_pop(), first);
  }
  if (first != NULL) drop_failed_step();
  return first;
}

calx_status *cx_lazy_scope_end_thread(void)
{
  calx_status *first = NULL;
  for (calx_scope *s = cx_lazy_self.top; s != NULL; s = s->parent) {
    if (s->error == NULL) continue;
    calx_status_free(first);
    first = s->is_root ? cx_lazy_root_take(s) : s->error;
    s->error = NULL;
  }
  if (first == NULL && cx_lazy_self.lost) first = cx_out_of_memory();
  cx_lazy_self.lost = false;
  cx_lazy_scope_end_root();
  if (first != NULL) drop_failed_step();
  return first;
}
