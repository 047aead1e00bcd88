// Lightning's ModelCheckpoint saves the same files in the same fits, and takes
// the states that ours has saved.
#include "io/files.h"
#include "saving.h"
#include "support/long.h"
#include "support/torch.h"

// ---- fits -------------------------------------------------------------------

// As many of the long tests.
enum { FITS = 300, MOST_EPOCHS = 6 };

typedef struct fit_plan {
  int64_t epochs, batches, every_n_epochs, every_n_train_steps;  // -1: None
  int64_t top_k, check_val_every_n_epoch;
  double val_check_interval;  // 0: 1.0
  int on_epoch_end;           // -1: None
  bool validates, has_monitor, is_max, counts;
  calx_save_last save_last;
  const char *filename;
  double values[MOST_EPOCHS];
} fit_plan;

static uint64_t seed = 88172645463325252u;

static int64_t below(int64_t n)
{
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (int64_t)(seed % (uint64_t)n);
}

static fit_plan draw(void)
{
  static const char *const names[] = { "", "{epoch}", "{step:04d}",
                                       "x{epoch}-{loss:.2f}", "same" };
  static const double intervals[] = { 0, 0, 0.5, 0.25 };
  fit_plan p = { .epochs = 1 + below(MOST_EPOCHS),
                 .batches = 4 * (1 + below(2)),
                 .every_n_epochs = -1,
                 .every_n_train_steps = -1,
                 .check_val_every_n_epoch = 1 + below(4) / 3,
                 .val_check_interval = intervals[below(4)],
                 .on_epoch_end = (int)below(4) < 2 ? -1 : (int)below(2),
                 .validates = below(4) > 0,
                 .has_monitor = below(3) > 0,
                 .is_max = below(2) == 1,
                 .counts = below(3) > 0,
                 .save_last = (calx_save_last)below(3),
                 .filename = names[below(5)] };
  if (below(3) == 0) p.every_n_epochs = below(4);
  if (p.every_n_epochs < 0 && below(2) == 0) p.every_n_train_steps = below(5);
  p.top_k = p.has_monitor ? below(5) - 1 : below(3) - 1;
  for (int i = 0; i < MOST_EPOCHS; i++) {
    p.values[i] = below(9) == 0 ? (double)NAN : (double)below(6) / 4;
  }
  return p;
}

static void put(calx_value *job, const char *name, calx_value *value)
{
  CHECK_STATUS_OK(calx_value_set(job, name, value));
}

static calx_value *job_of(const fit_plan *p)
{
  calx_value *job = calx_value_container(CALX_KIND_DICT);
  calx_value *values = calx_value_container(CALX_KIND_LIST);
  for (int i = 0; i < MOST_EPOCHS; i++) {
    CHECK_STATUS_OK(calx_value_append(values, calx_value_float(p->values[i])));
  }
  put(job, "values", values);
  put(job, "epochs", calx_value_int(p->epochs));
  put(job, "batches", calx_value_int(p->batches));
  put(job, "save_top_k", calx_value_int(p->top_k));
  if (p->every_n_epochs >= 0) {
    put(job, "every_n_epochs", calx_value_int(p->every_n_epochs));
  }
  if (p->every_n_train_steps >= 0) {
    put(job, "every_n_train_steps", calx_value_int(p->every_n_train_steps));
  }
  put(job, "check_val_every_n_epoch",
      calx_value_int(p->check_val_every_n_epoch));
  put(job, "val_check_interval", calx_value_float(p->val_check_interval));
  put(job, "on_epoch_end", calx_value_int(p->on_epoch_end));
  put(job, "validates", calx_value_bool(p->validates));
  put(job, "monitor", calx_value_string(p->has_monitor ? "loss" : ""));
  put(job, "mode", calx_value_string(p->is_max ? "max" : "min"));
  put(job, "counts", calx_value_bool(p->counts));
  put(job, "save_last", calx_value_int((int64_t)p->save_last));
  if (*p->filename != '\0') {
    put(job, "filename", calx_value_string(p->filename));
  }
  return job;
}

static int64_t option(int64_t value)
{
  return value == 0 ? INT64_MIN : value < 0 ? 0 : value;
}

static calx_callback *callback_of(const fit_plan *p, const char *folder)
{
  calx_model_checkpoint_options o = {
    .size = sizeof o,
    .dirpath = folder,
    .filename = p->filename,
    .monitor = p->has_monitor ? "loss" : NULL,
    .mode = p->is_max ? "max" : "min",
    .save_last = p->save_last,
    .save_top_k = p->top_k == 0 ? INT64_MIN : p->top_k,
    .every_n_epochs = option(p->every_n_epochs),
    .every_n_train_steps = option(p->every_n_train_steps),
    .no_version_counter = !p->counts
  };
  if (p->on_epoch_end >= 0) {
    o.save_on_train_epoch_end = p->on_epoch_end == 1 ? 1 : INT32_MIN;
  }
  return calx_model_checkpoint_with(&o);
}

static const char *text_of(const calx_value *answer, const char *name)
{
  return calx_value_as_string(calx_value_get(answer, name));
}

