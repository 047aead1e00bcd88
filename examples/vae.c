// Trains a variational autoencoder on digits (D. Kingma and M. Welling, 2014),
// and draws some of its own.
//
//   vae [--data DIR] [--epochs N] [--batch-size B] [--lr X] [--target BITS]
//       [--seed N]
//
// DIR as for mnist.c. The loss is the negative evidence lower bound: how many
// nats describe a digit. Exit code 21: after the last epoch it is above
// --target bits a pixel for the test's digits.
#include <calx/calx.h>
#include <math.h>

#include "args.h"
#include "epoch.h"

enum { PIXELS = 784, WIDTH = 400, CODE = 20 };

typedef struct {
  calx_module *root, *fc1, *fc21, *fc22, *fc3, *fc4;
} vae;

static calx_status *vae_init(vae *m)
{
  m->root = calx_module_new("VAE", NULL, NULL);
  m->fc1 = calx_nn_linear(m->root, "fc1", PIXELS, WIDTH);
  m->fc21 = calx_nn_linear(m->root, "fc21", WIDTH, CODE);
  m->fc22 = calx_nn_linear(m->root, "fc22", WIDTH, CODE);
  m->fc3 = calx_nn_linear(m->root, "fc3", CODE, WIDTH);
  m->fc4 = calx_nn_linear(m->root, "fc4", WIDTH, PIXELS);
  return calx_module_error(m->root);
}

// The logits of the pixels.
static calx_tensor *decode(vae *m, calx_tensor *z)
{
  return calx_forward(m->fc4, calx_relu(calx_forward(m->fc3, z)));
}

// The mean negative bound of a batch's digits: what the code costs, and what it
// misses.
static calx_tensor *bound(vae *m, calx_tensor *images)
{
  // MNIST's normalisation undone: pixels from 0 to 1
  calx_tensor *x = calx_add(calx_mul(images, 0.3081), 0.1307);
  x = calx_clamp(calx_flatten(x, .start_dim = 1), 0, 1);
  calx_tensor *h = calx_relu(calx_forward(m->fc1, x));
  calx_tensor *mu = calx_forward(m->fc21, h);
  calx_tensor *logvar = calx_forward(m->fc22, h);
  calx_tensor *std = calx_exp(calx_mul(logvar, 0.5));
  calx_tensor *z = calx_add(mu, calx_mul(calx_randn_like(std), std));
  calx_tensor *missed = calx_binary_cross_entropy_with_logits(
      decode(m, z), x, .reduction = CALX_SUM);
  calx_tensor *terms = calx_sub(calx_add(calx_square(mu), calx_exp(logvar)),
                                calx_add(logvar, 1));
  calx_tensor *cost = calx_mul(calx_sum(terms), 0.5);
  return calx_div(calx_add(missed, cost), calx_tensor_dim(x, 0));
}

static calx_status *train(vae *m, calx_optimizer *opt, calx_loader *loader,
                          int64_t epoch)
{
  calx_batch batch;
  calx_progress *line;
  calx_status *status = epoch_begin(epoch, loader, "images", &line);
  while (status == NULL && calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    calx_tensor *loss = bound(m, batch.data);
    calx_backward(loss);
    calx_optimizer_step(opt);
    calx_sync(loss);
    calx_progress_value(line, "loss", loss);
    calx_progress_step(line, batch.size);
    status = calx_scope_end(scope);
  }
  return epoch_end(line, status);
}

static calx_status *test(vae *m, calx_loader *loader, double *bits)
{
  calx_batch batch;
  double nats = 0;
  while (calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_no_grad_begin();  // ends with the scope
    nats += calx_item(bound(m, batch.data)) / (double)calx_loader_size(loader);
    CALX_TRY(calx_scope_end(scope));
  }
  *bits = nats / PIXELS / log(2);
  return calx_scope_take_error();
}

// Decodes random codes and prints the digits side by side.
static calx_status *sample(vae *m)
{
  enum { COUNT = 5 };
  float p[COUNT][28][28];
  calx_scope *scope = calx_scope_begin();
  calx_no_grad_begin();
  calx_tensor *z = calx_randn(CALX_SHAPE(COUNT, CODE));
  CALX_TRY(calx_tensor_read(calx_sigmoid(decode(m, z)), p, sizeof p));
  for (int y = 0; y < 28; y += 2) {  // a character is twice as high as wide
    for (int i = 0; i < COUNT * 28; i++) {
      putchar(" .:+#"[(int)(4.999F * p[i / 28][y][i % 28])]);
    }
    putchar('\n');
  }
  return calx_scope_end(scope);
}

int main(int argc, char **argv)
{
  arguments a = { .epochs = 10, .batch_size = 128, .lr = 1e-3, .target = 100 };
  args_read(argc, argv,
            "vae [--data DIR] [--epochs N] [--batch-size B] [--lr X] "
            "[--target BITS] [--seed N]",
            &a);
  calx_dataset *sets[2];
  vae m;
  double bits = 0;
  calx_manual_seed((uint64_t)a.seed);
  calx_status *status = calx_dataset_mnist(a.data, &sets[0], &sets[1]);
  if (status == NULL) status = vae_init(&m);
  if (status != NULL) return calx_status_print(stderr, status), 1;
  calx_optimizer *opt = calx_adam(m.root, .lr = a.lr);
  calx_loader *batches =
      calx_loader_new(sets[0], .batch_size = a.batch_size, .shuffle = true,
                      .drop_last = true, .seed = (uint64_t)a.seed);
  calx_loader *tests = calx_loader_new(sets[1], .batch_size = 1000);
  status = calx_optimizer_error(opt);
  for (int64_t e = 1; status == NULL && e <= a.epochs; e++) {
    status = train(&m, opt, batches, e);
    if (status == NULL) status = test(&m, tests, &bits);
    if (status == NULL) printf("Epoch %ld: %.4f bits a pixel\n", (long)e, bits);
  }
  if (status == NULL) status = sample(&m);
  if (status != NULL) return calx_status_print(stderr, status), 1;
  calx_loader_free(tests), calx_loader_free(batches);
  calx_optimizer_free(opt), calx_module_free(m.root);
  calx_dataset_free(sets[0]), calx_dataset_free(sets[1]);
  calx_shutdown();
  return bits <= a.target ? 0 : 21;
}
