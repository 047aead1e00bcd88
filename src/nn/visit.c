// nn/visit: the functions that visit all modules or tensors of a model.
#include <string.h>

#include "nn/module.h"

void calx_module_train(calx_module *m, bool training)
{
  if (m == NULL || cx_nn_module_is_nil(m)) return;
  m->training = training;
  for (size_t i = 0; i < m->count; i++) {
    calx_module_train(m->entries[i].child, training);
  }
}

bool calx_module_is_training(const calx_module *m)
{
  return m != NULL && m->training;
}

static void visit_own(const calx_module *m, size_t skip, calx_entry_kind kind,
                      calx_visit_fn *fn, void *user)
{
  for (size_t i = 0; i < m->count; i++) {
    const cx_nn_module_entry *e = &m->entries[i];
    if (e->path == NULL || e->child != NULL || e->kind != kind) continue;
    fn(user, e->path + skip, e->kind, e->tensor);
  }
}

// The first `skip` characters of each path are left out. The order is that of
// PyTorch's state_dict(), and of the parameters alone that of parameters(), by
// whose indices an optimiser's state is stored: both formats depend on it.
static void visit(const calx_module *m, size_t skip, calx_visit_fn *fn,
                  void *user)
{
  visit_own(m, skip, CALX_PARAMETER, fn, user);
  visit_own(m, skip, CALX_BUFFER, fn, user);
  for (size_t i = 0; i < m->count; i++) {
    const cx_nn_module_entry *e = &m->entries[i];
    if (e->path != NULL && e->child != NULL) visit(e->child, skip, fn, user);
  }
}

void calx_module_visit(calx_module *m, calx_visit_fn *fn, void *user)
{
  if (m != NULL) visit(m, cx_nn_module_prefix(m), fn, user);
}

typedef struct wanted {
  const char *path;
  calx_tensor *found;
} wanted;

static void compare(void *user, const char *path, calx_entry_kind kind,
                    calx_tensor *tensor)
{
  (void)kind;
  wanted *w = user;
  if (strcmp(path, w->path) == 0) w->found = tensor;
}

calx_tensor *calx_module_find(calx_module *m, const char *path)
{
  wanted w = { path, NULL };
  if (path != NULL) calx_module_visit(m, compare, &w);
  return w.found;
}

static void count_elements(void *user, const char *path, calx_entry_kind kind,
                           calx_tensor *tensor)
{
  (void)path;
  if (kind == CALX_PARAMETER) *(int64_t *)user += calx_tensor_numel(tensor);
}

int64_t calx_module_param_count(const calx_module *m)
{
  int64_t n = 0;
  if (m != NULL) visit(m, 0, count_elements, &n);
  return n;
}
