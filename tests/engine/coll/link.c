// How connections between hosts end, with a fake MPI. It returns each message
// to this process as if another process had sent it about the devices that
// follow. Transfers to devices do not finish until a test lets them finish too
// late.
#include <stdlib.h>
#include <string.h>

#include "coll/mpi_load.h"
#include "coll/remote.h"
#include "coll/state.h"
#include "world.h"

// ---- the other process ------------------------------------------------------

enum { MESSAGES = 1, MOST_LETTERS = 16, MOST_RECEIVES = 64, OWN = 2 };

typedef enum kind { DONE, NEVER, MESSAGE, GATHER } kind;

typedef struct letter {
  unsigned char text[CPU_COLL_MESSAGE_BYTES];
  int bytes;
} letter;

static struct {
  atomic_bool opens, gathers;
  atomic_int barriers;
  letter letters[MOST_LETTERS];
  size_t first, n;
  void *ear;  // where a message goes
  struct {
    void *data;
    size_t bytes;
  } late[MOST_RECEIVES];
  size_t n_late, n_come;  // of those
} other;

static void put(cpu_coll_mpi_request *out, kind k)
{
  memset(out, 0, sizeof *out);
  out->room[0] = (unsigned char)k;
}

static void add_late(void *data, size_t bytes)
{
  assert_true(other.n_late < MOST_RECEIVES);
  other.late[other.n_late].data = data;
  other.late[other.n_late++].bytes = bytes;
}

static const char *begin(int *rank, int *size, int *most_tag)
{
  while (!atomic_load(&other.opens)) sched_yield();
  *rank = 0;
  *size = 2;
  *most_tag = 32767;
  return NULL;
}

static const char *send_bytes(const void *data, int bytes, int to, int tag,
                              cpu_coll_mpi_request *out)
{
  put(out, tag == MESSAGES ? DONE : NEVER);
  assert_int_equal(to, 1);
  if (tag != MESSAGES) return NULL;
  letter *l = &other.letters[(other.first + other.n++) % MOST_LETTERS];
  assert_true(other.n <= MOST_LETTERS);
  uint32_t device = 0;
  memcpy(l->text, data, (size_t)bytes);
  l->bytes = bytes;
  memcpy(&device, l->text + sizeof device, sizeof device);
  device += OWN;
  memcpy(l->text + sizeof device, &device, sizeof device);
  return NULL;
}

static const char *receive_bytes(void *data, int bytes, int from, int tag,
                                 cpu_coll_mpi_request *out)
{
  put(out, from < 0 ? MESSAGE : NEVER);
  assert_int_equal(tag == MESSAGES, from < 0);
  if (from < 0) {
    other.ear = data;
  } else {
    add_late(data, (size_t)bytes);
  }
  return NULL;
}

// Each process tells its host's first device, and how many it has.
static const char *gather_bytes(const void *data, void *all, int bytes,
                                cpu_coll_mpi_request *out)
{
  const uint32_t first = OWN;
  put(out, atomic_load(&other.gathers) ? DONE : NEVER);
  if (!atomic_load(&other.gathers)) {
    add_late(all, 2 * (size_t)bytes);
    return NULL;
  }
  for (int i = 0; i < 2; i++) {
    memcpy((unsigned char *)all + i * bytes, data, (size_t)bytes);
  }
  memcpy((unsigned char *)all + bytes, &first, sizeof first);
  return NULL;
}

static const char *meet(cpu_coll_mpi_request *out)
{
  atomic_fetch_add(&other.barriers, 1);
  put(out, DONE);
  return NULL;
}

static const char *test(cpu_coll_mpi_request *request, bool *done, int *bytes)
{
  const kind k = (kind)request->room[0];
  *done = k == DONE || (k == MESSAGE && other.n > 0);
  if (k != MESSAGE || !*done) return NULL;
  const letter *l = &other.letters[other.first++ % MOST_LETTERS];
  other.n--;
  memcpy(other.ear, l->text, (size_t)l->bytes);
  *bytes = l->bytes;
  return NULL;
}

// Instead of the engine's, which loads an MPI.
calx_status *cpu_coll_mpi_load(const cpu_coll_mpi_api **out)
{
  static const cpu_coll_mpi_api api = { .struct_size = sizeof api,
                                        .flavour = "a test's MPI",
                                        .open = begin,
                                        .send = send_bytes,
                                        .receive = receive_bytes,
                                        .gather = gather_bytes,
                                        .barrier = meet,
                                        .test = test };
  *out = &api;
  return NULL;
}

