// train/model_checkpoint_options: makes a ModelCheckpoint from its options.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "train/internal.h"
#include "train/model_checkpoint.h"

typedef calx_model_checkpoint_options checkpoint_options;

// ---- what is refused --------------------------------------------------------

static calx_status *check_counts(const checkpoint_options *o)
{
  if (o->save_top_k < -1) {
    return cx_invalid("Invalid value for save_top_k=%lld. Must be >= -1",
                      (long long)o->save_top_k);
  }
  if (o->every_n_train_steps < 0) {
    return cx_invalid(
        "Invalid value for every_n_train_steps=%lld. Must be >= 0",
        (long long)o->every_n_train_steps);
  }
  if (o->every_n_epochs >= 0) return NULL;
  return cx_invalid("Invalid value for every_n_epochs=%lld. Must be >= 0",
                    (long long)o->every_n_epochs);
}

static calx_status *check_triggers(const checkpoint_options *o)
{
  const char *interval = o->train_time_interval;
  const int triggers = (o->every_n_train_steps >= 1) +
                       (o->every_n_epochs >= 1) + (interval != NULL);
  if (triggers <= 1) return NULL;
  return cx_invalid(
      "Combination of parameters every_n_train_steps=%lld, every_n_epochs=%lld "
      "and train_time_interval=%s should be mutually exclusive.",
      (long long)o->every_n_train_steps, (long long)o->every_n_epochs,
      interval != NULL ? interval : "None");
}

static calx_status *check(const checkpoint_options *o)
{
  if (strcmp(o->mode, "min") != 0 && strcmp(o->mode, "max") != 0) {
    return cx_invalid("`mode` can be min, max but got %s", o->mode);
  }
  if ((int)o->save_last < 0 || o->save_last > CALX_SAVE_LAST_LINK) {
    return cx_invalid("model_checkpoint: save_last is %d: it can be %d to %d",
                      (int)o->save_last, CALX_SAVE_LAST_NONE,
                      CALX_SAVE_LAST_LINK);
  }
  CALX_TRY(check_counts(o));
  CALX_TRY(check_triggers(o));
  if (o->monitor == NULL && o->save_top_k > 1) {
    return cx_invalid(
        "ModelCheckpoint(save_top_k=%lld, monitor=None) is not a valid "
        "configuration. No quantity for top_k to track.",
        (long long)o->save_top_k);
  }
  return o->filename != NULL ? cx_train_check_name(o->filename) : NULL;
}

// ---- defaults ---------------------------------------------------------------

// What calx_model_checkpoint() made of a 0 that was written.
static int64_t written(int64_t given)
{
  return given == INT64_MIN ? 0 : given;
}

// Nothing written is each epoch; a 0 that is written is never.
static void take_triggers(checkpoint_options *o)
{
  if (o->every_n_train_steps == 0 && o->every_n_epochs == 0 &&
      o->train_time_interval == NULL) {
    o->every_n_epochs = 1;
  }
  o->every_n_train_steps = written(o->every_n_train_steps);
  o->every_n_epochs = written(o->every_n_epochs);
}

static calx_status *copy(const char **text)
{
  if (*text == NULL) return NULL;
  *text = cx_strdup(*text);
  return *text != NULL ? NULL : cx_out_of_memory();
}

// Texts become the plan's own.
static calx_status *take_texts(checkpoint_options *o)
{
  if (o->mode == NULL) o->mode = "min";
  const char **texts[] = { &o->dirpath, &o->filename, &o->monitor, &o->mode,
                           &o->train_time_interval };
  calx_status *status = NULL;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    calx_status *failed = copy(texts[i]);
    status = cx_status_first(status, failed);
  }
  return status;
}

static void free_plan(void *user)
{
  cx_train_checkpoint_plan *plan = user;
  const checkpoint_options *o = &plan->o;
  const char *texts[] = { o->dirpath, o->filename, o->monitor, o->mode,
                          o->train_time_interval };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    cx_free((char *)texts[i]);
  }
  cx_free(plan);
}

static calx_status *expand_home(checkpoint_options *o)
{
  char *whole = NULL;
  if (o->dirpath == NULL) return NULL;
  CALX_TRY(cx_train_expand_home(o->dirpath, &whole));
  cx_free((char *)o->dirpath);
  o->dirpath = whole;
  return NULL;
}

