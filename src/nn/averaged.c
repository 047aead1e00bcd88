// nn/averaged: averages of a model's weights. How many values an average has is
// a buffer, so a step of the average is part of the step's program.
#include "calx/swa_utils.h"

#include <string.h>

#include "base/alloc.h"
#include "nn/layer.h"
#include "ops/ops.h"

typedef struct averaged_model {
  calx_module *m;
  calx_averaged_model_options o;
} averaged_model;

static calx_tensor *forward(void *self, calx_tensor *x)
{
  calx_module *m = ((const averaged_model *)self)->m;
  calx_module *child = calx_module_get(m, "module");
  if (child != NULL) return calx_forward(child, x);
  return cx_lazy_tensor_poison(
      cx_error(CALX_FAILED_PRECONDITION,
               "forward: '%s' (AveragedModel) has no child 'module' yet",
               cx_nn_module_path(m)));
}

static const cx_nn_layer layer = { "AveragedModel", "averaged_model", forward,
                                   NULL, NULL };

calx_module *calx_averaged_model_with(
    calx_module *parent, const char *name,
    const calx_averaged_model_options *options)
{
  void *state;
  calx_module *m =
      cx_nn_make(&layer, parent, name, sizeof(averaged_model), &state);
  averaged_model *a = state;
  if (a == NULL) return m;
  calx_status *status =
      cx_options_take(layer.call, options, &a->o, sizeof a->o);
  if (status == NULL && !(a->o.decay >= 0 && a->o.decay <= 1)) {
    status = cx_invalid(
        "averaged_model: Invalid decay value %g provided. Please provide a "
        "value in [0,1] range",
        a->o.decay);
  } else if (status == NULL && a->o.decay != 0 && a->o.avg_fn != NULL) {
    status = cx_invalid("averaged_model: decay and avg_fn are two averages");
  }
  calx_scope *scope = calx_scope_begin();
  if (status == NULL) {
    calx_module_buffer(m, "n_averaged",
                       cx_nn_filled(CALX_SCALAR, false, CALX_I64));
  }
  calx_status *made = calx_scope_end(scope);
  cx_nn_module_fail(m, status);
  cx_nn_module_fail(m, made);
  return m;
}

// ---- pairs of tensors -------------------------------------------------------

typedef struct average_pair {
  calx_tensor *averaged, *current, *next;
  bool is_buffer;
} average_pair;

typedef struct pairs {
  calx_module *average;  // the child
  average_pair *list;
  size_t n, capacity, names;
  calx_status *status;
} pairs;

static void add(void *user, const char *path, calx_entry_kind kind,
                calx_tensor *current)
{
  pairs *p = user;
  p->names++;
  for (size_t i = 0; i < p->n; i++) {
    if (p->list[i].current == current) return;  // tied
  }
  if (p->status != NULL) return;
  calx_tensor *averaged = calx_module_find(p->average, path);
  if (averaged == NULL) {
    p->status = cx_invalid(
        "averaged_model_update_parameters: the average has no '%s'", path);
  } else if (cx_lazy_tensor_poisoned(averaged) ||
             cx_lazy_tensor_poisoned(current)) {
    p->status = cx_status_copy(calx_tensor_error(
        cx_lazy_tensor_poisoned(current) ? current : averaged));
  } else if (!cx_graph_shape_equal(cx_lazy_tensor_shape(averaged),
                                   cx_lazy_tensor_shape(current))) {
    p->status = cx_invalid(
        "averaged_model_update_parameters: '%s' is %s in the average, %s in "
        "the model",
        path, cx_graph_shape_str(cx_lazy_tensor_shape(averaged)),
        cx_graph_shape_str(cx_lazy_tensor_shape(current)));
  } else if (!cx_grow(&p->list, &p->capacity, p->n + 1, sizeof *p->list)) {
    p->status = cx_out_of_memory();
  } else {
    p->list[p->n++] =
        (average_pair){ averaged, current, NULL, kind == CALX_BUFFER };
  }
}

static void count(void *user, const char *path, calx_entry_kind kind,
                  calx_tensor *t)
{
  (void)path, (void)kind, (void)t;
  ++*(size_t *)user;
}

