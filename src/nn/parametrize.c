// nn/parametrize: torch.nn.utils.parametrizations. A parametrised parameter has
// no tensor of its own: the layer, which finds its parameters by name, gets
// what the entry computes of those in parametrizations.NAME.
#include <string.h>

#include "base/alloc.h"
#include "nn/layer.h"
#include "ops/ops.h"

// The state of the parametrisation, which is the list's child "0".
static void *state_of(const calx_module *list)
{
  return calx_module_child_at(list, 0)->state;
}

// ---- replacing a parameter --------------------------------------------------

// The entry of a plain parameter; NULL: the root has the error.
static cx_nn_module_entry *find_plain(const char *call, calx_module *m,
                                      const char *name)
{
  if (m == NULL || cx_nn_module_is_nil(m)) {
    cx_lazy_scope_pin(cx_invalid("%s: the module is NULL", call));
    return NULL;
  }
  calx_status *bad = calx_module_error(m);
  if (bad != NULL) {
    calx_status_free(bad);  // the root's first, which it keeps
    return NULL;
  }
  cx_nn_module_entry *e = cx_nn_module_entry_of(m, name);
  if (e != NULL && e->tensor != NULL && e->kind == CALX_PARAMETER) return e;
  cx_nn_module_fail(
      m,
      cx_invalid("%s: '%s' (%s) has no parameter '%s'%s", call,
                 cx_nn_module_path(m), m->kind, name,
                 e != NULL && e->compute != NULL ? " but a computed one" : ""));
  return NULL;
}

// Gives the module another kind: prefix and rest. False: no memory, which the
// root has.
static bool rename_kind(calx_module *m, const char *prefix, const char *rest)
{
  cx_text text = { 0 };
  cx_text_append(&text, prefix);
  cx_text_append(&text, rest);
  char *kind = cx_text_take(&text);
  if (kind == NULL) {
    cx_nn_module_fail(m, cx_out_of_memory());
    return false;
  }
  cx_free(m->kind);
  m->kind = kind;
  return true;
}

static const char parametrized[] = "Parametrized";

static bool has_prefix(const calx_module *m)
{
  return strncmp(m->kind, parametrized, sizeof parametrized - 1) == 0;
}

// parametrizations.NAME with a child "0" of `bytes` of state; NULL: the root
// has the error.
static calx_module *add_list(calx_module *m, const char *name,
                             const cx_nn_layer *layer, size_t bytes)
{
  calx_module *all = calx_module_get(m, "parametrizations");
  if (all == NULL) {
    all = calx_module_child(m, "parametrizations", "ModuleDict", NULL, NULL);
  }
  calx_module *list =
      calx_module_child(all, name, "ParametrizationList", NULL, NULL);
  void *state;
  calx_module *rule = cx_nn_make(layer, list, "0", bytes, &state);
  if (!has_prefix(m) && !rename_kind(m, parametrized, m->kind)) return NULL;
  calx_status *bad = calx_module_error(rule);
  calx_status_free(bad);
  return bad == NULL ? list : NULL;
}

// The parameter is released; what the layer asks for is computed from now on.
static void compute_instead(calx_module *m, const char *name, calx_module *list,
                            cx_nn_compute_fn *compute)
{
  cx_nn_module_entry *e = cx_nn_module_entry_of(m, name);
  calx_release(e->tensor);
  e->tensor = NULL;
  e->compute = compute;
  e->list = list;
}

// ---- weight norm ------------------------------------------------------------

typedef struct weight_norm {
  calx_module *m;
  int dim;  // -1: none
} weight_norm;

// The norm over all dimensions but one, which stay with size 1.
static calx_tensor *norm_except(calx_tensor *v, int dim)
{
  int64_t dims[CALX_MAX_RANK];
  size_t rank = calx_tensor_rank(v), n = 0;
  for (size_t i = 0; i < rank; i++) {
    if ((int)i != dim) dims[n++] = (int64_t)i;
  }
  calx_norm_options o = { .size = sizeof o };
  if (dim < 0) return calx_norm_with(v, &o);
  if (n == 0) return calx_abs(v);
  o.dims = calx_dims_of(dims, n);
  o.keepdim = true;
  return calx_norm_with(v, &o);
}

static calx_tensor *compute_weight_norm(calx_module *list)
{
  const weight_norm *w = state_of(list);
  calx_tensor *g = cx_nn_tensor(list, "original0");
  calx_tensor *v = cx_nn_tensor(list, "original1");
  return calx_mul(v, calx_div(g, norm_except(v, w->dim)));
}

