// What the language models share: a text as blocks of bytes, their loss, the
// test.
#ifndef EXAMPLES_TEXT_H
#define EXAMPLES_TEXT_H

#include <calx/calx.h>

#include "drawn.h"

typedef struct text {
  calx_dataset *all, *train, *test;
} text;

// Sums, line by line: "17+25=42". Room for `size` bytes is there.
static inline size_t text_draw(char *bytes, size_t size, uint64_t seed)
{
  size_t at = 0;
  while (at < size - 32) {
    int a = (int)(50 * drawn(&seed)), b = (int)(50 * drawn(&seed));
    at += (size_t)sprintf(bytes + at, "%d+%d=%d\n", a, b, a + b);
  }
  return at;
}

// Blocks of a file's bytes, or of 400,000 drawn ones without a path. The last
// twentieth tests.
static inline calx_status *text_init(text *t, const char *path, int64_t block,
                                     uint64_t seed)
{
  calx_tokenizer *bytes = calx_byte_tokenizer();
  calx_scope *scope = calx_scope_begin();
  if (path != NULL) {
    t->all = calx_dataset_text(path, bytes, block);
  } else {
    static char sums[400000];
    size_t size = text_draw(sums, sizeof sums, seed);
    t->all =
        calx_dataset_tokens(calx_tokenizer_encode(bytes, sums, size), block);
  }
  calx_tokenizer_free(bytes);
  int64_t size = calx_dataset_size(t->all), first = size - size / 20;
  t->train = calx_dataset_range(t->all, 0, first);
  t->test = calx_dataset_range(t->all, first, size);
  return calx_scope_end(scope);
}

static inline void text_free(text *t)
{
  calx_dataset_free(t->train), calx_dataset_free(t->test);
  calx_dataset_free(t->all);
}

// The loss in nats a byte.
static inline calx_tensor *loss_of(calx_module *model, calx_tensor *x,
                                   calx_tensor *y)
{
  calx_tensor *logits = calx_flatten(calx_forward(model, x), .end_dim = 1);
  return calx_cross_entropy(logits, calx_flatten(y));
}

static inline calx_status *test(calx_module *model, calx_loader *loader,
                                double *nats)
{
  calx_batch batch;
  double sum = 0, all = 0;
  while (calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_no_grad_begin();  // ends with the scope
    calx_tensor *loss = loss_of(model, batch.data, batch.target);
    sum += calx_item(loss) * (double)batch.size;
    all += (double)batch.size;
    CALX_TRY(calx_scope_end(scope));
  }
  *nats = sum / all;
  return calx_scope_take_error();
}

#endif
