// BatchSizeFinder beside Lightning's: row E23 of its acceptance list. The lines
// are those of Lightning 2.6.6 but where a comment tells.
#include "boring.h"
#include "said.h"
#include "train/internal.h"

typedef struct plan {
  int64_t most;  // a batch of more samples has no memory
  bool by_text;  // the failure has its text, not its code
  bool really;   // the device has too little
  int64_t last;  // the size of the last batch of an epoch, before the shorter
} plan;

// An error of the step, as a plugin would report it.
static void fail_step(const plan *p)
{
  cx_lazy_scope_pin(
      p->by_text
          ? cx_error(CALX_INTERNAL, "Out of memory allocating 123 bytes")
          : cx_error(CALX_RESOURCE_EXHAUSTED, "no memory for 123 bytes"));
}

// 2^23 times 2^23 numbers, which a sort needs all at once.
static calx_tensor *too_large(void)
{
  const int64_t n = (int64_t)1 << 23;
  calx_tensor *column = calx_ones(CALX_SHAPE(n, 1));
  calx_tensor *row = calx_ones(CALX_SHAPE(1, n));
  return calx_sum(calx_matmul(calx_matmul(column, row), column));
}

static calx_tensor *step(calx_trainer *t, void *self, const calx_batch *batch,
                         int64_t i)
{
  plan *p = calx_trainer_user(t);
  if (i == 0) p->last = batch->size;
  calx_tensor *loss = boring_loss(self, batch);
  if (batch->size <= p->most) return loss;
  if (p->really) return calx_add(loss, too_large());
  fail_step(p);
  return loss;
}

// What the finder wrote, with how training went on behind it.
static calx_status *fit(calx_callback *c, plan *p, int64_t samples,
                        int64_t batch_size, int devices)
{
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring), .user = p,
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = step);
  calx_dataset *data = boring_dataset(samples);
  calx_loader *loader =
      calx_loader_new(data, .batch_size = batch_size, .shuffle = true);
  calx_trainer *t =
      calx_trainer_new(.devices = devices, .max_epochs = 1, BORING_ALONE,
                       .callbacks = &c, .n_callbacks = 1);
  said_begin();
  calx_status *status =
      calx_trainer_fit(t, &module, .train_dataloader = loader);
  said_end();
  if (status == NULL) {
    const int64_t size = calx_batch_size_finder_optimal(c);
    assert_int_equal(p->last, size < samples ? size : samples);
    assert_int_equal(calx_trainer_global_step(t), (samples + size - 1) / size);
  }
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
  return status;
}

#define SUCCEEDED(a, b) \
  "Batch size " #a " succeeded, trying batch size " #b "\n"
#define FAILED(a, b) "Batch size " #a " failed, trying batch size " #b "\n"
#define FINISHED(n)                                                              \
  "Finished batch size finder, will continue with full run using batch size " #n \
  "\n"
#define OPTIONS(...)                                            \
  {                                                             \
    .size = sizeof(calx_batch_size_finder_options), __VA_ARGS__ \
  }

static const struct {
  calx_batch_size_finder_options options;
  int64_t most, samples, found;
  const char *lines;
} cases[] = {
  // E23.
  { OPTIONS(.mode = "power", .init_val = 500, .steps_per_trial = 1,
            .max_trials = 10),
    100, 1000, 62,
    FAILED(500, 250) FAILED(250, 125) FAILED(125, 62) SUCCEEDED(62, 124)
        FAILED(124, 62) FINISHED(62) },
  { OPTIONS(.mode = "binsearch", .init_val = 500, .steps_per_trial = 1,
            .max_trials = 10),
    100, 1000, 95,
    FAILED(500, 250) FAILED(250, 125) FAILED(125, 63) SUCCEEDED(
        63, 94) SUCCEEDED(94, 109) FAILED(109, 101) FAILED(101, 97)
        SUCCEEDED(97, 99) SUCCEEDED(
            99, 100) "Applying margin of 5.0%, reducing batch size from 100 to "
                     "95\n" FINISHED(95) },
  { OPTIONS(.mode = NULL), 100, 1000, 64,
    SUCCEEDED(2, 4) SUCCEEDED(4, 8) SUCCEEDED(8, 16) SUCCEEDED(16, 32)
        SUCCEEDED(32, 64) SUCCEEDED(64, 128) FAILED(128, 64) FINISHED(64) },
  { OPTIONS(.mode = "power"), 10000, 100, 128,
    SUCCEEDED(2, 4) SUCCEEDED(4, 8) SUCCEEDED(8, 16) SUCCEEDED(16, 32)
        SUCCEEDED(32, 64) SUCCEEDED(
            64,
            128) "The batch size 128 is greater or equal than the length of your "
                 "dataset: 100.\n" FINISHED(128) },
  { OPTIONS(.mode = "binsearch", .margin = CALX_ZERO), 100, 1000, 100,
    SUCCEEDED(2, 4) SUCCEEDED(4, 8) SUCCEEDED(8, 16) SUCCEEDED(16, 32)
        SUCCEEDED(32, 64) SUCCEEDED(64, 128) FAILED(128, 96) SUCCEEDED(96, 112)
            FAILED(112, 104) FAILED(104, 100) SUCCEEDED(100, 102)
                FAILED(102, 101) FAILED(101, 100) FINISHED(100) },
  { OPTIONS(.max_trials = 3), 10000, 1000, 8,
    SUCCEEDED(2, 4) SUCCEEDED(4, 8) FINISHED(8) },
  { OPTIONS(.mode = "binsearch", .max_trials = 8, .max_val = 40), 50, 1000, 38,
    SUCCEEDED(2, 4) SUCCEEDED(4, 8) SUCCEEDED(8, 16)
        SUCCEEDED(16, 32) "Batch size 64 exceeds max_val limit 40, capping at 40\n" SUCCEEDED(
            32, 40) "Reached the maximum batch size limit of 40. Stopping "
                    "search.\nApplying margin of 5.0%, reducing batch size "
                    "from 40 to 38\n" FINISHED(38) },
  // Lightning takes 32 here, which is above the limit and was not tried.
  { OPTIONS(.max_val = 20), 10000, 1000, 20,
    SUCCEEDED(2, 4) SUCCEEDED(4, 8)
        SUCCEEDED(8, 16) "Batch size 32 exceeds max_val limit 20, capping at 20\n" SUCCEEDED(
            16, 20) "Reached the maximum batch size limit of 20. Stopping "
                    "search.\n" FINISHED(20) },
};

