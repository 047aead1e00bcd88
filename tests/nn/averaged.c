// averaged: averages of a model beside torch.optim.swa_utils, which
// averaged_torch.py runs on the same values; their states; what is refused.
#include "calx/autograd.h"
#include "calx/calx.h"
#include "support/torch.h"

static calx_value *rows;

static void put(calx_value *to, const char *key, calx_value *v)
{
  CHECK_STATUS_OK(calx_value_set(to, key, v));
}

static void put_copy(void *user, const char *path, calx_entry_kind kind,
                     calx_tensor *t)
{
  (void)kind;
  put(user, path, calx_value_tensor(calx_cpu(t)));
}

static calx_value *state_of(calx_module *m)
{
  calx_value *v = calx_value_container(CALX_KIND_DICT);
  calx_scope *s = calx_scope_begin();
  calx_module_visit(m, put_copy, v);
  CHECK_STATUS_OK(calx_scope_end(s));
  return v;
}

// Linear 3-4, BatchNorm1d 4, in a Sequential.
static calx_module *make(calx_module *parent, const char *name)
{
  calx_module *m = calx_nn_sequential(parent, name);
  calx_nn_linear(m, NULL, 3, 4);
  calx_nn_batch_norm1d(m, NULL, 4);
  CHECK_STATUS_OK(calx_module_error(m));
  return m;
}

static calx_tensor *batch(int i)
{
  double v[15];
  for (int k = 0; k < 15; k++) v[k] = sin(1.7 * k + i) * (1 + i);
  return support_tensor(CALX_F32, CALX_SHAPE(5, 3), v);
}

// Another value of each parameter, and of the statistics by a forward.
static void move(calx_module *m, int i)
{
  calx_scope *s = calx_scope_begin();
  calx_no_grad_begin();
  calx_tensor *w = calx_module_find(m, "0.weight");
  calx_assign(w, calx_add(calx_mul(w, 0.75), 0.1 * i));
  calx_sync(calx_forward(m, batch(i)));
  calx_no_grad_end();
  CHECK_STATUS_OK(calx_scope_end(s));
}

static calx_tensor *greatest(void *user, calx_tensor *averaged,
                             calx_tensor *current, calx_tensor *n)
{
  (void)user;
  (void)n;
  return calx_maximum(averaged, current);
}

typedef struct feed {
  int next;
} feed;

static calx_tensor *next_batch(void *user)
{
  feed *f = user;
  return f->next < 3 ? batch(10 + f->next++) : NULL;
}

// A row: the model's state at each update, and the average's at the end.
static void add(const char *code, calx_module *average)
{
  calx_module *m = make(NULL, NULL);
  make(average, "module");
  CHECK_STATUS_OK(calx_module_error(average));
  calx_value *row = calx_value_container(CALX_KIND_DICT);
  calx_value *seen = calx_value_container(CALX_KIND_LIST);
  calx_value *data = calx_value_container(CALX_KIND_LIST);
  for (int i = 0; i < 4; i++) {
    move(m, i);
    CHECK_STATUS_OK(calx_value_append(seen, state_of(m)));
    calx_scope *s = calx_scope_begin();
    calx_averaged_model_update_parameters(average, m);
    if (i % 2 == 1) calx_sync(NULL);
    CHECK_STATUS_OK(calx_scope_end(s));
  }
  calx_sync(NULL);
  put(row, "code", calx_value_string(code));
  put(row, "seen", seen);
  put(row, "average", state_of(average));
  feed f = { 0 };
  calx_module_train(average, false);
  calx_update_bn(average, next_batch, &f);
  CHECK_STATUS_OK(calx_scope_take_error());
  assert_int_equal(f.next, 3);
  assert_false(calx_module_is_training(average));
  put(row, "updated", state_of(average));
  calx_scope *s = calx_scope_begin();
  for (int i = 10; i < 13; i++) {
    CHECK_STATUS_OK(calx_value_append(data, calx_value_tensor(batch(i))));
  }
  put(row, "y", calx_value_tensor(calx_cpu(calx_forward(average, batch(1)))));
  put(row, "x", calx_value_tensor(batch(1)));
  put(row, "data", data);
  CHECK_STATUS_OK(calx_scope_end(s));
  CHECK_STATUS_OK(calx_value_append(rows, row));
  calx_module_free(m);
  calx_module_free(average);
}

static void test_torch(void **state)
{
  (void)state;
  rows = calx_value_container(CALX_KIND_LIST);
  add("AveragedModel(m)", calx_averaged_model(NULL, NULL));
  add("AveragedModel(m, use_buffers=True)",
      calx_averaged_model(NULL, NULL, .use_buffers = true));
  add("AveragedModel(m, multi_avg_fn=get_ema_multi_avg_fn(0.9))",
      calx_averaged_model(NULL, NULL, .decay = 0.9));
  add("AveragedModel(m, multi_avg_fn=get_ema_multi_avg_fn(0.6), "
      "use_buffers=True)",
      calx_averaged_model(NULL, NULL, .decay = 0.6, .use_buffers = true));
  add("AveragedModel(m, avg_fn=lambda a, b, n: torch.maximum(a, b))",
      calx_averaged_model(NULL, NULL, .avg_fn = greatest));
  torch_check(rows, "averaged_torch.py");
}

// The state dict has the count, and a loaded average goes on.
static void test_state(void **state)
{
  (void)state;
  calx_module *m = make(NULL, NULL);
  calx_module *a = calx_averaged_model(NULL, NULL),
              *b = calx_averaged_model(NULL, NULL);
  make(a, "module");
  make(b, "module");
  calx_averaged_model_update_parameters(a, m);
  move(m, 1);
  calx_value *dict;
  CHECK_STATUS_OK(calx_module_state_dict(a, &dict));
  CHECK_STATUS_OK(calx_module_load_state_dict(b, dict));
  calx_value_free(dict);
  calx_averaged_model_update_parameters(a, m);
  calx_averaged_model_update_parameters(b, m);
  calx_sync(NULL);
  calx_scope *s = calx_scope_begin();
  CHECK_VALUES(calx_module_find(b, "n_averaged"), 0, 2);
  calx_tensor *x = calx_module_find(a, "module.0.weight");
  calx_tensor *y = calx_module_find(b, "module.0.weight");
  CHECK_CLOSE(calx_item(calx_max(calx_abs(calx_sub(x, y)))), 0, 0);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_module_free(m);
  calx_module_free(a);
  calx_module_free(b);
}

static void test_refused(void **state)
{
  (void)state;
  calx_module *a = calx_averaged_model(NULL, NULL, .decay = 1.5);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(a),
               "Invalid decay value 1.5");
  calx_module_free(a);
  a = calx_averaged_model(NULL, NULL, .decay = 0.5, .avg_fn = greatest);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(a), "two averages");
  calx_module_free(a);
  a = calx_averaged_model(NULL, NULL);
  calx_module *m = calx_nn_linear(NULL, NULL, 2, 2);
  calx_scope *s = calx_scope_begin();
  calx_forward(a, batch(0));
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_end(s), "no child");
  s = calx_scope_begin();
  calx_averaged_model_update_parameters(a, m);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "no AveragedModel");
  calx_nn_linear(a, "module", 2, 3);
  s = calx_scope_begin();
  calx_averaged_model_update_parameters(a, m);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "'weight'", "f32[3,2]",
               "f32[2,2]");
  s = calx_scope_begin();
  calx_update_bn(m, NULL, NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "is NULL");
  calx_module_free(a);
  calx_module_free(m);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_torch),
    SUPPORT_TEST(test_state),
    SUPPORT_TEST(test_refused),
  };
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
