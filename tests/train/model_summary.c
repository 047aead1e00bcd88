// The summary of a model beside Lightning's (row D12).
#include "tables.h"
#include "train/summary.h"

static void test_counts(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    cx_text out = { 0 };
    cx_train_put_count(&out, counts[i].count);
    tables_check(cx_text_str(&out), counts[i].text, i);
    cx_text_free(&out);
  }
}

// ---- models -----------------------------------------------------------------

typedef struct model {
  calx_module *root, *first, *second;
  calx_tensor *scale;
} model;

static calx_tensor *forward(void *self, calx_tensor *x)
{
  const model *m = self;
  calx_tensor *y = calx_forward(m->first, x);
  if (m->second != NULL) y = calx_forward(m->second, y);
  return m->scale != NULL ? calx_mul(y, m->scale) : y;
}

static void make_tied(model *m)
{
  static const char *const names[] = { "layer_1", "layer_2", "layer_3" };
  for (int i = 0; i < 3; i++) {
    calx_nn_linear(m->root, names[i], 32, 10, .no_bias = true);
  }
  calx_module_tie(m->root, "layer_3.weight",
                  calx_module_find(m->root, "layer_1.weight"));
}

static void make_nested(model *m)
{
  m->first = calx_nn_sequential(m->root, "net");
  calx_nn_linear(m->first, NULL, 256, 512);
  calx_nn_batch_norm1d(m->first, NULL, 512);
  m->second = calx_nn_linear(m->root, "head", 512, 3);
  calx_nn_linear(m->root, "unused", 4, 4);
}

static void make_own(model *m)
{
  m->scale = calx_module_param(m->root, "scale", calx_ones(CALX_SHAPE(7)));
  m->first = calx_nn_linear(m->root, "frozen", 7, 7);
  calx_module_requires_grad(m->first, false);
  calx_module_train(m->first, false);
}

static void make_image(model *m)
{
  m->first = calx_nn_sequential(m->root, "body");
  calx_nn_conv2d(m->first, NULL, 3, 8, 3);
  calx_nn_relu(m->first, NULL);
  calx_nn_flatten(m->first, NULL);
  calx_nn_linear(calx_nn_sequential(m->first, NULL), NULL, 8 * 6 * 6, 10);
}

static calx_module *make(calx_trainer *t, void *self)
{
  static const struct {
    const char *name;
    void (*make)(model *m);
  } makers[] = { { "Tied", make_tied },
                 { "Nested", make_nested },
                 { "Own", make_own },
                 { "Image", make_image } };
  model *m = self;
  const char *name = calx_trainer_user(t);
  m->root = calx_module_new(name, forward, m);
  for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
    if (strcmp(makers[i].name, name) == 0) makers[i].make(m);
  }
  return m->root;
}

static void optimize(calx_trainer *t, void *self)
{
  calx_trainer_add_optimizer(t, calx_sgd(((model *)self)->root, .lr = 0.1));
}

static calx_tensor *never(calx_trainer *t, void *self, const calx_batch *batch,
                          int64_t i)
{
  (void)t, (void)self, (void)batch, (void)i;
  fail();
  return NULL;
}

// ---- tables -----------------------------------------------------------------

static void ignore(void *user, const char *line)
{
  (void)user, (void)line;
}

// Rich fills the terminal's lines with blanks.
static const char *strip(char *text)
{
  char *to = text;
  for (const char *from = text; *from != '\0'; from++) {
    while (*from == '\n' && to > text && to[-1] == ' ') to--;
    *to++ = *from;
  }
  *to = '\0';
  return text;
}

// What a fit of no epochs prints.
static const char *fit(const char *name, calx_callback *summary,
                       calx_callback *bar, bool is_rich, const char *precision)
{
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(model),
                            .user = (void *)(uintptr_t)name,
                            .configure_model = make,
                            .configure_optimizers = optimize,
                            .training_step = never);
  calx_callback *const callbacks[] = { summary != NULL ? summary : bar, bar };
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = 0, .callbacks = callbacks,
                       .n_callbacks = (summary != NULL) + (bar != NULL),
                       .no_logger = true, .precision = precision);
  calx_dataset *data = boring_dataset(1);
  calx_loader *loader = calx_loader_new(data);
  FILE *stream = is_rich ? stdout : stderr;
  calx_log_set(ignore, NULL);
  const int before = tables_begin(stream);
  calx_status *status =
      calx_trainer_fit(t, &module, .train_dataloader = loader);
  char *text = tables_end(stream, before);
  calx_log_set(NULL, NULL);
  CHECK_STATUS_OK(status);
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
  calx_callback_free(summary);
  calx_callback_free(bar);
  return is_rich ? strip(text) : text;
}

static void test_row_D12(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof summaries / sizeof *summaries; i++) {
    const calx_model_summary_options o = {
      .size = sizeof o,
      .max_depth = summaries[i].max_depth,
      .example_input = summaries[i].example,
    };
    const bool is_rich = summaries[i].is_rich;
    calx_callback *summary = is_rich ? calx_rich_model_summary_with(&o)
                                     : calx_model_summary_with(&o);
    const char *got = fit(summaries[i].model, summary, NULL, is_rich, NULL);
    tables_check(got, summaries[i].text, i);
  }
}

// The trainer's own has the shape of the bar; another depth, and none.
static void test_default(void **state)
{
  (void)state;
  assert_string_equal(fit("Tied", NULL, NULL, false, NULL), summaries[0].text);
  assert_string_equal(
      fit("Tied", NULL, calx_rich_progress_bar(.leave = true), true, NULL),
      summaries[1].text);
  assert_string_equal(
      fit("Tied", calx_model_summary(.max_depth = 0), NULL, false, NULL), "");
  calx_callback *wrong = calx_model_summary(.max_depth = -2);
  calx_trainer *t = calx_trainer_new(.callbacks = &wrong, .n_callbacks = 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_error(t),
               "`max_depth` can be -1, 0 or > 0, got -2.");
  calx_trainer_free(t);
  calx_callback_free(wrong);
}

// The size is that of the parameters' precision.
static void test_precision(void **state)
{
  (void)state;
  static const struct {
    const char *precision, *size;
  } rows[] = { { "bf16-true", "\n0.268     Total estimated" },
               { "32-true", "\n0.537     Total estimated" },
               { "64-true", "\n1.073     Total estimated" } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *text = fit("Nested", NULL, NULL, false, rows[i].precision);
    if (strstr(text, rows[i].size) == NULL) print_error("%s\n", text);
    assert_non_null(strstr(text, rows[i].size));
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_counts),
    SUPPORT_TEST(test_row_D12),
    SUPPORT_TEST(test_default),
    SUPPORT_TEST(test_precision),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
