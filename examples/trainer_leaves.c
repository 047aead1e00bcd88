// Tells sick leaves from healthy ones as efficientnet.c does, by the trainer on
// all devices that there are, and writes what it thinks of other leaves.
//
//   trainer_leaves [--data DIR] [--model b0] [--folds N] [--image-size S]
//       [--batch-size B] [--lr X] [--no_dropout] [--target AUROC] [--save FILE]
//       [--max_epochs=N] [--precision=bf16-mixed] [--devices=N] […]
//
// DIR holds train.csv and sample_submission.csv, a column for each class, and
// images/*.jpg. Without it, drawn leaves. Of five folds N (1) are validated in
// turn, each on a model that has learned from the others; the predictions are
// the means of their best models', in FILE (submission.csv). Exit code 21: the
// mean area under the curves is below --target.
#include "efficientnet.h"
#include "leaves_data.h"
#include "trainer_options.h"

// ---- the model --------------------------------------------------------------

typedef struct {
  efficientnet net;
  calx_metric *auroc;
} classifier;

static calx_module *configure_model(calx_trainer *trainer, void *self)
{
  const job *j = calx_trainer_user(trainer);
  classifier *c = self;
  c->auroc = calx_trainer_add_metric(
      trainer,
      calx_metric_auroc(.task = "multiclass", .num_classes = j->classes));
  calx_scope_set_error(
      efficientnet_init(&c->net, j->a.model, j->classes, j->a.no_dropout));
  return c->net.root;
}

static void configure_optimizers(calx_trainer *trainer, void *self)
{
  const job *j = calx_trainer_user(trainer);
  calx_optimizer *adamw =
      calx_adamw(calx_trainer_model(trainer), .lr = j->a.lr * calx_world_size(),
                 .eps = 1e-3);
  int64_t steps = calx_trainer_estimated_stepping_batches(trainer);
  calx_trainer_add_optimizer(
      trainer, adamw, .lr_scheduler = calx_cosine_annealing_lr(adamw, steps),
      .interval = "step");
}

static calx_tensor *training_step(calx_trainer *trainer, void *self,
                                  const calx_batch *batch, int64_t batch_idx)
{
  calx_tensor *logits = calx_forward(calx_trainer_model(trainer), batch->data);
  calx_tensor *loss = calx_cross_entropy(logits, batch->target);
  calx_trainer_log(trainer, "train_loss", loss, .prog_bar = true);
  return loss;
}

static calx_tensor *predict_step(calx_trainer *trainer, void *self,
                                 const calx_batch *batch, int64_t batch_idx)
{
  return calx_softmax(calx_forward(calx_trainer_model(trainer), batch->data),
                      1);
}

static calx_tensor *validation_step(calx_trainer *trainer, void *self,
                                    const calx_batch *batch, int64_t batch_idx)
{
  classifier *c = self;
  calx_metric_update(c->auroc, predict_step(trainer, self, batch, batch_idx),
                     batch->target);
  calx_trainer_log_metric(trainer, "auroc", c->auroc, NULL, .prog_bar = true);
  return NULL;
}

// ---- the folds --------------------------------------------------------------

static calx_status *fold(job *j, calx_trainer_options options)
{
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(classifier), .user = j,
                            .configure_model = configure_model,
                            .configure_optimizers = configure_optimizers,
                            .training_step = training_step,
                            .validation_step = validation_step,
                            .predict_step = predict_step);
  const calx_lightning_data_module data = fold_module();
  calx_callback *callbacks[] = {
    calx_model_checkpoint(.monitor = "auroc", .mode = "max"),
    calx_early_stopping(.monitor = "auroc", .mode = "max")
  };
  options.callbacks = callbacks, options.n_callbacks = 2;
  calx_trainer *trainer = calx_trainer_new_with(&options);
  calx_value *predictions = NULL;
  calx_status *status = calx_trainer_fit(trainer, &module, .datamodule = &data);
  double last = calx_trainer_callback_metric(trainer, "auroc");
  double best = calx_model_checkpoint_best_model_score(callbacks[0]);
  // Where nothing was saved the best is NaN, which fmax() leaves out.
  j->auroc += fmax(best, last) / (double)j->a.folds;
  if (status == NULL)
    status = calx_trainer_predict(
        trainer, &module, &predictions, .datamodule = &data,
        .ckpt_path = options.fast_dev_run ? NULL : "best");
  calx_tensor *rows = calx_value_as_tensor(calx_value_item(predictions, 0));
  const float *values = calx_host_data(rows);
  for (int64_t i = 0; status == NULL && i < calx_tensor_numel(rows); i++)
    j->means[i] += (double)values[i] / (double)j->a.folds;
  calx_value_free(predictions), calx_trainer_free(trainer);
  calx_callback_free(callbacks[0]), calx_callback_free(callbacks[1]);
  return status;
}

int main(int argc, char **argv)
{
  calx_trainer_options options = CALX_TRAINER_OPTIONS(.max_epochs = 10);
  job j = { .a = { .model = "b0",
                   .folds = 1,
                   .batch_size = 32,
                   .lr = 3e-3,
                   .image_size = 224,
                   .save = "submission.csv" } };
  trainer_options_read(
      argc, argv,
      "trainer_leaves [--data DIR] [--model b0] [--folds N] [--image-size S] [--batch-size B] [--lr X] [--no_dropout] [--target AUROC] [--save FILE]",
      &options, &j.a);
  calx_status *status = NULL;
  const calx_status *error = job_open(&j, options.seed);
  if (error != NULL) return calx_status_print(stderr, error), 1;
  while (status == NULL && j.fold < j.a.folds) {
    status = fold(&j, options);
    j.fold++;
  }
  if (status == NULL && calx_trainer_is_global_zero(NULL)) {
    printf("auroc %.4f\n", j.auroc);
    status =
        leaves_submit(j.a.save, j.known.sets[0], j.unknown, j.means, j.classes);
  }
  calx_status_print(stderr, status);
  job_close(&j);
  calx_shutdown();
  return status != NULL ? 1 : j.auroc >= j.a.target ? 0 : 21;
}
