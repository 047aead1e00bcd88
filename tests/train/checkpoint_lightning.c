// checkpoint_lightning: Lightning resumes from our checkpoints, and we from
// Lightning's; both go on as if nobody had stopped.
#include "checkpoint_run.h"
#include "support/torch.h"

static const char script[] = "checkpoint_lightning.py";
static const char *const kind_names[] = { "sgd", "adam", "manual" };
#define EPOCHS 4
#define WITHIN 1e-12

static void put_number(calx_value *job, const char *name, int64_t value)
{
  CHECK_STATUS_OK(calx_value_set(job, name, calx_value_int(value)));
}

static void put_text(calx_value *job, const char *name, const char *value)
{
  CHECK_STATUS_OK(calx_value_set(job, name, calx_value_string(value)));
}

static calx_value *job_new(calx_value *jobs, run_kind kind, int64_t accumulate)
{
  calx_value *job = calx_value_container(CALX_KIND_DICT);
  CHECK_STATUS_OK(calx_value_append(jobs, job));
  put_text(job, "kind", kind_names[kind]);
  put_number(job, "accumulate", accumulate);
  return job;
}

static int64_t answer_number(const calx_value *answer, const char *name)
{
  return calx_value_as_int(calx_value_get(answer, name));
}

// The answers to the jobs, which are freed. Checkpoints stay in the folder.
static calx_value *ask(calx_value *jobs)
{
  calx_value *answers;
  const char *from = file_in_folder("jobs.pt");
  const char *to = file_in_folder("answers.pt");
  CHECK_STATUS_OK(calx_save(jobs, from));
  calx_value_free(jobs);
  torch_run(script, from, to);
  CHECK_STATUS_OK(calx_load(to, &answers));
  return answers;
}

// ---- from calx to Lightning -------------------------------------------------

typedef struct stop {
  run_kind kind;
  int64_t accumulate, epochs, batches;  // that are over
  bool is_epoch_end;                    // before the epoch is counted
} stop;

static const stop stops[] = {
  { RUN_SGD, 1, 0, 0, false },    { RUN_SGD, 1, 0, 1, false },
  { RUN_SGD, 1, 1, 2, false },    { RUN_ADAM, 1, 1, 3, false },
  { RUN_SGD, 1, 2, 0, true },     { RUN_ADAM, 1, 2, 0, true },
  { RUN_ADAM, 1, 2, 0, false },   { RUN_ADAM, 2, 1, 2, false },
  { RUN_SGD, 2, 1, 4, false },    { RUN_ADAM, 3, 2, 0, true },
  { RUN_MANUAL, 1, 1, 2, false }, { RUN_MANUAL, 1, 3, 0, true },
};
enum { STOPS = sizeof stops / sizeof *stops, WAYS = 4 };

// Lightning resumes with max_epochs and with max_steps, which it does in
// different ways, and with and without validations.
static void put_ways(calx_value *jobs, const stop *s, const char *path,
                     int64_t steps)
{
  for (int way = 0; way < WAYS; way++) {
    calx_value *job = job_new(jobs, s->kind, s->accumulate);
    put_text(job, "resume", path);
    if (way % 2 == 0) put_number(job, "max_epochs", EPOCHS);
    if (way % 2 == 1) put_number(job, "max_steps", steps);
    put_number(job, "validates", way / 2);
  }
}

// Saves at the stop and goes on to the end.
static run run_past(const stop *s, const char *path)
{
  run r = run_begin(s->kind, s->accumulate, 3);
  run_until(&r, s->epochs, s->batches);
  if (r.at.is_epoch_end && !s->is_epoch_end) {
    r.at.epoch++;
    r.at.batch_idx = 0;
    r.at.is_epoch_end = false;
  }
  calx_value *checkpoint = run_checkpoint(&r);
  CHECK_STATUS_OK(calx_save(checkpoint, path));
  calx_value_free(checkpoint);
  run_until(&r, EPOCHS, 0);
  return r;
}

static void check_seen(const calx_value *answer, const stop *s)
{
  const calx_value *seen = calx_value_get(answer, "seen");
  int64_t begun = s->epochs * RUN_BATCHES + s->batches;
  int64_t n = EPOCHS * RUN_BATCHES - begun;
  assert_int_equal(calx_value_count(seen), 2 * n);
  for (int64_t i = 0; i < n; i++) {
    const calx_value *epoch = calx_value_item(seen, (size_t)(2 * i));
    const calx_value *batch = calx_value_item(seen, (size_t)(2 * i + 1));
    assert_int_equal(calx_value_as_int(epoch), (begun + i) / RUN_BATCHES);
    assert_int_equal(calx_value_as_int(batch), (begun + i) % RUN_BATCHES);
  }
}

