// cli/doctor_plugins: which plugins there are, and what each says of itself.
//
// A plugin may hang or end its process. So this process loads none: a child of
// its own asks each one, and has a time limit for each answer.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/file.h"
#include "base/status.h"
#include "doctor.h"
#include "doctor_probe.h"
#include "lines.h"
#include "pjrt/internal.h"
#include "worker.h"

enum { MOST_PLUGINS = 32 };

typedef struct plugin_list {
  char *paths[MOST_PLUGINS];  // of those that were asked
  size_t n;
} plugin_list;

// ---- what to do about a failure ---------------------------------------------

// By what is in a plugin's, the loader's or the engine's own words.
static const char *advice_on(const char *failure)
{
  static const struct {
    const char *words, *advice;
  } rows[] = {
    { "LLVM", "apt-get install libllvm19" },
    { "libdnnl", "apt-get install libdnnl2" },
    { "libcalx_jit.so", "it lies beside libcalx.so where calx is installed" },
    { "already in use", "calx doctor --kill ends the process that has it" },
    { "No jellyfish device", "this machine shows no TPU: run on a TPU VM" },
    { "No visible GPU",
      "nvidia-smi must show a card, and "
      "CUDA_VISIBLE_DEVICES must not hide it" },
    { "libcuda.so",
      "install the driver of NVIDIA; nvidia-smi tells whether it "
      "works" },
    { "libcud", "its folder must be in LD_LIBRARY_PATH" },
    { "libnccl", "its folder must be in LD_LIBRARY_PATH" },
    { "GLIBC", "it was built for a newer system than this one" },
    { "undefined symbol", "it was built for other versions of its libraries" },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (strstr(failure, rows[i].words) != NULL) return rows[i].advice;
  }
  return NULL;
}

static void report_failure(cx_cli_doctor_state *d, cx_cli_verdict verdict,
                           const char *name, const char *failure)
{
  const char *advice = advice_on(failure);
  cx_cli_doctor_find(d, verdict, "plugins", "%s: %s%s%s", name, failure,
                     advice != NULL ? " -> " : "",
                     advice != NULL ? advice : "");
}

// ---- questions to a child ---------------------------------------------------

// Whether the child answered with success; else out is the reason.
static bool question(const cx_cli_doctor_state *d, cx_cli_worker *w,
                     const char *text, cx_text *out)
{
  if (w->pid == 0) return false;
  cx_text line = { 0 };
  cx_text_append(&line, text);
  cx_cli_worker_tell(w, &line);
  cx_text_free(&line);
  cx_text said = { 0 };
  const cx_cli_heard heard = cx_cli_worker_hear(w, d->time_out, &said);
  const char *answer = cx_text_str(&said);
  bool ok = false;
  cx_text_clear(out);
  if (heard == CX_CLI_LATE) {
    cx_text_format(out, "it did not answer '%s' within ", text);
    cx_text_real(out, "%.3g s", d->time_out);
  } else if (heard == CX_CLI_CRASHED) {
    cx_text_format(out, "it ended its process when asked '%s' (%s)", text,
                   answer);
  } else {
    ok = strncmp(answer, CX_CLI_PROBE_OK, strlen(CX_CLI_PROBE_OK)) == 0;
    cx_text_append(out, ok ? answer + strlen(CX_CLI_PROBE_OK) : answer);
  }
  cx_text_free(&said);
  return ok;
}

static bool start_child(cx_cli_doctor_state *d, const char *plugin,
                        cx_cli_worker *w)
{
  const cx_cli_runner runner = { .plugin = plugin,
                                 .replicas = 1,
                                 .opens_later = true };
  cx_text said = { 0 };
  calx_status *status = cx_cli_worker_start(w, &runner, cx_cli_probe_answer);
  bool ready = status == NULL &&
               cx_cli_worker_hear(w, d->time_out, &said) == CX_CLI_ANSWERED;
  if (!ready) {
    cx_cli_doctor_find(
        d, CX_CLI_WRONG, "plugins", "no child process: %s",
        status != NULL ? calx_status_message(status) : cx_text_str(&said));
    cx_cli_worker_stop(w);
  }
  calx_status_free(status);
  cx_text_free(&said);
  return ready;
}

// ---- one plugin -------------------------------------------------------------

// The engine works without oneDNN, on slower loops of its own.
static void check_libraries(cx_cli_doctor_state *d, const char *loaded,
                            bool is_interpreted)
{
  cx_text_format(&d->facts, "  libraries: %s\n", loaded);
  if (is_interpreted || strstr(loaded, "libdnnl") != NULL) return;
  cx_cli_doctor_find(d, CX_CLI_NOTE, "plugins",
                     "calx: libdnnl.so.2 does not load, and convolutions are "
                     "slow without it -> apt-get install libdnnl2");
}

