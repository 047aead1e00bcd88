// The generative adversarial network of Lightning's documentation by the
// trainer: manual optimisation with two optimisers. The generator learns to
// draw points of eight clouds around the origin.
//
//   trainer_gan [--batch-size B] [--lr X] [--target PCT] [--max_epochs=N] […]
//
// The result is how much of its eighth of the generated points the cloud with
// the fewest of them has, after the best epoch. Exit code 21: it is below
// --target.
#include "clouds.h"
#include "trainer_options.h"

typedef struct {
  mlp generator, discriminator;
} gan;

static calx_module *configure_model(calx_trainer *trainer, void *self)
{
  gan *m = self;
  calx_module *root = calx_module_new("GAN", NULL, NULL);
  calx_module *g = calx_module_child(root, "generator", "Generator",
                                     mlp_forward, &m->generator);
  calx_module *d = calx_module_child(root, "discriminator", "Discriminator",
                                     mlp_forward, &m->discriminator);
  calx_scope_set_error(mlp_init(&m->generator, g, NOISE, 2));
  calx_scope_set_error(mlp_init(&m->discriminator, d, 2, 1));
  return root;
}

// 0: of the generator, 1: of the discriminator.
static void configure_optimizers(calx_trainer *trainer, void *self)
{
  const arguments *a = calx_trainer_user(trainer);
  gan *m = self;
  calx_module *models[] = { m->generator.root, m->discriminator.root };
  for (int i = 0; i < 2; i++) {
    calx_optimizer *adam =
        calx_adam(models[i], .lr = a->lr, .betas = { 0.5, 0.999 });
    calx_trainer_add_optimizer(trainer, adam);
  }
}

// What the discriminator says of x, beside 1 for real and 0 for generated.
static calx_tensor *adversarial_loss(gan *m, calx_tensor *x, double real)
{
  calx_tensor *logits = calx_forward(m->discriminator.root, x);
  calx_tensor *target = calx_full_like(logits, real);
  return calx_binary_cross_entropy_with_logits(logits, target);
}

static void step(calx_trainer *trainer, size_t i, const char *name,
                 calx_tensor *loss)
{
  calx_trainer_log(trainer, name, loss, .prog_bar = true);
  calx_optimizer_zero_grad(calx_trainer_optimizer(trainer, i));
  calx_trainer_manual_backward(trainer, loss);
  calx_trainer_optimizer_step(trainer, i);
  calx_trainer_untoggle_optimizer(trainer, i);
}

static calx_tensor *training_step(calx_trainer *trainer, void *self,
                                  const calx_batch *batch, int64_t batch_idx)
{
  gan *m = self;
  calx_tensor *z = calx_randn(CALX_SHAPE(batch->size, NOISE));
  calx_trainer_toggle_optimizer(trainer, 0);
  calx_tensor *generated = calx_forward(m->generator.root, z);
  step(trainer, 0, "g_loss", adversarial_loss(m, generated, 1));
  calx_trainer_toggle_optimizer(trainer, 1);
  calx_tensor *real = adversarial_loss(m, batch->data, 1);
  calx_tensor *fake = adversarial_loss(m, calx_detach(generated), 0);
  step(trainer, 1, "d_loss", calx_add(real, fake));
  return NULL;
}

static void on_train_epoch_end(calx_trainer *trainer, void *self)
{
  calx_no_grad_begin();
  double filled = clouds_filled(((gan *)self)->generator.root);
  calx_no_grad_end();
  calx_trainer_log_number(trainer, "filled", filled, .prog_bar = true,
                          .sync_dist = true);
}

int main(int argc, char **argv)
{
  calx_callback *best =
      calx_model_checkpoint(.monitor = "filled", .mode = "max");
  calx_trainer_options options =
      CALX_TRAINER_OPTIONS(.max_epochs = 15, .callbacks = &best,
                           .n_callbacks = 1);
  arguments a = { .batch_size = 256, .lr = 1e-3 };
  trainer_options_read(argc, argv,
                       "trainer_gan [--batch-size B] [--lr X] [--target PCT]",
                       &options, &a);
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(gan), .user = &a,
                            .configure_model = configure_model,
                            .configure_optimizers = configure_optimizers,
                            .training_step = training_step,
                            .manual_optimization = true,
                            .hooks = { .on_train_epoch_end =
                                           on_train_epoch_end });
  uint64_t seed = options.seed;
  calx_dataset *points = clouds_draw(51200, &seed);
  calx_loader *batches = calx_loader_new(points, .batch_size = a.batch_size,
                                         .shuffle = true, .drop_last = true);
  calx_trainer *trainer = calx_trainer_new_with(&options);
  calx_status *status =
      calx_trainer_fit(trainer, &module, .train_dataloader = batches);
  double filled = calx_model_checkpoint_best_model_score(best);
  printf("best %.1f%%\n", filled);
  int code = trainer_exit_code(trainer, status, filled >= a.target);
  calx_trainer_free(trainer), calx_callback_free(best);
  calx_loader_free(batches), calx_dataset_free(points);
  calx_shutdown();
  return code;
}
