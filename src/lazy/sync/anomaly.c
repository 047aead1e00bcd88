// lazy/sync/anomaly: finds the first NaN. Every op is looked at, so the first
// one that is found is the first there is, or came with the data.
#include "lazy/sync/anomaly.h"

#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"

// The first element that is NaN; SIZE_MAX: none.
static size_t find_nan(calx_tensor *t, calx_status **out_status)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(t);
  // A complex element is two numbers.
  const size_t parts = cx_dtype_is_complex(s->dtype) ? 2 : 1;
  size_t size = calx_dtype_size(s->dtype) / parts;
  size_t n = (size_t)cx_graph_shape_numel(s) * parts, at = SIZE_MAX;
  *out_status = NULL;
  if (!cx_dtype_is_inexact(s->dtype) || n == 0) return at;
  unsigned char *data = cx_alloc(n * size);
  *out_status =
      data == NULL ? cx_out_of_memory() : calx_tensor_read(t, data, n * size);
  for (size_t k = 0; *out_status == NULL && k < n && at == SIZE_MAX; k++) {
    double v = cx_load_double(s->dtype, data + k * size);
    if (v != v) at = k / parts;
  }
  cx_free(data);
  return at;
}

// The operand that holds NaN already; -1: none.
static int nan_operand(const cx_graph_node *node, calx_device *device)
{
  int found = -1;
  calx_scope *scope = calx_scope_begin();
  for (uint32_t i = 0; i < node->n_in && found < 0; i++) {
    calx_tensor *t = cx_lazy_tensor_of(
        (cx_graph_value){ node->in[i].node, node->in[i].out }, device);
    calx_status *status;
    if (find_nan(t, &status) != SIZE_MAX) found = (int)i;
    calx_status_free(status);
  }
  calx_status_free(calx_scope_end(scope));
  return found;
}

static void check(calx_tensor *t)
{
  calx_status *status;
  size_t at = find_nan(t, &status);
  if (at != SIZE_MAX) {
    const cx_graph_node *node = t->node;
    int from = nan_operand(node, t->device);
    cx_text why = { 0 };
    if (from >= 0) {
      cx_text_format(&why, "; its operand %d holds NaN already", from);
    }
    status = cx_error_at(
        &node->site, CALX_FAILED_PRECONDITION,
        "anomaly: %s returned nan values: element %zu of its result %s%s",
        cx_graph_node_name(node), at,
        cx_graph_shape_str(cx_lazy_tensor_shape(t)), cx_text_str(&why));
    cx_text_free(&why);
  }
  cx_lazy_scope_pin(status);
}

// A NaN that is written down is no anomaly: cross_entropy has one for classes
// that are out of range. The op that lets it through is.
static bool is_constant(const calx_tensor *t)
{
  return t->node != NULL && t->node->n_in == 0 && t->node->op != NULL &&
         strcmp(t->node->op->name, "constant") == 0;
}

void cx_lazy_check_anomaly(calx_tensor *first, calx_tensor *const *outs,
                           uint32_t n_out)
{
  static _Thread_local bool inside;
  if (inside) return;
  inside = true;
  for (uint32_t k = 0; k < (outs != NULL ? n_out : 1); k++) {
    calx_tensor *t = outs != NULL ? outs[k] : first;
    if (cx_lazy_scope_failed() || cx_lazy_tensor_poisoned(t)) break;
    if (!is_constant(t)) check(t);
  }
  inside = false;
}