// load_from_checkpoint(), and validate() with ckpt_path.
static void put_evaluation(calx_value *jobs, const stop *s, const char *path)
{
  calx_value *job = job_new(jobs, s->kind, s->accumulate);
  put_text(job, "resume", path);
  put_number(job, "validates", 1);
  put_number(job, "evaluates", 1);
}

static void check_evaluation(const calx_value *answer)
{
  assert_true(calx_value_as_bool(calx_value_get(answer, "same")));
  assert_true(calx_value_as_float(calx_value_get(answer, "val_loss")) > 0);
}

static void test_lightning_resumes(void **state)
{
  (void)state;
  calx_value *jobs = calx_value_container(CALX_KIND_LIST);
  run runs[STOPS];
  for (size_t i = 0; i < STOPS; i++) {
    char name[32];
    snprintf(name, sizeof name, "stop%zu.ckpt", i);
    const char *path = file_in_folder(name);
    runs[i] = run_past(&stops[i], path);
    put_ways(jobs, &stops[i], path, runs[i].at.global_step);
    if (i + 1 == STOPS) put_evaluation(jobs, &stops[i], path);
  }
  calx_value *answers = ask(jobs);
  for (size_t i = 0; i < STOPS * WAYS; i++) {
    const calx_value *answer = calx_value_item(answers, i);
    run *r = &runs[i / WAYS];
    check_seen(answer, &stops[i / WAYS]);
    assert_int_equal(answer_number(answer, "epoch"), EPOCHS);
    assert_int_equal(answer_number(answer, "global_step"), r->at.global_step);
    run_check(r, calx_value_get(answer, "weights"), WITHIN);
  }
  check_evaluation(calx_value_item(answers, STOPS * WAYS));
  calx_value_free(answers);
  for (size_t i = 0; i < STOPS; i++) run_end(&runs[i]);
  files_in_folder(true);
}

// ---- from Lightning to calx -------------------------------------------------

typedef struct save {
  const char *hook;
  int64_t epoch, batch;    // at which the hook saves
  int64_t epochs, inside;  // that are over, for us
  run_kind kind;
  int64_t accumulate;
  int64_t interval;  // of validations, in batches; 0: none
} save;

static const save saves[] = {
  { "start", 0, 0, 0, 0, RUN_SGD, 1, 0 },
  { "batch", 0, 1, 0, 1, RUN_SGD, 1, 0 },
  { "batch", 1, 2, 1, 2, RUN_ADAM, 1, 0 },
  { "batch", 1, 4, 1, 4, RUN_SGD, 2, 2 },
  { "batch", 1, 3, 1, 3, RUN_ADAM, 3, 0 },
  { "batch", 1, 5, 2, 0, RUN_ADAM, 1, 0 },
  { "validation", 1, 2, 1, 2, RUN_SGD, 1, 2 },
  { "validation", 1, 4, 1, 4, RUN_ADAM, 2, 2 },
  { "validation", 1, 5, 2, 0, RUN_ADAM, 1, 5 },
  { "epoch", 1, 5, 2, 0, RUN_SGD, 1, 0 },
  { "epoch", 1, 5, 2, 0, RUN_ADAM, 2, 5 },
  { "start", 2, 5, 2, 0, RUN_ADAM, 1, 0 },
  { "batch", 1, 2, 1, 2, RUN_MANUAL, 1, 0 },
  { "epoch", 2, 5, 3, 0, RUN_MANUAL, 1, 5 },
  { "fit", 4, 5, 4, 0, RUN_ADAM, 1, 0 },
  { "epoch, 1.5", 1, 5, 2, 0, RUN_ADAM, 1, 0 },
};
enum { SAVES = sizeof saves / sizeof *saves };

static void put_save(calx_value *jobs, const save *s, const char *path)
{
  calx_value *job = job_new(jobs, s->kind, s->accumulate);
  put_number(job, "max_epochs", EPOCHS);
  put_text(job, "hook", s->hook);
  put_number(job, "epoch", s->epoch);
  put_number(job, "batch", s->batch);
  put_text(job, "save", path);
  if (s->interval > 0) {
    put_number(job, "validates", 1);
    put_number(job, "val_check_interval", s->interval);
  }
}

// What users hand over is read as far as it is plain.
static void check_args(const calx_value *checkpoint)
{
  const calx_value *args =
      calx_value_get(calx_value_get(checkpoint, "hyper_parameters"), "args");
  assert_int_equal(calx_value_count(args), 3);
  CHECK_CLOSE(calx_value_as_float(calx_value_get(args, "rate")), 0.25, 0);
  assert_string_equal(calx_value_as_string(calx_value_get(args, "data")),
                      "data/mnist");
  assert_int_equal(calx_value_kind(calx_value_get(args, "act")),
                   CALX_KIND_NONE);
  const calx_value *timer =
      calx_value_get(calx_value_get(checkpoint, "callbacks"), "Timer");
  bool is_old = calx_value_get(checkpoint, "loops") == NULL;
  assert_int_equal(calx_value_count(timer), is_old ? 0 : 1);
}

