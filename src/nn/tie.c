// nn/tie: one parameter under two names. A layer finds its parameters by name,
// and both entries hold the same tensor, so whatever is done to the model, by
// either name, is done to that tensor.
#include <string.h>

#include "base/alloc.h"
#include "lazy/lazy.h"
#include "nn/module.h"

static calx_status *check_shared(const char *path, const calx_tensor *shared)
{
  if (path == NULL || shared == NULL) {
    return cx_invalid("module_tie: the %s is NULL",
                      path == NULL ? "path" : "tensor");
  }
  if (cx_lazy_tensor_poisoned(shared)) {
    return cx_annotate(cx_status_copy(calx_tensor_error(shared)),
                       "so '%s' cannot be tied to it", path);
  }
  if (cx_lazy_tensor_name(shared) != NULL) return NULL;
  return cx_invalid(
      "module_tie: what '%s' is to share is no parameter of a "
      "model: calx_module_param makes one",
      path);
}

static calx_status *replace(cx_nn_module_entry *e, calx_tensor *shared)
{
  if (e->tensor == NULL || e->kind != CALX_PARAMETER) {
    return cx_invalid("module_tie: '%s' is no parameter but %s", e->path,
                      e->child != NULL     ? "a module"
                      : e->compute != NULL ? "computed"
                                           : "a buffer");
  }
  const cx_graph_shape *a = cx_lazy_tensor_shape(e->tensor);
  const cx_graph_shape *b = cx_lazy_tensor_shape(shared);
  if (!cx_graph_shape_equal(a, b)) {
    return cx_invalid("module_tie: '%s' is %s, what it is to share is %s",
                      e->path, cx_graph_shape_str(a), cx_graph_shape_str(b));
  }
  if (e->tensor == shared) return NULL;
  calx_retain(shared);
  calx_release(e->tensor);
  e->tensor = shared;
  return NULL;
}

static calx_status *tie(calx_module *m, const char *path, calx_tensor *shared)
{
  CALX_TRY(check_shared(path, shared));
  const char *dot = strrchr(path, '.');
  const char *name = dot != NULL ? dot + 1 : path;
  char *prefix = cx_strdup(path);
  if (prefix == NULL) return cx_out_of_memory();
  prefix[dot != NULL ? dot - path : 0] = '\0';
  calx_module *owner = calx_module_get(m, prefix);
  calx_status *status = NULL;
  if (owner == NULL) {
    status = cx_invalid("module_tie: '%s' has no module '%s'",
                        cx_nn_module_path(m), prefix);
  }
  cx_free(prefix);
  if (status != NULL) return status;
  m->root->has_ties = true;
  cx_nn_module_entry *e = cx_nn_module_entry_of(owner, name);
  return e != NULL ? replace(e, shared)
                   : cx_nn_module_share(owner, name, shared);
}

void calx_module_tie(calx_module *m, const char *path, calx_tensor *shared)
{
  if (m == NULL || cx_nn_module_is_nil(m)) {
    cx_lazy_scope_pin(cx_invalid("module_tie: the module is NULL"));
    return;
  }
  cx_nn_module_fail(m, tie(m, path, shared));
}
