// train/defaults: the logger and the callbacks that a program need not give.
#include "train/internal.h"

bool cx_train_has_callback(const calx_trainer *t, cx_train_callback_kind kind)
{
  for (size_t i = 0; i < t->n_callbacks; i++) {
    if (t->callbacks[i]->kind == kind) return true;
  }
  return false;
}

calx_status *cx_train_add_callback(calx_trainer *t, calx_callback *callback)
{
  CX_ASSERT(t->n_own_callbacks < CX_TRAIN_OWN_CALLBACKS);
  t->own_callbacks[t->n_own_callbacks++] = callback;
  if (callback->error != NULL) return cx_status_copy(callback->error);
  if (callback->options.size == 0) return cx_out_of_memory();
  t->callbacks[t->n_callbacks++] = callback;
  return NULL;
}

// ---- their order ------------------------------------------------------------

static int turn_of(const calx_callback *callback)
{
  if (callback->kind == CX_TRAIN_CALLBACK_TUNER) return 0;
  return callback->kind == CX_TRAIN_CALLBACK_CHECKPOINT ? 2 : 1;
}

// Tuners run first and checkpoints last; of one kind they stay in their order.
static void order_callbacks(calx_trainer *t)
{
  for (size_t i = 1; i < t->n_callbacks; i++) {
    calx_callback *moved = t->callbacks[i];
    size_t k = i;
    for (; k > 0 && turn_of(t->callbacks[k - 1]) > turn_of(moved); k--) {
      t->callbacks[k] = t->callbacks[k - 1];
    }
    t->callbacks[k] = moved;
  }
}

calx_status *cx_train_add_defaults(calx_trainer *t)
{
  if (t->config.no_logger) t->n_loggers = 0;
  CALX_TRY(cx_train_add_timer(t));
  order_callbacks(t);
  return NULL;
}
