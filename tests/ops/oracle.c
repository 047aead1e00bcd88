// Every recorded case of an op that calx has: values and gradients, at the
// tolerance that the recording gives: in the measure
//   |got - want| / (|want| + 1e-6 + 1e-3 max|want|)
// at most max(1e-5, 8 times PyTorch's own f32 error). Integers, bool, shapes,
// types, NaN and infinity must be equal.
#include "oracle.h"

#include "support/safetensors.h"
#include "support/support.h"

typedef struct tally {
  int ran, passed, skipped;
} tally;

// What is missed: the tensor, and a bound on the error measured.
typedef struct known {
  const char *tensor;
  double bound;
  bool xla;  // by XLA's plugins alone
} known;

static const known misses[] = {
  // The gradient of a grouped convolution's input; allowed 3.3e-5, measured
  // 5.9e-5 on both builds of XLA and on calx's engine alike. The result and the
  // other gradients are within what is allowed.
  { "c0430/d0", 1e-4, false },
  // gelu far from 0 is a product with erfc, of which XLA's loses digits;
  // allowed 5e-5, measured 5.31e-5, with calx's engine less than allowed.
  { "c0040/out0", 6e-5, true },
};

// Of the recording: the cases that ran when this was written. Fewer means that
// an op was lost; a new elementwise op brings its cases by itself.
enum { CASES_RUN_AT_LEAST = 584 };

static bool is_own_engine(void)
{
  const char *plugin = getenv("CALX_PLUGIN");
  return plugin == NULL || strcmp(plugin, "calx") == 0;
}

static double allowed(const char *tensor, double torch_error)
{
  double bound = fmax(1e-5, 8 * torch_error);
  for (size_t i = 0; i < sizeof misses / sizeof *misses; i++) {
    if (misses[i].xla && is_own_engine()) continue;
    if (strcmp(misses[i].tensor, tensor) == 0) {
      bound = fmax(bound, misses[i].bound);
    }
  }
  return bound;
}

// ---- comparing --------------------------------------------------------------

static bool same_kind(double a, double b)
{
  return isnan(a) ? isnan(b) : isinf(a) ? a == b : isfinite(b);
}

// The measure; infinity where kinds or shapes differ, with a reason printed.
static double distance(const safetensors *f, const char *name, calx_tensor *t)
{
  safetensors_entry want;
  if (!safetensors_find(f, name, &want)) fail_msg("no tensor %s", name);
  calx_dims dims = calx_tensor_shape(t);
  bool fits = want.rank == dims.count && want.dtype == calx_tensor_dtype(t);
  for (size_t i = 0; fits && i < want.rank; i++) {
    fits = want.dims[i] == dims.values[i];
  }
  if (!fits) {
    print_message("  %s: %s rank %zu, wanted %s rank %zu\n", name,
                  calx_dtype_name(calx_tensor_dtype(t)), dims.count,
                  calx_dtype_name(want.dtype), want.rank);
    return INFINITY;
  }
  size_t n, size = calx_dtype_size(want.dtype);
  double *got = support_read(t, &n), most = 0, worst = 0;
  for (size_t i = 0; i < n; i++) {
    double w = cx_load_double(want.dtype, want.data + i * size);
    if (isfinite(w)) most = fmax(most, fabs(w));
  }
  for (size_t i = 0; i < n; i++) {
    double w = cx_load_double(want.dtype, want.data + i * size);
    if (!same_kind(got[i], w)) worst = INFINITY;
    if (!isfinite(w) || !isfinite(got[i])) continue;
    double d = fabs(got[i] - w);
    if (!cx_dtype_is_float(want.dtype) && d != 0) worst = INFINITY;
    worst = fmax(worst, d / (fabs(w) + 1e-6 + 1e-3 * most));
  }
  test_free(got);
  return worst;
}

static bool close_enough(const char *id, const char *what, double d,
                         double error)
{
  double bound = allowed(what, error);
  if (d <= bound) return true;
  print_message("  %s %s: %.3g, allowed %.3g\n", id, what, d, bound);
  return false;
}

// ---- one case ---------------------------------------------------------------

static double listed(json_t *errors, size_t i)
{
  json_t *v = json_array_get(errors, i);
  return json_is_number(v) ? json_number_value(v) : 0;
}

