// batching: what makes a batch of a loader besides its size: batch samplers,
// functions that collate, iterable datasets. On the fake plugin.
#include <stdatomic.h>

#include "loader.h"

static fake batching_fake;

static void read_i64(const calx_tensor *t, int64_t *out, size_t n)
{
  assert_int_equal(calx_tensor_dtype(t), CALX_I64);
  assert_int_equal(calx_tensor_numel(t), n);
  CHECK_OK(calx_tensor_read((calx_tensor *)t, out, n * sizeof *out));
}

// ---- batch samplers ---------------------------------------------------------

// Samples 9, 8, … in batches of 1, 2, 3, 4; another order in odd epochs.
static calx_status *growing(void *user, int64_t epoch, int64_t *out_order,
                            int64_t *out_sizes)
{
  (void)user;
  for (int64_t i = 0; i < 10; i++) out_order[i] = epoch % 2 == 0 ? 9 - i : i;
  for (int64_t b = 0; b < 4; b++) out_sizes[b] = b + 1;
  return NULL;
}

static void test_batch_sampler(void **state)
{
  source src = SOURCE;
  calx_dataset *d = source_dataset(&src, 10);
  calx_sampler *s = calx_batch_sampler_new(10, 4, 4, growing, NULL, NULL);
  calx_loader *l = calx_loader_new(d, .batch_sampler = s, .num_workers = 3);
  assert_null(calx_loader_error(l));
  assert_int_equal(calx_loader_size(l), 4);
  calx_batch batch;
  for (int epoch = 0; epoch < 3; epoch++) {
    int64_t labels[10], at = 0;
    for (int64_t b = 0; b < 4; b++) {
      assert_true(calx_loader_next(l, &batch));
      assert_int_equal(batch.size, b + 1);
      assert_int_equal(batch.index, b);
      source_labels(&batch, labels + at);
      at += batch.size;
    }
    assert_false(calx_loader_next(l, &batch));
    for (int64_t i = 0; i < 10; i++) {
      assert_int_equal(labels[i], epoch % 2 == 0 ? 9 - i : i);
    }
  }
  // A place between two batches is gone on from, one inside a batch is not.
  CHECK_OK(calx_loader_load_state(l, (calx_loader_position){ 0, 3 }));
  assert_true(calx_loader_next(l, &batch));
  assert_int_equal(batch.index, 2);
  assert_int_equal(calx_loader_state(l).samples, 6);
  int64_t labels[4];
  source_labels(&batch, labels);
  assert_int_equal(labels[0], 6);
  CHECK_OK(calx_loader_load_state(l, (calx_loader_position){ 0, 4 }));
  assert_false(calx_loader_next(l, &batch));
  CHECK_FAILS(CALX_FAILED_PRECONDITION, calx_scope_take_error(),
              "no batch of epoch 0 begins at sample 4");
  calx_loader_free(l);
  calx_sampler_free(s);
  calx_dataset_free(d);
  source_wait_home(state);
}

static void test_batch_sampler_on_lanes(void **state)
{
  source src = SOURCE;
  calx_dataset *d = source_dataset(&src, 10);
  calx_sampler *s = calx_batch_sampler_new(10, 4, 4, growing, NULL, NULL);
  calx_loader *from = calx_loader_new(d, .batch_sampler = s);
  calx_loader *l = calx_mp_device_loader(from, NULL);
  int64_t labels[10], count;
  assert_int_equal(source_epoch(l, labels, &count), 4);
  assert_int_equal(count, 10);
  assert_int_equal(labels[9], 0);
  calx_loader_free(l);
  calx_loader_free(from);
  calx_sampler_free(s);
  calx_dataset_free(d);
  source_wait_home(state);
}

static void check_refused(calx_loader *l, const char *says)
{
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_loader_error(l), says);
  calx_loader_free(l);
}

