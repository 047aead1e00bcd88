// Trains the WeightSharingModule of PyTorch Lightning's page on TPUs as an
// autoencoder: the first and the third layer have one weight.
//
//   autoencoder [--epochs N] [--batch-size B] [--lr X] [--target LOSS]
//               [--seed N]
//
// The samples are drawn: 32 numbers, made of ten waves and noise. A linear code
// of ten numbers can keep the waves, and of the noise its part along them: the
// best mean squared error is 22/32 of the noise's variance, 0.0069. Exit code
// 21: that of the last epoch's test stayed above --target.
#include <calx/calx.h>

#include "args.h"
#include "drawn.h"
#include "epoch.h"

enum { INPUT = 32, CODE = 10 };

// ---- the samples ------------------------------------------------------------

static calx_status *draw(void *user, int64_t index, void *const *fields)
{
  uint64_t state = drawn_begin(*(uint64_t *)user, index);
  float *x = fields[0];
  for (int i = 0; i < INPUT; i++) x[i] = (float)(0.1 * drawn_normal(&state));
  for (int k = 0; k < CODE; k++) {
    double height = 2 * drawn(&state) - 1;
    for (int i = 0; i < INPUT; i++) {
      x[i] += (float)(height * cos(3.14159265 * k * (i + 0.5) / INPUT));
    }
  }
  return NULL;
}

static calx_dataset *waves(int64_t size, uint64_t *seed)
{
  static const calx_field field = { "x", CALX_F32, 1, { INPUT } };
  return calx_dataset_new(size, &field, 1, draw, seed, NULL);
}

// ---- the model --------------------------------------------------------------

typedef struct {
  calx_module *root, *layer_1, *layer_2, *layer_3;
} autoencoder;

static calx_tensor *forward(void *self, calx_tensor *x)
{
  autoencoder *m = self;
  return calx_forward(m->layer_2, calx_forward(m->layer_1, x));
}

static calx_status *autoencoder_init(autoencoder *m)
{
  m->root = calx_module_new("WeightSharingModule", forward, m);
  m->layer_1 = calx_nn_linear(m->root, "layer_1", INPUT, CODE, .no_bias = true);
  m->layer_2 = calx_nn_linear(m->root, "layer_2", CODE, INPUT, .no_bias = true);
  m->layer_3 = calx_nn_linear(m->root, "layer_3", INPUT, CODE, .no_bias = true);
  calx_module_tie(m->root, "layer_3.weight",
                  calx_module_find(m->root, "layer_1.weight"));
  return calx_module_error(m->root);
}

// ---- training ---------------------------------------------------------------

static calx_status *train(autoencoder *m, calx_optimizer *opt,
                          calx_loader *loader, int64_t epoch)
{
  calx_batch batch;
  calx_progress *line;
  calx_status *status = epoch_begin(epoch, loader, "samples", &line);
  while (status == NULL && calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    calx_tensor *code = calx_forward(m->layer_1, batch.data);
    calx_tensor *decoded = calx_forward(m->layer_2, code);
    calx_tensor *again = calx_forward(m->layer_3, decoded);
    calx_tensor *loss = calx_add(calx_mse_loss(decoded, batch.data),
                                 calx_mse_loss(again, code));
    calx_backward(loss);
    calx_optimizer_step(opt);
    calx_sync(loss);
    calx_progress_value(line, "loss", loss);
    calx_progress_step(line, batch.size);
    status = calx_scope_end(scope);
  }
  return epoch_end(line, status);
}

static calx_status *test(autoencoder *m, calx_loader *loader, double *error)
{
  calx_batch batch;
  *error = 0;
  while (calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_no_grad_begin();  // ends with the scope
    calx_tensor *decoded = calx_forward(m->root, batch.data);
    *error += calx_item(calx_mse_loss(decoded, batch.data)) /
              (double)calx_loader_size(loader);
    CALX_TRY(calx_scope_end(scope));
  }
  return calx_scope_take_error();
}

int main(int argc, char **argv)
{
  arguments a = { .epochs = 20, .batch_size = 64, .lr = 3e-3, .target = 100 };
  args_read(argc, argv,
            "autoencoder [--epochs N] [--batch-size B] [--lr X] "
            "[--target LOSS] [--seed N]",
            &a);
  uint64_t seed = (uint64_t)a.seed, seeds[] = { seed, ~seed };
  calx_dataset *sets[] = { waves(8192, &seeds[0]), waves(2048, &seeds[1]) };
  calx_loader *batches =
      calx_loader_new(sets[0], .batch_size = a.batch_size, .shuffle = true,
                      .drop_last = true, .seed = seed);
  calx_loader *tests = calx_loader_new(sets[1], .batch_size = 1024);
  autoencoder m;
  double error = 0;
  calx_manual_seed(seed);
  calx_status *status = autoencoder_init(&m);
  calx_optimizer *opt = calx_adam(m.root, .lr = a.lr);
  if (status == NULL) status = calx_optimizer_error(opt);
  for (int64_t e = 1; status == NULL && e <= a.epochs; e++) {
    status = train(&m, opt, batches, e);
    if (status == NULL) status = test(&m, tests, &error);
    if (status == NULL) printf("Epoch %ld error %.5f\n", (long)e, error);
  }
  if (status != NULL) return calx_status_print(stderr, status), 1;
  calx_optimizer_free(opt), calx_module_free(m.root);
  calx_loader_free(batches), calx_loader_free(tests);
  calx_dataset_free(sets[0]), calx_dataset_free(sets[1]);
  calx_shutdown();
  return error <= a.target ? 0 : 21;  // NaN: 21
}
