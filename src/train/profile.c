// train/profile: where the time of a run goes, by action. An action's time has
// that of those inside of it.
//
// What the library does meanwhile on the rank's own thread is known from its
// spans: the columns beside Lightning's.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/trace.h"
#include "calx/debug.h"
#include "train/internal.h"
#include "train/profile_table.h"

// All times in seconds; the place TRACE of a list of parts has those of all.
typedef double profile_parts[CX_TRAIN_PROFILE_PARTS];

typedef struct profile_action {
  const char *who, *what;  // who: NULL: the trainer or the module
  int64_t calls;
  profile_parts parts;
} profile_action;

typedef struct profile_frame {
  size_t action;
  profile_parts begun;
} profile_frame;

struct cx_train_profiler {
  double begun;
  bool writes_file;  // which the library does
  profile_action *actions;
  size_t n, capacity;
  profile_frame *stack;
  size_t depth, stack_capacity;
  size_t lost;  // frames without memory
};

// ---- spans ------------------------------------------------------------------

// Of this thread so far.
static _Thread_local profile_parts spent;

// A value that is read is waited for: its transfer is the lesser part.
static void add_span(const cx_trace_span *span)
{
  const double seconds = (double)(span->end - span->start) * 1e-9;
  switch (span->kind) {
    case CX_SPAN_COMPILE: spent[CX_TRAIN_PROFILE_COMPILE] += seconds; break;
    case CX_SPAN_WAIT:
    case CX_SPAN_DOWNLOAD: spent[CX_TRAIN_PROFILE_EXECUTE] += seconds; break;
    case CX_SPAN_UPLOAD:
    case CX_SPAN_LOADER: spent[CX_TRAIN_PROFILE_TRANSFER] += seconds; break;
    default: break;
  }
}

static void read_clock(profile_parts out)
{
  memcpy(out, spent, sizeof spent);
  out[CX_TRAIN_PROFILE_TRACE] = (double)cx_now_ns() * 1e-9;
}

static void listen(bool on)
{
  static const cx_trace_listener listener = { .span = add_span };
  if (on) cx_trace_listen(&listener);
  cx_trace_want(CX_TRACE_SPANS, on);
}

// ---- a profile --------------------------------------------------------------

// Of the process, by its first rank.
static calx_status *start_file(const calx_trainer *t)
{
  cx_text path = { 0 };
  const char *root = calx_trainer_default_root_dir(t);
  cx_text_format(&path, "%s/%s.profile.json", root, calx_trainer_stage(t));
  calx_status *status = cx_folder_make(root, 0777);
  if (status == NULL && cx_text_failed(&path)) status = cx_out_of_memory();
  if (status == NULL) status = calx_profile_start(cx_text_str(&path));
  cx_text_free(&path);
  return status;
}

calx_status *cx_train_profile_new(calx_trainer *t)
{
  const bool is_first = cx_train_device_index(t) == 0;
  const bool writes_file = t->config.profiles_xla && is_first;
  if (!writes_file && !t->config.profiles_simply) return NULL;
  struct cx_train_profiler *p = cx_calloc(1, sizeof *p);
  if (p == NULL) return cx_out_of_memory();
  if (writes_file) {
    calx_status *status = start_file(t);
    if (status != NULL) {
      cx_free(p);
      return status;
    }
  } else {
    listen(true);
  }
  p->writes_file = writes_file;
  p->begun = (double)cx_now_ns() * 1e-9;
  t->profiler = p;
  return NULL;
}

