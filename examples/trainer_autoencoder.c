// The autoencoder of Lightning's "Lightning in 15 minutes", by the trainer: it
// codes a digit in three numbers. Then the encoder of the saved checkpoint is
// used without the trainer.
//
//   trainer_autoencoder [--data DIR] [--batch-size B] [--lr X] [--target LOSS]
//                       [--max_epochs=N] [--limit_train_batches=N] […]
//
// DIR as for mnist.c. Exit code 21: the mean squared error of the digits that
// test is above --target.
#include "trainer_options.h"

enum { PIXELS = 28 * 28, CODE = 3 };

typedef struct {
  calx_module *root, *encoder, *decoder;
} autoencoder;

static calx_tensor *forward(void *self, calx_tensor *x)
{
  return calx_forward(((autoencoder *)self)->encoder, x);
}

static calx_module *configure_model(calx_trainer *trainer, void *self)
{
  autoencoder *m = self;
  m->root = calx_module_new("LitAutoEncoder", forward, m);
  m->encoder = calx_nn_sequential(m->root, "encoder");
  calx_nn_linear(m->encoder, NULL, PIXELS, 64);
  calx_nn_relu(m->encoder, NULL);
  calx_nn_linear(m->encoder, NULL, 64, CODE);
  m->decoder = calx_nn_sequential(m->root, "decoder");
  calx_nn_linear(m->decoder, NULL, CODE, 64);
  calx_nn_relu(m->decoder, NULL);
  calx_nn_linear(m->decoder, NULL, 64, PIXELS);
  return m->root;
}

static void configure_optimizers(calx_trainer *trainer, void *self)
{
  const arguments *a = calx_trainer_user(trainer);
  autoencoder *m = self;
  calx_trainer_add_optimizer(trainer, calx_adam(m->root, .lr = a->lr));
}

static calx_tensor *loss_of(autoencoder *m, const calx_batch *batch)
{
  calx_tensor *x = calx_flatten(batch->data, .start_dim = 1);
  calx_tensor *z = calx_forward(m->encoder, x);
  return calx_mse_loss(calx_forward(m->decoder, z), x);
}

static calx_tensor *training_step(calx_trainer *trainer, void *self,
                                  const calx_batch *batch, int64_t batch_idx)
{
  calx_tensor *loss = loss_of(self, batch);
  calx_trainer_log(trainer, "train_loss", loss, .prog_bar = true);
  return loss;
}

static calx_tensor *test_step(calx_trainer *trainer, void *self,
                              const calx_batch *batch, int64_t batch_idx)
{
  calx_trainer_log(trainer, "test_loss", loss_of(self, batch),
                   .sync_dist = true);
  return NULL;
}

// The codes of four images of noise.
static calx_status *embed(const char *checkpoint)
{
  autoencoder m;
  calx_module *model = configure_model(NULL, &m);
  calx_status *status = calx_module_load_from_checkpoint(model, checkpoint);
  calx_module_train(model, false);
  calx_tensor *images = calx_rand(CALX_SHAPE(4, PIXELS));
  puts("Predictions (4 image embeddings):");
  calx_print(calx_forward(model, images));
  if (status == NULL) status = calx_scope_take_error();
  calx_module_free(model);
  return status;
}

int main(int argc, char **argv)
{
  calx_trainer_options options = CALX_TRAINER_OPTIONS(.max_epochs = 1);
  arguments a = { .batch_size = 64, .lr = 1e-3, .target = 100 };
  trainer_options_read(
      argc, argv,
      "trainer_autoencoder [--data DIR] [--batch-size B] [--lr X] [--target LOSS]",
      &options, &a);
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(autoencoder), .user = &a,
                            .configure_model = configure_model,
                            .configure_optimizers = configure_optimizers,
                            .training_step = training_step,
                            .test_step = test_step);
  calx_dataset *train, *test;
  calx_status *status = calx_dataset_mnist(a.data, &train, &test);
  calx_loader *batches =
      calx_loader_new(train, .batch_size = a.batch_size, .shuffle = true);
  calx_loader *tests = calx_loader_new(test, .batch_size = 500);
  calx_trainer *trainer = calx_trainer_new_with(&options);
  if (status == NULL)
    status = calx_trainer_fit(trainer, &module, .train_dataloader = batches);
  if (status == NULL)
    status = calx_trainer_test(trainer, &module, .test_dataloader = tests);
  double loss = calx_trainer_callback_metric(trainer, "test_loss");
  const char *saved = calx_model_checkpoint_best_model_path(
      calx_trainer_checkpoint_callback(trainer));
  if (status == NULL && *saved != '\0') status = embed(saved);
  int code = trainer_exit_code(trainer, status, loss <= a.target);
  calx_trainer_free(trainer);
  calx_loader_free(batches), calx_loader_free(tests);
  calx_dataset_free(train), calx_dataset_free(test);
  calx_shutdown();
  return code;
}
