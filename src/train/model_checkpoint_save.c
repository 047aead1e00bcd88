// train/model_checkpoint_save: under which name a checkpoint is saved, and
// which of the files stay.
//
// All ranks go the same way: by values that they agree on, and by the first
// rank's word about files, which it alone touches.
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "lazy/lazy.h"
#include "train/internal.h"
#include "train/model_checkpoint.h"

calx_status *cx_train_set_text(char **text, const char *value)
{
  char *copy = value != NULL ? cx_strdup(value) : NULL;
  if (copy == NULL && value != NULL) return cx_out_of_memory();
  cx_free(*text);
  *text = copy;
  return NULL;
}

// ---- names ------------------------------------------------------------------

static calx_logged_value value_of(void *user, const char *name)
{
  calx_trainer *t = user;
  const bool is_epoch = strcmp(name, "epoch") == 0;
  const bool is_count = is_epoch || strcmp(name, "step") == 0;
  if (calx_trainer_has_metric(t, name)) {
    const double value = calx_trainer_callback_metric(t, name);
    return (calx_logged_value){ name, is_count ? trunc(value) : value,
                                is_count };
  }
  const int64_t count = is_epoch ? t->position.epoch : t->position.global_step;
  return (calx_logged_value){ name, is_count ? (double)count : 0, true };
}

bool cx_train_checkpoint_knows(const calx_trainer *t, const char *name)
{
  return calx_trainer_has_metric(t, name) || strcmp(name, "epoch") == 0 ||
         strcmp(name, "step") == 0;
}

static bool is_there(const char *path)
{
  struct stat info;
  return lstat(path, &info) == 0;
}

static calx_status *put_path(calx_trainer *t, const cx_train_saver *c,
                             const char *name, int version, char **out)
{
  cx_text text = { 0 };
  cx_train_join_path(&text, c->dirpath);
  cx_text_char(&text, '/');
  calx_status *status = cx_train_put_name(
      &text, name, !c->plan->o.no_auto_insert_metric_name, value_of, t);
  if (version > 0) cx_text_format(&text, "-v%d", version);
  cx_text_append(&text, CX_TRAIN_CKPT);
  *out = cx_text_take(&text);
  if (status == NULL && *out == NULL) status = cx_out_of_memory();
  if (status == NULL) return NULL;
  cx_free(*out);
  *out = NULL;
  return status;
}

// A new name, or that of a file that may be replaced. All ranks read the values
// in it, since that may run programs.
static calx_status *choose_path(calx_trainer *t, const cx_train_saver *c,
                                const char *name, const char *replaced,
                                char **out)
{
  const bool counts =
      !c->plan->o.no_version_counter && calx_trainer_is_global_zero(t);
  calx_status *status = put_path(t, c, name, 0, out);
  for (int version = 1; status == NULL && counts && is_there(*out) &&
                        (replaced == NULL || strcmp(*out, replaced) != 0);
       version++) {
    cx_free(*out);
    status = put_path(t, c, name, version, out);
  }
  if (status == NULL) {
    status = cx_train_broadcast_text(t, "ModelCheckpoint: the file", out);
  }
  if (status == NULL) return NULL;
  cx_free(*out);
  *out = NULL;
  return status;
}

static const char *name_of(const cx_train_saver *c)
{
  const char *name = c->plan->o.filename;
  return name != NULL && *name != '\0' ? name : "{epoch}-{step}";
}

// ---- saving -----------------------------------------------------------------

static calx_status *save(calx_trainer *t, cx_train_saver *c, const char *path)
{
  const calx_trainer_save_options o = { .size = sizeof o,
                                        .weights_only =
                                            c->plan->o.save_weights_only };
  CALX_TRY(calx_trainer_save_checkpoint_with(t, path, &o));
  c->saved_step = t->position.global_step;
  return cx_train_set_text(&c->saved_path, path);
}

static calx_status *remove_old(calx_trainer *t, const cx_train_saver *c,
                               const char *old, const char *now)
{
  if (old == NULL || strcmp(old, now) == 0 || !calx_trainer_is_global_zero(t)) {
    return NULL;
  }
  return cx_train_remove_file(old, c->dirpath, t->source);
}

// A link there would lead the file to another checkpoint.
static calx_status *save_file(calx_trainer *t, cx_train_saver *c,
                              const char *path)
{
  struct stat info;
  if (calx_trainer_is_global_zero(t) && lstat(path, &info) == 0 &&
      S_ISLNK(info.st_mode) && unlink(path) != 0) {
    return cx_file_failed("replace", path);
  }
  return save(t, c, path);
}

// Its path is set first, since it is part of what is saved.
static calx_status *write_last(calx_trainer *t, cx_train_saver *c, char *path)
{
  char *previous = c->last_path;
  c->last_path = path;
  const bool links = c->plan->o.save_last == CALX_SAVE_LAST_LINK &&
                     c->saved_path != NULL && c->plan->o.save_top_k != 0;
  calx_status *status = NULL;
  if (!links) {
    status = save_file(t, c, path);
  } else if (calx_trainer_is_global_zero(t)) {
    status = cx_train_link(c->saved_path, path);
  }
  if (status == NULL) status = remove_old(t, c, previous, path);
  cx_free(previous);
  return status;
}