static calx_status *take(const checkpoint_options *given,
                         cx_train_checkpoint_plan *plan)
{
  checkpoint_options *o = &plan->o;
  calx_status *status =
      cx_options_take("model_checkpoint", given, o, sizeof *o);
  if (status != NULL) {
    *o = (checkpoint_options){ .size = 0 };
    return status;
  }
  CALX_TRY(take_texts(o));
  CALX_TRY(expand_home(o));
  o->save_top_k = o->save_top_k == 0 ? 1 : written(o->save_top_k);
  plan->on_epoch_end = o->save_on_train_epoch_end == 0           ? -1
                       : o->save_on_train_epoch_end == INT32_MIN ? 0
                                                                 : 1;
  take_triggers(o);
  CALX_TRY(cx_train_parse_time("train_time_interval", o->train_time_interval,
                               &plan->seconds));
  return check(o);
}

// ---- the state's key --------------------------------------------------------

// datetime.timedelta(days=1, seconds=60)
static void put_interval(cx_text *out, const cx_train_checkpoint_plan *plan)
{
  const int64_t day = 24 * 3600, all = (int64_t)plan->seconds;
  if (plan->o.train_time_interval == NULL) {
    cx_text_append(out, "None");
    return;
  }
  cx_text_append(out, "datetime.timedelta(");
  if (all >= day) cx_text_format(out, "days=%lld", (long long)(all / day));
  if (all >= day && all % day != 0) cx_text_append(out, ", ");
  if (all % day != 0) {
    cx_text_format(out, "seconds=%lld", (long long)(all % day));
  }
  cx_text_append(out, all == 0 ? "0)" : ")");
}

static char *state_key(const cx_train_checkpoint_plan *plan)
{
  const checkpoint_options *o = &plan->o;
  cx_text key = { 0 };
  cx_text_append(&key, "ModelCheckpoint{'monitor': ");
  cx_train_put_quoted(&key, o->monitor);
  cx_text_append(&key, ", 'mode': ");
  cx_train_put_quoted(&key, o->mode);
  cx_text_format(&key, ", 'every_n_train_steps': %lld, 'every_n_epochs': %lld",
                 (long long)o->every_n_train_steps,
                 (long long)o->every_n_epochs);
  cx_text_append(&key, ", 'train_time_interval': ");
  put_interval(&key, plan);
  cx_text_char(&key, '}');
  return cx_text_take(&key);
}

// ---- the callback -----------------------------------------------------------

static void begin(void *self, void *user)
{
  cx_train_saver *c = self;
  c->plan = user;
  c->top.k = c->plan->o.save_top_k;
  c->top.sign = strcmp(c->plan->o.mode, "max") == 0 ? -1 : 1;
  c->best_score = c->current_score = c->checked = (double)NAN;
}

static void end(void *self)
{
  cx_train_saver *c = self;
  cx_train_top_k_clear(&c->top);
  cx_free(c->dirpath);
  cx_free(c->best_path);
  cx_free(c->last_path);
  cx_free(c->saved_path);
}

calx_callback *calx_model_checkpoint_with(
    const calx_model_checkpoint_options *options)
{
  cx_train_checkpoint_plan *plan = cx_calloc(1, sizeof *plan);
  calx_status *status = plan != NULL ? take(options, plan) : cx_out_of_memory();
  char *key = status == NULL ? state_key(plan) : NULL;
  if (status == NULL && key == NULL) status = cx_out_of_memory();
  calx_callback *c =
      calx_callback_new(.self_size = sizeof(cx_train_saver), .user = plan,
                        .begin = begin, .end = end,
                        .state_key = key != NULL ? key : "",
                        .state_dict = cx_train_checkpoint_put_state,
                        .load_state_dict = cx_train_checkpoint_take_state,
                        .hooks = cx_train_checkpoint_hooks);
  cx_free(key);
  return cx_train_callback_finish(c, "ModelCheckpoint",
                                  CX_TRAIN_CALLBACK_CHECKPOINT, status, plan,
                                  free_plan);
}
