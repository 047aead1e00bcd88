// zero: an optimiser's state that is spread over the ranks. That it steps as
// the plain one does is in parity.c.
#include <unistd.h>

#include "calx/autograd.h"
#include "calx/io.h"
#include "ranks.h"
#include "state.h"

typedef struct model {
  calx_module *root;
  calx_tensor *a, *b, *c;  // f64 (5), f64 (2, 3), f32 (7)
  calx_optimizer *opt;
} model;

static calx_optimizer *sgd(void *user, calx_module *parameters)
{
  (void)user;
  return calx_sgd(parameters, .lr = 0.25, .momentum = 0.5, .weight_decay = 0.1);
}

// The options are the user's pointer.
static calx_optimizer *sgd_with(void *user, calx_module *parameters)
{
  return calx_sgd_with(parameters, user);
}

static calx_status *make(model *m, bool sharded)
{
  m->root = calx_module_new("Net", NULL, NULL);
  calx_scope *scope = calx_scope_begin();
  calx_tensor *a = calx_arange(0, 5, 1, .dtype = CALX_F64);
  calx_tensor *b = calx_ones(CALX_SHAPE(2, 3), .dtype = CALX_F64);
  m->a = calx_module_param(m->root, "a", a);
  m->b = calx_module_param(m->root, "b", b);
  m->c = calx_module_param(m->root, "c", calx_ones(CALX_SHAPE(7)));
  CALX_TRY(calx_scope_end(scope));
  m->opt = sharded ? calx_zero_redundancy_optimizer(m->root, .make = sgd)
                   : sgd(NULL, m->root);
  return calx_optimizer_error(m->opt);
}

static void model_free(model *m)
{
  calx_optimizer_free(m->opt);
  calx_module_free(m->root);
}

// (rank + 1) times the squares' sum.
static calx_tensor *loss_of(const model *m)
{
  calx_tensor *sum =
      calx_add(calx_sum(calx_square(m->a)), calx_sum(calx_square(m->b)));
  sum = calx_add(sum, calx_to_dtype(calx_sum(calx_square(m->c)), CALX_F64));
  return calx_mul(sum, calx_global_ordinal() + 1);
}

static calx_status *step(model *m, bool fails)
{
  calx_scope *scope = calx_scope_begin();
  calx_optimizer_zero_grad(m->opt);
  calx_tensor *loss = loss_of(m);
  calx_backward(loss);
  if (fails) {
    calx_optimizer_step(m->opt);
    calx_reshape(m->a, CALX_SHAPE(77));
    calx_sync(NULL);
  } else {
    calx_dist_step(m->opt, loss);
  }
  return calx_scope_end(scope);
}

// ---- the same weights, less state -------------------------------------------

static calx_status *train(int index, void *user)
{
  (void)index;
  (void)user;
  model plain, sharded;
  CALX_TRY(make(&plain, false));
  CALX_TRY(make(&sharded, true));
  for (int s = 0; s < 4; s++) {
    CALX_TRY(step(&plain, false));
    // Failed on every rank: nothing remains of it.
    CALX_TRY(rank_wants(step(&sharded, true), CALX_INVALID_ARGUMENT, "77"));
    CALX_TRY(step(&sharded, false));
    RANK_CHECK(calx_optimizer_steps(sharded.opt) == s + 1);
    state_numbers p = state_of(plain.root), z = state_of(sharded.root);
    double d = state_distance(&p, &z);
    free(p.values);
    free(z.values);
    CALX_TRY(p.status);
    CALX_TRY(z.status);
    RANK_CHECK(d < 1e-6);
  }
  model_free(&plain);
  model_free(&sharded);
  return NULL;
}

static void test_training(void **state)
{
  (void)state;
  ranks_up_to(8, train);
}

static calx_status *look_at_state(int index, void *user)
{
  (void)index;
  (void)user;
  model m;
  CALX_TRY(make(&m, true));
  RANK_CHECK(calx_optimizer_state(m.opt, 0, "momentum_buffer") == NULL);
  CALX_TRY(step(&m, false));
  int64_t n = calx_world_size();  // 11 elements of f64, 7 of f32
  calx_tensor *wide = calx_optimizer_state(m.opt, 0, "momentum_buffer");
  calx_tensor *narrow = calx_optimizer_state(m.opt, 1, "momentum_buffer");
  RANK_CHECK(calx_tensor_numel(wide) == (11 + n - 1) / n);
  RANK_CHECK(calx_tensor_dtype(wide) == CALX_F64);
  RANK_CHECK(calx_tensor_numel(narrow) == (7 + n - 1) / n);
  RANK_CHECK(calx_optimizer_state(m.opt, 2, "momentum_buffer") == NULL);
  // The learning rate is the outer one's; parameters changed from outside hold.
  calx_scope *scope = calx_scope_begin();
  calx_no_grad_begin();
  calx_assign(m.c, 3);
  calx_sync(NULL);
  CALX_TRY(calx_scope_end(scope));
  RANK_CHECK(calx_optimizer_lr(m.opt) == 0.25);
  calx_optimizer_set_lr(m.opt, 0);
  CALX_TRY(step(&m, false));
  state_numbers s = state_of(m.root);
  bool right = s.values[17] == 3 && s.values[11] == 3;
  free(s.values);
  RANK_CHECK(right);
  model_free(&m);
  return NULL;
}

