// The trainer's options from a YAML file, and a program that takes them from
// everywhere.
#include "texts.h"

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

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEXTS_TEST(test_plain_yaml),      TEXTS_TEST(test_cli_yaml),
    TEXTS_TEST(test_refused_yaml),    TEXTS_TEST(test_hostile_yaml),
    TEXTS_TEST(test_config_argument), TEXTS_TEST(test_program),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
