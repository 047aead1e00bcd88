// The cases of tests/engine/opt/*.mlir.
#include "cases.h"

#include <math.h>

#include "hlo/number.h"
#include "opt/opt.h"
#include "opt/passes.h"
#include "ref/ref.h"

// ---- equal results ----

#define MOST 16

static size_t bytes_of(const cx_hlo_type *t)
{
  return (size_t)cx_hlo_type_elements(t) * cx_hlo_elem_bytes(t->elem);
}

// Small numbers of both signs, with zeros and equal ones.
static void fill(cpu_ref_tensor *t, unsigned *seed)
{
  const cx_hlo_elem e = t->type.elem;
  const size_t one = cx_hlo_elem_bytes(e);
  const bool whole = !cx_hlo_elem_is_float(e) && !cx_hlo_elem_is_complex(e);
  const int64_t n = cx_hlo_type_elements(&t->type);
  for (int64_t i = 0; i < n; i++) {
    *seed = *seed * 1664525u + 1013904223u;
    const int v = (int)(*seed >> 28);
    cx_hlo_store_number(e, (char *)t->data + (size_t)i * one,
                        whole ? v % 5 : (v - 8) * 0.375);
  }
}

static void make(const cx_hlo_any *types, size_t n, cpu_ref_tensor *out)
{
  assert_true(n <= MOST);
  for (size_t i = 0; i < n; i++) {
    out[i].type = types[i].tensor;
    out[i].data = cx_calloc(1, bytes_of(&out[i].type) + 1);
    assert_non_null(out[i].data);
  }
}

static void drop(const cpu_ref_tensor *t, size_t n)
{
  for (size_t i = 0; i < n; i++) cx_free(t[i].data);
}

static double distance(cx_hlo_elem e, const char *p, const char *q)
{
  const size_t size = cx_hlo_elem_bytes(e);
  if (memcmp(p, q, size) == 0) return 0;
  if (cx_hlo_elem_is_complex(e)) {
    const cx_hlo_elem part = cx_hlo_elem_part(e);
    return fmax(distance(part, p, q),
                distance(part, p + size / 2, q + size / 2));
  }
  if (!cx_hlo_elem_is_float(e)) return HUGE_VAL;
  const double x = cx_hlo_load_real(e, p);
  const double y = cx_hlo_load_real(e, q);
  if (isnan(x) && isnan(y)) return 0;
  // Zeros of different sign differ.
  if (x == y) return HUGE_VAL;
  const double d = fabs(x - y) / (fabs(x) + fabs(y) + 1e-3);
  return isnan(d) ? HUGE_VAL : d;
}

static bool same_results(const cpu_ref_tensor *x, const cpu_ref_tensor *y,
                         size_t n)
{
  for (size_t i = 0; i < n; i++) {
    const size_t one = cx_hlo_elem_bytes(x[i].type.elem);
    const size_t bytes = bytes_of(&x[i].type);
    for (size_t at = 0; at < bytes; at += one) {
      const double d = distance(x[i].type.elem, (char *)x[i].data + at,
                                (char *)y[i].data + at);
      if (d <= 1e-5) continue;
      print_error("result %zu differs at element %zu by %g\n", i, at / one, d);
      return false;
    }
  }
  return true;
}

bool run_equal(const cx_hlo_module *a, const cx_hlo_module *b)
{
  const cx_hlo_func *f = cx_hlo_entry(a);
  const cx_hlo_func *g = cx_hlo_entry(b);
  cpu_ref_tensor args[MOST];
  cpu_ref_tensor x[MOST];
  cpu_ref_tensor y[MOST];
  unsigned seed = 1;
  make(f->params, f->n_params, args);
  for (size_t i = 0; i < f->n_params; i++) fill(&args[i], &seed);
  make(f->results, f->n_results, x);
  make(g->results, g->n_results, y);
  const cpu_ref_context context = { 0 };
  CHECK_OK(cpu_ref_run(a, f, args, x, &context));
  CHECK_OK(cpu_ref_run(b, g, args, y, &context));
  const bool equal = same_results(x, y, f->n_results);
  drop(args, f->n_params);
  drop(x, f->n_results);
  drop(y, g->n_results);
  return equal;
}

// ---- one case ----

typedef struct named_pass {
  const char *name;
  cpu_opt_pass_fn *run;
} named_pass;

static calx_status *run_all(cx_hlo_module *m, bool *changed)
{
  const cpu_opt_options options = { .check = true };
  *changed = true;
  return cpu_opt_run(m, &options);
}

