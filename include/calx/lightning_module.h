/**
 * calx/lightning_module.h: what a program gives the trainer: a model and its
 * steps, hooks, data, callbacks. The names are Lightning's.
 *
 * Every rank has a `self` of its own, which the trainer makes of zeros, and the
 * functions get that of their rank. The ranks of a process are threads, so what
 * `user` points to is shared by them: it is read only.
 *
 * @source Lightning 2.6: LightningModule, LightningDataModule, Callback
 */
#ifndef CALX_LIGHTNING_MODULE_H
#define CALX_LIGHTNING_MODULE_H

#include "calx/data.h"
#include "calx/io.h"
#include "calx/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct calx_trainer calx_trainer;
typedef struct calx_callback calx_callback;

// ---- functions --------------------------------------------------------------

/** A hook. @param self  the module's or the callback's, of this rank */
typedef void calx_trainer_hook_fn(calx_trainer *trainer, void *self);
/** A hook of a batch, whose tensors are on the rank's device. */
typedef void calx_trainer_batch_hook_fn(calx_trainer *trainer, void *self,
                                        const calx_batch *batch,
                                        int64_t batch_idx);
/** Changes a batch on the rank's device, which all that follows sees. The
 *  tensors that it puts there belong to the scope. */
typedef void calx_trainer_transfer_hook_fn(calx_trainer *trainer, void *self,
                                           calx_batch *batch);
/** A hook of a checkpoint, which may put things into it or read them. */
typedef void calx_trainer_checkpoint_hook_fn(calx_trainer *trainer, void *self,
                                             calx_value *checkpoint);
/** A step: of training it returns the loss, which the trainer minimises; NULL
 *  leaves the update out. That of predicting returns the predictions, a row for
 *  each sample. The others may return NULL. @shape loss one element */
typedef calx_tensor *calx_trainer_step_fn(calx_trainer *trainer, void *self,
                                          const calx_batch *batch,
                                          int64_t batch_idx);

/** Makes the rank's model on its device and returns its root, which the trainer
 *  frees. */
typedef calx_module *calx_configure_model_fn(calx_trainer *trainer, void *self);
/** Downloads and the like, before any rank reads the data. */
typedef calx_status *calx_prepare_data_fn(void *user);
/** What is to be saved of a `self`, put into the dict. */
typedef void calx_trainer_state_dict_fn(calx_trainer *trainer, void *self,
                                        calx_value *state);
/** Gives a `self` what was saved. */
typedef void calx_trainer_load_state_dict_fn(calx_trainer *trainer, void *self,
                                             const calx_value *state);

// ---- hooks ------------------------------------------------------------------

/** What modules and callbacks may do beside the loop; NULL: nothing. A
 *  callback's hook runs before the module's; at the end of a training epoch
 *  early stopping and checkpoints run after it. Errors go to the scope, those
 * of the program by calx_scope_set_error(), and end the run. */
