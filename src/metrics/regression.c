// metrics/regression: errors of numbers: mean squared, mean absolute, R2 score.
#include "base/dtype.h"
#include "base/options.h"
#include "metrics/count.h"
#include "metrics/metrics.h"
#include "ops/ops.h"

// ---- what is given ----------------------------------------------------------

static calx_status *check(const calx_metric *m, const calx_tensor *preds,
                          const calx_tensor *target)
{
  CALX_TRY(cx_metrics_check_same_shape(m, preds, target));
  if (!cx_dtype_is_complex(calx_tensor_dtype(preds)) &&
      !cx_dtype_is_complex(calx_tensor_dtype(target))) {
    return NULL;
  }
  return cx_invalid("%s: complex numbers have no order: real ones are wanted",
                    m->name);
}

static calx_tensor *error_of(calx_tensor *preds, calx_tensor *target)
{
  return cx_ops_minus(cx_metrics_number(preds), cx_metrics_number(target));
}

static calx_tensor *total(calx_tensor *x)
{
  return calx_to_dtype(calx_sum_with(x, NULL), CALX_F64);
}

// A number that is no part of the program. i64 ().
static calx_tensor *how_many(const calx_tensor *like, int64_t n)
{
  const calx_create_options o = { .size = sizeof o,
                                  .dtype = CALX_I64,
                                  .device = calx_tensor_device(like) };
  return calx_full_with(calx_dims_of(NULL, 0), (double)n, &o);
}

static void add_sum(calx_metric *m, const char *name)
{
  cx_metrics_add_state(m, name, CX_METRICS_SUM, CALX_F64,
                       calx_dims_of(NULL, 0));
}

static void add_total(calx_metric *m)
{
  cx_metrics_add_state(m, "total", CX_METRICS_SUM, CALX_I64,
                       calx_dims_of(NULL, 0));
}

// ---- mean errors ------------------------------------------------------------

static void update_squared(const calx_metric *m, calx_tensor *preds,
                           calx_tensor *target, calx_tensor **out)
{
  (void)m;
  out[0] = total(calx_square(error_of(preds, target)));
  out[1] = how_many(preds, calx_tensor_numel(preds));
}

static void update_absolute(const calx_metric *m, calx_tensor *preds,
                            calx_tensor *target, calx_tensor **out)
{
  (void)m;
  out[0] = total(calx_abs(error_of(preds, target)));
  out[1] = how_many(preds, calx_tensor_numel(preds));
}

static calx_tensor *mean(const calx_metric *m, calx_tensor *const *states)
{
  const bool *root = m->self;
  calx_tensor *value = calx_div(states[0], states[1]);
  return *root ? calx_sqrt(value) : value;
}

static calx_metric *make_mean(const cx_metrics_kind *kind, const char *name,
                              const char *sum, bool root, calx_status *error)
{
  calx_metric *m = cx_metrics_new(kind, name, &root, sizeof root, error);
  add_sum(m, sum);
  add_total(m);
  return m;
}

calx_metric *calx_metric_mean_squared_error_with(
    const calx_metric_mean_squared_error_options *options)
{
  static const cx_metrics_kind kind = { .check = check,
                                        .update = update_squared,
                                        .value = mean };
  calx_metric_mean_squared_error_options o;
  calx_status *error =
      cx_options_take("mean_squared_error", options, &o, sizeof o);
  return make_mean(&kind, "MeanSquaredError", "sum_squared_error",
                   error == NULL && o.not_squared, error);
}

calx_metric *calx_metric_mean_absolute_error(void)
{
  static const cx_metrics_kind kind = { .check = check,
                                        .update = update_absolute,
                                        .value = mean };
  return make_mean(&kind, "MeanAbsoluteError", "sum_abs_error", false, NULL);
}

// ---- R2 score ---------------------------------------------------------------

typedef enum multioutput {
  UNIFORM_AVERAGE,
  VARIANCE_WEIGHTED,
  RAW_VALUES
} multioutput;

typedef struct r2_score {
  int64_t adjusted;
  multioutput multioutput;
} r2_score;

enum { SUM_SQUARED, SUM, RESIDUAL, TOTAL };

static calx_status *check_r2(const calx_metric *m, const calx_tensor *preds,
                             const calx_tensor *target)
{
  CALX_TRY(check(m, preds, target));
  const size_t rank = calx_tensor_rank(preds);
  if (rank == 1 || rank == 2) return NULL;
  return cx_invalid(
      "%s: Expected both prediction and target to be 1D or 2D tensors, but "
      "received tensors with dimension %zu",
      m->name, rank);
}

