// launch: who the ranks are, how they start and end. On the fake plugin, under
// the thread sanitizer too.
#include <unistd.h>

#include "calx/ops.h"
#include "ranks.h"

// ---- identity ---------------------------------------------------------------

typedef struct seen {
  atomic_int global[4], local[4], masters, ranks;
} seen;

static calx_status *look(int index, void *user)
{
  seen *s = user;
  RANK_CHECK(calx_world_size() == 4 && calx_local_world_size() == 4);
  RANK_CHECK(calx_global_ordinal() == index && index >= 0 && index < 4);
  RANK_CHECK(calx_process_index() == 0 && calx_process_count() == 1);
  RANK_CHECK(calx_host_index() == 0 && calx_host_count() == 1);
  char name[16];
  snprintf(name, sizeof name, "xla:%d", index);
  RANK_CHECK(strcmp(calx_device_name(calx_device_current()), name) == 0);
  RANK_CHECK(calx_is_master_ordinal(true) == (index == 0));
  s->global[calx_global_ordinal()]++;
  s->local[calx_local_ordinal()]++;
  s->masters += calx_is_master_ordinal(false);
  s->ranks++;
  return NULL;
}

static void test_identity(void **state)
{
  (void)state;
  set_devices(4);
  seen s = { .ranks = 0 };
  CHECK_STATUS_OK(calx_launch(look, &s));
  for (int i = 0; i < 4; i++) {
    assert_int_equal(s.global[i], 1);
    assert_int_equal(s.local[i], 1);
  }
  assert_int_equal(s.masters, 1);
  // Again, with all that is open.
  CHECK_STATUS_OK(calx_launch(look, &s));
  assert_int_equal(s.ranks, 8);
}

static void test_outside(void **state)
{
  (void)state;
  set_devices(3);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(calx_world_size(), 1);
    assert_int_equal(calx_global_ordinal(), 0);
    assert_int_equal(calx_local_ordinal(), 0);
    assert_int_equal(calx_local_world_size(), 1);
    assert_true(calx_is_master_ordinal(false));
    CHECK_STATUS_OK(calx_launch(rank_nothing, NULL));
  }
  // Another device makes no other rank.
  calx_device *device;
  CHECK_STATUS_OK(calx_device_open("xla:2", &device));
  calx_device_set_current(device);
  assert_int_equal(calx_global_ordinal(), 0);
  calx_device_set_current(NULL);
}

static calx_status *print(int index, void *user)
{
  (void)user;
  calx_master_print("rank %d of %d\n", index, calx_world_size());
  return NULL;
}

static void test_master_print(void **state)
{
  (void)state;
  set_devices(3);
  FILE *file = tmpfile();
  fflush(stdout);
  int before = dup(STDOUT_FILENO);
  dup2(fileno(file), STDOUT_FILENO);
  calx_status *status = calx_launch(print, NULL);
  dup2(before, STDOUT_FILENO);
  close(before);
  CHECK_STATUS_OK(status);
  char text[64] = "";
  rewind(file);
  size_t n = fread(text, 1, sizeof text - 1, file);
  text[n] = '\0';
  fclose(file);
  assert_string_equal(text, "rank 0 of 3\n");
}

// ---- how many ---------------------------------------------------------------

static calx_status *count(int index, void *user)
{
  (void)index;
  (*(atomic_int *)user)++;
  return NULL;
}

static void test_devices(void **state)
{
  (void)state;
  set_devices(4);
  atomic_int n = 0;
  CHECK_STATUS_OK(calx_launch(count, &n, .devices = 2));
  assert_int_equal(n, 2);
  CHECK_STATUS(CALX_OUT_OF_RANGE, calx_launch(count, &n, .devices = 5),
               "5 devices are asked for, there are 4");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_launch(count, &n, .devices = -1),
               "0 processes of -1 devices");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_launch(NULL, &n), "is NULL");
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_launch_with(count, &n, &(calx_launch_options){ .size = 0 }),
               "calx_launch: options of 0 bytes", "set .size");
  assert_int_equal(n, 2);
}

static void test_processes(void **state)
{
  (void)state;
  atomic_int n = 0;
  setenv("CALX_PROCESSES", "two", 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_launch(count, &n), "CALX_PROCESSES",
               "'two'");
  unsetenv("CALX_PROCESSES");
  assert_int_equal(n, 0);
}