static void come_too_late(void)
{
  for (; other.n_come < other.n_late; other.n_come++) {
    memset(other.late[other.n_come].data, 0x55, other.late[other.n_come].bytes);
  }
}

// ---- links ------------------------------------------------------------------

static void hear(void *user, const void *message, size_t bytes)
{
  (void)user;
  (void)message;
  (void)bytes;
}

static calx_status *open_link(const calx_segment_head *failed,
                              int64_t timeout_ms, cpu_coll_link **out)
{
  const uint32_t own[] = { 0, OWN };
  uint32_t all[4];
  const cpu_coll_link_options options = { .processes = 2,
                                          .max_tag = 100,
                                          .timeout_ms = timeout_ms,
                                          .job = failed,
                                          .on_message = hear,
                                          .own = own,
                                          .all = all,
                                          .own_bytes = sizeof own };
  return cpu_coll_link_open(&options, out);
}

// Once the thread that was left has ended, another link may be opened.
static cpu_coll_link *open_again(const calx_segment_head *failed)
{
  cpu_coll_link *l = NULL;
  calx_status *status = open_link(failed, 100000, &l);
  while (status != NULL) {
    assert_non_null(strstr(calx_status_message(status), "another client"));
    calx_status_free(status);
    sched_yield();
    status = open_link(failed, 100000, &l);
  }
  return l;
}

// MPI comes up when nobody waits for it any more. The first test: there is one
// MPI in a process.
static void test_left(void **state)
{
  (void)state;
  calx_segment_head failed = { .failed = CALX_ABORTED };
  const calx_segment_head well = { 0 };
  cpu_coll_link *l = NULL;
  snprintf(failed.message, sizeof failed.message, "process 7 has gone");
  CHECK_FAILS(CALX_ABORTED, open_link(&failed, 100000, &l),
              "process 7 has gone");
  assert_null(l);
  atomic_store(&other.opens, true);
  atomic_store(&other.gathers, true);
  l = open_again(&well);
  assert_false(cpu_coll_link_close(l));
  assert_int_equal(atomic_load(&other.barriers), 1);
}

static void test_nobody_comes(void **state)
{
  (void)state;
  const calx_segment_head well = { 0 };
  calx_segment_head failed = { .failed = CALX_ABORTED };
  cpu_coll_link *l = NULL;
  snprintf(failed.message, sizeof failed.message, "process 7 has gone");
  atomic_store(&other.gathers, false);
  CHECK_FAILS(CALX_ABORTED, open_link(&failed, 100000, &l),
              "process 7 has gone");
  CHECK_FAILS(CALX_DEADLINE_EXCEEDED, open_link(&well, 1, &l),
              "the other processes have not arrived");
  atomic_store(&other.gathers, true);
  come_too_late();
}

// Who gave up a transfer still comes to the end.
static void test_abandoned(void **state)
{
  (void)state;
  const calx_segment_head well = { 0 };
  static unsigned char data[8];
  static cpu_coll_transfer t = {
    .data = data, .bytes = sizeof data, .process = 1, .tag = 2
  };
  cpu_coll_link *l = open_again(&well);
  const int barriers = atomic_load(&other.barriers);
  cpu_coll_link_post(l, &t);
  cpu_coll_link_abandon(l, "all_reduce", 3);
  calx_status *status = cpu_coll_link_error(l);
  CHECK_FAILS(CALX_FAILED_PRECONDITION, status, "given up in the middle of");
  assert_true(cpu_coll_link_close(l));
  assert_int_equal(atomic_load(&other.barriers), barriers + 1);
  come_too_late();
}

// ---- collectives ------------------------------------------------------------

static const uint32_t devices[] = { 0, 1, 2, 3 };

