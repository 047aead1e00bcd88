// debug/advise: one function for each item. The limits are stated where they
// are used. They say when a person should look, and are no finer than that.
#include "debug/advise.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "profiler/metric.h"

enum { WARM_UP = CX_DEBUG_WARM_UP, MOST_LINES = 8 };

const char *cx_debug_rating_name(cx_debug_rating v)
{
  static const char *const names[] = { "?", "ok", "look", "slow" };
  return names[v];
}

// ---- what items share -------------------------------------------------------

// A value as people read it, for one message.
typedef struct quantity {
  char text[32];
} quantity;

static quantity shown_as(void (*print)(cx_text *out, double value),
                         double value)
{
  quantity s;
  cx_text text = { 0 };
  print(&text, value);
  snprintf(s.text, sizeof s.text, "%s", cx_text_str(&text));
  cx_text_free(&text);
  return s;
}

static quantity seconds(double value)
{
  return shown_as(cx_profiler_seconds, value);
}

static quantity bytes(double value)
{
  return shown_as(cx_profiler_bytes, value);
}

static void print_share(cx_text *out, double share)
{
  cx_text_real(out, "%.0f", 100 * share);
  cx_text_append(out, " %");
}

static quantity share(double part, double whole)
{
  return shown_as(print_share, whole > 0 ? part / whole : 0);
}

static void print_number(cx_text *out, double value)
{
  cx_text_real(out, "%.3g", value);
}

static int64_t counter(const cx_debug_run_data *r, const char *name)
{
  return cx_debug_report_counter(&r->report, name);
}

// A device's share of what all devices did together: steps are of one device.
// Something stays something.
static int64_t share_of(const cx_debug_run_data *r, int64_t n)
{
  return r->devices > 1 ? n / r->devices + (n % r->devices > 0) : n;
}

// Seconds in all of a timer, and how often, for a device; 0 where it is not in
// the file.
static double total(const cx_debug_run_data *r, const char *name,
                    int64_t *out_n)
{
  const cx_debug_read_metric *m = cx_debug_report_metric(&r->report, name);
  if (out_n != NULL) *out_n = m != NULL ? share_of(r, m->samples) : 0;
  if (m == NULL) return 0;
  double sum =
      r->devices > 1 ? m->accumulator / (double)r->devices : m->accumulator;
  return m->unit == CX_UNIT_NS ? sum / 1e9 : sum;
}

static int64_t step_count(const cx_debug_run_data *r)
{
  return r->detailed ? r->syncs : counter(r, "MarkStep");
}

// Bad where the part is more than `limit` of the whole, else to be looked at.
static cx_debug_rating worse_above(double limit, double part, double whole)
{
  return part > limit * whole ? CX_DEBUG_RATING_BAD : CX_DEBUG_RATING_LOOK;
}

static cx_debug_rating unknown(cx_debug_advice *a, const char *why)
{
  cx_text_append(&a->numbers, why);
  return CX_DEBUG_RATING_UNKNOWN;
}

// ---- the items --------------------------------------------------------------

// The device waits for what the program does beside calx: no batch helps.
static cx_debug_rating own_time(const cx_debug_times *t, cx_debug_advice *a)
{
  cx_text_format(&a->numbers, ", %s of it outside of calx's calls",
                 seconds(t->user).text);
  cx_text_append(&a->advice,
                 "the program spends most of this outside of calx (sleeping, "
                 "computing, printing, files): do it less often or on another "
                 "thread; CALX_PROFILE=FILE shows where");
  return worse_above(0.5, t->user, t->step);
}

static cx_debug_rating execution_alone(const cx_debug_run_data *r,
                                       cx_debug_advice *a)
{
  int64_t n;
  double sum = total(r, "ExecuteTime", &n);
  if (n == 0) return unknown(a, "nothing was executed");
  cx_text_format(&a->numbers,
                 "an execution takes %s; how long a step takes is not in the "
                 "file",
                 seconds(sum / (double)n).text);
  return CX_DEBUG_RATING_UNKNOWN;
}

