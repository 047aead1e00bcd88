// debug/progress: the line of a loop, see calx/progress.h.
#include "calx/progress.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/text.h"
#include "base/trace.h"
#include "debug/screen.h"
#include "lazy/lazy.h"
#include "profiler/profiler.h"

enum { MOST_VALUES = 8, LINES = 10, UNKNOWN_EVERY = 100 };
#define REDRAW_NS INT64_C(100000000)

typedef struct progress_value {
  char *name;
  double known;
  bool is_known;
  calx_tensor *waiting[2];  // the older one first
} progress_value;

struct calx_progress {
  char *label, *unit;
  FILE *file;
  bool is_shown, is_terminal;
  cx_debug_screen screen;  // on a terminal
  int64_t total, every, steps, items;
  int64_t begun;                    // ns
  int64_t first_step, first_items;  // ns: the rate leaves out the first step
  int64_t printed;                  // step of the last plain line
  progress_value values[MOST_VALUES];
  int n_values;
};

static calx_progress nil;  // what making one gives without memory

// ---- text -------------------------------------------------------------------

static void put_number(cx_text *out, double v)
{
  const double size = fabs(v);
  const bool plain = size == 0 || (size >= 1e-3 && size < 1e5);
  cx_text_format(out, !isfinite(v) ? "%g" : plain ? "%.4f" : "%.3e", v);
}

static void put_seconds(cx_text *out, double s)
{
  const long long all = s < 1e9 ? (long long)(s + 0.5) : 999999999;
  if (all >= 3600) {
    cx_text_format(out, "%lld:%02lld:%02lld", all / 3600, all / 60 % 60,
                   all % 60);
  } else {
    cx_text_format(out, "%lld:%02lld", all / 60, all % 60);
  }
}

static void put_rate(cx_text *out, const calx_progress *p, int64_t now)
{
  const bool later = p->steps > 1;
  const double s = (double)(now - (later ? p->first_step : p->begun)) * 1e-9;
  const double steps = (double)(p->steps - (later ? 1 : 0));
  const double items = (double)(p->items - (later ? p->first_items : 0));
  if (p->steps == 0 || !(s > 0)) return;
  const double rate = (p->items > 0 ? items : steps) / s;
  cx_text_format(out, rate >= 100 ? " %.0f %s/s" : " %.3g %s/s", rate,
                 p->items > 0 ? p->unit : "steps");
  if (p->total <= 0) return;
  if (p->steps < p->total) {
    cx_text_append(out, " ETA ");
    put_seconds(out, (double)(p->total - p->steps) * s / steps);
  } else {
    cx_text_append(out, " in ");
    put_seconds(out, (double)(now - p->begun) * 1e-9);
  }
}

static void put_line(cx_text *out, const calx_progress *p)
{
  if (p->label != NULL) cx_text_format(out, "%s ", p->label);
  cx_text_format(out, "step %lld", (long long)p->steps);
  if (p->total > 0) cx_text_format(out, "/%lld", (long long)p->total);
  for (int i = 0; i < p->n_values; i++) {
    if (!p->values[i].is_known) continue;
    cx_text_format(out, " %s ", p->values[i].name);
    put_number(out, p->values[i].known);
  }
  put_rate(out, p, cx_now_ns());
}

// ---- drawing ----------------------------------------------------------------

static void draw(calx_progress *p)
{
  cx_text text = { 0 };
  put_line(&text, p);
  cx_debug_screen_draw(&p->screen, cx_text_str(&text));
  cx_text_free(&text);
}

static void print_plain(calx_progress *p)
{
  cx_text text = { 0 };
  put_line(&text, p);
  fprintf(p->file, "%s\n", cx_text_str(&text));
  fflush(p->file);
  cx_text_free(&text);
  p->printed = p->steps;
}

static void show(calx_progress *p)
{
  const bool last = p->steps == p->total;
  if (!p->is_shown) return;
  if (!p->is_terminal) {
    if (p->steps % p->every == 0 && !last) print_plain(p);
    return;  // the last line comes with the end, when all values are known
  }
  if (cx_debug_screen_is_due(&p->screen, REDRAW_NS)) draw(p);
}

// ---- values -----------------------------------------------------------------

static void read_oldest(progress_value *v)
{
  calx_tensor *t = v->waiting[0];
  const calx_dtype dtype = calx_tensor_dtype(t);
  unsigned char element[8] = { 0 };
  calx_status *status = calx_tensor_read(t, element, calx_dtype_size(dtype));
  if (status == NULL) {
    v->known = cx_load_double(dtype, element);
    v->is_known = true;
  }
  cx_lazy_scope_pin(status);
  calx_release(t);
  v->waiting[0] = v->waiting[1];
  v->waiting[1] = NULL;
}

