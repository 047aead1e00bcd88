// loggers/machine: see machine.h. What the system does not report has no row.
#include "loggers/machine.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/html.h"
#include "base/trace.h"
#include "calx/device.h"
#include "lazy/lazy.h"
#include "pjrt/pjrt.h"
#include "profiler/metric.h"

// ---- devices ----------------------------------------------------------------

static void copy(char *out, size_t size, const char *from)
{
  if (from != NULL) cx_text_plain(from, strlen(from), out, size);
}

void cx_loggers_devices_find(cx_loggers_devices *d)
{
  if (d->are_known || !cx_lazy_devices_are_open()) return;
  const cx_pjrt_client *c = cx_lazy_device_client(calx_device_current());
  d->are_known = true;
  d->count = cx_pjrt_client_device_count(c);
  d->ranks = cx_trace_ranks_here().size;
  copy(d->kind, sizeof d->kind, cx_pjrt_client_device(c, 0)->kind);
  copy(d->platform, sizeof d->platform, cx_pjrt_client_platform(c));
  copy(d->platform_version, sizeof d->platform_version,
       cx_pjrt_client_platform_version(c));
  copy(d->plugin, sizeof d->plugin,
       cx_pjrt_plugin_name(cx_pjrt_client_plugin(c)));
}

static void put_devices(cx_text *out, const cx_loggers_devices *d)
{
  char text[160];
  if (!d->are_known) {
    cx_html_pair(out, "Devices", "none was open");
    return;
  }
  snprintf(text, sizeof text, "%zu \xc3\x97 %s", d->count, d->kind);
  cx_html_pair(out, "Devices", text);
  snprintf(text, sizeof text, "%d", d->ranks);
  cx_html_pair(out, "Ranks", text);
  snprintf(text, sizeof text, "%s, platform %s", d->plugin, d->platform);
  cx_html_pair(out, "Plugin", text);
  if (d->platform_version[0] != '\0') {
    cx_html_pair(out, "Platform version", d->platform_version);
  }
}

// ---- the machine ------------------------------------------------------------

static void put_program(cx_text *out)
{
  char path[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  if (n > 0) {
    path[n] = '\0';
    cx_html_pair(out, "Program", path);
  }
  if (getcwd(path, sizeof path) != NULL) cx_html_pair(out, "Folder", path);
}

// The first "model name" of /proc/cpuinfo; false: the file has none.
static bool find_model(char *out, size_t size)
{
  static const char name[] = "\nmodel name";
  char *data;
  size_t bytes;
  calx_status *status =
      cx_file_read("/proc/cpuinfo", (size_t)1 << 24, &data, &bytes);
  if (status != NULL) {
    calx_status_free(status);
    return false;
  }
  const char *line = strstr(data, name);
  const char *text = line != NULL ? strchr(line, ':') : NULL;
  if (text != NULL) {
    text += 1 + strspn(text + 1, " \t");
    cx_text_plain(text, strcspn(text, "\n"), out, size);
  }
  cx_free(data);
  return text != NULL;
}

static void put_processor(cx_text *out)
{
  char model[128] = "";
  cx_text text = { 0 };
  if (find_model(model, sizeof model)) cx_text_format(&text, "%s, ", model);
  cx_text_format(&text, "%ld online", sysconf(_SC_NPROCESSORS_ONLN));
  cx_html_pair(out, "Processors", cx_text_str(&text));
  struct sysinfo info;
  if (sysinfo(&info) == 0) {
    cx_text_clear(&text);
    cx_profiler_bytes(&text, (double)info.totalram * info.mem_unit);
    cx_html_pair(out, "Memory", cx_text_str(&text));
  }
  out->failed |= text.failed;
  cx_text_free(&text);
}

static void put_system(cx_text *out)
{
  struct utsname name;
  char text[256];
  if (uname(&name) != 0) return;
  cx_html_pair(out, "Host", name.nodename);
  snprintf(text, sizeof text, "%s %s, %s", name.sysname, name.release,
           name.machine);
  cx_html_pair(out, "System", text);
}

void cx_loggers_put_machine(cx_text *out, const cx_loggers_devices *devices)
{
  put_devices(out, devices);
  put_program(out);
  put_system(out);
  put_processor(out);
  cx_html_pair(out, "calx", CALX_VERSION);
}
