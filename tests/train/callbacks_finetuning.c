// BackboneFinetuning beside Lightning's, with the numbers of Lightning 2.6.6;
// and what freezes and unfreezes parts of a model.
#include "normed.h"
#include "optim/optimizer.h"
#include "said.h"
#include "train/internal.h"

enum { EPOCHS = 5, STEPS = 4 * EPOCHS };

// ---- the model: backbone (fc, bn) and head ----------------------------------

typedef struct tuned {
  calx_module *root, *backbone, *fc, *bn, *head;
} tuned;

typedef struct plan {
  bool has_schedule;
  double momentum;
  double losses[STEPS], rates[EPOCHS][2];
  int n;
} plan;

static calx_tensor *forward_backbone(void *self, calx_tensor *x)
{
  const tuned *m = self;
  return calx_relu(calx_forward(m->bn, calx_forward(m->fc, x)));
}

static calx_tensor *forward(void *self, calx_tensor *x)
{
  const tuned *m = self;
  return calx_forward(m->head, calx_forward(m->backbone, x));
}

static calx_module *make(calx_trainer *t, void *self)
{
  (void)t;
  tuned *m = self;
  m->root = calx_module_new("Tuned", forward, m);
  m->backbone =
      calx_module_child(m->root, "backbone", "Backbone", forward_backbone, m);
  m->fc = calx_nn_linear(m->backbone, "fc", BORING_FEATURES, NORMED_HIDDEN);
  m->bn = calx_nn_batch_norm1d(m->backbone, "bn", NORMED_HIDDEN);
  m->head = calx_nn_linear(m->root, "head", NORMED_HIDDEN, 2);
  calx_no_grad_begin();
  normed_fill(m->root, "backbone.fc.weight");
  normed_fill(m->root, "backbone.fc.bias");
  normed_fill(m->root, "head.weight");
  normed_fill(m->root, "head.bias");
  calx_no_grad_end();
  return m->root;
}

static calx_tensor *step(calx_trainer *t, void *self, const calx_batch *batch,
                         int64_t i)
{
  (void)t, (void)i;
  calx_tensor *y = calx_forward(((tuned *)self)->root, batch->data);
  return calx_mean(calx_square(calx_sub(y, 1)));
}

static void optimizers(calx_trainer *t, void *self)
{
  const plan *p = calx_trainer_user(t);
  calx_optimizer *opt =
      calx_sgd(((tuned *)self)->root, .lr = 0.1, .momentum = p->momentum);
  calx_trainer_add_optimizer(
      t, opt,
      .lr_scheduler =
          p->has_schedule ? calx_step_lr(opt, 1, .gamma = 0.9) : NULL);
}

static void keep_loss(calx_trainer *t, void *self, const calx_batch *batch,
                      int64_t i)
{
  (void)self, (void)batch, (void)i;
  plan *p = calx_trainer_user(t);
  p->losses[p->n++] = calx_item(calx_trainer_step_output(t));
}

static void keep_rates(calx_trainer *t, void *self)
{
  (void)self;
  plan *p = calx_trainer_user(t);
  const calx_optimizer *opt = calx_trainer_optimizer(t, 0);
  double *rates = p->rates[calx_trainer_current_epoch(t)];
  rates[0] = calx_optimizer_lr(opt);
  rates[1] = calx_optimizer_param_groups(opt) > 1
                 ? calx_optimizer_option(opt, 1, "lr")
                 : 0;
}

// ---- as Lightning -----------------------------------------------------------

static double faster(void *user, int64_t epoch)
{
  return *(const double *)user + 0.1 * (double)epoch;
}

static double base = 1.5;

typedef struct wanted_run {
  calx_backbone_finetuning_options options;
  bool has_schedule;
  double rates[EPOCHS][2], losses[STEPS];
} wanted_run;

#define OPTIONS(...)                                              \
  {                                                               \
    .size = sizeof(calx_backbone_finetuning_options), __VA_ARGS__ \
  }

static const wanted_run
    cases[] = {
      { OPTIONS(.unfreeze_backbone_at_epoch = 1,
                .backbone_initial_ratio_lr = 0.3),
        false,
        { { 0.1, 0 },
          { 0.1, 0.03 },
          { 0.1, 0.06 },
          { 0.1, 0.1 },
          { 0.1, 0.1 } },
        { 0.913622692,   0.625390797,    0.301247402,   0.133623703,
          0.0274003447,  0.0415875297,   0.0883831005,  0.0565097144,
          0.033068612,   0.0765026107,   0.0259831153,  0.0833213288,
          0.0162021587,  0.00652989114,  0.00424054881, 0.00323943921,
          0.00701453224, 0.000952042711, 0.0011928419,  0.00290968584 } },
      { OPTIONS(.unfreeze_backbone_at_epoch = 2, .backbone_initial_lr = 0.02,
                .lambda_func = faster, .user = &base, .no_align = true,
                .no_train_bn = true),
        true,
        { { 0.1, 0 },
          { 0.09, 0 },
          { 0.081, 0.02 },
          { 0.0729, 0.038 },
          { 0.06561, 0.076 } },
        { 0.913622692,   0.625390797,   0.301247402,  0.133623703,
          0.0274003447,  0.0241954611,  0.0124443483, 0.016948694,
          0.0106532602,  0.0262895625,  0.0747782545, 0.00379373829,
          0.00846247762, 0.0248082332,  0.0229240567, 0.00111062302,
          0.0128595383,  0.00556498677, 0.0152867177, 0.0463105817 } },
    };