void calx_weight_norm_with(calx_module *m,
                           const calx_weight_norm_options *options)
{
  static const cx_nn_layer rule = { .kind = "_WeightNorm",
                                    .call = "weight_norm" };
  calx_weight_norm_options o;
  calx_status *bad = cx_options_take("weight_norm", options, &o, sizeof o);
  const char *name = o.name != NULL ? o.name : "weight";
  const cx_nn_module_entry *e = find_plain("weight_norm", m, name);
  if (e != NULL && bad == NULL && o.dim != CALX_ALL_DIMS &&
      (o.dim < -1 || o.dim >= (int)calx_tensor_rank(e->tensor))) {
    bad =
        cx_invalid("weight_norm: '%s' is %s, it has no dimension %d", name,
                   cx_graph_shape_str(cx_lazy_tensor_shape(e->tensor)), o.dim);
  }
  if (e == NULL || bad != NULL) {
    if (m != NULL)
      cx_nn_module_fail(m, bad);
    else
      calx_status_free(bad);
    return;
  }
  calx_tensor *old = e->tensor;
  calx_module *list = add_list(m, name, &rule, sizeof(weight_norm));
  if (list == NULL) return;
  weight_norm *w = state_of(list);
  w->dim = o.dim == CALX_ALL_DIMS ? -1 : o.dim;
  calx_scope *scope = calx_scope_begin();
  cx_lazy_no_grad_begin();
  calx_module_param(list, "original0", norm_except(old, w->dim));
  calx_module_param(list, "original1", old);
  cx_lazy_no_grad_end();
  cx_nn_module_fail(m, calx_scope_end(scope));
  compute_instead(m, name, list, compute_weight_norm);
}

// ---- spectral norm ----------------------------------------------------------

typedef struct spectral_norm {
  calx_module *m;
  int dim;
  int64_t iterations;
  double eps;
} spectral_norm;

static calx_tensor *unit(const spectral_norm *s, calx_tensor *x)
{
  calx_normalize_options o = { .size = sizeof o,
                               .dim = CALX_ZERO_INT,
                               .eps = s->eps };
  return calx_normalize_with(x, &o);
}

// The weight as a matrix whose rows are its slices along the dimension.
static calx_tensor *as_matrix(const spectral_norm *s, calx_tensor *w)
{
  if (s->dim != 0) w = calx_movedim(w, s->dim, 0);
  return calx_reshape(w, CALX_SHAPE(calx_tensor_dim(w, 0), -1));
}

typedef struct vectors {
  calx_tensor *u, *v;
} vectors;

static vectors power_method(const spectral_norm *s, calx_tensor *matrix,
                            vectors x, int64_t iterations)
{
  calx_tensor *turned = calx_transpose(matrix, 0, 1);
  for (int64_t i = 0; i < iterations; i++) {
    x.u = unit(s, calx_mv(matrix, x.v));
    x.v = unit(s, calx_mv(turned, x.u));
  }
  return x;
}

static calx_tensor *compute_spectral_norm(calx_module *list)
{
  const spectral_norm *s = state_of(list);
  calx_tensor *w = cx_nn_tensor(list, "original");
  if (calx_tensor_rank(w) == 1) return unit(s, w);
  calx_tensor *matrix = as_matrix(s, w);
  vectors x = { cx_nn_tensor(s->m, "_u"), cx_nn_tensor(s->m, "_v") };
  if (calx_module_is_training(s->m)) {
    cx_lazy_no_grad_begin();
    vectors next = power_method(s, calx_detach(matrix), x, s->iterations);
    if (!cx_lazy_tensor_poisoned(next.v)) {
      calx_assign(x.u, next.u);
      calx_assign(x.v, next.v);
    }
    cx_lazy_no_grad_end();
    x = (vectors){ calx_detach(next.u), calx_detach(next.v) };
  }
  calx_tensor *sigma = calx_dot(x.u, calx_mv(matrix, x.v));
  return calx_div(w, sigma);
}

static void make_vectors(const spectral_norm *s, calx_tensor *w)
{
  calx_tensor *matrix = as_matrix(s, w);
  calx_dtype dtype = calx_tensor_dtype(w);
  vectors x = {
    unit(s, cx_nn_normal(CALX_SHAPE(calx_tensor_dim(matrix, 0)), dtype)),
    unit(s, cx_nn_normal(CALX_SHAPE(calx_tensor_dim(matrix, 1)), dtype))
  };
  x = power_method(s, matrix, x, 15);  // as PyTorch begins
  calx_module_buffer(s->m, "_u", x.u);
  calx_module_buffer(s->m, "_v", x.v);
}

