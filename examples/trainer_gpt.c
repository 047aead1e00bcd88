// Trains the GPT-2 of gpt.c by the trainer, on all devices that there are, and
// writes a text with the best of its checkpoints.
//
//   trainer_gpt [--data FILE] [--batch-size B] [--lr X] [--target PERPLEXITY]
//               [--max_epochs=N] [--precision=bf16-mixed] [--devices=N] […]
//
// Without --data the text is drawn: sums, line by line. The last twentieth of
// the text validates. Exit code 21: its perplexity is above --target.
#include "gpt_write.h"
#include "text.h"
#include "trainer_options.h"

enum { BYTES = 256, CONTEXT = 64 };
static const gpt_sizes sizes = {
  .vocabulary = BYTES, .context = CONTEXT, .width = 128, .heads = 4, .layers = 4
};

typedef struct {
  gpt net;
  calx_metric *perplexity;
} language_model;

static calx_module *configure_model(calx_trainer *trainer, void *self)
{
  language_model *m = self;
  m->perplexity = calx_trainer_add_metric(trainer, calx_metric_perplexity());
  calx_scope_set_error(gpt_init(&m->net, sizes));
  return m->net.root;
}

// The rate rises for a tenth of the steps, then falls by a cosine.
static void configure_optimizers(calx_trainer *trainer, void *self)
{
  const arguments *a = calx_trainer_user(trainer);
  language_model *m = self;
  int64_t steps = calx_trainer_estimated_stepping_batches(trainer);
  int64_t warm_up = steps / 10 + 1;
  calx_optimizer *adamw =
      calx_adamw(m->net.root, .lr = a->lr, .betas = { 0.9, 0.95 });
  calx_lr_scheduler *parts[] = {
    calx_linear_lr(adamw, .start_factor = 0.01, .total_iters = warm_up),
    calx_cosine_annealing_lr(adamw, steps + 1 - warm_up, .eta_min = a->lr / 10)
  };
  calx_lr_scheduler *rate =
      calx_sequential_lr(adamw, parts, 2, CALX_DIMS(warm_up));
  calx_trainer_add_optimizer(trainer, adamw, .lr_scheduler = rate,
                             .interval = "step");
}

static calx_tensor *training_step(calx_trainer *trainer, void *self,
                                  const calx_batch *batch, int64_t batch_idx)
{
  language_model *m = self;
  calx_tensor *loss = loss_of(m->net.root, batch->data, batch->target);
  calx_trainer_log(trainer, "train_loss", loss, .prog_bar = true);
  return loss;
}

static calx_tensor *validation_step(calx_trainer *trainer, void *self,
                                    const calx_batch *batch, int64_t batch_idx)
{
  language_model *m = self;
  calx_metric_update(m->perplexity, calx_forward(m->net.root, batch->data),
                     batch->target);
  calx_trainer_log_metric(trainer, "perplexity", m->perplexity, NULL,
                          .prog_bar = true);
  return NULL;
}

static void teardown(calx_trainer *trainer, void *self)
{
  free(((language_model *)self)->net.blocks);  // the trainer frees the modules
}

static void put_byte(void *user, int64_t byte)
{
  putchar((int)byte);
}

static calx_status *write_text(const calx_trainer *trainer)
{
  const int64_t newline = '\n';
  gpt g;
  CALX_TRY(gpt_init(&g, sizes));
  calx_status *status = calx_trainer_load_weights(trainer, g.root);
  if (status == NULL)
    status = gpt_write(&g, &newline, 1, CONTEXT, put_byte, NULL);
  putchar('\n');
  gpt_free(&g);
  return status;
}

int main(int argc, char **argv)
{
  calx_callback *best =
      calx_model_checkpoint(.monitor = "perplexity",
                            .filename = "{epoch}-{perplexity:.2f}");
  calx_trainer_options options =
      CALX_TRAINER_OPTIONS(.max_epochs = 1, .gradient_clip_val = 1,
                           .callbacks = &best, .n_callbacks = 1);
  arguments a = { .batch_size = 16, .lr = 3e-3, .target = 1e9 };
  trainer_options_read(
      argc, argv,
      "trainer_gpt [--data FILE] [--batch-size B] [--lr X] [--target PERPLEXITY]",
      &options, &a);
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(language_model), .user = &a,
                            .configure_model = configure_model,
                            .configure_optimizers = configure_optimizers,
                            .training_step = training_step,
                            .validation_step = validation_step,
                            .hooks = { .teardown = teardown });
  text t;
  calx_status *status = text_init(&t, a.data, CONTEXT, options.seed);
  calx_loader *batches = calx_loader_new(t.train, .batch_size = a.batch_size,
                                         .shuffle = true, .drop_last = true);
  calx_loader *tests = calx_loader_new(t.test, .batch_size = 32);
  calx_trainer *trainer = calx_trainer_new_with(&options);
  if (status == NULL)
    status = calx_trainer_fit(trainer, &module, .train_dataloader = batches,
                              .val_dataloader = tests);
  if (status == NULL)
    status = calx_trainer_validate(
        trainer, &module, .val_dataloader = tests,
        .ckpt_path = options.fast_dev_run ? NULL : "best");
  if (status == NULL) status = write_text(trainer);
  double perplexity = calx_trainer_callback_metric(trainer, "perplexity");
  int code = trainer_exit_code(trainer, status, perplexity <= a.target);
  calx_trainer_free(trainer), calx_callback_free(best);
  calx_loader_free(batches), calx_loader_free(tests);
  text_free(&t);
  calx_shutdown();
  return code;
}