static bool is_same(const char *a, const char *b)
{
  return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

// Its place among the actions; SIZE_MAX: no memory.
static size_t find(struct cx_train_profiler *p, const char *who,
                   const char *what)
{
  for (size_t i = 0; i < p->n; i++) {
    if (p->actions[i].who == who && p->actions[i].what == what) return i;
  }
  for (size_t i = 0; i < p->n; i++) {
    const profile_action *a = &p->actions[i];
    if (is_same(a->who, who) && is_same(a->what, what)) return i;
  }
  if (!cx_grow(&p->actions, &p->capacity, p->n + 1, sizeof *p->actions)) {
    return SIZE_MAX;
  }
  p->actions[p->n] = (profile_action){ .who = who, .what = what };
  return p->n++;
}

void cx_train_profile_begin(calx_trainer *t, const char *who, const char *what)
{
  struct cx_train_profiler *p = t->profiler;
  if (p == NULL || p->writes_file) return;
  const size_t action = find(p, who, what);
  if (action == SIZE_MAX || p->lost > 0 ||
      !cx_grow(&p->stack, &p->stack_capacity, p->depth + 1, sizeof *p->stack)) {
    p->lost++;
    return;
  }
  profile_frame *f = &p->stack[p->depth++];
  f->action = action;
  read_clock(f->begun);
}

void cx_train_profile_end(calx_trainer *t)
{
  struct cx_train_profiler *p = t->profiler;
  if (p == NULL || p->writes_file) return;
  if (p->lost > 0 || p->depth == 0) {
    p->lost -= p->lost > 0;
    return;
  }
  profile_parts now;
  read_clock(now);
  const profile_frame *f = &p->stack[--p->depth];
  profile_action *a = &p->actions[f->action];
  a->calls++;
  for (int k = 0; k < CX_TRAIN_PROFILE_PARTS; k++) {
    a->parts[k] += now[k] - f->begun[k];
  }
}

// ---- the report -------------------------------------------------------------

// "[Callback]Timer.on_fit_start", "[LightningModule]Net.on_fit_start",
// "[Strategy]XLAStrategy.training_step", "run_training_epoch".
static void put_name(const calx_trainer *t, const profile_action *a,
                     cx_text *out)
{
  static const char *const of_strategy[] = { "training_step", "backward",
                                             "validation_step", "test_step",
                                             "predict_step" };
  if (a->who != NULL) {
    cx_text_format(out, "%s%s.%s", a->who[0] == '[' ? "" : "[Callback]", a->who,
                   a->what);
    return;
  }
  for (size_t i = 0; i < sizeof of_strategy / sizeof *of_strategy; i++) {
    if (strcmp(a->what, of_strategy[i]) != 0) continue;
    cx_text_format(
        out, "[Strategy]%s.%s",
        calx_world_size() > 1 ? "XLAStrategy" : "SingleDeviceXLAStrategy",
        a->what);
    return;
  }
  const bool is_trainers = strncmp(a->what, "run_", 4) == 0 ||
                           strcmp(a->what, "save_checkpoint") == 0;
  if (!is_trainers) {
    cx_text_format(
        out, "[LightningModule]%s.",
        t->model != NULL ? calx_module_kind(t->model) : "LightningModule");
  }
  cx_text_append(out, a->what);
}

// What is left of an action's time is that of recording, and the program's own.
static bool put_row(const calx_trainer *t, const profile_action *a,
                    cx_train_profile_row *out)
{
  cx_text name = { 0 };
  put_name(t, a, &name);
  out->action = cx_text_take(&name);
  out->calls = a->calls;
  memcpy(out->part, a->parts, sizeof out->part);
  out->total = a->parts[CX_TRAIN_PROFILE_TRACE];
  for (int k = 0; k < CX_TRAIN_PROFILE_PARTS; k++) {
    if (k != CX_TRAIN_PROFILE_TRACE) {
      out->part[CX_TRAIN_PROFILE_TRACE] -= a->parts[k];
    }
  }
  if (out->part[CX_TRAIN_PROFILE_TRACE] < 0) {
    out->part[CX_TRAIN_PROFILE_TRACE] = 0;
  }
  return out->action != NULL;
}

static void print_table(const calx_trainer *t,
                        const struct cx_train_profiler *p)
{
  char stage[16] = "";
  const char *name = calx_trainer_stage(t);
  for (size_t i = 0; name[i] != '\0' && i + 1 < sizeof stage; i++) {
    stage[i] = (char)(name[i] - 'a' + 'A');
  }
  cx_train_profile_row *rows = cx_calloc(p->n + 1, sizeof *rows);
  cx_train_profile table = { .stage = stage,
                             .total = (double)cx_now_ns() * 1e-9 - p->begun,
                             .rows = rows,
                             .has_parts = true };
  bool good = rows != NULL;
  for (size_t i = 0; good && i < p->n; i++) {
    if (p->actions[i].calls == 0) continue;  // it failed
    good = put_row(t, &p->actions[i], &rows[table.n_rows++]);
  }
  cx_text text = { 0 };
  if (good) cx_train_put_profile(&text, &table);
  if (good && !cx_text_failed(&text)) {
    fputs(cx_text_str(&text), stderr);
  } else {
    cx_log_failure("the profile", cx_out_of_memory());
  }
  cx_text_free(&text);
  for (size_t i = 0; i < table.n_rows; i++) cx_free((char *)rows[i].action);
  cx_free(rows);
}

void cx_train_profile_report(calx_trainer *t)
{
  struct cx_train_profiler *p = t->profiler;
  if (p == NULL) return;
  if (p->writes_file) {
    cx_log_failure("the profile", calx_profile_stop());
  } else {
    listen(false);
    if (calx_trainer_is_global_zero(t)) print_table(t, p);
  }
  cx_free(p->actions);
  cx_free(p->stack);
  cx_free(p);
  t->profiler = NULL;
}
