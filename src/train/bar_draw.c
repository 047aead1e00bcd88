// train/bar_draw: draws a progress bar on a terminal; elsewhere it prints a
// line of it now and then.
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "base/thread.h"
#include "calx/loggers.h"
#include "train/internal.h"
#include "train/progress_bar.h"

#define SECOND INT64_C(1000000000)
enum { LINES = 10, UNKNOWN_EVERY = 100 };

// ---- speed ------------------------------------------------------------------

static void add_sample(cx_train_progress_loop *l)
{
  const size_t most = CX_TRAIN_PROGRESS_SAMPLES;
  l->newest = (cx_train_progress_sample){ cx_now_ns(), l->n };
  if (l->n_samples > 0 &&
      l->newest.ns - l->samples[(l->n_samples - 1) % most].ns < SECOND / 2) {
    return;
  }
  l->samples[l->n_samples++ % most] = l->newest;
}

// As Rich has it: over the last half minute, without the first batch.
static double recent_speed(const cx_train_progress_loop *l)
{
  const size_t most = CX_TRAIN_PROGRESS_SAMPLES;
  for (size_t i = l->n_samples > most ? l->n_samples - most : 0;
       i < l->n_samples; i++) {
    const cx_train_progress_sample *s = &l->samples[i % most];
    const int64_t ns = l->newest.ns - s->ns;
    if (ns > 30 * SECOND) continue;
    return ns > 0 ? (double)(l->newest.n - s->n) / ((double)ns * 1e-9) : 0;
  }
  return 0;
}

// ---- values -----------------------------------------------------------------

static void put_value(cx_text *out, bool is_rich, const char *name,
                      double value, bool is_integer)
{
  const bool first = out->size == 0;
  if (is_rich) {
    cx_text_format(out, "%s%s: ", first ? "" : " ", name);
    cx_text_real(out, "%.3f", value);
  } else {
    cx_text_format(out, "%s%s=", first ? "" : ", ", name);
    cx_train_tqdm_number(out, value, is_integer);
  }
}

// The loggers' versions, each once: one that is a number, or the last four
// characters.
static void put_version(cx_text *out, const calx_trainer *t, bool is_rich)
{
  cx_text all = { 0 };
  for (size_t i = 0; i < t->n_loggers; i++) {
    const char *version = calx_logger_version(t->loggers[i]);
    bool is_new = version != NULL;
    for (size_t k = 0; is_new && k < i; k++) {
      const char *other = calx_logger_version(t->loggers[k]);
      is_new = other == NULL || strcmp(other, version) != 0;
    }
    if (!is_new) continue;
    cx_text_format(&all, "%s%s", all.size > 0 ? "_" : "", version);
  }
  const char *text = cx_text_str(&all);
  int64_t number;
  if (t->n_loggers == 1 && cx_read_int(text, 0, INT64_MAX, &number)) {
    put_value(out, is_rich, "v_num", (double)number, true);
  } else if (all.size > 0) {
    cx_text_format(out, is_rich ? "v_num: %s" : "v_num=%s",
                   text + (all.size > 4 ? all.size - 4 : 0));
  }
  cx_text_free(&all);
}

// Those that were logged for the bar, as far as they are known.
static void put_values(cx_text *out, calx_trainer *t, bool is_rich)
{
  bool has_own_version = false;
  for (size_t i = 0; i < t->n_bar; i++) {
    has_own_version = has_own_version || strcmp(t->bar[i].name, "v_num") == 0;
  }
  if (!has_own_version && t->config.fast_dev_run == 0) {
    put_version(out, t, is_rich);
  }
  for (size_t i = 0; i < t->n_bar; i++) {
    double value;
    if (!cx_train_bar_read(t, i, &value)) continue;
    put_value(out, is_rich, t->bar[i].name, value, false);
  }
}

// ---- the text ---------------------------------------------------------------

// tqdm's time goes on when all batches are over, Rich's does not.
static cx_train_meter meter_of(const cx_train_progress_loop *l, bool is_rich,
                               const char *values)
{
  const bool is_finished = is_rich && l->finished_ns != 0;
  const int64_t ns = (is_finished ? l->finished_ns : cx_now_ns()) - l->begun_ns;
  cx_train_meter m = { .description = l->description,
                       .n = l->n,
                       .total = l->total,
                       .elapsed = (double)ns * 1e-9,
                       .values = values };
  m.speed = is_rich         ? recent_speed(l)
            : m.elapsed > 0 ? (double)(l->n - l->first) / m.elapsed
                            : 0;
  return m;
}

static void put_text(cx_text *out, const cx_train_bar_state *bar,
                     calx_trainer *t)
{
  const bool is_rich = bar->o->is_rich;
  const int width = bar->is_terminal ? cx_debug_columns(stdout) : 0;
  cx_train_meter meters[CX_TRAIN_PROGRESS_LOOPS];
  size_t n = 0;
  cx_text values = { 0 };
  if (t->asked == CX_TRAIN_FITTING && !t->sanity_checking) {
    put_values(&values, t, is_rich);
  }
  for (int i = 0; i < CX_TRAIN_PROGRESS_LOOPS; i++) {
    if (!bar->loops[i].is_shown) continue;
    meters[n++] =
        meter_of(&bar->loops[i], is_rich,
                 i == CX_TRAIN_PROGRESS_OUTER ? cx_text_str(&values) : "");
  }
  if (is_rich) {
    cx_train_rich_lines(out, meters, n, width, bar->has_utf8, bar->is_terminal);
  }
  for (size_t i = 0; !is_rich && i < n; i++) {
    if (i > 0) cx_text_char(out, '\n');
    cx_train_tqdm_line(out, &meters[i], width > 1 ? width - 1 : width,
                       bar->has_utf8);
  }
  cx_text_free(&values);
}

