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
#include "clouds.h"
#include "epoch.h"

typedef struct {
  mlp g, d;
  calx_optimizer *opt_g, *opt_d;
} gan;

static calx_status *gan_init(gan *m, double lr)
{
  calx_module *g = calx_module_new("Generator", mlp_forward, &m->g);
  calx_module *d = calx_module_new("Discriminator", mlp_forward, &m->d);
  CALX_TRY(mlp_init(&m->g, g, NOISE, 2));
  CALX_TRY(mlp_init(&m->d, d, 2, 1));
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
  calx_scope *scope = calx_scope_begin();
  calx_no_grad_begin();  // ends with the scope
  double percent = clouds_filled(m->g.root);
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
  uint64_t seed = (uint64_t)a.seed;
  calx_dataset *set = clouds_draw(51200, &seed);
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
