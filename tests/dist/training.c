// training: gradients that become means, steps in step, the master's model.
#include "calx/autograd.h"
#include "calx/debug.h"
#include "ranks.h"
#include "state.h"

// Four parameters of two types; the gradient of each element is the factor.
typedef struct model {
  calx_module *root;
  calx_tensor *w[4];
  calx_optimizer *opt;
} model;

static calx_status *make(model *m)
{
  static const calx_dtype types[] = { CALX_F32, CALX_F64, CALX_F32, CALX_F64 };
  m->root = calx_module_new("Net", NULL, NULL);
  calx_scope *scope = calx_scope_begin();
  for (int i = 0; i < 4; i++) {
    char name[2] = { (char)('a' + i), '\0' };
    m->w[i] = calx_module_param(
        m->root, name, calx_ones(CALX_SHAPE(2, i + 1), .dtype = types[i]));
  }
  CALX_TRY(calx_scope_end(scope));
  m->opt = calx_sgd(m->root, .lr = 0.5);
  return calx_optimizer_error(m->opt);
}

static void model_free(model *m)
{
  calx_optimizer_free(m->opt);
  calx_module_free(m->root);
}

static calx_tensor *loss_of(const model *m, double factor)
{
  calx_tensor *sum = calx_zeros(CALX_SHAPE(1), .dtype = CALX_F64);
  for (int i = 0; i < 4; i++) {
    sum = calx_add(sum, calx_mul(calx_sum(m->w[i]), factor * (i + 1)));
  }
  return calx_sum(sum);
}

// Whether all elements of parameter i are 1 - lr (i + 1) `factor`.
static bool holds(const model *m, double factor)
{
  state_numbers s = state_of(m->root);
  bool right = s.status == NULL;
  calx_status_free(s.status);
  for (size_t i = 0, at = 0; i < 4; i++) {
    for (size_t k = 0; k < 2 * (i + 1); k++) {
      double wanted = 1 - 0.5 * factor * (double)(i + 1);
      right &= fabs(s.values[at++] - wanted) < 1e-6;
    }
  }
  free(s.values);
  return right;
}

// ---- means ------------------------------------------------------------------

static calx_status *reduce_with(model *m, double megabytes)
{
  double mean = (calx_world_size() + 1) / 2.0;
  calx_scope *scope = calx_scope_begin();
  calx_optimizer_zero_grad(m->opt);
  calx_backward(loss_of(m, calx_global_ordinal() + 1));
  calx_reduce_gradients(m->opt, .bucket_mb = megabytes);
  calx_sync(NULL);
  for (int i = 0; i < 4 && calx_scope_error() == NULL; i++) {
    double most = calx_item(calx_amax(calx_grad(m->w[i])));
    double least = calx_item(calx_amin(calx_grad(m->w[i])));
    RANK_CHECK(fabs(most - mean * (i + 1)) < 1e-6 && least == most);
    RANK_CHECK(calx_tensor_dtype(calx_grad(m->w[i])) ==
               calx_tensor_dtype(m->w[i]));
  }
  return calx_scope_end(scope);
}

static calx_status *reduce(int index, void *user)
{
  (void)index;
  (void)user;
  model m;
  CALX_TRY(make(&m));
  calx_status *status = reduce_with(&m, 0);
  if (status == NULL) status = reduce_with(&m, CALX_ZERO);
  if (status == NULL) status = reduce_with(&m, 40.0 / 1048576);
  model_free(&m);
  return status;
}

static void test_means(void **state)
{
  (void)state;
  ranks_up_to(8, reduce);
}

static calx_status *reduce_groups(int index, void *user)
{
  (void)user;
  static const int64_t ids[] = { 0, 2, 1, 3 };
  model m;
  CALX_TRY(make(&m));
  calx_scope *scope = calx_scope_begin();
  calx_backward(loss_of(&m, index));
  calx_reduce_gradients(m.opt,
                        .groups = { .ids = ids, .count = 4, .groups = 2 });
  calx_sync(NULL);
  double mean = calx_item(calx_amax(calx_grad(m.w[0])));
  calx_status *status = calx_scope_end(scope);
  model_free(&m);
  CALX_TRY(status);
  RANK_CHECK(mean == index % 2 + 1);  // of 0 and 2, of 1 and 3
  return NULL;
}

static void test_groups(void **state)
{
  (void)state;
  set_devices(4);
  CHECK_STATUS_OK(calx_launch(reduce_groups, NULL));
}

// ---- buckets ----------------------------------------------------------------

static size_t occurrences(const char *text, const char *word)
{
  size_t n = 0;
  for (; text != NULL && (text = strstr(text, word)) != NULL; text++) n++;
  return n;
}