// The class that is a key and the one that is a value are not in the way.
static void check_old(const calx_value *checkpoint)
{
  assert_null(calx_value_get(checkpoint, "loops"));
  assert_int_equal(calx_value_as_int(calx_value_get(checkpoint, "epoch")), 2);
  const calx_value *stopping = calx_value_get(
      calx_value_get(checkpoint, "callbacks"),
      "pytorch_lightning.callbacks.early_stopping.EarlyStopping");
  assert_int_equal(calx_value_as_int(calx_value_get(stopping, "wait_count")),
                   1);
}

// Numbers of schedules and validations are not written; see checkpoint_loops.c.
static void check_same(const calx_value *ours, const calx_value *theirs)
{
  assert_int_equal(calx_value_kind(ours), calx_value_kind(theirs));
  assert_int_equal(calx_value_as_int(ours), calx_value_as_int(theirs));
  assert_int_equal(calx_value_count(ours), calx_value_count(theirs));
  for (size_t i = 0; calx_value_item(theirs, i) != NULL; i++) {
    const char *key = calx_value_key(theirs, i);
    const calx_value *own = calx_value_get(ours, key);
    if (own == NULL) print_error("'%s' is missing\n", key);
    assert_non_null(own);
    if (strstr(key, "scheduler_progress") != NULL ||
        strstr(key, "val_loop.batch_progress") != NULL) {
      continue;
    }
    check_same(own, calx_value_item(theirs, i));
  }
}

// In the middle of an epoch the loops are Lightning's own.
static void check_loops(const run *r, const calx_value *checkpoint)
{
  calx_value *ours = calx_value_container(CALX_KIND_DICT);
  CHECK_STATUS_OK(cx_train_loops_put(&r->at, ours));
  const char *const keys[] = { "epoch", "global_step", "loops",
                               "pytorch-lightning_version" };
  for (size_t i = 0; i < 4; i++) {
    check_same(calx_value_get(ours, keys[i]),
               calx_value_get(checkpoint, keys[i]));
  }
  calx_value_free(ours);
}

static int64_t steps_in(int64_t batches, int64_t accumulate)
{
  int64_t epochs = batches / RUN_BATCHES;
  return epochs * ((RUN_BATCHES + accumulate - 1) / accumulate) +
         batches % RUN_BATCHES / accumulate;
}

static void check_save(const save *s, const char *path,
                       const calx_value *answer)
{
  calx_value *checkpoint;
  int64_t begun = s->epochs * RUN_BATCHES + s->inside;
  run r = run_begin(s->kind, s->accumulate, 77);
  run_until(&r, 0, 2);  // other weights and states
  CHECK_STATUS_OK(calx_load(path, &checkpoint));
  run_restore(&r, checkpoint);
  assert_int_equal(r.at.epoch, s->epochs);
  assert_int_equal(r.at.batch_idx, s->inside);
  assert_int_equal(r.at.batches_seen, begun);
  int64_t stepped = steps_in(begun, s->accumulate);
  assert_int_equal(r.at.batches_stepped, stepped);
  assert_int_equal(r.at.global_step, stepped * (int64_t)r.n_opts);
  assert_false(r.at.is_epoch_end);
  if (strcmp(s->hook, "batch") == 0 && s->inside > 0) {
    check_loops(&r, checkpoint);
  }
  check_args(checkpoint);
  if (strcmp(s->hook, "epoch, 1.5") == 0) check_old(checkpoint);
  calx_value_free(checkpoint);
  run_until(&r, EPOCHS, 0);
  run_check(&r, calx_value_get(answer, "weights"), WITHIN);
  run_end(&r);
}

static void test_from_lightning(void **state)
{
  (void)state;
  calx_value *jobs = calx_value_container(CALX_KIND_LIST);
  char paths[SAVES][512];
  for (size_t i = 0; i < SAVES; i++) {
    char name[32];
    snprintf(name, sizeof name, "save%zu.ckpt", i);
    snprintf(paths[i], sizeof paths[i], "%s", file_in_folder(name));
    put_save(jobs, &saves[i], paths[i]);
  }
  calx_value *answers = ask(jobs);
  for (size_t i = 0; i < SAVES; i++) {
    check_save(&saves[i], paths[i], calx_value_item(answers, i));
  }
  calx_value_free(answers);
  files_in_folder(true);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_lightning_resumes),
    SUPPORT_TEST(test_from_lightning),
  };
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
