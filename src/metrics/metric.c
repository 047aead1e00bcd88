// metrics/metric: a metric's life: updates, values, reset.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "calx/dist.h"
#include "lazy/lazy.h"
#include "metrics/metrics.h"

// ---- making and ending ------------------------------------------------------

static calx_metric no_memory = { .name = "" };

calx_metric *cx_metrics_new(const cx_metrics_kind *kind, const char *name,
                            const void *self, size_t size, calx_status *error)
{
  calx_metric *m = cx_calloc(1, sizeof *m);
  void *copy = cx_alloc(size);
  if (m == NULL || copy == NULL) {
    cx_free(m);
    cx_free(copy);
    calx_status_free(error);
    return &no_memory;
  }
  if (size > 0) memcpy(copy, self, size);
  *m =
      (calx_metric){ .kind = kind, .name = name, .self = copy, .error = error };
  if (error == NULL) m->device = cx_lazy_device_or_current(NULL);
  return m;
}

const char *calx_metric_name(const calx_metric *m)
{
  return m != NULL ? m->name : "";
}

const calx_status *calx_metric_error(const calx_metric *m)
{
  if (m == NULL) return cx_absent(CX_ABSENT_METRIC);
  return m == &no_memory ? cx_out_of_memory() : m->error;
}

// ---- states -----------------------------------------------------------------

double cx_metrics_first(cx_metrics_reduction reduction)
{
  if (reduction == CX_METRICS_MIN) return (double)INFINITY;
  return reduction == CX_METRICS_MAX ? -(double)INFINITY : 0;
}

calx_tensor *cx_metrics_upload(calx_device *device, calx_dtype dtype,
                               calx_dims shape, const double *values,
                               bool is_one)
{
  int64_t n;
  size_t bytes, size = calx_dtype_size(dtype);
  unsigned char *data = NULL;
  if (cx_dims_bytes(dtype, shape.values, shape.count, &n, &bytes)) {
    data = cx_alloc(bytes);
  }
  if (data == NULL) return cx_lazy_tensor_poison(cx_out_of_memory());
  for (int64_t i = 0; i < n; i++) {
    cx_store_double(dtype, data + (size_t)i * size, values[is_one ? 0 : i]);
  }
  calx_tensor *t = calx_to(calx_host_tensor(data, dtype, shape), device);
  cx_free(data);
  return t;
}

// Gives a state its first value, from the host, so that the first update is the
// program of all others. It keeps its tensor: a program's results are in the
// order in which their tensors were made. Nothing else may hold the value, or
// the first update could not donate it.
static calx_status *begin(const calx_metric *m, cx_metrics_state *s,
                          calx_dims shape)
{
  const double first = cx_metrics_first(s->reduction);
  calx_scope *scope = calx_scope_begin();
  calx_tensor *t = cx_metrics_upload(m->device, s->dtype, shape, &first, true);
  if (calx_tensor_error(t) == NULL) {
    if (s->tensor != NULL) {
      cx_lazy_tensor_restore(s->tensor, t);
    } else {
      s->tensor = calx_take(t);
    }
  }
  return calx_scope_end(scope);
}

static cx_metrics_state *new_state(calx_metric *m, const char *name,
                                   cx_metrics_reduction reduction)
{
  CX_ASSERT(m->n_states < CX_METRICS_STATES);
  cx_metrics_state *s = &m->states[m->n_states++];
  *s = (cx_metrics_state){ .name = name, .reduction = reduction };
  return s;
}

void cx_metrics_add_state(calx_metric *m, const char *name,
                          cx_metrics_reduction reduction, calx_dtype dtype,
                          calx_dims shape)
{
  if (m == &no_memory) return;
  cx_metrics_state *s = new_state(m, name, reduction);
  s->dtype = dtype;
  s->shape = shape;
  if (m->error == NULL) m->error = begin(m, s, shape);
}

void cx_metrics_add_list(calx_metric *m, const char *name)
{
  if (m != &no_memory) new_state(m, name, CX_METRICS_CAT);
}

static void drop_list(cx_metrics_state *s)
{
  for (size_t k = 0; k < s->n_list; k++) calx_release(s->list[k]);
  s->n_list = 0;
}