// In f64: the variance is a small difference of large sums.
static void update_r2(const calx_metric *m, calx_tensor *preds,
                      calx_tensor *target, calx_tensor **out)
{
  (void)m;
  preds = calx_to_dtype(preds, CALX_F64);
  target = calx_to_dtype(target, CALX_F64);
  out[SUM_SQUARED] = cx_metrics_sum_rows(calx_square(target));
  out[SUM] = cx_metrics_sum_rows(target);
  out[RESIDUAL] = cx_metrics_sum_rows(calx_square(error_of(preds, target)));
  out[TOTAL] = how_many(preds, calx_tensor_dim(preds, 0));
}

static calx_status *verify_r2(const calx_metric *m, const cx_metrics_totals *t)
{
  const r2_score *r = m->self;
  const double n = t->states[TOTAL].values[0];
  if (n < 2) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "%s: Needs at least two samples to calculate r2 score.",
                    m->name);
  }
  if (r->adjusted == 0 || (double)r->adjusted < n - 1) return NULL;
  cx_metrics_warn(
      m, (double)r->adjusted > n - 1
             ? "More independent regressions than data points in adjusted r2 "
               "score. Falls back to standard r2 score."
             : "Division by zero in adjusted r2 score. Falls back to standard "
               "r2 score.");
  return NULL;
}

// Whether a sum is none that rounding leaves.
static calx_tensor *differs(calx_tensor *sum)
{
  return calx_gt(calx_abs(sum), calx_scalar(1e-4));
}

static calx_tensor *value_r2(const calx_metric *m, calx_tensor *const *states)
{
  const r2_score *r = m->self;
  calx_tensor *n = calx_to_dtype(states[TOTAL], CALX_F64),
              *rss = states[RESIDUAL];
  calx_tensor *one = calx_scalar(1), *mean_of = calx_div(states[SUM], n);
  calx_tensor *tss =
      cx_ops_minus(states[SUM_SQUARED], calx_mul(states[SUM], mean_of));
  calx_tensor *score = cx_ops_minus(one, calx_div(rss, tss));
  score = calx_where(differs(tss), score, calx_scalar(0));
  score = calx_where(differs(rss), score, one);
  if (r->multioutput == UNIFORM_AVERAGE) score = calx_mean_with(score, NULL);
  if (r->multioutput == VARIANCE_WEIGHTED) {
    score = calx_div(calx_sum_with(calx_mul(tss, score), NULL),
                     calx_sum_with(tss, NULL));
  }
  if (r->adjusted == 0) return score;
  calx_tensor *free_ones =
      cx_ops_minus(n, calx_scalar((double)(r->adjusted + 1)));
  calx_tensor *adjusted = calx_div(
      calx_mul(cx_ops_minus(one, score), cx_ops_minus(n, one)), free_ones);
  return calx_where(calx_gt(free_ones, calx_scalar(0)),
                    cx_ops_minus(one, adjusted), score);
}

static calx_status *take_r2(const calx_metric_r2_score_options *given,
                            r2_score *r)
{
  static const char *const allowed[] = { "uniform_average", "variance_weighted",
                                         "raw_values", NULL };
  calx_metric_r2_score_options o;
  CALX_TRY(cx_options_take("r2_score", given, &o, sizeof o));
  int at;
  CALX_TRY(cx_metrics_choose("r2_score", "multioutput", o.multioutput, allowed,
                             &at));
  *r = (r2_score){ .adjusted = o.adjusted, .multioutput = (multioutput)at };
  if (o.adjusted >= 0) return NULL;
  return cx_invalid(
      "r2_score: `adjusted` parameter should be an integer larger or equal to "
      "0, but got %lld",
      (long long)o.adjusted);
}

calx_metric *calx_metric_r2_score_with(
    const calx_metric_r2_score_options *options)
{
  static const cx_metrics_kind kind = { .check = check_r2,
                                        .update = update_r2,
                                        .verify = verify_r2,
                                        .value = value_r2 };
  r2_score r = { .adjusted = 0 };
  calx_status *error = take_r2(options, &r);
  calx_metric *m = cx_metrics_new(&kind, "R2Score", &r, sizeof r, error);
  add_sum(m, "sum_squared_error");
  add_sum(m, "sum_error");
  add_sum(m, "residual");
  add_total(m);
  return m;
}
