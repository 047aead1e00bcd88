// io/lbfgs_state: the state of LBFGS in an optimiser's state dict, as PyTorch
// has it: that of the first parameter.
//
//   {'func_evals': 25, 'n_iter': 20, 'd': …, 't': 1.0, 'old_dirs': […],
//    'old_stps': […], 'ro': […], 'H_diag': …, 'prev_flat_grad': …,
//    'prev_loss': …}
//
// Vectors are f64, as they are in memory, so that a run goes on with its bits.
#include "optim/lbfgs.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/status.h"
#include "io/fetch.h"
#include "io/optim_state.h"
#include "lazy/lazy.h"

// ---- saving -----------------------------------------------------------------

static calx_value *vector_value(const double *x, size_t n)
{
  int64_t dim = (int64_t)n;
  calx_scope *scope = calx_scope_begin();
  calx_tensor *t = calx_host_tensor(x, CALX_F64, calx_dims_of(&dim, 1));
  calx_value *v = cx_lazy_tensor_poisoned(t) ? NULL : calx_value_tensor(t);
  calx_status_free(calx_scope_end(scope));
  return v;
}

static calx_status *put_history(const cx_optim_lbfgs_state *s, size_t size,
                                calx_value *own)
{
  calx_value *dirs = calx_value_container(CALX_KIND_LIST);
  CALX_TRY(calx_value_set(own, "old_dirs", dirs));
  calx_value *stps = calx_value_container(CALX_KIND_LIST);
  CALX_TRY(calx_value_set(own, "old_stps", stps));
  calx_value *ro = calx_value_container(CALX_KIND_LIST);
  CALX_TRY(calx_value_set(own, "ro", ro));
  for (size_t i = 0; i < s->n_old; i++) {
    CALX_TRY(calx_value_append(dirs, vector_value(s->old_dirs[i], size)));
    CALX_TRY(calx_value_append(stps, vector_value(s->old_stps[i], size)));
    CALX_TRY(calx_value_append(ro, calx_value_float(s->ro[i])));
  }
  return NULL;
}

calx_status *cx_io_lbfgs_put(const cx_optim_lbfgs *l, calx_value *state)
{
  const cx_optim_lbfgs_state *s = &l->s;
  if (s->func_evals == 0) return NULL;
  calx_value *own = calx_value_container(CALX_KIND_DICT);
  CALX_TRY(calx_value_set_at(state, 0, own));
  CALX_TRY(calx_value_set(own, "func_evals", calx_value_int(s->func_evals)));
  CALX_TRY(calx_value_set(own, "n_iter", calx_value_int(s->n_iter)));
  if (s->d == NULL || s->prev_flat_grad == NULL) return NULL;
  CALX_TRY(calx_value_set(own, "d", vector_value(s->d, l->size)));
  CALX_TRY(calx_value_set(own, "t", calx_value_float(s->t)));
  CALX_TRY(put_history(s, l->size, own));
  CALX_TRY(calx_value_set(own, "H_diag", calx_value_float(s->h_diag)));
  CALX_TRY(calx_value_set(own, "prev_flat_grad",
                          vector_value(s->prev_flat_grad, l->size)));
  return calx_value_set(own, "prev_loss", calx_value_float(s->prev_loss));
}

// ---- loading ----------------------------------------------------------------

typedef struct lbfgs_reading {
  const cx_optim_lbfgs *l;
  const calx_value *own;
} lbfgs_reading;

static calx_status *read_count(const lbfgs_reading *r, const char *name,
                               int64_t *out)
{
  const calx_value *v = calx_value_get(r->own, name);
  *out = cx_io_optim_steps(v);
  if (*out >= 0) return NULL;
  return cx_io_optim_wrong(&r->l->base, name, v, "a whole number, 0 or more");
}

static calx_status *read_number(const lbfgs_reading *r, const char *name,
                                const calx_value *v, double *out)
{
  *out = cx_io_optim_number(v);
  if (!isnan(*out)) return NULL;
  return cx_io_optim_wrong(&r->l->base, name, v, "a number");
}