calx_status *cx_train_checkpoint_save_last(calx_trainer *t, cx_train_saver *c)
{
  char *path;
  if (c->plan->o.save_last == CALX_SAVE_LAST_NONE) return NULL;
  CALX_TRY(choose_path(t, c, "last", c->last_path, &path));
  return write_last(t, c, path);
}

static calx_status *write_newest(calx_trainer *t, cx_train_saver *c, char *path)
{
  char *previous = c->best_path;
  c->best_path = path;
  calx_status *status = save(t, c, path);
  if (status == NULL && c->plan->o.save_top_k == 1) {
    status = remove_old(t, c, previous, path);
  }
  cx_free(previous);
  return status;
}

static calx_status *save_newest(calx_trainer *t, cx_train_saver *c)
{
  char *path;
  CALX_TRY(choose_path(t, c, name_of(c), c->best_path, &path));
  return write_newest(t, c, path);
}

// ---- the k best -------------------------------------------------------------

static void report_saved(const calx_trainer *t, const cx_train_saver *c,
                         const char *path, int64_t k)
{
  if (!c->plan->o.verbose || !calx_trainer_is_global_zero(t)) return;
  cx_log(
      "Epoch %lld, global step %lld: '%s' reached %0.5f (best %0.5f), saving "
      "model to '%s' as top %lld",
      (long long)t->position.epoch, (long long)t->position.global_step,
      c->plan->o.monitor, c->current_score, c->best_score, path, (long long)k);
}

static void report_worse(const calx_trainer *t, const cx_train_saver *c)
{
  if (!c->plan->o.verbose || !calx_trainer_is_global_zero(t)) return;
  cx_log("Epoch %lld, global step %lld: '%s' was not in top %lld",
         (long long)t->position.epoch, (long long)t->position.global_step,
         c->plan->o.monitor, (long long)c->plan->o.save_top_k);
}

static calx_status *keep(calx_trainer *t, cx_train_saver *c, const char *path,
                         double score, double own)
{
  const int64_t k = c->top.k == -1 ? (int64_t)c->top.count + 1 : c->top.k;
  CALX_TRY(cx_train_top_k_add(&c->top, path, score, own));
  c->current_score = cx_train_top_k_score(&c->top, score);
  const cx_train_kept *best = cx_train_top_k_best(&c->top);
  c->best_score = best->score;
  CALX_TRY(cx_train_set_text(&c->best_path, best->path));
  report_saved(t, c, path, k);
  return save(t, c, path);
}

static calx_status *save_monitored(calx_trainer *t, cx_train_saver *c)
{
  const double own = value_of(t, c->plan->o.monitor).value;
  bool admits = cx_train_top_k_admits(&c->top, own);
  double score = own;
  CALX_TRY(cx_train_agree(t, "ModelCheckpoint: the value", &admits, &score));
  if (!admits) {
    report_worse(t, c);
    return NULL;
  }
  char *path = NULL, *worst = cx_train_top_k_pop(&c->top);
  calx_status *status = choose_path(t, c, name_of(c), worst, &path);
  if (status == NULL) status = keep(t, c, path, score, own);
  if (status == NULL) status = remove_old(t, c, worst, path);
  cx_free(worst);
  cx_free(path);
  return status;
}

static calx_status *report_missing(const calx_trainer *t, cx_train_saver *c)
{
  const char *monitor = c->plan->o.monitor;
  char *names = cx_train_metric_names(t, '\'');
  const char *comma = names != NULL && *names != '\0' ? ", " : "";
  calx_status *status = cx_error(
      CALX_NOT_FOUND,
      "`ModelCheckpoint(monitor='%s')` could not find the monitored key in the "
      "returned metrics: [%s%s'epoch', 'step']. HINT: Did you call `log('%s', "
      "value)` in the `LightningModule`?",
      monitor, names != NULL ? names : "", comma, monitor);
  calx_string_free(names);
  if (t->has_validated) return status;
  if (!c->has_warned && calx_trainer_is_global_zero(t)) {
    cx_log("%s", cx_status_sentence(status));
  }
  c->has_warned = true;
  calx_status_free(status);
  report_worse(t, c);
  return NULL;
}

calx_status *cx_train_checkpoint_save_top_k(calx_trainer *t, cx_train_saver *c)
{
  const calx_model_checkpoint_options *o = &c->plan->o;
  if (o->save_top_k == 0) return NULL;
  if (o->monitor == NULL) return save_newest(t, c);
  if (cx_train_checkpoint_knows(t, o->monitor)) return save_monitored(t, c);
  return report_missing(t, c);
}

calx_status *cx_train_checkpoint_save_now(calx_trainer *t, cx_train_saver *c)
{
  char *path;
  CALX_TRY(put_path(t, c, name_of(c), 0, &path));
  calx_status *status = save(t, c, path);
  if (status == NULL && calx_trainer_is_global_zero(t)) {
    cx_log("An %s was raised with message: %s, saved checkpoint to %s",
           calx_code_name(calx_status_code(t->exception)),
           calx_status_message(t->exception), path);
  }
  cx_free(path);
  return status != NULL ? status : cx_train_checkpoint_save_last(t, c);
}
