// boring: the model of Lightning's tests, one linear layer 32 -> 2, on 64
// samples in batches of one; and the list of what was called.
#ifndef CX_TESTS_TRAIN_BORING_H
#define CX_TESTS_TRAIN_BORING_H

#include <string.h>

#include "calx/calx.h"
#include "support/support.h"

enum { BORING_FEATURES = 32, BORING_SAMPLES = 64 };

// A trainer's options: the loop without what stands beside it.
#define BORING_ALONE \
  .no_progress_bar = true, .no_logger = true, .no_checkpointing = true

typedef struct boring {
  calx_module *root, *layer;
} boring;

static inline calx_tensor *boring_forward(void *self, calx_tensor *x)
{
  return calx_forward(((boring *)self)->layer, x);
}

static inline calx_module *boring_model(calx_trainer *t, void *self)
{
  (void)t;
  boring *b = self;
  b->root = calx_module_new("BoringModel", boring_forward, b);
  b->layer = calx_nn_linear(b->root, "layer", BORING_FEATURES, 2);
  return b->root;
}

static inline calx_tensor *boring_loss(void *self, const calx_batch *batch)
{
  calx_tensor *y = calx_forward(((boring *)self)->root, batch->data);
  return calx_mean(calx_square(calx_sub(y, 1)));
}

static inline calx_tensor *boring_step(calx_trainer *t, void *self,
                                       const calx_batch *batch, int64_t i)
{
  (void)t, (void)i;
  return boring_loss(self, batch);
}

static inline void boring_optimizers(calx_trainer *t, void *self)
{
  calx_optimizer *opt = calx_sgd(((boring *)self)->root, .lr = 0.1);
  calx_trainer_add_optimizer(t, opt, .lr_scheduler = calx_step_lr(opt, 1));
}

// Sample i is sin(i), sin(i + 1), …
static inline calx_dataset *boring_dataset(int64_t samples)
{
  calx_scope *scope = calx_scope_begin();
  float *data = malloc((size_t)samples * BORING_FEATURES * sizeof *data);
  for (int64_t i = 0; i < samples * BORING_FEATURES; i++) {
    data[i] = sinf((float)(i / BORING_FEATURES + i % BORING_FEATURES));
  }
  calx_tensor *x =
      calx_host_tensor(data, CALX_F32, CALX_SHAPE(samples, BORING_FEATURES));
  calx_dataset *dataset = calx_dataset_tensors(&x, 1);
  free(data);
  calx_status_free(calx_scope_end(scope));
  return dataset;
}

#endif
