// oracle_case: one case is run, and its results and gradients are compared in
// the measure
//   |got - want| / (|want| + 1e-6 + 1e-3 max|want|)
// with at most max(1e-5, 8 times the error that the case lists). Integers,
// bool, shapes, types, NaN and infinity must be equal.
#include "oracle.h"

#include "support/safetensors.h"
#include "support/support.h"

static bool is_own_engine(void)
{
  const char *plugin = getenv("CALX_PLUGIN");
  return plugin == NULL || strcmp(plugin, "calx") == 0;
}

static double allowed(const miss *k, const char *tensor, double torch_error)
{
  double bound = fmax(1e-5, 8 * torch_error);
  for (; k->tensor != NULL; k++) {
    if (k->xla && is_own_engine()) continue;
    if (strcmp(k->tensor, tensor) == 0) bound = fmax(bound, k->bound);
  }
  return bound;
}

// ---- comparing --------------------------------------------------------------

static bool same_kind(double a, double b)
{
  return isnan(a) ? isnan(b) : isinf(a) ? a == b : isfinite(b);
}

// The measure of complex numbers, by their absolute values.
static double complex_distance(const safetensors_entry *want, calx_tensor *t)
{
  const calx_dtype part = cx_dtype_part(want->dtype);
  const size_t size = calx_dtype_size(part);
  size_t n;
  double *got = support_read(t, &n), most = 0, worst = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < n; i += 2) {
      const double re = cx_load_double(part, want->data + i * size);
      const double im = cx_load_double(part, want->data + (i + 1) * size);
      const double w = hypot(re, im), d = hypot(got[i] - re, got[i + 1] - im);
      if (isfinite(w) && pass == 0) most = fmax(most, w);
      if (!same_kind(got[i], re) || !same_kind(got[i + 1], im)) {
        worst = (double)INFINITY;
      }
      if (!isfinite(d) || pass == 0) continue;
      worst = fmax(worst, d / (w + 1e-6 + 1e-3 * most));
    }
  }
  test_free(got);
  return worst;
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
  if (cx_dtype_is_complex(want.dtype)) return complex_distance(&want, t);
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

static bool close_enough(const miss *k, const char *id, const char *what,
                         double d, double error)
{
  double bound = allowed(k, what, error);
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

// sum_i sum(out_i * upstream_i), of complex numbers with their conjugates the
// real part: PyTorch's gradient of such an output is then its upstream
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
    calx_tensor *part = calx_real(calx_sum(calx_mul(c->out[i], calx_conj(u))));
    total = total == NULL ? part : calx_add(total, part);
  }
  return total;
}

static bool check_grads(call *c, json_t *k, const safetensors *f,
                        const char *id, const miss *misses)
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
      good &= close_enough(misses, id, json_string_value(name), d,
                           listed(errors, nth++));
    }
  }
  return good;
}

static bool check_results(call *c, json_t *k, const safetensors *f,
                          const char *id, const miss *misses)
{
  json_t *outputs = json_object_get(k, "outputs"), *name;
  json_t *errors = json_object_get(k, "torch_f32_error");
  size_t i;
  bool good = true;
  json_array_foreach(outputs, i, name)
  {
    if (!json_is_string(name)) continue;
    const char *what = json_string_value(name);
    double d = i < c->n_out ? distance(f, what, c->out[i]) : (double)INFINITY;
    good &= close_enough(misses, id, what, d, listed(errors, i));
  }
  return good && check_grads(c, k, f, id, misses);
}

bool oracle_case(json_t *k, const safetensors *f, const miss *misses, tally *t)
{
  const char *id = json_string_value(json_object_get(k, "id"));
  call c = { .op = json_string_value(json_object_get(k, "op")),
             .attrs = json_object_get(k, "attrs") };
  bool refused = json_is_true(json_object_get(k, "raises"));
  calx_scope *s = calx_scope_begin();
  load(&c, k, f);
  bool good = true, there = oracle_call(&c);
  // What failed has no results.
  calx_status *status = calx_scope_take_error();
  if (there && !refused && status == NULL) {
    good = check_results(&c, k, f, id, misses);
  }
  calx_status *late = calx_scope_end(s);
  if (status == NULL) {
    status = late;
  } else {
    calx_status_free(late);
  }
  if (status != NULL && !refused) {
    print_message("  %s %s: %s\n", id, c.op, calx_status_message(status));
    good = false;
  } else if (status == NULL && refused && there) {
    print_message("  %s: PyTorch says: %s\n", id,
                  json_string_value(json_object_get(k, "said")));
    good = false;
  }
  calx_status_free(status);
  *(there ? &t->ran : &t->skipped) += 1;
  t->passed += good;
  if (!good) print_message("FAILED %s %s\n", id, c.op);
  return good;
}