static void test_batch_sampler_refused(void **state)
{
  source src = SOURCE;
  calx_dataset *d = source_dataset(&src, 10);
  calx_sampler *plain = calx_random_sampler(d);
  calx_sampler *s = calx_batch_sampler(plain, 3);
  const char *not_for_it = "decides all of .batch_size";
  check_refused(calx_loader_new(d, .batch_sampler = s, .batch_size = 3),
                not_for_it);
  check_refused(calx_loader_new(d, .batch_sampler = s, .shuffle = true),
                not_for_it);
  check_refused(calx_loader_new(d, .batch_sampler = s, .drop_last = true),
                not_for_it);
  check_refused(calx_loader_new(d, .batch_sampler = s, .sampler = plain),
                not_for_it);
  check_refused(calx_loader_new(d, .batch_sampler = plain),
                ".batch_sampler is no batch sampler");
  check_refused(calx_loader_new(d, .sampler = s), "is a batch sampler");
  calx_sampler_free(s);
  calx_sampler_free(plain);
  calx_dataset_free(d);
  source_wait_home(state);
}

static calx_status *too_high(void *user, int64_t epoch, int64_t *out_order)
{
  (void)user;
  (void)epoch;
  out_order[0] = 0;
  out_order[1] = 10;
  return NULL;
}

static void test_own_sampler(void **state)
{
  source src = SOURCE;
  calx_dataset *d = source_dataset(&src, 10);
  calx_sampler *s = calx_sampler_new(2, too_high, NULL, NULL);
  calx_loader *l = calx_loader_new(d, .sampler = s);
  assert_int_equal(calx_loader_size(l), 2);
  calx_batch batch;
  assert_true(calx_loader_next(l, &batch));
  assert_false(calx_loader_next(l, &batch));
  CHECK_FAILS(CALX_OUT_OF_RANGE, calx_scope_take_error(),
              "sample 10 of 10: ", "there are 10");
  calx_loader_free(l);
  calx_sampler_free(s);
  calx_dataset_free(d);
  source_wait_home(state);
}

// ---- collating --------------------------------------------------------------

// Sample i: i + 1 numbers, 10 i, 10 i + 1, …, of at most 8; and how many.
static calx_status *get_words(void *user, int64_t index, void *const *fields)
{
  (void)user;
  int64_t *words = fields[0];
  for (int64_t k = 0; k < 8; k++) words[k] = k <= index ? 10 * index + k : 99;
  *(int32_t *)fields[1] = (int32_t)(index + 1);
  return NULL;
}

static calx_dataset *words_dataset(int64_t size)
{
  const calx_field fields[] = {
    { .name = "words", .dtype = CALX_I64, .rank = 1, .dims = { 8 } },
    { .name = "length", .dtype = CALX_I32 },
  };
  return calx_dataset_new(size, fields, 2, get_words, NULL, NULL);
}

static void check_words(const calx_batch *batch, int64_t first, int64_t n,
                        int64_t longest, int64_t padding)
{
  int64_t words[32];
  int32_t lengths[4];
  assert_int_equal(batch->size, n);
  assert_int_equal(batch->n_fields, 2);
  assert_int_equal(calx_tensor_rank(batch->data), 2);
  assert_int_equal(calx_tensor_dim(batch->data, 1), longest);
  read_i64(batch->data, words, (size_t)(n * longest));
  CHECK_OK(calx_tensor_read(batch->target, lengths, (size_t)n * 4));
  for (int64_t i = 0; i < n; i++) {
    assert_int_equal(lengths[i], first + i + 1);
    for (int64_t k = 0; k < longest; k++) {
      assert_int_equal(words[i * longest + k],
                       k <= first + i ? 10 * (first + i) + k : padding);
    }
  }
}

static void test_padding(void **state)
{
  calx_dataset *d = words_dataset(8);
  calx_padding p = { .field = 0, .length = 1, .value = -1 };
  calx_loader *l = calx_loader_new(
      d, .batch_size = 3, .collate_fn = calx_pad_collate, .collate_user = &p);
  calx_batch batch;
  assert_true(calx_loader_next(l, &batch));
  check_words(&batch, 0, 3, 3, -1);
  assert_true(calx_loader_next(l, &batch));
  check_words(&batch, 3, 3, 6, -1);
  assert_true(calx_loader_next(l, &batch));
  check_words(&batch, 6, 2, 8, -1);
  assert_false(calx_loader_next(l, &batch));
  p.multiple = 5;
  assert_true(calx_loader_next(l, &batch));
  check_words(&batch, 0, 3, 5, -1);
  assert_true(calx_loader_next(l, &batch));
  check_words(&batch, 3, 3, 8, -1);  // not above the field's
  calx_loader_end_epoch(l);
  calx_loader_free(l);
  calx_dataset_free(d);
  source_wait_home(state);
}

