// Trains the MNIST CNN of the PyTorch/XLA documentation on an XLA device.
//
//   mnist [--data DIR] [--epochs N] [--batch-size B] [--lr X] [--target PCT]
//         [--seed N]
//
// DIR holds the IDX files, plain or .gz; without train-*, the first 8,000
// images of t10k-* train and the others test. Without --data, drawn digits.
// Exit code 21: the best accuracy stayed below --target.
#include <calx/calx.h>
#include <math.h>
#include <stdlib.h>

#include "args.h"

typedef struct {
  calx_module *root, *conv1, *bn1, *conv2, *bn2, *fc1, *fc2;
} mnist;

static calx_tensor *forward(void *self, calx_tensor *x)
{
  mnist *m = self;
  x = calx_relu(calx_max_pool2d(calx_forward(m->conv1, x), 2));
  x = calx_forward(m->bn1, x);
  x = calx_relu(calx_max_pool2d(calx_forward(m->conv2, x), 2));
  x = calx_forward(m->bn2, x);
  x = calx_flatten(x, .start_dim = 1);
  x = calx_relu(calx_forward(m->fc1, x));
  x = calx_forward(m->fc2, x);
  return calx_log_softmax(x, 1);
}

static calx_status *mnist_init(mnist *m)
{
  m->root = calx_module_new("MNIST", forward, m);
  m->conv1 = calx_nn_conv2d(m->root, "conv1", 1, 10, 5);
  m->bn1 = calx_nn_batch_norm2d(m->root, "bn1", 10);
  m->conv2 = calx_nn_conv2d(m->root, "conv2", 10, 20, 5);
  m->bn2 = calx_nn_batch_norm2d(m->root, "bn2", 20);
  m->fc1 = calx_nn_linear(m->root, "fc1", 320, 50);
  m->fc2 = calx_nn_linear(m->root, "fc2", 50, 10);
  return calx_module_error(m->root);
}

static calx_status *train(mnist *m, calx_optimizer *opt, calx_loader *loader,
                          long epoch)
{
  calx_batch batch;
  calx_status *status = NULL;
  char label[32];
  long steps = (long)calx_loader_size(loader);
  if (steps == 0) {
    return calx_status_new(CALX_INVALID_ARGUMENT,
                           "--batch-size is more than there are images");
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
    calx_optimizer_step(opt);
    calx_sync(loss);  // compiles once, then runs the step
    double value = calx_progress_value(line, "loss", loss);
    if ((long)batch.index + 1 == steps) value = calx_item(loss);  // waits
    calx_progress_step(line, batch.size);
    status = calx_scope_end(scope);
    if (status == NULL && isnan(value)) {
      status = calx_status_new(CALX_OUT_OF_RANGE, "the loss is NaN");
    }
  }
  calx_progress_end(line);
  return status != NULL ? status : calx_scope_take_error();
}

static calx_status *test(mnist *m, calx_loader *loader, double *accuracy)
{
  calx_batch batch;
  double right = 0, all = 0;
  calx_module_train(m->root, false);
  while (calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_no_grad_begin();  // ends with the scope
    calx_tensor *output = calx_forward(m->root, batch.data);
    calx_tensor *guess = calx_argmax(output, .dims = CALX_DIMS(1));
    right += calx_item(calx_sum(calx_eq(guess, batch.target)));
    all += (double)batch.size;
    CALX_TRY(calx_scope_end(scope));
  }
  *accuracy = 100 * right / all;
  return calx_scope_take_error();
}

int main(int argc, char **argv)
{
  const char *data = NULL;
  long epochs = 10, batch_size = 128, seed = 0;
  double lr = 0.01, target = 0, best = 0, accuracy = 0;
  static const struct option names[] = {
    { "data", 1, 0, 'd' }, { "epochs", 1, 0, 'e' }, { "batch-size", 1, 0, 'b' },
    { "lr", 1, 0, 'l' },   { "target", 1, 0, 't' }, { "seed", 1, 0, 's' },
    { "help", 0, 0, 'h' }, { 0, 0, 0, 0 }
  };
  for (int o; (o = getopt_long(argc, argv, "", names, NULL)) != -1;) {
    switch (o) {
      case 'd': data = optarg; break;
      case 'e': epochs = arg_count(argv, "epochs", 1, 1000000); break;
      case 'b': batch_size = arg_count(argv, "batch-size", 1, 1 << 20); break;
      case 'l': lr = arg_number(argv, "lr", 1e30); break;
      case 't': target = arg_number(argv, "target", 100); break;
      case 's': seed = arg_count(argv, "seed", 0, INT64_MAX); break;
      default:
        puts(
            "mnist [--data DIR] [--epochs N] [--batch-size B] [--lr X] "
            "[--target PCT] [--seed N]");
        return o == 'h' ? 0 : 2;
    }
  }
  arg_end(argc, argv);
  calx_dataset *sets[2];
  mnist m;
  calx_manual_seed((uint64_t)seed);
  calx_status *status = calx_dataset_mnist(data, &sets[0], &sets[1]);
  if (status == NULL) status = mnist_init(&m);
  if (status != NULL) return calx_status_print(stderr, status), 1;
  calx_optimizer *opt = calx_sgd(m.root, .lr = lr, .momentum = 0.5);
  calx_loader *batches =
      calx_loader_new(sets[0], .batch_size = batch_size, .shuffle = true,
                      .drop_last = true, .seed = (uint64_t)seed);
  calx_loader *tests = calx_loader_new(sets[1], .batch_size = 1000);
  status = calx_optimizer_error(opt);
  for (long epoch = 1; status == NULL && epoch <= epochs; epoch++) {
    status = train(&m, opt, batches, epoch);
    if (status == NULL) status = test(&m, tests, &accuracy);
    if (status == NULL) printf("Epoch %ld accuracy %.2f%%\n", epoch, accuracy);
    best = accuracy > best ? accuracy : best;
  }
  if (status != NULL) return calx_status_print(stderr, status), 1;
  printf("Max Accuracy: %.2f%%\n", best);
  calx_loader_free(tests), calx_loader_free(batches);
  calx_optimizer_free(opt), calx_module_free(m.root);
  calx_dataset_free(sets[0]), calx_dataset_free(sets[1]);
  calx_shutdown();
  return best < target ? 21 : 0;
}