// The device's part of a step grows with the batch, the program's own does not.
// So the batch is small where the device idles for more than a quarter of a
// step, and neither input nor compilation is the reason.
static cx_debug_rating batch_size(const cx_debug_run_data *r,
                                  cx_debug_advice *a)
{
  cx_debug_times t = cx_debug_run_times(r);
  if (t.steps == 0) return execution_alone(r, a);
  double works = t.part[CX_PROFILER_EXECUTE];
  cx_text_format(&a->numbers, "the device works %s of a step's %s (%s)",
                 seconds(works).text, seconds(t.step).text,
                 share(works, t.step).text);
  double idle =
      t.step - works - t.part[CX_PROFILER_COMPILE] - t.part[CX_PROFILER_LOADER];
  if (!(idle > 0.25 * t.step) || works >= 0.6 * t.step) {
    return CX_DEBUG_RATING_GOOD;
  }
  cx_text_format(&a->numbers,
                 " and idles %s while the program does its own part",
                 seconds(idle).text);
  if (t.user > 0.5 * idle) return own_time(&t, a);
  cx_text_append(&a->advice,
                 "the program's own part does not grow with the batch: a "
                 "larger one keeps the device busy; CALX_PROFILE=FILE shows "
                 "what the program does meanwhile");
  return worse_above(0.5, idle, t.step);
}

static void list_sites(const cx_debug_run_data *r, cx_text *out)
{
  for (size_t i = 0; i < r->n_sites && i < MOST_LINES; i++) {
    const cx_debug_run_site *p = &r->sites[i];
    cx_text_format(out, "%s  %" PRId64 " times, %s", p->site, p->count,
                   seconds(p->seconds).text);
    if (p->early > 0) {
      cx_text_format(out, ", %" PRId64 " of them before the sync", p->early);
    }
    cx_text_char(out, '\n');
  }
  if (r->n_sites > MOST_LINES) {
    cx_text_format(out, "and %zu call sites more\n", r->n_sites - MOST_LINES);
  }
  if (r->other_reads > 0) {
    cx_text_format(out,
                   "and %" PRId64 " times at call sites that are not listed\n",
                   r->other_reads);
  }
}

// More than one value in two steps, and more than 5 % of the time: slow. So is
// what is read before the sync, but for an evaluation now and then.
static cx_debug_rating reading(const cx_debug_run_data *r, cx_debug_advice *a)
{
  int64_t n, steps = step_count(r), early = 0;
  double sum = total(r, "TransferFromDeviceTime", &n);
  int64_t items = share_of(r, counter(r, "aten::_local_scalar_dense"));
  cx_debug_times t = cx_debug_run_times(r);
  for (size_t i = 0; i < r->n_sites; i++) early += r->sites[i].early;
  if (steps == 0) return unknown(a, "no step is in the file");
  cx_text_format(&a->numbers,
                 "%" PRId64 " values read in %" PRId64 " steps (%" PRId64
                 " by calx_item), %s in all",
                 n, steps, items, seconds(sum).text);
  double download = t.part[CX_PROFILER_DOWNLOAD];
  if (t.steps > 0) {
    cx_text_format(&a->numbers, ", %s of a step", share(download, t.step).text);
  }
  bool often = (double)n > 0.5 * (double)steps;
  bool costly = t.steps > 0 && download > 0.05 * t.step;
  bool twice = (double)early > 0.1 * (double)steps;
  if (!often && !twice) return CX_DEBUG_RATING_GOOD;
  list_sites(r, &a->details);
  if (twice) {
    cx_text_append(&a->advice,
                   "what is read before the sync runs twice: read it after the "
                   "sync that names it; ");
  }
  cx_text_append(&a->advice,
                 "read values every so many steps, or a step late when "
                 "calx_is_ready: until a value is read, the program runs ahead "
                 "of the device");
  return costly || twice ? CX_DEBUG_RATING_BAD : CX_DEBUG_RATING_LOOK;
}