// ---- the average ------------------------------------------------------------

// x + (y - x) w, where an integer is cut as PyTorch's copy cuts it.
static calx_tensor *toward(calx_tensor *x, calx_tensor *y, calx_tensor *w)
{
  calx_dtype dtype = calx_tensor_dtype(x);
  calx_tensor *apart = calx_sub_with(y, x, NULL);
  calx_tensor *sum = calx_add_with(x, calx_mul(apart, w), NULL);
  return calx_tensor_dtype(sum) == dtype ? sum : calx_to_dtype(sum, dtype);
}

static calx_tensor *next_of(const averaged_model *a, const average_pair *p,
                            calx_tensor *n)
{
  if (p->is_buffer && !a->o.use_buffers) return p->current;
  calx_tensor *x = cx_lazy_tensor_detached(p->averaged),
              *y = cx_lazy_tensor_detached(p->current), *next;
  if (a->o.avg_fn != NULL) {
    next = a->o.avg_fn(a->o.user, x, y, n);
    if (next == NULL) {
      return cx_lazy_tensor_poison(
          cx_invalid("averaged_model: the avg_fn gave NULL"));
    }
  } else if (a->o.decay != 0) {
    next = toward(x, y, calx_scalar(1 - a->o.decay));
  } else {
    calx_tensor *count = calx_add_with(n, calx_scalar_int(1), NULL);
    next = toward(x, y, calx_reciprocal(calx_to_dtype(count, CALX_F32)));
  }
  if (cx_lazy_tensor_poisoned(next)) return next;
  if (!cx_graph_shape_equal(cx_lazy_tensor_shape(next),
                            cx_lazy_tensor_shape(x))) {
    return cx_lazy_tensor_poison(
        cx_invalid("averaged_model: the avg_fn gave %s, %s is wanted",
                   cx_graph_shape_str(cx_lazy_tensor_shape(next)),
                   cx_graph_shape_str(cx_lazy_tensor_shape(x))));
  }
  return calx_where(calx_eq(n, calx_scalar_int(0)), y, next);
}

static calx_status *take(const averaged_model *a, pairs *p)
{
  calx_scope *scope = calx_scope_begin();
  cx_lazy_no_grad_begin();
  calx_tensor *n = cx_nn_tensor(a->m, "n_averaged");
  for (size_t i = 0; i < p->n; i++) {
    p->list[i].next = next_of(a, &p->list[i], n);
  }
  calx_tensor *more = calx_add_with(n, calx_scalar_int(1), NULL);
  for (size_t i = 0; i < p->n && calx_scope_error() == NULL; i++) {
    cx_lazy_tensor_set_value(p->list[i].averaged, p->list[i].next);
  }
  if (calx_scope_error() == NULL) cx_lazy_tensor_set_value(n, more);
  cx_lazy_no_grad_end();
  return calx_scope_end(scope);
}

static calx_status *update(calx_module *average, calx_module *model)
{
  static const char call[] = "averaged_model_update_parameters";
  CALX_TRY(cx_annotate(calx_module_error(average), "so there is no average"));
  CALX_TRY(cx_annotate(calx_module_error(model), "so there is no average"));
  if (cx_lazy_scope_failed()) return NULL;
  calx_module *child = calx_module_get(average, "module");
  if (average->layer != &layer || child == NULL) {
    return cx_invalid("%s: '%s' (%s) is no AveragedModel with a child 'module'",
                      call, cx_nn_module_path(average), average->kind);
  }
  pairs p = { .average = child };
  calx_module_visit(model, add, &p);
  size_t names = 0;
  calx_module_visit(child, count, &names);
  if (p.status == NULL && names != p.names) {
    p.status = cx_invalid("%s: the average has %zu tensors, the model %zu",
                          call, names, p.names);
  }
  if (p.status == NULL) p.status = take(average->state, &p);
  cx_free(p.list);
  return p.status;
}

void calx_averaged_model_update_parameters(calx_module *average,
                                           calx_module *model)
{
  cx_lazy_scope_pin(update(average, model));
}
