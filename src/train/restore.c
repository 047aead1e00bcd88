// train/restore: a run gets back what a checkpoint has of it.
#include "base/alloc.h"
#include "data/loader.h"
#include "lazy/lazy.h"
#include "pjrt/pjrt.h"
#include "train/checkpoint.h"
#include "train/internal.h"

calx_status *cx_train_restore_model(calx_trainer *t, calx_value *checkpoint)
{
  const cx_train_states states = { .model = t->model };
  return cx_train_states_get(&states, true, checkpoint);
}

// ---- where training goes on -------------------------------------------------

static calx_status *check_epoch(const calx_trainer *t)
{
  const int64_t most = t->config.max_epochs;
  if (most == -1 || t->position.epoch <= most) return NULL;
  return cx_invalid(
      "You restored a checkpoint with current_epoch=%lld, but you have set "
      "Trainer(max_epochs=%lld).",
      (long long)t->position.epoch, (long long)most);
}

// In samples of this rank: another number of ranks, or another batch size, goes
// on at the same sample.
static calx_status *resume_epoch(calx_trainer *t, int64_t batches,
                                 int64_t samples)
{
  if (batches == 0 || batches == t->train.batches) return NULL;
  t->resumes_epoch = true;
  t->position.batch = batches;
  t->position.samples = samples;
  return calx_loader_load_state(
      t->train.loader,
      (calx_loader_position){ .epoch = t->position.epoch, .samples = samples });
}

static calx_status *restore_choices(const calx_value *checkpoint)
{
  enum { MOST = 1 << 20 };
  static int64_t empty;
  const calx_value *own = calx_value_get(checkpoint, "calx");
  calx_tensor *tensor =
      calx_value_as_tensor(calx_value_get(own, "kernel_choices"));
  if (tensor == NULL || calx_tensor_dtype(tensor) != CALX_I64) return NULL;
  const int64_t count = calx_tensor_numel(tensor);
  if (count > MOST) return NULL;
  int64_t *numbers =
      count > 0 ? cx_calloc((size_t)count, sizeof *numbers) : &empty;
  if (numbers == NULL) return cx_out_of_memory();
  calx_status *status =
      calx_tensor_read(tensor, numbers, (size_t)count * sizeof *numbers);
  if (status == NULL) status = cx_pjrt_choices_load(numbers, (size_t)count);
  if (numbers != &empty) cx_free(numbers);
  return status;
}

// A file of Lightning's has batches alone.
static calx_status *restore_position(calx_trainer *t,
                                     const calx_value *checkpoint)
{
  cx_train_progress p;
  cx_train_own own;
  bool is_ours;
  CALX_TRY(cx_train_loops_get(checkpoint, &p));
  CALX_TRY(cx_train_own_get(checkpoint, &own, &is_ours));
  t->position = (cx_train_position){ .epoch = p.epoch,
                                     .global_step = p.global_step,
                                     .batches_seen = p.batches_seen,
                                     .batches_stepped = p.batches_stepped };
  CALX_TRY(check_epoch(t));
  const int64_t size = t->train.loader->batch_size;
  const int64_t ranks = t->train.is_shared_out ? calx_world_size() : 1;
  int64_t samples = p.batch_idx * size, batches = p.batch_idx;
  if (is_ours && p.batch_idx > 0) {
    samples = own.loader.samples / ranks;
    if (own.ranks != calx_world_size() && size > 0) batches = samples / size;
  }
  CALX_TRY(resume_epoch(t, batches, samples));
  if (!is_ours) return NULL;
  cx_lazy_random_restore(calx_device_current(), own.seed, own.draws);
  return restore_choices(checkpoint);
}

calx_status *cx_train_restore_training(calx_trainer *t,
                                       const calx_value *checkpoint)
{
  cx_train_state_lists lists;
  CALX_TRY(cx_train_list_states(t, &lists));
  calx_status *status = cx_train_states_get(&lists.states, false, checkpoint);
  cx_train_free_lists(&lists);
  return status != NULL ? status : restore_position(t, checkpoint);
}

calx_status *cx_train_find_checkpoint(const calx_trainer *t, calx_value **out)
{
  *out = NULL;
  if (t->data->ckpt_path == NULL) return NULL;
  return calx_load(t->data->ckpt_path, out);
}