static calx_status *check_spectral(const calx_module *m, const calx_tensor *w,
                                   spectral_norm *s,
                                   const calx_spectral_norm_options *o)
{
  bool transposed = strncmp(m->kind, "ConvTranspose", 13) == 0;
  int64_t rank = (int64_t)calx_tensor_rank(w);
  int64_t dim = o->dim == CALX_ZERO_INT     ? 0
                : o->dim == 0 && transposed ? 1
                                            : o->dim;
  if (dim < 0) dim += rank;
  s->iterations = o->n_power_iterations != 0 ? o->n_power_iterations : 1;
  s->eps = o->eps;
  if (rank < 1 || dim < 0 || dim >= rank) {
    return cx_invalid(
        "spectral_norm: the parameter is %s, it has no dimension "
        "%lld",
        cx_graph_shape_str(cx_lazy_tensor_shape(w)), (long long)o->dim);
  }
  s->dim = (int)dim;
  if (s->iterations > 0 && s->iterations <= 1000 && o->eps >= 0) return NULL;
  return cx_invalid(
      "spectral_norm: %lld iterations and eps %g: 1 to 1000 and "
      "a positive number are wanted",
      (long long)o->n_power_iterations, o->eps);
}

void calx_spectral_norm_with(calx_module *m,
                             const calx_spectral_norm_options *options)
{
  static const cx_nn_layer rule = { .kind = "_SpectralNorm",
                                    .call = "spectral_norm" };
  calx_spectral_norm_options o;
  calx_status *bad = cx_options_take("spectral_norm", options, &o, sizeof o);
  const char *name = o.name != NULL ? o.name : "weight";
  const cx_nn_module_entry *e = find_plain("spectral_norm", m, name);
  if (e == NULL) {
    calx_status_free(bad);
    return;
  }
  calx_tensor *old = e->tensor;
  spectral_norm given = { 0 };
  if (bad == NULL) bad = check_spectral(m, old, &given, &o);
  if (bad != NULL) {
    cx_nn_module_fail(m, bad);
    return;
  }
  calx_module *list = add_list(m, name, &rule, sizeof(spectral_norm));
  if (list == NULL) return;
  spectral_norm *s = state_of(list);
  given.m = s->m;
  *s = given;
  calx_scope *scope = calx_scope_begin();
  cx_lazy_no_grad_begin();
  calx_module_param(list, "original", old);
  if (calx_tensor_rank(old) > 1) make_vectors(s, old);
  cx_lazy_no_grad_end();
  cx_nn_module_fail(m, calx_scope_end(scope));
  compute_instead(m, name, list, compute_spectral_norm);
}

// ---- and back ---------------------------------------------------------------

// Takes a child and all below it out of the module.
static void remove_child(calx_module *m, const char *name)
{
  cx_nn_module_entry *e = cx_nn_module_entry_of(m, name);
  if (e == NULL) return;
  e->child->parent = NULL;
  calx_module_free(e->child);
  size_t i = (size_t)(e - m->entries);
  m->count--;
  memmove(e, e + 1, (m->count - i) * sizeof *e);
}

void calx_remove_parametrizations(calx_module *m, const char *name)
{
  static const char call[] = "remove_parametrizations";
  if (m == NULL || cx_nn_module_is_nil(m)) {
    cx_lazy_scope_pin(cx_invalid("%s: the module is NULL", call));
    return;
  }
  if (name == NULL) name = "weight";
  cx_nn_module_entry *e = cx_nn_module_entry_of(m, name);
  if (e == NULL || e->compute == NULL) {
    cx_nn_module_fail(m, cx_invalid("%s: '%s' (%s) computes no parameter '%s'",
                                    call, cx_nn_module_path(m), m->kind, name));
    return;
  }
  calx_scope *scope = calx_scope_begin();
  cx_lazy_no_grad_begin();
  calx_tensor *value = e->compute(e->list);
  cx_lazy_no_grad_end();
  // PyTorch registers it anew: it is the last parameter then.
  size_t i = (size_t)(e - m->entries);
  m->count--;
  memmove(e, e + 1, (m->count - i) * sizeof *e);
  calx_module_param(m, name, value);
  cx_nn_module_fail(m, calx_scope_end(scope));
  calx_module *all = calx_module_get(m, "parametrizations");
  remove_child(all, name);
  if (calx_module_child_count(all) != 0) return;
  remove_child(m, "parametrizations");
  if (has_prefix(m)) rename_kind(m, "", m->kind + sizeof parametrized - 1);
}