static const named_pass passes[] = {
  { "async", cpu_opt_async },
  { "inline", cpu_opt_inline },
  { "chlo", cpu_opt_chlo },
  { "decompose", cpu_opt_decompose },
  { "algebra", cpu_opt_algebra },
  { "shapes", cpu_opt_shapes },
  { "fold", cpu_opt_fold },
  { "move", cpu_opt_move },
  { "products", cpu_opt_products },
  { "loop_variables", cpu_opt_loop_variables },
  { "loop_rows", cpu_opt_loop_rows },
  { "loops", cpu_opt_loops },
  { "dce", cpu_opt_dce },
  { "cse", cpu_opt_cse },
  { "relu", cpu_opt_relu },
  { "short_rows", cpu_opt_short_rows },
  { "all", run_all },
};

static cpu_opt_pass_fn *find_pass(const char *name, size_t n)
{
  for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
    if (strlen(passes[i].name) == n && memcmp(passes[i].name, name, n) == 0) {
      return passes[i].run;
    }
  }
  print_error("no pass '%.*s'\n", (int)n, name);
  fail();
  return NULL;
}

static cx_hlo_module *read_program(const char *text, size_t n)
{
  cx_hlo_module *m = NULL;
  CHECK_OK(cx_hlo_parse(text, n, "case", &m));
  CHECK_OK(cx_hlo_verify(m));
  return m;
}

static cx_text text_of(const cx_hlo_module *m)
{
  cx_text text = { 0 };
  const cx_hlo_print_options options = { .no_locations = true };
  cx_hlo_print_with(m, &options, &text);
  return text;
}

// Title, and the two programs; `after` NULL: the same.
static void run_case(const char *title, size_t n_title, const char *before,
                     size_t n_before, const char *after, size_t n_after)
{
  const char *colon = memchr(title, ':', n_title);
  assert_non_null(colon);
  cpu_opt_pass_fn *pass = find_pass(title, (size_t)(colon - title));
  cx_hlo_module *original = read_program(before, n_before);
  cx_hlo_module *m = read_program(before, n_before);
  cx_hlo_module *want = after == NULL ? NULL : read_program(after, n_after);
  bool changed = false;
  bool more = false;
  CHECK_OK(pass(m, &changed));
  CHECK_OK(cx_hlo_verify(m));
  if (pass != cpu_opt_cse) CHECK_OK(cpu_opt_dce(m, &more));
  CHECK_OK(cx_hlo_verify(m));
  cx_text x = text_of(m);
  cx_text y = text_of(want == NULL ? original : want);
  bool ok = strcmp(cx_text_str(&x), cx_text_str(&y)) == 0;
  if (!ok) {
    print_error("%.*s\n---- got\n%s\n---- wanted\n%s\n", (int)n_title, title,
                cx_text_str(&x), cx_text_str(&y));
  } else if (changed != (want != NULL)) {
    print_error("%.*s: changed is %d\n", (int)n_title, title, changed);
    ok = false;
  } else if (!run_equal(original, m)) {
    print_error("%.*s: other results\n", (int)n_title, title);
    ok = false;
  }
  cx_text_free(&x);
  cx_text_free(&y);
  cx_hlo_module_free(original);
  cx_hlo_module_free(m);
  cx_hlo_module_free(want);
  if (!ok) fail();
}

// ---- files ----

size_t run_cases(const char *file)
{
  static const char head[] = "// ==== ";
  static const char arrow[] = "// ->";
  char path[512];
  snprintf(path, sizeof path, "%s/%s", CX_TEST_DIR, file);
  FILE *in = fopen(path, "rb");
  assert_non_null(in);
  static char text[1 << 18];
  const size_t size = fread(text, 1, sizeof text - 1, in);
  fclose(in);
  text[size] = 0;
  size_t n = 0;
  const char *at = strstr(text, head);
  while (at != NULL) {
    const char *title = at + sizeof head - 1;
    const char *before = strchr(title, '\n');
    const char *next = strstr(before, head);
    const char *end = next == NULL ? text + size : next;
    const char *middle = strstr(before, arrow);
    assert_true(middle != NULL && middle < end);
    const char *after = strchr(middle, '\n');
    const bool same = strncmp(middle + sizeof arrow - 1, " same", 5) == 0;
    run_case(title, (size_t)(before - title), before, (size_t)(middle - before),
             same ? NULL : after, (size_t)(end - after));
    n++;
    at = next;
  }
  return n;
}