static calx_status *sum_only(void *user, const calx_samples *s,
                             calx_collated *batch)
{
  void *out;
  atomic_fetch_add((atomic_int *)user, 1);
  CALX_TRY(calx_collated_add(batch, CALX_I64, CALX_SHAPE(1, 1), &out));
  *(int64_t *)out = 0;
  for (int64_t i = 0; i < s->count; i++) {
    *(int64_t *)out += ((const int64_t *)s->data[1])[i];
  }
  return NULL;
}

static void test_collate(void **state)
{
  source src = SOURCE;
  atomic_int calls = 0;
  calx_dataset *d = source_dataset(&src, 10);
  calx_loader *l = calx_loader_new(d, .batch_size = 4, .collate_fn = sum_only,
                                   .collate_user = &calls);
  const int64_t sums[] = { 6, 22, 17 };
  calx_batch batch;
  for (int b = 0; b < 3; b++) {
    int64_t sum;
    assert_true(calx_loader_next(l, &batch));
    assert_int_equal(batch.n_fields, 1);
    assert_null(batch.target);
    assert_int_equal(batch.size, b < 2 ? 4 : 2);
    read_i64(batch.data, &sum, 1);
    assert_int_equal(sum, sums[b]);
  }
  assert_false(calx_loader_next(l, &batch));
  assert_int_equal(atomic_load(&calls), 3);
  calx_loader_free(l);
  // The default one gives what the loader gives without.
  l = calx_loader_new(d, .batch_size = 4, .collate_fn = calx_default_collate);
  int64_t labels[10], count;
  assert_int_equal(source_epoch(l, labels, &count), 3);
  for (int64_t i = 0; i < 10; i++) assert_int_equal(labels[i], i);
  calx_loader_free(l);
  calx_dataset_free(d);
  source_wait_home(state);
}

static calx_status *add_badly(void *user, const calx_samples *s,
                              calx_collated *batch)
{
  void *out = NULL;
  calx_status *status = NULL;
  switch (*(int *)user) {
    case 0: return NULL;
    case 1: return calx_collated_stack(batch, s, 2);
    case 2: return calx_collated_add(batch, CALX_I64, CALX_SHAPE(-1), &out);
    case 3:
      return calx_collated_add(batch, CALX_DTYPE_DEFAULT, CALX_SHAPE(1), &out);
    case 4: return calx_collated_add(batch, CALX_I64, CALX_SCALAR, &out);
    default:
      for (int k = 0; k <= CALX_MAX_FIELDS && status == NULL; k++) {
        status = calx_collated_add(batch, CALX_I64, CALX_SHAPE(1), &out);
      }
      return status;
  }
}

static void check_collate(calx_dataset *d, calx_collate_fn *fn, void *user,
                          calx_code code, const char *says)
{
  calx_batch batch;
  calx_loader *l = calx_loader_new(d, .batch_size = 2, .collate_fn = fn,
                                   .collate_user = user);
  assert_false(calx_loader_next(l, &batch));
  CHECK_FAILS(code, calx_scope_take_error(), says, "while making batch 0");
  calx_loader_free(l);
}

static void test_collate_refused(void **state)
{
  const calx_code bad = CALX_INVALID_ARGUMENT;
  const char *const says[] = { "was given no field",
                               "field 2 was asked for",
                               "negative size",
                               "dtype 0",
                               "rank 0",
                               "more than 8 fields" };
  calx_dataset *d = words_dataset(8);
  for (int k = 0; k < 6; k++) {
    check_collate(d, add_badly, &k, k == 1 ? CALX_OUT_OF_RANGE : bad, says[k]);
  }
  calx_padding p = { .field = 0, .length = 0 };
  check_collate(d, calx_pad_collate, NULL, bad, "user is NULL");
  check_collate(d, calx_pad_collate, &p, bad, "must be one integer");
  p = (calx_padding){ .field = 0, .length = 2 };
  check_collate(d, calx_pad_collate, &p, bad, "with length 2");
  p = (calx_padding){ .field = 0, .length = 1, .multiple = -1 };
  check_collate(d, calx_pad_collate, &p, bad, "multiple is -1");
  calx_dataset_free(d);
  d = words_dataset(12);  // of which the last ones are too long
  calx_dataset *late = calx_dataset_range(d, 7, 12);
  p = (calx_padding){ .field = 0, .length = 1 };
  check_collate(late, calx_pad_collate, &p, CALX_OUT_OF_RANGE,
                "sample 1 of the batch has length 9 in 'words', which has at "
                "most 8");
  calx_dataset_free(late);
  calx_dataset_free(d);
  source_wait_home(state);
}