// ---- when it may be called --------------------------------------------------

static void test_used_before(void **state)
{
  (void)state;
  set_devices(2);
  atomic_int n = 0;
  assert_non_null(calx_device_current());
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_launch(count, &n),
               "Runtime is already initialized.");
  calx_shutdown();
  CHECK_STATUS_OK(calx_launch(count, &n));
  assert_int_equal(n, 2);
}

static calx_status *nest(int index, void *user)
{
  if (index != 1) return NULL;
  return calx_launch(count, user);
}

static void test_nested(void **state)
{
  (void)state;
  set_devices(2);
  atomic_int n = 0;
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_launch(nest, &n),
               "rank 1: ", "Runtime is already initialized.");
  assert_int_equal(n, 0);
}

// ---- failures ---------------------------------------------------------------

static calx_status *fail_in_the_middle(int index, void *user)
{
  atomic_int *ended = user;
  if (index == calx_world_size() / 2) {
    calx_at_(&(const calx_site){ "train.c", "step", 12 });
    return cx_error(CALX_DATA_LOSS, "the file is short");
  }
  calx_status *status = calx_rendezvous("epoch", NULL, 0, NULL, NULL);
  if (calx_status_code(status) == CALX_ABORTED) (*ended)++;
  return status;
}

// The others end at their next meeting; the cause is what is told.
static void test_failed_rank(void **state)
{
  (void)state;
  for (int w = 0; w < RANKS_WORLDS; w++) {
    int n = ranks_worlds[w];
    char rank[24];
    snprintf(rank, sizeof rank, "rank %d: ", n / 2);
    set_devices(n);
    for (int i = 0; i < 20; i++) {
      atomic_int ended = 0;
      calx_status *status = calx_launch(fail_in_the_middle, &ended);
      assert_int_equal(calx_status_site(status)->line, 12);
      CHECK_STATUS(CALX_DATA_LOSS, status, "train.c:12", rank,
                   "the file is short");
      assert_int_equal(ended, n - 1);
    }
    CHECK_STATUS_OK(calx_launch(rank_nothing, NULL));
    calx_shutdown();
  }
}

static calx_status *leave_early(int index, void *user)
{
  (void)user;
  if (index == 0) return NULL;
  return rank_wants(calx_rendezvous("epoch", NULL, 0, NULL, NULL), CALX_ABORTED,
                    "rank 0 has ended its function");
}

static void test_rank_that_ended(void **state)
{
  (void)state;
  set_devices(3);
  CHECK_STATUS_OK(calx_launch(leave_early, NULL));
}

static calx_status *leave_error(int index, void *user)
{
  if (index != 1) return NULL;
  if (*(bool *)user) calx_scope_begin();
  calx_reshape(calx_ones(CALX_SHAPE(2)), CALX_SHAPE(3));
  if (*(bool *)user) calx_scope_begin();
  return NULL;
}

// In the root scope, and in one that it forgot to end.
static void test_unread_error(void **state)
{
  (void)state;
  set_devices(2);
  for (int i = 0; i < 2; i++) {
    bool in_scope = i == 1;
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_launch(leave_error, &in_scope),
                 "rank 1: ", "reshape", "without reading it");
  }
}

static calx_status *launch_one(int index, void *user)
{
  (void)user;
  if (index != 1) return NULL;
  calx_scope *scope = calx_scope_begin();
  calx_tensor *t = calx_add(calx_ones(CALX_SHAPE(2)), 1);
  calx_sync(t);
  return calx_scope_end(scope);
}

// What the device finds out after the rank's last call.
static void test_late_failure(void **state)
{
  (void)state;
  set_devices(2);
  assert_true(ranks_fake.set("async=1;late=1:13:a link is down"));
  CHECK_STATUS(CALX_INTERNAL, calx_launch(launch_one, NULL),
               "rank 1: ", "a link is down");
}

// The step that a failed rank left is not run by the next one's sync.
static calx_tensor *durable;

static calx_status *leave_step(int index, void *user)
{
  (void)index;
  calx_scope *scope = calx_scope_begin();
  if (*(int *)user == 0) durable = calx_retain(calx_ones(CALX_SHAPE(2)));
  if (*(int *)user == 0) calx_sync(durable);
  if (*(int *)user == 1) {
    calx_assign(durable, 7);
    return calx_status_new(CALX_CANCELLED, "no more");
  }
  return calx_scope_end(scope);
}

