// train/device_stats: memory of the device, and load of the host, as logged
// values.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/options.h"
#include "calx/callbacks_training.h"
#include "lazy/lazy.h"
#include "train/internal.h"

// What the host's CPUs have done, in ticks of all of them.
typedef struct host_time {
  double busy, all;
} host_time;

typedef struct device_stats {
  int cpu_stats;  // 1, 0; -1: where the device is a CPU
  host_time last;
  bool has_last;
} device_stats;

static void begin(void *self, void *user)
{
  ((device_stats *)self)->cpu_stats = *(const int *)user;
}

// ---- the host ---------------------------------------------------------------

enum { MOST_BYTES = 1 << 20 };

// "MemTotal:  16384 kB". Missing: 0.
static double number_after(const char *text, const char *name)
{
  const char *at = strstr(text, name);
  return at != NULL ? strtod(at + strlen(name), NULL) : 0;
}

static double percent(double part, double all)
{
  return all > 0 ? 100 * part / all : 0;
}

// "cpu  user nice system idle iowait irq softirq steal". Source: proc(5).
static host_time parse_time(const char *text)
{
  host_time t = { 0 };
  char *at = (char *)text + strcspn(text, " ");
  for (int i = 0; i < 8; i++) {
    char *end;
    const double ticks = strtod(at, &end);
    if (end == at) break;
    at = end;
    t.all += ticks;
    if (i != 3 && i != 4) t.busy += ticks;
  }
  return t;
}

// Since the last call; 0 at the first. Source: psutil.cpu_percent.
static double cpu_percent(device_stats *s, const char *text)
{
  const host_time now = parse_time(text), last = s->last;
  const bool is_first = !s->has_last;
  s->last = now;
  s->has_last = true;
  return is_first ? 0 : percent(now.busy - last.busy, now.all - last.all);
}

static calx_status *read_proc(const char *path, char **out)
{
  size_t size;
  return cx_file_read(path, MOST_BYTES, out, &size);
}

// ---- rows -------------------------------------------------------------------

enum { MOST_STATS = 6 };
typedef struct stat_list {
  calx_logged_value values[MOST_STATS];
  char names[MOST_STATS][80];
  size_t n;
} stat_list;

static void put(stat_list *l, const char *hook, const char *name, double value)
{
  char *full = l->names[l->n];
  snprintf(full, sizeof l->names[0], "DeviceStatsMonitor.%s/%s", hook, name);
  l->values[l->n++] = (calx_logged_value){ .name = full, .value = value };
}

static void put_bytes(stat_list *l, const char *hook, const char *name,
                      int64_t bytes)
{
  if (bytes >= 0) put(l, hook, name, (double)bytes);
}

// A plugin without statistics is no reason to end a run.
static void put_device(stat_list *l, const char *hook)
{
  calx_memory_info info;
  calx_status *status = calx_device_memory(calx_device_current(), &info);
  if (status != NULL) {
    cx_log_once_per_site("DeviceStatsMonitor",
                         "DeviceStatsMonitor: nothing is known of the device: "
                         "%s",
                         calx_status_message(status));
    calx_status_free(status);
    return;
  }
  put_bytes(l, hook, "bytes_in_use", info.bytes_in_use);
  put_bytes(l, hook, "peak_bytes_in_use", info.peak_bytes_in_use);
  put_bytes(l, hook, "bytes_limit", info.bytes_limit);
}

static calx_status *put_host(device_stats *s, stat_list *l, const char *hook)
{
  char *text;
  CALX_TRY(read_proc("/proc/meminfo", &text));
  const double memory = number_after(text, "MemTotal:"),
               swap = number_after(text, "SwapTotal:");
  const double available = number_after(text, "MemAvailable:"),
               swap_free = number_after(text, "SwapFree:");
  cx_free(text);
  put(l, hook, "cpu_vm_percent", percent(memory - available, memory));
  put(l, hook, "cpu_swap_percent", percent(swap - swap_free, swap));
  CALX_TRY(read_proc("/proc/stat", &text));
  put(l, hook, "cpu_percent", cpu_percent(s, text));
  cx_free(text);
  return NULL;
}

static bool wants_host(const device_stats *s)
{
  if (s->cpu_stats >= 0) return s->cpu_stats > 0;
  return strstr(calx_device_platform(calx_device_current()), "cpu") != NULL;
}

static calx_status *log_stats(calx_trainer *t, device_stats *s)
{
  if (!cx_train_logs_now(t)) return NULL;
  stat_list l = { .n = 0 };
  const char *hook = t->hook->name;
  put_device(&l, hook);
  if (wants_host(s)) CALX_TRY(put_host(s, &l, hook));
  return cx_train_log_row(t, l.values, l.n);
}

// ---- hooks ------------------------------------------------------------------

static void setup(calx_trainer *t, void *self)
{
  (void)self;
  if (t->asked != CX_TRAIN_FITTING || t->n_loggers > 0 ||
      t->config.fast_dev_run > 0) {
    return;
  }
  cx_lazy_scope_pin(cx_invalid(
      "Cannot use `DeviceStatsMonitor` callback with `Trainer(logger=False)`."));
}

static void on_batch(calx_trainer *t, void *self, const calx_batch *batch,
                     int64_t batch_idx)
{
  (void)batch, (void)batch_idx;
  cx_lazy_scope_pin(log_stats(t, self));
}

calx_callback *calx_device_stats_monitor_with(
    const calx_device_stats_monitor_options *options)
{
  calx_device_stats_monitor_options o;
  calx_status *status =
      cx_options_take("device_stats_monitor", options, &o, sizeof o);
  int *cpu_stats = cx_alloc(sizeof *cpu_stats);
  if (status == NULL && cpu_stats == NULL) status = cx_out_of_memory();
  if (status == NULL) {
    *cpu_stats = o.cpu_stats == 0 ? -1 : o.cpu_stats != INT32_MIN;
  }
  calx_callback *c =
      calx_callback_new(.self_size = sizeof(device_stats), .user = cpu_stats,
                        .begin = begin,
                        .hooks = { .setup = setup,
                                   .on_train_batch_start = on_batch,
                                   .on_train_batch_end = on_batch,
                                   .on_validation_batch_start = on_batch,
                                   .on_validation_batch_end = on_batch,
                                   .on_test_batch_start = on_batch,
                                   .on_test_batch_end = on_batch });
  return cx_train_callback_finish(c, "DeviceStatsMonitor",
                                  CX_TRAIN_CALLBACK_OTHER, status, cpu_stats,
                                  cx_free);
}
