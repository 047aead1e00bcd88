// The trainer's options from a command line, a YAML file and the environment.
#include <ftw.h>
#include <locale.h>
#include <unistd.h>

#include "calx/calx.h"
#include "support/support.h"

static char lines[4096], folder[64];

static void keep_line(void *user, const char *line)
{
  (void)user;
  size_t at = strlen(lines);
  snprintf(lines + at, sizeof lines - at, "%s\n", line);
}

static int begin(void **state)
{
  (void)state;
  const char *tmp = getenv("TMPDIR");
  lines[0] = '\0';
  calx_log_set(keep_line, NULL);
  snprintf(folder, sizeof folder, "%s/options_XXXXXX",
           tmp != NULL && strlen(tmp) < 40 ? tmp : "/tmp");
  return mkdtemp(folder) == NULL;
}

static int remove_one(const char *path, const struct stat *info, int kind,
                      struct FTW *place)
{
  (void)info, (void)kind, (void)place;
  return remove(path);
}

static int end(void **state)
{
  calx_log_set(NULL, NULL);
  return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS) +
         support_nothing_left(state);
}

// ---- command lines ----------------------------------------------------------

enum { MOST_WORDS = 16 };

typedef struct command {
  int argc;
  char text[1024];
  char *argv[MOST_WORDS + 1];
} command;

// The words between blanks.
static command command_of(const char *text)
{
  static command c;
  snprintf(c.text, sizeof c.text, "%s", text);
  c.argc = 0;
  for (char *word = strtok(c.text, " "); word != NULL;
       word = strtok(NULL, " ")) {
    c.argv[c.argc++] = word;
  }
  c.argv[c.argc] = NULL;
  return c;
}

#define NEW_OPTIONS                      \
  {                                      \
    .size = sizeof(calx_trainer_options) \
  }

// What the trainer's options become, and what is left for the program.
static calx_trainer_options read_line(const char *text, const char *left)
{
  calx_trainer_options o = NEW_OPTIONS;
  command c = command_of(text);
  char rest[512] = "";
  CHECK_STATUS_OK(calx_trainer_args(&o, &c.argc, c.argv));
  for (int i = 0; i < c.argc; i++) {
    snprintf(rest + strlen(rest), sizeof rest - strlen(rest), "%s%s",
             i > 0 ? " " : "", c.argv[i]);
  }
  assert_string_equal(rest, left);
  assert_null(c.argv[c.argc]);
  return o;
}

#define LINE_REFUSED(text, ...)                                              \
  do {                                                                       \
    calx_trainer_options o_ = NEW_OPTIONS;                                   \
    command c_ = command_of(text);                                           \
    CHECK_STATUS(CALX_INVALID_ARGUMENT,                                      \
                 calx_trainer_args(&o_, &c_.argc, c_.argv), __VA_ARGS__);    \
    assert_memory_equal(&o_, &(calx_trainer_options)NEW_OPTIONS, sizeof o_); \
  } while (0)

// The seeds' lines.
static void test_seeds(void **state)
{
  (void)state;
  calx_trainer_options o = read_line("train --max_epochs=5 --batch_size=32",
                                     "train --batch_size=32");
  assert_int_equal(o.max_epochs, 5);
  o = read_line("train --tpu_cores=8 --precision 16 data", "train data");
  assert_int_equal(o.tpu_cores, 8);
  assert_string_equal(o.precision, "16");
  o = read_line("train --tpu_cores=[5] --strategy=tpu_spawn_debug", "train");
  assert_string_equal(o.tpu_core_ids, "[5]");
  assert_int_equal(o.tpu_cores, 0);
  assert_string_equal(o.strategy, "tpu_spawn_debug");
  o = read_line("train --accelerator=tpu --devices=8", "train");
  assert_string_equal(o.accelerator, "tpu");
  assert_int_equal(o.devices, 8);
}

