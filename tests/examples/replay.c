// Stands in front of what an example calls, so that it trains from recorded
// weights, on recorded batches and with recorded noise: those of the .pt file
// that REPLAY names (tutorial.py writes it). Prints each value that the example
// gives to its progress line, and ends the program with the last batch.
#include <stdio.h>
#include <stdlib.h>

#include "calx/calx.h"

enum { MODELS = 8 };

calx_module *__real_calx_module_new(const char *kind, calx_forward_fn *forward,
                                    void *self);
calx_module *__wrap_calx_module_new(const char *kind, calx_forward_fn *forward,
                                    void *self);
int64_t __wrap_calx_loader_size(const calx_loader *loader);
bool __wrap_calx_loader_next(calx_loader *loader, calx_batch *out_batch);
calx_tensor *__wrap_calx_randn_with(calx_dims shape,
                                    const calx_create_options *options);
calx_tensor *__wrap_calx_randn_like_with(calx_tensor *x,
                                         const calx_create_options *options);
double __wrap_calx_progress_value(calx_progress *progress, const char *name,
                                  calx_tensor *value);

static calx_module *models[MODELS];
static size_t n_models, n_batches, n_draws;
static calx_value *record;
static calx_batch last;

static void check(calx_status *status)
{
  if (status == NULL) return;
  calx_status_print(stderr, status);
  _Exit(3);
}

calx_module *__wrap_calx_module_new(const char *kind, calx_forward_fn *forward,
                                    void *self)
{
  if (n_models == MODELS) abort();
  return models[n_models++] = __real_calx_module_new(kind, forward, self);
}

static void begin(void)
{
  const char *path = getenv("REPLAY");
  check(calx_load(path != NULL ? path : "REPLAY", &record));
  for (size_t i = 0; i < n_models; i++) {
    const char *kind = calx_module_kind(models[i]);
    check(calx_module_load_state_dict(
        models[i], calx_value_get(calx_value_get(record, "models"), kind)));
  }
}

static calx_tensor *tensor(const calx_value *list, size_t i)
{
  calx_tensor *host = calx_value_as_tensor(calx_value_item(list, i));
  calx_tensor *t = calx_to(host, NULL);
  check(calx_scope_take_error());
  return t;
}

int64_t __wrap_calx_loader_size(const calx_loader *loader)
{
  (void)loader;
  if (record == NULL) begin();
  return (int64_t)calx_value_count(calx_value_get(record, "batches"));
}

bool __wrap_calx_loader_next(calx_loader *loader, calx_batch *out_batch)
{
  (void)loader;
  calx_sync(NULL);
  if (record == NULL) begin();
  for (size_t k = 0; k < last.n_fields; k++) calx_release(last.fields[k]);
  const calx_value *batches = calx_value_get(record, "batches");
  const calx_value *fields = calx_value_item(batches, n_batches);
  if (fields == NULL) {
    fflush(stdout);
    _Exit(0);
  }
  last = (calx_batch){ .n_fields = calx_value_count(fields),
                       .index = (int64_t)n_batches++ };
  for (size_t k = 0; k < last.n_fields; k++) {
    last.fields[k] = calx_retain(tensor(fields, k));
  }
  last.data = last.fields[0];
  last.target = last.fields[1];
  last.size = calx_tensor_dim(last.data, 0);
  *out_batch = last;
  return true;
}

static calx_tensor *draw(calx_dims shape)
{
  calx_tensor *t = tensor(calx_value_get(record, "noise"), n_draws++);
  bool fits = t != NULL && calx_tensor_rank(t) == shape.count;
  for (size_t i = 0; fits && i < shape.count; i++) {
    fits = calx_tensor_dim(t, (int)i) == shape.values[i];
  }
  if (fits) return t;
  fprintf(stderr, "draw %zu has another shape than PyTorch's\n", n_draws);
  _Exit(3);
}

calx_tensor *__wrap_calx_randn_with(calx_dims shape,
                                    const calx_create_options *options)
{
  (void)options;
  return draw(shape);
}

calx_tensor *__wrap_calx_randn_like_with(calx_tensor *x,
                                         const calx_create_options *options)
{
  (void)options;
  return draw(calx_tensor_shape(x));
}

double __wrap_calx_progress_value(calx_progress *progress, const char *name,
                                  calx_tensor *value)
{
  (void)progress;
  double number = calx_item(value);
  check(calx_scope_take_error());
  printf("REPLAY %s %.9g\n", name, number);
  return number;
}
