// world: what plugins are told of the processes that train together: options by
// kind, the store behind the callbacks, and which devices a program of all
// ranks runs on.
#include <pthread.h>

#include "base/alloc.h"
#include "fixture.h"
#include "world/world.h"

static cx_pjrt_world world_of(int64_t process, int64_t processes)
{
  return (cx_pjrt_world){ .process = process,
                          .processes = processes,
                          .local_process = process,
                          .local_processes = processes,
                          .hosts = 1,
                          .segment_fd = 7,
                          .get = cx_world_store_get,
                          .try_get = cx_world_store_try_get,
                          .put = cx_world_store_put };
}

// The test's client, anew with this world.
static void reopen(const cx_pjrt_world *w, int64_t devices)
{
  cx_pjrt_client_close(client);
  client = NULL;
  cx_pjrt_client_options o = { .device_count = devices, .world = w };
  CHECK_OK(cx_pjrt_client_open(plugin, &o, &client));
}

// ---- options ----

static const char *options_for(cx_pjrt_kind kind, bool own,
                               const cx_pjrt_world *w)
{
  static char text[256];
  cx_pjrt_plugin p = { .kind = kind, .is_own = own };
  cx_pjrt_option list[CX_PJRT_WORLD];
  size_t n = cx_pjrt_world_options(&p, w, list), used = 0;
  assert_true(n <= CX_PJRT_WORLD);
  text[0] = '\0';
  for (size_t i = 0; i < n; i++) {
    bool many = list[i].type == CX_PJRT_INTS;
    used += (size_t)snprintf(
        text + used, sizeof text - used, "%s=%d;", list[i].name,
        (int)(many ? list[i].ints_value[0] : list[i].int_value));
  }
  return text;
}

static void test_options(void **state)
{
  (void)state;
  cx_pjrt_world w = world_of(1, 3);
  assert_string_equal(options_for(CX_PJRT_KIND_CPU, true, &w),
                      "node_id=1;num_nodes=3;calx_segment_fd=7;calx_host=0;"
                      "calx_hosts=1;");
  w.segment_fd = -1;
  w.host = 1;
  w.hosts = 3;
  assert_string_equal(options_for(CX_PJRT_KIND_CPU, true, &w),
                      "node_id=1;num_nodes=3;calx_host=1;calx_hosts=3;");
  w.host_first = 1;
  w.host_processes = 2;
  assert_string_equal(options_for(CX_PJRT_KIND_CPU, true, &w),
                      "node_id=1;num_nodes=3;calx_host=1;calx_hosts=3;"
                      "calx_host_first=1;calx_host_processes=2;");
  assert_string_equal(options_for(CX_PJRT_KIND_CPU, false, &w), "");
  assert_string_equal(options_for(CX_PJRT_KIND_TPU, false, &w), "");
  assert_string_equal(options_for(CX_PJRT_KIND_OTHER, false, &w),
                      "node_id=1;num_nodes=3;");
  w = world_of(0, 1);
  assert_string_equal(options_for(CX_PJRT_KIND_CPU, true, &w), "");
  assert_string_equal(options_for(CX_PJRT_KIND_CUDA, false, &w), "");
  assert_string_equal(options_for(CX_PJRT_KIND_OTHER, false, NULL), "");
}

static bool gets_store(cx_pjrt_kind kind, bool is_own, const cx_pjrt_world *w)
{
  cx_pjrt_plugin p = { .kind = kind, .is_own = is_own };
  cx_pjrt_client c = { .plugin = &p, .world = *w };
  PJRT_Client_Create_Args args = { 0 };
  cx_pjrt_world_callbacks(&c, &args);
  const bool gets = args.kv_get_callback != NULL;
  assert_true(gets == (args.kv_put_callback != NULL));
  return gets;
}