static calx_status *read_vector(const lbfgs_reading *r, const char *name,
                                const calx_value *v, double *out)
{
  size_t n = r->l->size;
  calx_tensor *t = calx_value_as_tensor(v);
  bool fits = t != NULL && cx_dtype_is_float(calx_tensor_dtype(t)) &&
              (size_t)calx_tensor_numel(t) == n;
  if (!fits) {
    char wanted[80];
    snprintf(wanted, sizeof wanted, "a floating tensor of %zu elements%s%s", n,
             t != NULL ? ", not " : "",
             t != NULL ? cx_graph_shape_str(cx_lazy_tensor_shape(t)) : "");
    return cx_io_optim_wrong(&r->l->base, name, v, wanted);
  }
  cx_io_elements e;
  CALX_TRY(cx_io_fetch(t, &e));
  calx_dtype type = calx_tensor_dtype(t);
  const unsigned char *data = e.data;
  for (size_t i = 0; i < n; i++) {
    out[i] = cx_load_double(type, data + i * calx_dtype_size(type));
  }
  cx_io_fetched(&e);
  return NULL;
}

static calx_status *read_history(const lbfgs_reading *r,
                                 cx_optim_lbfgs_state *s)
{
  const calx_value *dirs = calx_value_get(r->own, "old_dirs");
  const calx_value *stps = calx_value_get(r->own, "old_stps");
  const calx_value *ro = calx_value_get(r->own, "ro");
  size_t n = calx_value_count(dirs);
  if (calx_value_kind(dirs) != CALX_KIND_LIST || calx_value_count(stps) != n ||
      calx_value_count(ro) != n) {
    return cx_io_optim_wrong(&r->l->base, "old_dirs", dirs,
                             "a list as long as 'old_stps' and 'ro'");
  }
  for (size_t i = 0; i < n; i++) {
    if (!cx_optim_lbfgs_grow(s, r->l->size)) return cx_out_of_memory();
    CALX_TRY(
        read_vector(r, "old_dirs", calx_value_item(dirs, i), s->old_dirs[i]));
    CALX_TRY(
        read_vector(r, "old_stps", calx_value_item(stps, i), s->old_stps[i]));
    CALX_TRY(read_number(r, "ro", calx_value_item(ro, i), &s->ro[i]));
  }
  return NULL;
}

calx_status *cx_io_lbfgs_plan(const cx_optim_lbfgs *l, const calx_value *own,
                              cx_optim_lbfgs_state *out)
{
  lbfgs_reading r = { l, own };
  if (own == NULL) return NULL;
  CALX_TRY(read_count(&r, "func_evals", &out->func_evals));
  CALX_TRY(read_count(&r, "n_iter", &out->n_iter));
  const calx_value *d = calx_value_get(own, "d");
  if (d == NULL || calx_value_kind(d) == CALX_KIND_NONE) {
    out->n_iter = 0;  // the next iteration is the first one
    return NULL;
  }
  out->d = cx_calloc(l->size, sizeof *out->d);
  out->prev_flat_grad = cx_calloc(l->size, sizeof *out->d);
  if (out->d == NULL || out->prev_flat_grad == NULL) return cx_out_of_memory();
  CALX_TRY(read_vector(&r, "d", d, out->d));
  CALX_TRY(read_vector(&r, "prev_flat_grad",
                       calx_value_get(own, "prev_flat_grad"),
                       out->prev_flat_grad));
  CALX_TRY(read_number(&r, "t", calx_value_get(own, "t"), &out->t));
  CALX_TRY(
      read_number(&r, "H_diag", calx_value_get(own, "H_diag"), &out->h_diag));
  CALX_TRY(read_number(&r, "prev_loss", calx_value_get(own, "prev_loss"),
                       &out->prev_loss));
  return read_history(&r, out);
}

void cx_io_lbfgs_give(cx_optim_lbfgs *l, cx_optim_lbfgs_state *from)
{
  cx_optim_lbfgs_state_free(&l->s);
  l->s = *from;
  *from = (cx_optim_lbfgs_state){ 0 };
}
