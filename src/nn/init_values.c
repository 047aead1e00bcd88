// nn/init_values: torch.nn.init. All but calx_init_orthogonal are recorded as
// ops and computed by the next sync.
#include "base/alloc.h"
#include "nn/layer.h"
#include "ops/ops.h"

// ---- what all share ---------------------------------------------------------

// Whether t can be given values; otherwise the scope has the error.
static bool begin(const char *call, calx_tensor *t, size_t least, size_t most)
{
  calx_tensor *bad;
  if (cx_ops_unfit(call, &t, 1, &bad)) return false;
  calx_status *status = NULL;
  size_t rank = calx_tensor_rank(t);
  if (!cx_dtype_is_float(calx_tensor_dtype(t))) {
    status = cx_invalid("%s: floating elements are wanted, got %s", call,
                        cx_graph_shape_str(cx_lazy_tensor_shape(t)));
  } else if (rank < least || rank > most) {
    status = cx_invalid("%s: rank %zu to %zu is wanted, got %s", call, least,
                        most, cx_graph_shape_str(cx_lazy_tensor_shape(t)));
  }
  if (status == NULL) {
    cx_lazy_no_grad_begin();
    return true;
  }
  cx_lazy_scope_pin(status);
  return false;
}

static void end(calx_tensor *t, calx_tensor *value)
{
  if (!cx_lazy_tensor_poisoned(value)) calx_assign(t, value);
  cx_lazy_no_grad_end();
}

// Whether the condition on the numbers holds.
static bool holds(const char *call, bool condition, const char *wanted)
{
  if (!condition) cx_lazy_scope_pin(cx_invalid("%s: %s", call, wanted));
  return condition;
}

// Draws are in f32 at least.
static calx_create_options draws_of(const calx_tensor *t)
{
  bool wide = calx_tensor_dtype(t) == CALX_F64;
  return (calx_create_options){ .size = sizeof(calx_create_options),
                                .dtype = wide ? CALX_F64 : CALX_F32,
                                .device = calx_tensor_device(t) };
}

static calx_tensor *uniform(const calx_tensor *t, double a, double b)
{
  calx_create_options o = draws_of(t);
  calx_tensor *u = cx_ops_rand_common(calx_tensor_shape(t), &o);
  return calx_add_with(calx_mul(u, calx_scalar(b - a)), calx_scalar(a), NULL);
}

static calx_tensor *normal(const calx_tensor *t, double mean, double std)
{
  calx_create_options o = draws_of(t);
  calx_tensor *z = cx_ops_randn_common(calx_tensor_shape(t), &o);
  return calx_add_with(calx_mul(z, calx_scalar(std)), calx_scalar(mean), NULL);
}

// ---- plain distributions ----------------------------------------------------

void calx_init_uniform(calx_tensor *t, double a, double b)
{
  if (!holds("init_uniform", a <= b && !isinf(b - a), "a <= b is wanted")) {
    return;
  }
  if (begin("init_uniform", t, 0, CALX_MAX_RANK)) end(t, uniform(t, a, b));
}

void calx_init_normal(calx_tensor *t, double mean, double std)
{
  if (!holds("init_normal", std >= 0 && !isnan(mean),
             "a mean and a deviation of at least 0 are wanted")) {
    return;
  }
  if (begin("init_normal", t, 0, CALX_MAX_RANK)) end(t, normal(t, mean, std));
}

static double normal_cdf(double x)
{
  return (1 + erf(x / sqrt(2.0))) / 2;
}

// The inverse of the distribution's function, of uniform numbers.
void calx_init_trunc_normal(calx_tensor *t, double mean, double std, double a,
                            double b)
{
  if (!holds("init_trunc_normal", std > 0 && a < b && !isnan(mean),
             "a deviation above 0 and a < b are wanted") ||
      !begin("init_trunc_normal", t, 0, CALX_MAX_RANK)) {
    return;
  }
  double low = normal_cdf((a - mean) / std),
         high = normal_cdf((b - mean) / std);
  calx_tensor *x = calx_erfinv(uniform(t, 2 * low - 1, 2 * high - 1));
  x = calx_add_with(calx_mul(x, calx_scalar(std * sqrt(2.0))),
                    calx_scalar(mean), NULL);
  end(t, calx_clamp(x, calx_scalar(a), calx_scalar(b)));
}

void calx_init_constant(calx_tensor *t, double value)
{
  if (begin("init_constant", t, 0, CALX_MAX_RANK)) end(t, calx_scalar(value));
}

