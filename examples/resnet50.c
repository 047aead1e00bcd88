// Trains ResNet-50 on all devices at once, on images that are only drawn, as
// PyTorch/XLA's test_train_imagenet.py --fake_data does on a TPU pod: it shows
// how fast a machine is.
//
//   CPU_NUM_DEVICES=2 resnet50 [--fake_data] [--epochs N] [--batch-size B]
//                              [--steps N] [--image-size S] [--lr X] [--bf16]
//                              [--target LOSS] [--seed N]
//   calx run --hosts a,b -n 4 resnet50 …
//
// The batch size is each rank's, the rate is for 256 images of all ranks. Each
// epoch has the same images: with few --steps the model learns them by heart.
// Exit code 21: the last loss stayed above --target.
#include <calx/calx.h>
#include <string.h>

#include "args.h"
#include "epoch.h"
#include "resnet.h"

enum { CLASSES = 1000, IMAGES = 50000 };
#define ABOVE "the last loss is above"

typedef struct {
  arguments a;
  calx_dataset *images;
} job;

static calx_status *train(resnet *m, calx_optimizer *opt, calx_loader *loader,
                          const job *j, int64_t epoch, double *last)
{
  calx_batch batch;
  calx_progress *line;
  calx_status *status = epoch_begin(epoch, loader, "images", &line);
  while (status == NULL && calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    if (j->a.bf16) calx_autocast_begin(CALX_BF16);
    calx_tensor *logits = calx_forward(m->root, batch.data);
    calx_tensor *loss = calx_cross_entropy(logits, batch.target);
    if (j->a.bf16) calx_autocast_end();
    calx_backward(loss);
    loss = calx_dist_step(opt, loss);  // mean over the ranks
    *last = calx_progress_value(line, "loss", loss);
    if (batch.index + 1 == calx_loader_size(loader)) *last = calx_item(loss);
    calx_progress_step(line, batch.size * calx_world_size());
    status = calx_scope_end(scope);
  }
  return epoch_end(line, status);
}

// What each rank runs, on its own device.
static calx_status *rank(int index, void *user)
{
  (void)index;
  job *j = user;
  resnet m;
  double last = 0;
  int64_t together = j->a.batch_size * calx_world_size();
  int64_t size = j->a.steps > 0 ? j->a.steps * together : IMAGES;
  calx_manual_seed((uint64_t)j->a.seed);  // all ranks begin with equal weights
  CALX_TRY(resnet_init(&m, (const int[]){ 3, 4, 6, 3 }, CLASSES));
  calx_optimizer *opt = calx_sgd(m.root, .lr = j->a.lr * (double)together / 256,
                                 .momentum = 0.9, .weight_decay = 1e-4);
  calx_dataset *images =
      calx_dataset_range(j->images, 0, size < IMAGES ? size : IMAGES);
  calx_sampler *mine =
      calx_distributed_sampler(images, .seed = (uint64_t)j->a.seed);
  calx_loader *batches = calx_loader_new(images, .batch_size = j->a.batch_size,
                                         .sampler = mine, .drop_last = true);
  calx_loader *loader = calx_mp_device_loader(batches, calx_device_current());
  calx_status *status = calx_optimizer_error(opt);
  for (int64_t e = 1; status == NULL && e <= j->a.epochs; e++) {
    status = train(&m, opt, loader, j, e, &last);
  }
  if (status == NULL && !(last <= j->a.target)) {
    status =
        calx_status_new(CALX_OUT_OF_RANGE, ABOVE " %g: %g", j->a.target, last);
  }
  calx_loader_free(loader), calx_loader_free(batches), calx_sampler_free(mine);
  calx_dataset_free(images);
  calx_optimizer_free(opt), calx_module_free(m.root);
  return status;
}

int main(int argc, char **argv)
{
  job j = { .a = { .epochs = 1,
                   .batch_size = 128,
                   .lr = 0.1,
                   .target = 100,
                   .image_size = 224 } };
  args_read(argc, argv,
            "resnet50 [--fake_data] [--epochs N] [--batch-size B] [--steps N] "
            "[--image-size S] [--lr X] [--bf16] [--target LOSS] [--seed N]",
            &j.a);
  int64_t side = j.a.image_size;
  j.images = calx_dataset_fake(IMAGES, .image_size = CALX_SHAPE(3, side, side),
                               .num_classes = CLASSES);
  calx_status *status = calx_launch(rank, &j);
  // The rank that failed may be in another process: its message comes here.
  bool above = strstr(calx_status_message(status), ABOVE) != NULL;
  calx_status_print(stderr, status);
  if (status != NULL) return above ? 21 : 1;
  calx_dataset_free(j.images);
  calx_shutdown();
  return 0;
}
