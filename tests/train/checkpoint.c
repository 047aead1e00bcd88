// checkpoint: what a checkpoint of the trainer holds, put and got back; files
// of older releases, and files that are damaged or lie.
#include "checkpoint_run.h"
#include "io/value.h"

static calx_value *dict_new(void)
{
  calx_value *d = calx_value_container(CALX_KIND_DICT);
  assert_non_null(d);
  return d;
}

static void set(calx_value *dict, const char *key, calx_value *value)
{
  CHECK_STATUS_OK(calx_value_set(dict, key, value));
}

static calx_value *fit_of(const calx_value *checkpoint)
{
  return calx_value_get(calx_value_get(checkpoint, "loops"), "fit_loop");
}

// ---- progress ---------------------------------------------------------------

static void check_progress(const cx_train_progress *a,
                           const cx_train_progress *b)
{
  assert_int_equal(a->epoch, b->epoch);
  assert_int_equal(a->batch_idx, b->batch_idx);
  assert_int_equal(a->global_step, b->global_step);
  assert_int_equal(a->batches_seen, b->batches_seen);
  assert_int_equal(a->batches_stepped, b->batches_stepped);
  assert_int_equal(a->is_manual, b->is_manual);
  assert_false(b->is_epoch_end);
}

// At every batch of three epochs.
static void test_progress(void **state)
{
  (void)state;
  for (int64_t k = 1; k < 4; k++) {
    cx_train_progress p = { .accumulate = k }, got;
    for (int64_t n = 0; n < 3 * RUN_BATCHES; n++) {
      if (p.is_epoch_end) p.batch_idx = 0;
      p.epoch = n / RUN_BATCHES;
      p.batch_idx++;
      p.batches_seen++;
      p.is_epoch_end = p.batch_idx == RUN_BATCHES;
      const bool steps = p.batch_idx % k == 0 || p.is_epoch_end;
      p.batches_stepped = p.global_step += steps;
      calx_value *checkpoint = dict_new();
      CHECK_STATUS_OK(cx_train_loops_put(&p, checkpoint));
      CHECK_STATUS_OK(cx_train_loops_get(checkpoint, &got));
      cx_train_progress wanted = p;
      if (p.is_epoch_end) {
        wanted.epoch++;
        wanted.batch_idx = 0;
      }
      check_progress(&wanted, &got);
      assert_int_equal(calx_value_as_int(calx_value_get(checkpoint, "epoch")),
                       p.epoch);
      calx_value_free(checkpoint);
    }
  }
}

static void rename_item(calx_value *dict, const char *from, const char *to)
{
  calx_value *item = calx_value_get(dict, from);
  assert_non_null(item);
  cx_io_take_back(dict, item);
  set(dict, to, item);
}

// 1.6 to 1.9: the loops have other names.
static void test_older_names(void **state)
{
  (void)state;
  static const char *const loops[][2] = {
    { "epoch_loop.automatic_optimization.optim_progress",
      "epoch_loop.batch_loop.optimizer_loop.optim_progress" },
    { "epoch_loop.manual_optimization.optim_step_progress",
      "epoch_loop.batch_loop.manual_loop.optim_step_progress" },
  };
  for (int manual = 0; manual < 2; manual++) {
    const cx_train_progress p = { .epoch = 1,
                                  .batch_idx = 2,
                                  .global_step = manual ? 14 : 7,
                                  .batches_seen = 7,
                                  .batches_stepped = 7,
                                  .is_manual = manual != 0 };
    cx_train_progress got;
    calx_value *checkpoint = dict_new(), *fit;
    CHECK_STATUS_OK(cx_train_loops_put(&p, checkpoint));
    fit = fit_of(checkpoint);
    rename_item(fit, loops[manual][0], loops[manual][1]);
    set(checkpoint, "global_step", calx_value_int(0));
    CHECK_STATUS_OK(cx_train_loops_get(checkpoint, &got));
    check_progress(&p, &got);
    calx_value_free(checkpoint);
  }
}

// A file of 1.5, as it is and as Lightning's upgrade leaves it; loops that are
// empty.
static void test_1_5(void **state)
{
  (void)state;
  const cx_train_progress wanted = {
    .epoch = 3, .global_step = 12, .batches_seen = 12, .batches_stepped = 12
  };
  cx_train_progress got;
  calx_value *old = dict_new(), *upgraded = dict_new(), *epochs;
  set(old, "epoch", calx_value_int(3));
  set(old, "global_step", calx_value_int(12));
  set(old, "pytorch-lightning_version", calx_value_string("1.5.10"));
  CHECK_STATUS_OK(cx_train_loops_get(old, &got));
  check_progress(&wanted, &got);
  const cx_train_progress none = { .global_step = 12 };
  CHECK_STATUS_OK(cx_train_loops_put(&none, upgraded));
  epochs = calx_value_get(fit_of(upgraded), "epoch_progress");
  set(calx_value_get(epochs, "current"), "completed", calx_value_int(3));
  CHECK_STATUS_OK(cx_train_loops_get(upgraded, &got));
  check_progress(&wanted, &got);
  set(calx_value_get(upgraded, "loops"), "fit_loop", dict_new());
  set(upgraded, "epoch", calx_value_int(3));
  CHECK_STATUS_OK(cx_train_loops_get(upgraded, &got));
  check_progress(&wanted, &got);
  calx_value_free(old);
  calx_value_free(upgraded);
}

