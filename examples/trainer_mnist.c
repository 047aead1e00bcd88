// Trains the MNIST CNN by the trainer, on as many devices as are asked for:
//
//   trainer_mnist [DEVICES]      0, or none given: all that there are
#include <calx/calx.h>
#include <stdlib.h>

#include "mnist_model.h"

static calx_module *configure_model(calx_trainer *trainer, void *self)
{
  (void)trainer;
  mnist *m = self;
  calx_status_free(mnist_init(m));  // the trainer reports the root's error
  return m->root;
}

static void configure_optimizers(calx_trainer *trainer, void *self)
{
  mnist *m = self;
  calx_optimizer *sgd = calx_sgd(m->root, .lr = 0.01, .momentum = 0.5);
  calx_trainer_add_optimizer(trainer, sgd);
}

static calx_tensor *training_step(calx_trainer *trainer, void *self,
                                  const calx_batch *batch, int64_t batch_idx)
{
  (void)batch_idx;
  calx_tensor *output = calx_forward(((mnist *)self)->root, batch->data);
  calx_tensor *loss = calx_nll_loss(output, batch->target);
  calx_trainer_log(trainer, "train_loss", loss, .prog_bar = true);
  return loss;
}

static calx_tensor *test_step(calx_trainer *trainer, void *self,
                              const calx_batch *batch, int64_t batch_idx)
{
  (void)batch_idx;
  calx_tensor *output = calx_forward(((mnist *)self)->root, batch->data);
  calx_tensor *guess = calx_argmax(output, .dims = CALX_DIMS(1));
  calx_tensor *right = calx_to_dtype(calx_eq(guess, batch->target), CALX_F32);
  calx_trainer_log(trainer, "test_acc", calx_mean(right), .sync_dist = true);
  return NULL;
}

int main(int argc, char **argv)
{
  static const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(mnist),
                            .configure_model = configure_model,
                            .configure_optimizers = configure_optimizers,
                            .training_step = training_step,
                            .test_step = test_step);
  calx_dataset *train, *test;
  calx_status *status = calx_dataset_mnist(NULL, &train, &test);
  calx_loader *batches = calx_loader_new(train, .batch_size = 64,
                                         .shuffle = true, .drop_last = true);
  calx_loader *tests = calx_loader_new(test, .batch_size = 500);
  calx_trainer *trainer =
      calx_trainer_new(.devices = argc > 1 ? atoi(argv[1]) : 0,
                       .max_epochs = 3);
  if (status == NULL) {
    status = calx_trainer_fit(trainer, &module, .train_dataloader = batches);
  }
  if (status == NULL) {
    status = calx_trainer_test(trainer, &module, .test_dataloader = tests);
  }
  calx_status_print(stderr, status);
  calx_trainer_free(trainer), calx_loader_free(batches),
      calx_loader_free(tests);
  calx_dataset_free(train), calx_dataset_free(test);
  calx_shutdown();
  return status != NULL;
}
