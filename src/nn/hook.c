// nn/hook: functions that are called around a module's forward and in its
// backward.
//
// For the backward, input and output pass through nodes of their own. The
// output's hook keeps its gradient until the input's one has been reached.
#include "base/alloc.h"
#include "graph/extra.h"
#include "lazy/lazy.h"
#include "nn/module.h"
#include "ops/ops.h"

enum { FORWARD_PRE = 1, FORWARD, FULL_BACKWARD };

static calx_hook add(calx_module *m, const char *kind, const cx_hook *hook)
{
  calx_hook h = { 0 };
  calx_status *status = NULL;
  if (m == NULL || hook->fn == NULL) {
    status = cx_invalid(
        "module_register_%s_hook: the module or the function "
        "is NULL",
        kind);
  } else if (cx_nn_module_is_nil(m)) {
    status = cx_out_of_memory();
  } else {
    h.id = cx_hook_add(&m->hooks, hook);
    if (h.id == 0) status = cx_out_of_memory();
  }
  if (h.id == 0 && hook->drop != NULL) hook->drop(hook->user);
  cx_lazy_scope_pin(status);
  return h;
}

calx_hook calx_module_register_forward_pre_hook(calx_module *m,
                                                calx_forward_pre_hook_fn *fn,
                                                void *user,
                                                calx_hook_free_fn *free_user)
{
  return add(m, "forward_pre",
             &(cx_hook){ .kind = FORWARD_PRE,
                         .fn = (cx_hook_fn *)fn,
                         .user = user,
                         .drop = free_user });
}

calx_hook calx_module_register_forward_hook(calx_module *m,
                                            calx_forward_hook_fn *fn,
                                            void *user,
                                            calx_hook_free_fn *free_user)
{
  return add(m, "forward",
             &(cx_hook){ .kind = FORWARD,
                         .fn = (cx_hook_fn *)fn,
                         .user = user,
                         .drop = free_user });
}

calx_hook calx_module_register_full_backward_hook(
    calx_module *m, calx_full_backward_hook_fn *fn, void *user,
    calx_hook_free_fn *free_user)
{
  return add(m, "full_backward",
             &(cx_hook){ .kind = FULL_BACKWARD,
                         .fn = (cx_hook_fn *)fn,
                         .user = user,
                         .drop = free_user });
}

// ---- the backward -----------------------------------------------------------

typedef struct backward_call {
  int refs;  // the hooks on the input and on the output
  calx_module *module;
  bool has_input;
  calx_tensor *grad_output;  // of the pass under way; owned
} backward_call;

static void drop_backward_call(void *user)
{
  backward_call *p = user;
  if (--p->refs != 0) return;
  calx_release(p->grad_output);
  cx_free(p);
}

static calx_tensor *call_backward(backward_call *p, calx_tensor *grad_input)
{
  calx_tensor *now = grad_input;
  cx_hook *h = NULL;
  while ((h = cx_hook_next(&p->module->hooks, h, FULL_BACKWARD, 0)) != NULL) {
    calx_full_backward_hook_fn *fn = (calx_full_backward_hook_fn *)h->fn;
    calx_tensor *other = fn(h->user, p->module, now, p->grad_output);
    if (other != NULL && now != NULL) now = other;
  }
  calx_release(p->grad_output);
  p->grad_output = NULL;
  return now != grad_input ? now : NULL;
}

static calx_tensor *see_output(void *user, calx_tensor *grad)
{
  backward_call *p = user;
  calx_release(p->grad_output);
  p->grad_output = calx_retain(grad);
  if (!p->has_input) call_backward(p, NULL);
  return NULL;
}

static calx_tensor *see_input(void *user, calx_tensor *grad)
{
  return call_backward(user, grad);
}

static calx_tensor *watch(calx_tensor *t, backward_call *p,
                          calx_gradient_hook_fn *fn)
{
  t = cx_ops_identity(t);
  if (cx_lazy_tensor_poisoned(t)) return t;
  p->refs++;
  cx_ops_hook(t, (cx_hook){ .kind = CX_GRAPH_HOOK_GRAD,
                            .fn = (cx_hook_fn *)fn,
                            .user = p,
                            .drop = drop_backward_call });
  return t;
}

// ---- the forward ------------------------------------------------------------

// The innermost call of a module with hooks that is under way on this thread.
typedef struct module_call {
  const calx_module *m;
  calx_tensor **in;
  size_t n;
  const struct module_call *outer;
} module_call;

static _Thread_local const module_call *innermost;

calx_tensor **calx_module_hook_inputs(const calx_module *m, size_t *out_count)
{
  const module_call *c = innermost;
  while (c != NULL && c->m != m) c = c->outer;
  if (out_count != NULL) *out_count = c != NULL ? c->n : 0;
  return c != NULL ? c->in : NULL;
}

static void call_pre(calx_module *m, calx_tensor **in)
{
  cx_hook *h = NULL;
  while ((h = cx_hook_next(&m->hooks, h, FORWARD_PRE, 0)) != NULL) {
    calx_tensor *y = ((calx_forward_pre_hook_fn *)h->fn)(h->user, m, in[0]);
    if (y != NULL) in[0] = y;
  }
}

static calx_tensor *call_post(calx_module *m, calx_tensor *x, calx_tensor *y)
{
  cx_hook *h = NULL;
  while (y != NULL && (h = cx_hook_next(&m->hooks, h, FORWARD, 0)) != NULL) {
    calx_tensor *z = ((calx_forward_hook_fn *)h->fn)(h->user, m, x, y);
    if (z != NULL) y = z;
  }
  return y;
}

static bool flows(const calx_tensor *t)
{
  return t != NULL && !cx_lazy_tensor_poisoned(t) && cx_lazy_grad_mode() &&
         cx_lazy_tensor_requires_grad(t);
}

static calx_tensor *run(calx_module *m, calx_tensor **in, size_t n)
{
  if (n == 1) return m->forward(m->self, in[0]);
  if (m->forward_n != NULL) return m->forward_n(m->self, in);
  return m->layer->forward2(m->state, in[0], in[1]);
}

static calx_tensor *call_with_hooks(calx_module *m, calx_tensor **in, size_t n)
{
  call_pre(m, in);
  calx_tensor *x = in[0];
  backward_call *p = NULL;
  if (cx_hook_list_has(&m->hooks, FULL_BACKWARD)) {
    p = cx_calloc(1, sizeof *p);
    if (p == NULL) return cx_lazy_tensor_poison(cx_out_of_memory());
    *p = (backward_call){ .refs = 1, .module = m, .has_input = flows(x) };
    if (p->has_input) in[0] = x = watch(x, p, see_input);
  }
  calx_tensor *y = call_post(m, x, run(m, in, n));
  if (p != NULL) {
    if (flows(y)) y = watch(y, p, see_output);
    drop_backward_call(p);
  }
  return y;
}

calx_tensor *cx_nn_module_call(calx_module *m, calx_tensor **in, size_t n)
{
  if (m->hooks.first == NULL) return run(m, in, n);
  const module_call c = { m, in, n, innermost };
  innermost = &c;
  calx_tensor *y = call_with_hooks(m, in, n);
  innermost = c.outer;
  return y;
}