static void test_state(void **state)
{
  (void)state;
  ranks_up_to(8, look_at_state);
}

// ---- more parameters than one cat joins -------------------------------------

enum { MANY = 4099 };

static calx_status *train_many(int index, void *user)
{
  (void)index, (void)user;
  calx_module *root = calx_module_new("Many", NULL, NULL);
  calx_scope *scope = calx_scope_begin();
  calx_tensor *sum = calx_zeros(CALX_SHAPE(1)), *all[MANY];
  for (int i = 0; i < MANY; i++) {
    char name[8];
    snprintf(name, sizeof name, "p%d", i);
    all[i] = calx_module_param(root, name, calx_full(CALX_SHAPE(1), i));
  }
  calx_sgd_options o = { .size = sizeof o, .lr = 0.5 };
  calx_optimizer *opt =
      calx_zero_redundancy_optimizer(root, .make = sgd_with, .user = &o);
  for (int i = 0; i < MANY; i += 3) sum = calx_add(sum, all[i]);
  for (int i = 0; i < MANY; i++) {
    if (i % 3 != 0) sum = calx_sub(sum, all[i]);
  }
  calx_backward(calx_sum(sum));
  calx_dist_step(opt, NULL);
  calx_status *status = calx_scope_end(scope);
  state_numbers s = state_of(root);
  bool right = status == NULL && s.status == NULL && s.n == MANY;
  for (int i = 0; right && i < MANY; i++) {
    right = s.values[i] == i + (i % 3 == 0 ? -0.5 : 0.5);
  }
  free(s.values);
  calx_optimizer_free(opt);
  calx_module_free(root);
  CALX_TRY(status);
  RANK_CHECK(right);
  return NULL;
}

// A run of its own: XLA takes minutes to compile so many.
static void test_many_parameters(void **state)
{
  (void)state;
  set_devices(2);
  CHECK_STATUS_OK(calx_launch(train_many, NULL));
}

// ---- clipped gradients ------------------------------------------------------

// One step, with gradients clipped to a norm; the norm before.
static calx_status *clipped_step(model *m, bool sharded, double max_norm,
                                 double norm_type, double *out_norm)
{
  calx_scope *scope = calx_scope_begin();
  calx_optimizer_zero_grad(m->opt);
  calx_backward(loss_of(m));
  if (!sharded) calx_reduce_gradients(m->opt);
  calx_tensor *norm =
      calx_clip_grad_norm(m->opt, max_norm, .norm_type = norm_type);
  calx_optimizer_step(m->opt);
  calx_sync(norm);
  *out_norm = calx_item(norm);
  return calx_scope_end(scope);
}

// As the plain optimiser steps on clipped means; a step without clipping, and
// one whose gradients came after the clipping, are as if there were none.
static calx_status *clip(int index, void *user)
{
  (void)index;
  (void)user;
  model plain, sharded;
  CALX_TRY(make(&plain, false));
  CALX_TRY(make(&sharded, true));
  for (int s = 0; s < 6; s++) {
    double type = s % 2 == 0 ? 2 : HUGE_VAL, most = s < 4 ? 0.5 : 1e6;
    double p = -1, z = -2;
    CALX_TRY(clipped_step(&plain, false, most, type, &p));
    CALX_TRY(clipped_step(&sharded, true, most, type, &z));
    RANK_CHECK(p > 0.5 && fabs(p - z) < 1e-6 * p);
    if (s == 2) {
      calx_scope *scope = calx_scope_begin();
      calx_optimizer_zero_grad(sharded.opt);
      calx_backward(loss_of(&sharded));
      calx_clip_grad_norm(sharded.opt, 1e-3);
      CALX_TRY(calx_scope_end(scope));
      CALX_TRY(step(&plain, false));
      CALX_TRY(step(&sharded, false));  // which drops those gradients
    }
    state_numbers a = state_of(plain.root), b = state_of(sharded.root);
    double d = state_distance(&a, &b);
    free(a.values);
    free(b.values);
    RANK_CHECK(a.status == NULL && b.status == NULL && d < 1e-5);
  }
  model_free(&plain);
  model_free(&sharded);
  return NULL;
}

