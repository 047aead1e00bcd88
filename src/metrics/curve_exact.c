// metrics/curve_exact: AUROC and average precision with a threshold at each
// score: scores in descending order, where equal ones are one threshold.
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "metrics/curve.h"

typedef struct curve_sample {
  double score;
  bool is_positive;
} curve_sample;

// The greatest first, and NaN before all.
static int by_score(const void *a, const void *b)
{
  const double x = ((const curve_sample *)a)->score,
               y = ((const curve_sample *)b)->score;
  if (isnan(x) || isnan(y)) return isnan(y) - isnan(x);
  return (x < y) - (x > y);
}

// ---- one curve --------------------------------------------------------------

typedef struct curve_points {
  double tps, fps;   // at the last threshold: of all samples
  double area;       // of true over false positives
  double precision;  // the sum of precisions, each times its true positives
} curve_points;

static curve_points walk(curve_sample *samples, size_t n)
{
  curve_points p = { 0 };
  if (n > 0) qsort(samples, n, sizeof *samples, by_score);
  for (size_t i = 0; i < n;) {
    const double tps = p.tps, fps = p.fps, score = samples[i].score;
    for (; i < n && by_score(&samples[i], &(curve_sample){ score, false }) == 0;
         i++) {
      samples[i].is_positive ? p.tps++ : p.fps++;
    }
    p.area += (p.fps - fps) * (p.tps + tps) / 2;
    p.precision += (p.tps - tps) * p.tps / (p.tps + p.fps);
  }
  return p;
}

// has_none: no target at all is a class other than the first.
static double value_of(const cx_metrics_curve *c, const curve_points *p,
                       bool has_none)
{
  if (!c->is_precision) {
    return p->tps > 0 && p->fps > 0 ? p->area / (p->tps * p->fps) : 0;
  }
  if (p->tps > 0) return p->precision / p->tps;
  return has_none ? 0 : (double)NAN;
}

// ---- all columns ------------------------------------------------------------

// 1, 0, or -1 of what does not count.
static double label_of(const cx_metrics_curve *c, const cx_metrics_totals *t,
                       size_t row, size_t column)
{
  const double *labels = t->states[1].values;
  if (c->task.kind != CX_METRICS_MULTICLASS) {
    return labels[row * (size_t)c->task.n + column];
  }
  return labels[row] < 0 ? -1 : labels[row] == (double)column;
}

// Appends a column's samples; how many they are.
static size_t gather(const cx_metrics_curve *c, const cx_metrics_totals *t,
                     size_t column, curve_sample *out)
{
  const size_t columns = (size_t)c->task.n, rows = t->states[0].count / columns;
  size_t n = 0;
  for (size_t i = 0; i < rows; i++) {
    const double label = label_of(c, t, i, column);
    if (label < 0) continue;
    out[n++] =
        (curve_sample){ t->states[0].values[i * columns + column], label == 1 };
  }
  return n;
}

static double together(const cx_metrics_curve *c, const cx_metrics_totals *t,
                       curve_sample *samples)
{
  size_t n = 0;
  for (size_t k = 0; k < (size_t)c->task.n; k++) {
    n += gather(c, t, k, samples + n);
  }
  const curve_points p = walk(samples, n);
  return value_of(c, &p, true);
}

// Of each column, and how many positives it has.
static void each(const cx_metrics_curve *c, const cx_metrics_totals *t,
                 curve_sample *samples, double *values, double *positives)
{
  bool has_none = true;
  for (size_t i = 0; i < t->states[1].count; i++) {
    has_none &=
        c->task.kind != CX_METRICS_MULTICLASS || t->states[1].values[i] <= 0;
  }
  for (size_t k = 0; k < (size_t)c->task.n; k++) {
    const curve_points p = walk(samples, gather(c, t, k, samples));
    values[k] = value_of(c, &p, has_none);
    positives[k] = p.tps;
  }
}

// The mean of those that are no NaN.
static double average(const cx_metrics_curve *c, const double *values,
                      const double *positives)
{
  double sum = 0, weight = 0, classes = 0;
  for (size_t k = 0; k < (size_t)c->task.n; k++) {
    if (isnan(values[k])) continue;
    const double w = c->average == CX_METRICS_MACRO ? 1 : positives[k];
    sum += w * values[k];
    weight += w;
    classes++;
  }
  if (classes == 0 && c->average == CX_METRICS_MACRO) return (double)NAN;
  return weight > 0 ? sum / weight : 0;
}

calx_status *cx_metrics_curve_exact(const calx_metric *m,
                                    const cx_metrics_totals *t,
                                    calx_tensor **out)
{
  const cx_metrics_curve *c = m->self;
  if (t->states[0].count == 0) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "%s: No samples to concatenate: no rank had any in its "
                    "updates",
                    m->name);
  }
  const size_t n = (size_t)c->task.n;
  curve_sample *samples = cx_calloc(t->states[0].count, sizeof *samples);
  double *values = cx_calloc(2 * n, sizeof *values);
  if (samples == NULL || values == NULL) {
    cx_free(samples);
    cx_free(values);
    return cx_out_of_memory();
  }
  if (c->average == CX_METRICS_MICRO) {
    values[0] = together(c, t, samples);
  } else {
    each(c, t, samples, values, values + n);
  }
  const bool one = c->average != CX_METRICS_NONE;
  if (one && c->average != CX_METRICS_MICRO) {
    values[0] = average(c, values, values + n);
  }
  *out = cx_metrics_upload(m->device, CALX_F32,
                           calx_dims_of(&c->task.n, one ? 0 : 1), values, one);
  cx_free(samples);
  cx_free(values);
  return NULL;
}
