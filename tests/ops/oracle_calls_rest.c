// How functions of torch that are named rarely are spelled in calx.
#include <math.h>
#include <string.h>

#include "oracle.h"

static json_t *attr(const call *c, const char *name)
{
  return json_object_get(c->attrs, name);
}

static double number(const call *c, const char *name, double otherwise)
{
  json_t *v = attr(c, name);
  return json_is_number(v) ? json_number_value(v) : otherwise;
}

// An option of which 0 must be said.
static double said(const call *c, const char *name)
{
  json_t *v = attr(c, name);
  if (!json_is_number(v)) return 0;
  return json_number_value(v) != 0 ? json_number_value(v) : CALX_ZERO;
}

static int64_t whole(const call *c, const char *name, int64_t otherwise)
{
  return (int64_t)number(c, name, (double)otherwise);
}

// An option of which dimension 0 must be said.
static int dim_said(const call *c)
{
  int64_t dim = whole(c, "dim", -1);
  return dim == 0 ? INT32_MIN : (int)dim;
}

static bool flag(const call *c, const char *name)
{
  return json_is_true(attr(c, name));
}

static const char *text(const call *c, const char *name)
{
  const char *s = json_string_value(attr(c, name));
  return s != NULL ? s : "";
}

static calx_dims list(const call *c, const char *name, int64_t *room)
{
  json_t *item;
  size_t i, n = json_array_size(attr(c, name));
  json_array_foreach(attr(c, name), i, item) room[i] = json_integer_value(item);
  return calx_dims_of(room, n);
}

static double power(const call *c)
{
  return strcmp(text(c, "p"), "inf") == 0 ? (double)INFINITY
                                          : number(c, "p", CALX_DEFAULT);
}

// The result of a function that answers on the host.
static calx_tensor *answer(bool yes)
{
  return calx_to_dtype(calx_scalar_int(yes), CALX_BOOL);
}

static calx_index_reduction reduction(const call *c)
{
  const char *r = text(c, "reduce");
  return strcmp(r, "prod") == 0   ? CALX_INDEX_PROD
         : strcmp(r, "mean") == 0 ? CALX_INDEX_MEAN
         : strcmp(r, "amax") == 0 ? CALX_INDEX_AMAX
                                  : CALX_INDEX_AMIN;
}

static calx_window_options window(const call *c)
{
  bool wide = strcmp(text(c, "dtype"), "float64") == 0;
  return (calx_window_options){ .size = sizeof(calx_window_options),
                                .dtype = wide ? CALX_F64 : CALX_F32,
                                .symmetric = !flag(c, "periodic"),
                                .alpha = said(c, "alpha"),
                                .beta = said(c, "beta") };
}

static calx_tensor *windowed(const call *c,
                             calx_tensor *(*fn)(int64_t,
                                                const calx_window_options *))
{
  calx_window_options o = window(c);
  return fn(whole(c, "window_length", 0), &o);
}

