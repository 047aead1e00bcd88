// Trains a classifier of handwritten digits: trainer_mnist [--devices=8] […]
#include <calx/calx.h>

static calx_module *model(calx_trainer *trainer, void *self)
{
  calx_metric **accuracy = self;
  *accuracy = calx_trainer_add_metric(
      trainer, calx_metric_accuracy(.task = "multiclass", .num_classes = 10));
  calx_module *layers = calx_nn_sequential(NULL, NULL);
  calx_nn_flatten(layers, NULL);
  calx_nn_linear(layers, NULL, 28 * 28, 128);
  calx_nn_relu(layers, NULL);
  calx_nn_linear(layers, NULL, 128, 10);
  return layers;
}

static void optimizers(calx_trainer *trainer, void *self)
{
  calx_trainer_add_optimizer(trainer, calx_adam(calx_trainer_model(trainer)));
}

static calx_tensor *train(calx_trainer *trainer, void *self,
                          const calx_batch *batch, int64_t batch_idx)
{
  calx_tensor *logits = calx_forward(calx_trainer_model(trainer), batch->data);
  calx_tensor *loss = calx_cross_entropy(logits, batch->target);
  calx_trainer_log(trainer, "train_loss", loss, .prog_bar = true);
  return loss;
}

static calx_tensor *evaluate(calx_trainer *trainer, void *self,
                             const calx_batch *batch, int64_t batch_idx)
{
  calx_metric *accuracy = *(calx_metric **)self;
  calx_tensor *logits = calx_forward(calx_trainer_model(trainer), batch->data);
  calx_metric_update(accuracy, logits, batch->target);
  calx_trainer_log_metric(trainer, "accuracy", accuracy, NULL);
  return NULL;
}

int main(int argc, char **argv)
{
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(calx_metric *),
                            .configure_model = model, .training_step = train,
                            .configure_optimizers = optimizers,
                            .validation_step = evaluate, .test_step = evaluate);
  calx_dataset *seen, *unseen;
  calx_status_print(stderr, calx_dataset_mnist(NULL, &seen, &unseen));
  calx_loader *data = calx_loader_new(seen, .batch_size = 64, .shuffle = true,
                                      .drop_last = true);
  calx_loader *tests = calx_loader_new(unseen, .batch_size = 500);
  calx_trainer *trainer = calx_trainer_from_args(argc, argv, .max_epochs = 3);
  calx_status *status = calx_trainer_fit(
      trainer, &module, .train_dataloader = data, .val_dataloader = tests);
  if (status == NULL)
    status = calx_trainer_test(trainer, &module, .test_dataloader = tests);
  return calx_status_print(stderr, status), calx_trainer_exit_code(trainer);
}