static void list_recompiles(const cx_debug_run_data *r, cx_text *out)
{
  size_t shown = 0;
  for (size_t i = 0; i < r->n_compiles; i++) {
    const cx_debug_run_compile *c = &r->compiles[i];
    bool known = c->why[0] != '\0';
    if ((!known && c->step <= WARM_UP) || shown++ >= MOST_LINES) continue;
    cx_text_format(out, "step %" PRId64 ", %s, %s: %s\n", c->step, c->site,
                   seconds(c->seconds).text,
                   known ? c->why : "one of the first there");
  }
  if (shown > MOST_LINES) {
    cx_text_format(out, "and %zu more\n", shown - MOST_LINES);
  }
}

// A program a step after the warm-up, in more than 5 % of them: slow.
static cx_debug_rating shapes(const cx_debug_run_data *r, cx_debug_advice *a)
{
  int64_t steps = step_count(r), late = 0;
  int64_t n = share_of(r, counter(r, "UncachedCompile"));
  if (n == 0) total(r, "CompileTime", &n);
  if (n == 0) return unknown(a, "nothing was compiled");
  for (size_t i = 0; i < r->n_compiles; i++) {
    late += r->compiles[i].step > WARM_UP;
  }
  late += r->compilations - (int64_t)r->n_compiles;  // those not listed
  cx_text_format(&a->numbers, "%" PRId64 " programs in %" PRId64 " steps", n,
                 steps);
  if (r->detailed) {
    cx_text_format(&a->numbers, ", %" PRId64 " of them after step %d", late,
                   WARM_UP);
  } else {
    late = n > WARM_UP ? n - WARM_UP : 0;
  }
  list_recompiles(r, &a->details);
  if (late == 0) return CX_DEBUG_RATING_GOOD;
  cx_text_append(&a->advice,
                 "each other shape is another program: pad batches to one "
                 "size or a few, drop the last short one (.drop_last); "
                 "CALX_RECOMPILE=error names the first");
  return worse_above(0.05, (double)late, (double)steps);
}

// Uploads that take more than a fifth of a step, although they may overlap it.
static cx_debug_rating transfers(const cx_debug_run_data *r, cx_debug_advice *a)
{
  int64_t n, steps = step_count(r);
  double sum = total(r, "TransferToDeviceTime", &n);
  double sent = total(r, "OutboundData", NULL);
  if (n == 0) return unknown(a, "nothing was transferred");
  cx_text_format(&a->numbers, "%" PRId64 " transfers to the device, %s in %s",
                 n, bytes(sent).text, seconds(sum).text);
  if (sum > 0) {
    cx_text_format(&a->numbers, ", %s a second", bytes(sent / sum).text);
  }
  if (steps > 0) {
    cx_text_format(&a->numbers, ", %s a step",
                   shown_as(print_number, (double)n / (double)steps).text);
  }
  cx_debug_times t = cx_debug_run_times(r);
  if (t.steps == 0) return CX_DEBUG_RATING_UNKNOWN;
  double upload = t.part[CX_PROFILER_UPLOAD];
  if (upload <= 0.2 * t.step) return CX_DEBUG_RATING_GOOD;
  cx_text_append(&a->advice,
                 "upload less (small types, converted on the device), and "
                 "through a loader, whose threads do it ahead of use");
  return worse_above(0.5, upload, t.step);
}

// More than a fifth of the run, or of one program more than five minutes.
static cx_debug_rating compilation(const cx_debug_run_data *r,
                                   cx_debug_advice *a)
{
  int64_t n, hits = share_of(r, counter(r, "PersistentCacheHit"));
  double sum = total(r, "CompileTime", &n), longest = 0;
  const cx_debug_read_metric *m =
      cx_debug_report_metric(&r->report, "CompileTime");
  if (n == 0) return unknown(a, "nothing was compiled");
  for (size_t i = 0; i < m->n_percentiles; i++) {
    longest = fmax(longest, m->values[i] / 1e9);
  }
  cx_text_format(&a->numbers, "%" PRId64 " compilations, %s", n,
                 seconds(sum).text);
  if (r->seconds > 0) {
    cx_text_format(&a->numbers, " (%s of the run)",
                   share(sum, r->seconds).text);
  }
  cx_text_format(&a->numbers,
                 ", the longest %s; %" PRId64 " came from the disk cache",
                 seconds(longest).text, hits);
  bool much = r->seconds > 0 && sum > 0.2 * r->seconds && sum > 1;
  if (!much && longest <= 60) return CX_DEBUG_RATING_GOOD;
  cx_text_append(&a->advice,
                 hits < n ? "the disk cache keeps programs for the next run "
                            "(CALX_CACHE_DIR); "
                          : "");
  cx_text_append(&a->advice,
                 "sync inside of long loops, so that a program is one step");
  return longest > 300 || (much && hits < n) ? CX_DEBUG_RATING_BAD
                                             : CX_DEBUG_RATING_LOOK;
}

