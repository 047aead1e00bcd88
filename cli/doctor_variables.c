// cli/doctor_variables: environment variables that are misspelt, hold what they
// cannot, contradict each other, or have no effect any more.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/file.h"
#include "base/options.h"
#include "base/status.h"
#include "doctor.h"
#include "doctor_names.h"
#include "launcher/spawn.h"
#include "pjrt/internal.h"
#include "world/world.h"

extern char **environ;

// The values of these are nobody's business.
static const char *shown(const char *name, const char *value)
{
  return strstr(name, "TOKEN") != NULL ? "…" : value;
}

static void wrong(cx_cli_doctor_state *d, calx_status *status)
{
  if (status == NULL) return;
  cx_cli_doctor_find(d, CX_CLI_WRONG, "variables", "%s",
                     calx_status_message(status));
  calx_status_free(status);
}

// ---- names ------------------------------------------------------------------

static bool begins(const char *text, const char *with)
{
  return strncmp(text, with, strlen(with)) == 0;
}

// Other programs have variables that begin as these do: of those only a name
// that is nearly ours is told.
static bool is_others(const char *name)
{
  return !begins(name, "CALX_");
}

static void check_name(cx_cli_doctor_state *d, const char *name)
{
  if (!begins(name, "CALX_") && !begins(name, "PJRT_") &&
      !begins(name, "CPU_NUM") && !begins(name, "MASTER_")) {
    return;
  }
  if (cx_cli_variable_is_known(name)) return;
  const char *nearest = cx_cli_variable_nearest(name);
  if (nearest != NULL) {
    cx_cli_doctor_find(d, CX_CLI_WRONG, "variables",
                       "%s is none that calx reads -> is %s meant?", name,
                       nearest);
  } else if (!is_others(name)) {
    cx_cli_doctor_find(d, CX_CLI_WRONG, "variables",
                       "%s is none that calx reads -> unset it", name);
  }
}

static void check_names(cx_cli_doctor_state *d)
{
  for (char **v = environ; v != NULL && *v != NULL; v++) {
    char name[128];
    size_t n = strcspn(*v, "=");
    if (n >= sizeof name) continue;
    cx_text_plain(*v, n, name, sizeof name);
    check_name(d, name);
  }
}

// ---- values -----------------------------------------------------------------

static void check_value(cx_cli_doctor_state *d, const cx_cli_variable *v,
                        const char *value)
{
  char plain[128];
  const char *text = shown(v->name, value);
  cx_text_plain(text, strlen(text), plain, sizeof plain);
  if (v->kind == CX_CLI_FILE && !cx_file_exists(value)) {
    cx_cli_doctor_find(d, CX_CLI_WRONG, "variables",
                       "%s: there is no '%s' -> correct or unset it", v->name,
                       plain);
  }
  if (cx_cli_variable_takes(v, value)) return;
  cx_text wanted = { 0 };
  switch (v->kind) {
    case CX_CLI_NUMBER:
      cx_text_append(&wanted, "a number from ");
      cx_text_int(&wanted, v->least);
      if (v->most < INT64_MAX) {
        cx_text_append(&wanted, " to ");
        cx_text_int(&wanted, v->most);
      } else {
        cx_text_append(&wanted, " on");
      }
      break;
    case CX_CLI_SECONDS: cx_text_append(&wanted, "a number of seconds"); break;
    case CX_CLI_BYTES: cx_text_append(&wanted, "bytes, as 500M or 2G"); break;
    default: cx_text_format(&wanted, "one of %s", v->words);
  }
  cx_cli_doctor_find(d, CX_CLI_WRONG, "variables", "%s is '%s' -> %s is wanted",
                     v->name, plain, cx_text_str(&wanted));
  cx_text_free(&wanted);
}

static void check_values(cx_cli_doctor_state *d)
{
  const cx_cli_variable *v;
  for (size_t i = 0; (v = cx_cli_variable_at(i)) != NULL; i++) {
    const char *value = cx_env_text(v->name);
    if (value != NULL) check_value(d, v, value);
  }
}

// ---- which device -----------------------------------------------------------

// The name of the plugin that a name or path means; empty: none.
static void name_plugin(const char *wanted, char out[PATH_MAX])
{
  cx_pjrt_choice choice;
  calx_status *status = cx_pjrt_find(wanted, "/dev", &choice);
  out[0] = '\0';
  if (status == NULL) snprintf(out, PATH_MAX, "%s", choice.path);
  cx_pjrt_choice_free(&choice);
  calx_status_free(status);
}

static bool mean_the_same(const char *a, const char *b)
{
  char first[PATH_MAX], second[PATH_MAX];
  if (strcasecmp(a, b) == 0) return true;
  name_plugin(a, first);
  name_plugin(b, second);
  return first[0] != '\0' && strcmp(first, second) == 0;
}

