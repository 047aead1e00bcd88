// metrics/perplexity: how well a language model predicts a text.
#include "base/dtype.h"
#include "base/options.h"
#include "lazy/lazy.h"
#include "metrics/count.h"
#include "metrics/task.h"

static calx_status *check(const calx_metric *m, const calx_tensor *preds,
                          const calx_tensor *target)
{
  const calx_dims p = calx_tensor_shape(preds), y = calx_tensor_shape(target);
  if (p.count != 3 || y.count != 2 || p.values[0] != y.values[0] ||
      p.values[1] != y.values[1] ||
      !cx_dtype_is_float(calx_tensor_dtype(preds)) ||
      !cx_dtype_is_int(calx_tensor_dtype(target))) {
    return cx_invalid(
        "%s: `preds` is expected to be floating, [batch_size, seq_len, "
        "vocab_size], and `target` integers, [batch_size, seq_len], but got "
        "%s and %s",
        m->name, cx_graph_shape_str(cx_lazy_tensor_shape(preds)),
        cx_graph_shape_str(cx_lazy_tensor_shape(target)));
  }
  return NULL;
}

enum { LOG_PROBS, COUNT, BAD };

static void update(const calx_metric *m, calx_tensor *preds,
                   calx_tensor *target, calx_tensor **out)
{
  cx_metrics_task t = *(const cx_metrics_task *)m->self;
  t.n = calx_tensor_dim(preds, 2);
  const cx_metrics_rows r = cx_metrics_targets(&t, target);
  calx_tensor *log_probs = calx_log_softmax(cx_metrics_number(preds), 2);
  const int64_t words[] = { calx_tensor_numel(target), t.n };
  log_probs = calx_reshape(log_probs, calx_dims_of(words, 2));
  calx_tensor *index = calx_where(r.valid, r.target, calx_scalar_int(0));
  calx_tensor *of_target =
      calx_squeeze(calx_gather(log_probs, 1, calx_unsqueeze(index, 1)), 1);
  of_target = calx_where(r.valid, of_target, calx_scalar(0));
  out[LOG_PROBS] =
      calx_neg(calx_to_dtype(calx_sum_with(of_target, NULL), CALX_F64));
  out[COUNT] = cx_metrics_count(r.valid);
  out[BAD] = r.bad;
}

static calx_status *verify(const calx_metric *m, const cx_metrics_totals *t)
{
  const double bad = t->states[BAD].values[0];
  if (bad == 0) return NULL;
  return cx_invalid(
      "%s: Detected %.0f values in `target` that are no word of "
      "`preds`: they are negative, or not below vocab_size",
      m->name, bad);
}

static calx_tensor *value(const calx_metric *m, calx_tensor *const *states)
{
  (void)m;
  return calx_exp(calx_div(states[LOG_PROBS], states[COUNT]));
}

calx_metric *calx_metric_perplexity_with(
    const calx_metric_perplexity_options *options)
{
  static const cx_metrics_kind kind = {
    .check = check, .update = update, .verify = verify, .value = value
  };
  calx_metric_perplexity_options o;
  calx_status *error = cx_options_take("perplexity", options, &o, sizeof o);
  cx_metrics_task t = { .kind = CX_METRICS_MULTICLASS };
  if (error == NULL) cx_metrics_task_ignore(&t, o.ignore_index);
  calx_metric *m = cx_metrics_new(&kind, "Perplexity", &t, sizeof t, error);
  cx_metrics_add_state(m, "total_log_probs", CX_METRICS_SUM, CALX_F64,
                       calx_dims_of(NULL, 0));
  cx_metrics_add_state(m, "count", CX_METRICS_SUM, CALX_I64,
                       calx_dims_of(NULL, 0));
  cx_metrics_add_bad(m);
  return m;
}
