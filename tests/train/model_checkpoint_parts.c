// The parts of ModelCheckpoint: names, the k best, intervals, files, and what
// its options refuse.
#include "saving.h"
#include "train/model_checkpoint.h"

// ---- row E9 -----------------------------------------------------------------

typedef struct known {
  const calx_logged_value *values;
  size_t count;
} known;

static calx_logged_value value_of(void *user, const char *name)
{
  const known *k = user;
  for (size_t i = 0; i < k->count; i++) {
    if (strcmp(k->values[i].name, name) == 0) return k->values[i];
  }
  return (calx_logged_value){ name, 0, true };
}

// What Python 3.11 and Lightning 2.6.6 make of the same.
static void test_row_E9(void **state)
{
  (void)state;
  static const calx_logged_value values[] = {
    { "epoch", 3, true },
    { "step", 2, true },
    { "acc", 0.03, false },
    { "val/loss", 0.03, false },
    { "big", 12345.678, false },
    { "neg", -0.5, false },
    { "nan", (double)NAN, false },
    { "inf", (double)INFINITY, false },
    { "half", (double)0.03f, false },
  };
  static const struct {
    const char *name;
    bool inserts;
    const char *wanted;
  } rows[] = {
    { "{epoch}-{step}", true, "epoch=3-step=2" },
    { "{epoch:03d}-{acc}", true, "epoch=003-acc=0.03" },
    { "{epoch}_{val/loss:.5f}", true, "epoch=3_val/loss=0.03000" },
    { "epoch={epoch:03d}-val_acc={acc}", false, "epoch=003-val_acc=0.03" },
    { "{missing:d}", true, "missing=0" },
    { "{missing:.2f}", true, "missing=0.00" },
    { "plain", true, "plain" },
    { "{half}", true, "half=0.029999999329447746" },
    { "{epoch:.2f}|{step:e}", false, "3.00|2.000000e+00" },
    { "{acc:.1%}|{acc:%}", false, "3.0%|3.000000%" },
    { "{big:.3}|{big:.8}|{acc:.1}", false, "1.23e+04|12345.678|0.03" },
    { "{epoch:.0f}|{acc:.0f}", false, "3|0" },
    { "{big:g}|{big:G}|{big:.2E}", false, "12345.7|12345.7|1.23E+04" },
    { "{neg:08.3f}|{neg:+.1f}|{acc:+.2f}", false, "-000.500|-0.5|+0.03" },
    { "{acc: .2f}|{acc:>8.2f}|{acc:<8.2f}|", false,
      " 0.03|    0.03|0.03    |" },
    { "{acc:*^9.2f}|{neg:x=7.1f}", false, "**0.03***|-xxx0.5" },
    { "{nan}|{nan:.2f}|{inf}|{inf:.1f}", false, "nan|nan|inf|inf" },
    { "{epoch}{epoch}", true, "epoch=3epoch=3" },
  };
  known k = { values, sizeof values / sizeof *values };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    cx_text text = { 0 };
    CHECK_STATUS_OK(cx_train_check_name(rows[i].name));
    CHECK_STATUS_OK(
        cx_train_put_name(&text, rows[i].name, rows[i].inserts, value_of, &k));
    assert_string_equal(cx_text_str(&text), rows[i].wanted);
    cx_text_free(&text);
  }
}

static void test_bad_values(void **state)
{
  (void)state;
  static const calx_logged_value acc = { "acc", 0.5, false };
  known k = { &acc, 1 };
  cx_text text = { 0 };
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               cx_train_put_name(&text, "{acc:d}", true, value_of, &k),
               "Unknown format code 'd' for object of type 'float'", "'acc'");
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               cx_train_put_name(&text, "{n:.2d}", true, value_of, &k),
               "Precision not allowed in integer format specifier");
  cx_text_free(&text);
}

// ---- the k best -------------------------------------------------------------

static void add(cx_train_top_k *top, const char *path, double score)
{
  CHECK_STATUS_OK(cx_train_top_k_add(top, path, score, score));
}