static void test_clip(void **state)
{
  (void)state;
  ranks_up_to(3, clip);
}

// ---- going on from a state --------------------------------------------------

static calx_status *resume(int index, void *user)
{
  (void)index;
  (void)user;
  model whole, first, second;
  CALX_TRY(make(&whole, true));
  CALX_TRY(make(&first, true));
  CALX_TRY(make(&second, true));
  CALX_TRY(step(&whole, false));
  CALX_TRY(step(&first, false));
  calx_optimizer_set_lr(whole.opt, 0.125);
  calx_optimizer_set_lr(first.opt, 0.125);
  CALX_TRY(step(&whole, false));
  CALX_TRY(step(&first, false));
  calx_value *weights, *steps;
  CALX_TRY(calx_module_state_dict(first.root, &weights));
  CALX_TRY(calx_optimizer_state_dict(first.opt, &steps));
  CALX_TRY(calx_module_load_state_dict(second.root, weights));
  CALX_TRY(calx_optimizer_load_state_dict(second.opt, steps));
  calx_value_free(weights);
  calx_value_free(steps);
  RANK_CHECK(calx_optimizer_lr(second.opt) == 0.125);
  RANK_CHECK(calx_optimizer_steps(second.opt) ==
             calx_optimizer_steps(whole.opt));
  CALX_TRY(step(&whole, false));
  CALX_TRY(step(&second, false));
  state_numbers a = state_of(whole.root), b = state_of(second.root);
  bool same = state_same_bits(&a, &b);
  free(a.values);
  free(b.values);
  RANK_CHECK(a.status == NULL && b.status == NULL && same);
  model_free(&whole);
  model_free(&first);
  model_free(&second);
  return NULL;
}

static void test_resume(void **state)
{
  (void)state;
  set_devices(3);
  CHECK_STATUS_OK(calx_launch(resume, NULL));
}

// ---- from a file ------------------------------------------------------------

static char folder[] = "/tmp/calx_zero_XXXXXX";

static void name_file(char out[64], int rank)
{
  snprintf(out, 64, "%s/zero.%d.pt", folder, rank);
}

// Each rank its weights and its shard, after two steps.
static calx_status *save_shards(int index, void *user)
{
  (void)user;
  model m;
  char path[64];
  calx_value *both = calx_value_container(CALX_KIND_DICT), *part;
  CALX_TRY(make(&m, true));
  for (int s = 0; s < 2; s++) CALX_TRY(step(&m, false));
  CALX_TRY(calx_module_state_dict(m.root, &part));
  CALX_TRY(calx_value_set(both, "model", part));
  CALX_TRY(calx_optimizer_state_dict(m.opt, &part));
  CALX_TRY(calx_value_set(both, "optimizer", part));
  name_file(path, index);
  CALX_TRY(calx_save(both, path, .every_rank = true));
  calx_value_free(both);
  calx_checkpoint c = { .size = sizeof c, .model = m.root, .optimizer = m.opt };
  CALX_TRY(rank_wants(calx_checkpoint_save(path, &c), CALX_FAILED_PRECONDITION,
                      "the optimiser's state is spread over 2 ranks"));
  model_free(&m);
  return NULL;
}

static calx_status *load(model *m, int rank, calx_status **out_optimizer)
{
  char path[64];
  calx_value *both;
  name_file(path, rank);
  CALX_TRY(calx_load(path, &both));
  CALX_TRY(calx_module_load_state_dict(m->root, calx_value_get(both, "model")));
  *out_optimizer =
      calx_optimizer_load_state_dict(m->opt, calx_value_get(both, "optimizer"));
  calx_value_free(both);
  return NULL;
}

static calx_status *load_shards(int index, void *user)
{
  (void)user;
  model whole, loaded;
  calx_status *status;
  CALX_TRY(make(&whole, true));
  CALX_TRY(make(&loaded, true));
  for (int s = 0; s < 2; s++) CALX_TRY(step(&whole, false));
  CALX_TRY(load(&loaded, index, &status));
  CALX_TRY(status);
  for (int s = 0; s < 2; s++) {
    CALX_TRY(step(&whole, false));
    CALX_TRY(step(&loaded, false));
  }
  RANK_CHECK(calx_optimizer_steps(loaded.opt) == 4);
  state_numbers a = state_of(whole.root), b = state_of(loaded.root);
  bool same = state_same_bits(&a, &b);
  free(a.values);
  free(b.values);
  RANK_CHECK(a.status == NULL && b.status == NULL && same);
  model_free(&whole);
  model_free(&loaded);
  return NULL;
}

