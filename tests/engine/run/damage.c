// Programs as bytes that are not what was written: torn, flipped, of another
// format. The hash finds all of that; behind it every index and size is checked
// too, which is seen by flipping bytes and putting the hash right again.
#include "support/support.h"

#include <string.h>

#include "lower/compile.h"
#include "run/layout.h"

static cpu_threads *pool;

// A loop, a product, a sort by 8-bit floats, which is interpreted, branches and
// a loop that counts.
static const char text[] =
    "func.func @main(%x: tensor<6x4xf32> {tf.aliasing_output = 0 : i32}, %k: "
    "tensor<i32>) -> (tensor<6x4xf32>, tensor<6x6xf32>, tensor<i32>) {\n"
    "%t = stablehlo.add %x, %x : tensor<6x4xf32>\n"
    "%p = stablehlo.dot_general %t, %t, contracting_dims = [1] x [1] : "
    "(tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x6xf32>\n"
    "%s = \"stablehlo.sort\"(%t) <{dimension = 1 : i64}> ({\n"
    "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "%c = stablehlo.convert %a : (tensor<f32>) -> tensor<f8E5M2>\n"
    "%d = stablehlo.convert %b : (tensor<f32>) -> tensor<f8E5M2>\n"
    "%q = stablehlo.compare LT, %c, %d : (tensor<f8E5M2>, tensor<f8E5M2>) -> "
    "tensor<i1>\n stablehlo.return %q : tensor<i1> }) : (tensor<6x4xf32>) -> "
    "tensor<6x4xf32>\n"
    "%n = stablehlo.constant dense<9> : tensor<i32>\n"
    "%r = stablehlo.while(%i = %k) : tensor<i32>\n"
    "cond { %q = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n stablehlo.return %q : tensor<i1> }\n"
    "do { %j = stablehlo.add %i, %n : tensor<i32>\n"
    "stablehlo.return %j : tensor<i32> }\n"
    "return %s, %p, %r : tensor<6x4xf32>, tensor<6x6xf32>, tensor<i32> }";

static void save(cx_text *out)
{
  cpu_lower_compile_options options = { .threads = pool };
  cpu_run_program *p = NULL;
  CHECK_STATUS_OK(cpu_lower_compile(text, sizeof text - 1, &options, &p));
  CHECK_STATUS_OK(cpu_run_program_save(p, out));
  cpu_run_program_free(p);
}

#define BODY_AT 32  // behind run/save.c's header

static bool loads(const char *data, size_t size)
{
  cpu_run_program *p = NULL;
  calx_status *status = cpu_run_program_load(data, size, pool, &p);
  bool ok = status == NULL;
  calx_status_free(status);
  cpu_run_program_free(p);
  return ok;
}

static void whole(void **unused)
{
  (void)unused;
  cx_text bytes = { 0 };
  save(&bytes);
  assert_true(loads(bytes.data, bytes.size));
  cx_text_free(&bytes);
}

static void torn(void **unused)
{
  (void)unused;
  cx_text bytes = { 0 };
  save(&bytes);
  for (size_t n = 0; n < bytes.size; n += 1 + n / 17) {
    assert_false(loads(bytes.data, n));
  }
  cx_text_free(&bytes);
}

static void flipped(void **unused)
{
  (void)unused;
  cx_text bytes = { 0 };
  save(&bytes);
  for (size_t i = 0; i < bytes.size; i += 7) {
    bytes.data[i] = (char)(bytes.data[i] ^ 0x10);
    assert_false(loads(bytes.data, bytes.size));
    bytes.data[i] = (char)(bytes.data[i] ^ 0x10);
  }
  cx_text_free(&bytes);
}

// Loading may succeed or not: it must not crash, nor read outside.
static void flipped_behind_the_hash(void **unused)
{
  (void)unused;
  cx_text bytes = { 0 };
  save(&bytes);
  static const unsigned char flips[] = { 0x01, 0x80, 0xff };
  size_t refused = 0;
  size_t loaded = 0;
  for (size_t i = BODY_AT; i < bytes.size; i += 5) {
    for (size_t k = 0; k < sizeof flips; k++) {
      bytes.data[i] = (char)((unsigned char)bytes.data[i] ^ flips[k]);
      cpu_run_program_seal(bytes.data, bytes.size);
      *(loads(bytes.data, bytes.size) ? &loaded : &refused) += 1;
      bytes.data[i] = (char)((unsigned char)bytes.data[i] ^ flips[k]);
    }
  }
  assert_true(refused > 100);
  assert_true(loaded > 100);
  cx_text_free(&bytes);
}

static void other_format(void **unused)
{
  (void)unused;
  cx_text bytes = { 0 };
  save(&bytes);
  bytes.data[8] = 99;
  cpu_run_program *p = NULL;
  CHECK_STATUS(CALX_FAILED_PRECONDITION,
               cpu_run_program_load(bytes.data, bytes.size, pool, &p),
               "format 99");
  CHECK_STATUS(CALX_DATA_LOSS,
               cpu_run_program_load(
                   "rubbish that is long enough to be a header", 42, pool, &p),
               "none of calx's");
  cx_text_free(&bytes);
}

static void objects(void **unused)
{
  (void)unused;
  cpu_run_object *o = NULL;
  CHECK_STATUS(CALX_DATA_LOSS, cpu_run_object_load("", 0, &o), "too short");
  union {
    char bytes[256];
    uint64_t align;
  } rubbish;
  memset(&rubbish, 0x7f, sizeof rubbish);
  CHECK_STATUS(CALX_DATA_LOSS,
               cpu_run_object_load(rubbish.bytes, sizeof rubbish, &o), "ELF");
}

int main(void)
{
  CHECK_STATUS_OK(cpu_threads_new(1, &pool));
  setenv("CALX_DETERMINISTIC", "1", 1);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(whole),        cmocka_unit_test(torn),
    cmocka_unit_test(flipped),      cmocka_unit_test(flipped_behind_the_hash),
    cmocka_unit_test(other_format), cmocka_unit_test(objects),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  cpu_threads_free(pool);
  return failed;
}