// ---- iterable datasets ------------------------------------------------------

// Numbers first … end - 1; several workers each take every n-th.
typedef struct counting {
  int64_t first, end;
  int64_t bad;  // fails in its place; -1: none
  bool divided;
  atomic_int begun, ended;
  atomic_int inside[4];  // calls under way in each worker's iterator
} counting;

typedef struct counter {
  counting *c;
  int64_t at, step;
  int id;
} counter;

static calx_status *count_begin(void *user, const calx_worker_info *info,
                                void **out_iterator)
{
  counting *c = user;
  calx_worker_info mine;
  assert_true(calx_get_worker_info(&mine));
  assert_memory_equal(&mine, info, sizeof mine);
  counter *it = malloc(sizeof *it);
  assert_non_null(it);
  *it = (counter){ c, c->first, 1, info->id };
  if (c->divided) {
    it->at += info->id;
    it->step = info->num_workers;
  }
  atomic_fetch_add(&c->begun, 1);
  *out_iterator = it;
  return NULL;
}

static calx_status *count_next(void *iterator, void *const *fields,
                               bool *out_over)
{
  counter *it = iterator;
  assert_int_equal(atomic_fetch_add(&it->c->inside[it->id], 1), 0);
  *out_over = it->at >= it->c->end;
  calx_status *status =
      it->at == it->c->bad ? cx_error(CALX_DATA_LOSS, "it is broken") : NULL;
  if (!*out_over) *(int64_t *)fields[0] = it->at;
  it->at += it->step;
  atomic_fetch_sub(&it->c->inside[it->id], 1);
  return status;
}

static void count_end(void *iterator)
{
  counter *it = iterator;
  atomic_fetch_add(&it->c->ended, 1);
  free(it);
}

static const calx_field count_field = { .name = "n", .dtype = CALX_I64 };
static const calx_iterable count_functions = { count_begin, count_next,
                                               count_end };

static calx_dataset *counting_dataset(counting *c)
{
  return calx_dataset_iterable(&count_field, 1, &count_functions, c, NULL);
}

// The numbers of an epoch, and the batches' sizes.
static int64_t count_epoch(calx_loader *l, int64_t *out, int64_t *out_sizes)
{
  int64_t n = 0, batches = 0;
  calx_batch batch;
  while (calx_loader_next(l, &batch)) {
    assert_int_equal(batch.index, batches);
    read_i64(batch.data, out + n, (size_t)batch.size);
    out_sizes[batches++] = batch.size;
    n += batch.size;
  }
  assert_null(calx_scope_error());
  return n;
}

static void test_iterable(void **state)
{
  counting c = { .end = 10, .bad = -1 };
  calx_dataset *d = counting_dataset(&c);
  assert_null(calx_dataset_error(d));
  assert_int_equal(calx_dataset_size(d), 0);
  calx_loader *l = calx_loader_new(d, .batch_size = 4);
  assert_null(calx_loader_error(l));
  assert_int_equal(calx_loader_size(l), -1);
  for (int epoch = 0; epoch < 3; epoch++) {
    int64_t numbers[16], sizes[16];
    assert_int_equal(count_epoch(l, numbers, sizes), 10);
    for (int64_t i = 0; i < 10; i++) assert_int_equal(numbers[i], i);
    assert_int_equal(sizes[2], 2);
    assert_int_equal(atomic_load(&c.ended), epoch + 1);
    assert_int_equal(calx_loader_state(l).epoch, epoch + 1);
  }
  calx_loader_free(l);
  c.first = 10;  // nothing
  l = calx_loader_new(d, .batch_size = 4);
  int64_t numbers[1], sizes[1];
  assert_int_equal(count_epoch(l, numbers, sizes), 0);
  calx_loader_free(l);
  assert_int_equal(atomic_load(&c.ended), atomic_load(&c.begun));
  calx_dataset_free(d);
  source_wait_home(state);
}