typedef struct CALX_OPTIONS calx_trainer_hooks {
  CALX_NAMED calx_trainer_hook_fn *setup;
  /* the model is on its device: weights that modules share are tied here */
  CALX_NAMED calx_trainer_hook_fn *on_post_move_to_device;
  CALX_NAMED calx_trainer_hook_fn *on_fit_start;
  CALX_NAMED calx_trainer_hook_fn *on_sanity_check_start;
  CALX_NAMED calx_trainer_hook_fn *on_sanity_check_end;
  CALX_NAMED calx_trainer_hook_fn *on_train_start;
  CALX_NAMED calx_trainer_hook_fn *on_train_epoch_start;
  CALX_NAMED calx_trainer_transfer_hook_fn *on_after_batch_transfer;
  CALX_NAMED calx_trainer_batch_hook_fn *on_train_batch_start;
  CALX_NAMED calx_trainer_hook_fn *on_before_zero_grad;
  CALX_NAMED calx_trainer_hook_fn *on_before_backward;
  CALX_NAMED calx_trainer_hook_fn *on_after_backward;
  CALX_NAMED calx_trainer_hook_fn *on_before_optimizer_step;
  CALX_NAMED calx_trainer_batch_hook_fn *on_train_batch_end;
  CALX_NAMED calx_trainer_hook_fn *on_train_epoch_end;
  CALX_NAMED calx_trainer_hook_fn *on_train_end;
  CALX_NAMED calx_trainer_hook_fn *on_validation_model_zero_grad;
  CALX_NAMED calx_trainer_hook_fn *on_validation_model_eval;
  CALX_NAMED calx_trainer_hook_fn *on_validation_start;
  CALX_NAMED calx_trainer_hook_fn *on_validation_epoch_start;
  CALX_NAMED calx_trainer_batch_hook_fn *on_validation_batch_start;
  CALX_NAMED calx_trainer_batch_hook_fn *on_validation_batch_end;
  CALX_NAMED calx_trainer_hook_fn *on_validation_epoch_end;
  CALX_NAMED calx_trainer_hook_fn *on_validation_end;
  CALX_NAMED calx_trainer_hook_fn *on_validation_model_train;
  CALX_NAMED calx_trainer_hook_fn *on_test_model_eval;
  CALX_NAMED calx_trainer_hook_fn *on_test_start;
  CALX_NAMED calx_trainer_hook_fn *on_test_epoch_start;
  CALX_NAMED calx_trainer_batch_hook_fn *on_test_batch_start;
  CALX_NAMED calx_trainer_batch_hook_fn *on_test_batch_end;
  CALX_NAMED calx_trainer_hook_fn *on_test_epoch_end;
  CALX_NAMED calx_trainer_hook_fn *on_test_end;
  CALX_NAMED calx_trainer_hook_fn *on_test_model_train;
  CALX_NAMED calx_trainer_hook_fn *on_predict_model_eval;
  CALX_NAMED calx_trainer_hook_fn *on_predict_start;
  CALX_NAMED calx_trainer_hook_fn *on_predict_epoch_start;
  CALX_NAMED calx_trainer_batch_hook_fn *on_predict_batch_start;
  CALX_NAMED calx_trainer_batch_hook_fn *on_predict_batch_end;
  CALX_NAMED calx_trainer_hook_fn *on_predict_epoch_end;
  CALX_NAMED calx_trainer_hook_fn *on_predict_end;
  /* of each checkpoint, and of what a fit leaves; a callback's not of weights
     alone */
  CALX_NAMED calx_trainer_checkpoint_hook_fn *on_save_checkpoint;
  /* of a file that a run begins with, the module's first; a callback's in fit
   */
  CALX_NAMED calx_trainer_checkpoint_hook_fn *on_load_checkpoint;
  CALX_NAMED calx_trainer_hook_fn *on_exception;
  CALX_NAMED calx_trainer_hook_fn *on_fit_end;
  CALX_NAMED calx_trainer_hook_fn *teardown;
} calx_trainer_hooks;

// ---- the module -------------------------------------------------------------

/** A model and what it does in each step. Made by CALX_LIGHTNING_MODULE(…); it
 *  must outlive the runs of the trainer. */
typedef struct CALX_OPTIONS calx_lightning_module {
  CALX_NAMED size_t size;
  /* of the struct that `self` points to */
  CALX_NAMED size_t self_size;
  CALX_NAMED void *user; /* calx_trainer_user(); shared by the ranks */
  CALX_NAMED calx_configure_model_fn *configure_model; /* wanted */
  /* calls calx_trainer_add_optimizer(); wanted by calx_trainer_fit() */
  CALX_NAMED calx_trainer_hook_fn *configure_optimizers;
  CALX_NAMED calx_trainer_step_fn *training_step; /* wanted by the same */
  CALX_NAMED calx_trainer_step_fn *validation_step;
  CALX_NAMED calx_trainer_step_fn *test_step;
  CALX_NAMED calx_trainer_step_fn *predict_step; /* NULL: the model's forward */
  /* called once on each host, with `user`, before the ranks' setup */
  CALX_NAMED calx_prepare_data_fn *prepare_data;
  /* training_step does zero_grad, backward and the optimisers' steps itself;
     wanted where there are several optimisers.
     @source automatic_optimization = False */
  CALX_NAMED bool manual_optimization;
  /* clips the gradients of automatic optimisation instead of the trainer, by
     calx_trainer_clip_gradients() */
  CALX_NAMED calx_trainer_hook_fn *configure_gradient_clipping;
  CALX_NAMED calx_trainer_hooks hooks;
} calx_lightning_module;

