// loggers/curves: see curves.h. When a metric has too many values, each second
// one goes, and of later ones so many fewer are kept: they stay evenly spaced.
#include "loggers/curves.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "loggers/logger.h"

// ---- one curve --------------------------------------------------------------

static void halve(cx_loggers_curve *c)
{
  c->kept /= 2;
  c->stride *= 2;
  for (size_t i = 0; i < c->kept; i++) {
    c->x[i] = c->x[2 * i];
    c->y[i] = c->y[2 * i];
  }
}

static bool make_slot(cx_loggers_curve *c)
{
  size_t capacity = c->capacity;
  if (!cx_grow(&c->x, &capacity, c->kept + 1, sizeof *c->x)) return false;
  return cx_grow(&c->y, &c->capacity, c->kept + 1, sizeof *c->y);
}

static void take_extremes(cx_loggers_curve *c, cx_loggers_point p)
{
  if (!isfinite(p.value)) {
    c->not_finite++;
    return;
  }
  const bool first = c->seen == c->not_finite;
  if (first || p.value < c->least.value) c->least = p;
  if (first || p.value > c->most.value) c->most = p;
}

static calx_status *add_point(cx_loggers_curve *c, cx_loggers_point p)
{
  if (c->kept == CX_LOGGERS_POINTS) halve(c);
  if (!make_slot(c)) return cx_out_of_memory();
  take_extremes(c, p);
  c->x[c->kept] = (double)p.step;
  c->y[c->kept] = p.value;
  c->count = c->kept + 1;
  if (c->seen % c->stride == 0) c->kept++;
  c->seen++;
  c->last = p;
  return NULL;
}

// ---- all of them ------------------------------------------------------------

// Rows have their names in one order mostly.
static cx_loggers_curve *find(cx_loggers_curves *all, const char *name)
{
  for (size_t i = 0; i < all->count; i++) {
    const size_t at = (all->expected + i) % all->count;
    if (strcmp(all->items[at].plain_name, name) == 0) {
      all->expected = at + 1;
      return &all->items[at];
    }
  }
  return NULL;
}

static cx_loggers_curve *new_curve(cx_loggers_curves *all, const char *prefix,
                                   const char *name)
{
  cx_text full = { 0 };
  cx_text_append(&full, prefix);
  cx_text_append(&full, name);
  char *copy = cx_text_take(&full);
  cx_text_free(&full);
  if (copy == NULL || !cx_grow(&all->items, &all->capacity, all->count + 1,
                               sizeof *all->items)) {
    cx_free(copy);
    return NULL;
  }
  cx_loggers_curve *c = &all->items[all->count++];
  *c = (cx_loggers_curve){ .name = copy,
                           .plain_name = copy + strlen(prefix),
                           .is_axis = strcmp(name, "epoch") == 0,
                           .stride = 1 };
  return c;
}

static void report_full(cx_loggers_curves *all, const char *name)
{
  if (!all->is_full) {
    cx_log(
        "calx_html_logger: '%s' is left out, and so are further names: the "
        "report has %d metrics",
        name, CX_LOGGERS_CURVES);
  }
  all->is_full = true;
}

calx_status *cx_loggers_curves_add(cx_loggers_curves *all, const char *prefix,
                                   const calx_logged_value *values,
                                   size_t count, int64_t step)
{
  for (size_t i = 0; i < count; i++) {
    const char *name = values[i].name;
    if (cx_loggers_is_replaced(values, count, i, prefix)) continue;
    cx_loggers_curve *c = find(all, name);
    if (c == NULL && all->count >= CX_LOGGERS_CURVES) {
      report_full(all, name);
      continue;
    }
    if (c == NULL) c = new_curve(all, prefix, name);
    if (c == NULL) return cx_out_of_memory();
    CALX_TRY(add_point(c, (cx_loggers_point){ step, values[i].value }));
  }
  all->has_rows = true;
  all->last_step = step;
  return NULL;
}

void cx_loggers_curves_free(cx_loggers_curves *all)
{
  for (size_t i = 0; i < all->count; i++) {
    cx_free(all->items[i].name);
    cx_free(all->items[i].x);
    cx_free(all->items[i].y);
  }
  cx_free(all->items);
}

// ---- subjects ---------------------------------------------------------------

static const char *const stages[] = { "train",      "training", "val", "valid",
                                      "validation", "test",     "eval" };
static const char joints[] = "_/-. ";

static bool ends_with(cx_loggers_subject s, const char *end)
{
  const size_t n = strlen(end);
  return s.size > n && memcmp(s.text + s.size - n, end, n) == 0;
}

// "loss/dataloader_idx_1"
static void drop_loader(cx_loggers_subject *s)
{
  static const char mark[] = "/dataloader_idx_";
  size_t n = s->size;
  while (n > 0 && s->text[n - 1] >= '0' && s->text[n - 1] <= '9') n--;
  const cx_loggers_subject head = { s->text, n };
  if (n < s->size && ends_with(head, mark)) s->size = n - (sizeof mark - 1);
}

static bool drop_stage(cx_loggers_subject *s, const char *stage)
{
  const size_t n = strlen(stage);
  if (s->size < n + 2) return false;
  if (memcmp(s->text, stage, n) == 0 && strchr(joints, s->text[n]) != NULL) {
    s->text += n + 1;
    s->size -= n + 1;
    return true;
  }
  if (!ends_with(*s, stage) ||
      strchr(joints, s->text[s->size - n - 1]) == NULL) {
    return false;
  }
  s->size -= n + 1;
  return true;
}

cx_loggers_subject cx_loggers_subject_of(const char *name)
{
  cx_loggers_subject s = { name, strlen(name) };
  drop_loader(&s);
  if (ends_with(s, "_step")) {
    s.size -= strlen("_step");
  } else if (ends_with(s, "_epoch")) {
    s.size -= strlen("_epoch");
  }
  for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
    if (drop_stage(&s, stages[i])) break;
  }
  return s;
}

bool cx_loggers_subject_is(cx_loggers_subject a, cx_loggers_subject b)
{
  return a.size == b.size && memcmp(a.text, b.text, a.size) == 0;
}
