// Trains a small GPT on the bytes of a text, and writes text of its own.
//
//   gpt --data FILE [--steps N] [--batch-size B] [--context T] [--layers L]
//       [--width W] [--heads H] [--lr X] [--sample N] [--target LOSS] [--seed
//       N]
//
// Exit code 21: the mean loss of the last 50 steps stayed above --target.
#include <calx/calx.h>
#include <math.h>
#include <stdlib.h>

#include "args.h"

enum { BYTES = 256, LAST = 50 };

typedef struct {
  calx_module *root, *tokens, *positions, *blocks, *head;
  long context;
} gpt;

// x: bytes (N, T), T at most the context
static calx_tensor *forward(void *self, calx_tensor *x)
{
  gpt *g = self;
  double length = (double)calx_tensor_dim(x, 1);
  calx_tensor *at = calx_arange(0, length, 1, .dtype = CALX_I64);
  x = calx_add(calx_forward(g->tokens, x), calx_forward(g->positions, at));
  x = calx_transformer_encoder_forward(g->blocks, x, .src_is_causal = true);
  return calx_forward(g->head, x);
}

static calx_status *gpt_init(gpt *g, long layers, long width, long heads)
{
  g->root = calx_module_new("GPT", forward, g);
  g->tokens = calx_nn_embedding(g->root, "tokens", BYTES, width);
  g->positions = calx_nn_embedding(g->root, "positions", g->context, width);
  g->blocks = calx_nn_transformer_encoder(
      g->root, "blocks", width, heads, layers, .dim_feedforward = 4 * width,
      .dropout = CALX_ZERO, .activation = "gelu", .batch_first = true,
      .norm_first = true, .final_norm = true);
  g->head = calx_nn_linear(g->root, "head", width, BYTES, .no_bias = true);
  CALX_TRY(calx_module_error(g->root));
  calx_init_normal(calx_module_find(g->tokens, "weight"), 0, 0.02);
  calx_init_normal(calx_module_find(g->positions, "weight"), 0, 0.02);
  return calx_scope_take_error();
}

static uint64_t state = 88172645463325252U;

// In [0, 1), by xorshift.
static double uniform(void)
{
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (double)(state >> 11) / 0x1p53;
}

typedef struct {
  unsigned char *bytes;
  size_t size;
} text;

static calx_status *text_read(const char *path, long least, text *t)
{
  FILE *f = fopen(path, "rb");
  if (f == NULL) return calx_status_new(CALX_NOT_FOUND, "cannot read --data");
  fseek(f, 0, SEEK_END);
  long size = ftell(f);
  rewind(f);
  t->bytes = malloc(size > 0 ? (size_t)size : 1);
  t->size = t->bytes != NULL ? fread(t->bytes, 1, (size_t)size, f) : 0;
  fclose(f);
  if (size > least && t->size == (size_t)size) return NULL;
  return calx_status_new(CALX_INVALID_ARGUMENT,
                         "--data is no text that is longer than --context");
}

// Rows of `length` bytes from anywhere in the text, (rows, length).
static calx_tensor *batch(const text *t, long rows, long length, int64_t *room)
{
  for (long r = 0; r < rows; r++) {
    size_t at = (size_t)(uniform() * (double)(t->size - (size_t)length));
    for (long i = 0; i < length; i++) {
      room[r * length + i] = t->bytes[at + (size_t)i];
    }
  }
  return calx_tensor_from(room, CALX_I64, CALX_SHAPE(rows, length));
}

static double step(gpt *g, calx_optimizer *opt, calx_tensor *x)
{
  calx_optimizer_zero_grad(opt);
  calx_tensor *input = calx_slice(x, 1, 0, g->context, 1);
  calx_tensor *target = calx_slice(x, 1, 1, g->context + 1, 1);
  calx_tensor *logits =
      calx_flatten(calx_forward(g->root, input), .end_dim = 1);
  calx_tensor *loss = calx_cross_entropy(logits, calx_flatten(target));
  calx_backward(loss);
  calx_clip_grad_norm(opt, 1);
  calx_optimizer_step(opt);
  calx_sync(loss);
  return calx_item(loss);
}

