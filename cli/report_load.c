// cli/report_load: a run's numbers from a file.
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "report.h"

#define BIGGEST_FILE ((size_t)64 << 20)
enum { MOST_ROWS = 4096, MOST_WHERE = 96 };

// ---- fields -----------------------------------------------------------------

// An object of the file and what it is called in complaints.
typedef struct object {
  const json_t *json;
  char where[MOST_WHERE];  // "steps[3]"; empty: the whole
} object;

static calx_status *wrong(const object *o, const char *key, const char *what)
{
  return cx_error(CALX_INVALID_ARGUMENT, "%s%s%s is not %s", o->where,
                  o->where[0] != '\0' ? "." : "", key, what);
}

// Finite and not negative.
static calx_status *get_number(const object *o, const char *key, double *out)
{
  const json_t *v = json_object_get(o->json, key);
  *out = json_number_value(v);
  if (json_is_number(v) && isfinite(*out) && *out >= 0) return NULL;
  return wrong(o, key, "a number from 0 on");
}

static calx_status *get_int(const object *o, const char *key, int64_t *out)
{
  const json_t *v = json_object_get(o->json, key);
  *out = json_integer_value(v);
  if (json_is_integer(v) && *out >= 0 && *out <= CX_DEBUG_READ_MOST)
    return NULL;
  return wrong(o, key, "an integer from 0 to 1e15");
}

static calx_status *get_text(const object *o, const char *key, char *out,
                             size_t size)
{
  const json_t *v = json_object_get(o->json, key);
  if (!json_is_string(v)) return wrong(o, key, "a text");
  cx_text_plain(json_string_value(v), json_string_length(v), out, size);
  return NULL;
}

// Room for all rows of an array, each of `bytes`.
static calx_status *get_rows(const object *root, const char *key, size_t bytes,
                             const json_t **out_array, void *out_rows,
                             size_t *out_n)
{
  const json_t *array = json_object_get(root->json, key);
  *out_array = array;
  if (!json_is_array(array)) return wrong(root, key, "an array");
  size_t n = json_array_size(array);
  if (n > MOST_ROWS) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "%s has %zu entries, at most %d are "
                    "read",
                    key, n, MOST_ROWS);
  }
  void *rows = cx_calloc(n + 1, bytes);
  if (rows == NULL) return cx_out_of_memory();
  memcpy(out_rows, &rows, sizeof rows);
  *out_n = n;
  return NULL;
}

static object row_of(const json_t *array, const char *key, size_t i)
{
  object o = { .json = json_array_get(array, i) };
  snprintf(o.where, sizeof o.where, "%s[%zu]", key, i);
  return o;
}

// ---- the parts --------------------------------------------------------------

static calx_status *load_head(const object *root, cx_debug_run_data *run)
{
  int64_t version;
  CALX_TRY(get_int(root, "calx_report", &version));
  if (version != 1) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "it is of version %lld, this program reads version 1",
                    (long long)version);
  }
  CALX_TRY(get_text(root, "plugin", run->plugin, sizeof run->plugin));
  CALX_TRY(get_text(root, "platform", run->platform, sizeof run->platform));
  CALX_TRY(get_int(root, "rank", &run->rank));
  CALX_TRY(get_int(root, "world", &run->world));
  run->devices = 1;  // where it is not told: by a version that knew one
  if (json_object_get(root->json, "devices") != NULL) {
    CALX_TRY(get_int(root, "devices", &run->devices));
  }
  CALX_TRY(get_int(root, "syncs", &run->syncs));
  CALX_TRY(get_int(root, "compilations", &run->compilations));
  CALX_TRY(get_int(root, "other_reads", &run->other_reads));
  CALX_TRY(get_number(root, "seconds", &run->seconds));
  return get_number(root, "setup", &run->setup);
}

static calx_status *load_steps(const object *root, cx_debug_run_data *run)
{
  const json_t *array;
  CALX_TRY(get_rows(root, "steps", sizeof *run->steps, &array, &run->steps,
                    &run->n_steps));
  for (size_t i = 0; i < run->n_steps; i++) {
    object o = row_of(array, "steps", i);
    cx_debug_run_step *s = &run->steps[i];
    CALX_TRY(get_int(&o, "first", &s->first));
    CALX_TRY(get_int(&o, "n", &s->n));
    CALX_TRY(get_number(&o, "seconds", &s->seconds));
    run->has_own = json_object_get(o.json, "record") != NULL;
    // The last two are in the file since a version that has both.
    int parts = run->has_own ? CX_PROFILER_PARTS : CX_PROFILER_SYNC;
    for (int k = 0; k < parts; k++) {
      CALX_TRY(get_number(&o, cx_profiler_part_names[k], &s->part[k]));
    }
    if (s->n == 0) return wrong(&o, "n", "a count");
  }
  return NULL;
}

static calx_status *load_compiles(const object *root, cx_debug_run_data *run)
{
  const json_t *array;
  CALX_TRY(get_rows(root, "compiles", sizeof *run->compiles, &array,
                    &run->compiles, &run->n_compiles));
  for (size_t i = 0; i < run->n_compiles; i++) {
    object o = row_of(array, "compiles", i);
    cx_debug_run_compile *c = &run->compiles[i];
    CALX_TRY(get_number(&o, "at", &c->at));
    CALX_TRY(get_number(&o, "seconds", &c->seconds));
    CALX_TRY(get_int(&o, "step", &c->step));
    CALX_TRY(get_int(&o, "nodes", &c->nodes));
    CALX_TRY(get_text(&o, "site", c->site, sizeof c->site));
    CALX_TRY(get_text(&o, "why", c->why, sizeof c->why));
    const json_t *loaded = json_object_get(o.json, "loaded");
    if (!json_is_boolean(loaded)) return wrong(&o, "loaded", "true or false");
    c->loaded = json_is_true(loaded);
  }
  if (run->compilations < (int64_t)run->n_compiles) {
    run->compilations = (int64_t)run->n_compiles;
  }
  return NULL;
}

