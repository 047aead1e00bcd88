// behaviours: those of ranks that a program meets before it trains, on real
// plugins: leaving a loader early, who a thread is, which devices there are.
// On our engine in processes too; those come first, since no device may have
// been used before.
#include <pthread.h>

#include "calx/autograd.h"
#include "calx/data.h"
#include "calx/optim.h"
#include "ranks.h"

enum { ITEMS = 1024, LEAVE = 10 };

// ---- 6: leaving a loop early ------------------------------------------------

static calx_status *get_item(void *user, int64_t index, void *const *fields)
{
  (void)user;
  *(float *)fields[0] = (float)index;
  *(float *)fields[1] = (float)index * 2;
  return NULL;
}

// Ten of 1024 batches, in step.
static calx_status *train_ten(calx_loader *loader, calx_tensor *w,
                              calx_optimizer *opt)
{
  calx_batch batch;
  int64_t steps = 0;
  while (calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    calx_tensor *error = calx_sub(calx_mul(batch.data, w), batch.target);
    calx_tensor *loss = calx_mean(calx_mul(error, error));
    calx_backward(loss);
    calx_dist_step(opt, loss);
    CALX_TRY(calx_scope_end(scope));
    if (++steps == LEAVE) break;
  }
  CALX_TRY(calx_scope_take_error());
  RANK_CHECK(steps == LEAVE && calx_loader_size(loader) == ITEMS);
  return NULL;
}

static calx_status *train_on(calx_loader *loader)
{
  calx_module *net = calx_module_new("Net", NULL, NULL);
  calx_scope *scope = calx_scope_begin();
  calx_tensor *w = calx_module_param(net, "w", calx_zeros(CALX_SHAPE(1)));
  calx_status *status = calx_scope_end(scope);
  calx_optimizer *opt = calx_sgd(net, .lr = 1e-3);
  if (status == NULL) status = calx_optimizer_error(opt);
  if (status == NULL) status = train_ten(loader, w, opt);
  calx_optimizer_free(opt);
  calx_module_free(net);
  return status;
}

static calx_status *leave_early(int index, void *user)
{
  static const calx_field fields[] = { { .dtype = CALX_F32, .rank = 0 },
                                       { .dtype = CALX_F32, .rank = 0 } };
  (void)index;
  (void)user;
  calx_dataset *set = calx_dataset_new(ITEMS, fields, 2, get_item, NULL, NULL);
  calx_loader *from = calx_loader_new(set, .batch_size = 1);
  calx_loader *loader = calx_mp_device_loader(from, calx_device_current());
  calx_status *status = train_on(loader);
  calx_loader_free(loader);
  calx_loader_free(from);
  calx_dataset_free(set);
  return status;
}

static void test_b06_leave_early_in_processes(void **state)
{
  (void)state;
  ranks_on_all_worlds(leave_early, true);
}

static void test_b06_leave_early(void **state)
{
  (void)state;
  ranks_on_all_worlds(leave_early, false);
}

// ---- 7: who a thread is -----------------------------------------------------

typedef struct backward {
  calx_device *device;
  int global, local;
  double gradient;
  bool same_device;
  calx_status *status;
} backward;

// A thread of the rank's own works for the rank once it has its device.
static void *run_backward(void *user)
{
  backward *b = user;
  calx_device_set_current(b->device);
  b->global = calx_global_ordinal();
  b->local = calx_local_ordinal();
  calx_scope *scope = calx_scope_begin();
  calx_tensor *w = calx_full(CALX_SHAPE(2), b->global);
  calx_requires_grad(w, true);
  calx_backward(calx_sum(calx_mul(calx_mul(w, w), 0.5)));
  b->same_device = calx_tensor_device(calx_grad(w)) == b->device;
  b->gradient = calx_item(calx_sum(calx_grad(w)));
  b->status = calx_scope_end(scope);
  return NULL;
}

