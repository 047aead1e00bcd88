// Trains ResNet-50 by the trainer on images that are only drawn, on all devices
// that there are: a port of PyTorch/XLA's test_train_imagenet.py, with its
// flags. It shows how fast a machine is.
//
//   trainer_imagenet --fake_data [--batch_size B] [--test_set_batch_size B]
//       [--num_epochs N] [--lr X] [--momentum X] [--image_size S]
//       [--blocks N] [--devices=8] [--precision=bf16-true] […]
//   calx run --tpu NAME -- ./trainer_imagenet --fake_data
//
// An epoch has 1.2 million images, a test 50,000, which the ranks share;
// --limit_train_batches and --limit_val_batches take fewer, the same ones in
// each epoch. The batch size is each rank's. With --blocks each part of the
// model has so many.
#include "args.h"
#include "resnet.h"

enum { CLASSES = 1000, TRAIN_IMAGES = 1200000, TEST_IMAGES = 50000 };

// The flags' numbers, which are the module's `user`.
enum { FAKE, BATCH, TEST_BATCH, EPOCHS, SIDE, BLOCKS, LR, MOMENTUM, FLAGS };

// ---- the model --------------------------------------------------------------

typedef struct {
  resnet net;
  calx_metric *accuracy;
} classifier;

static calx_module *configure_model(calx_trainer *trainer, void *self)
{
  classifier *c = self;
  const double *f = calx_trainer_user(trainer);
  int blocks = (int)f[BLOCKS], layers[] = { 3, 4, 6, 3 };
  for (int i = 0; blocks > 0 && i < 4; i++) layers[i] = blocks;
  c->accuracy = calx_trainer_add_metric(
      trainer,
      calx_metric_accuracy(.task = "multiclass", .num_classes = CLASSES));
  calx_scope_set_error(resnet_init(&c->net, layers, CLASSES));
  return c->net.root;
}

static void configure_optimizers(calx_trainer *trainer, void *self)
{
  const double *f = calx_trainer_user(trainer);
  calx_optimizer *sgd = calx_sgd(calx_trainer_model(trainer), .lr = f[LR],
                                 .momentum = f[MOMENTUM], .weight_decay = 1e-4);
  calx_trainer_add_optimizer(trainer, sgd);
}

static calx_tensor *training_step(calx_trainer *trainer, void *self,
                                  const calx_batch *batch, int64_t batch_idx)
{
  calx_tensor *logits = calx_forward(calx_trainer_model(trainer), batch->data);
  calx_tensor *loss = calx_cross_entropy(logits, batch->target);
  calx_trainer_log(trainer, "train_loss", loss, .prog_bar = true);
  return loss;
}

static calx_tensor *validation_step(calx_trainer *trainer, void *self,
                                    const calx_batch *batch, int64_t batch_idx)
{
  calx_metric *accuracy = ((classifier *)self)->accuracy;
  calx_tensor *logits = calx_forward(calx_trainer_model(trainer), batch->data);
  calx_metric_update(accuracy, logits, batch->target);
  calx_trainer_log_metric(trainer, "accuracy", accuracy, NULL);
  return NULL;
}

// ---- the command line -------------------------------------------------------

static void read_flags(int argc, char **argv, double *f)
{
  static const struct option names[] = { { "fake_data", 0, 0, 'f' },
                                         { "batch_size", 1, 0, 'n' },
                                         { "test_set_batch_size", 1, 0, 'n' },
                                         { "num_epochs", 1, 0, 'n' },
                                         { "image_size", 1, 0, 'n' },
                                         { "blocks", 1, 0, 'n' },
                                         { "lr", 1, 0, 'x' },
                                         { "momentum", 1, 0, 'x' },
                                         { 0, 0, 0, 0 } };
  for (int i, c; (c = getopt_long(argc, argv, "", names, &i)) != -1;) {
    if (c == '?') exit(2);
    const char *name = names[i].name;
    int64_t most = i == BLOCKS ? RESNET_BLOCKS / 4 : 1 << 20;
    f[i] = c == 'f'   ? 1
           : c == 'x' ? arg_number(argv, name, 1e30)
                      : (double)arg_count(argv, name, 1, most);
  }
  arg_end(argc, argv);
  if (f[FAKE] == 1) return;
  fprintf(stderr, "%s: --fake_data is wanted: there is no other\n", argv[0]);
  exit(2);
}

int main(int argc, char **argv)
{
  double f[FLAGS] = { 0, 128, 64, 18, 224, 0, 0.1, 0.9 };
  calx_trainer_options o = CALX_TRAINER_OPTIONS(.log_every_n_steps = 20);
  calx_status *status = calx_trainer_args(
      &o, &argc, argv, .own_names = (const char *[]){ "num_epochs", NULL });
  if (status != NULL) return calx_status_print(stderr, status), 2;
  read_flags(argc, argv, f);
  o.max_epochs = (int64_t)f[EPOCHS];
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(classifier), .user = f,
                            .configure_model = configure_model,
                            .configure_optimizers = configure_optimizers,
                            .training_step = training_step,
                            .validation_step = validation_step);
  calx_dims image = CALX_SHAPE(3, (int64_t)f[SIDE], (int64_t)f[SIDE]);
  calx_dataset *train = calx_dataset_fake(TRAIN_IMAGES, .image_size = image,
                                          .num_classes = CLASSES);
  calx_dataset *test =
      calx_dataset_fake(TEST_IMAGES, .image_size = image,
                        .num_classes = CLASSES, .random_offset = TRAIN_IMAGES);
  calx_loader *batches = calx_loader_new(train, .batch_size = (int64_t)f[BATCH],
                                         .drop_last = true);
  calx_loader *tests =
      calx_loader_new(test, .batch_size = (int64_t)f[TEST_BATCH]);
  calx_trainer *trainer = calx_trainer_new_with(&o);
  status = calx_trainer_fit(trainer, &module, .train_dataloader = batches,
                            .val_dataloader = tests);
  calx_status_print(stderr, status);
  double accuracy = calx_trainer_callback_metric(trainer, "accuracy");
  double loss = calx_trainer_callback_metric(trainer, "train_loss");
  if (status == NULL)
    printf("Loss: %.3f Accuracy: %.2f%%\n", loss, 100 * accuracy);
  int code = calx_trainer_exit_code(trainer);
  calx_trainer_free(trainer);
  calx_loader_free(batches), calx_loader_free(tests);
  calx_dataset_free(train), calx_dataset_free(test);
  calx_shutdown();
  return code;
}