static calx_status *reset(calx_metric *m)
{
  CALX_TRY(cx_status_copy(calx_metric_error(m)));
  m->updates = 0;
  m->is_wide = false;
  for (size_t i = 0; i < m->n_states; i++) {
    cx_metrics_state *s = &m->states[i];
    drop_list(s);
    if (s->tensor != NULL) CALX_TRY(begin(m, s, s->shape));
  }
  return NULL;
}

void calx_metric_reset(calx_metric *m)
{
  cx_lazy_scope_pin(reset(m));
}

void calx_metric_free(calx_metric *m)
{
  if (m == NULL || m == &no_memory) return;
  for (size_t i = 0; i < m->n_states; i++) {
    cx_metrics_state *s = &m->states[i];
    drop_list(s);
    cx_free(s->list);
    calx_release(s->tensor);
  }
  calx_status_free(m->error);
  cx_free(m->self);
  cx_free(m);
}

// ---- adding a batch ---------------------------------------------------------

// What a state is to become, but for a list; all that can fail.
static calx_status *prepare(calx_metric *m, cx_metrics_state *s,
                            calx_tensor *batch, calx_tensor **out)
{
  if (s->reduction == CX_METRICS_CAT) {
    return cx_grow(&s->list, &s->list_capacity, s->n_list + 1, sizeof *s->list)
               ? NULL
               : cx_out_of_memory();
  }
  if (m->updates == 0 && !cx_metrics_is_same_shape(s->tensor, batch)) {
    CALX_TRY(begin(m, s, calx_tensor_shape(batch)));
  }
  if (!cx_metrics_is_same_shape(s->tensor, batch)) {
    return cx_invalid(
        "%s: %lld outputs, and an update before had %lld: calx_metric_reset() "
        "forgets those",
        m->name, (long long)calx_tensor_numel(batch),
        (long long)calx_tensor_numel(s->tensor));
  }
  switch (s->reduction) {
    case CX_METRICS_MIN: *out = calx_minimum(s->tensor, batch); break;
    case CX_METRICS_MAX: *out = calx_maximum(s->tensor, batch); break;
    default: *out = calx_add_with(s->tensor, batch, NULL);
  }
  return cx_status_copy(calx_tensor_error(*out));
}

// All states, or none.
static calx_status *add(calx_metric *m, calx_tensor *const *batch)
{
  calx_tensor *sums[CX_METRICS_STATES];
  for (size_t i = 0; i < m->n_states; i++) {
    CALX_TRY(prepare(m, &m->states[i], batch[i], &sums[i]));
  }
  for (size_t i = 0; i < m->n_states; i++) {
    cx_metrics_state *s = &m->states[i];
    if (s->reduction == CX_METRICS_CAT) {
      s->list[s->n_list++] = calx_retain(batch[i]);
    } else {
      calx_assign(s->tensor, sums[i]);
    }
  }
  return NULL;
}

// ---- an update --------------------------------------------------------------

static calx_status *check_tensor(const calx_metric *m, const char *name,
                                 const calx_tensor *t)
{
  if (t == NULL) return cx_invalid("%s: %s is NULL", m->name, name);
  CALX_TRY(cx_status_copy(calx_tensor_error(t)));
  if (!calx_tensor_is_host(t)) return NULL;
  return cx_invalid("%s: %s is a host tensor: move it with calx_to()", m->name,
                    name);
}

static bool is_f64(const calx_tensor *t)
{
  return t != NULL && calx_tensor_dtype(t) == CALX_F64;
}

// The batch's states.
static calx_status *states_of(calx_metric *m, calx_tensor *preds,
                              calx_tensor *target, calx_tensor **out)
{
  CALX_TRY(cx_status_copy(calx_metric_error(m)));
  CALX_TRY(check_tensor(m, "preds", preds));
  if (target != NULL || !m->kind->has_one_operand) {
    CALX_TRY(check_tensor(m, "target", target));
  }
  CALX_TRY(m->kind->check(m, preds, target));
  m->kind->update(m, preds, target, out);
  for (size_t i = 0; i < m->n_states; i++) {
    CALX_TRY(cx_status_copy(calx_tensor_error(out[i])));
  }
  return NULL;
}

