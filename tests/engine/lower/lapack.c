// Custom calls of LAPACK's routines, as JAX sends them: the programs of
// lapack.txt, which lapack.py made, by the schedule, from saved bytes and by
// the interpreter. Then calls that contradict their target, and a function that
// is registered by a target's name.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "lower/compile.h"
#include "ref/handler.h"
#include "support/support.h"

static cpu_threads *pool;

// ---- the recorded programs ----

static double part_at(const void *data, bool wide, size_t i)
{
  return wide ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

// Floats differ by at most the tolerance of the largest one; integers by none.
static void check_pair(const cx_hlo_type *type, const void *got,
                       const void *want, size_t program)
{
  const size_t bytes = (size_t)cx_hlo_type_bytes(type);
  const bool wide = type->elem == CX_HLO_F64 || type->elem == CX_HLO_C128;
  if (!wide && type->elem != CX_HLO_F32 && type->elem != CX_HLO_C64) {
    if (bytes > 0) assert_memory_equal(got, want, bytes);
    return;
  }
  const size_t n = bytes / (wide ? 8 : 4);
  double most = 1;
  for (size_t i = 0; i < n; i++) {
    const double w = fabs(part_at(want, wide, i));
    if (w > most) most = w;
  }
  for (size_t i = 0; i < n; i++) {
    const double g = part_at(got, wide, i), w = part_at(want, wide, i);
    if (isnan(g) && isnan(w)) continue;
    if (fabs(g - w) <= most * (wide ? 1e-12 : 2e-5)) continue;
    fail_msg("program %zu: number %zu is %g, JAX had %g", program, i, g, w);
  }
}

static void run_pairs(cpu_run_program *p, size_t program)
{
  const cpu_run_program_info *info = cpu_run_program_info_of(p);
  void **results = calloc(info->n_results, sizeof *results);
  for (size_t i = 0; i < info->n_results; i++) {
    const size_t bytes = (size_t)cx_hlo_type_bytes(&info->results[i]);
    results[i] = aligned_alloc(64, (bytes + 64) / 64 * 64);
  }
  cpu_run_context *context = NULL;
  CHECK_STATUS_OK(cpu_run_context_new(pool, &context));
  cpu_coll_launch launch = { .n_replicas = 1, .n_partitions = 1 };
  CHECK_STATUS_OK(cpu_run_program_run(p, context, &launch, NULL, results));
  assert_true(info->n_results > 0 && info->n_results % 2 == 0);
  for (size_t i = 0; i < info->n_results; i += 2) {
    check_pair(&info->results[i], results[i], results[i + 1], program);
  }
  cpu_run_context_free(context);
  for (size_t i = 0; i < info->n_results; i++) free(results[i]);
  free(results);
}

static void run_text(const char *text, size_t size, size_t program,
                     bool interpret)
{
  const cpu_lower_compile_options options = { .threads = pool };
  cpu_run_program *p = NULL, *loaded = NULL;
  if (interpret) setenv("CALX_CPU_REF", "1", 1);
  CHECK_STATUS_OK(cpu_lower_compile(text, size, &options, &p));
  unsetenv("CALX_CPU_REF");
  run_pairs(p, program);
  cx_text bytes = { 0 };
  CHECK_STATUS_OK(cpu_run_program_save(p, &bytes));
  cpu_run_program_free(p);
  CHECK_STATUS_OK(
      cpu_run_program_load(cx_text_str(&bytes), bytes.size, pool, &loaded));
  run_pairs(loaded, program);
  cpu_run_program_free(loaded);
  cx_text_free(&bytes);
}

static void programs_agree_with_jax(void **unused)
{
  (void)unused;
  char *data = NULL;
  size_t size = 0;
  CHECK_STATUS_OK(
      cx_file_read(CX_TEST_DIR "/lapack.txt", 1 << 22, &data, &size));
  const char *text = data;
  size_t program = 0;
  for (const char *end; (end = strstr(text, "--------\n")) != NULL;
       text = end + 9) {
    run_text(text, (size_t)(end - text), program, false);
    run_text(text, (size_t)(end - text), program, true);
    program++;
  }
  assert_int_equal(program, 68);
  cx_free(data);
}

// ---- calls that are wrong ----

static void refused(const char *call, calx_code code, const char *words)
{
  cx_text text = { 0 };
  cx_text_format(&text,
                 "func.func @main(%%a: tensor<3x3xf32>, %%b: tensor<3x2xf32>) "
                 "-> tensor<3x3xf32> {\n  %s\n"
                 "  return %%r#0 : tensor<3x3xf32>\n}",
                 call);
  const cpu_lower_compile_options options = { .threads = pool };
  cpu_run_program *p = NULL;
  calx_status *status =
      cpu_lower_compile(cx_text_str(&text), text.size, &options, &p);
  assert_non_null(status);
  if (strstr(calx_status_message(status), words) == NULL) {
    fail_msg("'%s' is not in: %s", words, calx_status_message(status));
  }
  assert_int_equal(calx_status_code(status), code);
  calx_status_free(status);
  cx_text_free(&text);
}

#define POTRF(config, layouts, types)                          \
  "%r:2 = \"stablehlo.custom_call\"(%a) <{call_target_name = " \
  "\"lapack_spotrf_ffi\", operand_layouts = [dense<" layouts   \
  "> : tensor<2xindex>], result_layouts = [dense<" layouts     \
  "> : tensor<2xindex>, dense<> : tensor<0xindex>]}> "         \
  "{mhlo.backend_config = {" config "}} : " types

static void wrong_calls_are_refused(void **unused)
{
  (void)unused;
#define TYPES "(tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<i32>)"
  refused(
      "%r:1 = stablehlo.custom_call @nobody(%a) : (tensor<3x3xf32>) -> "
      "tensor<3x3xf32>",
      CALX_UNIMPLEMENTED,
      "'nobody': no function is registered for it, and the CPU engine has "
      "lapack_?trsm_ffi");
  refused(
      "%r:2 = stablehlo.custom_call @\"lapack_?potrf_ffi\"(%a) : "
      "(tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<i32>)",
      CALX_UNIMPLEMENTED, "there is no target 'lapack_?potrf_ffi'");
  refused(POTRF("uplo = 77 : ui8", "[0, 1]", TYPES), CALX_INVALID_ARGUMENT,
          "'uplo' must be the code of one of the letters LU, got 77");
  refused(POTRF("", "[0, 1]", TYPES), CALX_INVALID_ARGUMENT,
          "must have the integer 'uplo'");
  refused(POTRF("uplo = 76 : ui8", "[1, 0]", TYPES), CALX_INVALID_ARGUMENT,
          "operand 0 must have a column-major layout");
  refused(POTRF("uplo = 76 : ui8", "[0, 1]",
                "(tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<i64>)"),
          CALX_INVALID_ARGUMENT,
          "result 1 of type i64[] does not have the target's shape");
  refused(POTRF("uplo = 76 : ui8", "[0, 1]",
                "(tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3xi32>)"),
          CALX_INVALID_ARGUMENT, "result 1");
  refused(
      "%r:1 = stablehlo.custom_call @Qr(%a) : (tensor<3x3xf32>) -> "
      "tensor<3x3xf32>",
      CALX_INVALID_ARGUMENT, "has 2 results, found 1");
  refused(
      "%c = stablehlo.slice %b [0:2, 0:2] : (tensor<3x2xf32>) -> "
      "tensor<2x2xf32>\n"
      "%t = stablehlo.constant dense<0.0> : tensor<4xf32>\n"
      "%r:1 = stablehlo.custom_call "
      "@ProductOfElementaryHouseholderReflectors(%a, %t) : "
      "(tensor<3x3xf32>, tensor<4xf32>) -> tensor<3x3xf32>",
      CALX_INVALID_ARGUMENT, "contradict each other");
}

// ---- a function of the same name ----

static XLA_FFI_Error *all_seven(XLA_FFI_CallFrame *frame)
{
  const XLA_FFI_Extension_Base *e = frame->extension_start;
  if (e != NULL && e->type == XLA_FFI_Extension_Metadata) {
    XLA_FFI_Metadata *m = ((const XLA_FFI_Metadata_Extension *)e)->metadata;
    m->api_version.major_version = XLA_FFI_API_MAJOR;
    m->api_version.minor_version = XLA_FFI_API_MINOR;
    return NULL;
  }
  const XLA_FFI_Buffer *factor = frame->rets.rets[0];
  const XLA_FFI_Buffer *info = frame->rets.rets[1];
  for (size_t i = 0; i < 9; i++) ((float *)factor->data)[i] = 7;
  *(int32_t *)info->data = 0;
  return NULL;
}

// The program's first number, of an identity matrix.
static float first_of_factor(void)
{
  static const char text[] =
      "func.func @main() -> tensor<3x3xf32> {\n"
      "  %i = stablehlo.iota dim = 0 : tensor<3x3xi32>\n"
      "  %j = stablehlo.iota dim = 1 : tensor<3x3xi32>\n"
      "  %e = stablehlo.compare EQ, %i, %j : (tensor<3x3xi32>, "
      "tensor<3x3xi32>) -> tensor<3x3xi1>\n"
      "  %a = stablehlo.convert %e : (tensor<3x3xi1>) -> tensor<3x3xf32>\n"
      "  " POTRF("uplo = 76 : ui8", "[0, 1]", TYPES) "\n"
      "  return %r#0 : tensor<3x3xf32>\n}";
  const cpu_lower_compile_options options = { .threads = pool };
  cpu_run_program *p = NULL;
  CHECK_STATUS_OK(cpu_lower_compile(text, sizeof text - 1, &options, &p));
  cpu_run_context *context = NULL;
  CHECK_STATUS_OK(cpu_run_context_new(pool, &context));
  _Alignas(64) float factor[16] = { 0 };
  void *results[] = { factor };
  CHECK_STATUS_OK(cpu_run_program_run(p, context, NULL, NULL, results));
  cpu_run_context_free(context);
  cpu_run_program_free(p);
  return factor[0];
}

// Last: the function stays for this process.
static void a_registered_function_goes_first(void **unused)
{
  (void)unused;
  assert_true(first_of_factor() == 1);
  CHECK_STATUS_OK(cpu_ref_handler_add(
      (cx_hlo_str){ "lapack_spotrf_ffi", strlen("lapack_spotrf_ffi") },
      all_seven));
  assert_true(first_of_factor() == 7);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(programs_agree_with_jax),
    cmocka_unit_test(wrong_calls_are_refused),
    cmocka_unit_test(a_registered_function_goes_first),
  };
  CHECK_STATUS_OK(cpu_threads_new(3, &pool));
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  cpu_threads_free(pool);
  return failed;
}
