// train/average: a model's weights averaged over the steps of training.
#include "train/average.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "calx/pointwise.h"
#include "lazy/lazy.h"

typedef struct average_tensor {
  calx_tensor *current, *average;  // both owned
  bool is_copied;
} average_tensor;

struct cx_train_average {
  calx_module *model;
  cx_train_averaged what;
  average_tensor *list;  // each tensor of the model once
  size_t n, capacity;
  calx_status *status;  // of making it
};

// ---- making -----------------------------------------------------------------

static average_tensor *find(const cx_train_average *a, const calx_tensor *t)
{
  for (size_t i = 0; i < a->n; i++) {
    if (a->list[i].current == t) return &a->list[i];
  }
  return NULL;
}

static void add(void *user, const char *path, calx_entry_kind kind,
                calx_tensor *tensor)
{
  (void)path;
  cx_train_average *a = user;
  if (kind == CALX_BUFFER && a->what == CX_TRAIN_PARAMETERS) return;
  if (a->status != NULL || find(a, tensor) != NULL) return;
  if (!cx_grow(&a->list, &a->capacity, a->n + 1, sizeof *a->list)) {
    a->status = cx_out_of_memory();
    return;
  }
  a->list[a->n++] =
      (average_tensor){ .current = calx_retain(tensor),
                        .average = calx_take(cx_lazy_tensor_detached(tensor)),
                        .is_copied = kind == CALX_BUFFER &&
                                     a->what == CX_TRAIN_PARAMETERS_COPY };
}

calx_status *cx_train_average_new(calx_module *model, cx_train_averaged what,
                                  cx_train_average **out)
{
  *out = NULL;
  cx_train_average *a = cx_calloc(1, sizeof *a);
  if (a == NULL) return cx_out_of_memory();
  a->model = model;
  a->what = what;
  calx_module_visit(model, add, a);
  if (a->status == NULL) {
    *out = a;
    return NULL;
  }
  calx_status *status = a->status;
  cx_train_average_free(a);
  return status;
}

void cx_train_average_free(cx_train_average *a)
{
  if (a == NULL) return;
  for (size_t i = 0; i < a->n; i++) {
    calx_release(a->list[i].current);
    calx_release(a->list[i].average);
  }
  cx_free(a->list);
  cx_free(a);
}

// ---- updating ---------------------------------------------------------------

// Of whole numbers in f32, cut, as PyTorch copies the average into them.
static calx_tensor *mix(const average_tensor *p, double keep, double take)
{
  calx_tensor *x = cx_lazy_tensor_detached(p->average),
              *y = cx_lazy_tensor_detached(p->current);
  if (p->is_copied) return y;
  const calx_dtype dtype = calx_tensor_dtype(x);
  const bool is_exact = !cx_dtype_is_inexact(dtype);
  if (is_exact) {
    x = calx_to_dtype(x, CALX_F32);
    y = calx_to_dtype(y, CALX_F32);
  }
  calx_tensor *sum = calx_add_with(calx_mul(x, calx_scalar(keep)),
                                   calx_mul(y, calx_scalar(take)), NULL);
  return is_exact ? calx_to_dtype(sum, dtype) : sum;
}

void cx_train_average_update(cx_train_average *a, double keep, double take)
{
  cx_lazy_no_grad_begin();
  for (size_t i = 0; i < a->n; i++) {
    cx_lazy_tensor_set_value(a->list[i].average, mix(&a->list[i], keep, take));
  }
  cx_lazy_no_grad_end();
}

void cx_train_average_swap(cx_train_average *a)
{
  cx_lazy_no_grad_begin();
  for (size_t i = 0; i < a->n; i++) {
    average_tensor *p = &a->list[i];
    calx_tensor *current = cx_lazy_tensor_detached(p->current);
    cx_lazy_tensor_set_value(p->current, cx_lazy_tensor_detached(p->average));
    cx_lazy_tensor_set_value(p->average, current);
  }
  cx_lazy_no_grad_end();
}

void cx_train_average_give(cx_train_average *a)
{
  cx_lazy_no_grad_begin();
  for (size_t i = 0; i < a->n; i++) {
    const average_tensor *p = &a->list[i];
    cx_lazy_tensor_set_value(p->current, cx_lazy_tensor_detached(p->average));
  }
  cx_lazy_no_grad_end();
}

// ---- dicts ------------------------------------------------------------------

typedef struct average_dict {
  const cx_train_average *a;
  calx_value *out;
  calx_status *status;
} average_dict;

static void put(void *user, const char *path, calx_entry_kind kind,
                calx_tensor *tensor)
{
  (void)kind;
  average_dict *d = user;
  const average_tensor *p = find(d->a, tensor);
  if (p == NULL || d->status != NULL) return;
  d->status =
      calx_value_set(d->out, path, calx_value_tensor(calx_cpu(p->average)));
}

calx_status *cx_train_average_state(cx_train_average *a, calx_value **out)
{
  average_dict d = { .a = a, .out = calx_value_container(CALX_KIND_DICT) };
  *out = NULL;
  if (d.out == NULL) return cx_out_of_memory();
  calx_module_visit(a->model, put, &d);
  d.status = cx_status_first(d.status, cx_status_copy(calx_scope_error()));
  if (d.status == NULL) {
    *out = d.out;
  } else {
    calx_value_free(d.out);
  }
  return d.status;
}

calx_status *cx_train_keep_tensors(const calx_value *dict, calx_value **out)
{
  calx_status *status = NULL;
  calx_value *copy = calx_value_container(CALX_KIND_DICT);
  *out = NULL;
  if (copy == NULL) return cx_out_of_memory();
  for (size_t i = 0; status == NULL && i < calx_value_count(dict); i++) {
    const char *key = calx_value_key(dict, i);
    calx_tensor *tensor = calx_value_as_tensor(calx_value_item(dict, i));
    if (key == NULL || tensor == NULL) continue;
    status = calx_value_set(copy, key, calx_value_tensor(tensor));
  }
  if (status == NULL) {
    *out = copy;
  } else {
    calx_value_free(copy);
  }
  return status;
}
