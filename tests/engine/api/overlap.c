// overlap: collectives that other steps run beside, through the table: devices
// of one process and of several, one that does not come, a client that goes.
#include "../lower/chain.h"
#include "world.h"

enum { LAYERS = 4, ROWS = 256, DEVICES = 2, ARGS_N = LAYERS + 1 };

typedef struct outcome {
  float sums[LAYERS][WIDTH * WIDTH];
} outcome;

static int begin(void **state)
{
  int rc = host_begin(state);
  unsetenv("CALX_CPU_REF");  // there is nothing to be compiled in the programs
  setenv("CALX_DETERMINISTIC", "1", 1);
  return rc;
}

static int end(void **state)
{
  unsetenv("CALX_DETERMINISTIC");
  unsetenv("CALX_COLLECTIVES");
  return host_end(state);
}

static PJRT_LoadedExecutable *chain(PJRT_Client *client, bool blocking)
{
  setenv("CALX_COLLECTIVES", blocking ? "blocking" : "", 1);
  cx_text text = { 0 };
  chain_text(&text, LAYERS, DEVICES, CHAIN_SUMS);
  PJRT_LoadedExecutable *e = world_program(client, cx_text_str(&text), DEVICES);
  cx_text_free(&text);
  return e;
}

static void make_args(PJRT_Device *device, int number, PJRT_Buffer **out)
{
  static float x[ROWS * WIDTH];
  for (int k = 0; k < ARGS_N; k++) {
    for (int i = 0; i < ROWS * WIDTH; i++) {
      x[i] = (float)((i * 7 + k * 5 + (k == 0 ? number : 0) * 3) % 13 - 6) / 64;
    }
    const int64_t dims[] = { k == 0 ? ROWS : WIDTH, WIDTH };
    out[k] = host_buffer(device, PJRT_Buffer_Type_F32, x, 2, dims);
  }
}

static void free_all(PJRT_Buffer **buffers, int n)
{
  for (int i = 0; i < n; i++) host_free(buffers[i]);
}

static void take(PJRT_Buffer **results, outcome *out)
{
  for (int k = 0; k < LAYERS; k++) {
    host_read(results[k], out->sums[k], sizeof out->sums[k]);
  }
  free_all(results, LAYERS);
}

static PJRT_Error *run_one(PJRT_Client *client, PJRT_LoadedExecutable *e,
                           size_t i, PJRT_Buffer **args, PJRT_Buffer **results)
{
  PJRT_ExecuteOptions options = { CX_PJRT_ARGS(PJRT_ExecuteOptions) };
  PJRT_Buffer *const *lists[] = { args };
  PJRT_Buffer **outs[] = { results };
  return CALL(PJRT_LoadedExecutable_Execute, .executable = e,
              .options = &options, .argument_lists = lists, .num_devices = 1,
              .num_args = ARGS_N, .output_lists = outs,
              .execute_device = host_device(client, i));
}

typedef struct pair {
  PJRT_Client *client;
  PJRT_LoadedExecutable *e;
  PJRT_Buffer *args[DEVICES][ARGS_N], *results[DEVICES][LAYERS];
} pair;

static void pair_new(pair *p, bool blocking)
{
  p->client = host_client(DEVICES);
  p->e = chain(p->client, blocking);
  for (int i = 0; i < DEVICES; i++) {
    make_args(host_device(p->client, (size_t)i), i, p->args[i]);
  }
}

static void pair_free(pair *p)
{
  for (int i = 0; i < DEVICES; i++) free_all(p->args[i], ARGS_N);
  host_program_free(p->e);
  host_client_free(p->client);
}

static void pair_run(pair *p, outcome *out)
{
  PJRT_Buffer *const *lists[] = { p->args[0], p->args[1] };
  PJRT_Buffer **outs[] = { p->results[0], p->results[1] };
  HOST_OK(world_run(p->e, DEVICES, ARGS_N, lists, outs));
  for (int i = 0; i < DEVICES; i++) take(p->results[i], &out[i]);
}

static outcome plain[DEVICES], found[DEVICES];

static void one_process(void **unused)
{
  (void)unused;
  pair p;
  pair_new(&p, true);
  pair_run(&p, plain);
  pair_free(&p);
  assert_memory_equal(&plain[0], &plain[1], sizeof plain[0]);
  pair_new(&p, false);
  for (int i = 0; i < 5; i++) {
    pair_run(&p, found);
    assert_memory_equal(plain, found, sizeof plain);
  }
  // Several launches behind each other, one call a device.
  PJRT_Buffer *many[3][DEVICES][LAYERS];
  for (int i = 0; i < DEVICES; i++) {
    for (int k = 0; k < 3; k++) {
      HOST_OK(run_one(p.client, p.e, (size_t)i, p.args[i], many[k][i]));
    }
  }
  for (int k = 0; k < 3; k++) {
    for (int i = 0; i < DEVICES; i++) take(many[k][i], &found[i]);
    assert_memory_equal(plain, found, sizeof plain);
  }
  pair_free(&p);
}

static void one_missing(void **unused)
{
  (void)unused;
  pair p;
  setenv("CALX_COLLECTIVE_TIMEOUT_S", "1", 1);
  pair_new(&p, false);
  unsetenv("CALX_COLLECTIVE_TIMEOUT_S");
  pair_run(&p, plain);
  HOST_OK(run_one(p.client, p.e, 0, p.args[0], p.results[0]));
  for (int k = 0; k < LAYERS; k++) {
    assert_int_not_equal(host_take(host_ready(p.results[0][k])), 0);
    assert_non_null(strstr(host_words(), "replica 1"));
  }
  free_all(p.results[0], LAYERS);
  for (int i = 0; i < 2; i++) {
    pair_run(&p, found);
    assert_memory_equal(plain, found, sizeof plain);
  }
  pair_free(&p);
}

static void run_peer(peer *self)
{
  outcome bits[2];
  PJRT_Buffer *args[ARGS_N], *results[LAYERS];
  make_args(host_device(self->client, 0), self->process, args);
  for (int form = 0; form < 2; form++) {
    PJRT_LoadedExecutable *e = chain(self->client, form == 0);
    for (int i = 0; i < 5; i++) {
      PJRT_Buffer *const *lists[] = { args };
      PJRT_Buffer **outs[] = { results };
      HOST_OK(world_run(e, 1, ARGS_N, lists, outs));
      take(results, &bits[form]);
    }
    host_program_free(e);
  }
  assert_memory_equal(&bits[0], &bits[1], sizeof bits[0]);
  free_all(args, ARGS_N);
  memcpy(self->world->shared + (size_t)self->process * sizeof bits[0], &bits[0],
         sizeof bits[0]);
}

static void two_processes(void **unused)
{
  (void)unused;
  world w = world_new(DEVICES, 1, DEVICES * sizeof(outcome));
  world_start(&w, run_peer, NULL);
  world_join(&w);
  assert_memory_equal(w.shared, w.shared + sizeof(outcome), sizeof(outcome));
  world_free(&w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    // First, since threads are not there for children.
    cmocka_unit_test_setup_teardown(two_processes, begin, end),
    cmocka_unit_test_setup_teardown(one_process, begin, end),
    cmocka_unit_test_setup_teardown(one_missing, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
