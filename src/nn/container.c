// nn/container: Sequential, ModuleList, ModuleDict, Identity, Flatten and
// Unflatten of torch.nn.
#include "nn/layer.h"

typedef struct stateless {
  calx_module *m;
} stateless;

static calx_tensor *run_children(void *self, calx_tensor *x)
{
  const calx_module *m = ((const stateless *)self)->m;
  for (size_t i = 0; i < m->count; i++) {
    if (m->entries[i].child != NULL && m->entries[i].path != NULL) {
      x = calx_forward(m->entries[i].child, x);
    }
  }
  return x;
}

static calx_tensor *give(void *self, calx_tensor *x)
{
  const stateless *p = self;
  if (x != NULL) return x;
  return cx_lazy_tensor_poison(cx_invalid(
      "identity: the tensor of '%s' is NULL", cx_nn_module_path(p->m)));
}

static calx_module *container(const cx_nn_layer *layer, calx_module *parent,
                              const char *name)
{
  void *state;
  calx_module *m = cx_nn_make(layer, parent, name, sizeof(stateless), &state);
  if (state != NULL) m->numbered = layer->forward != give;
  return m;
}

calx_module *calx_nn_sequential(calx_module *parent, const char *name)
{
  static const cx_nn_layer layer = { .kind = "Sequential",
                                     .call = "sequential",
                                     .forward = run_children };
  return container(&layer, parent, name);
}

calx_module *calx_nn_module_list(calx_module *parent, const char *name)
{
  static const cx_nn_layer layer = { .kind = "ModuleList",
                                     .call = "module_list" };
  calx_module *m = container(&layer, parent, name);
  if (!cx_nn_module_is_nil(m)) m->is_list = true;
  return m;
}

calx_module *calx_nn_module_dict(calx_module *parent, const char *name)
{
  static const cx_nn_layer layer = { .kind = "ModuleDict",
                                     .call = "module_dict" };
  return container(&layer, parent, name);
}

calx_module *calx_nn_identity(calx_module *parent, const char *name)
{
  static const cx_nn_layer layer = { .kind = "Identity",
                                     .call = "identity",
                                     .forward = give };
  return container(&layer, parent, name);
}

// ---- flatten ----------------------------------------------------------------

typedef struct flatten {
  calx_module *m;
  calx_flatten_options options;
} flatten;

static calx_tensor *flatten_forward(void *self, calx_tensor *x)
{
  return calx_flatten_with(x, &((const flatten *)self)->options);
}

static void flatten_repr(const void *state, cx_text *out)
{
  const flatten *f = state;
  int end = f->options.end_dim != 0 ? f->options.end_dim : -1;
  cx_text_format(out, "start_dim=%d, end_dim=%d", f->options.start_dim, end);
}

static calx_status *check_flatten(int64_t start, int64_t end)
{
  if (start >= -CALX_MAX_RANK && start < CALX_MAX_RANK &&
      end >= -CALX_MAX_RANK && end < CALX_MAX_RANK) {
    return NULL;
  }
  return cx_invalid(
      "flatten: start_dim %lld and end_dim %lld, no tensor has more than %d "
      "dimensions",
      (long long)start, (long long)end, CALX_MAX_RANK);
}

calx_module *calx_nn_flatten_with(calx_module *parent, const char *name,
                                  const calx_nn_flatten_options *options)
{
  static const cx_nn_layer layer = { "Flatten", "flatten", flatten_forward,
                                     flatten_repr, NULL };
  void *state;
  calx_module *m = cx_nn_make(&layer, parent, name, sizeof(flatten), &state);
  flatten *f = state;
  if (f == NULL) return m;
  calx_nn_flatten_options o;
  calx_status *status = cx_options_take("flatten", options, &o, sizeof o);
  int64_t start = o.start_dim == 0               ? 1
                  : o.start_dim == CALX_ZERO_INT ? 0
                                                 : o.start_dim;
  if (status == NULL) status = check_flatten(start, o.end_dim);
  cx_nn_module_fail(m, status);
  f->options = (calx_flatten_options){ .size = sizeof f->options,
                                       .start_dim = (int)start,
                                       .end_dim = (int)o.end_dim };
  return m;
}

// ---- unflatten --------------------------------------------------------------

typedef struct unflatten {
  calx_module *m;
  int dim;
  calx_dims sizes;
} unflatten;

static calx_tensor *unflatten_forward(void *self, calx_tensor *x)
{
  const unflatten *u = self;
  return calx_unflatten(x, u->dim, u->sizes);
}

static void unflatten_repr(const void *state, cx_text *out)
{
  const unflatten *u = state;
  cx_text_format(out, "dim=%d, unflattened_size=", u->dim);
  cx_nn_repr_tuple(out, u->sizes.values, u->sizes.count);
}

calx_module *calx_nn_unflatten(calx_module *parent, const char *name, int dim,
                               calx_dims sizes)
{
  static const cx_nn_layer layer = { "Unflatten", "unflatten",
                                     unflatten_forward, unflatten_repr, NULL };
  void *state;
  calx_module *m = cx_nn_make(&layer, parent, name, sizeof(unflatten), &state);
  unflatten *u = state;
  if (u == NULL) return m;
  if (sizes.count == 0 || sizes.count > CALX_MAX_RANK) {
    cx_nn_module_fail(m, cx_invalid("unflatten: %zu sizes, 1 to %d are wanted",
                                    sizes.count, CALX_MAX_RANK));
    return m;
  }
  u->dim = dim;
  u->sizes = sizes;
  return m;
}
