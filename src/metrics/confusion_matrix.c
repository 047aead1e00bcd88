// metrics/confusion_matrix: how often each target was predicted as each class.
#include "base/options.h"
#include "metrics/count.h"
#include "metrics/task.h"
#include "ops/ops.h"

typedef enum normalization {
  AS_COUNTED,
  BY_TRUE,
  BY_PRED,
  BY_ALL
} normalization;

typedef struct confusion_matrix {
  cx_metrics_task task;
  normalization normalize;
} confusion_matrix;

// ---- a batch ----------------------------------------------------------------

// (2, 2), (C, C) or (L, 2, 2).
static calx_dims shape_of(const cx_metrics_task *t)
{
  const int64_t side = t->kind == CX_METRICS_MULTICLASS ? t->n : 2;
  const int64_t sizes[] = { t->n, side, side };
  return t->kind == CX_METRICS_MULTILABEL ? calx_dims_of(sizes, 3)
                                          : calx_dims_of(sizes + 1, 2);
}

static calx_status *check(const calx_metric *m, const calx_tensor *preds,
                          const calx_tensor *target)
{
  return cx_metrics_task_check(m, preds, target, false);
}

// Each sample is the index of its element of the matrix.
static void update(const calx_metric *m, calx_tensor *preds,
                   calx_tensor *target, calx_tensor **out)
{
  const cx_metrics_task *t = m->self;
  const calx_dims shape = shape_of(t);
  const int64_t side = shape.values[shape.count - 1];
  const cx_metrics_rows r =
      cx_metrics_labels(t, preds, target, 1, CX_METRICS_LOGITS_OF_VALID);
  calx_tensor *row = calx_to_dtype(r.target, CALX_I64);
  calx_tensor *index =
      cx_ops_plus(calx_mul(row, calx_scalar_int(side)), r.preds);
  if (t->kind == CX_METRICS_MULTILABEL) {
    const calx_create_options whole = { .size = sizeof whole,
                                        .dtype = CALX_I64,
                                        .device = calx_tensor_device(preds) };
    calx_tensor *first = calx_arange_with(0, (double)(t->n * side * side),
                                          (double)(side * side), &whole);
    index = cx_ops_plus(index, first);
  }
  const int64_t elements = side * side * (shape.count == 3 ? t->n : 1);
  out[0] = calx_reshape(cx_metrics_histogram(index, r.valid, elements), shape);
  out[1] = r.bad;
}

// ---- the value --------------------------------------------------------------

static calx_tensor *value(const calx_metric *m, calx_tensor *const *states)
{
  const confusion_matrix *c = m->self;
  if (c->normalize == AS_COUNTED) return states[0];
  calx_reduce_options along = { .size = sizeof along, .keepdim = true };
  if (c->normalize != BY_PRED) along.dims.values[along.dims.count++] = -1;
  if (c->normalize != BY_TRUE) along.dims.values[along.dims.count++] = -2;
  return cx_metrics_ratio(states[0], calx_sum_with(states[0], &along));
}

// ---- making -----------------------------------------------------------------

static const cx_metrics_kind kind = { .is_always_f32 = true,
                                      .check = check,
                                      .update = update,
                                      .verify = cx_metrics_verify_bad,
                                      .value = value };

static calx_status *take(const calx_metric_confusion_matrix_options *given,
                         confusion_matrix *c)
{
  static const char *const allowed[] = { "none", "true", "pred", "all", NULL };
  calx_metric_confusion_matrix_options o;
  CALX_TRY(cx_options_take("confusion_matrix", given, &o, sizeof o));
  const cx_metrics_task_options task = { .what = "confusion_matrix",
                                         .task = o.task,
                                         .num_classes = o.num_classes,
                                         .num_labels = o.num_labels,
                                         .ignore_index = o.ignore_index,
                                         .threshold = o.threshold };
  CALX_TRY(cx_metrics_task_take(&task, &c->task));
  int at;
  CALX_TRY(cx_metrics_choose("confusion_matrix", "normalize", o.normalize,
                             allowed, &at));
  c->normalize = (normalization)at;
  return NULL;
}

calx_metric *calx_metric_confusion_matrix_with(
    const calx_metric_confusion_matrix_options *options)
{
  static const char *const names[] = { "BinaryConfusionMatrix",
                                       "MulticlassConfusionMatrix",
                                       "MultilabelConfusionMatrix" };
  confusion_matrix c = { .normalize = AS_COUNTED };
  calx_status *error = take(options, &c);
  calx_metric *m =
      cx_metrics_new(&kind, names[c.task.kind], &c, sizeof c, error);
  cx_metrics_add_state(m, "confmat", CX_METRICS_SUM, CALX_I64,
                       shape_of(&c.task));
  cx_metrics_add_bad(m);
  return m;
}