static void test_forms(void **state)
{
  (void)state;
  calx_trainer_options o = read_line(
      "train --trainer.max_epochs=5 --max_steps -1 -v --lr 0.1 file "
      "--trainer.devices [2] -- --max_epochs=7",
      "train -v --lr 0.1 file -- --max_epochs=7");
  assert_int_equal(o.max_epochs, 5);
  assert_int_equal(o.max_steps, -1);
  assert_string_equal(o.device_ids, "[2]");
  // The last one counts, with all that it sets.
  o = read_line("train --devices=[2] --devices=4 --max_epochs=1 --max_epochs=2",
                "train");
  assert_null(o.device_ids);
  assert_int_equal(o.devices, 4);
  assert_int_equal(o.max_epochs, 2);
  // A 0 that is written is one, and None is the default.
  o = read_line(
      "train --max_epochs=0 --num_sanity_val_steps=0 --min_steps=0 "
      "--precision=None --check_val_every_n_epoch=None",
      "train");
  assert_true(o.max_epochs == INT64_MIN && o.num_sanity_val_steps == INT64_MIN);
  assert_int_equal(o.min_steps, 0);
  assert_null(o.precision);
  assert_int_equal(o.check_val_every_n_epoch, -1);
  o = read_line(
      "train --val_check_interval=00:00:10:00 --seed_everything=7 "
      "--gradient_clip_val=0.5 --profiler=simple",
      "train");
  assert_string_equal(o.val_check_time, "00:00:10:00");
  assert_int_equal(o.seed, 7);
  CHECK_CLOSE(o.gradient_clip_val, 0.5, 0);
  assert_string_equal(o.profiler, "simple");
}

static void test_switches(void **state)
{
  (void)state;
  calx_trainer_options o = read_line(
      "train --fast_dev_run data.csv --enable_progress_bar=false "
      "--enable_checkpointing False --enable_model_summary --logger=false",
      "train data.csv");
  assert_int_equal(o.fast_dev_run, 1);
  assert_true(o.no_progress_bar && o.no_checkpointing && !o.no_model_summary);
  assert_true(o.no_logger);
  o = read_line(
      "train --fast_dev_run 3 --no_progress_bar "
      "--no_model_summary=no --logger=csv --deterministic=warn "
      "--replace_sampler_ddp=0",
      "train");
  assert_int_equal(o.fast_dev_run, 3);
  assert_true(o.no_progress_bar && !o.no_model_summary);
  assert_string_equal(o.logger, "csv");
  assert_true(!o.no_logger && o.deterministic && o.no_distributed_sampler);
  o = read_line("train --fast_dev_run=False --barebones yes --logger=true",
                "train");
  assert_int_equal(o.fast_dev_run, 0);
  assert_true(o.barebones && !o.no_logger);
  assert_null(o.logger);
}

// 1.0 is all, 1 is one batch.
static void test_limits(void **state)
{
  (void)state;
  calx_trainer_options o = read_line(
      "train --limit_train_batches=1.0 --limit_val_batches=1 "
      "--limit_test_batches=0.5 --limit_predict_batches=0.0 "
      "--overfit_batches=3 --val_check_interval=0.25",
      "train");
  assert_true(o.limit_train_batches == (double)INFINITY);
  CHECK_CLOSE(o.limit_val_batches, 1, 0);
  CHECK_CLOSE(o.limit_test_batches, 0.5, 0);
  assert_true(o.limit_predict_batches == 0 && signbit(o.limit_predict_batches));
  CHECK_CLOSE(o.overfit_batches, 3, 0);
  CHECK_CLOSE(o.val_check_interval, 0.25, 0);
  if (setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL) {
    o = read_line("train --limit_train_batches=0.5", "train");
    CHECK_CLOSE(o.limit_train_batches, 0.5, 0);
    setlocale(LC_NUMERIC, "C");
  }
}