void calx_init_ones(calx_tensor *t)
{
  if (begin("init_ones", t, 0, CALX_MAX_RANK)) end(t, calx_scalar(1));
}

void calx_init_zeros(calx_tensor *t)
{
  if (begin("init_zeros", t, 0, CALX_MAX_RANK)) end(t, calx_scalar(0));
}

// ---- by position ------------------------------------------------------------

// The positions along a dimension, which broadcast with a tensor of that rank.
static calx_tensor *positions(const calx_tensor *t, size_t dim)
{
  calx_create_options o = { .size = sizeof o,
                            .dtype = CALX_I64,
                            .device = calx_tensor_device(t) };
  int64_t n = calx_tensor_dim(t, (int)dim), shape[CALX_MAX_RANK];
  size_t rank = calx_tensor_rank(t);
  for (size_t i = 0; i < rank; i++) shape[i] = i == dim ? n : 1;
  return calx_reshape(calx_arange_with(0, (double)n, 1, &o),
                      calx_dims_of(shape, rank));
}

static void set_where(calx_tensor *t, calx_tensor *condition)
{
  calx_tensor *one = calx_to_dtype(condition, calx_tensor_dtype(t));
  end(t, one);
}

void calx_init_eye(calx_tensor *t)
{
  if (!begin("init_eye", t, 2, 2)) return;
  set_where(t, calx_eq(positions(t, 0), positions(t, 1)));
}

void calx_init_dirac(calx_tensor *t, int64_t groups)
{
  if (!begin("init_dirac", t, 3, 5)) return;
  int64_t out = calx_tensor_dim(t, 0);
  if (!holds("init_dirac", groups > 0 && out % groups == 0,
             "a number of groups that divides the first size is wanted")) {
    cx_lazy_no_grad_end();
    return;
  }
  int64_t each = out / groups;
  calx_tensor *row = positions(t, 0);
  if (each > 0) row = calx_remainder(row, calx_scalar_int(each));
  calx_tensor *one = calx_eq(row, positions(t, 1));
  for (size_t i = 2; i < calx_tensor_rank(t); i++) {
    calx_tensor *middle = calx_scalar_int(calx_tensor_dim(t, (int)i) / 2);
    one = calx_logical_and(one, calx_eq(positions(t, i), middle));
  }
  set_where(t, one);
}

// ---- by fans ----------------------------------------------------------------

typedef struct fans {
  double in, out;
} fans;

static fans fans_of(const calx_tensor *t)
{
  calx_dims d = calx_tensor_shape(t);
  double kernel = 1;
  for (size_t i = 2; i < d.count; i++) kernel *= (double)d.values[i];
  return (fans){ (double)d.values[1] * kernel, (double)d.values[0] * kernel };
}

void calx_init_xavier_uniform(calx_tensor *t, double gain)
{
  if (!begin("init_xavier_uniform", t, 2, CALX_MAX_RANK)) return;
  fans f = fans_of(t);
  double bound = gain * sqrt(6 / (f.in + f.out));
  end(t, uniform(t, -bound, bound));
}

void calx_init_xavier_normal(calx_tensor *t, double gain)
{
  if (!begin("init_xavier_normal", t, 2, CALX_MAX_RANK)) return;
  fans f = fans_of(t);
  end(t, normal(t, 0, gain * sqrt(2 / (f.in + f.out))));
}

double calx_init_calculate_gain(calx_nonlinearity nonlinearity, double param)
{
  switch (nonlinearity) {
    case CALX_NONLINEARITY_LINEAR:
    case CALX_NONLINEARITY_SIGMOID: return 1;
    case CALX_NONLINEARITY_TANH: return 5.0 / 3;
    case CALX_NONLINEARITY_RELU: return sqrt(2.0);
    case CALX_NONLINEARITY_LEAKY_RELU: return sqrt(2 / (1 + param * param));
    case CALX_NONLINEARITY_SELU: return 0.75;
    default: return (double)NAN;
  }
}

// gain / sqrt(fan), with t begun; negative: the scope has the error.
static double kaiming(const char *call, calx_tensor *t,
                      const calx_kaiming_options *options)
{
  calx_kaiming_options o;
  calx_status *status = cx_options_take(call, options, &o, sizeof o);
  double gain = calx_init_calculate_gain(o.nonlinearity, o.a);
  if (status == NULL && (isnan(gain) || (unsigned)o.mode > CALX_FAN_OUT)) {
    status = cx_invalid(
        "%s: mode %d, nonlinearity %d and a = %g: known ones "
        "are wanted",
        call, (int)o.mode, (int)o.nonlinearity, o.a);
  }
  if (status != NULL) {
    cx_lazy_scope_pin(status);
    return -1;
  }
  if (!begin(call, t, 2, CALX_MAX_RANK)) return -1;
  fans f = fans_of(t);
  double fan = o.mode == CALX_FAN_OUT ? f.out : f.in;
  return fan > 0 ? gain / sqrt(fan) : 0;
}

