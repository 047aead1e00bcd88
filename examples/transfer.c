// Loads the MNIST model that PyTorch has saved, freezes it and trains a new
// last layer on it for another question: is the digit odd?
//
//   transfer [--weights FILE.pt] [--data DIR] [--epochs N] [--batch-size B]
//            [--lr X] [--target PCT] [--seed N]
//
// FILE holds the state dict of the model of mnist.c, which is that of PyTorch/
// XLA's documentation; without it the features are those of random weights. DIR
// as for mnist.c. Only 512 digits train. Exit code 21: the accuracy after the
// last epoch is below --target.
#include <calx/calx.h>

#include "args.h"
#include "epoch.h"
#include "mnist_model.h"

typedef struct {
  mnist base;
  calx_module *head;
} transfer;

static calx_status *load(calx_module *model, const char *path)
{
  calx_value *dict;
  CALX_TRY(calx_load(path, &dict));
  calx_status *status = calx_module_load_state_dict(model, dict);
  calx_value_free(dict);
  return status;
}

static calx_status *transfer_init(transfer *m, const char *weights)
{
  CALX_TRY(mnist_init(&m->base));
  if (weights != NULL) CALX_TRY(load(m->base.root, weights));
  calx_module_requires_grad(m->base.root, false);
  m->head = calx_nn_linear(m->base.root, "head", 50, 2);  // not frozen
  calx_module_train(m->base.root, false);  // the statistics stay PyTorch's
  return calx_module_error(m->base.root);
}

// Logits (N, 2): even, odd.
static calx_tensor *forward(transfer *m, calx_tensor *images)
{
  return calx_forward(m->head, mnist_features(&m->base, images));
}

static calx_status *train(transfer *m, calx_optimizer *opt, calx_loader *loader,
                          int64_t epoch)
{
  calx_batch batch;
  calx_progress *line;
  calx_status *status = epoch_begin(epoch, loader, "images", &line);
  while (status == NULL && calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    calx_tensor *odd = calx_remainder(batch.target, 2);
    calx_tensor *loss = calx_cross_entropy(forward(m, batch.data), odd);
    calx_backward(loss);
    calx_optimizer_step(opt);
    calx_sync(loss);
    calx_progress_value(line, "loss", loss);
    calx_progress_step(line, batch.size);
    status = calx_scope_end(scope);
  }
  return epoch_end(line, status);
}

static calx_status *test(transfer *m, calx_loader *loader, double *accuracy)
{
  calx_batch batch;
  double right = 0, all = 0;
  while (calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_no_grad_begin();  // ends with the scope
    calx_tensor *odd = calx_remainder(batch.target, 2);
    calx_tensor *guess =
        calx_argmax(forward(m, batch.data), .dims = CALX_DIMS(1));
    right += calx_item(calx_sum(calx_eq(guess, odd)));
    all += (double)batch.size;
    CALX_TRY(calx_scope_end(scope));
  }
  *accuracy = 100 * right / all;
  return calx_scope_take_error();
}

int main(int argc, char **argv)
{
  arguments a = { .epochs = 20, .batch_size = 64, .lr = 0.01 };
  args_read(argc, argv,
            "transfer [--weights FILE.pt] [--data DIR] [--epochs N] "
            "[--batch-size B] [--lr X] [--target PCT] [--seed N]",
            &a);
  calx_dataset *sets[2], *few;
  transfer m;
  double accuracy = 0;
  calx_manual_seed((uint64_t)a.seed);
  calx_status *status = calx_dataset_mnist(a.data, &sets[0], &sets[1]);
  if (status == NULL) status = transfer_init(&m, a.weights);
  if (status != NULL) return calx_status_print(stderr, status), 1;
  few = calx_dataset_range(sets[0], 0, 512);
  calx_loader *batches =
      calx_loader_new(few, .batch_size = a.batch_size, .shuffle = true,
                      .drop_last = true, .seed = (uint64_t)a.seed);
  calx_loader *tests = calx_loader_new(sets[1], .batch_size = 1000);
  calx_optimizer *opt = calx_adam(m.base.root, .lr = a.lr);  // the head alone
  status = calx_optimizer_error(opt);
  for (int64_t e = 1; status == NULL && e <= a.epochs; e++) {
    status = train(&m, opt, batches, e);
    if (status == NULL) status = test(&m, tests, &accuracy);
    if (status == NULL) printf("Epoch %ld: %.2f%%\n", (long)e, accuracy);
  }
  if (status != NULL) return calx_status_print(stderr, status), 1;
  calx_loader_free(tests), calx_loader_free(batches);
  calx_optimizer_free(opt), calx_module_free(m.base.root);
  calx_dataset_free(few);
  calx_dataset_free(sets[0]), calx_dataset_free(sets[1]);
  calx_shutdown();
  return accuracy >= a.target ? 0 : 21;
}
