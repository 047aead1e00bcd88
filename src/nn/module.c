// nn/module: the ordered registry behind every model.
//
// A module is a list of entries in the order of their making: parameters,
// buffers, children. Paths are kept whole, from the root, and interned: nodes
// and tensors name them for longer than a module lives.
#include "nn/module.h"

#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/text.h"
#include "lazy/lazy.h"

// Bounds the recursion over a model.
enum { MAX_DEPTH = 64 };

// The module that constructors return without memory; its error says so.
static calx_module nil = { .root = &nil, .path = "", .kind = (char[]){ "?" } };

bool cx_nn_module_is_nil(const calx_module *m)
{
  return m == &nil;
}

// ---- paths ------------------------------------------------------------------

size_t cx_nn_module_prefix(const calx_module *m)
{
  size_t n = strlen(m->path);
  return n != 0 ? n + 1 : 0;
}

const char *calx_module_kind(const calx_module *m)
{
  return m != NULL ? m->kind : "?";
}

const char *cx_nn_module_path(const calx_module *m)
{
  return m->path[0] != '\0' ? m->path : m->kind;
}

// "conv1.weight" of "conv1" and "weight". Interned: it is never freed. NULL: no
// memory.
static const char *join(const calx_module *m, const char *name)
{
  cx_text text = { 0 };
  if (m->path[0] != '\0') cx_text_format(&text, "%s.", m->path);
  cx_text_append(&text, name);
  const char *path = NULL;
  if (!cx_text_failed(&text)) {
    path = cx_site_intern(&(calx_site){ .file = cx_text_str(&text) }).file;
  }
  cx_text_free(&text);
  return path;
}

cx_nn_module_entry *cx_nn_module_entry_of(const calx_module *m,
                                          const char *name)
{
  size_t skip = cx_nn_module_prefix(m);
  for (size_t i = 0; i < m->count; i++) {
    const char *path = m->entries[i].path;
    if (path != NULL && strcmp(path + skip, name) == 0) return &m->entries[i];
  }
  return NULL;
}

calx_tensor *cx_nn_tensor(const calx_module *m, const char *name)
{
  const cx_nn_module_entry *e = cx_nn_module_entry_of(m, name);
  if (e == NULL) return NULL;
  return e->compute != NULL ? e->compute(e->list) : e->tensor;
}

static calx_status *check_name(const calx_module *m, const char *name)
{
  if (name == NULL || name[0] == '\0') {
    return cx_invalid(
        "module: what is made in '%s' (%s) needs a name: NULL is one in a "
        "Sequential and a ModuleList only",
        cx_nn_module_path(m), m->kind);
  }
  if (strchr(name, '.') != NULL) {
    return cx_invalid(
        "module: the name '%s' in '%s' (%s) has a dot; dots join the names of "
        "modules",
        name, cx_nn_module_path(m), m->kind);
  }
  if (cx_nn_module_entry_of(m, name) != NULL) {
    return cx_error(CALX_ALREADY_EXISTS,
                    "module: the name '%s' is used twice in '%s' (%s)", name,
                    cx_nn_module_path(m), m->kind);
  }
  return NULL;
}

// ---- failures ---------------------------------------------------------------

void cx_nn_module_fail(calx_module *m, calx_status *status)
{
  if (status == NULL) return;
  if (m->root == &nil || m->root->status != NULL) {
    calx_status_free(status);
  } else {
    m->root->status = status;
  }
}

calx_status *calx_module_error(calx_module *m)
{
  if (m == NULL) {
    return cx_invalid("module_error: the module is NULL");
  }
  if (m->root == &nil) return cx_out_of_memory();
  return cx_status_copy(m->root->status);
}

calx_tensor *cx_nn_module_refuse(const calx_module *m, const calx_tensor *x,
                                 const char *wanted)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  const cx_graph_node *node = cx_lazy_tensor_value(x).node;
  cx_text made = { 0 };
  if (node != NULL && node->op != &cx_graph_op_data) {
    cx_text_format(&made, " (made by %s", cx_graph_node_name(node));
    if (node->site.file != NULL) {
      cx_text_format(&made, " at %s:%d", node->site.file, node->site.line);
    }
    cx_text_char(&made, ')');
  }
  calx_status *status = cx_invalid(
      "forward: layer '%s' (%s) wants %s, got %s%s", cx_nn_module_path(m),
      m->kind, wanted, cx_graph_shape_str(s), cx_text_str(&made));
  cx_text_free(&made);
  return cx_lazy_tensor_poison(status);
}

