// profiler/record_file: CALX_REPORT=FILE: the record of a run with all counters
// and timers, as one JSON object, for `calx report FILE`. It is written when
// the devices are closed, the process ends, or SIGINT or SIGTERM comes. All
// devices of the process share the counters and timers; the file says how many
// of them synced.
#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "profiler/internal.h"
#include "profiler/metric.h"
#include "profiler/profiler.h"

const char *const cx_profiler_part_names[] = { "compile",  "execute", "upload",
                                               "download", "wait",    "loader",
                                               "sync",     "record" };

static void seconds(cx_text *out, const char *name, int64_t ns)
{
  cx_json_key_number(out, name, (double)ns / 1e9);
}

// An object in an array, on a line of its own.
static void begin_row(cx_text *out, bool first)
{
  cx_text_append(out, first ? "\n{" : ",\n{");
}

static void print_head(cx_text *out, const cx_profiler_record *r)
{
  cx_trace_ranks here = cx_trace_ranks_here();
  cx_text_char(out, '{');
  cx_json_key_int(out, "calx_report", 1);
  cx_json_key_string(out, "version", CALX_VERSION);
  cx_json_key_string(out, "plugin", r->plugin);
  cx_json_key_string(out, "platform", r->platform);
  cx_json_key_int(out, "rank", here.first);
  cx_json_key_int(out, "world", here.size);
  cx_json_key_int(out, "devices", r->devices);
  seconds(out, "seconds", cx_now_ns() - r->opened);
  seconds(out, "setup", r->setup);
  cx_json_key_int(out, "syncs", r->syncs);
  cx_json_key_int(out, "compilations", r->n_compiles);
  cx_json_key_int(out, "other_reads", r->other_reads);
}

static void print_steps(cx_text *out, const cx_profiler_record *r)
{
  cx_text_append(out, ",\n\"steps\":[");
  for (size_t i = 0; i < r->n_steps; i++) {
    const cx_profiler_record_step *s = &r->steps[i];
    begin_row(out, i == 0);
    cx_json_key_int(out, "first", s->first);
    cx_json_key_int(out, "n", s->n);
    seconds(out, "start", s->start);
    seconds(out, "seconds", s->ns);
    for (int k = 0; k < CX_PROFILER_PARTS; k++) {
      seconds(out, cx_profiler_part_names[k], s->part[k]);
    }
    cx_text_char(out, '}');
  }
  cx_text_char(out, ']');
}

static void print_compiles(cx_text *out, const cx_profiler_record *r)
{
  cx_text_append(out, ",\n\"compiles\":[");
  for (int64_t i = 0; i < r->n_compiles && i < CX_PROFILER_MOST_COMPILES; i++) {
    const cx_profiler_record_compile *c = &r->compiles[i];
    begin_row(out, i == 0);
    seconds(out, "at", c->at);
    seconds(out, "seconds", c->ns);
    cx_json_key_int(out, "step", c->step);
    cx_json_key_int(out, "nodes", c->nodes);
    cx_json_key(out, "loaded");
    cx_text_append(out, c->loaded ? "true" : "false");
    cx_json_key_site(out, "site", c->file, c->line);
    cx_json_key_string(out, "why", c->why);
    cx_text_char(out, '}');
  }
  cx_text_char(out, ']');
}

static void print_reads(cx_text *out, const cx_profiler_record *r)
{
  cx_text_append(out, ",\n\"reads\":[");
  for (size_t i = 0; i < r->n_sites; i++) {
    const cx_profiler_record_site *p = &r->sites[i];
    begin_row(out, i == 0);
    cx_json_key_site(out, "site", p->file, p->line);
    cx_json_key_int(out, "count", p->reads);
    cx_json_key_int(out, "early", p->early);
    seconds(out, "seconds", p->ns);
    cx_text_char(out, '}');
  }
  cx_text_char(out, ']');
}

static void print_metric(cx_text *out, cx_metric *m)
{
  static const struct {
    const char *name;
    double fraction;
  } points[] = { { "p50", 0.5 }, { "p95", 0.95 }, { "max", 1 } };
  static const char *const units[] = {
    [CX_UNIT_NONE] = "", [CX_UNIT_NS] = "s", [CX_UNIT_BYTES] = "B"
  };
  cx_profiler_snapshot s;
  out->failed |= !cx_profiler_snapshot_take(m, &s);
  double unit = s.unit == CX_UNIT_NS ? 1e9 : 1;
  cx_text_char(out, '{');
  cx_json_key_string(out, "unit", units[s.unit]);
  cx_json_key_int(out, "samples", s.total);
  cx_json_key_number(out, "sum", s.accumulator / unit);
  for (size_t i = 0; i < sizeof points / sizeof *points && s.n > 0; i++) {
    double value = cx_profiler_snapshot_at(&s, points[i].fraction);
    cx_json_key_number(out, points[i].name, value / unit);
  }
  cx_text_char(out, '}');
  cx_profiler_snapshot_free(&s);
}

// All of a kind, each by its name.
static void print_entries(cx_text *out, cx_metric_kind kind)
{
  cx_profiler_entries e;
  out->failed |= !cx_profiler_collect(kind, &e);
  cx_text_char(out, '{');
  for (size_t i = 0; i < e.n; i++) {
    cx_json_key(out, e.all[i]->name);
    if (kind == CX_METRICS) {
      print_metric(out, (cx_metric *)e.all[i]);
    } else {
      cx_text_int(out, atomic_load(&((cx_counter *)e.all[i])->value));
    }
  }
  cx_text_char(out, '}');
  cx_free(e.all);
}

calx_status *cx_profiler_record_put(const cx_profiler_record *r,
                                    const char *name)
{
  cx_text out = { 0 };
  print_head(&out, r);
  print_steps(&out, r);
  print_compiles(&out, r);
  print_reads(&out, r);
  cx_text_append(&out, ",\n\"metrics\":");
  print_entries(&out, CX_METRICS);
  cx_text_append(&out, ",\n\"counters\":");
  print_entries(&out, CX_COUNTERS);
  cx_text_append(&out, "}\n");
  char *path = cx_profiler_path_of_rank(name);
  calx_status *status = cx_file_write_text(path, &out);
  cx_free(path);
  cx_text_free(&out);
  return status;
}
