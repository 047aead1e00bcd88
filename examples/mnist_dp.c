// Trains the MNIST CNN of the PyTorch/XLA documentation on several XLA devices
// in step: a rank for each, with its share of the images.
//
//   CPU_NUM_DEVICES=4 mnist_dp [--data DIR] [--epochs N] [--batch-size B]
//                              [--lr X] [--target PCT] [--seed N]
//   calx run -n 4 mnist_dp …        mpirun -n 4 mnist_dp …
//
// The batch size and the learning rate are each rank's: the whole batch is B
// times the ranks, and so is the rate. DIR as for mnist.c. Exit code 21: the
// best accuracy stayed below --target.
#include <calx/calx.h>
#include <stdlib.h>
#include <string.h>

#include "accuracy.h"
#include "args.h"
#include "mnist_model.h"

#define BELOW "the best accuracy is below"

typedef struct {  // the same for all ranks
  long epochs, batch_size;
  uint64_t seed;
  double lr, target;
  calx_dataset *train, *test;
} run;

static calx_status *train(mnist *m, calx_optimizer *opt, calx_loader *loader,
                          long epoch)
{
  calx_batch batch;
  calx_status *status = NULL;
  char label[32];
  long steps = (long)calx_loader_size(loader);
  if (steps == 0) {
    return calx_status_new(
        CALX_INVALID_ARGUMENT,
        "--batch-size is more than there are images for a rank");
  }
  snprintf(label, sizeof label, "Epoch %ld", epoch);
  calx_progress *line =
      calx_progress_new(label, steps, .every = 20, .unit = "images");
  calx_module_train(m->root, true);
  while (status == NULL && calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    calx_tensor *output = calx_forward(m->root, batch.data);
    calx_tensor *loss = calx_nll_loss(output, batch.target);
    calx_backward(loss);
    loss = calx_dist_step(opt, loss);  // mean over the ranks
    calx_progress_value(line, "loss", loss);
    calx_progress_step(line, batch.size * calx_world_size());
    status = calx_scope_end(scope);
  }
  calx_progress_end(line);
  return status != NULL ? status : calx_scope_take_error();
}

// What each rank runs, on its own device.
static calx_status *rank(int index, void *user)
{
  (void)index;
  run *r = user;
  mnist m;
  calx_manual_seed(r->seed);  // all ranks' models begin with the same numbers
  calx_status *status = mnist_init(&m);
  double lr = r->lr * calx_world_size();
  calx_optimizer *opt = calx_sgd(m.root, .lr = lr, .momentum = 0.5);
  calx_sampler *mine = calx_distributed_sampler(r->train, .seed = r->seed);
  calx_sampler *rest = calx_distributed_sampler(r->test, .no_shuffle = true);
  calx_loader *batches = calx_loader_new(r->train, .batch_size = r->batch_size,
                                         .sampler = mine, .drop_last = true);
  calx_loader *tests =
      calx_loader_new(r->test, .batch_size = 500, .sampler = rest);
  calx_loader *loader = calx_mp_device_loader(batches, calx_device_current());
  if (status == NULL) status = calx_optimizer_error(opt);
  double accuracy = 0, best = 0;
  for (long epoch = 1; status == NULL && epoch <= r->epochs; epoch++) {
    status = train(&m, opt, loader, epoch);
    if (status == NULL) status = accuracy_of(m.root, tests, &accuracy);
    if (status != NULL) break;
    calx_master_print("Epoch %ld accuracy %.2f%%\n", epoch, accuracy);
    best = accuracy > best ? accuracy : best;
  }
  if (status == NULL) calx_master_print("Max Accuracy: %.2f%%\n", best);
  if (status == NULL && best < r->target) {
    status = calx_status_new(CALX_OUT_OF_RANGE, BELOW " %.2f%%: %.2f%%",
                             r->target, best);
  }
  calx_loader_free(loader), calx_loader_free(batches), calx_loader_free(tests);
  calx_sampler_free(mine), calx_sampler_free(rest);
  calx_optimizer_free(opt), calx_module_free(m.root);
  return status;
}

int main(int argc, char **argv)
{
  const char *data = NULL;
  run r = { .epochs = 10, .batch_size = 128, .lr = 0.01 };
  static const struct option names[] = {
    { "data", 1, 0, 'd' }, { "epochs", 1, 0, 'e' }, { "batch-size", 1, 0, 'b' },
    { "lr", 1, 0, 'l' },   { "target", 1, 0, 't' }, { "seed", 1, 0, 's' },
    { "help", 0, 0, 'h' }, { 0, 0, 0, 0 }
  };
  for (int o; (o = getopt_long(argc, argv, "", names, NULL)) != -1;) {
    switch (o) {
      case 'd': data = optarg; break;
      case 'e': r.epochs = arg_count(argv, "epochs", 1, 1000000); break;
      case 'b': r.batch_size = arg_count(argv, "batch-size", 1, 1 << 20); break;
      case 'l': r.lr = arg_number(argv, "lr", 1e30); break;
      case 't': r.target = arg_number(argv, "target", 100); break;
      case 's': r.seed = (uint64_t)arg_count(argv, "seed", 0, INT64_MAX); break;
      default:
        puts(
            "mnist_dp [--data DIR] [--epochs N] [--batch-size B] [--lr X] "
            "[--target PCT] [--seed N]");
        return o == 'h' ? 0 : 2;
    }
  }
  arg_end(argc, argv);
  calx_status *status = calx_dataset_mnist(data, &r.train, &r.test);
  if (status == NULL) status = calx_launch(rank, &r);
  // The rank that failed may be in another process: its message comes here.
  bool below = strstr(calx_status_message(status), BELOW) != NULL;
  calx_status_print(stderr, status);
  if (status != NULL) return below ? 21 : 1;
  calx_dataset_free(r.train), calx_dataset_free(r.test);
  calx_shutdown();
  return 0;
}