// ---- children --------------------------------------------------------------

size_t calx_module_child_count(const calx_module *m)
{
  size_t n = 0;
  while (calx_module_child_at(m, n) != NULL) n++;
  return n;
}

calx_module *calx_module_child_at(const calx_module *m, size_t i)
{
  if (m == NULL) return NULL;
  for (size_t k = 0; k < m->count; k++) {
    const cx_nn_module_entry *e = &m->entries[k];
    if (e->child == NULL || e->path == NULL) continue;
    if (i-- == 0) return e->child;
  }
  return NULL;
}

// ---- making -----------------------------------------------------------------

static bool add_entry(calx_module *m, cx_nn_module_entry e)
{
  if (!cx_grow(&m->entries, &m->capacity, m->count + 1, sizeof *m->entries)) {
    return false;
  }
  m->entries[m->count++] = e;
  return true;
}

static void module_free(calx_module *m)
{
  for (size_t i = 0; i < m->count; i++) {
    calx_release(m->entries[i].tensor);
    if (m->entries[i].child != NULL) module_free(m->entries[i].child);
  }
  cx_hook_list_free(&m->hooks);
  cx_free(m->entries);
  cx_free(m->kind);
  cx_free(m->state);
  calx_status_free(m->status);
  cx_free(m);
}

static calx_module *module_new(const char *kind)
{
  calx_module *m = cx_calloc(1, sizeof *m);
  if (m == NULL) return NULL;
  m->kind = cx_strdup(kind != NULL ? kind : "Module");
  if (m->kind == NULL) {
    cx_free(m);
    return NULL;
  }
  m->root = m;
  m->path = "";
  m->training = true;
  return m;
}

// Adds a new module to its parent. One that is refused becomes a child without
// a path.
static bool adopt(calx_module *parent, calx_module *m, const char *name)
{
  char number[24];
  if (name == NULL && parent->numbered) {
    snprintf(number, sizeof number, "%zu", calx_module_child_count(parent));
    name = number;
  }
  calx_status *status = check_name(parent, name);
  if (status == NULL && parent->depth + 1 >= MAX_DEPTH) {
    status =
        cx_invalid("module: '%s' would be more than %d deep", name, MAX_DEPTH);
  }
  const char *path = status == NULL ? join(parent, name) : NULL;
  if (status == NULL && path == NULL) status = cx_out_of_memory();
  if (!add_entry(parent, (cx_nn_module_entry){ .path = path, .child = m })) {
    calx_status_free(status);
    return false;
  }
  m->parent = parent;
  m->root = parent->root;
  m->path = path != NULL ? path : "";
  m->depth = parent->depth + 1;
  m->training = parent->training;
  cx_nn_module_fail(m, status);
  return true;
}

static calx_module *make(calx_module *parent, const char *name,
                         const char *kind, calx_forward_fn *forward)
{
  if (parent == &nil) return &nil;
  calx_module *m = module_new(kind);
  if (m != NULL && parent != NULL && !adopt(parent, m, name)) {
    module_free(m);
    m = NULL;
  }
  if (m == NULL) {
    if (parent != NULL) cx_nn_module_fail(parent, cx_out_of_memory());
    return &nil;
  }
  m->forward = forward;
  return m;
}

calx_module *cx_nn_module_layer(calx_module *parent, const char *name,
                                const char *kind, calx_forward_fn *forward,
                                size_t bytes, void **out_state)
{
  *out_state = NULL;
  calx_module *m = make(parent, name, kind, forward);
  if (m == &nil) return m;
  m->state = m->self = *out_state = cx_calloc(1, bytes);
  if (m->state == NULL) cx_nn_module_fail(m, cx_out_of_memory());
  return m;
}

calx_module *cx_nn_make(const cx_nn_layer *layer, calx_module *parent,
                        const char *name, size_t bytes, void **out_state)
{
  calx_module *m = cx_nn_module_layer(parent, name, layer->kind, layer->forward,
                                      bytes, out_state);
  if (m == &nil) return m;
  m->layer = layer;
  calx_module **first = *out_state;
  if (first != NULL) *first = m;
  return m;
}

calx_module *calx_module_new(const char *kind, calx_forward_fn *forward,
                             void *self)
{
  return calx_module_child(NULL, NULL, kind, forward, self);
}

