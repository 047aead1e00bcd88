// train/hooks: calls hooks, callbacks' before the module's, and callbacks of
// the program's own.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "train/internal.h"

static void call(calx_trainer *t, const cx_train_hook *hook,
                 const calx_trainer_hooks *hooks, void *self,
                 const calx_batch *batch, int64_t batch_idx)
{
  const char *field = (const char *)hooks + hook->offset;
  if (batch == NULL) {
    calx_trainer_hook_fn *fn;
    memcpy(&fn, field, sizeof fn);
    if (fn != NULL) fn(t, self);
  } else {
    calx_trainer_batch_hook_fn *fn;
    memcpy(&fn, field, sizeof fn);
    if (fn != NULL) fn(t, self, batch, batch_idx);
  }
}

// Early stopping and checkpoints see what the module logs at an epoch's end.
static bool runs_late(const calx_callback *callback, const cx_train_hook *hook)
{
  return callback->monitors &&
         hook->offset == offsetof(calx_trainer_hooks, on_train_epoch_end);
}

static void call_callbacks(calx_trainer *t, const cx_train_hook *hook,
                           bool late, const calx_batch *batch,
                           int64_t batch_idx)
{
  for (size_t i = 0; i < t->n_callbacks; i++) {
    const calx_callback *c = t->callbacks[i];
    if (runs_late(c, hook) != late) continue;
    call(t, hook, &c->options.hooks, t->callback_selves[i], batch, batch_idx);
  }
}

void cx_train_call_batch(calx_trainer *t, const cx_train_hook *hook,
                         const calx_batch *batch, int64_t batch_idx)
{
  const cx_train_hook *outer = t->hook;
  t->hook = hook;
  call_callbacks(t, hook, false, batch, batch_idx);
  call(t, hook, &t->module->hooks, t->self, batch, batch_idx);
  call_callbacks(t, hook, true, batch, batch_idx);
  t->hook = outer;
}

void cx_train_call(calx_trainer *t, const cx_train_hook *hook)
{
  cx_train_call_batch(t, hook, NULL, 0);
}

// ---- callbacks --------------------------------------------------------------

static calx_callback nil;  // without memory

calx_callback *calx_callback_new_with(const calx_callback_functions *options)
{
  calx_callback *c = cx_calloc(1, sizeof *c);
  if (c == NULL) return &nil;
  c->error =
      cx_options_take("callback", options, &c->options, sizeof c->options);
  return c;
}

calx_callback *cx_train_callback_finish(calx_callback *c, calx_status *status,
                                        void *own)
{
  if (c == &nil) {
    calx_status_free(status);
    cx_free(own);
    return c;
  }
  c->monitors = true;
  c->own = own;
  c->error = cx_status_first(c->error, status);
  return c;
}

void calx_callback_free(calx_callback *c)
{
  if (c == NULL || c == &nil) return;
  for (int i = 0; i < c->n_selves; i++) {
    if (c->selves[i] == NULL) continue;
    if (c->options.end != NULL) c->options.end(c->selves[i]);
    cx_free(c->selves[i]);
  }
  cx_free(c->selves);
  cx_free(c->own);
  calx_status_free(c->error);
  cx_free(c);
}

void *calx_callback_self(const calx_callback *c)
{
  return c != NULL && c->n_selves > 0 ? c->selves[0] : NULL;
}

calx_status *cx_train_callback_self(calx_callback *c, int rank, void **out)
{
  *out = c->selves[rank];
  if (*out != NULL) return NULL;
  void *self = cx_calloc(1, c->options.self_size + 1);
  if (self == NULL) return cx_out_of_memory();
  if (c->options.begin != NULL) c->options.begin(self, c->options.user);
  *out = c->selves[rank] = self;
  return NULL;
}
