// autograd/gradcheck: gradients against central differences.
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/options.h"
#include "calx/function.h"
#include "ops/ops.h"

enum { MOST_OUTPUTS = 64 };

typedef struct check {
  const char *call;
  calx_tensors_fn *fn;
  void *user;
  calx_tensor *const *inputs;
  size_t n_inputs, n_outputs;
  double eps, atol, rtol;
} check;

// ---- host copies ------------------------------------------------------------

typedef struct values {
  double *at;
  size_t n;
} values;

static calx_status *read(calx_tensor *t, values *out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(t);
  size_t size = calx_dtype_size(s->dtype);
  *out = (values){ .n = (size_t)cx_graph_shape_numel(s) };
  unsigned char *raw = cx_alloc(out->n * size + 1);
  out->at = cx_alloc(out->n * sizeof *out->at + 1);
  calx_status *status = raw == NULL || out->at == NULL
                            ? cx_out_of_memory()
                            : calx_tensor_read(t, raw, out->n * size);
  for (size_t i = 0; status == NULL && i < out->n; i++) {
    out->at[i] = cx_load_double(s->dtype, raw + i * size);
  }
  cx_free(raw);
  return status;
}

// A leaf with the values of t, one of them moved.
static calx_tensor *moved(calx_tensor *t, const values *v, size_t at, double by)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(t);
  double *copy = cx_alloc(v->n * sizeof *copy + 1);
  if (copy == NULL) return cx_lazy_tensor_poison(cx_out_of_memory());
  for (size_t i = 0; i < v->n; i++) copy[i] = v->at[i] + (i == at ? by : 0);
  calx_tensor *x =
      calx_tensor_from(copy, CALX_F64, calx_dims_of(s->dims, s->rank));
  cx_free(copy);
  x = calx_to_dtype(calx_to(x, calx_tensor_device(t)), s->dtype);
  x = cx_lazy_tensor_detached(x);
  calx_requires_grad(x, true);
  return x;
}

// ---- one output -------------------------------------------------------------

static calx_status *evaluate(const check *c, calx_tensor *const *inputs,
                             calx_tensor **outs)
{
  for (size_t k = 0; k < c->n_outputs; k++) outs[k] = NULL;
  c->fn(c->user, inputs, outs);
  if (calx_scope_error() != NULL) return cx_status_copy(calx_scope_error());
  for (size_t k = 0; k < c->n_outputs; k++) {
    if (outs[k] == NULL) {
      return cx_invalid("%s: the function gave no output %zu", c->call, k);
    }
    CALX_TRY(cx_lazy_tensor_usable(outs[k], c->call, (uint32_t)k));
  }
  return NULL;
}

// Output k with one element of input i moved, on the host.
static calx_status *at_moved(const check *c, size_t i, const values *x,
                             size_t element, double by, size_t k, values *out)
{
  calx_scope *scope = calx_scope_begin();
  calx_tensor *outs[MOST_OUTPUTS];
  calx_tensor **inputs = cx_calloc(c->n_inputs, sizeof(calx_tensor *));
  calx_status *status = inputs == NULL ? cx_out_of_memory() : NULL;
  for (size_t j = 0; status == NULL && j < c->n_inputs; j++) {
    inputs[j] = j == i ? moved(c->inputs[j], x, element, by) : c->inputs[j];
  }
  if (status == NULL) status = evaluate(c, inputs, outs);
  if (status == NULL) status = read(outs[k], out);
  cx_free(inputs);
  calx_status *late = calx_scope_end(scope);
  if (status == NULL) return late;
  calx_status_free(late);
  return status;
}

// d(sum of output k times w)/d(input i), computed and by differences. w differs
// from element to element, so that no entry hides behind another: each row of
// the Jacobian is looked at on its own.
static calx_status *row(const check *c, calx_tensor *out, size_t element,
                        calx_tensor *x, values *grad)
{
  int64_t n = cx_graph_shape_numel(cx_lazy_tensor_shape(out));
  calx_tensor *y =
      calx_select(calx_reshape(out, calx_dims_of(&n, 1)), 0, (int64_t)element);
  calx_tensor *g = NULL;
  calx_grad_of_options o = { .size = sizeof o,
                             .retain_graph = true,
                             .materialize_grads = true };
  if (cx_lazy_tensor_requires_grad(y)) {
    calx_grad_of_with(y, &x, 1, &g, &o);
  } else {
    g = cx_ops_zeros_like(x);
  }
  (void)c;
  if (g == NULL) return cx_status_copy(calx_scope_error());
  return read(g, grad);
}