static void test_callbacks(void **state)
{
  (void)state;
  cx_pjrt_world w = world_of(1, 3);
  assert_true(gets_store(CX_PJRT_KIND_OTHER, false, &w));
  assert_true(gets_store(CX_PJRT_KIND_CUDA, false, &w));
  assert_false(gets_store(CX_PJRT_KIND_TPU, false, &w));
  assert_false(gets_store(CX_PJRT_KIND_CPU, true, &w));  // of one host
  w.hosts = 3;
  assert_true(gets_store(CX_PJRT_KIND_CPU, true, &w));
  assert_false(gets_store(CX_PJRT_KIND_CPU, false, &w));
}

// A process takes the card of its number, where it sees the others' too.
static void test_cards(void **state)
{
  (void)state;
  cx_pjrt_world w = world_of(2, 3);
  const char *place = "node_id=2;num_nodes=3;";
  const char *all = "node_id=2;num_nodes=3;visible_devices=2;";
  unsetenv("CUDA_VISIBLE_DEVICES");
  assert_string_equal(options_for(CX_PJRT_KIND_CUDA, false, &w), all);
  setenv("CUDA_VISIBLE_DEVICES", "0,1,2", 1);
  assert_string_equal(options_for(CX_PJRT_KIND_CUDA, false, &w), all);
  setenv("CUDA_VISIBLE_DEVICES", "2", 1);
  assert_string_equal(options_for(CX_PJRT_KIND_CUDA, false, &w), place);
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  assert_string_equal(options_for(CX_PJRT_KIND_CUDA, false, &w), place);
  unsetenv("CUDA_VISIBLE_DEVICES");
  w.local_processes = 1;
  assert_string_equal(options_for(CX_PJRT_KIND_CUDA, false, &w), place);
}

static void test_told(void **state)
{
  (void)state;
  assert_false(plugin_control.has_store());
  cx_pjrt_world w = world_of(1, 3);
  reopen(&w, 2);
  assert_string_equal(plugin_control.options(),
                      "cpu_device_count=2;node_id=1;num_nodes=3");
  assert_true(plugin_control.has_store());
  assert_int_equal(cx_pjrt_client_device_count(client), 2);
  assert_int_equal(cx_pjrt_client_world_count(client), 6);
  assert_false(cx_pjrt_client_is_own(client));
  w = world_of(0, 1);
  reopen(&w, 2);
  assert_false(plugin_control.has_store());
  assert_int_equal(cx_pjrt_client_world_count(client), 2);
}

// ---- the store ----

static int ask(fake_value *v, const char *key, size_t key_size)
{
  v->key = key;
  v->key_size = key_size;
  return plugin_control.store(v);
}

static int put(const char *key, size_t key_size, const char *value, size_t size)
{
  fake_value v = { .what = FAKE_PUT, .size = size };
  memcpy(v.bytes, value, size);
  return ask(&v, key, key_size);
}

static void test_store(void **state)
{
  (void)state;
  cx_pjrt_world w = world_of(0, 2);
  reopen(&w, 1);
  fake_value v = { .what = FAKE_TRY_GET };
  assert_int_equal(ask(&v, "k", 1), PJRT_Error_Code_NOT_FOUND);
  v = (fake_value){ .what = FAKE_GET, .timeout_ms = 20 };
  assert_int_equal(ask(&v, "k", 1), PJRT_Error_Code_DEADLINE_EXCEEDED);
  assert_non_null(memmem(v.bytes, v.size, "pjrt:k", 6));
  // Keys are bytes with a length, values too.
  assert_int_equal(put("kX", 1, "a\0b", 3), 0);
  assert_int_equal(put("k\0", 2, "", 0), 0);
  assert_int_equal(put("k%00", 4, "third", 5), 0);
  assert_int_equal(put("k", 1, "a\0b", 3), 0);
  assert_int_equal(put("k", 1, "other", 5), PJRT_Error_Code_ALREADY_EXISTS);
  v = (fake_value){ .what = FAKE_TRY_GET };
  assert_int_equal(ask(&v, "k\0", 2), 0);
  assert_int_equal(v.size, 0);
  assert_int_equal(ask(&v, "k%00", 4), 0);
  assert_int_equal(v.size, 5);
  v = (fake_value){ .what = FAKE_GET, .timeout_ms = 1000 };
  assert_int_equal(ask(&v, "k", 1), 0);
  assert_int_equal(v.size, 3);
  assert_memory_equal(v.bytes, "a\0b", 3);
  char *value;
  size_t size;
  CHECK_OK(cx_world_store_try_get("pjrt:k", &value, &size));
  assert_int_equal(size, 3);
  cx_free(value);
  cx_world_store_drop("pjrt:k");
  cx_world_store_drop("pjrt:k%00");
  cx_world_store_drop("pjrt:k%2500");
  v = (fake_value){ .what = FAKE_TRY_GET };
  assert_int_equal(ask(&v, "k%00", 4), PJRT_Error_Code_NOT_FOUND);
}