static calx_status *look(int index, void *user)
{
  (void)user;
  int n = calx_world_size();
  char mine[32], wanted[32], *all[8];
  RANK_CHECK(calx_global_ordinal() == index && index < n && n <= 8);
  snprintf(mine, sizeof mine, "%d %d", index, calx_local_ordinal());
  CALX_TRY(calx_rendezvous("ordinals", mine, strlen(mine), all, NULL));
  bool right = true;
  for (int i = 0; i < n; i++) {  // one host: local is global
    snprintf(wanted, sizeof wanted, "%d %d", i, i);
    right &= strcmp(all[i], wanted) == 0;
    calx_string_free(all[i]);
  }
  RANK_CHECK(right);
  backward b = { .device = calx_device_current() };
  pthread_t thread;
  RANK_CHECK(pthread_create(&thread, NULL, run_backward, &b) == 0);
  pthread_join(thread, NULL);
  CALX_TRY(b.status);
  RANK_CHECK(b.global == index && b.local == calx_local_ordinal());
  RANK_CHECK(b.same_device && b.gradient == 2.0 * index);
  return NULL;
}

static void test_b07_ordinals_in_processes(void **state)
{
  (void)state;
  ranks_on_all_worlds(look, true);
}

static void test_b07_ordinals(void **state)
{
  (void)state;
  ranks_on_all_worlds(look, false);
}

// ---- 44: mesh_reduce --------------------------------------------------------

static void add_up(const double *const *values, size_t ranks, size_t count,
                   double *out)
{
  for (size_t i = 0; i < count; i++) {
    out[i] = 0;
    for (size_t r = 0; r < ranks; r++) out[i] += values[r][i];
  }
}

static calx_status *mesh_reduce(int index, void *user)
{
  (void)index;
  (void)user;
  double one = 1.25, list[] = { 1.25, 2, -3 }, n = calx_world_size();
  CALX_TRY(calx_mesh_reduce("one", &one, 1, add_up, &one));
  CALX_TRY(calx_mesh_reduce("list", list, 3, add_up, list));
  RANK_CHECK(one == 1.25 * n);
  RANK_CHECK(list[0] == 1.25 * n && list[1] == 2 * n && list[2] == -3 * n);
  return NULL;
}

static void test_b44_mesh_reduce_in_processes(void **state)
{
  (void)state;
  ranks_on_all_worlds(mesh_reduce, true);
}

// ---- 8: devices -------------------------------------------------------------

static void check_devices(int n)
{
  assert_int_equal(calx_device_count(), n);
  for (int i = 0; i < n; i++) {
    char name[16];
    calx_device *device;
    snprintf(name, sizeof name, "xla:%d", i);
    CHECK_STATUS_OK(calx_device_open(name, &device));
    assert_string_equal(calx_device_name(device), name);
  }
}

static void test_b08_devices(void **state)
{
  (void)state;
  calx_device *device;
  set_devices(4);
  check_devices(4);
  CHECK_STATUS(CALX_OUT_OF_RANGE, calx_device_open("xla:10", &device), "xla:10",
               "xla:0", "xla:3");
  assert_null(device);
  calx_shutdown();
  unsetenv("CPU_NUM_DEVICES");
  check_devices(1);
}

// The choice of a plugin is read once: later it changes nothing, until the
// client is closed.
static void test_b08_choice_is_made_once(void **state)
{
  (void)state;
  char before[512];
  const char *plugin = getenv("CALX_PLUGIN");
  snprintf(before, sizeof before, "%s", plugin != NULL ? plugin : "calx");
  set_devices(2);
  calx_device *device = calx_device_current(), *again;
  assert_non_null(device);
  setenv("CALX_PLUGIN", "/nowhere/plugin.so", 1);
  set_devices(3);
  CHECK_STATUS_OK(calx_device_open("xla:0", &again));
  assert_ptr_equal(again, device);
  assert_int_equal(calx_device_count(), 2);
  calx_shutdown();
  CHECK_STATUS(CALX_NOT_FOUND, calx_device_open("xla:0", &again), "/nowhere");
  setenv("CALX_PLUGIN", before, 1);
  check_devices(3);
  unsetenv("CPU_NUM_DEVICES");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_b06_leave_early_in_processes),
    SUPPORT_TEST(test_b07_ordinals_in_processes),
    SUPPORT_TEST(test_b44_mesh_reduce_in_processes),
    SUPPORT_TEST(test_b06_leave_early),
    SUPPORT_TEST(test_b07_ordinals),
    SUPPORT_TEST(test_b08_devices),
    SUPPORT_TEST(test_b08_choice_is_made_once),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