// Draws the byte behind the last `context` ones, again and again.
static calx_status *sample(gpt *g, long count, int64_t *window)
{
  calx_no_grad_begin();
  calx_module_train(g->root, false);
  for (long i = 0; i < count; i++) {
    float p[BYTES];
    double left = uniform();
    calx_scope *scope = calx_scope_begin();
    calx_tensor *x =
        calx_tensor_from(window, CALX_I64, CALX_SHAPE(1, g->context));
    calx_tensor *last = calx_select(calx_forward(g->root, x), 1, -1);
    CALX_TRY(calx_tensor_read(calx_softmax(last, 1), p, sizeof p));
    int byte = 0;
    while (byte < BYTES - 1 && (left -= (double)p[byte]) > 0) byte++;
    putchar(byte);
    for (long k = 1; k < g->context; k++) window[k - 1] = window[k];
    window[g->context - 1] = byte;
    CALX_TRY(calx_scope_end(scope));
  }
  putchar('\n');
  calx_no_grad_end();
  return NULL;
}

static calx_status *run(gpt *g, const text *t, long steps, long rows, double lr,
                        long count, double *mean)
{
  int64_t *room = malloc((size_t)(rows * (g->context + 1)) * sizeof *room);
  calx_optimizer *opt = calx_adamw(g->root, .lr = lr, .betas = { 0.9, 0.95 });
  calx_lr_scheduler *rate =
      calx_one_cycle_lr(opt, lr, steps + 1, .no_cycle_momentum = true);
  calx_status *status = calx_lr_scheduler_error(rate);
  for (long i = 0; status == NULL && i < steps; i++) {
    calx_scope *scope = calx_scope_begin();
    double loss = step(g, opt, batch(t, rows, g->context + 1, room));
    calx_lr_scheduler_step(rate);
    status = calx_scope_end(scope);
    *mean +=
        i >= steps - LAST ? loss / (double)(steps < LAST ? steps : LAST) : 0;
    if (i % 50 == 0 || i + 1 == steps) printf("step %ld loss %.4f\n", i, loss);
  }
  if (status == NULL) {
    batch(t, 1, g->context, room);
    status = sample(g, count, room);
  }
  calx_lr_scheduler_free(rate);
  calx_optimizer_free(opt);
  free(room);
  return status;
}

int main(int argc, char **argv)
{
  const char *data = NULL;
  long steps = 500, rows = 16, layers = 4, width = 128, heads = 4;
  long count = 500, seed = 0;
  double lr = 3e-3, target = 0, mean = 0;
  gpt g = { .context = 64 };
  static const struct option names[] = { { "data", 1, 0, 'd' },
                                         { "steps", 1, 0, 'n' },
                                         { "batch-size", 1, 0, 'b' },
                                         { "context", 1, 0, 'c' },
                                         { "layers", 1, 0, 'l' },
                                         { "width", 1, 0, 'w' },
                                         { "heads", 1, 0, 'a' },
                                         { "lr", 1, 0, 'r' },
                                         { "sample", 1, 0, 'p' },
                                         { "target", 1, 0, 't' },
                                         { "seed", 1, 0, 's' },
                                         { "help", 0, 0, 'h' },
                                         { 0, 0, 0, 0 } };
  for (int o; (o = getopt_long(argc, argv, "", names, NULL)) != -1;) {
    switch (o) {
      case 'd': data = optarg; break;
      case 'n': steps = arg_count(argv, "steps", 1, 1000000000); break;
      case 'b': rows = arg_count(argv, "batch-size", 1, 1 << 20); break;
      case 'c': g.context = arg_count(argv, "context", 1, 1 << 16); break;
      case 'l': layers = arg_count(argv, "layers", 1, 1000); break;
      case 'w': width = arg_count(argv, "width", 1, 1 << 16); break;
      case 'a': heads = arg_count(argv, "heads", 1, 1 << 16); break;
      case 'r': lr = arg_number(argv, "lr", 1e30); break;
      case 'p': count = arg_count(argv, "sample", 0, 1000000000); break;
      case 't': target = arg_number(argv, "target", 1e30); break;
      case 's': seed = arg_count(argv, "seed", 0, INT64_MAX); break;
      default:
        puts(
            "gpt --data FILE [--steps N] [--batch-size B] [--context T] "
            "[--layers L] [--width W] [--heads H] [--lr X] [--sample N] "
            "[--target LOSS] [--seed N]");
        return o == 'h' ? 0 : 2;
    }
  }
  arg_end(argc, argv);
  if (data == NULL) return fputs("gpt: --data FILE is missing\n", stderr), 2;
  calx_manual_seed((uint64_t)seed);
  state += (uint64_t)seed;
  text t = { 0 };
  calx_status *status = text_read(data, g.context + 1, &t);
  if (status == NULL) status = gpt_init(&g, layers, width, heads);
  if (status == NULL) status = run(&g, &t, steps, rows, lr, count, &mean);
  if (status != NULL) return calx_status_print(stderr, status), 1;
  calx_module_free(g.root);
  free(t.bytes);
  return target > 0 && mean > target ? 21 : 0;
}
