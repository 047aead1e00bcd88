// GPT-2 with the names of Hugging Face's files: wte, wpe, h.0.attn.c_attn, …
// Radford et al., "Language Models are Unsupervised Multitask Learners" (2019).
#ifndef EXAMPLES_GPT_MODEL_H
#define EXAMPLES_GPT_MODEL_H

#include <calx/calx.h>
#include <math.h>
#include <stdlib.h>

typedef struct {
  int64_t vocabulary, context, width, heads, layers;
} gpt_sizes;

// y = x weight + bias: GPT-2 keeps a weight as (in, out).
typedef struct {
  calx_module *m;
  calx_tensor *weight, *bias;
} gpt_projection;

typedef struct {
  calx_module *ln_1, *ln_2;
  gpt_projection qkv, out, fc, back;
  calx_tensor *keys, *values;  // of the tokens so far, (1, heads, context, D)
} gpt_block;

typedef struct {
  gpt_sizes sizes;
  calx_module *root, *wte, *wpe, *ln_f;
  gpt_block *blocks;
  calx_tensor *at;  // the place of the one token of x, (1); NULL: x is a text
} gpt;

static inline calx_tensor *gpt_project(void *self, calx_tensor *x)
{
  gpt_projection *p = self;
  return calx_add(calx_matmul(x, p->weight), p->bias);
}

static inline void gpt_projection_init(gpt_projection *p, calx_module *parent,
                                       const char *name, int64_t in,
                                       int64_t out, double std)
{
  p->m = calx_module_child(parent, name, "Conv1D", gpt_project, p);
  p->weight =
      calx_module_param(p->m, "weight", calx_zeros(CALX_SHAPE(in, out)));
  p->bias = calx_module_param(p->m, "bias", calx_zeros(CALX_SHAPE(out)));
  calx_init_normal(p->weight, 0, std);
}

// (N, T, width) as (N, heads, T, width / heads)
static inline calx_tensor *gpt_heads(const gpt *g, calx_tensor *x)
{
  x = calx_unflatten(x, 2, CALX_SHAPE(g->sizes.heads, -1));
  return calx_transpose(x, 1, 2);
}

// Each token looks at those before it. One token at a time, it looks at the
// keys and values that were kept, among which its own are written.
static inline calx_tensor *gpt_attend(gpt *g, gpt_block *b, calx_tensor *x)
{
  calx_tensor *qkv[3];
  calx_chunk(calx_forward(b->qkv.m, x), 3, 2, qkv);
  for (int i = 0; i < 3; i++) qkv[i] = gpt_heads(g, qkv[i]);
  if (g->at == NULL) {
    x = calx_scaled_dot_product_attention(qkv[0], qkv[1], qkv[2],
                                          .is_causal = true);
  } else {
    double context = (double)g->sizes.context;
    calx_tensor *places = calx_arange(0, context, 1, .dtype = CALX_I64);
    calx_copy_(b->keys, calx_index_copy(b->keys, 2, g->at, qkv[1]));
    calx_copy_(b->values, calx_index_copy(b->values, 2, g->at, qkv[2]));
    x = calx_scaled_dot_product_attention(qkv[0], b->keys, b->values,
                                          .attn_mask = calx_le(places, g->at));
  }
  x = calx_flatten(calx_transpose(x, 1, 2), .start_dim = 2);
  return calx_forward(b->out.m, x);
}

// x: tokens (N, T); the result: logits (N, T, vocabulary)
static inline calx_tensor *gpt_forward(void *self, calx_tensor *x)
{
  gpt *g = self;
  double length = (double)calx_tensor_dim(x, 1);
  calx_tensor *at =
      g->at != NULL ? g->at : calx_arange(0, length, 1, .dtype = CALX_I64);
  x = calx_add(calx_forward(g->wte, x), calx_forward(g->wpe, at));
  for (int64_t i = 0; i < g->sizes.layers; i++) {
    gpt_block *b = &g->blocks[i];
    x = calx_add(x, gpt_attend(g, b, calx_forward(b->ln_1, x)));
    calx_tensor *y = calx_forward(b->fc.m, calx_forward(b->ln_2, x));
    y = calx_gelu(y, .approximate = CALX_GELU_TANH);
    x = calx_add(x, calx_forward(b->back.m, y));
  }
  // The head has the weight of the embedding.
  return calx_linear(calx_forward(g->ln_f, x),
                     calx_module_find(g->wte, "weight"), NULL);
}

static inline void gpt_block_init(gpt *g, gpt_block *b, calx_module *h, int i)
{
  char name[16];
  const int64_t w = g->sizes.width;
  // What is added to the stream is smaller, the more layers add to it.
  const double std = 0.02 / sqrt(2 * (double)g->sizes.layers);
  snprintf(name, sizeof name, "%d", i);
  calx_module *block = calx_module_child(h, name, "Block", NULL, NULL);
  b->ln_1 = calx_nn_layer_norm(block, "ln_1", CALX_SHAPE(w));
  calx_module *attn = calx_module_child(block, "attn", "Attention", NULL, NULL);
  gpt_projection_init(&b->qkv, attn, "c_attn", w, 3 * w, 0.02);
  gpt_projection_init(&b->out, attn, "c_proj", w, w, std);
  b->ln_2 = calx_nn_layer_norm(block, "ln_2", CALX_SHAPE(w));
  calx_module *mlp = calx_module_child(block, "mlp", "MLP", NULL, NULL);
  gpt_projection_init(&b->fc, mlp, "c_fc", w, 4 * w, 0.02);
  gpt_projection_init(&b->back, mlp, "c_proj", 4 * w, w, std);
}

static inline calx_status *gpt_init(gpt *g, gpt_sizes sizes)
{
  *g = (gpt){ .sizes = sizes };
  g->blocks = calloc((size_t)sizes.layers, sizeof *g->blocks);
  if (g->blocks == NULL || sizes.width % sizes.heads != 0) {
    return calx_status_new(CALX_INVALID_ARGUMENT,
                           "%ld heads do not share a width of %ld",
                           (long)sizes.heads, (long)sizes.width);
  }
  g->root = calx_module_new("GPT", gpt_forward, g);
  g->wte = calx_nn_embedding(g->root, "wte", sizes.vocabulary, sizes.width);
  g->wpe = calx_nn_embedding(g->root, "wpe", sizes.context, sizes.width);
  calx_module *h = calx_nn_module_list(g->root, "h");
  for (int i = 0; i < sizes.layers; i++) {
    gpt_block_init(g, &g->blocks[i], h, i);
  }
  g->ln_f = calx_nn_layer_norm(g->root, "ln_f", CALX_SHAPE(sizes.width));
  CALX_TRY(calx_module_error(g->root));
  calx_init_normal(calx_module_find(g->wte, "weight"), 0, 0.02);
  calx_init_normal(calx_module_find(g->wpe, "weight"), 0, 0.02);
  return calx_scope_take_error();
}

static inline void gpt_free(gpt *g)
{
  calx_module_free(g->root);
  free(g->blocks);
}

#endif
