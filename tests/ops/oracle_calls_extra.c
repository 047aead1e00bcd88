// How losses of linear layers, products in groups and factorisations by
// elimination and reflections are spelled in calx.
#include <string.h>

#include "oracle.h"

static json_t *attr(const call *c, const char *name)
{
  return json_object_get(c->attrs, name);
}

static bool is(const call *c, const char *name, const char *value)
{
  const char *s = json_string_value(attr(c, name));
  return s != NULL && strcmp(s, value) == 0;
}

// An option of which 0 must be said.
static int64_t said(const call *c, const char *name)
{
  json_t *v = attr(c, name);
  if (!json_is_integer(v)) return 0;
  return json_integer_value(v) != 0 ? json_integer_value(v) : CALX_ZERO_INT;
}

static double real(const call *c, const char *name)
{
  return json_number_value(attr(c, name));
}

static double real_said(const call *c, const char *name)
{
  json_t *v = attr(c, name);
  return json_is_number(v) ? json_number_value(v) : CALX_DEFAULT;
}

static bool flag(const call *c, const char *name)
{
  return json_is_true(attr(c, name));
}

static calx_reduction reduction(const call *c)
{
  return is(c, "reduction", "sum")    ? CALX_SUM
         : is(c, "reduction", "none") ? CALX_NONE
                                      : CALX_MEAN;
}

static calx_dims list(const call *c, const char *name)
{
  json_t *item;
  size_t i;
  calx_dims d = { .count = json_array_size(attr(c, name)) };
  json_array_foreach(attr(c, name), i, item)
  {
    d.values[i] = json_integer_value(item);
  }
  return d;
}

static calx_tensor *fractional_pool(call *c, int n)
{
  calx_fractional_max_pool_options o = { .size = sizeof o,
                                         .output_size = list(c, "output_size"),
                                         .random_samples = c->in[1],
                                         .out_indices = &c->out[1] };
  json_t *item;
  size_t i;
  json_array_foreach(attr(c, "output_ratio"), i, item)
  {
    o.output_ratio[i] = json_number_value(item);
  }
  const calx_dims kernel = list(c, "kernel_size");
  return n == 2 ? calx_fractional_max_pool2d_with(c->in[0], kernel, &o)
                : calx_fractional_max_pool3d_with(c->in[0], kernel, &o);
}

static calx_tensor *histogramdd(call *c)
{
  double range[16] = { 0 };
  json_t *item;
  size_t i;
  json_array_foreach(attr(c, "range"), i, item)
  {
    range[i] = json_number_value(item);
  }
  const bool ranged = json_array_size(attr(c, "range")) != 0;
  const calx_dims bins = list(c, "bins");
  c->n_out = 1 + bins.count;
  return calx_histogramdd(c->in[0], &c->out[1], .bins = bins,
                          .range = ranged ? range : NULL, .weight = c->in[1],
                          .density = flag(c, "density"));
}

static calx_tensor *lobpcg(call *c)
{
  calx_tensor *w = calx_lobpcg(c->in[0], &c->out[1], .k = said(c, "k"),
                               .b = c->in[1], .smallest = !flag(c, "largest"));
  c->n_out = 2;
  c->out[1] = calx_abs(c->out[1]);
  return w;
}

#define X c->in[0]
#define Y c->in[1]
#define Z c->in[2]
#define MANY(n, call) (c->n_out = (n), call)
// clang-format off
#define ROWS(ROW) \
  ROW(linear_cross_entropy, calx_linear_cross_entropy(X, Y, Z, .linear_bias = c->in[3], .weight = c->in[4], .reduction = reduction(c), .ignore_index = json_is_integer(attr(c, "ignore_index")) ? json_integer_value(attr(c, "ignore_index")) : CALX_DEFAULT_INT, .label_smoothing = real(c, "label_smoothing"))) \
  ROW(grouped_mm, calx_grouped_mm(X, Y, Z)) \
  ROW(lu, MANY(3, calx_lu(X, &c->out[1], &c->out[2]))) \
  ROW(lu_factor, MANY(2, calx_lu_factor(X, &c->out[1]))) \
  ROW(lu_unpack, MANY(3, calx_lu_unpack(X, Y, &c->out[1], &c->out[2]))) \
  ROW(lu_solve, calx_lu_solve(X, Y, Z, .right = flag(c, "right"), .adjoint = flag(c, "adjoint"))) \
  ROW(geqrf, MANY(2, calx_geqrf(X, &c->out[1]))) \
  ROW(orgqr, calx_orgqr(X, Y)) \
  ROW(householder_product, calx_householder_product(X, Y)) \
  ROW(ormqr, calx_ormqr(X, Y, Z, .right = flag(c, "right"), .transpose = flag(c, "transpose"))) \
  ROW(triangular_solve, calx_triangular_solve(X, Y, .lower = flag(c, "lower"), .transpose = flag(c, "transpose"), .unitriangular = flag(c, "unitriangular"))) \
  ROW(matrix_rank_within, calx_matrix_rank(X, .rtol = real_said(c, "rtol"), .atol = real(c, "atol"))) \
  ROW(pinv_within, calx_pinv(X, .rtol = real_said(c, "rtol"), .atol = real(c, "atol"))) \
  ROW(fractional_max_pool2d, MANY(2, fractional_pool(c, 2))) \
  ROW(fractional_max_pool3d, MANY(2, fractional_pool(c, 3))) \
  ROW(log_ndtr, calx_log_ndtr(X)) \
  ROW(ndtri, calx_ndtri(X)) \
  ROW(tensorinv, calx_tensorinv(X, .ind = (int)real(c, "ind"))) \
  ROW(tensorsolve, calx_tensorsolve(X, Y, .dims = list(c, "dims"))) \
  ROW(igamma, calx_igamma(X, Y)) \
  ROW(igammac, calx_igammac(X, Y)) \
  ROW(igamma_x, calx_igamma(calx_detach(X), Y)) \
  ROW(igammac_x, calx_igammac(calx_detach(X), Y)) \
  ROW(histogramdd, histogramdd(c)) \
  ROW(histogramdd_edges, calx_histogramdd(X, NULL, .edges = c->in + 1, .density = flag(c, "density"))) \
  ROW(lobpcg_abs, lobpcg(c))
// clang-format on

bool oracle_call_extra(call *c)
{
#define CALL(name, expression)     \
  if (strcmp(c->op, #name) == 0) { \
    c->out[0] = (expression);      \
    return true;                   \
  }
  ROWS(CALL)
  return false;
}