calx_module *calx_module_child(calx_module *parent, const char *name,
                               const char *kind, calx_forward_fn *forward,
                               void *self)
{
  calx_module *m = make(parent, name, kind, forward);
  if (m != &nil) m->self = self;
  return m;
}

void calx_module_free(calx_module *root)
{
  if (root != NULL && root != &nil && root->parent == NULL) module_free(root);
}

// ---- parameters and buffers -------------------------------------------------

static calx_status *check_init(calx_tensor *init, bool parameter)
{
  const char *call = parameter ? "module_param" : "module_buffer";
  if (init == NULL) {
    return cx_invalid("%s: the value is NULL", call);
  }
  CALX_TRY(cx_lazy_tensor_usable(init, call, 0));
  const cx_graph_shape *s = cx_lazy_tensor_shape(init);
  if (!parameter || cx_dtype_is_inexact(s->dtype)) return NULL;
  return cx_invalid(
      "%s: only floating and complex types have gradients, the value is %s",
      call, cx_graph_shape_str(s));
}

// A new handle with init's value; poisoned where there is no memory.
static calx_tensor *own_tensor(const calx_module *m, calx_tensor *init,
                               const char *path, bool parameter)
{
  calx_tensor *t =
      cx_lazy_tensor_of(cx_lazy_tensor_value(init), calx_tensor_device(init));
  cx_lazy_tensor_mark(t, CX_LAZY_T_DETACHED);
  calx_take(t);
  cx_lazy_tensor_set_name(t, path);
  cx_lazy_tensor_set_model(
      t, cx_site_intern(&(calx_site){ .file = m->root->kind }).file);
  cx_lazy_tensor_mark(t, CX_LAZY_T_KEEP_INITIAL);
  if (parameter) cx_lazy_tensor_set_requires_grad(t, true);
  return t;
}

// A poison for a tensor that could not be made, in no scope.
static calx_tensor *own_poison(calx_status *status)
{
  calx_scope *scope = calx_scope_begin();
  calx_tensor *t = calx_take(cx_lazy_tensor_poison(status));
  calx_status_free(calx_scope_end(scope));
  return t;
}

static calx_tensor *add_tensor(calx_module *m, calx_entry_kind kind,
                               const char *name, calx_tensor *init)
{
  bool parameter = kind == CALX_PARAMETER;
  cx_nn_module_entry e = { .kind = kind };
  calx_status *status = m == NULL || m == &nil ? calx_module_error(m) : NULL;
  if (status != NULL) return cx_lazy_tensor_poison(status);
  status = check_name(m, name);
  if (status == NULL) {
    e.path = join(m, name);
    if (e.path == NULL) status = cx_out_of_memory();
  }
  if (status == NULL) {
    status = cx_annotate(check_init(init, parameter), "in making '%s'", e.path);
  }
  if (status == NULL) {
    e.tensor = own_tensor(m, init, e.path, parameter);
    if (cx_lazy_tensor_poisoned(e.tensor) ||
        (parameter && !cx_lazy_tensor_requires_grad(e.tensor))) {
      status = cx_out_of_memory();
    }
  }
  if (status != NULL) {
    calx_release(e.tensor);
    e.tensor = own_poison(cx_status_copy(status));
    e.path = NULL;
    cx_nn_module_fail(m, status);
  }
  if (add_entry(m, e)) return e.tensor;
  calx_release(e.tensor);
  cx_nn_module_fail(m, cx_out_of_memory());
  return cx_lazy_tensor_poison(cx_out_of_memory());
}

calx_tensor *calx_module_param(calx_module *m, const char *name,
                               calx_tensor *init)
{
  return add_tensor(m, CALX_PARAMETER, name, init);
}

calx_tensor *calx_module_buffer(calx_module *m, const char *name,
                                calx_tensor *init)
{
  return add_tensor(m, CALX_BUFFER, name, init);
}

calx_status *cx_nn_module_share(calx_module *m, const char *name,
                                calx_tensor *shared)
{
  CALX_TRY(check_name(m, name));
  cx_nn_module_entry e = { .kind = CALX_PARAMETER, .path = join(m, name) };
  if (e.path == NULL || !add_entry(m, e)) return cx_out_of_memory();
  m->entries[m->count - 1].tensor = calx_retain(shared);
  return NULL;
}