typedef struct asked {
  double megabytes;
  size_t collectives;
} asked;

static calx_status *count_collectives(int index, void *user)
{
  asked *a = user;
  model m;
  CALX_TRY(make(&m));
  calx_scope *scope = calx_scope_begin();
  calx_backward(loss_of(&m, 1));
  calx_reduce_gradients(m.opt, .bucket_mb = a->megabytes);
  calx_tensor *grads[4];
  for (int i = 0; i < 4; i++) {
    grads[i] = calx_to_dtype(calx_flatten(calx_grad(m.w[i])), CALX_F64);
  }
  char *text = calx_graph_str(calx_cat(grads, 4, 0));
  if (index == 0) a->collectives = occurrences(text, " all_reduce(");
  calx_string_free(text);
  calx_sync(NULL);
  calx_status *status = calx_scope_end(scope);
  model_free(&m);
  return status;
}

static void test_buckets(void **state)
{
  (void)state;
  set_devices(2);
  // Bytes, from the last: f64[2,4] 64, f32[2,3] 24, f64[2,2] 32, f32[2,1] 8.
  // A bucket is one collective for each type in it.
  static const struct {
    double bytes;
    size_t collectives;
  } cases[] = { { 0, 4 }, { 64, 3 }, { 88, 4 }, { 128, 2 }, { 25e6, 2 } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    double megabytes = cases[i].bytes / 1048576;
    asked a = { .megabytes = megabytes == 0 ? CALX_ZERO : megabytes };
    CHECK_STATUS_OK(calx_launch(count_collectives, &a));
    print_message("  buckets of %.0f bytes: %zu collectives\n", cases[i].bytes,
                  a.collectives);
    assert_int_equal(a.collectives, cases[i].collectives);
  }
}

static bool is_launched(const calx_tensor *t)
{
  const cx_graph_node *node = cx_lazy_tensor_value(t).node;
  return node != NULL && (cx_graph_node_flags(node) & CX_GRAPH_NODE_DATA) != 0;
}

// ---- steps ------------------------------------------------------------------

static calx_status *take_steps(int index, void *user)
{
  (void)user;
  model m;
  CALX_TRY(make(&m));
  double n = calx_world_size(), mean = (n + 1) / 2;
  for (int s = 1; s <= 3; s++) {
    calx_scope *scope = calx_scope_begin();
    calx_optimizer_zero_grad(m.opt);
    calx_tensor *loss = loss_of(&m, index + 1);
    calx_backward(loss);
    calx_tensor *all = calx_dist_step(m.opt, loss);
    RANK_CHECK(is_launched(all) || calx_scope_error() != NULL);
    double value = calx_item(all);
    CALX_TRY(calx_scope_end(scope));
    // Of elements 1 - lr mean (i + 1) (s - 1), in 2 (i + 1) of them.
    double wanted = 0;
    for (int i = 1; i <= 4; i++) {
      wanted += mean * i * 2 * i * (1 - 0.5 * mean * i * (s - 1));
    }
    RANK_CHECK(fabs(value - wanted) < 1e-5 * fabs(wanted));
    RANK_CHECK(holds(&m, mean * s));
  }
  RANK_CHECK(calx_optimizer_steps(m.opt) == 3);
  model_free(&m);
  return NULL;
}

static void test_steps(void **state)
{
  (void)state;
  ranks_up_to(8, take_steps);
}

// Backward passes add up on each rank; only the last one's sum travels.
static calx_status *accumulate(int index, void *user)
{
  (void)user;
  model m;
  CALX_TRY(make(&m));
  double mean = (calx_world_size() + 1) / 2.0;
  for (int part = 0; part < 3; part++) {
    calx_scope *scope = calx_scope_begin();
    calx_backward(loss_of(&m, index + 1));
    if (part < 2)
      calx_sync(NULL);
    else
      RANK_CHECK(calx_dist_step(m.opt, NULL) == NULL);
    CALX_TRY(calx_scope_end(scope));
    RANK_CHECK(holds(&m, part < 2 ? 0 : 3 * mean));
  }
  model_free(&m);
  return NULL;
}

static void test_accumulation(void **state)
{
  (void)state;
  set_devices(3);
  CHECK_STATUS_OK(calx_launch(accumulate, NULL));
}

// Two steps that a loader syncs as one.
static calx_status *defer(int index, void *user)
{
  (void)user;
  model m;
  CALX_TRY(make(&m));
  calx_scope *scope = calx_scope_begin();
  cx_lazy_sync_defer(true);
  calx_tensor *means[2];
  for (int s = 0; s < 2; s++) {
    calx_optimizer_zero_grad(m.opt);
    calx_tensor *loss = loss_of(&m, index + 1);
    calx_backward(loss);
    means[s] = calx_dist_step(m.opt, loss);
    RANK_CHECK(!is_launched(means[s]));
  }
  cx_lazy_sync_defer(false);
  calx_sync(means[0], means[1]);
  CALX_TRY(calx_scope_end(scope));
  RANK_CHECK(holds(&m, 2 * (calx_world_size() + 1) / 2.0));
  model_free(&m);
  return NULL;
}