static calx_status *update(calx_metric *m, calx_tensor *preds,
                           calx_tensor *target, calx_tensor **out_batch)
{
  CALX_TRY(states_of(m, preds, target, out_batch));
  CALX_TRY(add(m, out_batch));
  m->updates++;
  m->is_wide |= !m->kind->is_always_f32 && (is_f64(preds) || is_f64(target));
  return NULL;
}

void calx_metric_update(calx_metric *m, calx_tensor *preds, calx_tensor *target)
{
  calx_tensor *batch[CX_METRICS_STATES];
  cx_lazy_no_grad_begin();
  cx_lazy_scope_pin(update(m, preds, target, batch));
  (void)cx_lazy_no_grad_end();
}

// ---- values -----------------------------------------------------------------

void cx_metrics_warn(const calx_metric *m, const char *line)
{
  if (calx_global_ordinal() == 0) cx_log("%s: %s", m->name, line);
}

static calx_tensor *finish(calx_tensor *value, bool is_wide)
{
  return is_wide || calx_tensor_dtype(value) != CALX_F64
             ? value
             : calx_to_dtype(value, CALX_F32);
}

static calx_status *forward(calx_metric *m, calx_tensor *preds,
                            calx_tensor *target, calx_tensor **out)
{
  calx_tensor *batch[CX_METRICS_STATES];
  CALX_TRY(update(m, preds, target, batch));
  if (m->kind->of_lists == NULL) {
    *out = m->kind->value(m, batch);
    return NULL;
  }
  cx_metrics_totals t = { .updates = 1 };
  calx_status *status = NULL;
  for (size_t i = 0; i < m->n_states && status == NULL; i++) {
    status = cx_metrics_total_read(&t.states[i], batch[i]);
  }
  if (status == NULL) status = m->kind->of_lists(m, &t, out);
  cx_metrics_totals_free(&t);
  return status;
}

calx_tensor *calx_metric_forward(calx_metric *m, calx_tensor *preds,
                                 calx_tensor *target)
{
  calx_tensor *value = NULL;
  cx_lazy_no_grad_begin();
  calx_status *status = forward(m, preds, target, &value);
  if (status == NULL) {
    value = finish(value, m->is_wide);
  } else {
    value = cx_lazy_tensor_poison(status);
  }
  (void)cx_lazy_no_grad_end();
  return value;
}

static calx_status *value_of(const calx_metric *m, const cx_metrics_totals *t,
                             calx_tensor **out)
{
  if (m->kind->verify != NULL) CALX_TRY(m->kind->verify(m, t));
  if (m->kind->of_lists != NULL) return m->kind->of_lists(m, t, out);
  calx_tensor *states[CX_METRICS_STATES];
  for (size_t i = 0; i < m->n_states; i++) {
    states[i] =
        cx_metrics_upload(m->device, m->states[i].dtype, t->states[i].shape,
                          t->states[i].values, false);
  }
  *out = m->kind->value(m, states);
  return NULL;
}

static calx_status *compute(calx_metric *m, calx_tensor **out)
{
  CALX_TRY(cx_status_copy(calx_metric_error(m)));
  cx_metrics_totals t = { 0 };
  calx_status *status = cx_metrics_totals_of(m, &t);
  if (status == NULL && calx_world_size() > 1) {
    status = cx_metrics_totals_exchange(m, &t);
  }
  if (status == NULL && t.updates == 0) {
    cx_metrics_warn(
        m,
        "The ``compute`` method of the metric was called before the ``update`` "
        "method which may lead to errors, as metric states have not yet been "
        "updated.");
  }
  if (status == NULL) status = value_of(m, &t, out);
  if (status == NULL) *out = finish(*out, t.is_wide);
  cx_metrics_totals_free(&t);
  return status;
}

calx_tensor *calx_metric_compute(calx_metric *m)
{
  calx_tensor *value = NULL;
  cx_lazy_no_grad_begin();
  calx_status *status = compute(m, &value);
  if (status != NULL) value = cx_lazy_tensor_poison(status);
  (void)cx_lazy_no_grad_end();
  return value;
}