static void test_refused_lines(void **state)
{
  (void)state;
  LINE_REFUSED("train --max_epoch=5",
               "the trainer has no option --max_epoch; the nearest is "
               "--max_epochs");
  LINE_REFUSED("train --trainer.batch=5",
               "the trainer has no option --trainer.batch; the nearest is --");
  LINE_REFUSED("train --max_epochs=many",
               "`max_epochs` should be an int. Got 'many'.");
  LINE_REFUSED("train --max_epochs=-100",
               "must be a non-negative integer or -1. You passed in -100.");
  LINE_REFUSED("train --max_epochs", "--max_epochs wants a value");
  LINE_REFUSED("train --max_epochs --devices=1", "--max_epochs wants a value");
  LINE_REFUSED("train --gradient_clip_val=big",
               "`gradient_clip_val` should be an int or a float. Got 'big'.");
  LINE_REFUSED("train --limit_val_batches=1.2",
               "You have passed invalid value 1.2 for limit_val_batches");
  LINE_REFUSED("train --limit_val_batches=0x1", "in [0.0, 1.0] or an int");
  LINE_REFUSED("train --barebones=maybe", "true or false. Got 'maybe'");
  LINE_REFUSED("train --precision=7", "Precision 7 is invalid.");
  LINE_REFUSED("train --seed_everything=-1", "an int from 0 to 2^64 - 1");
  LINE_REFUSED("train --sync_batchnorm=true",
               "`sync_batchnorm` should be None or false, as calx has nothing "
               "else. Got 'true'.");
  LINE_REFUSED("train --logger=wandb", "['tensorboard', 'csv', 'json']");
  calx_trainer_options o = NEW_OPTIONS;
  command c = command_of("train --config=/no/such.yaml");
  CHECK_STATUS(CALX_NOT_FOUND, calx_trainer_args(&o, &c.argc, c.argv),
               "/no/such.yaml");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_args(NULL, NULL, NULL),
               "options is NULL");
}

// What is wrong stays for the program, with what is behind it.
static void test_error_leaves_the_rest(void **state)
{
  (void)state;
  calx_trainer_options o = NEW_OPTIONS;
  command c = command_of("train --devices=2 mine --max_epochs=x more");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_args(&o, &c.argc, c.argv),
               "max_epochs");
  assert_int_equal(c.argc, 4);
  assert_string_equal(c.argv[2], "--max_epochs=x");
  assert_null(c.argv[4]);
  assert_int_equal(o.devices, 0);
}

static void test_own_names(void **state)
{
  (void)state;
  calx_trainer_options o = NEW_OPTIONS;
  command c = command_of("train --device=3 --seed=4 --trainer.seed=5");
  const char *const own[] = { "device", "seed", NULL };
  CHECK_STATUS_OK(calx_trainer_args(&o, &c.argc, c.argv, .own_names = own));
  assert_int_equal(c.argc, 3);
  assert_string_equal(c.argv[1], "--device=3");
  assert_string_equal(c.argv[2], "--seed=4");
  assert_int_equal(o.seed, 5);
}

static void test_help(void **state)
{
  (void)state;
  char *help = calx_trainer_args_help();
  assert_non_null(strstr(help, "\n  --max_epochs=N "));
  assert_non_null(strstr(help, "\n  --fast_dev_run[=BOOL] "));
  assert_null(strstr(help, "sync_batchnorm"));
  for (const char *line = help; line != NULL; line = strchr(line, '\n')) {
    line += *line == '\n';
    assert_true(strcspn(line, "\n") <= 100);
  }
  calx_string_free(help);
}

// ---- the environment --------------------------------------------------------

static calx_trainer_options read_line_of(calx_trainer_options o,
                                         const char *text)
{
  command c = command_of(text);
  CHECK_STATUS_OK(calx_trainer_args(&o, &c.argc, c.argv));
  return o;
}

