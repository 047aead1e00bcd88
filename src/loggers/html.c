// loggers/html: report.html, the page of a run. Values wait in memory; each
// save writes the whole page anew.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/options.h"
#include "base/text.h"
#include "base/thread.h"
#include "loggers/html_page.h"
#include "loggers/logger.h"
#include "profiler/profiler.h"

#define FILE_NAME "report.html"
enum { MOST_NOTES = 64, MOST_NOTE = 1 << 18 };  // texts, bytes of one

typedef struct html {
  cx_loggers_run run;
  char *title;  // NULL: NAME/version_N
  cx_loggers_curves curves;
  cx_loggers_note *notes;
  size_t n_notes, notes_capacity;
  cx_loggers_devices devices;
  time_t began;
  int64_t began_ns, ended_ns;  // ended_ns: 0 while it goes on
  char *state;                 // of calx_logger_finalize(); NULL: it goes on
  bool watches;
} html;

static void goes_on(html *l)
{
  cx_free(l->state);
  l->state = NULL;
}

static calx_status *begin(html *l)
{
  bool first;
  cx_loggers_devices_find(&l->devices);
  return cx_loggers_run_begin(&l->run, NULL, &first);
}

// ---- the page ---------------------------------------------------------------

// The last parts of the folder's path: NAME/version_N.
static const char *title_of(const html *l)
{
  const char *path = l->run.folder.path;
  if (l->title != NULL) return l->title;
  const size_t head = strlen(l->run.folder.save_dir);
  return strlen(path) > head ? path + head + (path[head] == '/') : path;
}

static calx_status *write_page(html *l)
{
  cx_text text = { 0 };
  const int64_t end = l->state != NULL ? l->ended_ns : cx_now_ns();
  const cx_loggers_page page = { .title = title_of(l),
                                 .state = l->state,
                                 .began = l->began,
                                 .seconds = (double)(end - l->began_ns) / 1e9,
                                 .curves = &l->curves,
                                 .hyperparameters = &l->run.hyperparameters,
                                 .notes = l->notes,
                                 .n_notes = l->n_notes,
                                 .devices = &l->devices };
  char *path = cx_loggers_folder_file(&l->run.folder, FILE_NAME);
  calx_status *status = cx_loggers_put_page(&text, &page);
  if (status == NULL) status = cx_file_write_text(path, &text);
  cx_free(path);
  cx_text_free(&text);
  return status;
}

// ---- the functions ----------------------------------------------------------

static calx_status *log_metrics(void *user, const calx_logged_value *values,
                                size_t count, int64_t step)
{
  html *l = user;
  CALX_TRY(begin(l));
  goes_on(l);
  return cx_loggers_curves_add(&l->curves, l->run.prefix, values, count, step);
}

static calx_status *log_hyperparams(void *user,
                                    const calx_hyperparameter *values,
                                    size_t count)
{
  html *l = user;
  CALX_TRY(begin(l));
  return cx_loggers_run_hyperparameters(&l->run, values, count);
}

// The note of a name, or a new one. NULL: there are enough of them, or an
// error.
static calx_status *note_of(html *l, const char *name, cx_loggers_note **out)
{
  *out = NULL;
  for (size_t i = 0; i < l->n_notes && *out == NULL; i++) {
    if (strcmp(l->notes[i].name, name) == 0) *out = &l->notes[i];
  }
  if (*out != NULL) return NULL;
  if (l->n_notes == MOST_NOTES) {
    cx_log_once_per_site("notes",
                         "calx_html_logger: the text '%s' is left out, and so "
                         "are further ones: the report has %d",
                         name, MOST_NOTES);
    return NULL;
  }
  char *copy = cx_strdup(name);
  if (copy == NULL || !cx_grow(&l->notes, &l->notes_capacity, l->n_notes + 1,
                               sizeof *l->notes)) {
    cx_free(copy);
    return cx_out_of_memory();
  }
  *out = &l->notes[l->n_notes++];
  **out = (cx_loggers_note){ .name = copy };
  return NULL;
}

// A long text is cut, and ends in how much of it is missing.
static char *copy_text(const char *text)
{
  cx_text copy = { 0 };
  const size_t size = strlen(text);
  size_t kept = size < MOST_NOTE ? size : MOST_NOTE;
  while (kept > 0 && ((unsigned char)text[kept] & 0xc0) == 0x80) kept--;
  cx_text_append_n(&copy, text, kept);
  if (kept < size) {
    cx_text_format(&copy, "\n… and %zu bytes more", size - kept);
  }
  char *out = cx_text_take(&copy);
  cx_text_free(&copy);
  return out;
}

static calx_status *log_text(void *user, const char *name, const char *text,
                             int64_t step)
{
  html *l = user;
  cx_loggers_note *note;
  (void)step;
  CALX_TRY(begin(l));
  char *copy = copy_text(text);
  if (copy == NULL) return cx_out_of_memory();
  calx_status *status = note_of(l, name, &note);
  if (note == NULL) {
    cx_free(copy);
    return status;
  }
  cx_free(note->text);
  note->text = copy;
  return NULL;
}

static calx_status *save(void *user)
{
  html *l = user;
  CALX_TRY(begin(l));
  return write_page(l);
}

static calx_status *finalize(void *user, const char *status)
{
  html *l = user;
  if (!l->run.has_begun) return NULL;
  char *state = cx_strdup(status);
  if (state == NULL) return cx_out_of_memory();
  goes_on(l);
  l->state = state;
  l->ended_ns = cx_now_ns();
  return save(l);
}

static void html_free(void *user)
{
  html *l = user;
  if (l->watches) cx_profiler_watch(false);
  cx_loggers_run_end(&l->run);
  cx_loggers_curves_free(&l->curves);
  for (size_t i = 0; i < l->n_notes; i++) {
    cx_free(l->notes[i].name);
    cx_free(l->notes[i].text);
  }
  cx_free(l->notes);
  cx_free(l->title);
  cx_free(l->state);
  cx_free(l);
}

static const calx_logger_functions functions = {
  .size = sizeof functions,
  .log_metrics = log_metrics,
  .log_hyperparams = log_hyperparams,
  .log_text = log_text,
  .save = save,
  .finalize = finalize,
  .save_dir = cx_loggers_run_save_dir,
  .name = cx_loggers_run_name,
  .version = cx_loggers_run_version,
  .log_dir = cx_loggers_run_log_dir,
  .free = html_free,
};

static calx_status *init(html *l, const char *save_dir,
                         const calx_html_logger_options *options)
{
  calx_html_logger_options o;
  CALX_TRY(cx_options_take("calx_html_logger", options, &o, sizeof o));
  l->began = time(NULL);
  l->began_ns = cx_now_ns();
  if (o.title != NULL && (l->title = cx_strdup(o.title)) == NULL) {
    return cx_out_of_memory();
  }
  CALX_TRY(cx_loggers_run_init(
      &l->run, &(cx_loggers_options){ .what = "calx_html_logger",
                                      .save_dir = save_dir,
                                      .name = o.name,
                                      .version = o.version,
                                      .prefix = o.prefix }));
  l->watches = !o.no_profile;
  if (l->watches) cx_profiler_watch(true);
  return NULL;
}

calx_logger *calx_html_logger_with(const char *save_dir,
                                   const calx_html_logger_options *options)
{
  html *l = cx_calloc(1, sizeof *l);
  calx_status *error =
      l == NULL ? cx_out_of_memory() : init(l, save_dir, options);
  return cx_loggers_logger_new(&functions, l, error);
}
