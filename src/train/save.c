// train/save: what a checkpoint has of a run.
#include "base/alloc.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"
#include "pjrt/pjrt.h"
#include "train/checkpoint.h"
#include "train/internal.h"

// ---- the parts --------------------------------------------------------------

calx_status *cx_train_list_states(const calx_trainer *t,
                                  cx_train_state_lists *out)
{
  const size_t n = t->n_optimizers;
  *out =
      (cx_train_state_lists){ .optimizers = cx_calloc(n + 1, sizeof(void *)),
                              .schedulers = cx_calloc(n + 1, sizeof(void *)) };
  if (out->optimizers == NULL || out->schedulers == NULL) {
    cx_free(out->optimizers);
    cx_free(out->schedulers);
    return cx_out_of_memory();
  }
  size_t schedulers = 0;
  for (size_t i = 0; i < n; i++) {
    out->optimizers[i] = t->optimizers[i].optimizer;
    if (t->optimizers[i].scheduler == NULL) continue;
    out->schedulers[schedulers++] = t->optimizers[i].scheduler;
  }
  out->states = (cx_train_states){ .model = t->model,
                                   .optimizers = out->optimizers,
                                   .n_optimizers = n,
                                   .schedulers = out->schedulers,
                                   .n_schedulers = schedulers };
  return NULL;
}

void cx_train_free_lists(cx_train_state_lists *l)
{
  cx_free(l->optimizers);
  cx_free(l->schedulers);
}

static cx_train_progress progress_of(const calx_trainer *t)
{
  const cx_train_position *p = &t->position;
  return (cx_train_progress){ .epoch = p->epoch,
                              .batch_idx = p->batch,
                              .is_epoch_end = p->is_epoch_end,
                              .global_step = p->global_step,
                              .batches_seen = p->batches_seen,
                              .batches_stepped = p->batches_stepped,
                              .accumulate = t->accumulate,
                              .is_manual = t->module->manual_optimization };
}

// Ranks that share the samples are equally far.
static int64_t sharing_ranks(const calx_trainer *t)
{
  return t->train.is_shared_out ? calx_world_size() : 1;
}

// The kernels that were measured, so that a run that goes on elsewhere runs the
// same ones.
static calx_status *put_choices(calx_value *checkpoint)
{
  int64_t *numbers;
  size_t count;
  CALX_TRY(cx_pjrt_choices_save(&numbers, &count));
  calx_tensor *tensor = calx_host_tensor(
      numbers, CALX_I64, calx_dims_of((const int64_t[]){ (int64_t)count }, 1));
  cx_free(numbers);
  return calx_value_set(calx_value_get(checkpoint, "calx"), "kernel_choices",
                        calx_value_tensor(tensor));
}

static calx_status *put_own(const calx_trainer *t, calx_value *checkpoint)
{
  cx_train_own own = { .loader = { .epoch = t->position.epoch,
                                   .samples =
                                       t->position.samples * sharing_ranks(t) },
                       .ranks = calx_world_size() };
  cx_lazy_random_state(calx_device_current(), &own.seed, &own.draws);
  CALX_TRY(cx_train_own_put(&own, checkpoint));
  return put_choices(checkpoint);
}

static calx_status *put_states(const calx_trainer *t, bool weights_only,
                               calx_value *checkpoint)
{
  cx_train_state_lists lists;
  CALX_TRY(cx_train_list_states(t, &lists));
  calx_status *status =
      cx_train_states_put(&lists.states, weights_only, checkpoint);
  cx_train_free_lists(&lists);
  return status;
}

// ---- states of callbacks and data -------------------------------------------

// A state that is empty is left out.
static calx_status *put_state(calx_trainer *t, const char *key,
                              calx_trainer_state_dict_fn *state_dict,
                              void *self, calx_value *out)
{
  calx_value *state = calx_value_container(CALX_KIND_DICT);
  if (state == NULL) return cx_out_of_memory();
  state_dict(t, self, state);
  if (calx_value_count(state) > 0) return calx_value_set(out, key, state);
  calx_value_free(state);
  return NULL;
}

static calx_status *put_callbacks(calx_trainer *t, calx_value *out)
{
  calx_value *states = calx_value_container(CALX_KIND_DICT);
  CALX_TRY(calx_value_set(out, "callbacks", states));
  for (size_t i = 0; i < t->n_callbacks; i++) {
    const calx_callback *c = t->callbacks[i];
    if (c->options.state_dict == NULL) continue;
    CALX_TRY(put_state(t, c->state_key, c->options.state_dict,
                       t->callback_selves[i], states));
  }
  return NULL;
}

static calx_status *put_data_module(calx_trainer *t, calx_value *out)
{
  const calx_lightning_data_module *d = t->data->datamodule;
  if (d == NULL || d->state_dict == NULL) return NULL;
  return put_state(t, CX_TRAIN_DATA_MODULE, d->state_dict, t->data_self, out);
}

static calx_status *put_hyperparameters(const calx_trainer *t,
                                        calx_value *checkpoint)
{
  if (t->hyperparameters == NULL) return NULL;
  calx_value *copy;
  CALX_TRY(cx_train_copy_value(t->hyperparameters, &copy));
  CALX_TRY(calx_value_set(checkpoint, "hyper_parameters", copy));
  return calx_value_set(checkpoint, "hparams_name",
                        calx_value_string("kwargs"));
}

static calx_status *put_all(calx_trainer *t, bool weights_only,
                            calx_value *checkpoint)
{
  const cx_train_hook *hook = CX_TRAIN_HOOK(on_save_checkpoint, NOT);
  const cx_train_progress progress = progress_of(t);
  CALX_TRY(cx_train_loops_put(&progress, checkpoint));
  CALX_TRY(put_states(t, weights_only, checkpoint));
  CALX_TRY(put_hyperparameters(t, checkpoint));
  if (!weights_only) CALX_TRY(put_own(t, checkpoint));
  if (!weights_only) CALX_TRY(put_callbacks(t, checkpoint));
  CALX_TRY(put_data_module(t, checkpoint));
  if (!weights_only) cx_train_call_callbacks(t, hook, checkpoint);
  cx_train_call_module(t, hook, checkpoint);
  return calx_scope_take_error();
}

calx_status *cx_train_dump(calx_trainer *t, bool weights_only, calx_value **out)
{
  *out = calx_value_container(CALX_KIND_DICT);
  if (*out == NULL) return cx_out_of_memory();
  calx_status *status = put_all(t, weights_only, *out);
  if (status == NULL) return NULL;
  calx_value_free(*out);
  *out = NULL;
  return status;
}

// What is spread over the ranks can't be joined where one of them has failed. A
// signal ends all of them after the same batch.
bool cx_train_can_save(const calx_trainer *t)
{
  if (t->model == NULL || t->config.fast_dev_run > 0) return false;
  if (calx_world_size() == 1 ||
      calx_status_code(t->exception) == CALX_CANCELLED) {
    return true;
  }
  for (size_t i = 0; i < t->n_optimizers; i++) {
    const calx_optimizer *o = t->optimizers[i].optimizer;
    if (o->sharded || (o->inner != NULL && o->inner->sharded)) return false;
  }
  return true;
}