static void read_ready(progress_value *v)
{
  while (v->waiting[0] != NULL && calx_is_ready(v->waiting[0])) {
    cx_profiler_own_read();
    read_oldest(v);
  }
}

static progress_value *value_of(calx_progress *p, const char *name)
{
  for (int i = 0; i < p->n_values; i++) {
    if (strcmp(p->values[i].name, name) == 0) return &p->values[i];
  }
  char *copy = p->n_values < MOST_VALUES ? cx_strdup(name) : NULL;
  if (copy == NULL) return NULL;
  p->values[p->n_values].name = copy;
  return &p->values[p->n_values++];
}

double calx_progress_value(calx_progress *p, const char *name,
                           calx_tensor *tensor)
{
  if (p == NULL || p == &nil || name == NULL || tensor == NULL) return 0;
  progress_value *v = value_of(p, name);
  if (v == NULL) return 0;
  if (calx_tensor_numel(tensor) != 1) {
    cx_lazy_scope_pin(
        cx_invalid("progress_value: '%s' has %lld elements, one is wanted",
                   name, (long long)calx_tensor_numel(tensor)));
    return v->known;
  }
  if (cx_dtype_is_complex(calx_tensor_dtype(tensor))) {
    cx_lazy_scope_pin(
        cx_invalid("progress_value: '%s' is complex: give its calx_real, "
                   "calx_imag or calx_abs",
                   name));
    return v->known;
  }
  read_ready(v);
  calx_tensor **free_slot = &v->waiting[v->waiting[0] != NULL ? 1 : 0];
  calx_release(*free_slot);
  *free_slot = calx_retain(tensor);
  read_ready(v);
  return v->known;
}

void calx_progress_number(calx_progress *p, const char *name, double value)
{
  if (p == NULL || p == &nil || name == NULL) return;
  progress_value *v = value_of(p, name);
  if (v == NULL) return;
  v->known = value;
  v->is_known = true;
}

// ---- life -------------------------------------------------------------------

static void free_progress(calx_progress *p)
{
  for (int i = 0; i < p->n_values; i++) {
    calx_release(p->values[i].waiting[0]);
    calx_release(p->values[i].waiting[1]);
    cx_free(p->values[i].name);
  }
  cx_free(p->label);
  cx_free(p->unit);
  cx_free(p);
}

calx_progress *calx_progress_new_with(const char *label, int64_t total,
                                      const calx_progress_options *o)
{
  calx_progress *p = cx_calloc(1, sizeof *p);
  if (p == NULL) return &nil;
  const char *unit = o != NULL && o->unit != NULL ? o->unit : "steps";
  p->label = label != NULL ? cx_strdup(label) : NULL;
  p->unit = cx_strdup(unit);
  if (p->unit == NULL || (label != NULL && p->label == NULL)) {
    free_progress(p);
    return &nil;
  }
  p->file = o != NULL && o->file != NULL ? o->file : stdout;
  p->total = total;
  p->every = o != NULL && o->every > 0 ? o->every
             : total > 0               ? (total + LINES - 1) / LINES
                                       : UNKNOWN_EVERY;
  p->is_shown =
      cx_trace_ranks_here().first + cx_lazy_device_index_of_thread() == 0;
  p->is_terminal = cx_debug_is_terminal(p->file);
  p->begun = cx_now_ns();
  if (p->is_shown && p->is_terminal) {
    cx_debug_screen_begin(&p->screen, p->file, 0);
    draw(p);
  }
  return p;
}

void calx_progress_step(calx_progress *p, int64_t items)
{
  if (p == NULL || p == &nil) return;
  p->steps++;
  p->items += items;
  if (p->steps == 1) {
    p->first_step = cx_now_ns();
    p->first_items = p->items;
  }
  for (int i = 0; i < p->n_values; i++) read_ready(&p->values[i]);
  show(p);
}

void calx_progress_end(calx_progress *p)
{
  if (p == NULL || p == &nil) return;
  for (int i = 0; i < p->n_values; i++) {
    while (p->values[i].waiting[0] != NULL) read_oldest(&p->values[i]);
  }
  if (p->is_shown && p->is_terminal) {
    draw(p);
    cx_debug_screen_end(&p->screen, true);
  } else if (p->is_shown && p->printed != p->steps) {
    print_plain(p);
  }
  free_progress(p);
}
