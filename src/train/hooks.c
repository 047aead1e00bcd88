// train/hooks: calls hooks, callbacks' before the module's, and callbacks of
// the program's own.
#include <string.h>

#include "base/alloc.h"
#include "base/metrics.h"
#include "base/options.h"
#include "lazy/lazy.h"
#include "train/internal.h"

// What a hook gets beside the trainer and its self; of each call one is set, or
// none.
typedef struct hook_call {
  const cx_train_hook *hook;
  const calx_batch *batch;
  int64_t batch_idx;
  calx_batch *received;
  calx_value *checkpoint;
} hook_call;

CX_COUNTER(splits, "TrainerStepSplits");

// Between the forward pass and the update, where a step is one program.
static bool is_in_step(const cx_train_hook *hook)
{
  return hook->offset >= offsetof(calx_trainer_hooks, on_before_zero_grad) &&
         hook->offset <= offsetof(calx_trainer_hooks, on_before_optimizer_step);
}

static void report_split(const cx_train_hook *hook, int64_t programs)
{
  cx_counter_add(&splits, programs);
  cx_log_once_per_site(
      hook->name,
      "trainer: `%s` reads values inside of a step, which is %lld programs "
      "instead of one then; what is read in on_train_batch_end costs less",
      hook->name, (long long)programs + 1);
}

static void call_fn(calx_trainer *t, const hook_call *c,
                    const calx_trainer_hooks *hooks, void *self)
{
  // All functions of C have one size, and the call's kind is its field's type.
  union {
    calx_trainer_hook_fn *plain;
    calx_trainer_batch_hook_fn *batch;
    calx_trainer_transfer_hook_fn *transfer;
    calx_trainer_checkpoint_hook_fn *checkpoint;
  } fn;
  memcpy(&fn, (const char *)hooks + c->hook->offset, sizeof fn);
  if (fn.plain == NULL) return;
  if (c->batch != NULL) {
    fn.batch(t, self, c->batch, c->batch_idx);
  } else if (c->received != NULL) {
    fn.transfer(t, self, c->received);
  } else if (c->checkpoint != NULL) {
    fn.checkpoint(t, self, c->checkpoint);
  } else {
    fn.plain(t, self);
  }
}

static void call(calx_trainer *t, const hook_call *c,
                 const calx_trainer_hooks *hooks, void *self)
{
  const int64_t before = cx_lazy_thread_programs();
  call_fn(t, c, hooks, self);
  const int64_t programs = cx_lazy_thread_programs() - before;
  if (programs > 0 && is_in_step(c->hook)) report_split(c->hook, programs);
}

// Early stopping and checkpoints see what the module logs at an epoch's end.
static bool runs_late(const calx_callback *callback, const cx_train_hook *hook)
{
  return (callback->kind == CX_TRAIN_CALLBACK_MONITOR ||
          callback->kind == CX_TRAIN_CALLBACK_CHECKPOINT) &&
         hook->offset == offsetof(calx_trainer_hooks, on_train_epoch_end);
}

static void call_callbacks(calx_trainer *t, const hook_call *c, bool late)
{
  const cx_train_hook *outer = t->hook;
  t->hook = c->hook;
  for (size_t i = 0; i < t->n_callbacks; i++) {
    const calx_callback *callback = t->callbacks[i];
    if (runs_late(callback, c->hook) != late) continue;
    const calx_site site = *cx_site();
    if (callback->own != NULL) calx_at_(&t->site);
    cx_train_profile_begin(t, callback->name, c->hook->name);
    call(t, c, &callback->options.hooks, t->callback_selves[i]);
    cx_train_profile_end(t);
    if (callback->own != NULL) calx_at_(&site);
  }
  t->hook = outer;
}

static void call_module(calx_trainer *t, const hook_call *c)
{
  const cx_train_hook *outer = t->hook;
  t->hook = c->hook;
  cx_train_profile_begin(t, NULL, c->hook->name);
  call(t, c, &t->module->hooks, t->self);
  cx_train_profile_end(t);
  t->hook = outer;
}

static void call_all(calx_trainer *t, const hook_call *c)
{
  call_callbacks(t, c, false);
  call_module(t, c);
}

void cx_train_call(calx_trainer *t, const cx_train_hook *hook)
{
  call_all(t, &(hook_call){ .hook = hook });
}

void cx_train_call_late(calx_trainer *t)
{
  call_callbacks(
      t, &(hook_call){ .hook = CX_TRAIN_HOOK(on_train_epoch_end, EPOCH) },
      true);
}

void cx_train_call_batch(calx_trainer *t, const cx_train_hook *hook,
                         const calx_batch *batch, int64_t batch_idx)
{
  call_all(
      t, &(hook_call){ .hook = hook, .batch = batch, .batch_idx = batch_idx });
}

void cx_train_call_transfer(calx_trainer *t, calx_batch *batch)
{
  call_all(t, &(hook_call){ .hook = CX_TRAIN_HOOK(on_after_batch_transfer, NOT),
                            .received = batch });
}

void cx_train_call_module(calx_trainer *t, const cx_train_hook *hook,
                          calx_value *checkpoint)
{
  call_module(t, &(hook_call){ .hook = hook, .checkpoint = checkpoint });
}

void cx_train_call_callbacks(calx_trainer *t, const cx_train_hook *hook,
                             calx_value *checkpoint)
{
  call_callbacks(t, &(hook_call){ .hook = hook, .checkpoint = checkpoint },
                 false);
}

// ---- callbacks --------------------------------------------------------------

static calx_callback nil;  // without memory

static calx_status *take_key(calx_callback *c)
{
  const calx_callback_functions *o = &c->options;
  if (o->state_key != NULL) {
    c->state_key = cx_strdup(o->state_key);
    return c->state_key != NULL ? NULL : cx_out_of_memory();
  }
  if (o->state_dict == NULL && o->load_state_dict == NULL) return NULL;
  return cx_invalid(
      "callback: it has a state_dict and no state_key, under which checkpoints "
      "keep it");
}

calx_callback *calx_callback_new_with(const calx_callback_functions *options)
{
  calx_callback *c = cx_calloc(1, sizeof *c);
  if (c == NULL) return &nil;
  c->name = "Callback";
  c->error =
      cx_options_take("callback", options, &c->options, sizeof c->options);
  if (c->error == NULL) c->error = take_key(c);
  return c;
}

calx_callback *cx_train_callback_finish(calx_callback *c, const char *name,
                                        cx_train_callback_kind kind,
                                        calx_status *status, void *own,
                                        void (*free_own)(void *own))
{
  if (c == &nil) {
    calx_status_free(status);
    if (own != NULL) free_own(own);
    return c;
  }
  c->name = name;
  c->kind = kind;
  c->own = own;
  c->free_own = free_own;
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
  if (c->own != NULL) c->free_own(c->own);
  cx_free(c->state_key);
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