#define X c->in[0]
#define Y c->in[1]
#define Z c->in[2]
#define LIST(name) list(c, name, room)
#define DIM (int)whole(c, "dim", 0)
#define MANY(n, call) (c->n_out = (n), call, c->out[0])
// clang-format off
#define ROWS(ROW) \
  ROW(bitwise_left_shift, calx_bitwise_left_shift(X, Y)) \
  ROW(bitwise_right_shift, calx_bitwise_right_shift(X, Y)) \
  ROW(nextafter, calx_nextafter(X, Y)) \
  ROW(gcd, calx_gcd(X, Y)) \
  ROW(lcm, calx_lcm(X, Y)) \
  ROW(ldexp, calx_ldexp(X, Y)) \
  ROW(frexp, (c->n_out = 2, calx_frexp(X, &c->out[1]))) \
  ROW(logaddexp2, calx_logaddexp2(X, Y)) \
  ROW(isreal, calx_isreal(X)) \
  ROW(equal, answer(calx_equal(X, Y))) \
  ROW(dist, calx_dist(X, Y, .p = power(c))) \
  ROW(inner, calx_inner(X, Y)) \
  ROW(vdot, calx_vdot(X, Y)) \
  ROW(addbmm, calx_addbmm(X, Y, Z, .beta = number(c, "beta", CALX_DEFAULT), .alpha = number(c, "alpha", CALX_DEFAULT))) \
  ROW(renorm, calx_renorm(X, number(c, "p", 2), DIM, number(c, "maxnorm", 1))) \
  ROW(pdist, calx_pdist(X, .p = power(c))) \
  ROW(msort, calx_msort(X)) \
  ROW(unique_consecutive, (c->n_out = 3, calx_unique_consecutive(X, .out_inverse = &c->out[1], .out_counts = &c->out[2]))) \
  ROW(argwhere, calx_argwhere(X)) \
  ROW(index_reduce, calx_index_reduce(X, DIM, Y, Z, reduction(c), .exclude_self = !flag(c, "include_self"))) \
  ROW(broadcast_tensors, MANY(c->n_in, calx_broadcast_tensors(c->in, c->n_in, c->out))) \
  ROW(cartesian_prod, calx_cartesian_prod(c->in, c->n_in)) \
  ROW(combinations, calx_combinations(X, .r = whole(c, "r", 2), .with_replacement = flag(c, "with_replacement"))) \
  ROW(column_stack, calx_column_stack(c->in, c->n_in)) \
  ROW(diagflat, calx_diagflat(X, whole(c, "offset", 0))) \
  ROW(diagonal_scatter, calx_diagonal_scatter(X, Y, .offset = whole(c, "offset", 0), .dim1 = (int)whole(c, "dim1", 0), .dim2 = (int)whole(c, "dim2", 0))) \
  ROW(hsplit, MANY((size_t)whole(c, "sections", 1), calx_hsplit(X, c->n_out, c->out))) \
  ROW(vsplit, MANY((size_t)whole(c, "sections", 1), calx_vsplit(X, c->n_out, c->out))) \
  ROW(dsplit, MANY((size_t)whole(c, "sections", 1), calx_dsplit(X, c->n_out, c->out))) \
  ROW(hsplit_at, MANY(LIST("indices").count + 1, calx_hsplit_at(X, LIST("indices"), c->out))) \
  ROW(vsplit_at, MANY(LIST("indices").count + 1, calx_vsplit_at(X, LIST("indices"), c->out))) \
  ROW(dsplit_at, MANY(LIST("indices").count + 1, calx_dsplit_at(X, LIST("indices"), c->out))) \
  ROW(ravel, calx_ravel(X)) \
  ROW(unravel_index, MANY(LIST("shape").count, calx_unravel_index(X, LIST("shape"), c->out))) \
  ROW(trapezoid, calx_trapezoid(X, .x = Y, .dx = number(c, "dx", CALX_DEFAULT), .dim = dim_said(c))) \
  ROW(cumulative_trapezoid, calx_cumulative_trapezoid(X, .x = Y, .dx = number(c, "dx", CALX_DEFAULT), .dim = dim_said(c))) \
  ROW(gradient, (c->n_out = calx_gradient(X, c->out, .spacing = number(c, "spacing", CALX_DEFAULT), .coordinates = c->n_in > 1 ? c->in + 1 : NULL, .dims = LIST("dim"), .edge_order = (int)whole(c, "edge_order", 0)), c->out[0])) \
  ROW(histogram, (c->n_out = 2, calx_histogram(X, &c->out[1], .bins = whole(c, "bins", 0), .min = number(c, "min", 0), .max = number(c, "max", 0), .weight = Y, .density = flag(c, "density")))) \
  ROW(histogram_edges, (c->n_out = 2, calx_histogram(X, &c->out[1], .edges = Y, .weight = Z, .density = flag(c, "density")))) \
  ROW(bartlett_window, windowed(c, calx_bartlett_window_with)) \
  ROW(blackman_window, windowed(c, calx_blackman_window_with)) \
  ROW(hamming_window, windowed(c, calx_hamming_window_with)) \
  ROW(hann_window, windowed(c, calx_hann_window_with)) \
  ROW(kaiser_window, windowed(c, calx_kaiser_window_with)) \
  ROW(i0, calx_i0(X)) \
  ROW(i0e, calx_i0e(X)) \
  ROW(i1, calx_i1(X)) \
  ROW(i1e, calx_i1e(X)) \
  ROW(ndtr, calx_ndtr(X)) \
  ROW(mvlgamma, calx_mvlgamma(X, whole(c, "p", 1)))
// clang-format on

#define FUNCTION(op, expression) \
  static void call_##op(call *c) \
  {                              \
    int64_t room[8];             \
    (void)room;                  \
    c->out[0] = (expression);    \
  }
ROWS(FUNCTION)

bool oracle_call_rest(call *c)
{
  static const struct {
    const char *name;
    void (*fn)(call *c);
  } table[] = {
#define ENTRY(op, expression) { #op, call_##op },
    ROWS(ENTRY)
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (strcmp(c->op, table[i].name) != 0) continue;
    table[i].fn(c);
    return true;
  }
  return false;
}
