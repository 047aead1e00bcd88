// train/model_checkpoint_state: what a checkpoint keeps of a ModelCheckpoint,
// as Lightning's own keeps it, and what a program may ask of one.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "lazy/lazy.h"
#include "train/internal.h"
#include "train/model_checkpoint.h"

static const char *or_empty(const char *text)
{
  return text != NULL ? text : "";
}

// The k-th best, which the next one has to be better than; NULL: there are less
// than k.
static const cx_train_kept *kth(const cx_train_saver *c)
{
  const cx_train_top_k *top = &c->top;
  const bool is_full = top->k == -1
                           ? top->count > 0
                           : top->k > 0 && top->count >= (size_t)top->k;
  return is_full ? cx_train_top_k_worst(top) : NULL;
}

static double kth_value(const cx_train_saver *c)
{
  const cx_train_kept *item = kth(c);
  return item != NULL ? item->score : c->top.sign * (double)INFINITY;
}

// ---- saving -----------------------------------------------------------------

static calx_value *text_or_none(const char *text)
{
  return text != NULL ? calx_value_string(text) : calx_value_none();
}

static calx_value *score_or_none(double score)
{
  return isnan(score) ? calx_value_none() : cx_train_put_scalar(score);
}

static calx_status *put_models(const cx_train_saver *c, calx_value *state)
{
  calx_value *models = calx_value_container(CALX_KIND_DICT);
  CALX_TRY(calx_value_set(state, "best_k_models", models));
  for (size_t i = 0; i < c->top.count; i++) {
    const cx_train_kept *item = &c->top.items[i];
    CALX_TRY(
        calx_value_set(models, item->path, cx_train_put_scalar(item->score)));
  }
  return NULL;
}

static calx_status *put_state(const cx_train_saver *c, calx_value *s)
{
  const cx_train_kept *worst = kth(c);
  CALX_TRY(calx_value_set(s, "monitor", text_or_none(c->plan->o.monitor)));
  CALX_TRY(calx_value_set(s, "best_model_score", score_or_none(c->best_score)));
  CALX_TRY(calx_value_set(s, "best_model_path",
                          calx_value_string(or_empty(c->best_path))));
  CALX_TRY(calx_value_set(s, "current_score", score_or_none(c->current_score)));
  CALX_TRY(calx_value_set(s, "dirpath", text_or_none(c->dirpath)));
  CALX_TRY(put_models(c, s));
  CALX_TRY(calx_value_set(s, "kth_best_model_path",
                          calx_value_string(worst != NULL ? worst->path : "")));
  CALX_TRY(calx_value_set(s, "kth_value", cx_train_put_scalar(kth_value(c))));
  return calx_value_set(s, "last_model_path",
                        calx_value_string(or_empty(c->last_path)));
}

void cx_train_checkpoint_put_state(calx_trainer *t, void *self,
                                   calx_value *state)
{
  (void)t;
  cx_lazy_scope_pin(put_state(self, state));
}

// ---- loading ----------------------------------------------------------------

static calx_status *take_text(char **text, const calx_value *value)
{
  const char *given = calx_value_as_string(value);
  return cx_train_set_text(text,
                           given != NULL && *given != '\0' ? given : NULL);
}

static calx_status *take_models(cx_train_saver *c, const calx_value *models)
{
  cx_train_top_k_clear(&c->top);
  for (size_t i = 0; i < calx_value_count(models); i++) {
    const char *path = calx_value_key(models, i);
    const double score = cx_train_take_scalar(calx_value_item(models, i));
    if (path == NULL) continue;
    CALX_TRY(cx_train_top_k_add(&c->top, path, score, score));
  }
  return NULL;
}

static void report_moved(const calx_trainer *t, const char *from,
                         const char *to)
{
  if (!calx_trainer_is_global_zero(t)) return;
  cx_text text = { 0 };
  cx_text_append(&text, "The dirpath has changed from ");
  cx_train_put_quoted(&text, from);
  cx_text_append(&text, " to ");
  cx_train_put_quoted(&text, to);
  cx_log(
      "%s, therefore `best_model_score`, `kth_best_model_path`, `kth_value`, "
      "`last_model_path` and `best_k_models` won't be reloaded. Only "
      "`best_model_path` will be reloaded.",
      cx_text_str(&text));
  cx_text_free(&text);
}

static calx_status *take_state(const calx_trainer *t, cx_train_saver *c,
                               const calx_value *s)
{
  const char *from = calx_value_as_string(calx_value_get(s, "dirpath"));
  if (from == NULL || strcmp(from, c->dirpath) != 0) {
    report_moved(t, from, c->dirpath);
    return take_text(&c->best_path, calx_value_get(s, "best_model_path"));
  }
  c->best_score = cx_train_take_scalar(calx_value_get(s, "best_model_score"));
  CALX_TRY(take_models(c, calx_value_get(s, "best_k_models")));
  CALX_TRY(take_text(&c->last_path, calx_value_get(s, "last_model_path")));
  return take_text(&c->best_path, calx_value_get(s, "best_model_path"));
}

void cx_train_checkpoint_take_state(calx_trainer *t, void *self,
                                    const calx_value *state)
{
  cx_lazy_scope_pin(take_state(t, self, state));
}

// ---- asking -----------------------------------------------------------------

const cx_train_saver *cx_train_saver_of(const calx_callback *callback,
                                        const void *self)
{
  const bool is_one = callback != NULL && callback->name != NULL &&
                      strcmp(callback->name, "ModelCheckpoint") == 0;
  return is_one ? self : NULL;
}

static const cx_train_saver *state_of(const calx_callback *callback)
{
  return cx_train_saver_of(callback, calx_callback_self(callback));
}

const char *calx_model_checkpoint_best_model_path(const calx_callback *cb)
{
  const cx_train_saver *c = state_of(cb);
  return c != NULL ? or_empty(c->best_path) : "";
}

double calx_model_checkpoint_best_model_score(const calx_callback *cb)
{
  const cx_train_saver *c = state_of(cb);
  return c != NULL ? c->best_score : (double)NAN;
}

const char *calx_model_checkpoint_kth_best_model_path(const calx_callback *cb)
{
  const cx_train_saver *c = state_of(cb);
  const cx_train_kept *item = c != NULL ? kth(c) : NULL;
  return item != NULL ? item->path : "";
}

double calx_model_checkpoint_kth_value(const calx_callback *cb)
{
  const cx_train_saver *c = state_of(cb);
  return c != NULL ? kth_value(c) : (double)NAN;
}

const char *calx_model_checkpoint_best_k_model(const calx_callback *cb,
                                               size_t i, double *out_score)
{
  const cx_train_saver *c = state_of(cb);
  if (c == NULL || i >= c->top.count) return NULL;
  if (out_score != NULL) *out_score = c->top.items[i].score;
  return c->top.items[i].path;
}

const char *calx_model_checkpoint_last_model_path(const calx_callback *cb)
{
  const cx_train_saver *c = state_of(cb);
  return c != NULL ? or_empty(c->last_path) : "";
}

calx_callback *calx_trainer_checkpoint_callback(const calx_trainer *t)
{
  for (size_t i = 0; t != NULL && i < t->n_callbacks; i++) {
    const char *name = t->callbacks[i]->name;
    if (strcmp(name, "ModelCheckpoint") == 0) return t->callbacks[i];
  }
  return NULL;
}
