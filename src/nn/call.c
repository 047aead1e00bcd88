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

static calx_tensor *call(calx_module *m, calx_tensor **in, size_t n)
{
  const char *before =
      cx_lazy_module_path_set(m->path[0] != '\0' ? m->path : NULL);
  watch w = watched;
  calx_tensor *y = cx_nn_module_call(m, in, n);
  if (w.fn != NULL && y != NULL) w.fn(w.user, m, in, n, y);
  cx_lazy_module_path_set(before);
  if (y != NULL) return y;
  return cx_lazy_tensor_poison(cx_error(
      CALX_INVALID_ARGUMENT, "forward: the function of '%s' (%s) gave NULL",
      cx_nn_module_path(m), m->kind));
}

calx_tensor *calx_forward(calx_module *m, calx_tensor *x)
{
  calx_tensor *bad = check_call(m, m != NULL && m->forward != NULL);
  return bad != NULL ? bad : call(m, &x, 1);
}

// ---- of several tensors -----------------------------------------------------

static bool takes(const calx_module *m, size_t n)
{
  if (m == NULL) return false;
  if (m->forward_n != NULL) return m->n_in == n;
  return n == 2 && m->layer != NULL && m->layer->forward2 != NULL &&
         m->self == m->state;
}

static calx_tensor *call_n(const char *name, calx_module *m,
                           calx_tensor *const *inputs, size_t n)
{
  bool has = takes(m, n);
  calx_tensor *bad = check_call(m, has || (m != NULL && m->forward != NULL) ||
                                       (m != NULL && m->forward_n != NULL));
  if (bad != NULL) return bad;
  if (!has && m->forward_n != NULL) {
    return cx_lazy_tensor_poison(
        cx_invalid("%s: module '%s' (%s) takes %zu tensors, got %zu", name,
                   cx_nn_module_path(m), m->kind, m->n_in, n));
  }
  if (!has) {
    return cx_lazy_tensor_poison(
        cx_invalid("%s: module '%s' (%s) takes one tensor: call calx_forward",
                   name, cx_nn_module_path(m), m->kind));
  }
  static const char *const ordinal[CX_NN_INPUTS] = {
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"
  };
  calx_tensor *in[CX_NN_INPUTS];
  for (size_t i = 0; i < n; i++) {
    in[i] = inputs[i];
    // An op says what is wrong with the first.
    if (i == 0 || in[i] != NULL) continue;
    return cx_lazy_tensor_poison(
        cx_invalid("%s: the %s tensor of '%s' (%s) is NULL", name, ordinal[i],
                   cx_nn_module_path(m), m->kind));
  }
  return call(m, in, n);
}

calx_tensor *calx_forward2(calx_module *m, calx_tensor *x, calx_tensor *y)
{
  calx_tensor *in[2] = { x, y };
  return call_n("forward2", m, in, 2);
}

calx_tensor *calx_forward3(calx_module *m, calx_tensor *x, calx_tensor *y,
                           calx_tensor *z)
{
  calx_tensor *in[3] = { x, y, z };
  return call_n("forward3", m, in, 3);
}

calx_tensor *calx_forward_n(calx_module *m, calx_tensor *const *inputs,
                            size_t count)
{
  if (inputs == NULL || count == 0 || count > CX_NN_INPUTS) {
    return cx_lazy_tensor_poison(
        cx_invalid("forward_n: %zu tensors%s, 1 to %d are possible", count,
                   inputs == NULL ? " and no list" : "", CX_NN_INPUTS));
  }
  return count == 1 ? calx_forward(m, inputs[0])
                    : call_n("forward_n", m, inputs, count);
}

void calx_module_set_forward_n(calx_module *m, size_t count,
                               calx_forward_n_fn *fn)
{
  if (m == NULL || cx_nn_module_is_nil(m)) return;
  if (fn == NULL || count < 2 || count > CX_NN_INPUTS) {
    cx_nn_module_fail(m, cx_invalid("module_set_forward_n: a function of 2 to "
                                    "%d tensors is wanted, '%s' (%s) got %s%zu",
                                    CX_NN_INPUTS, cx_nn_module_path(m), m->kind,
                                    fn == NULL ? "NULL of " : "", count));
    return;
  }
  m->forward_n = fn;
  m->n_in = count;
}