// Command line, program, environment, in this order.
static void test_environment(void **state)
{
  (void)state;
  setenv("CALX_TRAINER_MAX_EPOCHS", "9", 1);
  setenv("CALX_TRAINER_LIMIT_TRAIN_BATCHES", "0.5", 1);
  setenv("CALX_TRAINER_ENABLE_PROGRESS_BAR", "false", 1);
  setenv("CALX_TRAINER_DEVICES", "", 1);
  calx_trainer_options o = read_line("train", "train");
  assert_int_equal(o.max_epochs, 9);
  CHECK_CLOSE(o.limit_train_batches, 0.5, 0);
  assert_true(o.no_progress_bar);
  o = read_line_of((calx_trainer_options){ .size = sizeof o, .max_epochs = 3 },
                   "train --limit_train_batches=1.0 --enable_progress_bar");
  assert_int_equal(o.max_epochs, 3);
  assert_true(o.limit_train_batches == (double)INFINITY);
  assert_false(o.no_progress_bar);
  o = read_line_of(CALX_TRAINER_OPTIONS(.max_epochs = 0),
                   "train --max_steps=2");
  assert_true(o.max_epochs == INT64_MIN);
  o = read_line_of(CALX_TRAINER_OPTIONS(.no_environment = true), "train");
  assert_int_equal(o.max_epochs, 0);
  unsetenv("CALX_TRAINER_LIMIT_TRAIN_BATCHES");
  unsetenv("CALX_TRAINER_ENABLE_PROGRESS_BAR");
  unsetenv("CALX_TRAINER_DEVICES");
  unsetenv("CALX_TRAINER_MAX_EPOCHS");
}

static void test_environment_of_new(void **state)
{
  (void)state;
  setenv("CALX_TRAINER_PRECISION", "7", 1);
  calx_trainer *t = calx_trainer_new(.max_epochs = 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_error(t),
               "CALX_TRAINER_PRECISION: Precision 7 is invalid");
  calx_trainer_free(t);
  t = calx_trainer_new(.max_epochs = 1, .precision = "32");
  CHECK_STATUS_OK(calx_trainer_error(t));
  calx_trainer_free(t);
  unsetenv("CALX_TRAINER_PRECISION");
  setenv("CALX_TRAINER_FAST_DEV_RUN", "2", 1);
  setenv("CALX_TRAINER_MAX_EPOCH", "2", 1);
  for (int i = 0; i < 2; i++) {
    t = calx_trainer_new(.max_epochs = 1);
    CHECK_STATUS_OK(calx_trainer_error(t));
    calx_trainer_free(t);
  }
  assert_non_null(strstr(lines, "using 2 batch(es)"));
  const char *unknown = strstr(lines,
                               "CALX_TRAINER_MAX_EPOCH is no option of the "
                               "trainer; the nearest is "
                               "CALX_TRAINER_MAX_EPOCHS");
  assert_non_null(unknown);
  assert_null(strstr(unknown + 1, "CALX_TRAINER_MAX_EPOCH is"));
  unsetenv("CALX_TRAINER_FAST_DEV_RUN");
  unsetenv("CALX_TRAINER_MAX_EPOCH");
}

// ---- YAML -------------------------------------------------------------------

static const char *put_file(const char *text)
{
  static char path[96];
  snprintf(path, sizeof path, "%s/config.yaml", folder);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  fputs(text, f);
  assert_int_equal(fclose(f), 0);
  return path;
}

static char own_keys[1024];

static calx_status *keep_key(void *user, const char *key, const char *text)
{
  (void)user;
  size_t at = strlen(own_keys);
  snprintf(own_keys + at, sizeof own_keys - at, "%s=%s\n", key, text);
  return strcmp(text, "bad") == 0 ? cx_invalid("no %s", key) : NULL;
}

static calx_trainer_options read_yaml(const char *text)
{
  calx_trainer_options o = NEW_OPTIONS;
  own_keys[0] = '\0';
  CHECK_STATUS_OK(
      calx_trainer_options_from_yaml(&o, put_file(text), keep_key, NULL));
  return o;
}

#define YAML_REFUSED(code, text, ...)                                          \
  do {                                                                         \
    calx_trainer_options o_ = NEW_OPTIONS;                                     \
    CHECK_STATUS(                                                              \
        code, calx_trainer_options_from_yaml(&o_, put_file(text), NULL, NULL), \
        __VA_ARGS__);                                                          \
    assert_memory_equal(&o_, &(calx_trainer_options)NEW_OPTIONS, sizeof o_);   \
  } while (0)