// One device's part in a collective of the module, on 4 replicas.
static calx_status *run_one(cpu_coll *coll, uint32_t device,
                            const cx_hlo_module *m)
{
  const cx_hlo_op *op = world_op(m);
  const cx_hlo_type *in = &op->operands[0]->type.tensor;
  const cx_hlo_type *out = &op->results[0].type.tensor;
  const cpu_ref_tensor operand = { *in,
                                   calloc(1, (size_t)cx_hlo_type_bytes(in)) };
  const cpu_ref_tensor result = { *out,
                                  calloc(1, (size_t)cx_hlo_type_bytes(out)) };
  cpu_coll_launch l = { .coll = coll,
                        .replica = device,
                        .n_replicas = 4,
                        .n_partitions = 1,
                        .timeout_ms = 200,
                        .devices = devices };
  CHECK_OK(cpu_coll_device_group(coll, devices, 4, &l.device_group));
  l.number = cpu_coll_next_launch(coll, l.device_group, device, 0);
  calx_status *status = cpu_coll_run(&l, m, op, &operand, &result);
  cpu_coll_end(&l, status);
  free(operand.data);
  free(result.data);
  return status;
}

// All have come and nothing moves: the wait has an end, after which no device
// is let to the memory that MPI may still write to; and that stays.
static void check_stuck(const char *op, const char *attributes,
                        const char *region, const char *in, const char *out)
{
  cx_hlo_module *far = world_one(op, 1, attributes, region, in, out);
  cx_hlo_module *near =
      world_one("all_reduce", 1,
                "replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>",
                BODY("stablehlo.add", "f32"), "4xf32", "4xf32");
  cpu_coll *coll = NULL;
  const cpu_coll_topology topology = { .fd = -1,
                                       .n_host = OWN,
                                       .n_own = OWN,
                                       .n_world = 2 * OWN,
                                       .timeout_ms = 100000 };
  CHECK_OK(cpu_coll_new(&topology, &coll));
  CHECK_FAILS(CALX_DEADLINE_EXCEEDED, run_one(coll, 0, far),
              "all have arrived, but for 200 ms no data has moved between the "
              "hosts");
  assert_true(other.n_late > other.n_come);
  for (uint32_t i = 0; i < OWN; i++) {
    CHECK_FAILS(CALX_FAILED_PRECONDITION, run_one(coll, i, near),
                "the connection between hosts was given up");
  }
  cpu_coll_free(coll);
  come_too_late();
  cx_hlo_module_free(far);
  cx_hlo_module_free(near);
}

#define PAIRS "replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>"

static void test_stuck_sum(void **state)
{
  (void)state;
  check_stuck("all_reduce", PAIRS, BODY("stablehlo.add", "f32"), "100000xf32",
              "100000xf32");
}

static void test_stuck_gather(void **state)
{
  (void)state;
  check_stuck("all_gather", "all_gather_dim = 0 : i64, " PAIRS, "",
              "100000xf32", "200000xf32");
}

// ---- the network ------------------------------------------------------------

// Where the first host's name is the own loopback, that is not the network.
static void test_loopback(void **state)
{
  (void)state;
  char name[64];
  bool loopback;
  assert_false(cpu_coll_mpi_net_to("127.0.1.1", name, sizeof name, &loopback));
  unsetenv("CALX_STORE");
  unsetenv("UCX_NET_DEVICES");
  unsetenv("OMPI_MCA_btl_tcp_if_include");
  setenv("MASTER_ADDR", "127.0.1.1", 1);
  cpu_coll_mpi_choose_net();
  assert_null(getenv("UCX_NET_DEVICES"));
  assert_null(getenv("OMPI_MCA_btl_tcp_if_include"));
}

// A job that is this host's alone listens for nobody else.
static void test_only_loopback(void **state)
{
  (void)state;
  const char *const addresses[] = { "127.0.0.1", "localhost" };
  for (int i = 0; i < 2; i++) {
    unsetenv("CALX_STORE");
    unsetenv("UCX_NET_DEVICES");
    unsetenv("OMPI_MCA_btl_tcp_if_include");
    setenv("MASTER_ADDR", addresses[i], 1);
    cpu_coll_mpi_choose_net();
    assert_string_equal(getenv("UCX_NET_DEVICES"), "lo");
    assert_string_equal(getenv("OMPI_MCA_btl_tcp_if_include"), "lo");
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_left),          cmocka_unit_test(test_nobody_comes),
    cmocka_unit_test(test_abandoned),     cmocka_unit_test(test_stuck_sum),
    cmocka_unit_test(test_stuck_gather),  cmocka_unit_test(test_loopback),
    cmocka_unit_test(test_only_loopback),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
