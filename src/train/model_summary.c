// train/model_summary: the callbacks that print the table of a model's modules
// when a fit begins.
#include <stdio.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/options.h"
#include "debug/screen.h"
#include "lazy/lazy.h"
#include "train/internal.h"
#include "train/summary.h"

// Of a rank.
typedef struct model_summary {
  const calx_model_summary_options *o;  // the callback's
} model_summary;

static void begin(void *self, void *user)
{
  ((model_summary *)self)->o = user;
}

// In mixed precision parameters are f32.
static calx_status *summarize(calx_trainer *t, const model_summary *m,
                              cx_train_summary *out)
{
  const calx_dtype dtype = t->config.dtype;
  const int bytes =
      dtype == CALX_DTYPE_DEFAULT ? 4 : (int)calx_dtype_size(dtype);
  return cx_train_summarize(t->model, m->o, bytes, out);
}

static bool prints(const calx_trainer *t, const model_summary *m)
{
  return m->o->max_depth != 0 && calx_trainer_is_global_zero(t);
}

static void print_plain(calx_trainer *t, void *self)
{
  cx_train_summary s;
  cx_text out = { 0 };
  if (!prints(t, self)) return;
  calx_status *status = summarize(t, self, &s);
  if (status == NULL) {
    cx_train_summary_plain(&s, &out);
    fprintf(stderr, "\n%s\n", cx_text_str(&out));
    cx_text_free(&out);
    cx_train_summary_free(&s);
  }
  cx_lazy_scope_pin(status);
}

static void print_rich(calx_trainer *t, void *self)
{
  cx_train_summary s;
  cx_text out = { 0 };
  if (!prints(t, self)) return;
  calx_status *status = summarize(t, self, &s);
  if (status == NULL) {
    cx_train_summary_rich(&s, cx_debug_has_utf8(), cx_debug_is_terminal(stdout),
                          &out);
    printf("%s\n", cx_text_str(&out));
    fflush(stdout);
    cx_text_free(&out);
    cx_train_summary_free(&s);
  }
  cx_lazy_scope_pin(status);
}

// ---- the callbacks ----------------------------------------------------------

static calx_status *take(const char *what,
                         const calx_model_summary_options *given,
                         calx_model_summary_options *o)
{
  CALX_TRY(cx_options_take(what, given, o, sizeof *o));
  o->max_depth = o->max_depth == INT32_MIN ? 0
                 : o->max_depth == 0       ? 1
                                           : o->max_depth;
  if (o->max_depth >= -1) return NULL;
  return cx_invalid("`max_depth` can be -1, 0 or > 0, got %d.", o->max_depth);
}

static calx_callback *make(const char *what, const char *name,
                           const calx_model_summary_options *options,
                           calx_trainer_hook_fn *on_fit_start)
{
  calx_model_summary_options *o = cx_calloc(1, sizeof *o);
  calx_status *status = o != NULL ? take(what, options, o) : cx_out_of_memory();
  calx_callback *c =
      calx_callback_new(.self_size = sizeof(model_summary), .user = o,
                        .begin = begin, .hooks.on_fit_start = on_fit_start);
  return cx_train_callback_finish(c, name, CX_TRAIN_CALLBACK_SUMMARY, status, o,
                                  cx_free);
}

calx_callback *calx_model_summary_with(
    const calx_model_summary_options *options)
{
  return make("model_summary", "ModelSummary", options, print_plain);
}

calx_callback *calx_rich_model_summary_with(
    const calx_model_summary_options *options)
{
  return make("rich_model_summary", "RichModelSummary", options, print_rich);
}
