// io/scaler_state: the state of a GradScaler, by PyTorch's names.
//
//   {'scale': 65536.0, 'growth_factor': 2.0, 'backoff_factor': 0.5,
//    'growth_interval': 2000, '_growth_tracker': 0}
#include "base/status.h"
#include "calx/io.h"
#include "io/plan.h"
#include "optim/scaler.h"

static calx_status *put_all(const calx_grad_scaler *s, calx_value *dict)
{
  if (!s->enabled) return NULL;  // PyTorch's is empty
  CALX_TRY(calx_value_set(dict, "scale", calx_value_float((double)s->scale)));
  CALX_TRY(calx_value_set(dict, "growth_factor", calx_value_float(s->growth)));
  CALX_TRY(
      calx_value_set(dict, "backoff_factor", calx_value_float(s->backoff)));
  CALX_TRY(
      calx_value_set(dict, "growth_interval", calx_value_int(s->interval)));
  return calx_value_set(dict, "_growth_tracker", calx_value_int(s->tracker));
}

calx_status *calx_grad_scaler_state_dict(calx_grad_scaler *s,
                                         calx_value **out_dict)
{
  *out_dict = NULL;
  CALX_TRY(cx_annotate(calx_grad_scaler_error(s), "so it has no state dict"));
  cx_optim_scaler_settle(s);
  calx_value *dict = calx_value_container(CALX_KIND_DICT);
  if (dict == NULL) return cx_out_of_memory();
  calx_status *status = put_all(s, dict);
  if (status == NULL) {
    *out_dict = dict;
  } else {
    calx_value_free(dict);
  }
  return status;
}

static calx_status *number_of(const calx_value *dict, const char *name,
                              double *out)
{
  const calx_value *v = calx_value_get(dict, name);
  calx_kind kind = calx_value_kind(v);
  if (v == NULL || (kind != CALX_KIND_INT && kind != CALX_KIND_FLOAT)) {
    return cx_invalid(
        "grad_scaler: '%s' of the state is %s, a number is wanted", name,
        v == NULL ? "missing" : calx_kind_name(kind));
  }
  *out = calx_value_as_float(v);
  return NULL;
}

// The numbers of a state, checked. The dict of a disabled scaler has none.
static calx_status *read_all(const calx_grad_scaler *s, const calx_value *dict,
                             double x[5])
{
  static const char *const names[] = { "scale", "growth_factor",
                                       "backoff_factor", "growth_interval",
                                       "_growth_tracker" };
  CALX_TRY(cx_annotate(calx_grad_scaler_error(s), "so nothing is loaded"));
  if (!s->enabled) return NULL;
  if (calx_value_kind(dict) != CALX_KIND_DICT || calx_value_count(dict) == 0) {
    return cx_invalid(
        "grad_scaler: The source state dict is empty, possibly "
        "because it was saved from a disabled scaler");
  }
  for (int i = 0; i < 5; i++) CALX_TRY(number_of(dict, names[i], &x[i]));
  if (!(x[0] > 0) || x[0] > (double)FLT_MAX || !(x[3] >= 1) || x[3] > 1e15 ||
      !(x[4] >= 0) || x[4] > 1e15) {
    return cx_invalid(
        "grad_scaler: the state has scale %g, growth_interval %g "
        "and _growth_tracker %g",
        x[0], x[3], x[4]);
  }
  return cx_optim_scaler_check("grad_scaler", x[1], x[2], (int64_t)x[3]);
}

calx_status *cx_io_scaler_check(const calx_grad_scaler *s,
                                const calx_value *dict)
{
  double x[5];
  return read_all(s, dict, x);
}

void cx_io_scaler_give(calx_grad_scaler *s, const calx_value *dict)
{
  double x[5];
  calx_status *status = read_all(s, dict, x);
  if (status == NULL && s->enabled) {
    cx_optim_scaler_settle(s);
    s->scale = (float)x[0];
    s->growth = x[1];
    s->backoff = x[2];
    s->interval = (int64_t)x[3];
    s->tracker = (int64_t)x[4];
  }
  calx_status_free(status);
}

calx_status *calx_grad_scaler_load_state_dict(calx_grad_scaler *s,
                                              const calx_value *dict)
{
  CALX_TRY(cx_io_scaler_check(s, dict));
  cx_io_scaler_give(s, dict);
  return NULL;
}
