// A custom call whose sharding names one device runs there once, and all
// devices have its results. The function gives back its argument: the number
// of the partition that calls it.
#include <stdatomic.h>
#include <string.h>

#include "parts.h"
#include "ref/handler.h"

enum { DEVICES = 4 };

static atomic_int n_calls;

static XLA_FFI_Error *once(XLA_FFI_CallFrame *frame)
{
  const XLA_FFI_Extension_Base *e = frame->extension_start;
  if (e != NULL && e->type == XLA_FFI_Extension_Metadata) {
    XLA_FFI_Metadata *m = ((const XLA_FFI_Metadata_Extension *)e)->metadata;
    m->api_version.major_version = XLA_FFI_API_MAJOR;
    m->api_version.minor_version = XLA_FFI_API_MINOR;
    return NULL;
  }
  const XLA_FFI_Buffer *x = frame->args.args[frame->args.size - 1];
  n_calls++;
  if (frame->rets.size > 0) {
    const XLA_FFI_Buffer *y = frame->rets.rets[frame->rets.size - 1];
    memcpy(y->data, x->data, sizeof(float));
  }
  return NULL;
}

#define SHARDY(mesh) "sdy.sharding = #sdy.sharding_per_value<[<" mesh ", []>]>"

static const char *const shardings[] = {
  SHARDY("@two"), SHARDY("mesh<[], device_ids=[2]>"),
  "mhlo.sharding = \"{maximal device=2}\"",
  NULL,  // the last one, without a mesh
};

static void put_program(cx_text *t, const char *sharding, const char *call)
{
  const bool mesh = sharding != NULL;
  if (mesh) {
    cx_text_append(t,
                   "sdy.mesh @mesh = <[\"a\"=4]>\n"
                   "sdy.mesh @two = <[], device_ids=[2]>\n"
                   "sdy.mesh @far = <[], device_ids=[4]>\n");
  } else {
    sharding = shardings[2];
  }
  cx_text_format(
      t,
      "func.func @main(%%v: tensor<8xf32>%s) -> tensor<8xf32> {\n"
      "%%p = stablehlo.partition_id : tensor<ui32>\n"
      "%%x = stablehlo.convert %%p : (tensor<ui32>) -> tensor<f32>\n"
      "%%t = stablehlo.create_token : !stablehlo.token\n"
      "%s has_side_effect = true, api_version = 4 : i32, %s} : %s\n"
      "%%z = stablehlo.broadcast_in_dim %%y, dims = [] : (tensor<f32>) -> "
      "tensor<8xf32>\n"
      "%%r = stablehlo.add %%v, %%z : tensor<8xf32>\n"
      "return %%r : tensor<8xf32>\n}\n",
      mesh ? " {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}]>}" : "", call,
      sharding, strchr(call, '\0') + 1);
}

// The call, then its type.
static const char *const calls[] = {
  "%y = stablehlo.custom_call @test_once(%x) {\0(tensor<f32>) -> tensor<f32>",
  "%u, %y = stablehlo.custom_call @test_once(%t, %x) {\0(!stablehlo.token, "
  "tensor<f32>) -> (!stablehlo.token, tensor<f32>)",
  "%y = stablehlo.constant dense<2.0> : tensor<f32>\n"
  "stablehlo.custom_call @test_once(%x) {\0(tensor<f32>) -> ()",
};

static void test_once(void **state)
{
  float values[8], got[8];
  const float *args[] = { values };
  (void)state;
  for (int i = 0; i < 8; i++) values[i] = (float)i / 4;
  for (size_t k = 0; k < 4 * 3 * 2; k++) {
    cx_text text = { 0 };
    put_program(&text, shardings[k % 4], calls[k / 4 % 3]);
    memset(got, 0xff, sizeof got);
    n_calls = 0;
    parts_run(cx_text_str(&text), DEVICES, k / 12 == 1, args,
              (float *[]){ got });
    assert_int_equal(n_calls, 1);
    for (int i = 0; i < 8; i++) {
      CHECK_CLOSE((double)got[i], (double)values[i] + 2, 0);
    }
    cx_text_free(&text);
  }
}

static void refuse_program(const char *text, calx_code code, const char *words)
{
  cpu_threads *pool = NULL;
  cpu_run_program *p = NULL;
  CHECK_STATUS_OK(cpu_threads_new(1, &pool));
  const cpu_lower_compile_options options = { .n_replicas = 1,
                                              .n_partitions = DEVICES,
                                              .threads = pool };
  CHECK_STATUS(code, cpu_lower_compile(text, strlen(text), &options, &p),
               words);
  assert_null(p);
  cpu_threads_free(pool);
}

static void refuse(const char *sharding, const char *words)
{
  cx_text text = { 0 };
  put_program(&text, sharding, calls[0]);
  refuse_program(cx_text_str(&text), CALX_INVALID_ARGUMENT, words);
  cx_text_free(&text);
}

static void test_refused(void **state)
{
  (void)state;
  refuse(SHARDY("@far"), "device 4 in a program of 4 partitions");
  refuse(SHARDY("@none"), "no mesh 'none'");
  refuse("mhlo.sharding = \"{maximal device=-7}\"", "device -7");
}

// GSPMD splits an argument or a result; nothing here does.
static void test_gspmd(void **state)
{
#define SPLIT " {mhlo.sharding = \"{devices=[4]<=[4]}\"}"
  (void)state;
  refuse_program("func.func @main(%v: tensor<8xf32>" SPLIT
                 ") -> tensor<8xf32> {\nreturn %v : tensor<8xf32>\n}\n",
                 CALX_UNIMPLEMENTED, "argument 0 of @main is split by");
  refuse_program("func.func @main(%v: tensor<8xf32>) -> (tensor<8xf32>" SPLIT
                 ") {\nreturn %v : tensor<8xf32>\n}\n",
                 CALX_UNIMPLEMENTED, "result 0 of @main is split by");
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_once),
                                      cmocka_unit_test(test_refused),
                                      cmocka_unit_test(test_gspmd) };
  CHECK_STATUS_OK(cpu_ref_handler_add((cx_hlo_str){ "test_once", 9 }, once));
  return cmocka_run_group_tests(tests, NULL, NULL);
}