// The finder's lines, without those of the library.
static void check_lines(const char *wanted)
{
  static const char *const begins[] = { "Batch size", "The batch size",
                                        "Reached", "Applying", "Finished" };
  char lines[8192] = "";
  char *at = said_lines.text;
  for (char *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
      if (strncmp(at, begins[i], strlen(begins[i])) != 0) continue;
      strncat(lines, at, (size_t)(end + 1 - at));
    }
  }
  assert_string_equal(lines, wanted);
}

static void test_as_lightning(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    plan p = { .most = cases[i].most, .by_text = i % 2 };
    calx_callback *c = calx_batch_size_finder_with(&cases[i].options);
    assert_int_equal(
        calx_batch_size_finder_optimal(c),
        cases[i].options.init_val != 0 ? cases[i].options.init_val : 2);
    CHECK_STATUS_OK(fit(c, &p, cases[i].samples, 3, 1));
    check_lines(cases[i].lines);
    assert_int_equal(calx_batch_size_finder_optimal(c), cases[i].found);
    calx_callback_free(c);
  }
}

// The engine itself has too little memory for batches of more than 8.
static void test_device_memory(void **state)
{
  (void)state;
  if (!support_own_engine()) return;
  plan p = { .most = 8, .really = true };
  calx_callback *c = calx_batch_size_finder();
  CHECK_STATUS_OK(fit(c, &p, 64, 1, 1));
  assert_int_equal(calx_batch_size_finder_optimal(c), 8);
  calx_callback_free(c);
}

static void test_refused(void **state)
{
  (void)state;
  static const struct {
    calx_batch_size_finder_options options;
    const char *text;
  } rows[] = {
    { OPTIONS(.mode = "guess"),
      "`mode` should be either of ('power', 'binsearch'), got 'guess'" },
    { OPTIONS(.margin = 1), "`margin` should be between 0 and 1." },
    { OPTIONS(.init_val = -1), "init_val -1" },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    calx_callback *c = calx_batch_size_finder_with(&rows[i].options);
    calx_trainer *t =
        calx_trainer_new(.max_epochs = 1, .callbacks = &c, .n_callbacks = 1);
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_error(t), rows[i].text);
    calx_trainer_free(t);
    calx_callback_free(c);
  }
  plan p = { .most = 100 };
  calx_callback *c = calx_batch_size_finder();
  CHECK_STATUS(CALX_INVALID_ARGUMENT, fit(c, &p, 64, 1, 2),
               "The Batch size finder is not supported with distributed "
               "strategies: there are 2 ranks");
  calx_callback_free(c);
  // Not even a batch of one sample has memory.
  p.most = 0;
  c = calx_batch_size_finder();
  CHECK_STATUS(CALX_RESOURCE_EXHAUSTED, fit(c, &p, 64, 1, 1),
               "no memory for 123 bytes");
  calx_callback_free(c);
}

int main(void)
{
  setenv("CPU_NUM_DEVICES", "2", 1);
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_as_lightning),
    SUPPORT_TEST(test_device_memory),
    SUPPORT_TEST(test_refused),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
