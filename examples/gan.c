// Trains a generative adversarial network: two models, two optimisers. The
// generator learns to draw points of eight clouds around the origin.
//
//   gan [--epochs N] [--batch-size B] [--lr X] [--target PCT] [--seed N]
//
// Of 4096 generated points an eighth should lie near each cloud. The result is
// how much of its eighth the cloud with the fewest points has. Exit code 21:
// after no epoch is it --target.
#include <calx/calx.h>

#include "args.h"
#include "drawn.h"
#include "epoch.h"

enum { CLOUDS = 8, NOISE = 16, WIDTH = 128, POINTS = 4096 };
static const double turn = 6.283185307179586 / CLOUDS;

static calx_status *draw(void *user, int64_t index, void *const *fields)
{
  uint64_t state = drawn_begin(*(uint64_t *)user, index);
  float *x = fields[0];
  double angle = turn * floor(CLOUDS * drawn(&state));
  x[0] = (float)(cos(angle) + 0.1 * drawn_normal(&state));
  x[1] = (float)(sin(angle) + 0.1 * drawn_normal(&state));
  return NULL;
}

// ---- the models -------------------------------------------------------------

typedef struct {
  calx_module *root, *fc1, *fc2, *fc3;
} mlp;

static calx_tensor *forward(void *self, calx_tensor *x)
{
  mlp *m = self;
  x = calx_leaky_relu(calx_forward(m->fc1, x), .negative_slope = 0.2);
  x = calx_leaky_relu(calx_forward(m->fc2, x), .negative_slope = 0.2);
  return calx_forward(m->fc3, x);
}

static calx_status *mlp_init(mlp *m, const char *kind, int64_t in, int64_t out)
{
  m->root = calx_module_new(kind, forward, m);
  m->fc1 = calx_nn_linear(m->root, "fc1", in, WIDTH);
  m->fc2 = calx_nn_linear(m->root, "fc2", WIDTH, WIDTH);
  m->fc3 = calx_nn_linear(m->root, "fc3", WIDTH, out);
  return calx_module_error(m->root);
}

typedef struct {
  mlp g, d;
  calx_optimizer *opt_g, *opt_d;
} gan;

static calx_status *gan_init(gan *m, double lr)
{
  CALX_TRY(mlp_init(&m->g, "Generator", NOISE, 2));
  CALX_TRY(mlp_init(&m->d, "Discriminator", 2, 1));
  m->opt_g = calx_adam(m->g.root, .lr = lr, .betas = { 0.5, 0.999 });
  m->opt_d = calx_adam(m->d.root, .lr = lr, .betas = { 0.5, 0.999 });
  return calx_optimizer_error(m->opt_d);
}

// ---- training ---------------------------------------------------------------

// What the discriminator says of x, beside 1 for real and 0 for generated.
static calx_tensor *judge(gan *m, calx_tensor *x, double real)
{
  calx_tensor *logits = calx_forward(m->d.root, x);
  calx_tensor *target = calx_full_like(logits, real);
  return calx_binary_cross_entropy_with_logits(logits, target);
}

static calx_status *train(gan *m, calx_loader *loader, int64_t epoch)
{
  calx_batch batch;
  calx_progress *line;
  calx_status *status = epoch_begin(epoch, loader, "samples", &line);
  while (status == NULL && calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_tensor *z = calx_randn(CALX_SHAPE(batch.size, NOISE));
    calx_tensor *fake = calx_forward(m->g.root, z);
    calx_optimizer_zero_grad(m->opt_d);
    calx_tensor *loss_d =
        calx_add(judge(m, batch.data, 1), judge(m, calx_detach(fake), 0));
    calx_backward(loss_d);
    calx_optimizer_step(m->opt_d);
    calx_optimizer_zero_grad(m->opt_g);
    calx_tensor *loss_g = judge(m, fake, 1);
    calx_backward(loss_g);
    calx_optimizer_step(m->opt_g);
    calx_sync(loss_d, loss_g);
    calx_progress_value(line, "loss_d", loss_d);
    calx_progress_value(line, "loss_g", loss_g);
    calx_progress_step(line, batch.size);
    status = calx_scope_end(scope);
  }
  return epoch_end(line, status);
}

static calx_status *test(gan *m, int64_t epoch, double *best)
{
  float centres[CLOUDS][2];
  for (int k = 0; k < CLOUDS; k++) {
    centres[k][0] = (float)cos(turn * k), centres[k][1] = (float)sin(turn * k);
  }
  calx_scope *scope = calx_scope_begin();
  calx_no_grad_begin();  // ends with the scope
  calx_tensor *c = calx_tensor_from(centres, CALX_F32, CALX_SHAPE(CLOUDS, 2));
  calx_tensor *x =
      calx_forward(m->g.root, calx_randn(CALX_SHAPE(POINTS, NOISE)));
  calx_tensor *near = calx_lt(calx_cdist(x, c), 0.3);  // three deviations
  calx_tensor *least = calx_min(calx_sum(near, .dims = CALX_DIMS(0)));
  double percent = 100.0 * CLOUDS / POINTS * calx_item(least);
  printf("Epoch %ld cloud %.1f%%\n", (long)epoch, percent);
  *best = percent > *best ? percent : *best;
  return calx_scope_end(scope);
}

int main(int argc, char **argv)
{
  arguments a = { .epochs = 15, .batch_size = 256, .lr = 1e-3 };
  args_read(argc, argv,
            "gan [--epochs N] [--batch-size B] [--lr X] [--target PCT] "
            "[--seed N]",
            &a);
  static const calx_field field = { "point", CALX_F32, 1, { 2 } };
  uint64_t seed = (uint64_t)a.seed;
  calx_dataset *set = calx_dataset_new(51200, &field, 1, draw, &seed, NULL);
  calx_loader *batches =
      calx_loader_new(set, .batch_size = a.batch_size, .shuffle = true,
                      .drop_last = true, .seed = seed);
  gan m;
  double best = 0;
  calx_manual_seed(seed);
  calx_status *status = gan_init(&m, a.lr);
  for (int64_t e = 1; status == NULL && e <= a.epochs; e++) {
    status = train(&m, batches, e);
    if (status == NULL) status = test(&m, e, &best);
  }
  if (status != NULL) return calx_status_print(stderr, status), 1;
  calx_optimizer_free(m.opt_g), calx_module_free(m.g.root);
  calx_optimizer_free(m.opt_d), calx_module_free(m.d.root);
  calx_loader_free(batches), calx_dataset_free(set);
  calx_shutdown();
  return best >= a.target ? 0 : 21;
}