// Each variable of XRT that is set, where something of today names the device.
static void list_old(cx_cli_doctor_state *d, const char *chosen_by)
{
  const char *name, *today, *old;
  const char *device = cx_pjrt_xrt_device(&old);
  if (device != NULL && !mean_the_same(device, cx_env_text(chosen_by))) {
    cx_cli_doctor_find(
        d, CX_CLI_WRONG, "variables",
        "%s asks for %s, %s for %s, and the latter wins -> unset "
        "%s",
        old, device, chosen_by, cx_env_text(chosen_by), old);
  }
  for (size_t i = 0; cx_pjrt_xrt_variable(i, &name, &today); i++) {
    if (cx_env_text(name) == NULL) continue;
    cx_cli_doctor_find(d, CX_CLI_NOTE, "variables",
                       "%s, of PyTorch/XLA's former runtime, has no effect -> "
                       "today: %s",
                       name, today);
  }
}

static void check_device(cx_cli_doctor_state *d)
{
  const char *plugin = cx_env_text("CALX_PLUGIN");
  const char *device = cx_env_text("PJRT_DEVICE");
  if (plugin != NULL && device != NULL && !mean_the_same(plugin, device)) {
    cx_cli_doctor_find(d, CX_CLI_NOTE, "variables",
                       "CALX_PLUGIN=%s wins over PJRT_DEVICE=%s", plugin,
                       device);
  }
  if (plugin != NULL || device != NULL) {
    list_old(d, plugin != NULL ? "CALX_PLUGIN" : "PJRT_DEVICE");
    return;
  }
  cx_text note = { 0 };
  cx_pjrt_xrt_note(false, &note);
  if (note.size > 0) {
    cx_cli_doctor_find(d, CX_CLI_NOTE, "variables", "%s", cx_text_str(&note));
  }
  cx_text_free(&note);
}

static void check_cards(cx_cli_doctor_state *d)
{
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  cx_cli_doctor_path card = cx_cli_doctor_at(d, "/dev/nvidia0");
  if (visible == NULL || !cx_file_exists(card.s)) return;
  if (*visible == '\0' || strcmp(visible, "-1") == 0) {
    cx_cli_doctor_find(d, CX_CLI_NOTE, "variables",
                       "CUDA_VISIBLE_DEVICES='%s' hides all cards", visible);
  }
}

// ---- several processes ------------------------------------------------------

// Of a name or IPv4 address what is after its only colon.
static const char *port_of(const char *address)
{
  const char *colon = strchr(address, ':');
  return colon != NULL && strchr(colon + 1, ':') == NULL ? colon + 1 : NULL;
}

static void check_address(cx_cli_doctor_state *d)
{
  const char *address = cx_env_text("MASTER_ADDR");
  bool port =
      cx_env_text("MASTER_PORT") != NULL || cx_env_text("CALX_PORT") != NULL;
  if (address == NULL) {
    if (cx_env_text("MASTER_PORT") != NULL) {
      cx_cli_doctor_find(d, CX_CLI_NOTE, "variables",
                         "MASTER_PORT has no effect without MASTER_ADDR");
    }
    return;
  }
  if (port_of(address) != NULL) {
    cx_cli_doctor_find(d, CX_CLI_WRONG, "variables",
                       "MASTER_ADDR is '%s' -> MASTER_ADDR=%.*s and "
                       "MASTER_PORT=%s",
                       address, (int)strcspn(address, ":"), address,
                       port_of(address));
  } else if (!port) {
    cx_cli_doctor_find(d, CX_CLI_NOTE, "variables",
                       "MASTER_ADDR is set without MASTER_PORT or CALX_PORT: "
                       "calx's own port is taken, which two jobs cannot share");
  }
}

static void check_world(cx_cli_doctor_state *d)
{
  bool wanted;
  cx_world_info info;
  int hosts = -1;
  calx_status *status = cx_launcher_is_wanted(1, &wanted);
  wrong(d, status);
  // What a launcher says of this process itself.
  wrong(d, cx_world_find(&info));
  calx_status_free(cx_env_int("CALX_NNODES", 1, 1 << 16, &hosts));
  if (hosts > 1 && cx_env_text("MASTER_ADDR") == NULL &&
      cx_env_text("CALX_STORE") == NULL) {
    cx_cli_doctor_find(d, CX_CLI_WRONG, "variables",
                       "CALX_NNODES is %d, but MASTER_ADDR is not set -> it is "
                       "the address of host 0, on all of them",
                       hosts);
  }
  if (hosts > 1 && cx_env_text("CALX_TOKEN") == NULL) {
    cx_cli_doctor_find(d, CX_CLI_NOTE, "variables",
                       "whoever reaches MASTER_ADDR can join the job -> set "
                       "CALX_TOKEN to one secret on all hosts");
  }
}

void cx_cli_doctor_variables(cx_cli_doctor_state *d)
{
  const int before = d->wrong;
  check_names(d);
  const int named = d->wrong;
  check_values(d);
  const bool readable = d->wrong == named;
  check_device(d);
  check_cards(d);
  check_address(d);
  if (readable) check_world(d);
  if (d->wrong == before) {
    cx_cli_doctor_find(d, CX_CLI_FINE, "variables",
                       "none is misspelt or contradicts another");
  }
}
