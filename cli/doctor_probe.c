// cli/doctor_probe: see doctor_probe.h.
#include "doctor_probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "lines.h"

// ---- version, devices -------------------------------------------------------

static calx_status *tell_version(const cx_cli_runner *r, cx_text *out)
{
  // The logs of a doctor that runs as root would be in the way of others.
  setenv("TPU_LOG_DIR", "disabled", 0);
  cx_pjrt_plugin *plugin = NULL;
  CALX_TRY(cx_pjrt_plugin_open(r->plugin, &plugin));
  int major, minor;
  cx_pjrt_plugin_version(plugin, &major, &minor);
  cx_text_format(out, "PJRT %d.%d", major, minor);
  cx_text attributes = { 0 };
  cx_pjrt_plugin_describe(plugin, &attributes);
  for (const char *p = cx_text_str(&attributes); *p != '\0';) {
    size_t n = strcspn(p, "\n");
    if (n > 0) cx_text_format(out, ", %.*s", (int)n, p);
    p += n + (p[n] == '\n');
  }
  cx_text_free(&attributes);
  return NULL;
}

static calx_status *tell_devices(cx_cli_runner *r, cx_text *out)
{
  CALX_TRY(cx_cli_runner_open(r));
  size_t n = cx_pjrt_client_device_count(r->client);
  cx_text_format(out, "%zu device%s of kind '%s', platform %s, %s", n,
                 n == 1 ? "" : "s", cx_pjrt_client_device(r->client, 0)->kind,
                 cx_pjrt_client_platform(r->client),
                 cx_pjrt_client_platform_version(r->client));
  size_t all = cx_pjrt_client_world_count(r->client);
  if (all > n) cx_text_format(out, ", %zu with those of other hosts", all);
  return NULL;
}

// ---- run --------------------------------------------------------------------

// A convolution of ones, and an addition: a kernel and a compiled loop.
enum { SIDE = 16, CHANNELS = 8, WINDOW = 3, LEFT = SIDE - WINDOW + 1 };
#define EXPECTED (2.0F * WINDOW * WINDOW * CHANNELS)
static const char program[] =
    "func.func @main(%x: tensor<1x16x16x8xf32>, %w: tensor<3x3x8x8xf32>)\n"
    "    -> tensor<1x14x14x8xf32> {\n"
    "  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, "
    "o]->[b, 0, 1, f],\n"
    "      window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : "
    "i64}\n"
    "      : (tensor<1x16x16x8xf32>, tensor<3x3x8x8xf32>) -> "
    "tensor<1x14x14x8xf32>\n"
    "  %z = stablehlo.add %y, %y : tensor<1x14x14x8xf32>\n"
    "  return %z : tensor<1x14x14x8xf32>\n"
    "}\n";

enum { X, W, ARGUMENTS };
static const int64_t dims[ARGUMENTS][4] = { [X] = { 1, SIDE, SIDE, CHANNELS },
                                            [W] = { WINDOW, WINDOW, CHANNELS,
                                                    CHANNELS } };
static float data[SIDE * SIDE * CHANNELS];
static float result[LEFT * LEFT * CHANNELS];

typedef struct probe_run {
  cx_pjrt_executable *executable;
  cx_pjrt_buffer *args[ARGUMENTS], *result;
} probe_run;

static calx_status *compile(cx_pjrt_client *c, probe_run *r,
                            cx_pjrt_shape shapes[ARGUMENTS])
{
  static const int64_t result_dims[] = { 1, LEFT, LEFT, CHANNELS };
  cx_pjrt_shape out;
  cx_pjrt_shape_make(CALX_F32, result_dims, 4, &out);
  for (int i = 0; i < ARGUMENTS; i++) {
    cx_pjrt_shape_make(CALX_F32, dims[i], 4, &shapes[i]);
  }
  const cx_pjrt_signature signature = {
    .params = shapes, .n_params = ARGUMENTS, .results = &out, .n_results = 1
  };
  return cx_pjrt_compile(c, program, strlen(program),
                         &(cx_pjrt_compile_options){ 0 }, &signature,
                         &r->executable);
}

static calx_status *run(cx_pjrt_client *c, probe_run *r)
{
  cx_pjrt_shape shapes[ARGUMENTS];
  CALX_TRY(compile(c, r, shapes));
  for (size_t i = 0; i < sizeof data / sizeof *data; i++) data[i] = 1;
  for (int i = 0; i < ARGUMENTS; i++) {
    CALX_TRY(cx_pjrt_buffer_from_host(c, 0, &shapes[i], data, CX_PJRT_COPY,
                                      NULL, NULL, &r->args[i]));
  }
  CALX_TRY(
      cx_pjrt_execute(r->executable, 0, r->args, ARGUMENTS, &r->result, NULL));
  CALX_TRY(cx_pjrt_buffer_to_host(r->result, result, sizeof result));
  for (size_t i = 0; i < sizeof result / sizeof *result; i++) {
    if (result[i] != EXPECTED) {
      return cx_error(CALX_INTERNAL,
                      "a small program gave %g at %zu, %g is right",
                      (double)result[i], i, (double)EXPECTED);
    }
  }
  return NULL;
}

// The files of this process that the engine loads while it works.
static void tell_libraries(cx_text *out)
{
  static const char *const names[] = { "/libcalx_jit", "/libLLVM", "/libdnnl" };
  FILE *maps = fopen("/proc/self/maps", "re");
  cx_text line = { 0 }, seen = { 0 };
  while (maps != NULL && cx_cli_line_read(maps, &line)) {
    const char *path = line.size > 0 ? strchr(line.data, '/') : NULL;
    for (size_t i = 0; path != NULL && i < sizeof names / sizeof *names; i++) {
      if (strstr(path, names[i]) == NULL ||
          strstr(cx_text_str(&seen), names[i]) != NULL) {
        continue;
      }
      cx_text_append(&seen, names[i]);
      cx_text_format(out, "%s%s", out->size > 0 ? ", " : "", path);
    }
  }
  if (maps != NULL) fclose(maps);
  cx_text_free(&line);
  cx_text_free(&seen);
}

static calx_status *tell_run(const cx_cli_runner *r, cx_text *out)
{
  probe_run p = { 0 };
  calx_status *status = run(r->client, &p);
  for (int i = 0; i < ARGUMENTS; i++) cx_pjrt_buffer_release(p.args[i]);
  cx_pjrt_buffer_release(p.result);
  cx_pjrt_executable_release(p.executable);
  if (status == NULL) tell_libraries(out);
  return status;
}

void cx_cli_probe_answer(cx_cli_runner *runner, const cx_text *line,
                         cx_text *out)
{
  const char *asked = cx_text_str(line);
  cx_text text = { 0 };
  calx_status *status =
      strcmp(asked, "version") == 0   ? tell_version(runner, &text)
      : strcmp(asked, "devices") == 0 ? tell_devices(runner, &text)
                                      : tell_run(runner, &text);
  if (status == NULL) cx_text_append(out, CX_CLI_PROBE_OK);
  cx_cli_line_append(
      out, status == NULL ? cx_text_str(&text) : calx_status_message(status));
  calx_status_free(status);
  cx_text_free(&text);
}
