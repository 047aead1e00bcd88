// normed: a model with BatchNorm whose weights are given, 32 -> 4 -> 2, and the
// losses of its steps.
#ifndef CX_TESTS_TRAIN_NORMED_H
#define CX_TESTS_TRAIN_NORMED_H

#include "boring.h"

enum { NORMED_HIDDEN = 4, NORMED_STEPS = 64 };

typedef struct normed {
  calx_module *root, *fc1, *bn, *fc2;
} normed;

// What a test keeps of a run; its module's `user`.
typedef struct normed_run {
  double train[NORMED_STEPS], val[NORMED_STEPS];
  int n_train, n_val;
} normed_run;

static bool normed_has_no_norm;  // of models that are made from now on

// Element i is ((7 i + 3) mod 11 - 5) / 50.
static inline void normed_fill(calx_module *m, const char *name)
{
  float values[BORING_FEATURES * NORMED_HIDDEN];
  calx_tensor *p = calx_module_find(m, name);
  const int n = (int)calx_tensor_numel(p);
  for (int i = 0; i < n; i++) {
    values[i] = (float)(((i * 7 + 3) % 11 - 5) * 0.02);
  }
  calx_assign(p, calx_tensor_from(values, CALX_F32, calx_tensor_shape(p)));
}

static inline calx_tensor *normed_forward(void *self, calx_tensor *x)
{
  const normed *n = self;
  calx_tensor *h = calx_forward(n->fc1, x);
  if (n->bn != NULL) h = calx_forward(n->bn, h);
  return calx_forward(n->fc2, calx_relu(h));
}

static inline calx_module *normed_make(calx_trainer *t, void *self)
{
  (void)t;
  normed *n = self;
  n->root = calx_module_new("Normed", normed_forward, n);
  n->fc1 = calx_nn_linear(n->root, "fc1", BORING_FEATURES, NORMED_HIDDEN);
  if (!normed_has_no_norm) {
    n->bn = calx_nn_batch_norm1d(n->root, "bn", NORMED_HIDDEN);
  }
  n->fc2 = calx_nn_linear(n->root, "fc2", NORMED_HIDDEN, 2);
  calx_no_grad_begin();
  normed_fill(n->root, "fc1.weight");
  normed_fill(n->root, "fc1.bias");
  normed_fill(n->root, "fc2.weight");
  normed_fill(n->root, "fc2.bias");
  calx_no_grad_end();
  return n->root;
}

static inline calx_tensor *normed_loss(void *self, const calx_batch *batch)
{
  calx_tensor *y = calx_forward(((normed *)self)->root, batch->data);
  return calx_mean(calx_square(calx_sub(y, 1)));
}

static inline calx_tensor *normed_step(calx_trainer *t, void *self,
                                       const calx_batch *batch, int64_t i)
{
  (void)t, (void)i;
  return normed_loss(self, batch);
}

static inline void normed_optimizers(calx_trainer *t, void *self)
{
  calx_trainer_add_optimizer(
      t, calx_sgd(((normed *)self)->root, .lr = 0.1, .momentum = 0.9));
}

static inline void normed_keep_train(calx_trainer *t, void *self,
                                     const calx_batch *batch, int64_t i)
{
  (void)self, (void)batch, (void)i;
  normed_run *r = calx_trainer_user(t);
  if (r->n_train == NORMED_STEPS) return;
  r->train[r->n_train++] = calx_item(calx_trainer_step_output(t));
}

static inline void normed_keep_val(calx_trainer *t, void *self,
                                   const calx_batch *batch, int64_t i)
{
  (void)self, (void)batch, (void)i;
  normed_run *r = calx_trainer_user(t);
  if (r->n_val == NORMED_STEPS) return;
  r->val[r->n_val++] = calx_item(calx_trainer_step_output(t));
}

#define NORMED_MODULE(run, ...)                                             \
  CALX_LIGHTNING_MODULE(.self_size = sizeof(normed), .user = (run),         \
                        .configure_model = normed_make,                     \
                        .training_step = normed_step,                       \
                        .validation_step = normed_step,                     \
                        .hooks = { .on_train_batch_end = normed_keep_train, \
                                   .on_validation_batch_end =               \
                                       normed_keep_val },                   \
                        __VA_ARGS__)

// Fits 16 samples and validates 8, in f64 and batches of 4.
static inline calx_status *normed_fit(calx_trainer *t,
                                      const calx_lightning_module *module)
{
  calx_dataset *data = boring_dataset(16), *few = boring_dataset(8);
  calx_loader *loader = calx_loader_new(data, .batch_size = 4);
  calx_loader *val = calx_loader_new(few, .batch_size = 4);
  calx_status *status = calx_trainer_fit(t, module, .train_dataloader = loader,
                                         .val_dataloader = val);
  calx_loader_free(loader);
  calx_loader_free(val);
  calx_dataset_free(data);
  calx_dataset_free(few);
  return status;
}

#define NORMED_TRAINER(callback, ...)                                   \
  calx_trainer_new(.devices = 1, .precision = "64-true", BORING_ALONE,  \
                   .num_sanity_val_steps = 0, .callbacks = &(callback), \
                   .n_callbacks = 1, __VA_ARGS__)

// What a run left under a name, in f64.
static inline void normed_read_left(const calx_trainer *t, const char *name,
                                    double *out)
{
  calx_scope *scope = calx_scope_begin();
  normed n = { 0 };
  calx_module *model = normed_make(NULL, &n);
  calx_module_to(model, CALX_F64);
  CHECK_STATUS_OK(calx_trainer_load_weights(t, model));
  calx_tensor *p = calx_to_dtype(calx_module_find(model, name), CALX_F64);
  CHECK_STATUS_OK(
      calx_tensor_read(p, out, (size_t)calx_tensor_numel(p) * sizeof *out));
  CHECK_STATUS_OK(calx_scope_end(scope));
  calx_module_free(model);
}

// The first `count` elements of it.
static inline void normed_check_left(const calx_trainer *t, const char *name,
                                     const double *wanted, int count,
                                     double tolerance)
{
  double values[BORING_FEATURES * NORMED_HIDDEN];
  normed_read_left(t, name, values);
  for (int i = 0; i < count; i++) {
    CHECK_CLOSE(values[i], wanted[i], tolerance);
  }
}

#endif