// Of another rank, of another number of ranks, and by a plain optimiser. What
// is whole is in zero_state.c.
static calx_status *load_wrong_shards(int index, void *user)
{
  (void)user;
  model sharded, plain;
  calx_status *status;
  char wanted[96];
  int other = index == 0 ? 1 : 0;
  CALX_TRY(make(&sharded, true));
  CALX_TRY(make(&plain, false));
  CALX_TRY(load(&sharded, other, &status));
  snprintf(wanted, sizeof wanted,
           "the shard of rank %d of 2, this is rank %d of %d", other, index,
           calx_world_size());
  CALX_TRY(rank_wants(status, CALX_INVALID_ARGUMENT, wanted));
  CALX_TRY(load(&plain, other, &status));
  CALX_TRY(rank_wants(status, CALX_INVALID_ARGUMENT,
                      "of 2, the optimiser's state is whole"));
  model_free(&sharded);
  model_free(&plain);
  return NULL;
}

static void test_file(void **state)
{
  (void)state;
  assert_non_null(mkdtemp(folder));
  set_devices(2);
  CHECK_STATUS_OK(calx_launch(save_shards, NULL));
  calx_shutdown();
  CHECK_STATUS_OK(calx_launch(load_shards, NULL));
  calx_shutdown();
  for (int ranks = 2; ranks <= 3; ranks++) {
    set_devices(ranks);
    CHECK_STATUS_OK(calx_launch(load_wrong_shards, NULL));
    calx_shutdown();
  }
  for (int rank = 0; rank < 2; rank++) {
    char path[64];
    name_file(path, rank);
    assert_int_equal(unlink(path), 0);
  }
  assert_int_equal(rmdir(folder), 0);
}

// ---- refused ----------------------------------------------------------------

static calx_status *some_gradients(int index, void *user)
{
  (void)index;
  (void)user;
  model m;
  CALX_TRY(make(&m, true));
  calx_dist_step(m.opt, NULL);  // none at all: nothing to do
  CALX_TRY(calx_scope_take_error());
  RANK_CHECK(calx_optimizer_steps(m.opt) == 0);
  calx_scope *scope = calx_scope_begin();
  calx_backward(calx_sum(m.b));
  calx_dist_step(m.opt, NULL);
  calx_status *status = calx_scope_end(scope);
  model_free(&m);
  return rank_wants(status, CALX_FAILED_PRECONDITION, "has no gradient");
}

static void test_some_gradients(void **state)
{
  (void)state;
  set_devices(2);
  CHECK_STATUS_OK(calx_launch(some_gradients, NULL));
}

static calx_optimizer *no_optimizer(void *user, calx_module *parameters)
{
  (void)user, (void)parameters;
  return NULL;
}

// An optimiser of the user's module instead of the shards.
static calx_optimizer *of_user(void *user, calx_module *parameters)
{
  (void)parameters;
  return calx_adam((calx_module *)user);
}

// One that shards once more.
static calx_optimizer *twice(void *user, calx_module *parameters)
{
  (void)user;
  return calx_zero_redundancy_optimizer(parameters, .make = sgd);
}

static void check_refused(calx_optimizer *opt, const char *why)
{
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_optimizer_error(opt), why);
  calx_optimizer_free(opt);
}

static void test_refused(void **state)
{
  (void)state;
  calx_module *m = calx_nn_linear(NULL, NULL, 2, 2);
  calx_sgd_options bad = { .size = sizeof bad, .lr = -1 };
  check_refused(calx_zero_redundancy_optimizer(m), ".make is missing");
  check_refused(calx_zero_redundancy_optimizer(m, .make = no_optimizer),
                "gave no optimiser");
  check_refused(calx_zero_redundancy_optimizer(m, .make = of_user, .user = m),
                "the adam that .make gave is not one of the shards");
  check_refused(calx_zero_redundancy_optimizer(m, .make = twice),
                "is not one of the shards");
  check_refused(
      calx_zero_redundancy_optimizer(m, .make = sgd_with, .user = &bad),
      "lr -1");
  check_refused(calx_zero_redundancy_optimizer(NULL, .make = sgd), "NULL");
  calx_module_free(m);
}

int main(int argc, char **argv)
{
  const struct CMUnitTest many[] = { SUPPORT_TEST(test_many_parameters) };
  if (argc == 2 && strcmp(argv[1], "many") == 0) {
    return cmocka_run_group_tests(many, support_setup, NULL);
  }
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_training), SUPPORT_TEST(test_state),
    SUPPORT_TEST(test_clip),     SUPPORT_TEST(test_resume),
    SUPPORT_TEST(test_file),     SUPPORT_TEST(test_some_gradients),
    SUPPORT_TEST(test_refused),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
