// metrics/rows: a classification batch as rows of labels or scores.
#include "base/dtype.h"
#include "metrics/count.h"
#include "metrics/task.h"
#include "ops/ops.h"

static calx_tensor *whole(int64_t value)
{
  return calx_scalar_int(value);
}

// (N, n, …) as (N …, n); a binary one, of any shape, as (N, 1).
static calx_tensor *as_rows(const cx_metrics_task *t, calx_tensor *x)
{
  if (t->kind != CX_METRICS_BINARY) x = calx_movedim(x, 1, -1);
  const int64_t rows[] = { calx_tensor_numel(x) / t->n, t->n };
  return calx_reshape(x, calx_dims_of(rows, 2));
}

static calx_tensor *flat(calx_tensor *x)
{
  const int64_t n = calx_tensor_numel(x);
  return calx_reshape(x, calx_dims_of(&n, 1));
}

// ---- labels -----------------------------------------------------------------

static calx_tensor *in_range(const cx_metrics_task *t, calx_tensor *labels)
{
  if (t->kind == CX_METRICS_MULTICLASS) {
    return calx_logical_and(calx_ge(labels, whole(0)),
                            calx_lt(labels, whole(t->n)));
  }
  return calx_logical_or(calx_eq(labels, whole(0)), calx_eq(labels, whole(1)));
}

cx_metrics_rows cx_metrics_targets(const cx_metrics_task *t,
                                   calx_tensor *target)
{
  cx_metrics_rows r = { 0 };
  r.target =
      t->kind == CX_METRICS_MULTICLASS ? flat(target) : as_rows(t, target);
  calx_tensor *fits = in_range(t, r.target);
  calx_tensor *counts =
      t->ignores ? calx_ne(r.target, whole(t->ignore_index)) : NULL;
  calx_tensor *bad = calx_logical_not(fits);
  r.valid = fits;
  if (counts != NULL) {
    r.valid = calx_logical_and(fits, counts);
    bad = calx_logical_and(bad, counts);
  }
  r.bad = cx_metrics_count(bad);
  return r;
}

// preds are labels already: those out of range are bad, too.
static void take_labels(const cx_metrics_task *t, calx_tensor *labels,
                        cx_metrics_rows *r)
{
  calx_tensor *fits = in_range(t, labels);
  calx_tensor *bad = calx_logical_and(calx_logical_not(fits), r->valid);
  r->bad = cx_ops_plus(r->bad, cx_metrics_count(bad));
  r->valid = calx_logical_and(r->valid, fits);
  r->preds = t->kind == CX_METRICS_MULTICLASS ? calx_to_dtype(labels, CALX_I64)
                                              : calx_eq(labels, whole(1));
}

// ---- scores -----------------------------------------------------------------

static bool is_float(const calx_tensor *x)
{
  return cx_dtype_is_float(calx_tensor_dtype(x));
}

// Where a score is outside [0, 1], all are logits. valid: as the rows, or one
// of each row; NULL: all.
static calx_tensor *probabilities(const cx_metrics_task *t, calx_tensor *rows,
                                  calx_tensor *valid)
{
  calx_tensor *outside =
      calx_logical_or(calx_lt(rows, whole(0)), calx_gt(rows, whole(1)));
  const bool classes = t->kind == CX_METRICS_MULTICLASS;
  if (valid != NULL) {
    outside =
        calx_logical_and(outside, classes ? calx_unsqueeze(valid, 1) : valid);
  }
  return calx_where(calx_any_with(outside, NULL),
                    classes ? calx_softmax(rows, 1) : calx_sigmoid(rows), rows);
}

cx_metrics_rows cx_metrics_scores(const cx_metrics_task *t, calx_tensor *preds,
                                  calx_tensor *target)
{
  cx_metrics_rows r = cx_metrics_targets(t, target);
  const bool of_valid = t->kind != CX_METRICS_MULTILABEL && t->ignores;
  r.preds = probabilities(t, as_rows(t, cx_metrics_number(preds)),
                          of_valid ? r.valid : NULL);
  return r;
}

// The greatest score's class; of top_k the target, where it is among so many.
static calx_tensor *classes_of(const cx_metrics_task *t, calx_tensor *scores,
                               calx_tensor *target, int64_t top_k)
{
  const calx_reduce_options along = { .size = sizeof along,
                                      .dims = { .count = 1, .values = { 1 } } };
  scores = as_rows(t, scores);
  if (top_k == 1) return calx_argmax_with(scores, &along);
  calx_tensor *best = NULL;
  const calx_topk_options o = { .size = sizeof o, .out_indices = &best };
  (void)calx_topk_with(scores, top_k, &o);
  calx_tensor *hit =
      calx_any_with(calx_eq(best, calx_unsqueeze(target, 1)), &along);
  return calx_where(hit, calx_to_dtype(target, CALX_I64),
                    calx_select(best, 1, 0));
}

cx_metrics_rows cx_metrics_labels(const cx_metrics_task *t, calx_tensor *preds,
                                  calx_tensor *target, int64_t top_k,
                                  cx_metrics_logits logits)
{
  cx_metrics_rows r = cx_metrics_targets(t, target);
  const bool classes = t->kind == CX_METRICS_MULTICLASS;
  if (!is_float(preds)) {
    take_labels(t, classes ? flat(preds) : as_rows(t, preds), &r);
  } else if (classes) {
    r.preds = classes_of(t, preds, r.target, top_k);
  } else {
    const bool of_valid = logits == CX_METRICS_LOGITS_OF_VALID &&
                          t->kind == CX_METRICS_BINARY && t->ignores;
    calx_tensor *scores = probabilities(t, as_rows(t, cx_metrics_number(preds)),
                                        of_valid ? r.valid : NULL);
    r.preds = calx_gt(scores, calx_scalar(t->threshold));
  }
  return r;
}
