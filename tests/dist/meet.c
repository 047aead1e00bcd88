// meet: what ranks tell each other outside of any device. Under the thread
// sanitizer too.
#include <sched.h>

#include "ranks.h"

static void free_all(char **payloads, size_t n)
{
  for (size_t i = 0; i < n; i++) calx_string_free(payloads[i]);
}

// ---- payloads ---------------------------------------------------------------

static calx_status *tell_ordinal(int index, void *user)
{
  (void)user;
  size_t n = (size_t)calx_world_size(), sizes[8];
  char mine[32], wanted[32], *all[8];
  snprintf(mine, sizeof mine, "ORD=%d", index);
  CALX_TRY(calx_rendezvous("ordinals", mine, strlen(mine), all, sizes));
  for (size_t i = 0; i < n; i++) {
    snprintf(wanted, sizeof wanted, "ORD=%zu", i);
    RANK_CHECK(strcmp(all[i], wanted) == 0 && sizes[i] == strlen(wanted));
  }
  free_all(all, n);
  return NULL;
}

// Of index bytes, so the first is empty; with zeros, without sizes at last.
static calx_status *tell_lengths(int index, void *user)
{
  (void)user;
  size_t n = (size_t)calx_world_size(), sizes[8];
  char mine[8] = { 'a', '\0', 'b', 'c' }, *all[8];
  for (int turn = 0; turn < 50; turn++) {
    CALX_TRY(calx_rendezvous("lengths", index > 0 ? mine : NULL, (size_t)index,
                             all, turn % 2 == 0 ? sizes : NULL));
    for (size_t i = 0; i < n; i++) {
      RANK_CHECK(all[i] != NULL && memcmp(all[i], mine, i) == 0);
      RANK_CHECK(all[i][i] == '\0');
      RANK_CHECK(turn % 2 != 0 || sizes[i] == i);
    }
    free_all(all, n);
  }
  return NULL;
}

static void test_payloads(void **state)
{
  (void)state;
  ranks_up_to(8, tell_ordinal);
  ranks_up_to(8, tell_lengths);
  CHECK_STATUS_OK(tell_ordinal(0, NULL));  // outside of any launch
}

static calx_status *wait_for_all(int index, void *user)
{
  (void)index;
  atomic_int *came = user;
  for (int turn = 1; turn <= 50; turn++) {
    (*came)++;
    CALX_TRY(calx_rendezvous("turn", NULL, 0, NULL, NULL));
    RANK_CHECK(*came >= turn * calx_world_size());
    CALX_TRY(calx_rendezvous("next", NULL, 0, NULL, NULL));
  }
  return NULL;
}

static void test_barrier(void **state)
{
  (void)state;
  set_devices(3);
  atomic_int came = 0;
  CHECK_STATUS_OK(calx_launch(wait_for_all, &came));
}

// ---- disagreement -----------------------------------------------------------

static calx_status *other_tag(int index, void *user)
{
  (void)user;
  char *all[3];
  size_t sizes[3];
  calx_status *status =
      calx_rendezvous(index == 1 ? "save" : "load", "x", 1, all, sizes);
  for (int i = 0; i < 3; i++) RANK_CHECK(all[i] == NULL && sizes[i] == 0);
  RANK_CHECK(strstr(calx_status_message(status), "'save'") != NULL);
  return rank_wants(status, CALX_ABORTED, "'load'");
}

static void test_other_tag(void **state)
{
  (void)state;
  set_devices(3);
  CHECK_STATUS_OK(calx_launch(other_tag, NULL));
}

typedef struct absence {
  atomic_int told;
} absence;

static calx_status *stay_away(int index, void *user)
{
  absence *a = user;
  if (index == 1) {
    while (a->told < 2) sched_yield();
    return NULL;
  }
  calx_status *status = calx_rendezvous("epoch", NULL, 0, NULL, NULL);
  a->told++;
  return rank_wants(status, CALX_DEADLINE_EXCEEDED, "1");
}

static void test_missing_rank(void **state)
{
  (void)state;
  set_devices(3);
  setenv("CALX_COLLECTIVE_TIMEOUT_S", "1", 1);
  absence a = { .told = 0 };
  CHECK_STATUS_OK(calx_launch(stay_away, &a));
  unsetenv("CALX_COLLECTIVE_TIMEOUT_S");
}

static void test_refused(void **state)
{
  (void)state;
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_rendezvous(NULL, NULL, 0, NULL, NULL), "tag is NULL");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_rendezvous("x", NULL, 3, NULL, NULL),
               "payload is NULL");
}

// ---- mesh_reduce ------------------------------------------------------------

static void add_up(const double *const *values, size_t ranks, size_t count,
                   double *out)
{
  for (size_t k = 0; k < count; k++) {
    out[k] = 0;
    for (size_t r = 0; r < ranks; r++) out[k] += values[r][k];
  }
}

// In the order of the ranks: not a sum.
static void last_minus_first(const double *const *values, size_t ranks,
                             size_t count, double *out)
{
  for (size_t k = 0; k < count; k++) {
    out[k] = values[ranks - 1][k] - values[0][k];
  }
}

static calx_status *reduce(int index, void *user)
{
  (void)user;
  double n = calx_world_size(), one = 1.25, sum;
  CALX_TRY(calx_mesh_reduce("accuracy", &one, 1, add_up, &sum));
  RANK_CHECK(sum == 1.25 * n);
  double six[6] = { 1, 2, 3, 4, 5, 6 }, sums[6];
  CALX_TRY(calx_mesh_reduce("six", six, 6, add_up, sums));
  for (int k = 0; k < 6; k++) RANK_CHECK(sums[k] == n * six[k]);
  double mine = index;
  CALX_TRY(calx_mesh_reduce("order", &mine, 1, last_minus_first, &mine));
  RANK_CHECK(mine == n - 1);
  return calx_mesh_reduce("none", NULL, 0, add_up, NULL);
}

static void test_mesh_reduce(void **state)
{
  (void)state;
  ranks_up_to(8, reduce);
}

static calx_status *other_count(int index, void *user)
{
  (void)user;
  double values[3] = { 1, 2, 3 }, out[3];
  size_t n = index == 2 ? 3 : 2;
  return rank_wants(calx_mesh_reduce("values", values, n, add_up, out),
                    CALX_INVALID_ARGUMENT, "rank 2 brings 3 numbers, rank 0 2");
}

static void test_other_count(void **state)
{
  (void)state;
  set_devices(3);
  CHECK_STATUS_OK(calx_launch(other_count, NULL));
  double x = 1;
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_mesh_reduce("x", &x, 1, NULL, &x),
               "the function is NULL");
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_mesh_reduce("x", &x, 1, add_up, NULL),
               "the result is NULL");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_payloads),    SUPPORT_TEST(test_barrier),
    SUPPORT_TEST(test_other_tag),   SUPPORT_TEST(test_missing_rank),
    SUPPORT_TEST(test_refused),     SUPPORT_TEST(test_mesh_reduce),
    SUPPORT_TEST(test_other_count),
  };
  return cmocka_run_group_tests(tests, ranks_setup_fake, NULL);
}