typedef struct asker {
  pthread_t thread;
  int code;
  fake_value v;
} asker;

static void *wait_for_key(void *user)
{
  asker *a = user;
  a->v = (fake_value){ .what = FAKE_GET, .timeout_ms = 30000 };
  a->code = ask(&a->v, "late", 4);
  return NULL;
}

// As process 0 asks for all nodes at once, from many threads.
static void test_threads(void **state)
{
  (void)state;
  enum { THREADS = 8 };
  asker all[THREADS];
  cx_pjrt_world w = world_of(0, 2);
  reopen(&w, 1);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(
        pthread_create(&all[i].thread, NULL, wait_for_key, &all[i]), 0);
  }
  assert_int_equal(put("late", 4, "here", 4), 0);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(all[i].thread, NULL);
    assert_int_equal(all[i].code, 0);
    assert_int_equal(all[i].v.size, 4);
  }
  cx_world_store_drop("pjrt:late");
}

static calx_code failure;

static calx_status *fail_get(const char *key, int64_t timeout_ms, char **out,
                             size_t *out_size)
{
  (void)key, (void)timeout_ms;
  *out = NULL;
  *out_size = 0;
  return cx_error(failure, "rank 2 ended by signal 9");
}

static calx_status *fail_put(const char *key, const void *value, size_t size)
{
  (void)key, (void)value, (void)size;
  return cx_error(failure, "rank 2 ended by signal 9");
}

static calx_status *fail_try(const char *key, char **out, size_t *out_size)
{
  return fail_get(key, 0, out, out_size);
}

// The job's failure has any code; to a plugin it is one.
static void test_news(void **state)
{
  (void)state;
  cx_pjrt_world w = world_of(0, 2);
  w.get = fail_get;
  w.try_get = fail_try;
  w.put = fail_put;
  reopen(&w, 1);
  const struct {
    calx_code from;
    int to;
  } cases[] = { { CALX_UNAVAILABLE, PJRT_Error_Code_ABORTED },
                { CALX_INTERNAL, PJRT_Error_Code_ABORTED },
                { CALX_ABORTED, PJRT_Error_Code_ABORTED },
                { CALX_NOT_FOUND, PJRT_Error_Code_NOT_FOUND },
                { CALX_DEADLINE_EXCEEDED, PJRT_Error_Code_DEADLINE_EXCEEDED } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    failure = cases[i].from;
    fake_value v = { .what = FAKE_GET };
    assert_int_equal(ask(&v, "k", 1), cases[i].to);
    assert_memory_equal(v.bytes, "rank 2 ended by signal 9", v.size);
    v = (fake_value){ .what = FAKE_TRY_GET };
    assert_int_equal(ask(&v, "k", 1), cases[i].to);
    assert_int_equal(put("k", 1, "", 0), cases[i].to);
  }
}

