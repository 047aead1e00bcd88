// Which samples a rank reads, by row of Lightning's acceptance list.
#include "calx/iterable.h"

#include "boring.h"

enum { RANKS = 4, MOST = 256, TEXT = 16 };

// ---- samples that know their number -----------------------------------------

static const calx_field fields[] = {
  { .name = "data", .dtype = CALX_F32, .rank = 1, .dims = { BORING_FEATURES } },
  { .name = "number", .dtype = CALX_I64 },
  { .name = "text", .dtype = CALX_U8, .rank = 1, .dims = { TEXT } },
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

static calx_status *get(void *user, int64_t index, void *const *out)
{
  (void)user;
  for (int i = 0; i < BORING_FEATURES; i++) {
    ((float *)out[0])[i] = sinf((float)(index + i));
  }
  *(int64_t *)out[1] = index;
  char text[TEXT] = "";
  snprintf(text, sizeof text, "sample %d", (int)(index % 1000));
  memcpy(out[2], text, sizeof text);
  return NULL;
}

static calx_dataset *numbered(int64_t size)
{
  return calx_dataset_new(size, fields, N_FIELDS, get, NULL, NULL);
}

// The numbers of the samples that each rank read.
typedef struct seen {
  struct {
    int64_t numbers[MOST];
    int n;
  } of[RANKS];
  int texts;
} seen;

static void note_numbers(calx_trainer *t, void *self, const calx_batch *batch,
                         int64_t i)
{
  (void)self, (void)i;
  seen *s = calx_trainer_user(t);
  const int r = calx_global_ordinal();
  int64_t numbers[MOST];
  assert_int_equal(batch->n_fields, N_FIELDS);
  assert_int_equal(calx_tensor_dtype(batch->fields[1]), CALX_I64);
  CHECK_STATUS_OK(calx_tensor_read(batch->fields[1], numbers,
                                   (size_t)batch->size * sizeof *numbers));
  for (int64_t k = 0; k < batch->size; k++) {
    s->of[r].numbers[s->of[r].n++ % MOST] = numbers[k];
  }
}

#define MODULE(...)                                                \
  CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),               \
                        .configure_model = boring_model,           \
                        .configure_optimizers = boring_optimizers, \
                        .training_step = boring_step,              \
                        .validation_step = boring_step,            \
                        .test_step = boring_step, __VA_ARGS__)
#define TRAINER(...) \
  calx_trainer_new(.max_epochs = 1, .barebones = true, __VA_ARGS__)

// How often a sample was read by any rank.
static int times(const seen *s, int64_t number)
{
  int n = 0;
  for (int r = 0; r < RANKS; r++) {
    for (int i = 0; i < s->of[r].n; i++) n += s->of[r].numbers[i] == number;
  }
  return n;
}

// ---- rows C9, C10 -----------------------------------------------------------

static void check_order(const seen *s, int rank, calx_sampler *sampler)
{
  calx_sampler_set_epoch(sampler, 0);
  int64_t order[MOST];
  CHECK_STATUS_OK(calx_sampler_order(sampler, order));
  assert_int_equal(s->of[rank].n, calx_sampler_size(sampler));
  assert_memory_equal(s->of[rank].numbers, order,
                      (size_t)s->of[rank].n * sizeof *order);
}

// Training is shared out with the seed, in another order; test in its own. A
// sampler of the program's stays.
static void test_row_C9(void **state)
{
  (void)state;
  calx_dataset *data = numbered(16);
  calx_sampler *own = calx_random_sampler(data, .seed = 11);
  calx_loader *shuffled = calx_loader_new(data, .shuffle = true),
              *plain = calx_loader_new(data),
              *sampled = calx_loader_new(data, .sampler = own);
  for (int k = 0; k < 3; k++) {
    seen s = { .texts = 0 };
    const calx_lightning_module m =
        MODULE(.user = &s, .hooks = { .on_train_batch_start = note_numbers,
                                      .on_test_batch_start = note_numbers });
    calx_trainer *t = TRAINER(.devices = 2, .seed = 123);
    CHECK_STATUS_OK(
        k == 1 ? calx_trainer_test(t, &m, .test_dataloader = plain,
                                   .not_verbose = true)
               : calx_trainer_fit(
                     t, &m, .train_dataloader = k == 0 ? shuffled : sampled));
    for (int r = 0; r < 2; r++) {
      calx_sampler *share =
          calx_distributed_sampler(data, .num_replicas = 2, .rank = r,
                                   .seed = 123, .no_shuffle = k == 1);
      check_order(&s, r, k == 2 ? own : share);
      calx_sampler_free(share);
    }
    calx_trainer_free(t);
  }
  calx_loader_free(shuffled);
  calx_loader_free(plain);
  calx_loader_free(sampled);
  calx_sampler_free(own);
  calx_dataset_free(data);
}