// ---- data -------------------------------------------------------------------

/** A data module's loader. */
typedef calx_loader *calx_trainer_loader_fn(calx_trainer *trainer, void *self);

/** Loaders and what makes them, apart from a model. It wins over the loaders
 *  that are given beside it. Made by CALX_LIGHTNING_DATA_MODULE(…); it must
 *  outlive the runs. */
typedef struct CALX_OPTIONS calx_lightning_data_module {
  CALX_NAMED size_t size;
  CALX_NAMED size_t self_size; /* of `self`, one for each rank, of zeros */
  CALX_NAMED void *user;       /* for prepare_data; shared by the ranks */
  CALX_NAMED calx_prepare_data_fn *prepare_data; /* once on each host */
  /* makes datasets and loaders; calx_trainer_stage() tells for what */
  CALX_NAMED calx_trainer_hook_fn *setup;
  /* each returns a loader of `self`, which teardown frees; NULL: none */
  CALX_NAMED calx_trainer_loader_fn *train_dataloader;
  CALX_NAMED calx_trainer_loader_fn *val_dataloader;
  CALX_NAMED calx_trainer_loader_fn *test_dataloader;
  CALX_NAMED calx_trainer_loader_fn *predict_dataloader;
  CALX_NAMED calx_trainer_state_dict_fn *state_dict;
  CALX_NAMED calx_trainer_load_state_dict_fn *load_state_dict;
  CALX_NAMED calx_trainer_hook_fn *on_exception;
  CALX_NAMED calx_trainer_hook_fn *teardown;
} calx_lightning_data_module;

// ---- callbacks of the program's ---------------------------------------------

/** Fills a callback's new `self`. */
typedef void calx_callback_begin_fn(void *self, void *user);
/** Gives back what a callback's `self` has, before it is freed. */
typedef void calx_callback_end_fn(void *self);
/** A callback of the program's: hooks that know nothing of the model. */
typedef struct CALX_OPTIONS calx_callback_functions {
  CALX_NAMED size_t size;
  CALX_NAMED size_t self_size; /* of `self`, one for each rank, of zeros */
  CALX_NAMED void *user;       /* for `begin`; shared by the ranks */
  CALX_NAMED calx_callback_begin_fn *begin; /* before the first hook */
  CALX_NAMED calx_callback_end_fn *end;
  /* under which its state is in a checkpoint; copied; wanted by the two
     below */
  CALX_NAMED const char *state_key;
  CALX_NAMED calx_trainer_state_dict_fn *state_dict;
  CALX_NAMED calx_trainer_load_state_dict_fn *load_state_dict;
  CALX_NAMED calx_trainer_hooks hooks;
} calx_callback_functions;
/** Never NULL. It is one trainer's at a time, and must outlive its runs. */
CALX_API calx_callback *calx_callback_new_with(
    const calx_callback_functions *options);
/** NULL is accepted. */
CALX_API void calx_callback_free(calx_callback *callback);
/** Its `self` on the first rank of this process; NULL before the first run. */
CALX_API void *calx_callback_self(const calx_callback *callback);

#ifdef __cplusplus
}
#else
#define CALX_LIGHTNING_MODULE(...)                     \
  {                                                    \
    .size = sizeof(calx_lightning_module), __VA_ARGS__ \
  }
#define CALX_LIGHTNING_DATA_MODULE(...)                     \
  {                                                         \
    .size = sizeof(calx_lightning_data_module), __VA_ARGS__ \
  }
#ifdef CALX_NO_SITES
#define CALX_CALLBACK_SITE_
#else
#define CALX_CALLBACK_SITE_ calx_at_(CALX_HERE),
#endif
#define CALX_CALLBACK_NEW_(...)                \
  (CALX_CALLBACK_SITE_ calx_callback_new_with( \
      &(calx_callback_functions){ __VA_ARGS__ }))
#define calx_callback_new(...) \
  CALX_CALLBACK_NEW_(.size = sizeof(calx_callback_functions), __VA_ARGS__)
#endif
#endif