static void test_no_memory(void **state)
{
  (void)state;
  cx_pjrt_world w = world_of(0, 2);
  reopen(&w, 1);
  for (int what = 0; what < 3; what++) {
    fake_value v = { .what = FAKE_GET };
    v.what += (unsigned)what;
    cx_alloc_fail_at(0);
    int code = ask(&v, "k", 1);
    cx_alloc_fail_at(-1);
    assert_int_equal(code, PJRT_Error_Code_RESOURCE_EXHAUSTED);
  }
}

// ---- programs of all ranks ----

// Whether the replicas are on these devices, by their ids.
static bool assigned(int64_t replicas, const int64_t *ids)
{
  cx_pjrt_compile_options all = { .num_replicas = replicas,
                                  .everywhere = true };
  cx_pjrt_compile_options told = { .num_replicas = replicas, .devices = ids };
  char *a, *b;
  size_t n, m;
  CHECK_OK(cx_pjrt_options_encode(&all, client, &a, &n));
  CHECK_OK(cx_pjrt_options_encode(&told, NULL, &b, &m));
  bool equal = n == m && memcmp(a, b, n) == 0;
  cx_free(a);
  cx_free(b);
  return equal;
}

static void test_assignment(void **state)
{
  (void)state;
  for (int process = 0; process < 3; process++) {
    cx_pjrt_world w = world_of(process, 3);
    reopen(&w, 2);
    // The fake's ids go round the processes; ranks do not.
    assert_true(assigned(6, (const int64_t[]){ 10, 13, 11, 14, 12, 15 }));
    assert_true(assigned(3, (const int64_t[]){ 10, 11, 12 }));
    for (int64_t n = 3; n <= 6; n += 3) {
      cx_pjrt_compile_options o = { .num_replicas = n, .everywhere = true };
      cx_pjrt_executable *e = NULL;
      CHECK_OK(try_compile(false, &o, &e));
      assert_int_equal(cx_pjrt_executable_device_count(e), n / 3);
      for (size_t r = 0; r < (size_t)n / 3; r++) {
        assert_int_equal(cx_pjrt_executable_device(e, r), r);
      }
      cx_pjrt_executable_release(e);
    }
    char *bytes;
    size_t size;
    for (int64_t n = 4; n <= 9; n += 5) {
      cx_pjrt_compile_options o = { .num_replicas = n, .everywhere = true };
      CHECK_FAILS(CALX_FAILED_PRECONDITION,
                  cx_pjrt_options_encode(&o, client, &bytes, &size),
                  "replicas are wanted", "2 devices here and 6 in all");
    }
  }
}

// Launches have one number in all processes, also where one compiled the
// program and another loaded it.
static void test_launch_numbers(void **state)
{
  (void)state;
  cx_pjrt_compile_options o = { .launches = 1234 };
  cx_pjrt_executable *e = NULL;
  CHECK_OK(try_compile(false, &o, &e));
  assert_int_equal(e->launch_base, 1234);
  char *bytes;
  size_t size;
  CHECK_OK(cx_pjrt_executable_serialize(e, &bytes, &size));
  cx_pjrt_signature s = { .params = e->params,
                          .n_params = e->n_params,
                          .results = e->results,
                          .n_results = e->n_results };
  cx_pjrt_executable *loaded = NULL;
  CHECK_OK(
      cx_pjrt_executable_deserialize(client, bytes, size, &o, &s, &loaded));
  assert_int_equal(loaded->launch_base, 1234);
  cx_pjrt_executable_release(loaded);
  cx_pjrt_executable_release(e);
  cx_free(bytes);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    FIXTURE_TEST(test_options),    FIXTURE_TEST(test_callbacks),
    FIXTURE_TEST(test_cards),      FIXTURE_TEST(test_told),
    FIXTURE_TEST(test_store),      FIXTURE_TEST(test_threads),
    FIXTURE_TEST(test_news),       FIXTURE_TEST(test_no_memory),
    FIXTURE_TEST(test_assignment), FIXTURE_TEST(test_launch_numbers),
  };
  return cmocka_run_group_tests(tests, fixture_load, NULL);
}
