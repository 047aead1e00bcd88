// Trains a small GPT-2 to guess the next byte of a text, and writes with it.
//
//   gpt [--data FILE] [--epochs N] [--batch-size B] [--lr X] [--target NATS]
//       [--seed N]
//
// Without --data the text is drawn: sums, line by line. The last twentieth of
// the text tests. Exit code 21: after the last epoch it costs more than
// --target nats a byte.
#include "args.h"
#include "epoch.h"
#include "gpt_write.h"
#include "text.h"

enum { BYTES = 256, CONTEXT = 64 };

static calx_status *train(gpt *g, calx_optimizer *opt, calx_lr_scheduler *rate,
                          calx_loader *loader, int64_t epoch)
{
  calx_batch batch;
  calx_progress *line;
  calx_status *status = epoch_begin(epoch, loader, "samples", &line);
  while (status == NULL && calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    calx_tensor *loss = loss_of(g->root, batch.data, batch.target);
    calx_backward(loss);
    calx_clip_grad_norm(opt, 1);
    calx_optimizer_step(opt);
    calx_lr_scheduler_step(rate);
    calx_sync(loss);
    calx_progress_value(line, "loss", loss);
    calx_progress_step(line, batch.size);
    status = calx_scope_end(scope);
  }
  return epoch_end(line, status);
}

static void put_byte(void *user, int64_t byte)
{
  (void)user;
  putchar((int)byte);
}

int main(int argc, char **argv)
{
  arguments a = { .epochs = 1, .batch_size = 16, .lr = 3e-3, .target = 100 };
  args_read(argc, argv,
            "gpt [--data FILE] [--epochs N] [--batch-size B] [--lr X] "
            "[--target NATS] [--seed N]",
            &a);
  text t;
  gpt g;
  double nats = 0;
  uint64_t seed = (uint64_t)a.seed;
  calx_manual_seed(seed);
  calx_status *status = text_init(&t, a.data, CONTEXT, seed);
  if (status == NULL) {
    status = gpt_init(&g, (gpt_sizes){ .vocabulary = BYTES,
                                       .context = CONTEXT,
                                       .width = 128,
                                       .heads = 4,
                                       .layers = 4 });
  }
  if (status != NULL) return calx_status_print(stderr, status), 1;
  calx_loader *batches =
      calx_loader_new(t.train, .batch_size = a.batch_size, .shuffle = true,
                      .drop_last = true, .seed = seed);
  calx_loader *tests = calx_loader_new(t.test, .batch_size = 32);
  calx_optimizer *opt = calx_adamw(g.root, .lr = a.lr, .betas = { 0.9, 0.95 });
  calx_lr_scheduler *rate =
      calx_one_cycle_lr(opt, a.lr, a.epochs * calx_loader_size(batches) + 1,
                        .no_cycle_momentum = true);
  status = calx_lr_scheduler_error(rate);
  for (int64_t e = 1; status == NULL && e <= a.epochs; e++) {
    status = train(&g, opt, rate, batches, e);
    if (status == NULL) status = test(g.root, tests, &nats);
    if (status == NULL) printf("Epoch %ld: %.3f nats a byte\n", (long)e, nats);
  }
  const int64_t newline = '\n';
  if (status == NULL)
    status = gpt_write(&g, &newline, 1, CONTEXT, put_byte, NULL);
  putchar('\n');
  if (status != NULL) return calx_status_print(stderr, status), 1;
  calx_lr_scheduler_free(rate), calx_optimizer_free(opt), gpt_free(&g);
  calx_loader_free(batches), calx_loader_free(tests);
  text_free(&t);
  calx_shutdown();
  return nats <= a.target ? 0 : 21;
}
