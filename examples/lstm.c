// Trains an LSTM to guess the next byte of a text, and writes with it.
//
//   lstm [--data FILE] [--epochs N] [--batch-size B] [--lr X] [--target NATS]
//        [--seed N]
//
// Without --data the text is drawn: sums, line by line. The last twentieth of
// the text tests. Exit code 21: after the last epoch it costs more than
// --target nats a byte.
#include <calx/calx.h>

#include "args.h"
#include "epoch.h"
#include "text.h"

enum { BYTES = 256, WIDTH = 64, HIDDEN = 128, STEPS = 64, SAMPLE = 400 };

typedef struct {
  calx_module *root, *tokens, *lstm, *head;
} char_lstm;

static calx_tensor *forward(void *self, calx_tensor *x)
{
  char_lstm *m = self;
  x = calx_forward(m->lstm, calx_forward(m->tokens, x));
  return calx_forward(m->head, x);
}

static calx_status *lstm_init(char_lstm *m)
{
  m->root = calx_module_new("CharLSTM", forward, m);
  m->tokens = calx_nn_embedding(m->root, "tokens", BYTES, WIDTH);
  m->lstm = calx_nn_lstm(m->root, "lstm", WIDTH, HIDDEN, .batch_first = true);
  m->head = calx_nn_linear(m->root, "head", HIDDEN, BYTES);
  return calx_module_error(m->root);
}

static calx_status *train(char_lstm *m, calx_optimizer *opt,
                          calx_loader *loader, int64_t epoch)
{
  calx_batch batch;
  calx_progress *line;
  calx_status *status = epoch_begin(epoch, loader, "samples", &line);
  while (status == NULL && calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    calx_tensor *loss = loss_of(m->root, batch.data, batch.target);
    calx_backward(loss);
    calx_clip_grad_norm(opt, 1);
    calx_optimizer_step(opt);
    calx_sync(loss);
    calx_progress_value(line, "loss", loss);
    calx_progress_step(line, batch.size);
    status = calx_scope_end(scope);
  }
  return epoch_end(line, status);
}

// Writes a text: each byte is drawn, and the state goes on from it.
static calx_status *sample(char_lstm *m)
{
  calx_scope *scope = calx_scope_begin();
  calx_no_grad_begin();
  calx_tensor *h = calx_zeros(CALX_SHAPE(1, 1, HIDDEN)),
              *c = calx_zeros_like(h);
  calx_tensor *byte = calx_full(CALX_SHAPE(1, 1), '\n', .dtype = CALX_I64);
  for (int i = 0; i < SAMPLE; i++) {
    calx_tensor *x = calx_forward(m->tokens, byte);
    x = calx_rnn_forward(m->lstm, x, .hx = h, .cx = c, .out_hn = &h,
                         .out_cn = &c);
    x = calx_select(calx_forward(m->head, x), 1, 0);
    byte = calx_multinomial(calx_softmax(x, 1), 1);
    calx_sync(byte, h, c);
    putchar((int)calx_item_int(byte));
  }
  putchar('\n');
  return calx_scope_end(scope);
}

int main(int argc, char **argv)
{
  arguments a = { .epochs = 3, .batch_size = 32, .lr = 3e-3, .target = 100 };
  args_read(argc, argv,
            "lstm [--data FILE] [--epochs N] [--batch-size B] [--lr X] "
            "[--target NATS] [--seed N]",
            &a);
  text t;
  char_lstm m;
  double nats = 0;
  uint64_t seed = (uint64_t)a.seed;
  calx_manual_seed(seed);
  calx_status *status = text_init(&t, a.data, STEPS, seed);
  if (status == NULL) status = lstm_init(&m);
  if (status != NULL) return calx_status_print(stderr, status), 1;
  calx_loader *batches =
      calx_loader_new(t.train, .batch_size = a.batch_size, .shuffle = true,
                      .drop_last = true, .seed = seed);
  calx_loader *tests = calx_loader_new(t.test, .batch_size = 32);
  calx_optimizer *opt = calx_adam(m.root, .lr = a.lr);
  status = calx_optimizer_error(opt);
  for (int64_t e = 1; status == NULL && e <= a.epochs; e++) {
    status = train(&m, opt, batches, e);
    if (status == NULL) status = test(m.root, tests, &nats);
    if (status == NULL) printf("Epoch %ld: %.3f nats a byte\n", (long)e, nats);
  }
  if (status == NULL) status = sample(&m);
  if (status != NULL) return calx_status_print(stderr, status), 1;
  calx_optimizer_free(opt), calx_module_free(m.root);
  calx_loader_free(batches), calx_loader_free(tests);
  text_free(&t);
  calx_shutdown();
  return nats <= a.target ? 0 : 21;
}