// The value that is wrong is named.
static void test_lies(void **state)
{
  (void)state;
  const cx_train_progress p = { .epoch = 1,
                                .batch_idx = 2,
                                .global_step = 7,
                                .batches_seen = 7,
                                .batches_stepped = 7 };
  static const struct {
    const char *loop, *progress, *name;  // NULL: of the checkpoint itself
    int64_t value;
    const char *message;
  } lies[] = {
    { NULL, NULL, "epoch", -1, "'epoch' is -1, a number of 0 to 2^53" },
    { NULL, NULL, "global_step", INT64_MAX, "'global_step' is 92233720368547" },
    { NULL, NULL, "loops", 1, "'loops' is int, a dict is wanted" },
    { "epoch_progress", "current", "processed", -3,
      "epoch_progress 'processed' is -3" },
    { "epoch_progress", NULL, "current", 1, "'current' is int, a dict" },
    { "epoch_loop.batch_progress", "current", "completed", 900,
      "900 of the running epoch are over, and 7 of all" },
    { "epoch_loop.batch_progress", "total", "ready", INT64_MIN,
      "'ready' is -9223372036854775808" },
    { "epoch_loop.automatic_optimization.optim_progress", NULL, "optimizer", 1,
      "'optimizer' is int" },
    { "epoch_loop.state_dict", NULL, "_batches_that_stepped", -1,
      "'_batches_that_stepped' is -1" },
  };
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
    cx_train_progress got;
    calx_value *checkpoint = dict_new(), *at = checkpoint;
    CHECK_STATUS_OK(cx_train_loops_put(&p, checkpoint));
    if (lies[i].loop != NULL) at = calx_value_get(fit_of(at), lies[i].loop);
    if (lies[i].progress != NULL) at = calx_value_get(at, lies[i].progress);
    set(at, lies[i].name, calx_value_int(lies[i].value));
    CHECK_STATUS(CALX_INVALID_ARGUMENT, cx_train_loops_get(checkpoint, &got),
                 lies[i].message);
    calx_value_free(checkpoint);
  }
  cx_train_progress got;
  CHECK_STATUS(CALX_INVALID_ARGUMENT, cx_train_loops_get(NULL, &got),
               "it is no checkpoint of Lightning's or of calx's trainer");
}

// ---- what calx keeps --------------------------------------------------------

static void test_own(void **state)
{
  (void)state;
  const cx_train_own own = { { 3, 1000 }, UINT64_MAX, UINT64_MAX - 5, 8 };
  cx_train_own got;
  bool found;
  calx_value *checkpoint = dict_new(), *part;
  CHECK_STATUS_OK(cx_train_own_get(checkpoint, &got, &found));
  assert_false(found);
  assert_int_equal(got.ranks, 0);
  CHECK_STATUS_OK(cx_train_own_put(&own, checkpoint));
  CHECK_STATUS_OK(cx_train_own_get(checkpoint, &got, &found));
  assert_true(found);
  assert_int_equal(got.loader.epoch, 3);
  assert_int_equal(got.loader.samples, 1000);
  assert_true(got.seed == own.seed && got.draws == own.draws);
  assert_int_equal(got.ranks, 8);
  part = calx_value_get(checkpoint, "calx");
  set(part, "later", calx_value_int(1));
  CHECK_STATUS_OK(cx_train_own_get(checkpoint, &got, &found));
  set(calx_value_get(part, "loader"), "samples", calx_value_int(-1));
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               cx_train_own_get(checkpoint, &got, &found),
               "has no number 'samples' of 0 or more");
  set(part, "format", calx_value_int(2));
  CHECK_STATUS(CALX_UNIMPLEMENTED, cx_train_own_get(checkpoint, &got, &found),
               "has the format 2, this calx knows 1");
  set(checkpoint, "calx", calx_value_int(2));
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               cx_train_own_get(checkpoint, &got, &found), "number 'format'");
  calx_value_free(checkpoint);
}

// ---- states -----------------------------------------------------------------

