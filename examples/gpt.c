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

// CONTEXT bytes of the text, and for each the one that follows it.
static calx_status *window(void *user, int64_t index, void *const *fields)
{
  const unsigned char *bytes = ((text *)user)->bytes + index * CONTEXT;
  int64_t *x = fields[0], *y = fields[1];
  for (int i = 0; i < CONTEXT; i++) x[i] = bytes[i], y[i] = bytes[i + 1];
  return NULL;
}

static calx_tensor *loss_of(gpt *g, calx_tensor *x, calx_tensor *y)
{
  calx_tensor *logits = calx_flatten(calx_forward(g->root, x), .end_dim = 1);
  return calx_cross_entropy(logits, calx_flatten(y));
}

static calx_status *train(gpt *g, calx_optimizer *opt, calx_lr_scheduler *rate,
                          calx_loader *loader, int64_t epoch)
{
  calx_batch batch;
  calx_progress *line;
  calx_status *status = epoch_begin(epoch, loader, "samples", &line);
  while (status == NULL && calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    calx_tensor *loss = loss_of(g, batch.data, batch.target);
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

static calx_status *test(gpt *g, calx_loader *loader, double *nats)
{
  calx_batch batch;
  double sum = 0, all = 0;
  while (calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_no_grad_begin();  // ends with the scope
    sum += calx_item(loss_of(g, batch.data, batch.target)) * (double)batch.size;
    all += (double)batch.size;
    CALX_TRY(calx_scope_end(scope));
  }
  *nats = sum / all;
  return calx_scope_take_error();
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
  static const calx_field fields[] = { { "x", CALX_I64, 1, { CONTEXT } },
                                       { "y", CALX_I64, 1, { CONTEXT } } };
  text t;
  gpt g;
  double nats = 0;
  uint64_t seed = (uint64_t)a.seed;
  calx_manual_seed(seed);
  calx_status *status = text_init(&t, a.data, seed);
  if (status == NULL) {
    status = gpt_init(&g, (gpt_sizes){ .vocabulary = BYTES,
                                       .context = CONTEXT,
                                       .width = 128,
                                       .heads = 4,
                                       .layers = 4 });
  }
  if (status != NULL) return calx_status_print(stderr, status), 1;
  int64_t size = (t.size - 1) / CONTEXT, first = size - size / 20;
  calx_dataset *all = calx_dataset_new(size, fields, 2, window, &t, NULL);
  calx_dataset *sets[] = { calx_dataset_range(all, 0, first),
                           calx_dataset_range(all, first, size) };
  calx_loader *batches =
      calx_loader_new(sets[0], .batch_size = a.batch_size, .shuffle = true,
                      .drop_last = true, .seed = seed);
  calx_loader *tests = calx_loader_new(sets[1], .batch_size = 32);
  calx_optimizer *opt = calx_adamw(g.root, .lr = a.lr, .betas = { 0.9, 0.95 });
  calx_lr_scheduler *rate =
      calx_one_cycle_lr(opt, a.lr, a.epochs * calx_loader_size(batches) + 1,
                        .no_cycle_momentum = true);
  status = calx_lr_scheduler_error(rate);
  for (int64_t e = 1; status == NULL && e <= a.epochs; e++) {
    status = train(&g, opt, rate, batches, e);
    if (status == NULL) status = test(&g, tests, &nats);
    if (status == NULL) printf("Epoch %ld: %.3f nats a byte\n", (long)e, nats);
  }
  const int64_t newline = '\n';
  if (status == NULL)
    status = gpt_write(&g, &newline, 1, CONTEXT, put_byte, NULL);
  putchar('\n');
  if (status != NULL) return calx_status_print(stderr, status), 1;
  calx_lr_scheduler_free(rate), calx_optimizer_free(opt), gpt_free(&g);
  calx_loader_free(batches), calx_loader_free(tests);
  calx_dataset_free(sets[0]), calx_dataset_free(sets[1]);
  calx_dataset_free(all), free(t.bytes);
  calx_shutdown();
  return nats <= a.target ? 0 : 21;
}