// ---- drawing ----------------------------------------------------------------

static void draw(cx_train_bar_state *bar, calx_trainer *t)
{
  cx_text text = { 0 };
  put_text(&text, bar, t);
  cx_debug_screen_draw(&bar->screen, cx_text_str(&text));
  cx_text_free(&text);
}

// The line of one loop.
static void print(cx_train_bar_state *bar, calx_trainer *t, int which)
{
  cx_text text = { 0 };
  const bool shows_outer = bar->loops[CX_TRAIN_PROGRESS_OUTER].is_shown;
  if (which != CX_TRAIN_PROGRESS_OUTER) {
    bar->loops[CX_TRAIN_PROGRESS_OUTER].is_shown = false;
  }
  put_text(&text, bar, t);
  bar->loops[CX_TRAIN_PROGRESS_OUTER].is_shown = shows_outer;
  printf("%s\n", cx_text_str(&text));
  fflush(stdout);
  cx_text_free(&text);
  bar->printed_n = bar->loops[which].n;
  bar->printed_ns = cx_now_ns();
}

// Whether a line is due. That of the last batch of training comes with the end
// of the epoch, which has all values; a loop whose bar goes is seen only when
// nothing was for long.
static bool is_line_due(const cx_train_bar_state *bar, const calx_trainer *t,
                        int which)
{
  const cx_train_progress_loop *l = &bar->loops[which];
  const int64_t every =
      l->total > 0 ? (l->total + LINES - 1) / LINES : UNKNOWN_EVERY;
  const bool fits = t->asked == CX_TRAIN_FITTING;
  if (which == CX_TRAIN_PROGRESS_NESTED || t->sanity_checking) {
    return l->n % every == 0 && cx_now_ns() - bar->printed_ns >= 10 * SECOND;
  }
  if (l->n == l->total) return !fits;
  return l->n / every > bar->printed_n / every;
}

// ---- the loops --------------------------------------------------------------

void cx_train_progress_begin(cx_train_bar_state *bar)
{
  if (!bar->is_drawn || bar->is_begun) return;
  bar->is_begun = true;
  bar->is_terminal = cx_debug_is_terminal(stdout);
  bar->has_utf8 = cx_debug_has_utf8();
  bar->printed_ns = cx_now_ns();
  memset(bar->loops, 0, sizeof bar->loops);
  if (!bar->is_terminal) return;
  cx_debug_screen_begin(&bar->screen, stdout, bar->o->offset);
}

void cx_train_progress_end(cx_train_bar_state *bar, calx_trainer *t, bool stays)
{
  const cx_train_progress_loop *outer = &bar->loops[CX_TRAIN_PROGRESS_OUTER];
  if (!bar->is_begun) return;
  bar->is_begun = false;
  bar->loops[CX_TRAIN_PROGRESS_NESTED].is_shown = false;
  if (bar->is_terminal) {
    if (stays) draw(bar, t);
    cx_debug_screen_end(&bar->screen, stays);
  } else if (stays && outer->is_shown && outer->n != bar->printed_n) {
    print(bar, t, CX_TRAIN_PROGRESS_OUTER);
  }
}

void cx_train_progress_start(cx_train_bar_state *bar, calx_trainer *t,
                             int which, int64_t n, int64_t total)
{
  if (!bar->is_begun) return;
  cx_train_progress_loop *l = &bar->loops[which];
  l->is_shown = true;
  l->n = l->first = n;
  l->total = total;
  l->begun_ns = cx_now_ns();
  l->finished_ns = 0;
  l->n_samples = 0;
  if (which == CX_TRAIN_PROGRESS_OUTER) bar->printed_n = n;
  if (bar->is_terminal) draw(bar, t);
}

void cx_train_progress_advance(cx_train_bar_state *bar, calx_trainer *t,
                               int which, int64_t n)
{
  cx_train_progress_loop *l = &bar->loops[which];
  if (!bar->is_begun) return;
  l->n = n;
  add_sample(l);
  if (n == l->total) l->finished_ns = cx_now_ns();
  if (n % bar->o->every != 0 && n != l->total) return;
  if (!bar->is_terminal) {
    if (is_line_due(bar, t, which)) print(bar, t, which);
  } else if (n == l->total ||
             cx_debug_screen_is_due(&bar->screen, bar->o->interval_ns)) {
    draw(bar, t);
  }
}

void cx_train_progress_hide(cx_train_bar_state *bar)
{
  bar->loops[CX_TRAIN_PROGRESS_NESTED].is_shown = false;
}

void cx_train_progress_refresh(cx_train_bar_state *bar, calx_trainer *t)
{
  if (!bar->is_begun || !bar->loops[CX_TRAIN_PROGRESS_OUTER].is_shown) return;
  if (bar->is_terminal) {
    draw(bar, t);
  } else if (t->position.is_epoch_end) {
    print(bar, t, CX_TRAIN_PROGRESS_OUTER);
  }
}