static void test_top_k(void **state)
{
  (void)state;
  cx_train_top_k top = { .k = 2, .sign = 1 };
  assert_true(cx_train_top_k_admits(&top, (double)NAN));
  assert_null(cx_train_top_k_best(&top));
  add(&top, "a", (double)NAN);
  assert_null(cx_train_top_k_pop(&top));
  add(&top, "b", 3);
  assert_string_equal(cx_train_top_k_worst(&top)->path, "a");
  assert_false(cx_train_top_k_admits(&top, (double)NAN));
  assert_false(cx_train_top_k_admits(&top, (double)INFINITY));
  assert_true(cx_train_top_k_admits(&top, 100));
  char *worst = cx_train_top_k_pop(&top);
  assert_string_equal(worst, "a");
  cx_free(worst);
  add(&top, "c", 3);
  assert_string_equal(cx_train_top_k_best(&top)->path, "b");
  assert_string_equal(cx_train_top_k_worst(&top)->path, "b");
  assert_false(cx_train_top_k_admits(&top, 3));
  cx_train_top_k_clear(&top);
  top = (cx_train_top_k){ .k = -1, .sign = -1 };
  for (int i = 0; i < 5; i++) {
    const char path[] = { (char)('a' + i), '\0' };
    assert_true(cx_train_top_k_admits(&top, i % 2));
    assert_null(cx_train_top_k_pop(&top));
    add(&top, path, i % 2);
  }
  assert_int_equal(top.count, 5);
  assert_string_equal(cx_train_top_k_best(&top)->path, "b");
  add(&top, "c", 2);  // which replaces it
  assert_int_equal(top.count, 5);
  assert_string_equal(cx_train_top_k_best(&top)->path, "c");
  cx_train_top_k_clear(&top);
}

// ---- row E5 -----------------------------------------------------------------

static void test_row_E5(void **state)
{
  (void)state;
  double last = 1000, never = (double)NAN;
  int saves = 0;
  for (int batch = 1; batch <= 128; batch++) {
    saves += cx_train_is_interval_over(&last, 60, 1000 + 7 * batch);
  }
  assert_int_equal(saves, 14);
  assert_false(cx_train_is_interval_over(&never, 0, 1));
}

// ---- files ------------------------------------------------------------------

static void touch(const char *path)
{
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fclose(f);
}

static void check_real(const char *path, const char *wanted)
{
  char *real = NULL;
  CHECK_STATUS_OK(cx_train_real_path(path, &real));
  assert_string_equal(real, wanted);
  cx_free(real);
}

static void test_paths(void **state)
{
  (void)state;
  char here[512];
  assert_int_equal(chdir(saving_root), 0);
  assert_int_equal(mkdir("real", 0777), 0);
  assert_int_equal(symlink("real", "link"), 0);
  check_real("link", saving_path("real"));
  check_real("link/a/b/", saving_path("real/a/b"));
  check_real(saving_path("link/x"), saving_path("real/x"));
  check_real("none", saving_path("none"));
  check_real("none/of/them", saving_path("none/of/them"));
  check_real(".", saving_root);
  check_real("", saving_root);
  check_real("/", "/");
  check_real("/no such folder/x", "/no such folder/x");
  snprintf(here, sizeof here, "%s//link//y", saving_root);
  check_real(here, saving_path("real/y"));
  touch("file");
  char *real = NULL;
  CHECK_STATUS(CALX_NOT_FOUND, cx_train_real_path("file/x", &real), "file/x");
  assert_int_equal(chdir("/"), 0);
}

static void check_removed(const char *file, const char *folder,
                          const char *source, bool removed)
{
  struct stat info;
  CHECK_STATUS_OK(cx_train_remove_file(file, folder, source));
  assert_int_equal(lstat(file, &info), removed ? -1 : 0);
}

static void test_removal(void **state)
{
  (void)state;
  const char *folder = saving_path("kept"), *file = saving_path("kept/a.ckpt");
  const char *other = saving_path("b.ckpt"), *link = saving_path("kept/l.ckpt");
  char outside[512];
  assert_int_equal(mkdir(folder, 0777), 0);
  touch(file);
  touch(other);
  check_removed(file, folder, file, false);
  check_removed(other, folder, NULL, false);
  snprintf(outside, sizeof outside, "%s/../b.ckpt", folder);
  check_removed(outside, folder, NULL, false);
  CHECK_STATUS_OK(cx_train_link(file, link));
  check_removed(link, folder, file, false);
  check_removed(link, folder, NULL, true);
  check_removed(file, folder, other, true);
  check_removed(file, folder, NULL, true);
}

// ---- options ----------------------------------------------------------------

#define REFUSED(text, ...)                                                    \
  do {                                                                        \
    calx_callback *c = calx_model_checkpoint(__VA_ARGS__);                    \
    calx_trainer *t =                                                         \
        calx_trainer_new(.max_epochs = 1, .callbacks = &c, .n_callbacks = 1); \
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_error(t), text);         \
    calx_trainer_free(t);                                                     \
    calx_callback_free(c);                                                    \
  } while (0)