static calx_status *load_places(const object *root, cx_debug_run_data *run)
{
  const json_t *array;
  CALX_TRY(get_rows(root, "reads", sizeof *run->sites, &array, &run->sites,
                    &run->n_sites));
  for (size_t i = 0; i < run->n_sites; i++) {
    object o = row_of(array, "reads", i);
    cx_debug_run_site *p = &run->sites[i];
    CALX_TRY(get_text(&o, "site", p->site, sizeof p->site));
    CALX_TRY(get_int(&o, "count", &p->count));
    CALX_TRY(get_int(&o, "early", &p->early));
    CALX_TRY(get_number(&o, "seconds", &p->seconds));
  }
  return NULL;
}

static calx_status *load_metric(const object *o, const char *name,
                                cx_debug_read_metric *m)
{
  static const struct {
    const char *key;
    double fraction;
  } points[] = { { "p50", 0.5 }, { "p95", 0.95 }, { "max", 1 } };
  char unit[4];
  cx_text_plain(name, strlen(name), m->name, sizeof m->name);
  CALX_TRY(get_text(o, "unit", unit, sizeof unit));
  m->unit = strcmp(unit, "s") == 0   ? CX_UNIT_NS
            : strcmp(unit, "B") == 0 ? CX_UNIT_BYTES
                                     : CX_UNIT_NONE;
  double scale = m->unit == CX_UNIT_NS ? 1e9 : 1;
  CALX_TRY(get_int(o, "samples", &m->samples));
  CALX_TRY(get_number(o, "sum", &m->accumulator));
  m->accumulator *= scale;
  for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
    if (json_object_get(o->json, points[i].key) == NULL) continue;
    double value;
    CALX_TRY(get_number(o, points[i].key, &value));
    m->fractions[m->n_percentiles] = points[i].fraction;
    m->values[m->n_percentiles++] = value * scale;
  }
  return NULL;
}

static calx_status *get_table(const object *root, const char *key, size_t bytes,
                              json_t **out_table, void *out_rows,
                              size_t *out_capacity)
{
  *out_table = json_object_get(root->json, key);
  if (!json_is_object(*out_table)) return wrong(root, key, "an object");
  size_t n = json_object_size(*out_table);
  if (n > CX_DEBUG_READ_MOST_NAMES) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "%s has %zu names, at most %d are read", key, n,
                    CX_DEBUG_READ_MOST_NAMES);
  }
  void *rows = cx_calloc(n + 1, bytes);
  if (rows == NULL) return cx_out_of_memory();
  memcpy(out_rows, &rows, sizeof rows);
  *out_capacity = n + 1;
  return NULL;
}

static calx_status *load_metrics(const object *root, cx_debug_read_report *r)
{
  json_t *table, *value;
  const char *name;
  CALX_TRY(get_table(root, "metrics", sizeof *r->metrics, &table, &r->metrics,
                     &r->metrics_capacity));
  json_object_foreach(table, name, value)
  {
    object o = { .json = value };
    char shown[61];
    cx_text_plain(name, strlen(name), shown, sizeof shown);
    snprintf(o.where, sizeof o.where, "metrics.%s", shown);
    CALX_TRY(load_metric(&o, name, &r->metrics[r->n_metrics++]));
  }
  CALX_TRY(get_table(root, "counters", sizeof *r->counters, &table,
                     &r->counters, &r->counters_capacity));
  json_object_foreach(table, name, value)
  {
    cx_debug_read_counter *c = &r->counters[r->n_counters++];
    json_int_t n = json_integer_value(value);
    if (!json_is_integer(value) || n > CX_DEBUG_READ_MOST ||
        n < -CX_DEBUG_READ_MOST) {
      object o = { .where = "counters" };
      return wrong(&o, "one", "an integer of at most 1e15");
    }
    cx_text_plain(name, strlen(name), c->name, sizeof c->name);
    c->value = n;
  }
  return NULL;
}

static calx_status *load_json(const char *data, size_t size,
                              cx_debug_run_data *run)
{
  json_error_t error;
  json_t *json = json_loadb(data, size, JSON_REJECT_DUPLICATES, &error);
  if (json == NULL) {
    char text[JSON_ERROR_TEXT_LENGTH];
    cx_text_plain(error.text, strlen(error.text), text, sizeof text);
    return cx_error(CALX_INVALID_ARGUMENT, "line %d: %s", error.line, text);
  }
  object root = { .json = json };
  run->detailed = true;
  run->report.step = -1;
  calx_status *status = load_head(&root, run);
  if (status == NULL) status = load_steps(&root, run);
  if (status == NULL) status = load_compiles(&root, run);
  if (status == NULL) status = load_places(&root, run);
  if (status == NULL) status = load_metrics(&root, &run->report);
  json_decref(json);
  return status;
}

// ---- the file ---------------------------------------------------------------

calx_status *cx_cli_report_load(const char *path, cx_debug_run_data *out)
{
  char *data;
  size_t size;
  *out = (cx_debug_run_data){ 0 };
  CALX_TRY(cx_file_read(path, BIGGEST_FILE, &data, &size));
  size_t at = 0;
  while (at < size && strchr(" \t\r\n", data[at]) != NULL) at++;
  calx_status *status;
  if (at < size && data[at] == '{') {
    status = load_json(data, size, out);
  } else {
    status = cx_debug_report_read(data, size, &out->report);
  }
  cx_free(data);
  if (status != NULL) cx_debug_run_free(out);
  return cx_annotate(status, "while reading '%s'", path);
}