static void test_plain_yaml(void **state)
{
  (void)state;
  calx_trainer_options o = read_yaml(
      "# a comment\n"
      "max_epochs: 5\n"
      "precision: \"16\"\n"
      "devices: [5]\n"
      "limit_val_batches: 1.0\n"
      "enable_progress_bar: no\n"
      "max_time: 00:12:00:00\n"
      "gradient_clip_val: null\n"
      "profiler:\n"
      "batch_size: 32\n"
      "data: {folder: 'a b', files: [x.idx, y.idx], none: []}\n");
  assert_int_equal(o.max_epochs, 5);
  assert_string_equal(o.precision, "16");
  assert_string_equal(o.device_ids, "[5]");
  assert_true(o.limit_val_batches == (double)INFINITY);
  assert_true(o.no_progress_bar);
  assert_string_equal(o.max_time, "00:12:00:00");
  assert_null(o.profiler);
  assert_string_equal(own_keys,
                      "batch_size=32\n"
                      "data.folder=a b\n"
                      "data.files.0=x.idx\n"
                      "data.files.1=y.idx\n");
}

// As `config.yaml` of LightningCLI 2.6.
static void test_cli_yaml(void **state)
{
  (void)state;
  calx_trainer_options o = read_yaml(
      "# lightning.pytorch==2.6.6\n"
      "seed_everything: 42\n"
      "trainer:\n"
      "  accelerator: auto\n"
      "  strategy: auto\n"
      "  devices: &n\n"
      "  - 5\n"
      "  num_nodes: 1\n"
      "  precision: null\n"
      "  logger: null\n"
      "  callbacks: null\n"
      "  fast_dev_run: false\n"
      "  max_epochs: 5\n"
      "  min_epochs: null\n"
      "  max_steps: -1\n"
      "  limit_train_batches: null\n"
      "  overfit_batches: 0.0\n"
      "  check_val_every_n_epoch: 1\n"
      "  enable_checkpointing: null\n"
      "  accumulate_grad_batches: 1\n"
      "  benchmark: null\n"
      "  inference_mode: true\n"
      "  use_distributed_sampler: true\n"
      "  detect_anomaly: false\n"
      "  barebones: false\n"
      "  plugins: null\n"
      "  sync_batchnorm: false\n"
      "  reload_dataloaders_every_n_epochs: 0\n"
      "  default_root_dir: null\n"
      "  enable_autolog_hparams: true\n"
      "  model_registry: null\n"
      "model:\n"
      "  class_path: Net\n"
      "  cores: *n\n"
      "max_epochs: 7\n"
      "ckpt_path: null\n");
  assert_int_equal(o.seed, 42);
  assert_int_equal(o.max_epochs, 5);
  assert_int_equal(o.max_steps, -1);
  assert_string_equal(o.device_ids, "[5]");
  assert_string_equal(own_keys,
                      "model.class_path=Net\nmodel.cores.0=5\nmax_epochs=7\n"
                      "ckpt_path=null\n");
  o = read_yaml(
      "base: &base {max_epochs: 1, devices: 2}\n"
      "trainer:\n  max_epochs: 4\n  <<: *base\n");
  assert_int_equal(o.max_epochs, 4);
  assert_int_equal(o.devices, 2);
  o = read_yaml("");
  o = read_yaml("trainer:\n");
  assert_int_equal(o.max_epochs, 0);
}

