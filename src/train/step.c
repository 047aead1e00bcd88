// train/step: one batch of training. All of it is one program: forward,
// backward, sums over the ranks, clipping, update, the epoch's values.
#include "calx/autocast.h"
#include "calx/autograd.h"
#include "lazy/lazy.h"
#include "train/internal.h"

calx_tensor *cx_train_loss(calx_trainer *t, const calx_batch *batch,
                           int64_t batch_idx)
{
  if (t->config.autocast != CALX_DTYPE_DEFAULT) {
    calx_autocast_begin(t->config.autocast);
  }
  const cx_train_hook *outer = t->hook;
  t->hook = &(const cx_train_hook){ "training_step", 0, CX_TRAIN_STEP };
  cx_train_profile_begin(t, NULL, "training_step");
  calx_tensor *loss = t->module->training_step(t, t->self, batch, batch_idx);
  cx_train_profile_end(t);
  t->hook = outer;
  if (t->config.autocast != CALX_DTYPE_DEFAULT) calx_autocast_end();
  return loss;
}

static void backward(calx_trainer *t, calx_tensor *loss, int64_t k)
{
  cx_train_call(t, CX_TRAIN_HOOK(on_before_backward, STEP));
  cx_train_profile_begin(t, NULL, "backward");
  calx_backward(k > 1 ? calx_div(loss, calx_scalar((double)k)) : loss);
  cx_train_profile_end(t);
  t->has_gradients = true;
  t->optimizers[0].is_reduced = false;
  cx_train_call(t, CX_TRAIN_HOOK(on_after_backward, STEP));
}

// ---- a batch ----------------------------------------------------------------

void cx_train_set_output(calx_trainer *t, calx_tensor *output)
{
  calx_release(t->output);
  t->output = output != NULL ? calx_retain(output) : NULL;
}

static bool step_manually(calx_trainer *t, const calx_batch *batch,
                          int64_t batch_idx)
{
  const int64_t before = t->position.global_step;
  cx_train_set_output(t, cx_train_loss(t, batch, batch_idx));
  return t->position.global_step != before;
}

static void zero_grad(calx_trainer *t)
{
  cx_train_call(t, CX_TRAIN_HOOK(on_before_zero_grad, STEP));
  calx_optimizer_zero_grad(t->optimizers[0].optimizer);
  t->has_gradients = false;
}

static void report_none(calx_trainer *t)
{
  if (t->reported_none || calx_scope_error() != NULL) return;
  t->reported_none = true;
  if (!calx_trainer_is_global_zero(t)) return;
  cx_log(
      "`training_step` returned `None`. If this was on purpose, ignore this "
      "warning...");
}

// A batch without a loss adds nothing to the accumulation that it is part of.
bool cx_train_step(calx_trainer *t, const calx_batch *batch, int64_t batch_idx,
                   bool is_last)
{
  if (t->module->manual_optimization) return step_manually(t, batch, batch_idx);
  const int64_t k = t->accumulate;
  cx_train_set_output(t, cx_train_loss(t, batch, batch_idx));
  if (batch_idx % k == 0) zero_grad(t);
  if (t->output != NULL) {
    backward(t, t->output, k);
  } else {
    report_none(t);
  }
  const bool is_due = (batch_idx + 1) % k == 0 || is_last;
  if (!is_due || !t->has_gradients) return false;
  cx_train_update(t);
  return true;
}