// As PyTorch's loader: the workers' batches in turn, those at an end passed
// over.
static void test_iterable_workers(void **state)
{
  counting c = { .end = 16, .bad = -1, .divided = true };
  calx_dataset *d = counting_dataset(&c);
  const int64_t expected[] = { 0, 3,  1, 4,  2,  5,  6,  9,
                               7, 10, 8, 11, 12, 15, 13, 14 };
  const int64_t counts[] = { 2, 2, 2, 2, 2, 2, 2, 1, 1 };
  calx_loader *l = calx_loader_new(d, .batch_size = 2, .num_workers = 3);
  for (int epoch = 0; epoch < 20; epoch++) {
    int64_t numbers[16], sizes[16];
    assert_int_equal(count_epoch(l, numbers, sizes), 16);
    assert_memory_equal(numbers, expected, sizeof expected);
    assert_memory_equal(sizes, counts, sizeof counts);
  }
  calx_loader_free(l);
  l = calx_loader_new(d, .batch_size = 2, .num_workers = 3, .drop_last = true);
  int64_t numbers[16], sizes[16];
  assert_int_equal(count_epoch(l, numbers, sizes), 14);
  assert_memory_equal(numbers, expected, 14 * sizeof *expected);
  calx_loader_free(l);
  assert_int_equal(atomic_load(&c.ended), atomic_load(&c.begun));
  calx_dataset_free(d);
  source_wait_home(state);
}

static void test_iterable_failure(void **state)
{
  counting c = { .end = 100, .bad = 9 };
  calx_dataset *d = counting_dataset(&c);
  calx_loader *l = calx_loader_new(d, .batch_size = 4);
  calx_batch batch;
  for (int epoch = 0; epoch < 2; epoch++) {
    assert_true(calx_loader_next(l, &batch));
    assert_true(calx_loader_next(l, &batch));
    assert_false(calx_loader_next(l, &batch));
    CHECK_FAILS(CALX_DATA_LOSS, calx_scope_take_error(), "it is broken",
                "while making batch 2");
  }
  // An epoch that is left early ends its iterators.
  c.bad = -1;
  assert_true(calx_loader_next(l, &batch));
  calx_loader_end_epoch(l);
  assert_int_equal(atomic_load(&c.ended), atomic_load(&c.begun));
  CHECK_OK(calx_loader_load_state(l, (calx_loader_position){ 5, 0 }));
  CHECK_FAILS(CALX_FAILED_PRECONDITION,
              calx_loader_load_state(l, (calx_loader_position){ 5, 4 }),
              "read from its beginning");
  calx_loader_free(l);
  calx_dataset_free(d);
  source_wait_home(state);
}

static void test_chain(void **state)
{
  counting c[] = { { .first = 0, .end = 3, .bad = -1 },
                   { .first = 5, .end = 5, .bad = -1 },
                   { .first = 20, .end = 24, .bad = -1 } };
  calx_dataset *parts[3];
  for (int i = 0; i < 3; i++) parts[i] = counting_dataset(&c[i]);
  calx_dataset *d = calx_dataset_chain(parts, 3);
  assert_null(calx_dataset_error(d));
  const int64_t expected[] = { 0, 1, 2, 20, 21, 22, 23 };
  calx_loader *l = calx_loader_new(d, .batch_size = 2);
  int64_t numbers[16], sizes[16];
  assert_int_equal(count_epoch(l, numbers, sizes), 7);
  assert_memory_equal(numbers, expected, sizeof expected);
  calx_batch batch;
  assert_true(calx_loader_next(l, &batch));
  calx_loader_free(l);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(atomic_load(&c[i].ended), atomic_load(&c[i].begun));
  }
  calx_dataset_free(d);
  for (int i = 0; i < 3; i++) calx_dataset_free(parts[i]);
  source_wait_home(state);
}

static void check_dataset(calx_dataset *d, const char *says)
{
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_dataset_error(d), says);
  calx_dataset_free(d);
}

