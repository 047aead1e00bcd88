// train/step: one batch of training with automatic optimisation. All of it is
// one program: forward, backward, sums over the ranks, clipping, update, the
// epoch's values.
#include "calx/autocast.h"
#include "calx/autograd.h"
#include "lazy/lazy.h"
#include "train/internal.h"

static calx_tensor *loss_of(calx_trainer *t, const calx_batch *batch,
                            int64_t batch_idx)
{
  if (t->config.autocast != CALX_DTYPE_DEFAULT) {
    calx_autocast_begin(t->config.autocast);
  }
  const cx_train_hook *outer = t->hook;
  t->hook = &(const cx_train_hook){ "training_step", 0, CX_TRAIN_STEP };
  calx_tensor *loss = t->module->training_step(t, t->self, batch, batch_idx);
  t->hook = outer;
  if (t->config.autocast != CALX_DTYPE_DEFAULT) calx_autocast_end();
  return loss;
}

static void backward(calx_trainer *t, calx_tensor *loss)
{
  cx_train_call(t, CX_TRAIN_HOOK(on_before_backward, STEP));
  const double k = (double)t->config.accumulate;
  calx_backward(k > 1 ? calx_div(loss, calx_scalar(k)) : loss);
  cx_train_call(t, CX_TRAIN_HOOK(on_after_backward, STEP));
}

void cx_train_update(calx_trainer *t)
{
  calx_optimizer *opt = t->optimizers[0].optimizer;
  if (calx_world_size() > 1) calx_reduce_gradients(opt);
  cx_train_call(t, CX_TRAIN_HOOK(on_before_optimizer_step, STEP));
  if (t->config.clip > 0 && t->config.clips_values) {
    calx_clip_grad_value(opt, t->config.clip);
  } else if (t->config.clip > 0) {
    calx_clip_grad_norm(opt, t->config.clip);
  }
  calx_optimizer_step(opt);
  t->global_step++;
}

bool cx_train_step(calx_trainer *t, const calx_batch *batch, int64_t batch_idx,
                   bool is_last)
{
  calx_optimizer *opt = t->optimizers[0].optimizer;
  const int64_t k = t->config.accumulate;
  calx_tensor *loss = loss_of(t, batch, batch_idx);
  if (loss == NULL) return false;
  if (batch_idx % k == 0) {
    cx_train_call(t, CX_TRAIN_HOOK(on_before_zero_grad, STEP));
    calx_optimizer_zero_grad(opt);
  }
  backward(t, loss);
  if ((batch_idx + 1) % k != 0 && !is_last) return false;
  cx_train_update(t);
  return true;
}
