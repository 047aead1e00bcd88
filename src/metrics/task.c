// metrics/task: the options of classification metrics, and whether what they
// are given fits.
#include "metrics/task.h"

#include "base/dtype.h"
#include "base/options.h"
#include "lazy/lazy.h"

// ---- options ----------------------------------------------------------------

void cx_metrics_task_ignore(cx_metrics_task *t, int64_t ignore_index)
{
  t->ignores = ignore_index != 0;
  t->ignore_index = ignore_index == INT64_MIN ? 0 : ignore_index;
}

calx_status *cx_metrics_average_take(const char *what, const char *text,
                                     cx_metrics_average otherwise,
                                     cx_metrics_average *out)
{
  static const char *const allowed[] = { "micro", "macro", "weighted", "none",
                                         NULL };
  int at;
  CALX_TRY(cx_metrics_choose(what, "average", text, allowed, &at));
  *out = text == NULL ? otherwise : (cx_metrics_average)at;
  return NULL;
}

calx_status *cx_metrics_task_take(const cx_metrics_task_options *o,
                                  cx_metrics_task *out)
{
  static const char *const allowed[] = { "binary", "multiclass", "multilabel",
                                         NULL };
  int kind;
  CALX_TRY(cx_metrics_choose(o->what, "task", o->task != NULL ? o->task : "",
                             allowed, &kind));
  const bool classes = kind == CX_METRICS_MULTICLASS;
  *out = (cx_metrics_task){ .kind = (cx_metrics_task_kind)kind,
                            .n = classes ? o->num_classes : o->num_labels,
                            .threshold = cx_or_default(o->threshold, 0.5) };
  cx_metrics_task_ignore(out, o->ignore_index);
  if (kind == CX_METRICS_BINARY) {
    out->n = 1;
  } else if (out->n < 2) {
    return cx_invalid(
        "%s: Expected argument `num_%s` to be an integer larger than 1, but "
        "got %lld",
        o->what, classes ? "classes" : "labels", (long long)out->n);
  }
  if (out->threshold >= 0 && out->threshold <= 1) return NULL;
  return cx_invalid(
      "%s: Expected argument `threshold` to be a float in the [0,1] range, but "
      "got %g",
      o->what, out->threshold);
}

// ---- tensors ----------------------------------------------------------------

static const char *shape_of(const calx_tensor *t)
{
  return cx_graph_shape_str(cx_lazy_tensor_shape(t));
}

static calx_status *check_types(const calx_metric *m, const calx_tensor *preds,
                                const calx_tensor *target, bool scores)
{
  const cx_metrics_task *t = m->self;
  const calx_dtype p = calx_tensor_dtype(preds), y = calx_tensor_dtype(target);
  if (cx_dtype_is_complex(y) ||
      (cx_dtype_is_float(y) && (scores || t->kind == CX_METRICS_MULTICLASS))) {
    return cx_invalid(
        "%s: Expected argument `target` to be an int or long tensor with "
        "ground truth labels, but got %s",
        m->name, shape_of(target));
  }
  if (cx_dtype_is_complex(p) || (scores && !cx_dtype_is_float(p))) {
    return cx_invalid(
        "%s: Expected argument `preds` to be a floating tensor with "
        "probability or logit scores, but got %s",
        m->name, shape_of(preds));
  }
  return NULL;
}

// Whether all dimensions are equal, but for preds' dimension 1 where it has one
// more.
static bool dims_fit(const calx_tensor *preds, const calx_tensor *target)
{
  const calx_dims p = calx_tensor_shape(preds), y = calx_tensor_shape(target);
  if (p.count < y.count || p.count > y.count + 1) return false;
  for (size_t i = 0; i < y.count; i++) {
    const size_t at = i > 0 && p.count > y.count ? i + 1 : i;
    if (p.values[at] != y.values[i]) return false;
  }
  return true;
}

static calx_status *check_multiclass(const calx_metric *m,
                                     const calx_tensor *preds,
                                     const calx_tensor *target, bool scores)
{
  const cx_metrics_task *t = m->self;
  const size_t more = calx_tensor_rank(preds) - calx_tensor_rank(target);
  const bool is_float = cx_dtype_is_float(calx_tensor_dtype(preds));
  if (!dims_fit(preds, target) || (more == 1) != is_float ||
      calx_tensor_rank(target) < more) {
    return cx_invalid(
        "%s: %s `preds` should be %s(N, C, ...) scores, and `target` (N, ...), "
        "but got %s and %s",
        m->name, scores ? "" : "Either",
        scores ? "" : "(N, ...) integers as `target`, or ", shape_of(preds),
        shape_of(target));
  }
  if (more == 0 || calx_tensor_dim(preds, 1) == t->n) return NULL;
  return cx_invalid(
      "%s: Expected `preds.shape[1]` to be equal to the number of classes but "
      "got %lld and %lld",
      m->name, (long long)calx_tensor_dim(preds, 1), (long long)t->n);
}

calx_status *cx_metrics_task_check(const calx_metric *m,
                                   const calx_tensor *preds,
                                   const calx_tensor *target, bool scores)
{
  const cx_metrics_task *t = m->self;
  CALX_TRY(check_types(m, preds, target, scores));
  if (t->kind == CX_METRICS_MULTICLASS) {
    return check_multiclass(m, preds, target, scores);
  }
  CALX_TRY(cx_metrics_check_same_shape(m, preds, target));
  if (t->kind == CX_METRICS_BINARY || calx_tensor_dim(preds, 1) == t->n) {
    return NULL;
  }
  return cx_invalid(
      "%s: Expected both `target.shape[1]` and `preds.shape[1]` to be equal to "
      "the number of labels but got %s and expected %lld",
      m->name, shape_of(preds), (long long)t->n);
}

// ---- labels out of range ----------------------------------------------------

void cx_metrics_add_bad(calx_metric *m)
{
  cx_metrics_add_state(m, "bad", CX_METRICS_SUM, CALX_I64,
                       calx_dims_of(NULL, 0));
}

calx_status *cx_metrics_verify_bad(const calx_metric *m,
                                   const cx_metrics_totals *t)
{
  const cx_metrics_task *task = m->self;
  const double count = t->states[m->n_states - 1].values[0];
  if (count == 0) return NULL;
  const bool classes = task->kind == CX_METRICS_MULTICLASS;
  return cx_invalid(
      "%s: Detected %.0f values in `target` or `preds` that are none of the "
      "labels 0 to %lld%s",
      m->name, count, (long long)(classes ? task->n - 1 : 1),
      task->ignores ? " and not the ignore_index" : "");
}
