// A text that a GPT-2 goes on with, a token at a time: what a layer needs of
// the tokens before is kept, so that a step costs the same at each place.
#ifndef EXAMPLES_GPT_WRITE_H
#define EXAMPLES_GPT_WRITE_H

#include "gpt_model.h"

// Gets each token that is drawn.
typedef void gpt_put_fn(void *user, int64_t token);

static inline void gpt_keep(gpt *g)
{
  const gpt_sizes s = g->sizes;
  calx_dims dims = CALX_SHAPE(1, s.heads, s.context, s.width / s.heads);
  for (int64_t i = 0; i < s.layers; i++) {
    g->blocks[i].keys = calx_retain(calx_zeros(dims));
    g->blocks[i].values = calx_retain(calx_zeros(dims));
  }
  calx_sync(NULL);
}

static inline void gpt_forget(gpt *g)
{
  for (int64_t i = 0; i < g->sizes.layers; i++) {
    calx_release(g->blocks[i].keys);
    calx_release(g->blocks[i].values);
  }
  g->at = NULL;
}

// Reads the prompt, then draws tokens until the context is full or `count` of
// them are written.
static inline calx_status *gpt_write(gpt *g, const int64_t *prompt, int64_t n,
                                     int64_t count, gpt_put_fn *put, void *user)
{
  calx_status *status = NULL;
  int64_t token = prompt[0];
  calx_module_train(g->root, false);
  gpt_keep(g);
  for (int64_t i = 0; status == NULL && i < g->sizes.context; i++) {
    if (i + 1 >= n + count) break;
    calx_scope *scope = calx_scope_begin();
    calx_no_grad_begin();  // ends with the scope
    g->at = calx_full(CALX_SHAPE(1), (double)i, .dtype = CALX_I64);
    calx_tensor *x =
        calx_full(CALX_SHAPE(1, 1), (double)token, .dtype = CALX_I64);
    calx_tensor *logits = calx_select(calx_forward(g->root, x), 1, 0);
    calx_tensor *drawn = calx_multinomial(calx_softmax(logits, 1), 1);
    calx_sync(drawn);
    token = calx_item_int(drawn);
    status = calx_scope_end(scope);
    if (i + 1 < n) {
      token = prompt[i + 1];
    } else if (status == NULL) {
      put(user, token);
    }
  }
  gpt_forget(g);
  return status;
}

#endif