static void test_dropped_step(void **state)
{
  (void)state;
  set_devices(1);
  int part = 0;
  CHECK_STATUS_OK(calx_launch(leave_step, &part));
  const cx_graph_node *before = cx_lazy_tensor_value(durable).node;
  part = 1;
  CHECK_STATUS(CALX_CANCELLED, calx_launch(leave_step, &part), "rank 0: ");
  assert_ptr_equal(cx_lazy_tensor_value(durable).node, before);
  calx_release(durable);
}

// A closure that waits for a sync which never comes is dropped with its rank:
// what it uses may be gone when the next one syncs.
static calx_status *never(void *user, calx_tensor *const *tensors, size_t n)
{
  (void)tensors, (void)n;
  ++*(atomic_int *)user;
  return NULL;
}

static calx_status *leave_closure(int index, void *user)
{
  (void)index;
  calx_add_step_closure(never, user, NULL, 0);
  calx_add_step_closure(never, user, NULL, 0, .run_async = true);
  return NULL;
}

static calx_status *sync_once(int index, void *user)
{
  (void)index, (void)user;
  calx_sync(NULL);
  return calx_wait_step_closures();
}

static void test_left_closure(void **state)
{
  (void)state;
  set_devices(2);
  atomic_int ran = 0;
  CHECK_STATUS_OK(calx_launch(leave_closure, &ran));
  CHECK_STATUS_OK(calx_launch(sync_once, NULL));
  assert_int_equal(ran, 0);
}

// ---- stacks -----------------------------------------------------------------

static calx_status *use_stack(int index, void *user)
{
  (void)index;
  volatile char much[6 << 20];
  for (size_t i = 0; i < sizeof much; i += 4096) much[i] = 1;
  *(volatile char *)user = much[4096];
  return NULL;
}

static void test_stack(void **state)
{
  (void)state;
  set_devices(1);
  char last = 0;
  CHECK_STATUS_OK(calx_launch(use_stack, &last));
  assert_int_equal(last, 1);
}

// ---- no memory --------------------------------------------------------------

static calx_status *meet_once(int index, void *user)
{
  (void)user;
  char *all[3], mine = (char)('a' + index);
  CALX_TRY(calx_rendezvous("memory", &mine, 1, all, NULL));
  for (int i = 0; i < 3; i++) calx_string_free(all[i]);
  return NULL;
}

// Each allocation of a launch fails once: a status, and nothing is left.
static void test_no_memory(void **state)
{
  (void)state;
  set_devices(3);
  CHECK_STATUS_OK(calx_launch(rank_nothing, NULL));
  long n = 0, failed = 0;
  for (bool all = false; !all; n++) {
    long before = cx_alloc_count();
    cx_alloc_fail_at(n);
    calx_status *status = calx_launch(meet_once, NULL);
    cx_alloc_fail_at(-1);
    calx_code code = calx_status_code(status);
    all = code == CALX_OK && cx_alloc_count() - before <= n;
    if (code != CALX_OK) failed++;
    calx_status_free(status);
    assert_true(code == CALX_OK || code == CALX_RESOURCE_EXHAUSTED);
    assert_int_equal(calx_world_size(), 1);
  }
  print_message("  %ld allocations, %ld of them fail a launch\n", n, failed);
  assert_true(failed > 10);
  CHECK_STATUS_OK(calx_launch(meet_once, NULL));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_identity),        SUPPORT_TEST(test_outside),
    SUPPORT_TEST(test_master_print),    SUPPORT_TEST(test_devices),
    SUPPORT_TEST(test_processes),       SUPPORT_TEST(test_used_before),
    SUPPORT_TEST(test_nested),          SUPPORT_TEST(test_failed_rank),
    SUPPORT_TEST(test_rank_that_ended), SUPPORT_TEST(test_unread_error),
    SUPPORT_TEST(test_late_failure),    SUPPORT_TEST(test_dropped_step),
    SUPPORT_TEST(test_left_closure),    SUPPORT_TEST(test_stack),
    SUPPORT_TEST(test_no_memory),
  };
  return cmocka_run_group_tests(tests, ranks_setup_fake, NULL);
}