static calx_status *compare(const check *c, size_t i, size_t k, size_t from,
                            size_t to, double is, double wanted)
{
  if (fabs(is - wanted) <= c->atol + c->rtol * fabs(wanted) ||
      (isnan(is) && isnan(wanted))) {
    return NULL;
  }
  return cx_error(CALX_FAILED_PRECONDITION,
                  "%s: Jacobian mismatch for output %zu with respect to input "
                  "%zu: d(output[%zu])/d(input[%zu]) is %.9g by the backward "
                  "and %.9g by differences",
                  c->call, k, i, to, from, is, wanted);
}

// Input i against output k: the Jacobian's columns by differences, its rows by
// backward passes.
static calx_status *check_pair(const check *c, size_t i, size_t k,
                               calx_tensor *out, const values *x)
{
  size_t n_out = (size_t)cx_graph_shape_numel(cx_lazy_tensor_shape(out));
  values *rows = cx_calloc(n_out + 1, sizeof *rows);
  calx_status *status = rows == NULL ? cx_out_of_memory() : NULL;
  for (size_t r = 0; status == NULL && r < n_out; r++) {
    status = row(c, out, r, c->inputs[i], &rows[r]);
  }
  for (size_t e = 0; status == NULL && e < x->n; e++) {
    values low = { 0 }, high = { 0 };
    status = at_moved(c, i, x, e, -c->eps, k, &low);
    if (status == NULL) status = at_moved(c, i, x, e, c->eps, k, &high);
    for (size_t r = 0; status == NULL && r < n_out; r++) {
      double d = (high.at[r] - low.at[r]) / (2 * c->eps);
      status = compare(c, i, k, e, r, rows[r].at[e], d);
    }
    cx_free(low.at);
    cx_free(high.at);
  }
  for (size_t r = 0; rows != NULL && r < n_out; r++) cx_free(rows[r].at);
  cx_free(rows);
  return status;
}

static calx_status *check_inside(const check *c)
{
  calx_tensor *outs[MOST_OUTPUTS];
  bool any = false;
  CALX_TRY(evaluate(c, c->inputs, outs));
  for (size_t i = 0; i < c->n_inputs; i++) {
    if (!cx_lazy_tensor_requires_grad(c->inputs[i])) continue;
    any = true;
    values x = { 0 };
    calx_status *status = read(c->inputs[i], &x);
    for (size_t k = 0; status == NULL && k < c->n_outputs; k++) {
      const calx_dtype dtype = cx_lazy_tensor_shape(outs[k])->dtype;
      if (cx_dtype_is_complex(dtype)) {
        status = cx_invalid(
            "%s: output %zu is complex, real ones are wanted: return its "
            "calx_real and calx_imag",
            c->call, k);
      }
      if (!cx_dtype_is_float(dtype)) continue;
      status = check_pair(c, i, k, outs[k], &x);
    }
    cx_free(x.at);
    if (status != NULL) return status;
  }
  if (any) return NULL;
  return cx_invalid("%s: no input requires a gradient", c->call);
}

static calx_status *run(const check *c)
{
  calx_scope *scope = calx_scope_begin();
  cx_lazy_grad_region_begin(true);
  calx_status *status = check_inside(c);
  cx_lazy_grad_region_end(true);
  calx_status *late = calx_scope_end(scope);
  if (status == NULL) return late;
  calx_status_free(late);
  return status;
}

// ---- public -----------------------------------------------------------------

static calx_status *prepare(check *c, const calx_gradcheck_options *o)
{
  static const calx_gradcheck_options none = { .size = sizeof none };
  if (o == NULL) o = &none;
  CALX_TRY(cx_options_check(c->call, o->size, sizeof *o));
  if (c->fn == NULL || (c->inputs == NULL && c->n_inputs != 0)) {
    return cx_invalid("%s: the function or the list of inputs is NULL",
                      c->call);
  }
  if (c->n_outputs == 0 || c->n_outputs > MOST_OUTPUTS) {
    return cx_invalid("%s: %zu outputs, 1 to %d are possible", c->call,
                      c->n_outputs, MOST_OUTPUTS);
  }
  for (size_t i = 0; i < c->n_inputs; i++) {
    if (c->inputs[i] == NULL) {
      return cx_invalid("%s: input %zu is NULL", c->call, i);
    }
    if (cx_dtype_is_complex(calx_tensor_dtype(c->inputs[i]))) {
      return cx_invalid(
          "%s: input %zu is complex, real ones are wanted: make the complex "
          "tensor of two real ones inside the function, with calx_complex",
          c->call, i);
    }
  }
  c->eps = cx_is_default(o->eps) ? 1e-6 : o->eps;
  c->atol = cx_is_default(o->atol) ? 1e-5 : o->atol;
  c->rtol = cx_is_default(o->rtol) ? 1e-3 : o->rtol;
  if (c->eps > 0 && c->atol >= 0 && c->rtol >= 0) return NULL;
  return cx_invalid("%s: .eps, .atol and .rtol must be positive numbers",
                    c->call);
}