static void test_refused_yaml(void **state)
{
  (void)state;
  YAML_REFUSED(CALX_INVALID_ARGUMENT, "max_epochs: 5\ndevices: [1\nmax: 2\n",
               "config.yaml:3: ");
  YAML_REFUSED(CALX_INVALID_ARGUMENT, "\nmax_epochs: many\n",
               "config.yaml:2: `max_epochs` should be an int. Got 'many'.");
  YAML_REFUSED(CALX_INVALID_ARGUMENT, "precision: 7",
               "config.yaml:1: Precision");
  YAML_REFUSED(CALX_INVALID_ARGUMENT, "trainer:\n  batch_size: 7\n",
               "config.yaml:2: the trainer has no option `batch_size`; the "
               "nearest is `");
  YAML_REFUSED(CALX_INVALID_ARGUMENT, "max_epoch: 7",
               "the nearest is `max_epochs`");
  YAML_REFUSED(CALX_INVALID_ARGUMENT, "max_epochs: {a: 1}",
               "a text is wanted, no list or mapping");
  YAML_REFUSED(CALX_INVALID_ARGUMENT, "- 1\n", "no mapping of options");
  YAML_REFUSED(CALX_INVALID_ARGUMENT, "trainer: 5\n",
               "`trainer` is no mapping of options");
  YAML_REFUSED(CALX_INVALID_ARGUMENT, "max_epochs: 1\n---\nmax_epochs: 2\n",
               "config.yaml:3: the file has two documents");
  YAML_REFUSED(CALX_INVALID_ARGUMENT, "precision: \"3\\0002\"\n",
               "control characters");
  YAML_REFUSED(CALX_INVALID_ARGUMENT, "precision: \"\\x9b2J\"\n",
               "control characters");
  YAML_REFUSED(CALX_INVALID_ARGUMENT, "max_epochs: *none\n", "config.yaml:1: ");
  YAML_REFUSED(CALX_INVALID_ARGUMENT, "max_epochs: \xff\n",
               "config.yaml: byte");
  calx_trainer_options o = NEW_OPTIONS;
  CHECK_STATUS(
      CALX_INVALID_ARGUMENT,
      calx_trainer_options_from_yaml(&o, put_file("lr: bad"), keep_key, NULL),
      "no lr");
  CHECK_STATUS(CALX_NOT_FOUND,
               calx_trainer_options_from_yaml(&o, "/no/such.yaml", NULL, NULL),
               "'/no/such.yaml'");
  CHECK_STATUS_OK(calx_trainer_options_from_yaml(
      &o, put_file("max_epochs: 1\n\nbatch_size: 3\nlr: 1\n"), NULL, NULL));
  assert_non_null(strstr(lines, "config.yaml:3: `batch_size` is no option"));
}

// Files that mean to be large: levels, aliases of aliases, keys, bytes.
static void test_hostile_yaml(void **state)
{
  (void)state;
  static char text[(1 << 20) + 64];
  size_t at = 0;
  for (int i = 0; i < 60; i++) at += (size_t)sprintf(text + at, "{a: ");
  for (int i = 0; i < 60; i++) at += (size_t)sprintf(text + at, "}");
  calx_trainer_options o = NEW_OPTIONS;
  CHECK_STATUS(
      CALX_RESOURCE_EXHAUSTED,
      calx_trainer_options_from_yaml(&o, put_file(text), keep_key, NULL),
      "more than 32 levels");
  at = (size_t)sprintf(text, "a0: &a0 [x, x]\n");
  for (int i = 1; i < 20; i++) {
    at += (size_t)sprintf(text + at, "a%d: &a%d [*a%d, *a%d]\n", i, i, i - 1,
                          i - 1);
  }
  CHECK_STATUS(
      CALX_RESOURCE_EXHAUSTED,
      calx_trainer_options_from_yaml(&o, put_file(text), keep_key, NULL),
      "more than the 100000 keys and values");
  CHECK_STATUS(CALX_RESOURCE_EXHAUSTED,
               calx_trainer_options_from_yaml(
                   &o, put_file("a: &a {<<: *a, b: *a}"), keep_key, NULL),
               "more than 32 levels");
  at = 0;
  for (int i = 0; i < 1100; i++) {
    at += (size_t)sprintf(text + at, "- &a%d x\n", i);
  }
  CHECK_STATUS(CALX_RESOURCE_EXHAUSTED,
               calx_trainer_options_from_yaml(&o, put_file(text), NULL, NULL),
               "config.yaml:1001: more than 1000 anchors");
  at = 0;
  for (int i = 0; i < 200; i++) {
    at += (size_t)sprintf(text + at, "%%TAG !a%d! b\n", i);
  }
  CHECK_STATUS(CALX_RESOURCE_EXHAUSTED,
               calx_trainer_options_from_yaml(&o, put_file(text), NULL, NULL),
               "more than 100 times %TAG");
  memset(text, '[', 1 << 19);
  text[1 << 19] = '\0';
  CHECK_STATUS(CALX_RESOURCE_EXHAUSTED,
               calx_trainer_options_from_yaml(&o, put_file(text), NULL, NULL),
               "config.yaml:1: more than 32 levels");
  memset(text, '#', (1 << 20) + 1);
  text[(1 << 20) + 1] = '\0';
  CHECK_STATUS(CALX_RESOURCE_EXHAUSTED,
               calx_trainer_options_from_yaml(&o, put_file(text), NULL, NULL),
               "bytes");
}

