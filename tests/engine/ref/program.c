#include "program.h"

#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/text.h"
#include "hlo/number.h"
#include "hlo/parse.h"
#include "hlo/verify.h"

static void must(calx_status *status, const char *text)
{
  if (status == NULL) return;
  print_error("%s\nin %s\n", calx_status_message(status), text);
  calx_status_free(status);
  fail();
}

program program_open(const char *text, bool verified)
{
  program p = { 0 };
  must(cx_hlo_parse(text, strlen(text), "test", &p.module), text);
  if (verified) must(cx_hlo_verify(p.module), text);
  p.main = cx_hlo_entry(p.module);
  assert_non_null(p.main);
  return p;
}

void program_close(program *p)
{
  cx_hlo_module_free(p->module);
  p->module = NULL;
}

calx_status *program_run(const program *p, const void *const *in,
                         void *const *out, const cpu_ref_context *context)
{
  enum { MOST = 16 };
  cpu_ref_tensor args[MOST];
  cpu_ref_tensor results[MOST];
  assert_true(p->main->n_params <= MOST && p->main->n_results <= MOST);
  for (size_t i = 0; i < p->main->n_params; i++) {
    args[i] =
        (cpu_ref_tensor){ p->main->params[i].tensor, (void *)(uintptr_t)in[i] };
  }
  for (size_t i = 0; i < p->main->n_results; i++) {
    results[i] = (cpu_ref_tensor){ p->main->results[i].tensor, out[i] };
  }
  return cpu_ref_run(p->module, p->main, args, results, context);
}

// ---- comparing ----

static size_t bytes_of(const cx_hlo_type *t)
{
  return (size_t)cx_hlo_type_elements(t) * cx_hlo_elem_bytes(t->elem);
}

static bool same_real(cx_hlo_elem e, const void *a, const void *b,
                      double tolerance)
{
  const double x = cx_hlo_load_real(e, a);
  const double y = cx_hlo_load_real(e, b);
  if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
  if (memcmp(a, b, cx_hlo_elem_bytes(e)) == 0) return true;
  return fabs(x - y) <= tolerance * fmax(fabs(x), fabs(y));
}

static bool same(cx_hlo_elem e, const char *a, const char *b, double tolerance)
{
  const cx_hlo_elem part = cx_hlo_elem_part(e);
  const size_t bytes = cx_hlo_elem_bytes(part);
  if (!cx_hlo_elem_is_float(part)) return memcmp(a, b, bytes) == 0;
  return same_real(part, a, b, tolerance) &&
         (part == e || same_real(part, a + bytes, b + bytes, tolerance));
}

static void compare(const char *text, size_t pair, const cx_hlo_type *t,
                    const char *got, const char *want, double tolerance)
{
  const size_t bytes = cx_hlo_elem_bytes(t->elem);
  for (int64_t i = 0; i < cx_hlo_type_elements(t); i++) {
    const char *a = got + (size_t)i * bytes;
    const char *b = want + (size_t)i * bytes;
    if (same(t->elem, a, b, tolerance)) continue;
    cx_text say = { 0 };
    cx_hlo_print_element(&say, t->elem, a);
    cx_text_append(&say, ", not ");
    cx_hlo_print_element(&say, t->elem, b);
    print_error("pair %zu, element %lld of %s is %s\nin %s\n", pair,
                (long long)i, cx_hlo_shape(t).s, cx_text_str(&say), text);
    cx_text_free(&say);
    fail();
  }
}

static void run_pairs(const char *text, bool verified, double tolerance)
{
  const long before = cx_alloc_live();
  program p = program_open(text, verified);
  const size_t n = p.main->n_results;
  void *out[16] = { 0 };
  assert_true(n % 2 == 0 && n != 0 && n <= 16);
  for (size_t i = 0; i < n; i++) {
    out[i] = test_malloc(bytes_of(&p.main->results[i].tensor) + 1);
  }
  must(program_run(&p, NULL, out, NULL), text);
  for (size_t i = 0; i < n; i += 2) {
    const cx_hlo_type *t = &p.main->results[i].tensor;
    assert_true(cx_hlo_type_equal(t, &p.main->results[i + 1].tensor));
    compare(text, i / 2, t, out[i], out[i + 1], tolerance);
  }
  for (size_t i = 0; i < n; i++) test_free(out[i]);
  program_close(&p);
  assert_int_equal(cx_alloc_live(), before);
}

void agrees(const char *text)
{
  run_pairs(text, true, 0);
}

void agrees_within(const char *text, double tolerance)
{
  run_pairs(text, true, tolerance);
}

void agrees_unverified(const char *text)
{
  run_pairs(text, false, 0);
}

void gives(const char *body, const char *type, const char *elements)
{
  cx_text text = { 0 };
  cx_text_format(&text,
                 "func.func @main() -> (%s, %s) {\n%s\n"
                 "  %%want = stablehlo.constant dense<%s> : %s\n"
                 "  return %%r, %%want : %s, %s\n}\n",
                 type, type, body, elements, type, type, type);
  assert_false(cx_text_failed(&text));
  agrees(cx_text_str(&text));
  cx_text_free(&text);
}

void fails_with(const char *text, const cpu_ref_context *context,
                calx_code code, const char *words)
{
  const long before = cx_alloc_live();
  program p = program_open(text, true);
  char out[16][4096];
  void *to[16];
  for (size_t i = 0; i < 16; i++) to[i] = out[i];
  calx_status *status = program_run(&p, NULL, to, context);
  if (calx_status_code(status) != code ||
      strstr(calx_status_message(status), words) == NULL) {
    print_error("got: %s\n", calx_status_message(status));
    fail();
  }
  calx_status_free(status);
  program_close(&p);
  assert_int_equal(cx_alloc_live(), before);
}

void fails(const char *text, calx_code code, const char *words)
{
  fails_with(text, NULL, code, words);
}
