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
  if (!json_is_number(v)) return 0;
  return json_number_value(v) != 0 ? json_number_value(v) : CALX_ZERO;
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

#define X c->in[0]
#define Y c->in[1]
#define Z c->in[2]
#define MANY(n, call) (c->n_out = (n), call)
// clang-format off
#define ROWS(ROW) \
  ROW(linear_cross_entropy, calx_linear_cross_entropy(X, Y, Z, .linear_bias = c->in[3], .weight = c->in[4], .reduction = reduction(c), .ignore_index = said(c, "ignore_index"), .label_smoothing = real(c, "label_smoothing"))) \
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
  ROW(pinv_within, calx_pinv(X, .rtol = real_said(c, "rtol"), .atol = real(c, "atol")))
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
