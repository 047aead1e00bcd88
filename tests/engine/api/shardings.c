// shardings: what the extension says of a partitioned program and of its saved
// bytes, and of a program that is not partitioned.
#include "abi/pjrt_shardings.h"
#include "host.h"

static const PJRT_Shardings_Extension *extension(void)
{
  const PJRT_Extension_Base *e = api->extension_start;
  while (e != NULL && e->type != PJRT_Extension_Type_Shardings) e = e->next;
  assert_non_null(e);
  return (const PJRT_Shardings_Extension *)e;
}

// xla.OpSharding: type OTHER, tiles 2x1, devices 0 and 1.
static const char rows[] = { 8, 3, 24, 2, 24, 1, 32, 0, 32, 1 };
static const char columns[] = { 8, 3, 24, 1, 24, 2, 32, 0, 32, 1 };
static const char whole[] = { 8, 0 };

static const char text[] =
    "sdy.mesh @mesh = <[\"x\"=2]>\n"
    "func.func @main(%a: tensor<4x4xf32> {sdy.sharding = "
    "#sdy.sharding<@mesh, [{\"x\"}, {}]>}, %b: tensor<4x4xf32>) -> "
    "(tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {\"x\"}]>}) {\n"
    "  %c = stablehlo.add %a, %b : tensor<4x4xf32>\n"
    "  return %c : tensor<4x4xf32>\n}\n";

static void check_one(const char *got, size_t size, const char *want,
                      size_t want_size)
{
  assert_int_equal(size, want_size);
  assert_memory_equal(got, want, size);
}

static void check(PJRT_LoadedExecutable *loaded, bool partitioned)
{
  ARGS(get, PJRT_LoadedExecutable_GetExecutable, .loaded_executable = loaded);
  HOST_OK(api->PJRT_LoadedExecutable_GetExecutable(&get));
  ARGS(in, PJRT_Shardings_PJRT_Executable_ParameterShardings,
       .executable = get.executable);
  HOST_OK(extension()->PJRT_Shardings_PJRT_Executable_ParameterShardings(&in));
  ARGS(out, PJRT_Shardings_PJRT_Executable_OutputShardings,
       .executable = get.executable);
  HOST_OK(extension()->PJRT_Shardings_PJRT_Executable_OutputShardings(&out));
  assert_int_equal(in.num_parameters, 2);
  assert_int_equal(out.num_outputs, 1);
  if (partitioned) {
    check_one(in.shardings[0], in.sharding_sizes[0], rows, sizeof rows);
    check_one(in.shardings[1], in.sharding_sizes[1], whole, sizeof whole);
    check_one(out.shardings[0], out.sharding_sizes[0], columns, sizeof columns);
  } else {
    assert_null(in.shardings);
    assert_null(out.shardings);
  }
  HOST_OK(CALL(PJRT_Executable_Destroy, .executable = get.executable));
}

static PJRT_LoadedExecutable *reload(PJRT_Client *client,
                                     PJRT_LoadedExecutable *loaded)
{
  ARGS(get, PJRT_LoadedExecutable_GetExecutable, .loaded_executable = loaded);
  HOST_OK(api->PJRT_LoadedExecutable_GetExecutable(&get));
  ARGS(saved, PJRT_Executable_Serialize, .executable = get.executable);
  HOST_OK(api->PJRT_Executable_Serialize(&saved));
  ARGS(load, PJRT_Executable_DeserializeAndLoad, .client = client,
       .serialized_executable = saved.serialized_bytes,
       .serialized_executable_size = saved.serialized_bytes_size);
  HOST_OK(api->PJRT_Executable_DeserializeAndLoad(&load));
  saved.serialized_executable_deleter(saved.serialized_executable);
  HOST_OK(CALL(PJRT_Executable_Destroy, .executable = get.executable));
  host_program_free(loaded);
  return load.loaded_executable;
}

static void test_partitioned(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(2);
  host_options o = host_replicas(1, 2);
  PJRT_LoadedExecutable *loaded = NULL;
  HOST_OK(host_compile(client, text, o.bytes, o.size, &loaded));
  check(loaded, true);
  loaded = reload(client, loaded);
  check(loaded, true);
  host_program_free(loaded);
  host_client_free(client);
}

static void test_whole(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(1);
  PJRT_LoadedExecutable *loaded =
      host_program(client,
                   "func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> "
                   "tensor<4xf32> {\n  %c = stablehlo.add %a, %b : "
                   "tensor<4xf32>\n  return %c : tensor<4xf32>\n}\n");
  check(loaded, false);
  loaded = reload(client, loaded);
  check(loaded, false);
  host_program_free(loaded);
  host_client_free(client);
}

int main(void)
{
  const struct CMUnitTest tests[] = { HOST_TEST(test_partitioned),
                                      HOST_TEST(test_whole) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
