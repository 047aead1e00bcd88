// train/return_state: what a run leaves when its ranks are processes that
// calx_launch() started. The first rank writes it to a file of this user's, and
// the process that called the trainer reads it when all have ended.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "io/value.h"
#include "launcher/spawn.h"
#include "lazy/lazy.h"
#include "train/internal.h"
#include "world/world.h"

calx_status *cx_train_return_begin(cx_train_job *job)
{
  cx_world_info info;
  int processes;
  bool spawns = false;
  CALX_TRY(cx_world_find(&info));
  if (info.launcher != CX_WORLD_LAUNCHER_NONE) return NULL;
  CALX_TRY(cx_launcher_processes(0, &processes));
  CALX_TRY(cx_launcher_is_wanted(processes, &spawns));
  if (!spawns) return NULL;
  const char *folder = getenv("TMPDIR");
  cx_text path = { 0 };
  cx_text_format(&path, "%s/calx-left-XXXXXX",
                 folder != NULL && *folder != '\0' ? folder : "/tmp");
  job->return_path = cx_text_take(&path);
  if (job->return_path == NULL) return cx_out_of_memory();
  const int fd = mkstemp(job->return_path);
  if (fd >= 0) {
    close(fd);
    return NULL;
  }
  calx_status *status = cx_file_failed("make", job->return_path);
  calx_string_free(job->return_path);
  job->return_path = NULL;
  return status;
}

// ---- writing ----------------------------------------------------------------

static calx_status *put_position(const cx_train_position *p, calx_value *left)
{
  calx_value *list = calx_value_container(CALX_KIND_LIST);
  CALX_TRY(calx_value_set(left, "position", list));
  const int64_t numbers[] = { p->epoch, p->global_step, p->batches_seen,
                              p->batches_stepped };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    CALX_TRY(calx_value_append(list, calx_value_int(numbers[i])));
  }
  return NULL;
}

static calx_status *put_metrics(const calx_trainer *t, calx_value *left)
{
  calx_value *dict = calx_value_container(CALX_KIND_DICT);
  CALX_TRY(calx_value_set(left, "metrics", dict));
  for (size_t i = 0; i < t->n_metrics; i++) {
    CALX_TRY(calx_value_set(dict, t->metrics[i].name,
                            calx_value_float(t->metrics[i].value)));
  }
  return NULL;
}

static calx_status *put_all(const calx_trainer *t, const cx_train_job *job,
                            calx_value *left)
{
  CALX_TRY(put_position(&t->position, left));
  CALX_TRY(put_metrics(t, left));
  if (t->checkpoint != NULL) {
    CALX_TRY(cx_io_lend(left, "checkpoint", t->checkpoint));
  }
  if (job->predictions == NULL) return NULL;
  return cx_io_lend(left, "predictions", job->predictions);
}

calx_status *cx_train_return_write(const calx_trainer *t, cx_train_job *job)
{
  if (job->return_path == NULL || !calx_trainer_is_global_zero(t)) return NULL;
  calx_value *left = calx_value_container(CALX_KIND_DICT);
  if (left == NULL) return cx_out_of_memory();
  calx_status *status = put_all(t, job, left);
  if (status == NULL) {
    status = calx_save(left, job->return_path, .format = CALX_FORMAT_PT);
  }
  cx_io_take_back(left, t->checkpoint);
  cx_io_take_back(left, job->predictions);
  calx_value_free(left);
  return status;
}

// ---- reading ----------------------------------------------------------------

static calx_status *take_metrics(calx_trainer *t, const calx_value *metrics)
{
  for (size_t i = 0; i < calx_value_count(metrics); i++) {
    CALX_TRY(
        cx_train_set_metric(t, calx_value_key(metrics, i), NULL,
                            calx_value_as_float(calx_value_item(metrics, i))));
  }
  return NULL;
}

static int64_t number_at(const calx_value *list, size_t i)
{
  return calx_value_as_int(calx_value_item(list, i));
}

static calx_value *take_item(calx_value *left, const char *name)
{
  calx_value *item = calx_value_get(left, name);
  cx_io_take_back(left, item);
  return item;
}

static calx_status *read_back(cx_train_job *job)
{
  calx_value *left;
  calx_trainer *t = &job->left;
  calx_load_options o = { .size = sizeof o, .format = CALX_FORMAT_PT };
  CALX_TRY(calx_load_with(job->return_path, &o, &left));
  const calx_value *p = calx_value_get(left, "position");
  t->position = (cx_train_position){ .epoch = number_at(p, 0),
                                     .global_step = number_at(p, 1),
                                     .batches_seen = number_at(p, 2),
                                     .batches_stepped = number_at(p, 3) };
  calx_status *status = take_metrics(t, calx_value_get(left, "metrics"));
  t->checkpoint = take_item(left, "checkpoint");
  job->predictions = take_item(left, "predictions");
  job->has_left = true;
  calx_value_free(left);
  return status;
}

calx_status *cx_train_return_end(cx_train_job *job, calx_status *status)
{
  if (job->return_path == NULL) return status;
  if (status == NULL) status = read_back(job);
  unlink(job->return_path);
  calx_string_free(job->return_path);
  job->return_path = NULL;
  return status;
}
