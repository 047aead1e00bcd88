// nn/visit: the functions that visit all modules or tensors of a model.
#include <string.h>

#include "base/alloc.h"
#include "lazy/lazy.h"
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
    if (e->path == NULL || e->tensor == NULL || e->kind != kind) continue;
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

void cx_nn_visit_own(calx_module *m, calx_entry_kind kind, calx_visit_fn *fn,
                     void *user)
{
  visit_own(m, cx_nn_module_prefix(m), kind, fn, user);
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

// ---- parameters, each once --------------------------------------------------

typedef struct distinct {
  calx_visit_fn *fn;
  void *user;
  calx_tensor **seen;  // of a model with ties only
  size_t n, capacity;
  bool failed, ties;
} distinct;

static void visit_distinct(void *user, const char *path, calx_entry_kind kind,
                           calx_tensor *tensor)
{
  distinct *d = user;
  if (kind != CALX_PARAMETER) return;
  for (size_t i = 0; i < d->n; i++) {
    if (d->seen[i] == tensor) return;
  }
  if (d->ties) {
    if (!cx_grow(&d->seen, &d->capacity, d->n + 1, sizeof *d->seen)) {
      d->failed = true;
      return;
    }
    d->seen[d->n++] = tensor;
  }
  d->fn(d->user, path, kind, tensor);
}

static void visit_parameters(const calx_module *m, size_t skip,
                             calx_visit_fn *fn, void *user)
{
  distinct d = { .fn = fn, .user = user, .ties = m->root->has_ties };
  visit(m, skip, visit_distinct, &d);
  cx_free(d.seen);
  if (d.failed) cx_nn_module_fail(m->root, cx_out_of_memory());
}

void calx_module_parameters(calx_module *m, calx_visit_fn *fn, void *user)
{
  if (m != NULL) visit_parameters(m, cx_nn_module_prefix(m), fn, user);
}

static void count_elements(void *user, const char *path, calx_entry_kind kind,
                           calx_tensor *tensor)
{
  (void)path;
  (void)kind;
  *(int64_t *)user += calx_tensor_numel(tensor);
}

int64_t calx_module_param_count(const calx_module *m)
{
  int64_t n = 0;
  if (m != NULL) visit_parameters(m, 0, count_elements, &n);
  return n;
}

static void set_requires_grad(void *user, const char *path,
                              calx_entry_kind kind, calx_tensor *tensor)
{
  (void)path;
  (void)kind;
  cx_lazy_tensor_set_requires_grad(tensor, *(bool *)user);
}

void calx_module_requires_grad(calx_module *m, bool on)
{
  calx_module_parameters(m, set_requires_grad, &on);
}

// ---- modules ----------------------------------------------------------------

calx_module *calx_module_get(calx_module *m, const char *path)
{
  if (m == NULL || path == NULL || *path == '\0') return path ? m : NULL;
  size_t skip = cx_nn_module_prefix(m);
  for (size_t i = 0; i < m->count; i++) {
    const cx_nn_module_entry *e = &m->entries[i];
    if (e->child == NULL || e->path == NULL) continue;
    const char *name = e->path + skip;
    size_t n = strlen(name);
    if (strncmp(path, name, n) != 0) continue;
    if (path[n] == '\0') return e->child;
    if (path[n] == '.') return calx_module_get(e->child, path + n + 1);
  }
  return NULL;
}

static void apply(calx_module *m, size_t skip, calx_module_fn *fn, void *user)
{
  // A module that fn adds is left out.
  size_t count = m->count;
  for (size_t i = 0; i < count; i++) {
    if (m->entries[i].child != NULL && m->entries[i].path != NULL) {
      apply(m->entries[i].child, skip, fn, user);
    }
  }
  size_t n = strlen(m->path);
  fn(user, m->path + (skip < n ? skip : n), m);
}

void calx_module_apply(calx_module *m, calx_module_fn *fn, void *user)
{
  if (m == NULL || cx_nn_module_is_nil(m)) return;
  apply(m, cx_nn_module_prefix(m), fn, user);
}
