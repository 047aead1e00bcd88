// Transfer learning as in Lightning's documentation, by the trainer. A network
// learns to read digits; its layers but the last become the backbone of another
// one, which learns from few digits whether one is odd. The backbone is frozen
// for five epochs. Exit code 21: the accuracy is below --target.
//
//   trainer_transfer [--data DIR] [--batch-size B] [--lr X] [--target PCT]
//                    [--max_epochs=N] […]
#include "mnist_model.h"
#include "trainer_options.h"

#define CHECKPOINT "digits.ckpt"
enum { DIGITS = 10, EVEN_OR_ODD = 2, FEW = 512 };

typedef struct {
  arguments a;
  int64_t classes;  // DIGITS, then EVEN_OR_ODD
  double accuracy;  // in percent
} job;

static calx_module *configure_model(calx_trainer *trainer, void *self)
{
  const job *j = calx_trainer_user(trainer);
  calx_metric **accuracy = self;
  *accuracy = calx_trainer_add_metric(
      trainer,
      calx_metric_accuracy(.task = "multiclass", .num_classes = j->classes));
  calx_module *model = calx_nn_sequential(NULL, NULL);
  calx_module *backbone = mnist_backbone(model, "backbone");
  calx_nn_linear(model, "head", MNIST_FEATURES, j->classes);
  if (j->classes == EVEN_OR_ODD) {
    calx_scope_set_error(calx_module_load_from_checkpoint(
        backbone, CHECKPOINT, .prefix = "backbone.", .not_strict = true));
  }
  return model;
}

static void configure_optimizers(calx_trainer *trainer, void *self)
{
  const job *j = calx_trainer_user(trainer);
  calx_optimizer *adam = calx_adam(calx_trainer_model(trainer), .lr = j->a.lr);
  calx_trainer_add_optimizer(trainer, adam);
}

static calx_tensor *target_of(calx_trainer *trainer, const calx_batch *batch)
{
  const job *j = calx_trainer_user(trainer);
  return calx_remainder(batch->target, j->classes);
}

static calx_tensor *training_step(calx_trainer *trainer, void *self,
                                  const calx_batch *batch, int64_t batch_idx)
{
  calx_tensor *logits = calx_forward(calx_trainer_model(trainer), batch->data);
  calx_tensor *loss = calx_cross_entropy(logits, target_of(trainer, batch));
  calx_trainer_log(trainer, "train_loss", loss, .prog_bar = true);
  return loss;
}

static calx_tensor *validation_step(calx_trainer *trainer, void *self,
                                    const calx_batch *batch, int64_t batch_idx)
{
  calx_metric *accuracy = *(calx_metric **)self;
  calx_tensor *logits = calx_forward(calx_trainer_model(trainer), batch->data);
  calx_metric_update(accuracy, logits, target_of(trainer, batch));
  calx_trainer_log_metric(trainer, "accuracy", accuracy, NULL);
  return NULL;
}

static calx_status *learn(job *j, const calx_trainer_options *options,
                          calx_dataset *train, calx_dataset *test)
{
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(calx_metric *), .user = j,
                            .configure_model = configure_model,
                            .configure_optimizers = configure_optimizers,
                            .training_step = training_step,
                            .validation_step = validation_step);
  calx_loader *batches = calx_loader_new(train, .batch_size = j->a.batch_size,
                                         .shuffle = true, .drop_last = true);
  calx_loader *tests = calx_loader_new(test, .batch_size = 1000);
  calx_trainer *trainer = calx_trainer_new_with(options);
  calx_status *status = calx_trainer_fit(
      trainer, &module, .train_dataloader = batches, .val_dataloader = tests);
  if (status == NULL)
    status = calx_trainer_save_checkpoint(trainer, CHECKPOINT);
  j->accuracy = 100 * calx_trainer_callback_metric(trainer, "accuracy");
  printf("accuracy %.2f%%\n", j->accuracy);
  calx_trainer_free(trainer), calx_loader_free(batches),
      calx_loader_free(tests);
  return status;
}

int main(int argc, char **argv)
{
  calx_trainer_options options = CALX_TRAINER_OPTIONS(.max_epochs = 10);
  job j = { .a = { .batch_size = 64, .lr = 3e-3 }, .classes = DIGITS };
  trainer_options_read(
      argc, argv,
      "trainer_transfer [--data DIR] [--batch-size B] [--lr X] [--target PCT]",
      &options, &j.a);
  calx_dataset *digits, *tests;
  calx_status *status = calx_dataset_mnist(j.a.data, &digits, &tests);
  calx_dataset *few = calx_dataset_range(digits, 0, FEW);
  calx_trainer_options first = options;
  first.max_epochs = 1;
  if (status == NULL) status = learn(&j, &first, digits, tests);
  calx_callback *finetuning =
      calx_backbone_finetuning(.unfreeze_backbone_at_epoch = 5,
                               .no_train_bn = true);
  options.callbacks = &finetuning, options.n_callbacks = 1;
  j.classes = EVEN_OR_ODD;
  if (status == NULL) status = learn(&j, &options, few, tests);
  calx_status_print(stderr, status);
  calx_callback_free(finetuning);
  calx_dataset_free(few), calx_dataset_free(digits), calx_dataset_free(tests);
  calx_shutdown();
  return status != NULL ? 1 : j.accuracy >= j.a.target ? 0 : 21;
}
