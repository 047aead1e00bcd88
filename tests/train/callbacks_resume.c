// Callbacks over a restart: a run that ends in the middle of what a callback
// does, and one that goes on from its checkpoint, come to what one run does.
#include "normed.h"

enum { EPOCHS = 6, WEIGHTS = 2 * NORMED_HIDDEN };

// A run, and at the end of which epoch it saves and stops; -1: it does not.
typedef struct plan {
  const char *path;
  int64_t stops;
  double last_loss;
} plan;

static void optimizers(calx_trainer *t, void *self)
{
  calx_optimizer *opt =
      calx_sgd(((normed *)self)->root, .lr = 0.1, .momentum = 0.5);
  calx_trainer_add_optimizer(
      t, opt, .lr_scheduler = calx_step_lr(opt, 1, .gamma = 0.9));
}

static void save(calx_trainer *t, void *self)
{
  (void)self;
  const plan *p = calx_trainer_user(t);
  if (calx_trainer_current_epoch(t) != p->stops) return;
  calx_scope_set_error(calx_trainer_save_checkpoint(t, p->path));
  calx_trainer_stop(t);
}

static void keep_loss(calx_trainer *t, void *self, const calx_batch *batch,
                      int64_t i)
{
  (void)self, (void)batch, (void)i;
  plan *p = calx_trainer_user(t);
  p->last_loss = calx_item(calx_trainer_step_output(t));
}

static void fit(calx_callback *c, plan *p, const char *from, int64_t epochs,
                double *out)
{
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(normed), .user = p,
                            .configure_model = normed_make,
                            .configure_optimizers = optimizers,
                            .training_step = normed_step,
                            .hooks = { .on_train_epoch_end = save,
                                       .on_train_batch_end = keep_loss });
  calx_dataset *data = boring_dataset(16);
  calx_loader *loader =
      calx_loader_new(data, .batch_size = 4, .shuffle = true, .seed = 2);
  calx_trainer *t = NORMED_TRAINER(c, .max_epochs = EPOCHS);
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader,
                                   .ckpt_path = from));
  assert_int_equal(calx_trainer_current_epoch(t), epochs);
  normed_read_left(t, "fc2.weight", out);
  calx_trainer_free(t);
  calx_callback_free(c);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// ---- the callbacks ----------------------------------------------------------

typedef enum resumed { EMA, SWA, BACKBONE, ACCUMULATION, TIMER, ALL } resumed;

static calx_callback *make(resumed which)
{
  switch (which) {
    case EMA: return calx_ema_weight_averaging(.decay = 0.8);
    case SWA:
      return calx_stochastic_weight_averaging(.swa_lrs = 0.02,
                                              .swa_epoch_start = 3,
                                              .annealing_epochs = 2);
    case BACKBONE:
      return calx_backbone_finetuning(.backbone = "fc1",
                                      .unfreeze_backbone_at_epoch = 2,
                                      .backbone_initial_lr = 0.01);
    case ACCUMULATION:
      return calx_gradient_accumulation_scheduler(.epochs = CALX_DIMS(1, 4),
                                                  .factors = CALX_DIMS(2, 4));
    default: return calx_timer(.duration = "01:00:00:00");
  }
}

static double first_of(const calx_value *dict, const char *name)
{
  const calx_tensor *t = calx_value_as_tensor(calx_value_get(dict, name));
  return *(const double *)calx_host_data(t);
}

// The average is what is loaded as the weights.
static void check_average(const calx_value *checkpoint)
{
  const double average =
      first_of(calx_value_get(checkpoint, "state_dict"), "fc2.weight");
  const double current =
      first_of(calx_value_get(checkpoint, "current_model_state"), "fc2.weight");
  assert_true(fabs(average - current) > 1e-4);
  const calx_value *n = calx_value_get(
      calx_value_get(checkpoint, "averaging_state"), "n_averaged");
  assert_int_equal(*(const int64_t *)calx_host_data(calx_value_as_tensor(n)),
                   16);
}

// Groups have the parameters' names, as Lightning's.
static void check_groups(const calx_value *state)
{
  const calx_value *groups = calx_value_get_at(
      calx_value_get(state, "internal_optimizer_metadata"), 0);
  assert_int_equal(calx_value_count(groups), 2);
  const calx_value *added = calx_value_item(groups, 1);
  const calx_value *names = calx_value_get(added, "params");
  assert_int_equal(calx_value_count(names), 2);
  assert_string_equal(calx_value_as_string(calx_value_item(names, 0)),
                      "fc1.weight");
  CHECK_CLOSE(calx_value_as_float(calx_value_get(added, "momentum")), 0.5, 0);
  CHECK_CLOSE(
      calx_value_as_float(calx_value_get(state, "previous_backbone_lr")), 0.02,
      1e-12);
}

static void check_file(const char *path, resumed which)
{
  calx_value *checkpoint;
  CHECK_STATUS_OK(calx_load(path, &checkpoint));
  const calx_value *states = calx_value_get(checkpoint, "callbacks");
  if (which == EMA) check_average(checkpoint);
  if (which == BACKBONE) {
    check_groups(calx_value_get(states, "BackboneFinetuning"));
  }
  if (which == TIMER) {
    const calx_value *times =
        calx_value_get(calx_value_get(states, "Timer"), "time_elapsed");
    assert_true(calx_value_as_float(calx_value_get(times, "train")) > 0);
  }
  calx_value_free(checkpoint);
}

static void test_resumed(void **state)
{
  (void)state;
  char path[512];
  snprintf(path, sizeof path, "%s/middle.ckpt", getenv("TMPDIR"));
  for (resumed which = EMA; which < ALL; which++) {
    double whole[WEIGHTS], half[WEIGHTS], rest[WEIGHTS];
    plan p = { .path = path, .stops = -1 };
    fit(make(which), &p, NULL, EPOCHS, whole);
    const double loss = p.last_loss;
    p.stops = 3;
    fit(make(which), &p, NULL, 4, half);
    check_file(path, which);
    p.stops = -1;
    fit(make(which), &p, path, EPOCHS, rest);
    CHECK_CLOSE(p.last_loss, loss, 1e-12);
    for (int i = 0; i < WEIGHTS; i++) CHECK_CLOSE(rest[i], whole[i], 1e-12);
    remove(path);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_resumed) };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