static void test_row_C10(void **state)
{
  (void)state;
  seen s = { .texts = 0 };
  const calx_lightning_module m =
      MODULE(.user = &s, .hooks = { .on_train_batch_start = note_numbers });
  calx_dataset *data = numbered(32);
  calx_loader *loader = calx_loader_new(data, .shuffle = true);
  calx_trainer *t = TRAINER(.devices = 2);
  CHECK_STATUS_OK(calx_trainer_fit(t, &m, .train_dataloader = loader));
  int moved = 0;
  for (int64_t i = 0; i < 32; i++) assert_int_equal(times(&s, i), 1);
  for (int i = 0; i < 16; i++) moved += s.of[0].numbers[i] != 2 * i;
  assert_true(moved > 0);
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// ---- row C11 ----------------------------------------------------------------

static void test_row_C11(void **state)
{
  (void)state;
  static const int counts[] = { 26, 26, 26, 25 },
                   last[] = { 100, 101, 102, 99 };
  seen s = { .texts = 0 };
  const calx_lightning_module m =
      MODULE(.user = &s, .hooks = { .on_predict_batch_start = note_numbers });
  calx_dataset *data = numbered(103);
  calx_loader *loader =
      calx_loader_new(data, .batch_size = 4, .drop_last = false);
  calx_trainer *t = TRAINER(.devices = 4);
  calx_value *predictions;
  CHECK_STATUS_OK(
      calx_trainer_predict(t, &m, &predictions, .predict_dataloader = loader));
  for (int r = 0; r < 4; r++) {
    assert_int_equal(s.of[r].n, counts[r]);
    assert_int_equal(s.of[r].numbers[counts[r] - 1], last[r]);
  }
  calx_value_free(predictions);
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// ---- row C12 ----------------------------------------------------------------

// A loader is a description: runs share it out anew each time, and neither
// read nor change it.
static void test_row_C12(void **state)
{
  (void)state;
  seen s = { .texts = 0 };
  const calx_lightning_module m =
      MODULE(.user = &s, .hooks = { .on_train_batch_start = note_numbers });
  calx_dataset *data = numbered(8);
  calx_loader *loader = calx_loader_new(data, .batch_size = 2);
  for (int k = 1; k <= 2; k++) {
    calx_trainer *t = TRAINER(.devices = 2);
    CHECK_STATUS_OK(calx_trainer_fit(t, &m, .train_dataloader = loader));
    for (int64_t i = 0; i < 8; i++) assert_int_equal(times(&s, i), k);
    assert_int_equal(calx_loader_state(loader).samples, 0);
    assert_int_equal(calx_loader_size(loader), 4);
    calx_trainer_free(t);
  }
  calx_shutdown();
  calx_batch batch;
  calx_scope *scope = calx_scope_begin();
  for (int i = 0; i < 4; i++) assert_true(calx_loader_next(loader, &batch));
  assert_false(calx_loader_next(loader, &batch));
  CHECK_STATUS_OK(calx_scope_end(scope));
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// ---- row C20 ----------------------------------------------------------------

typedef struct stream {
  int64_t next;
} stream;

static calx_status *begin_stream(void *user, const calx_worker_info *info,
                                 void **out)
{
  (void)info;
  stream *s = user;
  s->next = 0;
  *out = s;
  return NULL;
}

static calx_status *next_sample(void *iterator, void *const *out, bool *over)
{
  stream *s = iterator;
  *over = s->next == 7;
  return *over ? NULL : get(NULL, s->next++, out);
}

// What is no floating number stays as it is, in the model's precision too.
static void note_fields(calx_trainer *t, void *self, const calx_batch *batch,
                        int64_t i)
{
  seen *s = calx_trainer_user(t);
  char texts[4][TEXT], wanted[TEXT];
  const int before = s->of[0].n;
  note_numbers(t, self, batch, i);
  assert_int_equal(calx_tensor_dtype(batch->data), CALX_BF16);
  CHECK_STATUS_OK(calx_tensor_read(batch->fields[2], texts,
                                   (size_t)batch->size * sizeof *texts));
  for (int64_t k = 0; k < batch->size; k++) {
    snprintf(wanted, sizeof wanted, "sample %d",
             (int)s->of[0].numbers[before + k]);
    assert_string_equal(texts[k], wanted);
    s->texts++;
  }
}

// 7 samples that nobody counted before, twice, in batches of 3 or less.
static void test_row_C20(void **state)
{
  (void)state;
  static const calx_iterable functions = { .begin = begin_stream,
                                           .next = next_sample };
  seen s = { .texts = 0 };
  stream source = { 0 };
  calx_lightning_module m =
      MODULE(.user = &s, .hooks = { .on_train_batch_start = note_fields });
  calx_dataset *data =
      calx_dataset_iterable(fields, N_FIELDS, &functions, &source, NULL);
  calx_loader *loader = calx_loader_new(data, .batch_size = 3);
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = 2, .barebones = true,
                       .precision = "bf16-true");
  CHECK_STATUS_OK(calx_trainer_fit(t, &m, .train_dataloader = loader));
  assert_int_equal(calx_trainer_global_step(t), 6);
  assert_int_equal(calx_trainer_current_epoch(t), 2);
  assert_int_equal(s.texts, 14);
  for (int64_t i = 0; i < 7; i++) assert_int_equal(times(&s, i), 2);
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

static int begin(void **state)
{
  setenv("CPU_NUM_DEVICES", "4", 1);
  return support_setup(state);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_row_C9),  SUPPORT_TEST(test_row_C10),
    SUPPORT_TEST(test_row_C11), SUPPORT_TEST(test_row_C12),
    SUPPORT_TEST(test_row_C20),
  };
  return cmocka_run_group_tests(tests, begin, NULL);
}
