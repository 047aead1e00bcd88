// train/checkpoint: what a checkpoint of the trainer holds, as Lightning lays
// it out, so that Lightning resumes from ours and we from Lightning's.
//
//   {'epoch', 'global_step', 'pytorch-lightning_version', 'loops': …,
//    'state_dict': {'net.conv1.weight': …}, 'optimizer_states': […],
//    'lr_schedulers': […], 'calx': {'format', 'loader', 'random', 'ranks'}}
//
// 'callbacks', 'hyper_parameters' and 'hparams_name' are the trainer's to put
// beside these. Lightning ignores what it does not know, such as 'calx'.
#ifndef CX_TRAIN_CHECKPOINT_H
#define CX_TRAIN_CHECKPOINT_H

#include "calx/io.h"

// The release of Lightning whose layout is written.
#define CX_TRAIN_LIGHTNING_VERSION "2.6.6"

// ---- how far the training is ------------------------------------------------

typedef struct cx_train_progress {
  int64_t epoch;      // that are over, as trainer.current_epoch counts them
  int64_t batch_idx;  // batches of the running epoch that are over
  // These are all of the epoch, which is not counted yet: so it is at the last
  // on_train_batch_end, on_validation_end and on_train_epoch_end of an epoch.
  bool is_epoch_end;
  int64_t global_step;      // steps of the optimisers
  int64_t batches_seen;     // batches of training that are over, in all epochs
  int64_t batches_stepped;  // those after which an optimiser stepped
  int64_t accumulate;       // accumulate_grad_batches; 0 = 1
  bool is_manual;           // the optimisation is: Lightning counts it apart
} cx_train_progress;

// Puts 'epoch', 'global_step', 'pytorch-lightning_version' and 'loops' into a
// dict. Lightning goes on after the batch, or with the next epoch; gradients
// that were accumulated without a step are in no checkpoint.
calx_status *cx_train_loops_put(const cx_train_progress *progress,
                                calx_value *checkpoint) CALX_MUST_USE;
// Where training goes on that a checkpoint of ours or of any Lightning's is of.
// An epoch whose batches are all over is counted: is_epoch_end is false.
// `accumulate` is 0. INVALID_ARGUMENT: no such checkpoint, counts that cannot
// be.
//
// Before 1.6 there were no 'loops', and 'epoch' was one ahead even in the
// middle of one: Lightning goes on with the next epoch there, and so does this.
calx_status *cx_train_loops_get(const calx_value *checkpoint,
                                cx_train_progress *out) CALX_MUST_USE;

// ---- states -----------------------------------------------------------------

// A LightningModule's state_dict has the paths of its attributes. Those of a
// root module of calx begin below the root: a root with the child "conv1" is
// the LightningModule whose self.conv1 that is. Where the LightningModule has
// the whole model as self.net, the prefix is "net.", or the root has a child
// "net".
typedef struct cx_train_states {
  calx_module *model;                 // NULL: nothing is got for it
  calx_optimizer *const *optimizers;  // NULL: none
  size_t n_optimizers;
  calx_lr_scheduler *const *schedulers;  // in Lightning's order; NULL: none
  size_t n_schedulers;
  const char *prefix;  // of the file's names before the model's; NULL: none
  bool not_strict;     // names may be missing and others be there
} cx_train_states;

// Puts 'state_dict' and, but with weights_only, 'optimizer_states' and
// 'lr_schedulers' into a dict. Tensors are the model's own. Where an
// optimiser's state is spread over the ranks it is a collective, which all
// ranks call; what it puts is whole.
calx_status *cx_train_states_put(const cx_train_states *states,
                                 bool weights_only,
                                 calx_value *checkpoint) CALX_MUST_USE;
// Gives all of them what a checkpoint has, with weights_only the model alone:
// all or, on failure, nothing. INVALID_ARGUMENT with PyTorch's and Lightning's
// texts: other names or sizes, a file of weights only, other optimisers.
calx_status *cx_train_states_get(const cx_train_states *states,
                                 bool weights_only,
                                 const calx_value *checkpoint) CALX_MUST_USE;

// ---- what Lightning does not keep -------------------------------------------

typedef struct cx_train_own {
  calx_loader_position loader;  // samples that all ranks together were given
  uint64_t seed, draws;         // cx_lazy_random_state()
  int64_t ranks;                // that the run had
} cx_train_own;

// Puts 'calx' into a dict.
calx_status *cx_train_own_put(const cx_train_own *own,
                              calx_value *checkpoint) CALX_MUST_USE;
// *out_found: whether the checkpoint is calx's; else *out is zero.
// UNIMPLEMENTED: a later calx wrote it.
calx_status *cx_train_own_get(const calx_value *checkpoint, cx_train_own *out,
                              bool *out_found) CALX_MUST_USE;

#endif