void calx_init_kaiming_uniform_with(calx_tensor *t,
                                    const calx_kaiming_options *options)
{
  double std = kaiming("init_kaiming_uniform", t, options);
  double bound = sqrt(3.0) * std;
  if (std >= 0) end(t, uniform(t, -bound, bound));
}

void calx_init_kaiming_normal_with(calx_tensor *t,
                                   const calx_kaiming_options *options)
{
  double std = kaiming("init_kaiming_normal", t, options);
  if (std >= 0) end(t, normal(t, 0, std));
}

// ---- sparse -----------------------------------------------------------------

void calx_init_sparse(calx_tensor *t, double sparsity, double std)
{
  if (!holds("init_sparse", sparsity >= 0 && sparsity <= 1 && std >= 0,
             "a sparsity in [0, 1] and a deviation of at least 0 are wanted") ||
      !begin("init_sparse", t, 2, 2)) {
    return;
  }
  // An element's index in the order of its column's draws.
  calx_sort_options o = { .size = sizeof o, .dim = INT32_MIN };
  calx_tensor *order =
      calx_argsort_with(calx_argsort_with(uniform(t, 0, 1), &o), &o);
  int64_t zeros = (int64_t)ceil(sparsity * (double)calx_tensor_dim(t, 0));
  calx_tensor *kept = calx_ge(order, calx_scalar_int(zeros));
  end(t, calx_where(kept, normal(t, 0, std), calx_scalar(0)));
}

// ---- orthogonal -------------------------------------------------------------

static double dot(const double *a, const double *b, size_t n)
{
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

// Makes `count` rows of n orthonormal, by Gram and Schmidt's process; twice,
// since once loses orthogonality where rows are almost parallel.
static void orthonormalise(double *rows, size_t count, size_t n)
{
  for (size_t i = 0; i < count; i++) {
    double *row = rows + i * n;
    for (int twice = 0; twice < 2; twice++) {
      for (size_t k = 0; k < i; k++) {
        const double *other = rows + k * n;
        double part = dot(row, other, n);
        for (size_t j = 0; j < n; j++) row[j] -= part * other[j];
      }
    }
    double norm = sqrt(dot(row, row, n));
    for (size_t j = 0; j < n && norm > 0; j++) row[j] /= norm;
  }
}

// The draw z (count, n), orthonormal and times gain, in z's memory.
static calx_status *orthogonal(double *values, calx_tensor *z, size_t count,
                               size_t n, double gain)
{
  CALX_TRY(calx_tensor_read(z, values, count * n * sizeof *values));
  orthonormalise(values, count, n);
  for (size_t i = 0; i < count * n; i++) values[i] *= gain;
  return NULL;
}

void calx_init_orthogonal(calx_tensor *t, double gain)
{
  if (!holds("init_orthogonal", isfinite(gain), "a finite gain is wanted") ||
      !begin("init_orthogonal", t, 2, CALX_MAX_RANK)) {
    return;
  }
  int64_t rows = calx_tensor_dim(t, 0), all = calx_tensor_numel(t);
  int64_t cols = rows != 0 ? all / rows : 0;
  bool tall = rows > cols;  // its columns are made orthogonal
  calx_dims shape = tall ? CALX_SHAPE(cols, rows) : CALX_SHAPE(rows, cols);
  calx_create_options o = draws_of(t);
  o.dtype = CALX_F64;
  calx_tensor *z = cx_ops_randn_common(shape, &o);
  double *values = cx_calloc((size_t)all + 1, sizeof *values);
  calx_status *status = values == NULL
                            ? cx_out_of_memory()
                            : orthogonal(values, z, (size_t)shape.values[0],
                                         (size_t)shape.values[1], gain);
  if (status == NULL) {
    z = calx_tensor_from(values, CALX_F64, shape);
    z = calx_to(z, calx_tensor_device(t));
    if (tall) z = calx_transpose(z, 0, 1);
    z = calx_reshape(z, calx_tensor_shape(t));
    end(t, z);
  } else {
    cx_lazy_scope_pin(status);
    cx_lazy_no_grad_end();
  }
  cx_free(values);
}