static void test_deferred(void **state)
{
  (void)state;
  set_devices(2);
  CHECK_STATUS_OK(calx_launch(defer, NULL));
}

// ---- what does not fit ------------------------------------------------------

static calx_status *fail_in_step(int index, void *user)
{
  (void)user;
  model m;
  CALX_TRY(make(&m));
  calx_scope *scope = calx_scope_begin();
  calx_tensor *loss = loss_of(&m, 1);
  calx_backward(loss);
  if (index == 1) calx_reshape(m.w[0], CALX_SHAPE(7));
  calx_dist_step(m.opt, loss);
  calx_status *status = calx_scope_end(scope);
  bool same = holds(&m, 0);
  model_free(&m);
  if (status != NULL) return status;
  RANK_CHECK(same);
  return NULL;
}

// The rank's own error is the launch's; the others are not left waiting.
static void test_failed_step(void **state)
{
  (void)state;
  set_devices(3);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_launch(fail_in_step, NULL),
               "rank 1: ", "reshape");
}

static calx_status *fewer_batches(int index, void *user)
{
  (void)user;
  model m;
  CALX_TRY(make(&m));
  calx_status *status = NULL;
  for (int s = 0; s < (index == 1 ? 2 : 3) && status == NULL; s++) {
    calx_scope *scope = calx_scope_begin();
    calx_optimizer_zero_grad(m.opt);
    calx_tensor *loss = loss_of(&m, 1);
    calx_backward(loss);
    calx_dist_step(m.opt, loss);
    status = calx_scope_end(scope);
  }
  model_free(&m);
  return index == 1
             ? status
             : rank_wants(status, CALX_ABORTED,
                          "do the ranks have different numbers of batches?");
}

static void test_fewer_batches(void **state)
{
  (void)state;
  ranks_on_all_worlds(fewer_batches, false);
}

static void test_refused(void **state)
{
  (void)state;
  set_devices(1);
  model m;
  CHECK_STATUS_OK(make(&m));
  calx_reduce_gradients(m.opt, .bucket_mb = -1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
               "reduce_gradients: a bucket of -1 MB");
  calx_reduce_gradients(NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "NULL");
  calx_broadcast_master_param(NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "NULL");
  model_free(&m);
}

// ---- the master's model -----------------------------------------------------

static calx_status *broadcast(int index, void *user)
{
  (void)user;
  calx_module *m = calx_nn_batch_norm2d(NULL, NULL, 3);
  calx_scope *scope = calx_scope_begin();
  calx_no_grad_begin();
  calx_assign(calx_module_find(m, "weight"), index == 0 ? 2.5 : nan(""));
  calx_assign(calx_module_find(m, "running_var"), index == 0 ? 4 : HUGE_VAL);
  calx_assign(calx_module_find(m, "num_batches_tracked"), 7 + index);
  calx_broadcast_master_param(m);
  CALX_TRY(calx_scope_end(scope));
  state_numbers s = state_of(m);  // weight, bias, mean, var, batches
  static const double wanted[] = {
    2.5, 2.5, 2.5, 0, 0, 0, 0, 0, 0, 4, 4, 4, 7
  };
  bool right = s.n == 13 && memcmp(s.values, wanted, sizeof wanted) == 0;
  free(s.values);
  CALX_TRY(s.status);
  RANK_CHECK(right && calx_tensor_requires_grad(calx_module_find(m, "weight")));
  calx_module_free(m);
  return NULL;
}

static void test_broadcast(void **state)
{
  (void)state;
  ranks_up_to(8, broadcast);
}

static void test_processes(void **state)
{
  (void)state;
  ranks_on_all_worlds(reduce, true);
  ranks_on_all_worlds(take_steps, true);
  ranks_on_all_worlds(broadcast, true);
  ranks_on_all_worlds(fewer_batches, true);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_processes),     SUPPORT_TEST(test_means),
    SUPPORT_TEST(test_groups),        SUPPORT_TEST(test_buckets),
    SUPPORT_TEST(test_steps),         SUPPORT_TEST(test_accumulation),
    SUPPORT_TEST(test_deferred),      SUPPORT_TEST(test_failed_step),
    SUPPORT_TEST(test_fewer_batches), SUPPORT_TEST(test_refused),
    SUPPORT_TEST(test_broadcast),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