// Counters of ops that ran elsewhere than they should.
static cx_debug_rating fallbacks(const cx_debug_run_data *r, cx_debug_advice *a)
{
  int64_t host = 0, slow = counter(r, "CpuInterpretedOps");
  for (size_t i = 0; i < r->report.n_counters; i++) {
    const cx_debug_read_counter *c = &r->report.counters[i];
    if (!cx_profiler_is_fallback(c->name) ||
        strcmp(c->name, "aten::_local_scalar_dense") == 0) {
      continue;
    }
    host += c->value;
    cx_text_format(&a->details, "%s  %" PRId64 " times\n", c->name, c->value);
  }
  if (r->report.n_counters == 0) {
    return unknown(a, "there are no counters in the file");
  }
  cx_text_format(&a->numbers,
                 "%" PRId64 " ops ran on the host, %" PRId64
                 " of the compiled ones are interpreted",
                 host, slow);
  if (host == 0 && slow == 0) return CX_DEBUG_RATING_GOOD;
  cx_text_append(&a->advice,
                 host > 0 ? "each moves its operands to the host and back: "
                            "write it with other ops"
                          : "the CPU engine names them when it compiles: write "
                            "them with other ops where they are large");
  return host > 0 ? CX_DEBUG_RATING_BAD : CX_DEBUG_RATING_LOOK;
}

// More than a tenth of a step, or a quarter.
static cx_debug_rating input(const cx_debug_run_data *r, cx_debug_advice *a)
{
  int64_t n;
  double sum = total(r, "LoaderWait", &n);
  if (n == 0) return unknown(a, "no loader's batch was waited for");
  cx_text_format(&a->numbers, "%" PRId64 " batches were waited for, %s in all",
                 n, seconds(sum).text);
  cx_debug_times t = cx_debug_run_times(r);
  if (t.steps == 0) return CX_DEBUG_RATING_UNKNOWN;
  double loader = t.part[CX_PROFILER_LOADER];
  cx_text_format(&a->numbers, ", %s of a step", share(loader, t.step).text);
  if (loader <= 0.1 * t.step) return CX_DEBUG_RATING_GOOD;
  cx_text_append(&a->advice,
                 "more threads fill batches (.num_workers), more batches wait "
                 "(.prefetch), or samples are prepared once and kept");
  return worse_above(0.25, loader, t.step);
}

// ---- public -----------------------------------------------------------------

void cx_debug_advise(const cx_debug_run_data *run, cx_debug_advice *out)
{
  static const struct {
    const char *item;
    cx_debug_rating (*judge)(const cx_debug_run_data *run, cx_debug_advice *a);
  } items[CX_DEBUG_ADVICE_ITEMS] = {
    { "batch size", batch_size },   { "reading values", reading },
    { "changing shapes", shapes },  { "link to the device", transfers },
    { "compilation", compilation }, { "ops on the host", fallbacks },
    { "waiting for input", input },
  };
  for (int i = 0; i < CX_DEBUG_ADVICE_ITEMS; i++) {
    out[i] = (cx_debug_advice){ .item = items[i].item };
    out[i].rating = items[i].judge(run, &out[i]);
  }
}

void cx_debug_advice_free(cx_debug_advice *advice)
{
  for (int i = 0; i < CX_DEBUG_ADVICE_ITEMS; i++) {
    cx_text_free(&advice[i].numbers);
    cx_text_free(&advice[i].advice);
    cx_text_free(&advice[i].details);
  }
}
