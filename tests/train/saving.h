// saving: a fit of which each epoch has a given value, and the folder that it
// saves into.
#ifndef CX_TESTS_TRAIN_SAVING_H
#define CX_TESTS_TRAIN_SAVING_H

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "boring.h"
#include "train/internal.h"

typedef struct saving {
  const double *values;  // "loss" of each epoch; NULL: nothing is logged
  size_t n_values;
  double by_rank;      // what a rank's has more than that of the one before
  bool logs_training;  // at the end of training's epochs, without validation
  int64_t batches;
  const char *folder;  // which is listed
  char history[2048];  // its files, before each epoch and at the end
  const char *ckpt_path;
} saving;

#define VALUES(...)                          \
  .values = (const double[]){ __VA_ARGS__ }, \
  .n_values = sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double)

// ---- folders ----------------------------------------------------------------

static char saving_root[256];

// A path in a new folder for each test; one of eight.
static inline const char *saving_path(const char *name)
{
  static char paths[8][1024];
  static int next;
  char *path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s%s%s", saving_root, *name ? "/" : "",
           name);
  return path;
}

static inline int saving_by_name(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

// "a.ckpt b.ckpt"; "": the folder is empty, "-": there is none.
static inline const char *saving_list(const char *folder)
{
  static char text[2048];
  char *names[128];
  size_t n = 0;
  DIR *dir = opendir(folder);
  if (dir == NULL) return "-";
  for (struct dirent *e; (e = readdir(dir)) != NULL && n < 128;) {
    if (e->d_name[0] != '.') names[n++] = strdup(e->d_name);
  }
  closedir(dir);
  qsort(names, n, sizeof *names, saving_by_name);
  text[0] = '\0';
  for (size_t i = 0; i < n; i++) {
    const size_t at = strlen(text);
    snprintf(text + at, sizeof text - at, "%s%s", i > 0 ? " " : "", names[i]);
    free(names[i]);
  }
  return text;
}

#define CHECK_FILES(folder, names) \
  assert_string_equal(saving_list(saving_path(folder)), names)

// ---- what is in a file
// -------------------------------------------------------

enum { WEIGHTS = 2 * BORING_FEATURES };

static inline const float *saving_weights_in(const calx_value *state_dict)
{
  return calx_host_data(
      calx_value_as_tensor(calx_value_get(state_dict, "layer.weight")));
}

static inline calx_value *saving_load(const char *name)
{
  calx_value *value;
  CHECK_STATUS_OK(calx_load(saving_path(name), &value));
  return value;
}

static inline bool saving_has(const calx_value *checkpoint, const char *key)
{
  return calx_value_get(checkpoint, key) != NULL;
}

// ---- lines ------------------------------------------------------------------

static char saving_lines[16384];

static inline void saving_line(void *user, const char *line)
{
  (void)user;
  const size_t at = strlen(saving_lines);
  snprintf(saving_lines + at, sizeof saving_lines - at, "%s\n", line);
}

#define CHECK_LINE(text) saving_check_line(text, __FILE__, __LINE__)
static inline void saving_check_line(const char *text, const char *file,
                                     int line)
{
  if (strstr(saving_lines, text) != NULL) return;
  print_error("'%s' is not in\n%s", text, saving_lines);
  _fail(file, line);
}

static inline int saving_begin(void **state)
{
  (void)state;
  const char *tmp = getenv("TMPDIR");
  snprintf(saving_root, sizeof saving_root, "%s/calx_saving_XXXXXX",
           tmp != NULL ? tmp : "/tmp");
  if (mkdtemp(saving_root) == NULL) return 1;
  // Messages have paths without links.
  char *real = realpath(saving_root, NULL);
  snprintf(saving_root, sizeof saving_root, "%s", real);
  free(real);
  saving_lines[0] = '\0';
  calx_log_set(saving_line, NULL);
  return 0;
}

static inline int saving_end(void **state)
{
  char command[512];
  calx_log_set(NULL, NULL);
  snprintf(command, sizeof command, "rm -r '%s'", saving_root);
  if (system(command) != 0) return 1;
  return support_nothing_left(state);
}

#define SAVING_TEST(function) \
  cmocka_unit_test_setup_teardown(function, saving_begin, saving_end)

// ---- the fit ----------------------------------------------------------------

static inline void saving_note(calx_trainer *t, void *self)
{
  (void)self;
  saving *s = calx_trainer_user(t);
  if (s->folder == NULL || !calx_trainer_is_global_zero(t)) return;
  const size_t at = strlen(s->history);
  snprintf(s->history + at, sizeof s->history - at, "%s|",
           saving_list(s->folder));
}

static inline void saving_log(calx_trainer *t)
{
  const saving *s = calx_trainer_user(t);
  const size_t epoch = (size_t)calx_trainer_current_epoch(t);
  if (s->n_values == 0) return;
  calx_trainer_log_number(t, "loss",
                          s->values[epoch < s->n_values ? epoch : 0] +
                              s->by_rank * calx_global_ordinal());
}

static inline void saving_log_validation(calx_trainer *t, void *self)
{
  (void)self;
  if (!t->sanity_checking) saving_log(t);
}

static inline void saving_log_training(calx_trainer *t, void *self)
{
  (void)self;
  const saving *s = calx_trainer_user(t);
  if (s->logs_training) saving_log(t);
}

static inline calx_lightning_module saving_module(saving *s)
{
  const calx_lightning_module module = CALX_LIGHTNING_MODULE(
          .self_size = sizeof(boring), .user = s,
          .configure_model = boring_model,
          .configure_optimizers = boring_optimizers,
          .training_step = boring_step, .validation_step = boring_step,
          .test_step = boring_step,
          .hooks = { .on_train_epoch_start = saving_note,
                     .on_train_epoch_end = saving_log_training,
                     .on_validation_epoch_end = saving_log_validation,
                     .on_fit_end = saving_note });
  return module;
}

// Each rank takes so many batches.
static inline calx_status *saving_fit(calx_trainer *t, saving *s)
{
  const calx_lightning_module module = saving_module(s);
  const int64_t batches = s->batches > 0 ? s->batches : 1;
  const int devices = t->config.devices > 0 ? t->config.devices : 1;
  calx_dataset *data = boring_dataset(batches * devices);
  calx_loader *loader = calx_loader_new(data);
  calx_status *status =
      calx_trainer_fit(t, &module, .train_dataloader = loader,
                       .val_dataloader = s->logs_training ? NULL : loader,
                       .ckpt_path = s->ckpt_path);
  calx_loader_free(loader);
  calx_dataset_free(data);
  return status;
}

#define SAVING_TRAINER(callback, ...)                                      \
  calx_trainer_new(.devices = 1, .no_progress_bar = true,                  \
                   .no_model_summary = true, .num_sanity_val_steps = 0,    \
                   .default_root_dir = saving_path(""), .no_logger = true, \
                   .callbacks = &(callback), .n_callbacks = 1, __VA_ARGS__)

#endif