static calx_lightning_module module_of(plan *p, calx_trainer_hooks hooks)
{
  return (calx_lightning_module)
      CALX_LIGHTNING_MODULE(.self_size = sizeof(tuned), .user = p,
                            .configure_model = make,
                            .configure_optimizers = optimizers,
                            .training_step = step, .hooks = hooks);
}

static void test_as_lightning(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const wanted_run *w = &cases[i];
    plan p = { .has_schedule = w->has_schedule, .momentum = 0.5 };
    const calx_lightning_module module =
        module_of(&p, (calx_trainer_hooks){ .on_train_epoch_start = keep_rates,
                                            .on_train_batch_end = keep_loss });
    calx_callback *c = calx_backbone_finetuning_with(&w->options);
    calx_trainer *t = NORMED_TRAINER(c, .max_epochs = EPOCHS);
    CHECK_STATUS_OK(normed_fit(t, &module));
    for (int k = 0; k < EPOCHS; k++) {
      CHECK_CLOSE(p.rates[k][0], w->rates[k][0], 1e-12);
      CHECK_CLOSE(p.rates[k][1], w->rates[k][1], 1e-12);
    }
    for (int k = 0; k < STEPS; k++) {
      CHECK_CLOSE(p.losses[k], w->losses[k], 1e-6);
    }
    calx_trainer_free(t);
    calx_callback_free(c);
  }
}

// ---- freezing ---------------------------------------------------------------

static double first_mean(tuned *m)
{
  calx_scope *scope = calx_scope_begin();
  calx_tensor *x = calx_ones(CALX_SHAPE(4, BORING_FEATURES));
  calx_sync(calx_forward(m->root, calx_mul(x, 3)));
  double mean[NORMED_HIDDEN];
  float narrow[NORMED_HIDDEN];
  CHECK_STATUS_OK(
      calx_tensor_read(calx_module_find(m->root, "backbone.bn.running_mean"),
                       narrow, sizeof narrow));
  mean[0] = (double)narrow[0];
  CHECK_STATUS_OK(calx_scope_end(scope));
  return mean[0];
}

static bool trains(const tuned *m, const char *name)
{
  return calx_tensor_requires_grad(calx_module_find(m->root, name));
}

static void test_freeze(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  tuned m;
  make(NULL, &m);
  calx_finetuning_freeze(m.backbone);
  assert_false(trains(&m, "backbone.fc.weight"));
  assert_true(trains(&m, "backbone.bn.weight"));
  assert_true(trains(&m, "head.weight"));
  const double moved = first_mean(&m);
  assert_true(moved != 0);
  calx_finetuning_freeze(m.backbone, .no_train_bn = true);
  assert_false(trains(&m, "backbone.bn.bias"));
  assert_true(first_mean(&m) == moved);
  calx_module_train(m.root, false);
  assert_true(first_mean(&m) == moved);
  calx_module_train(m.root, true);
  calx_optimizer *opt = calx_sgd(m.root, .lr = 0.5);
  assert_int_equal(opt->n, 2);
  assert_int_equal(
      calx_finetuning_unfreeze_and_add_param_group(m.backbone, opt), 1);
  assert_int_equal(opt->n, 6);
  CHECK_CLOSE(calx_optimizer_option(opt, 1, "lr"), 0.05, 1e-12);
  assert_true(trains(&m, "backbone.bn.bias"));
  assert_true(first_mean(&m) != moved);
  said_begin();
  assert_true(calx_finetuning_unfreeze_and_add_param_group(
                  m.backbone, opt, .lr = 0.1) == SIZE_MAX);
  said_end();
  assert_int_equal(said_count("already exist within another group"), 1);
  assert_int_equal(calx_optimizer_param_groups(opt), 2);
  calx_optimizer_free(opt);
  CHECK_STATUS_OK(calx_scope_end(scope));
  calx_module_free(m.root);
}

static void test_refused(void **state)
{
  (void)state;
  plan p = { .n = 0 };
  const calx_lightning_module module =
      module_of(&p, (calx_trainer_hooks){ .setup = NULL });
  calx_callback *c = calx_backbone_finetuning(.backbone = "spine");
  calx_trainer *t = NORMED_TRAINER(c, .max_epochs = 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, normed_fit(t, &module),
               "The LightningModule should have a nn.Module `spine` attribute");
  calx_trainer_free(t);
  calx_callback_free(c);
  c = calx_backbone_finetuning(.unfreeze_backbone_at_epoch = -1);
  t = NORMED_TRAINER(c, .max_epochs = 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_error(t),
               "unfreeze_backbone_at_epoch is -1");
  calx_trainer_free(t);
  calx_callback_free(c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_as_lightning),
    SUPPORT_TEST(test_freeze),
    SUPPORT_TEST(test_refused),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
