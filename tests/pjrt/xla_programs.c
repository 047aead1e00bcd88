// xla_programs: compiling, saving and options on real plugins.
#include <math.h>

#include "xla.h"

// ---- compiling ----

void test_compile_error_has_a_line(void **state)
{
  (void)state;
  static const char text[] =
      PROGRAM("(tensor<4xf32>) -> tensor<4xf32>", "",
              "  ^bb0(%a: tensor<4xf32>):\n"
              "    %0 = \"stablehlo.nonsense\"(%a) : (tensor<4xf32>) -> "
              "tensor<4xf32>\n"
              "    \"func.return\"(%0) : (tensor<4xf32>) -> ()\n");
  xla_uniform u;
  cx_pjrt_executable *e = NULL;
  CHECK_FAILS(
      CALX_UNKNOWN,
      cx_pjrt_compile(xla_client, text, strlen(text), NULL,
                      xla_like(&u, xla_shape(CALX_F32, 1, 4, 0), 1), &e),
      "PJRT_Client_Compile", ":4:", "nonsense");
  assert_null(e);
}

void test_signature_is_compared(void **state)
{
  (void)state;
  static const char text[] = BINARY("add", "tensor<4xf32>");
  xla_uniform u;
  cx_pjrt_executable *e = NULL;
  cx_pjrt_signature s = *xla_like(&u, xla_shape(CALX_F32, 1, 4, 0), 2);
  u.shapes[0] = xla_shape(CALX_I32, 1, 4, 0);
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_compile(xla_client, text, strlen(text), NULL, &s, &e),
              "result 0 is i32[4] in the signature and f32[4]");
  u.shapes[0] = xla_shape(CALX_F32, 2, 2, 2);
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_compile(xla_client, text, strlen(text), NULL, &s, &e),
              "result 0 is f32[2,2] in the signature and f32[4]");
  u.shapes[0] = xla_shape(CALX_F32, 1, 4, 0);
  s.n_results = 2;
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_compile(xla_client, text, strlen(text), NULL, &s, &e),
              "has 1 results", "its signature has 2");
}

void test_too_many_replicas(void **state)
{
  (void)state;
  static const char text[] = BINARY("add", "tensor<4xf32>");
  xla_uniform u;
  cx_pjrt_executable *e = NULL;
  cx_pjrt_compile_options options = { .num_replicas = 5 };
  CHECK_FAILS(
      CALX_INVALID_ARGUMENT,
      cx_pjrt_compile(xla_client, text, strlen(text), &options,
                      xla_like(&u, xla_shape(CALX_F32, 1, 4, 0), 2), &e),
      "replica 4 wants device 4", "has 4 here");
}

static float max_with_nan(const cx_pjrt_compile_options *options)
{
  xla_uniform u;
  xla_like(&u, xla_shape(CALX_F32, 1, 4, 0), 2);
  cx_pjrt_executable *e =
      xla_compile(BINARY("maximum", "tensor<4xf32>"), options, &u.signature);
  float nans[] = { NAN, NAN, NAN, NAN };
  cx_pjrt_buffer *a = xla_floats(0, 4, 1);
  cx_pjrt_buffer *b = xla_upload(0, &u.shapes[0], nans);
  cx_pjrt_buffer *result = NULL;
  CHECK_OK(xla_run2(e, a, b, &result));
  float out[4];
  CHECK_OK(cx_pjrt_buffer_to_host(result, out, sizeof out));
  cx_pjrt_buffer_release(a);
  cx_pjrt_buffer_release(b);
  cx_pjrt_buffer_release(result);
  cx_pjrt_executable_release(e);
  return out[0];
}

void test_overrides(void **state)
{
  (void)state;
  assert_true(isnan(max_with_nan(NULL)));
  cx_pjrt_option fast = { .name = "xla_cpu_enable_fast_min_max",
                          .type = CX_PJRT_BOOL,
                          .int_value = 1 };
  cx_pjrt_compile_options options = { .overrides = &fast, .n_overrides = 1 };
  assert_true(max_with_nan(&options) == 1.0F);  // the user's word wins
  fast.name = "no_such_key";
  xla_uniform u;
  cx_pjrt_executable *e = NULL;
  static const char text[] = BINARY("add", "tensor<4xf32>");
  CHECK_FAILS(
      CALX_INVALID_ARGUMENT,
      cx_pjrt_compile(xla_client, text, strlen(text), &options,
                      xla_like(&u, xla_shape(CALX_F32, 1, 4, 0), 2), &e),
      "no_such_key");
}