calx_status *calx_gradcheck_with(calx_tensors_fn *fn, void *user,
                                 calx_tensor *const *inputs, size_t n_inputs,
                                 size_t n_outputs,
                                 const calx_gradcheck_options *options)
{
  check c = { .call = "gradcheck",
              .fn = fn,
              .user = user,
              .inputs = inputs,
              .n_inputs = n_inputs,
              .n_outputs = n_outputs };
  CALX_TRY(prepare(&c, options));
  return run(&c);
}

// The gradients as a function: of the inputs and of what comes from above.
typedef struct gradient_fn {
  const check *of;
  size_t n_wanted;
} gradient_fn;

static void gradients(void *user, calx_tensor *const *inputs,
                      calx_tensor **outs)
{
  const gradient_fn *f = user;
  const check *c = f->of;
  calx_tensor *y[MOST_OUTPUTS], *wanted[MOST_OUTPUTS];
  size_t n = 0;
  calx_status *status = evaluate(c, inputs, y);
  if (status != NULL) {
    cx_lazy_scope_pin(status);
    return;
  }
  for (size_t i = 0; i < c->n_inputs; i++) {
    if (cx_lazy_tensor_requires_grad(inputs[i])) wanted[n++] = inputs[i];
  }
  calx_grad_of_options o = { .size = sizeof o,
                             .gradients = inputs + c->n_inputs,
                             .create_graph = true,
                             .materialize_grads = true };
  calx_grad_of_n(y, c->n_outputs, wanted, n, outs, &o);
}

calx_status *calx_gradgradcheck_with(calx_tensors_fn *fn, void *user,
                                     calx_tensor *const *inputs,
                                     size_t n_inputs, size_t n_outputs,
                                     const calx_gradcheck_options *options)
{
  check c = { .call = "gradgradcheck",
              .fn = fn,
              .user = user,
              .inputs = inputs,
              .n_inputs = n_inputs,
              .n_outputs = n_outputs };
  CALX_TRY(prepare(&c, options));
  gradient_fn f = { .of = &c };
  for (size_t i = 0; i < n_inputs; i++) {
    f.n_wanted += cx_lazy_tensor_requires_grad(inputs[i]);
  }
  if (f.n_wanted == 0 || f.n_wanted > MOST_OUTPUTS) {
    return cx_invalid("%s: %zu inputs require a gradient, 1 to %d are possible",
                      c.call, f.n_wanted, MOST_OUTPUTS);
  }
  calx_scope *scope = calx_scope_begin();
  calx_tensor *outs[MOST_OUTPUTS];
  calx_tensor **all = cx_calloc(n_inputs + n_outputs, sizeof(calx_tensor *));
  calx_status *status = all == NULL ? cx_out_of_memory() : NULL;
  if (status == NULL) status = evaluate(&c, inputs, outs);
  for (size_t i = 0; status == NULL && i < n_inputs; i++) all[i] = inputs[i];
  for (size_t k = 0; status == NULL && k < n_outputs; k++) {
    const cx_graph_shape *s = cx_lazy_tensor_shape(outs[k]);
    calx_create_options o = { .size = sizeof o,
                              .dtype = s->dtype,
                              .device = calx_tensor_device(outs[k]) };
    // Not 1, and other values for other elements.
    calx_tensor *v = calx_rand_with(calx_dims_of(s->dims, s->rank), &o);
    all[n_inputs + k] = cx_lazy_tensor_detached(v);
    calx_requires_grad(all[n_inputs + k], true);
  }
  if (status == NULL) {
    check second = { .call = c.call,
                     .fn = gradients,
                     .user = &f,
                     .inputs = all,
                     .n_inputs = n_inputs + n_outputs,
                     .n_outputs = f.n_wanted,
                     .eps = c.eps,
                     .atol = c.atol,
                     .rtol = c.rtol };
    status = run(&second);
  }
  cx_free(all);
  calx_status *late = calx_scope_end(scope);
  if (status == NULL) return late;
  calx_status_free(late);
  return status;
}