static void load(call *c, json_t *k, const safetensors *f)
{
  json_t *inputs = json_object_get(k, "inputs"), *name;
  size_t i;
  json_array_foreach(inputs, i, name)
  {
    c->n_in = i + 1;
    c->in[i] = NULL;
    if (!json_is_string(name)) continue;
    c->in[i] =
        safetensors_tensor(f, json_string_value(name), CALX_DTYPE_DEFAULT);
  }
  json_t *grads = json_object_get(k, "input_grads");
  json_array_foreach(grads, i, name)
  {
    if (json_is_string(name)) calx_requires_grad(c->in[i], true);
  }
}

// sum_i sum(out_i * upstream_i)
static calx_tensor *objective(call *c, json_t *k, const safetensors *f)
{
  json_t *upstream = json_object_get(k, "upstream"), *name;
  size_t i;
  calx_tensor *total = NULL;
  json_array_foreach(upstream, i, name)
  {
    if (!json_is_string(name)) continue;
    calx_tensor *u =
        safetensors_tensor(f, json_string_value(name), CALX_DTYPE_DEFAULT);
    calx_tensor *part = calx_sum(calx_mul(c->out[i], u));
    total = total == NULL ? part : calx_add(total, part);
  }
  return total;
}

static bool check_grads(call *c, json_t *k, const safetensors *f,
                        const char *id)
{
  json_t *grads = json_object_get(k, "input_grads"), *name;
  json_t *errors = json_object_get(k, "torch_f32_grad_error");
  size_t i, nth = 0;
  bool good = true;
  if (grads == NULL) return true;
  calx_backward(objective(c, k, f));
  json_array_foreach(grads, i, name)
  {
    if (!json_is_string(name)) continue;
    calx_tensor *g = calx_grad(c->in[i]);
    if (g == NULL) {
      print_message("  %s: no gradient of input %zu\n", id, i);
      good = false;
    } else {
      double d = distance(f, json_string_value(name), g);
      good &=
          close_enough(id, json_string_value(name), d, listed(errors, nth++));
    }
  }
  return good;
}

static bool run_case(json_t *k, const safetensors *f, tally *t)
{
  const char *id = json_string_value(json_object_get(k, "id"));
  call c = { .op = json_string_value(json_object_get(k, "op")),
             .attrs = json_object_get(k, "attrs") };
  calx_scope *s = calx_scope_begin();
  load(&c, k, f);
  bool good = true;
  if (!oracle_call(&c)) {
    t->skipped++;
  } else {
    t->ran++;
    json_t *outputs = json_object_get(k, "outputs"), *name;
    json_t *errors = json_object_get(k, "torch_f32_error");
    size_t i;
    json_array_foreach(outputs, i, name)
    {
      if (!json_is_string(name)) continue;
      double d = distance(f, json_string_value(name), c.out[i]);
      good &= close_enough(id, json_string_value(name), d, listed(errors, i));
    }
    good = good && check_grads(&c, k, f, id);
  }
  calx_status *status = calx_scope_end(s);
  if (status != NULL) {
    print_message("  %s %s: %s\n", id, c.op, calx_status_message(status));
    calx_status_free(status);
    good = false;
  }
  t->passed += good;
  if (!good) print_message("FAILED %s %s\n", id, c.op);
  return good;
}

static void test_cases(void **state)
{
  (void)state;
  json_t *all = safetensors_json("oracle/ops.json"), *k;
  safetensors *f = safetensors_open("oracle/ops.safetensors");
  tally t = { 0, 0, 0 };
  size_t i;
  const char *only = getenv("CALX_TEST_CASE");
  json_array_foreach(json_object_get(all, "cases"), i, k)
  {
    const char *id = json_string_value(json_object_get(k, "id"));
    if (only == NULL || strcmp(only, id) == 0) run_case(k, f, &t);
  }
  safetensors_close(f);
  json_decref(all);
  print_message(
      "oracle: %d cases ran, %d of them passed, %d are of ops that "
      "are not there yet\n",
      t.ran, t.passed - t.skipped, t.skipped);
  assert_int_equal(t.passed, t.ran + t.skipped);
  if (only != NULL) return;
  assert_true(t.ran >= CASES_RUN_AT_LEAST);
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_cases) };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