// A file stands where it is in the command line.
static void test_config_argument(void **state)
{
  (void)state;
  const char *path = put_file("max_epochs: 5\ndevices: 2\nlr: 0.1\n");
  char text[256];
  snprintf(text, sizeof text, "train --max_epochs=3 --config %s --devices=4",
           path);
  command c = command_of(text);
  calx_trainer_options o = { .size = sizeof o,
                             .max_epochs = 1,
                             .min_epochs = 1 };
  own_keys[0] = '\0';
  CHECK_STATUS_OK(calx_trainer_args(&o, &c.argc, c.argv, .on_key = keep_key));
  assert_int_equal(c.argc, 1);
  assert_int_equal(o.max_epochs, 5);
  assert_int_equal(o.min_epochs, 1);
  assert_int_equal(o.devices, 4);
  assert_string_equal(own_keys, "lr=0.1\n");
}

// ---- a program --------------------------------------------------------------

typedef struct program {
  int batch_size;
  double lr;
} program;

static calx_status *take_key(void *user, const char *key, const char *text)
{
  program *p = user;
  if (strcmp(key, "data.batch_size") == 0) p->batch_size = atoi(text);
  if (strcmp(key, "model.lr") == 0) p->lr = atof(text);
  return NULL;
}

// What main() of a program does.
static calx_status *program_main(int argc, char **argv, program *p,
                                 calx_trainer **out)
{
  calx_trainer_options options = CALX_TRAINER_OPTIONS(.max_epochs = 3);
  CALX_TRY(
      calx_trainer_args(&options, &argc, argv, .on_key = take_key, .user = p));
  for (int i = 1; i < argc; i++) {
    if (sscanf(argv[i], "--batch_size=%d", &p->batch_size) == 1) continue;
    return cx_invalid("'%s' is no option; see --help", argv[i]);
  }
  *out = calx_trainer_new_with(&options);
  return calx_trainer_error(*out);
}

static void test_program(void **state)
{
  (void)state;
  char text[256];
  program p = { .batch_size = 1 };
  calx_trainer *t = NULL;
  snprintf(text, sizeof text, "train --config=%s --batch_size=32 --max_steps=4",
           put_file("trainer: {max_epochs: 2}\n"
                    "model: {lr: 0.25}\ndata: {batch_size: 8}\n"));
  command c = command_of(text);
  CHECK_STATUS_OK(program_main(c.argc, c.argv, &p, &t));
  assert_int_equal(p.batch_size, 32);
  CHECK_CLOSE(p.lr, 0.25, 0);
  calx_trainer_free(t);
  c = command_of("train --batch=32");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, program_main(c.argc, c.argv, &p, &t),
               "'--batch=32' is no option");
}

#define TEXTS_TEST(function) \
  cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEXTS_TEST(test_seeds),           TEXTS_TEST(test_forms),
    TEXTS_TEST(test_switches),        TEXTS_TEST(test_limits),
    TEXTS_TEST(test_refused_lines),   TEXTS_TEST(test_error_leaves_the_rest),
    TEXTS_TEST(test_own_names),       TEXTS_TEST(test_help),
    TEXTS_TEST(test_environment),     TEXTS_TEST(test_environment_of_new),
    TEXTS_TEST(test_plain_yaml),      TEXTS_TEST(test_cli_yaml),
    TEXTS_TEST(test_refused_yaml),    TEXTS_TEST(test_hostile_yaml),
    TEXTS_TEST(test_config_argument), TEXTS_TEST(test_program),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