static void test_refused(void **state)
{
  (void)state;
  REFUSED("Invalid value for save_top_k=-3. Must be >= -1", .save_top_k = -3);
  REFUSED("Invalid value for every_n_train_steps=-3. Must be >= 0",
          .every_n_train_steps = -3);
  REFUSED("Invalid value for every_n_epochs=-3. Must be >= 0",
          .every_n_epochs = -3);
  REFUSED(
      "Combination of parameters every_n_train_steps=1, every_n_epochs=2 and "
      "train_time_interval=None should be mutually exclusive.",
      .every_n_train_steps = 1, .every_n_epochs = 2);
  REFUSED("and train_time_interval=00:00:01:00 should be mutually exclusive",
          .every_n_epochs = 1, .train_time_interval = "00:00:01:00");
  REFUSED(
      "ModelCheckpoint(save_top_k=3, monitor=None) is not a valid "
      "configuration. No quantity for top_k to track.",
      .save_top_k = 3);
  REFUSED("`mode` can be min, max but got unknown_option",
          .mode = "unknown_option");
  REFUSED("`train_time_interval` is '5 minutes'",
          .train_time_interval = "5 minutes");
  REFUSED("save_last is 3", .save_last = (calx_save_last)3);
  REFUSED("its '{' has no '}'", .filename = "{epoch");
  REFUSED("its '}' has no '{'", .filename = "epoch}");
  REFUSED("a field names a value", .filename = "{}");
  REFUSED("the format '.f' is none of", .filename = "{epoch:.f}");
  REFUSED("the format '5q' is none of", .filename = "{epoch:5q}");
  calx_callback *c = calx_on_exception_checkpoint(NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, cx_status_copy(c->error), "is NULL");
  calx_callback_free(c);
  c = calx_on_exception_checkpoint(".", .filename = "");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, cx_status_copy(c->error),
               "The filename cannot be empty");
  calx_callback_free(c);
}

static void check_key(calx_callback *c, const char *key)
{
  CHECK_STATUS_OK(cx_status_copy(c->error));
  assert_string_equal(c->state_key, key);
  calx_callback_free(c);
}

// Recorded of Lightning 2.6.6.
static void test_state_keys(void **state)
{
  (void)state;
  check_key(calx_model_checkpoint(),
            "ModelCheckpoint{'monitor': None, 'mode': 'min', "
            "'every_n_train_steps': 0, 'every_n_epochs': 1, "
            "'train_time_interval': None}");
  check_key(calx_model_checkpoint(.monitor = "val_loss", .mode = "max",
                                  .every_n_train_steps = 4),
            "ModelCheckpoint{'monitor': 'val_loss', 'mode': 'max', "
            "'every_n_train_steps': 4, 'every_n_epochs': 0, "
            "'train_time_interval': None}");
  check_key(calx_model_checkpoint(.train_time_interval = "01:00:01:00"),
            "ModelCheckpoint{'monitor': None, 'mode': 'min', "
            "'every_n_train_steps': 0, 'every_n_epochs': 0, "
            "'train_time_interval': datetime.timedelta(days=1, seconds=60)}");
  check_key(calx_model_checkpoint(.train_time_interval = "00:00:00:00"),
            "ModelCheckpoint{'monitor': None, 'mode': 'min', "
            "'every_n_train_steps': 0, 'every_n_epochs': 0, "
            "'train_time_interval': datetime.timedelta(0)}");
  check_key(calx_early_stopping(.monitor = "val_loss"),
            "EarlyStopping{'monitor': 'val_loss', 'mode': 'min'}");
}

// ---- a trainer's callbacks --------------------------------------------------

static void test_order(void **state)
{
  (void)state;
  calx_callback *c[] = { calx_model_checkpoint(), calx_callback_new(),
                         calx_on_exception_checkpoint("."),
                         calx_early_stopping(.monitor = "x") };
  calx_trainer *t =
      calx_trainer_new(.max_epochs = 1, .callbacks = c, .n_callbacks = 4);
  CHECK_STATUS_OK(calx_trainer_error(t));
  static const int order[] = { 1, 3, 0, 2 };
  size_t at = 0;
  for (size_t i = 0; i < t->n_callbacks && at < 4; i++) {
    if (t->callbacks[i] == c[order[at]]) at++;
  }
  assert_int_equal(at, 4);
  assert_ptr_equal(calx_trainer_checkpoint_callback(t), c[0]);
  calx_trainer_free(t);
  t = calx_trainer_new(.max_epochs = 1, .callbacks = c, .n_callbacks = 1,
                       .no_checkpointing = true);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_error(t),
               "Trainer was configured with `no_checkpointing` but found "
               "`ModelCheckpoint` in callbacks list.");
  calx_trainer_free(t);
  calx_callback *twice[] = { c[0], calx_model_checkpoint(.filename = "x") };
  t = calx_trainer_new(.max_epochs = 1, .callbacks = twice, .n_callbacks = 2);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_error(t),
               "Found more than one stateful callback of type "
               "`ModelCheckpoint`");
  calx_trainer_free(t);
  calx_callback_free(twice[1]);
  for (size_t i = 0; i < 4; i++) calx_callback_free(c[i]);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SAVING_TEST(test_row_E9),  SAVING_TEST(test_bad_values),
    SAVING_TEST(test_top_k),   SAVING_TEST(test_row_E5),
    SAVING_TEST(test_paths),   SAVING_TEST(test_removal),
    SAVING_TEST(test_refused), SAVING_TEST(test_state_keys),
    SAVING_TEST(test_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