// ---- saving ----

void test_serialize(void **state)
{
  (void)state;
  cx_pjrt_executable *e = xla_compile_add(true);
  char *bytes = NULL;
  size_t size = 0;
  CHECK_OK(cx_pjrt_executable_serialize(e, &bytes, &size));
  assert_true(size > 0);
  cx_pjrt_executable_release(e);
  xla_uniform u;
  xla_like(&u, xla_shape(CALX_F32, 1, 4, 0), 2);
  u.donated[0] = true;
  CHECK_OK(cx_pjrt_executable_deserialize(xla_client, bytes, size, NULL,
                                          &u.signature, &e));
  cx_pjrt_buffer *a = xla_floats(0, 4, 1);
  cx_pjrt_buffer *b = xla_floats(0, 4, 1);
  cx_pjrt_buffer *result = NULL;
  CHECK_OK(xla_run2(e, a, b, &result));
  xla_check_floats(result, 4, 2, 2);
  assert_true(cx_pjrt_buffer_is_deleted(a));
  cx_pjrt_buffer_release(a);
  cx_pjrt_buffer_release(b);
  cx_pjrt_buffer_release(result);
  cx_pjrt_executable_release(e);
  // For a device other than the one it was compiled for.
  int64_t second = 1;
  cx_pjrt_compile_options options = { .devices = &second };
  CHECK_OK(cx_pjrt_executable_deserialize(xla_client, bytes, size, &options,
                                          &u.signature, &e));
  a = xla_floats(1, 4, 1);
  b = xla_floats(1, 4, 1);
  cx_pjrt_buffer *args[] = { a, b };
  CHECK_OK(cx_pjrt_execute(e, 1, args, 2, &result, NULL));
  xla_check_floats(result, 4, 2, 2);
  cx_pjrt_buffer_release(a);
  cx_pjrt_buffer_release(b);
  cx_pjrt_buffer_release(result);
  cx_pjrt_executable_release(e);
  // Of another type than was saved.
  u.shapes[0] = xla_shape(CALX_I32, 1, 4, 0);
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_executable_deserialize(xla_client, bytes, size, NULL,
                                             &u.signature, &e),
              "result 0 is i32");
  CHECK_FAILS(CALX_INTERNAL,
              cx_pjrt_executable_deserialize(xla_client, bytes, size / 2, NULL,
                                             &u.signature, &e),
              "PJRT_Executable_DeserializeAndLoad");
  CHECK_FAILS(CALX_INTERNAL,
              cx_pjrt_executable_deserialize(xla_client, "rubbish", 7, NULL,
                                             &u.signature, &e),
              "PJRT_Executable_DeserializeAndLoad");
  assert_null(e);
  cx_free(bytes);
}

void test_executable_memory(void **state)
{
  (void)state;
  cx_pjrt_executable *e = xla_compile_add(true);
  cx_pjrt_executable_stats stats;
  CHECK_OK(cx_pjrt_executable_memory(e, &stats));
  assert_int_equal(stats.arguments, 32);
  assert_int_equal(stats.outputs, 16);
  assert_int_equal(stats.aliased, 16);
  assert_true(stats.temporaries >= 0);
  cx_pjrt_executable_release(e);
}

// XLA's CPU plugin has no topologies by name.
void test_no_topology(void **state)
{
  (void)state;
  static const char text[] = BINARY("add", "tensor<4xf32>");
  char *bytes = NULL;
  size_t size = 0;
  CHECK_FAILS(CALX_UNIMPLEMENTED,
              cx_pjrt_compile_for(xla_plugin, "v5e:2x2", NULL, 0, text,
                                  strlen(text), NULL, &bytes, &size, NULL),
              "PJRT_TopologyDescription_Create", "v5e:2x2");
}