// Neither weights nor the rate change where anything is wrong.
static void check_untouched(run *r, const calx_value *checkpoint,
                            const char *message)
{
  calx_value *before = dict_new();
  cx_train_states states = run_states(r);
  double rate = calx_optimizer_lr(r->opts[0]);
  CHECK_STATUS_OK(cx_train_states_put(&states, true, before));
  assert_null(calx_value_get(before, "optimizer_states"));
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               cx_train_states_get(&states, false, checkpoint), message);
  run_check(r, calx_value_get(before, "state_dict"), 0);
  CHECK_CLOSE(calx_optimizer_lr(r->opts[0]), rate, 0);
  calx_value_free(before);
}

static calx_value *list_of(size_t n)
{
  calx_value *list = calx_value_container(CALX_KIND_LIST);
  for (size_t i = 0; i < n; i++) {
    CHECK_STATUS_OK(calx_value_append(list, dict_new()));
  }
  return list;
}

static void test_all_or_nothing(void **state)
{
  (void)state;
  run a = run_begin(RUN_SGD, 1, 1), b = run_begin(RUN_SGD, 1, 2);
  run_until(&a, 1, 2);
  run_until(&b, 0, 1);
  calx_value *c = run_checkpoint(&a);
  set(c, "lr_schedulers", list_of(1));
  check_untouched(&b, c, "the state has no number 'last_epoch'");
  set(c, "lr_schedulers", list_of(0));
  check_untouched(&b, c,
                  "'lr_schedulers' has 0, `configure_optimizers()` made 1");
  set(c, "lr_schedulers", calx_value_int(1));
  check_untouched(&b, c, "'lr_schedulers' is int, a list is wanted");
  set(c, "optimizer_states", list_of(2));
  check_untouched(&b, c, "'optimizer_states' has 2");
  set(c, "optimizer_states", list_of(1));
  check_untouched(&b, c, "a different number of parameter groups");
  set(c, "state_dict", dict_new());
  check_untouched(
      &b, c,
      "Missing key(s) in state_dict: \"net.hidden.weight\", "
      "\"net.hidden.bias\", \"net.head.weight\", \"net.head.bias\". ");
  set(c, "state_dict", list_of(1));
  check_untouched(&b, c, "Expected state_dict to be dict-like, got list");
  calx_value_free(c);
  c = dict_new();
  check_untouched(&b, c, "the checkpoint has no 'state_dict'");
  calx_value_free(c);
  run_end(&a);
  run_end(&b);
}

static void test_weights_only(void **state)
{
  (void)state;
  run a = run_begin(RUN_ADAM, 1, 1), b = run_begin(RUN_ADAM, 1, 2);
  run_until(&a, 0, 2);
  calx_value *c = dict_new();
  cx_train_states from = run_states(&a), to = run_states(&b);
  CHECK_STATUS_OK(cx_train_states_put(&from, true, c));
  check_untouched(
      &b, c,
      "Trying to restore optimizer state but checkpoint contains only the "
      "model. This is probably due to `ModelCheckpoint.save_weights_only` being "
      "set to `True`.");
  set(c, "optimizer_states", list_of(1));
  CHECK_STATUS_OK(cx_train_states_get(&to, true, c));
  run_check(&b, calx_value_get(c, "state_dict"), 0);
  assert_int_equal(calx_optimizer_steps(b.opts[0]), 0);
  calx_value_free(c);
  run_end(&a);
  run_end(&b);
}

// Names of the file under another prefix, and of what the model does not have.
static void test_prefix(void **state)
{
  (void)state;
  run a = run_begin(RUN_SGD, 1, 1), b = run_begin(RUN_SGD, 1, 2);
  calx_value *c = dict_new(), *weights;
  cx_train_states from = run_states(&a), to = run_states(&b);
  CHECK_STATUS_OK(cx_train_states_put(&from, true, c));
  weights = calx_value_get(c, "state_dict");
  set(weights, "loss.weight", calx_value_int(1));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, cx_train_states_get(&to, true, c),
               "Unexpected key(s) in state_dict: \"loss.weight\". ");
  to.not_strict = true;
  CHECK_STATUS_OK(cx_train_states_get(&to, true, c));
  run_check(&b, weights, 0);
  to = run_states(&b);
  to.prefix = NULL;
  CHECK_STATUS(CALX_INVALID_ARGUMENT, cx_train_states_get(&to, true, c),
               "Missing key(s) in state_dict: \"hidden.weight\"",
               "Unexpected key(s) in state_dict: \"net.hidden.weight\"");
  calx_value_free(c);
  run_end(&a);
  run_end(&b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_progress),     SUPPORT_TEST(test_older_names),
    SUPPORT_TEST(test_1_5),          SUPPORT_TEST(test_lies),
    SUPPORT_TEST(test_own),          SUPPORT_TEST(test_all_or_nothing),
    SUPPORT_TEST(test_weights_only), SUPPORT_TEST(test_prefix),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