static const char *base_of(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

static void check_text(int fit, const char *what, const char *ours,
                       const calx_value *answer)
{
  const char *theirs = text_of(answer, what);
  if (strcmp(ours, theirs) == 0) return;
  fail_msg("fit %d: %s is '%s', Lightning's '%s'", fit, what, ours, theirs);
}

static void check_number(int fit, const char *what, double ours,
                         const calx_value *answer)
{
  const double theirs = calx_value_as_float(calx_value_get(answer, what));
  if (support_is_close(ours, theirs, 0)) return;
  fail_msg("fit %d: %s is %g, Lightning's %g", fit, what, ours, theirs);
}

static void check_fit(int i, const fit_plan *p, const calx_value *answer)
{
  char folder[16];
  snprintf(folder, sizeof folder, "f%d", i);
  assert_int_equal(mkdir(saving_path(folder), 0777), 0);
  saving s = { .values = p->values,
               .n_values = p->has_monitor ? MOST_EPOCHS : 0,
               .batches = p->batches,
               .logs_training = !p->validates };
  calx_callback *c = callback_of(p, saving_path(folder));
  calx_trainer *t = SAVING_TRAINER(
      c, .max_epochs = p->epochs,
      .val_check_interval =
          p->val_check_interval > 0 ? p->val_check_interval : CALX_DEFAULT,
      .check_val_every_n_epoch = p->check_val_every_n_epoch);
  CHECK_STATUS_OK(saving_fit(t, &s));
  check_text(i, "files", saving_list(saving_path(folder)), answer);
  check_text(i, "best", base_of(calx_model_checkpoint_best_model_path(c)),
             answer);
  check_text(i, "last", base_of(calx_model_checkpoint_last_model_path(c)),
             answer);
  check_text(i, "key", c->state_key, answer);
  check_number(i, "score", calx_model_checkpoint_best_model_score(c), answer);
  // Lightning's is an old one where files replace each other.
  if (p->counts) {
    check_text(i, "kth", base_of(calx_model_checkpoint_kth_best_model_path(c)),
               answer);
    check_number(i, "kth_value", calx_model_checkpoint_kth_value(c), answer);
  }
  calx_trainer_free(t);
  calx_callback_free(c);
}

static void test_fits(void **state)
{
  (void)state;
  fit_plan plans[FITS];
  const int fits = (int)long_or(FITS, 25);
  calx_value *jobs = calx_value_container(CALX_KIND_LIST);
  for (int i = 0; i < fits; i++) {
    plans[i] = draw();
    CHECK_STATUS_OK(calx_value_append(jobs, job_of(&plans[i])));
  }
  calx_value *answers = torch_ask(jobs, "model_checkpoint_lightning.py");
  for (int i = 0; i < fits; i++) {
    check_fit(i, &plans[i], calx_value_item(answers, (size_t)i));
  }
  calx_value_free(answers);
}

// ---- states -----------------------------------------------------------------

static void make_callbacks(calx_callback **out)
{
  out[0] = calx_early_stopping(.monitor = "loss", .patience = 7);
  out[1] = calx_model_checkpoint(.dirpath = saving_path("c"),
                                 .filename = "{epoch}", .monitor = "loss",
                                 .save_top_k = 2, .save_last = true);
}

static void fit_with(calx_callback **callbacks)
{
  saving s = { VALUES(4, 0.1, 2, 3), .batches = 2 };
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = 4, .no_progress_bar = true,
                       .no_model_summary = true, .num_sanity_val_steps = 0,
                       .no_logger = true, .callbacks = callbacks,
                       .n_callbacks = 2);
  CHECK_STATUS_OK(saving_fit(t, &s));
  CHECK_STATUS_OK(calx_trainer_save_checkpoint(t, saving_path("all.ckpt")));
  calx_trainer_free(t);
}

// A score that Lightning does not take from a state is left out.
static void check_value(const char *key, const calx_value *a,
                        const calx_value *b)
{
  if (strcmp(key, "current_score") == 0) return;
  if (calx_value_kind(a) != calx_value_kind(b)) fail_msg("%s: its kind", key);
  switch (calx_value_kind(a)) {
    case CALX_KIND_NONE: break;
    case CALX_KIND_STRING:
      assert_string_equal(calx_value_as_string(a), calx_value_as_string(b));
      break;
    case CALX_KIND_DICT:
      for (size_t i = 0; i < calx_value_count(a); i++) {
        const char *k = calx_value_key(a, i);
        check_value(k, calx_value_item(a, i), calx_value_get(b, k));
      }
      break;
    default: assert_true(cx_train_take_scalar(a) == cx_train_take_scalar(b));
  }
}

// Lightning's callbacks take ours, and give the same.
static void test_states(void **state)
{
  (void)state;
  calx_callback *callbacks[2];
  make_callbacks(callbacks);
  fit_with(callbacks);
  calx_callback_free(callbacks[0]);
  calx_callback_free(callbacks[1]);
  calx_value *jobs = calx_value_container(CALX_KIND_LIST);
  calx_value *job = calx_value_container(CALX_KIND_DICT), *ours;
  put(job, "path", calx_value_string(saving_path("all.ckpt")));
  put(job, "folder", calx_value_string(saving_path("c")));
  CHECK_STATUS_OK(calx_value_append(jobs, job));
  calx_value *answers = torch_ask(jobs, "model_checkpoint_lightning.py");
  CHECK_STATUS_OK(calx_load(saving_path("all.ckpt"), &ours));
  const calx_value *mine = calx_value_get(ours, "callbacks");
  assert_int_equal(calx_value_count(mine), 2);
  check_value("callbacks", mine,
              calx_value_get(calx_value_item(answers, 0), "callbacks"));
  calx_value_free(ours);
  calx_value_free(answers);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SAVING_TEST(test_fits),
    SAVING_TEST(test_states),
  };
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
