// io/plan: see plan.h. A loaded value counts as computed: a step that fails
// restores it.
#include "io/plan.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/status.h"
#include "io/fetch.h"
#include "lazy/lazy.h"

bool cx_io_same_size(const calx_tensor *a, const calx_tensor *b)
{
  calx_dims x = calx_tensor_shape(a), y = calx_tensor_shape(b);
  if (x.count != y.count) return false;
  for (size_t i = 0; i < x.count; i++) {
    if (x.values[i] != y.values[i]) return false;
  }
  return true;
}

static calx_status *copy_from_host(const calx_tensor *t,
                                   const calx_tensor *like, calx_dtype to,
                                   calx_tensor **out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(t);
  calx_dtype from = s->dtype;
  size_t n = (size_t)calx_tensor_numel(t);
  const void *data = calx_host_data(t);
  void *converted = NULL;
  if (cx_dtype_is_complex(from) && !cx_dtype_is_complex(to)) {
    return cx_invalid(
        "load_state_dict: the value is %s, the tensor %s: its imaginary part "
        "would be lost",
        cx_graph_shape_str(s), calx_dtype_name(to));
  }
  if (from != to) {
    converted = cx_alloc(n * calx_dtype_size(to));
    if (converted == NULL) return cx_out_of_memory();
    cx_io_convert(from, data, to, converted, n);
    data = converted;
  }
  calx_status *status = cx_lazy_upload(calx_tensor_device(like), to, s->dims,
                                       s->rank, data, false, NULL, NULL, out);
  cx_free(converted);
  return status;
}

static calx_status *copy_from_device(calx_tensor *t, const calx_tensor *like,
                                     calx_dtype to, calx_tensor **out)
{
  CALX_TRY(cx_lazy_tensor_usable(t, "load_state_dict", 0));
  calx_scope *scope = calx_scope_begin();
  cx_lazy_no_grad_begin();
  calx_tensor *x = calx_to(t, calx_tensor_device(like));
  if (calx_tensor_dtype(x) != to) x = calx_to_dtype(x, to);
  // A new handle: a later assignment to t does not change it.
  if (x == t) x = cx_lazy_tensor_detached(t);
  if (calx_scope_error() == NULL) {
    *out = calx_retain(x);
    cx_lazy_tensor_mark(*out, CX_LAZY_T_KEEP_INITIAL);
  }
  cx_lazy_no_grad_end();
  return calx_scope_end(scope);
}

calx_status *cx_io_copy_to_device(calx_tensor *t, const calx_tensor *like,
                                  calx_dtype dtype, calx_tensor **out_tensor)
{
  *out_tensor = NULL;
  return calx_tensor_is_host(t) ? copy_from_host(t, like, dtype, out_tensor)
                                : copy_from_device(t, like, dtype, out_tensor);
}

// The value gets the split that `to` is marked with.
static calx_status *split_like(const calx_tensor *to, calx_tensor *value)
{
  const cx_spmd_placement *placement = cx_lazy_tensor_placement(to);
  bool done;  // a pending value is split by the sync that computes it
  return placement == NULL ? NULL
                           : cx_lazy_tensor_reshard(value, placement, &done);
}

calx_status *cx_io_plan_add(cx_io_plan *plan, calx_tensor *to, calx_tensor *t)
{
  if (to == t) return NULL;
  if (!cx_grow(&plan->changes, &plan->capacity, plan->n + 1,
               sizeof *plan->changes)) {
    return cx_out_of_memory();
  }
  calx_tensor *value;
  CALX_TRY(cx_io_copy_to_device(t, to, calx_tensor_dtype(to), &value));
  calx_status *status = split_like(to, value);
  if (status != NULL) {
    calx_release(value);
    return status;
  }
  plan->changes[plan->n++] = (cx_io_change){ .to = to, .value = value };
  return NULL;
}

void cx_io_plan_give(const cx_io_plan *plan)
{
  for (size_t i = 0; i < plan->n; i++) {
    cx_lazy_tensor_restore(plan->changes[i].to, plan->changes[i].value);
  }
}

void cx_io_plan_free(cx_io_plan *plan)
{
  for (size_t i = 0; i < plan->n; i++) calx_release(plan->changes[i].value);
  cx_free(plan->changes);
  *plan = (cx_io_plan){ 0 };
}
