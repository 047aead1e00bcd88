// metrics/aggregation: the mean, sum, least and greatest of numbers.
#include "base/dtype.h"
#include "base/options.h"
#include "calx/creation.h"
#include "lazy/lazy.h"
#include "metrics/count.h"
#include "metrics/metrics.h"

typedef enum nan_strategy { WARN, IGNORE, FAIL, DISABLE } nan_strategy;

typedef struct aggregation {
  cx_metrics_reduction reduction;
  bool is_mean;
  nan_strategy nan;
} aggregation;

enum { VALUE, NANS, WEIGHT };  // the last one of a mean alone

// ---- what is given ----------------------------------------------------------

static bool broadcasts(calx_dims from, calx_dims to)
{
  if (from.count > to.count) return false;
  for (size_t i = 1; i <= from.count; i++) {
    const int64_t d = from.values[from.count - i];
    if (d != 1 && d != to.values[to.count - i]) return false;
  }
  return true;
}

static calx_status *check(const calx_metric *m, const calx_tensor *x,
                          const calx_tensor *weight)
{
  const aggregation *a = m->self;
  if (cx_dtype_is_complex(calx_tensor_dtype(x)) ||
      (weight != NULL && cx_dtype_is_complex(calx_tensor_dtype(weight)))) {
    return cx_invalid("%s: complex numbers are not aggregated", m->name);
  }
  if (weight == NULL) return NULL;
  if (!a->is_mean) {
    return cx_invalid("%s: target is not NULL: only MeanMetric has weights",
                      m->name);
  }
  if (broadcasts(calx_tensor_shape(weight), calx_tensor_shape(x))) return NULL;
  return cx_invalid("%s: weights %s do not broadcast to %s", m->name,
                    cx_graph_shape_str(cx_lazy_tensor_shape(weight)),
                    cx_graph_shape_str(cx_lazy_tensor_shape(x)));
}

// ---- a batch ----------------------------------------------------------------

static calx_tensor *reduce(cx_metrics_reduction reduction, calx_tensor *x)
{
  const calx_create_options o = { .size = sizeof o,
                                  .dtype = CALX_F64,
                                  .device = calx_tensor_device(x) };
  if (calx_tensor_numel(x) == 0) {
    return calx_full_with(calx_dims_of(NULL, 0), cx_metrics_first(reduction),
                          &o);
  }
  if (reduction == CX_METRICS_SUM) x = calx_sum_with(x, NULL);
  if (reduction == CX_METRICS_MIN) x = calx_amin_with(x, NULL);
  if (reduction == CX_METRICS_MAX) x = calx_amax_with(x, NULL);
  return calx_to_dtype(x, CALX_F64);
}

static void update(const calx_metric *m, calx_tensor *x, calx_tensor *weight,
                   calx_tensor **out)
{
  const aggregation *a = m->self;
  x = cx_metrics_number(x);
  weight = weight == NULL
               ? calx_ones_like_with(x, NULL)
               : calx_expand(cx_metrics_number(weight), calx_tensor_shape(x));
  calx_tensor *nan = calx_logical_or(calx_isnan(x), calx_isnan(weight));
  out[NANS] = cx_metrics_count(nan);
  if (a->nan != DISABLE) {  // a number that changes nothing, in its place
    x = calx_where(nan, calx_scalar(cx_metrics_first(a->reduction)), x);
    weight = calx_where(nan, calx_scalar(0), weight);
  }
  if (a->is_mean) {
    out[WEIGHT] = reduce(CX_METRICS_SUM, weight);
    x = calx_mul(x, weight);
  }
  out[VALUE] = reduce(a->reduction, x);
}

// ---- the value --------------------------------------------------------------

static calx_status *verify(const calx_metric *m, const cx_metrics_totals *t)
{
  const aggregation *a = m->self;
  if (t->states[NANS].values[0] == 0) return NULL;
  if (a->nan == FAIL) {
    return cx_invalid("%s: Encountered `nan` values in tensor", m->name);
  }
  if (a->nan == WARN) {
    cx_metrics_warn(m, "Encountered `nan` values in tensor. Will be removed.");
  }
  return NULL;
}

static calx_tensor *value(const calx_metric *m, calx_tensor *const *states)
{
  const aggregation *a = m->self;
  return a->is_mean ? calx_div(states[VALUE], states[WEIGHT]) : states[VALUE];
}

// ---- making -----------------------------------------------------------------

static calx_status *take(const char *what,
                         const calx_metric_aggregation_options *given,
                         nan_strategy *out)
{
  static const char *const allowed[] = { "warn", "ignore", "error", "disable",
                                         NULL };
  calx_metric_aggregation_options o;
  CALX_TRY(cx_options_take(what, given, &o, sizeof o));
  int at;
  CALX_TRY(
      cx_metrics_choose(what, "nan_strategy", o.nan_strategy, allowed, &at));
  *out = (nan_strategy)at;
  return NULL;
}

static calx_metric *make(const char *name, const char *state, aggregation a,
                         const calx_metric_aggregation_options *options)
{
  static const cx_metrics_kind kind = { .has_one_operand = true,
                                        .check = check,
                                        .update = update,
                                        .verify = verify,
                                        .value = value };
  const calx_dims number = calx_dims_of(NULL, 0);
  calx_status *error = take(name, options, &a.nan);
  calx_metric *m = cx_metrics_new(&kind, name, &a, sizeof a, error);
  cx_metrics_add_state(m, state, a.reduction, CALX_F64, number);
  cx_metrics_add_state(m, "nans", CX_METRICS_SUM, CALX_I64, number);
  if (!a.is_mean) return m;
  cx_metrics_add_state(m, "weight", CX_METRICS_SUM, CALX_F64, number);
  return m;
}

calx_metric *calx_metric_mean_with(
    const calx_metric_aggregation_options *options)
{
  const aggregation a = { .reduction = CX_METRICS_SUM, .is_mean = true };
  return make("MeanMetric", "mean_value", a, options);
}

calx_metric *calx_metric_sum_with(
    const calx_metric_aggregation_options *options)
{
  const aggregation a = { .reduction = CX_METRICS_SUM };
  return make("SumMetric", "sum_value", a, options);
}

calx_metric *calx_metric_min_with(
    const calx_metric_aggregation_options *options)
{
  const aggregation a = { .reduction = CX_METRICS_MIN };
  return make("MinMetric", "min_value", a, options);
}

calx_metric *calx_metric_max_with(
    const calx_metric_aggregation_options *options)
{
  const aggregation a = { .reduction = CX_METRICS_MAX };
  return make("MaxMetric", "max_value", a, options);
}