// used: by a program of this environment or for a device that is here. Else a
// failure is only a fact.
static void ask(cx_cli_doctor_state *d, const char *name,
                const cx_pjrt_choice *choice, bool used)
{
  cx_cli_worker w = { 0 };
  cx_text said = { 0 }, devices = { 0 };
  const char *plugin = choice->embedded ? choice->name : choice->path;
  cx_text_format(&d->facts, "plugin %s: %s\n", name, choice->path);
  if (!start_child(d, plugin, &w)) return;
  bool ok = question(d, &w, "version", &said);
  if (ok) cx_text_format(&d->facts, "  %s\n", cx_text_str(&said));
  ok = ok && question(d, &w, "devices", &said);
  if (ok) {
    cx_text_format(&d->facts, "  %s\n", cx_text_str(&said));
    cx_text_append(&devices, cx_text_str(&said));
    ok = question(d, &w, "run", &said);
  }
  if (ok && choice->embedded) {
    check_libraries(d, cx_text_str(&said),
                    strstr(cx_text_str(&devices), ", interpreted") != NULL);
  }
  if (ok) {
    cx_cli_doctor_find(d, CX_CLI_FINE, "plugins", "%s: %s", name,
                       cx_text_str(&devices));
  } else {
    cx_text_format(&d->facts, "  %s\n", cx_text_str(&said));
    report_failure(d, used ? CX_CLI_WRONG : CX_CLI_NOTE, name,
                   cx_text_str(&said));
  }
  cx_cli_worker_stop(&w);
  cx_text_free(&said);
  cx_text_free(&devices);
}

// ---- all of them ------------------------------------------------------------

static bool is_new(plugin_list *list, const char *path)
{
  for (size_t i = 0; i < list->n; i++) {
    if (strcmp(list->paths[i], path) == 0) return false;
  }
  if (list->n == MOST_PLUGINS) return false;
  char *copy = cx_strdup(path);
  if (copy != NULL) list->paths[list->n++] = copy;
  return copy != NULL;
}

// What a program would use that names nothing itself.
static void look_at_choice(cx_cli_doctor_state *d, plugin_list *list)
{
  cx_pjrt_choice choice;
  cx_cli_doctor_path dev = cx_cli_doctor_at(d, "/dev");
  calx_status *status = cx_pjrt_find(NULL, dev.s, &choice);
  if (status != NULL) {
    report_failure(d, CX_CLI_WRONG, "chosen", calx_status_message(status));
    calx_status_free(status);
    return;
  }
  if (choice.unused != NULL) {
    cx_cli_doctor_find(d, CX_CLI_WRONG, "plugins", "%s", choice.unused);
  }
  const char *name = choice.name != NULL ? choice.name : choice.path;
  cx_text_format(
      &d->facts, "chosen: %s (%s)\n", name,
      choice.automatic ? "by what the machine has" : "by the environment");
  if (is_new(list, choice.path)) ask(d, name, &choice, true);
  cx_pjrt_choice_free(&choice);
}

static void look_at_name(cx_cli_doctor_state *d, const char *name, bool is_here,
                         plugin_list *list)
{
  cx_pjrt_choice choice;
  calx_status *status = cx_pjrt_find(name, "/dev", &choice);
  if (status != NULL) {
    bool absent = calx_status_code(status) == CALX_NOT_FOUND;
    if (absent) cx_text_format(&d->facts, "plugin %s: not found\n", name);
    if (!absent) {
      report_failure(d, CX_CLI_WRONG, name, calx_status_message(status));
    }
    calx_status_free(status);
    return;
  }
  if (is_new(list, choice.path)) ask(d, name, &choice, is_here);
  cx_pjrt_choice_free(&choice);
}

// The names in "name:/path,name2:/path2".
static void look_at_registered(cx_cli_doctor_state *d, plugin_list *names)
{
  const char *list = cx_env_text("PJRT_NAMES_AND_LIBRARY_PATHS");
  while (list != NULL && *list != '\0') {
    size_t n = strcspn(list, ":,");
    char name[64];
    if (n > 0 && n < sizeof name && list[n] == ':') {
      snprintf(name, sizeof name, "%.*s", (int)n, list);
      look_at_name(d, name, true, names);
    }
    list += strcspn(list, ",");
    if (*list == ',') list++;
  }
}

void cx_cli_doctor_plugins(cx_cli_doctor_state *d)
{
  plugin_list list = { .n = 0 };
  cx_cli_doctor_path dev = cx_cli_doctor_at(d, "/dev");
  cx_cli_doctor_path card = cx_cli_doctor_at(d, "/dev/nvidia0");
  look_at_choice(d, &list);
  look_at_name(d, "calx", true, &list);
  look_at_name(d, "tpu", cx_pjrt_has_tpu(dev.s), &list);
  look_at_name(d, "cuda", cx_file_exists(card.s), &list);
  look_at_name(d, "xla-cpu", false, &list);
  look_at_registered(d, &list);
  for (size_t i = 0; i < list.n; i++) cx_free(list.paths[i]);
}
