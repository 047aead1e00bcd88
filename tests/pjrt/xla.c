// xla: the client against a real plugin, XLA's CPU plugin in one of its builds,
// whose path is in CALX_PLUGIN.
#include "xla.h"

#include <unistd.h>

cx_pjrt_plugin *xla_plugin;
cx_pjrt_client *xla_client;

static int open_client(void **state)
{
  (void)state;
  cx_pjrt_client_options options = { .device_count = XLA_DEVICES };
  CHECK_OK(cx_pjrt_client_open(xla_plugin, &options, &xla_client));
  return 0;
}

static int close_client(void **state)
{
  cx_pjrt_client_close(xla_client);
  xla_client = NULL;
  return check_nothing_left(state);
}

// ---- shapes, buffers and programs ----

cx_pjrt_shape xla_shape(calx_dtype d, size_t rank, int64_t a, int64_t b)
{
  cx_pjrt_shape s;
  assert_true(cx_pjrt_shape_make(d, (int64_t[]){ a, b }, rank, &s));
  return s;
}

cx_pjrt_buffer *xla_upload(size_t device, const cx_pjrt_shape *s,
                           const void *data)
{
  cx_pjrt_buffer *b = NULL;
  CHECK_OK(cx_pjrt_buffer_from_host(xla_client, device, s, data, CX_PJRT_COPY,
                                    NULL, NULL, &b));
  return b;
}

cx_pjrt_buffer *xla_floats(size_t device, size_t n, float first)
{
  cx_pjrt_shape s = xla_shape(CALX_F32, 1, (int64_t)n, 0);
  float *data = cx_alloc(n * sizeof *data);
  for (size_t i = 0; i < n; i++) data[i] = first + (float)i;
  cx_pjrt_buffer *b = xla_upload(device, &s, data);
  cx_free(data);
  return b;
}

void xla_check_floats(cx_pjrt_buffer *b, size_t n, float first, float step)
{
  float *data = cx_alloc(n * sizeof *data);
  CHECK_OK(cx_pjrt_buffer_to_host(b, data, n * sizeof *data));
  for (size_t i = 0; i < n; i++) {
    assert_float_equal(data[i], first + step * (float)i, 0.0F);
  }
  cx_free(data);
}

const cx_pjrt_signature *xla_like(xla_uniform *u, cx_pjrt_shape s,
                                  size_t n_params)
{
  *u = (xla_uniform){ .shapes = { s, s, s, s } };
  u->signature = (cx_pjrt_signature){ .params = u->shapes,
                                      .donated = u->donated,
                                      .n_params = n_params,
                                      .results = u->shapes,
                                      .n_results = 1 };
  return &u->signature;
}

cx_pjrt_executable *xla_compile(const char *text,
                                const cx_pjrt_compile_options *options,
                                const cx_pjrt_signature *signature)
{
  cx_pjrt_executable *e = NULL;
  CHECK_OK(
      cx_pjrt_compile(xla_client, text, strlen(text), options, signature, &e));
  return e;
}

cx_pjrt_executable *xla_compile_add(bool donate)
{
  xla_uniform u;
  xla_like(&u, xla_shape(CALX_F32, 1, 4, 0), 2);
  u.donated[0] = donate;
  return xla_compile(
      donate ? DONATING_ADD("tensor<4xf32>") : BINARY("add", "tensor<4xf32>"),
      NULL, &u.signature);
}

calx_status *xla_run2(cx_pjrt_executable *e, cx_pjrt_buffer *a,
                      cx_pjrt_buffer *b, cx_pjrt_buffer **out)
{
  cx_pjrt_buffer *args[] = { a, b };
  return cx_pjrt_execute(e, 0, args, 2, out, NULL);
}

void xla_count_done(void *user)
{
  atomic_fetch_add((atomic_int *)user, 1);
}

void xla_wait_for(atomic_int *count)
{
  while (atomic_load(count) == 0) usleep(1000);
}

static int test_plugin(const char *path)
{
  calx_status *status = cx_pjrt_plugin_open(path, &xla_plugin);
  if (status != NULL) {
    calx_status_print(stderr, status);
    calx_status_free(status);
    return 1;
  }
#define XLA_ENTRY(name) \
  cmocka_unit_test_setup_teardown(name, open_client, close_client),
  const struct CMUnitTest tests[] = { XLA_TESTS(XLA_ENTRY) };
  return cmocka_run_group_tests_name(path, tests, NULL, NULL);
}

int main(int argc, char **argv)
{
  const char *path = argc > 1 ? argv[1] : getenv("CALX_PLUGIN");
  if (path == NULL) {
    printf("skipped: no plugin is given, in CALX_PLUGIN or as an argument\n");
    return 77;
  }
  return test_plugin(path);
}