static void test_iterable_refused(void **state)
{
  counting c = { .end = 10, .bad = -1 };
  source src = SOURCE;
  calx_dataset *d = counting_dataset(&c), *other = source_dataset(&src, 3);
  calx_dataset *both[] = { d, other }, *same[] = { d, d }, *part;
  const char *is = "iterable";
  int64_t n;
  const double whole = 1;
  CHECK_FAILS(CALX_OUT_OF_RANGE, calx_dataset_get(d, 0, (void *[]){ &n }),
              "there are 0");
  check_dataset(calx_dataset_range(d, 0, 0), is);
  check_dataset(calx_dataset_subset(d, NULL, 0), is);
  check_dataset(calx_dataset_concat(same, 2), is);
  check_dataset(calx_dataset_chain(&other, 1), "dataset 0 is not iterable");
  check_dataset(calx_dataset_chain(both, 2), "dataset 1 has 2 fields");
  check_dataset(calx_dataset_chain(NULL, 0), "no datasets");
  check_dataset(calx_dataset_iterable(&count_field, 1, NULL, NULL, NULL),
                "next is NULL");
  check_dataset(calx_dataset_iterable(NULL, 0, &count_functions, NULL, NULL),
                "0 fields");
  CHECK_FAILS(CALX_INVALID_ARGUMENT, calx_random_split(d, &whole, 1, &part),
              is);
  calx_sampler *s = calx_random_sampler(d);
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_sampler_error(s), is);
  calx_sampler_free(s);
  check_refused(calx_loader_new(d, .shuffle = true), is);
  s = calx_sampler_new(2, too_high, NULL, NULL);
  check_refused(calx_loader_new(d, .sampler = s), is);
  calx_sampler_free(s);
  calx_loader *l = calx_loader_new(d);
  calx_device *device = calx_device_current();
  calx_parallel_loader *p = calx_parallel_loader_new(l, &device, 1);
  CHECK_SAYS(CALX_UNIMPLEMENTED, calx_parallel_loader_error(p), is);
  calx_parallel_loader_free(p);
  calx_loader_free(l);
  calx_dataset_free(other);
  calx_dataset_free(d);
  calx_worker_info info;
  assert_false(calx_get_worker_info(&info));
  assert_int_equal(info.num_workers, 1);
  source_wait_home(state);
}

// Every failed allocation is reported, and leaves nothing.
static void test_no_memory_left(void **state)
{
  counting c = { .end = 3, .bad = -1 };
  bool whole = false;
  for (int n = 0; !whole; n++) {
    assert_in_range(n, 0, 200);
    int64_t numbers[4], at = 0;
    calx_batch batch;
    cx_alloc_fail_at(n);
    calx_dataset *d = counting_dataset(&c);
    calx_dataset *chain = calx_dataset_chain(&d, 1);
    calx_loader *l = calx_loader_new(chain, .batch_size = 2, .prefetch = 1,
                                     .collate_fn = calx_default_collate);
    while (calx_loader_next(l, &batch)) {
      read_i64(batch.data, numbers + at, (size_t)batch.size);
      at += batch.size;
    }
    cx_alloc_fail_at(-1);
    calx_status *status = calx_scope_take_error();
    whole = status == NULL;
    if (whole) {
      assert_int_equal(at, 3);
    } else {
      CHECK_FAILS(CALX_RESOURCE_EXHAUSTED, status, "memory");
    }
    calx_loader_free(l);
    calx_dataset_free(chain);
    calx_dataset_free(d);
  }
  assert_int_equal(atomic_load(&c.ended), atomic_load(&c.begun));
  source_wait_home(state);
}

// ---- running ----------------------------------------------------------------

static int begin_all(void **state)
{
  (void)state;
  setenv("CALX_PLUGIN", CX_FAKE_PLUGIN, 1);
  batching_fake = fake_open(CX_FAKE_PLUGIN);
  if (batching_fake.set == NULL || !batching_fake.set("reset;devices=2")) {
    return 1;
  }
  cx_alloc_set_exact(true);
  return calx_device_current() == NULL;
}

static int end_all(void **state)
{
  (void)state;
  calx_shutdown();
  return batching_fake.live() == 0 ? 0 : 1;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_batch_sampler),
    CHECK_TEST(test_batch_sampler_on_lanes),
    CHECK_TEST(test_batch_sampler_refused),
    CHECK_TEST(test_own_sampler),
    CHECK_TEST(test_padding),
    CHECK_TEST(test_collate),
    CHECK_TEST(test_collate_refused),
    CHECK_TEST(test_iterable),
    CHECK_TEST(test_iterable_workers),
    CHECK_TEST(test_iterable_failure),
    CHECK_TEST(test_chain),
    CHECK_TEST(test_iterable_refused),
    CHECK_TEST(test_no_memory_left),
  };
  return cmocka_run_group_tests_name("data_batching", tests, begin_all,
                                     end_all);
}
