// hosts: collectives between hosts, by MPI. What needs no rounding has the bits
// of one process; all ranks have the same bits in any case.
//
// The hosts are processes of this machine that share no memory. MPI's ranks
// come from the library's own PMI.
#include <signal.h>
#include <unistd.h>

#include "runs.h"

static const program *find(const char *name)
{
  for (int i = 0; i < n_programs; i++) {
    if (strcmp(programs[i].name, name) == 0) return &programs[i];
  }
  fail_msg("no program '%s'", name);
  return NULL;
}

// Regions that are not associative give what the order of the hosts makes.
static void check_exact(int hosts, const int *per_host, int devices)
{
  runs_exact = true;
  world w = world_of_hosts(hosts, per_host, devices, 0);
  const int n = w.processes * devices;
  world_free(&w);
  w = world_of_hosts(hosts, per_host, devices, all_bytes(n));
  world_start(&w, run_all, NULL);
  world_join(&w);
  PJRT_Client *client = host_client(n);
  unsigned char *wanted = malloc(all_bytes(n) + 1);
  size_t at = 0;
  int ran = 0;
  for (int i = 0; i < n_programs; i++) {
    const program *p = &programs[i];
    if (!fits(p, n)) continue;
    run_program(p, n, client, 0, n, wanted);
    const size_t bytes = (size_t)n * result_bytes(p);
    if (memcmp(wanted, w.shared + at, bytes) != 0 && p != find("any region")) {
      fail_msg("%s: other values than in one process", p->name);
    }
    at += bytes;
    ran++;
  }
  print_message("%d programs on %d devices of %d hosts\n", ran, n, hosts);
  free(wanted);
  host_client_free(client);
  world_free(&w);
}

// Sums of all that are rounded.
static void check_equal(int hosts, const int *per_host)
{
  static const char *const names[] = { "small", "large",  "bf16",      "f16",
                                       "f64",   "a list", "any region" };
  runs_exact = false;
  int n = 0;
  for (int i = 0; i < hosts; i++) n += per_host[i];
  world w = world_of_hosts(hosts, per_host, 1, all_bytes(n));
  world_start(&w, run_all, NULL);
  world_join(&w);
  size_t at = 0;
  for (int i = 0; i < n_programs; i++) {
    if (!fits(&programs[i], n)) continue;
    const size_t bytes = result_bytes(&programs[i]);
    bool checked = false;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
      checked = checked || strcmp(names[k], programs[i].name) == 0;
    }
    for (int k = 1; k < n && checked; k++) {
      const unsigned char *first = w.shared + at;
      if (memcmp(first, first + (size_t)k * bytes, bytes) != 0) {
        fail_msg("%s: ranks 0 and %d differ", programs[i].name, k);
      }
    }
    at += (size_t)n * bytes;
  }
  world_free(&w);
}

static void test_one_and_one(void **state)
{
  (void)state;
  check_exact(2, (int[]){ 1, 1 }, 1);
  check_equal(2, (int[]){ 1, 1 });
}

static void test_two_and_two(void **state)
{
  (void)state;
  check_exact(2, (int[]){ 2, 2 }, 1);
  check_equal(2, (int[]){ 2, 2 });
}

static void test_three_and_one(void **state)
{
  (void)state;
  check_exact(2, (int[]){ 3, 1 }, 1);
  check_equal(2, (int[]){ 1, 3 });
}

static void test_three_hosts(void **state)
{
  (void)state;
  check_exact(3, (int[]){ 1, 1, 1 }, 1);
  check_equal(3, (int[]){ 1, 1, 1 });
}

// Several devices in each process.
static void test_devices(void **state)
{
  (void)state;
  check_exact(2, (int[]){ 1, 1 }, 2);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    HOST_TEST(test_one_and_one),   HOST_TEST(test_two_and_two),
    HOST_TEST(test_three_and_one), HOST_TEST(test_three_hosts),
    HOST_TEST(test_devices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
