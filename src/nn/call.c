// nn/call: calling a module.
#include "lazy/lazy.h"
#include "nn/module.h"

typedef struct watch {
  cx_nn_watch_fn *fn;
  void *user;
} watch;

static _Thread_local watch watched;

void cx_nn_module_watch(cx_nn_watch_fn *fn, void *user)
{
  watched = (watch){ fn, user };
}

bool cx_nn_module_watched(void)
{
  return watched.fn != NULL;
}

// A poison, or NULL where the module can be called with so many tensors.
static calx_tensor *check_call(calx_module *m, bool has_function)
{
  calx_status *status = calx_module_error(m);
  if (status != NULL) {
    return cx_lazy_tensor_poison(cx_annotate(
        status, "so there is no forward of '%s' (%s)",
        m != NULL ? cx_nn_module_path(m) : "NULL", calx_module_kind(m)));
  }
  if (has_function) return NULL;
  return cx_lazy_tensor_poison(cx_error(CALX_FAILED_PRECONDITION,
                                        "forward: module '%s' (%s) was made "
                                        "without a function",
                                        cx_nn_module_path(m), m->kind));
}

static calx_tensor *call(calx_module *m, calx_tensor *x, calx_tensor *second)
{
  const char *before =
      cx_lazy_module_path_set(m->path[0] != '\0' ? m->path : NULL);
  watch w = watched;
  calx_tensor *y = cx_nn_module_call(m, x, second);
  if (w.fn != NULL && y != NULL) w.fn(w.user, m, y);
  cx_lazy_module_path_set(before);
  if (y != NULL) return y;
  return cx_lazy_tensor_poison(cx_error(
      CALX_INVALID_ARGUMENT, "forward: the function of '%s' (%s) gave NULL",
      cx_nn_module_path(m), m->kind));
}

calx_tensor *calx_forward(calx_module *m, calx_tensor *x)
{
  calx_tensor *bad = check_call(m, m != NULL && m->forward != NULL);
  return bad != NULL ? bad : call(m, x, NULL);
}

calx_tensor *calx_forward2(calx_module *m, calx_tensor *x, calx_tensor *y)
{
  bool has = m != NULL && m->layer != NULL && m->layer->forward2 != NULL &&
             m->self == m->state;
  calx_tensor *bad = check_call(m, has || (m != NULL && m->forward != NULL));
  if (bad != NULL) return bad;
  if (!has) {
    return cx_lazy_tensor_poison(
        cx_invalid("forward2: module '%s' (%s) takes one tensor: call "
                   "calx_forward",
                   cx_nn_module_path(m), m->kind));
  }
  if (y == NULL) {
    return cx_lazy_tensor_poison(
        cx_invalid("forward2: the second tensor of '%s' (%s) is NULL",
                   cx_nn_module_path(m), m->kind));
  }
  return call(m, x, y);
}
