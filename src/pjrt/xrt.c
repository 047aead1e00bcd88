// pjrt/xrt: the variables of XRT, PyTorch/XLA's runtime before PJRT.
//
// Scripts and notebooks of that time still set them. Those that named the
// device are translated where nothing else names one. The others have no
// effect, and the note says what to write today. TPU_NAME is not among them:
// it names a TPU for `calx run --tpu`.
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "pjrt/internal.h"

// What a program of today writes.
#define BY_TPU_VM "programs run on the TPU's own VM, see calx run --tpu"
#define BY_LAUNCH "calx_launch and calx run number the ranks"
#define BY_PRECISION \
  "calx_autocast_begin(CALX_BF16), or the trainer's .precision = \"bf16-true\""

static const struct old_variable {
  const char *name, *today;
  bool is_switch;  // 0 is off; and it matters whoever chooses the device
} variables[] = {
  { "XRT_TPU_CONFIG", "PJRT_DEVICE=TPU", false },
  { "COLAB_TPU_ADDR", "PJRT_DEVICE=TPU", false },
  { "XRT_DEVICE_MAP", "PJRT_DEVICE=CPU, CUDA or TPU", false },
  { "XRT_WORKERS", "PJRT_DEVICE=CPU, CUDA or TPU", false },
  { "TPU_IP_ADDRESS", BY_TPU_VM, false },
  { "XRT_MESH_SERVICE_ADDRESS", "MASTER_ADDR and MASTER_PORT", false },
  { "XRT_SHARD_WORLD_SIZE", BY_LAUNCH, false },
  { "XRT_SHARD_ORDINAL", BY_LAUNCH, false },
  { "XRT_SHARD_LOCAL_ORDINAL", BY_LAUNCH, false },
  { "XRT_HOST_WORLD_SIZE", BY_LAUNCH, false },
  { "XRT_HOST_ORDINAL", BY_LAUNCH, false },
  { "XRT_LOCAL_WORKER", BY_LAUNCH, false },
  { "XRT_MULTI_PROCESSING_DEVICE", BY_LAUNCH, false },
  { "XLA_USE_BF16", BY_PRECISION, true },
  { "XLA_DOWNCAST_BF16", BY_PRECISION, true },
};

bool cx_pjrt_xrt_variable(size_t i, const char **out_name,
                          const char **out_today)
{
  if (i == sizeof variables / sizeof *variables) return false;
  *out_name = variables[i].name;
  *out_today = variables[i].today;
  return true;
}

static bool is_set(const struct old_variable *v)
{
  const char *value = cx_env_text(v->name);
  return value != NULL && !(v->is_switch && strcmp(value, "0") == 0);
}

// "CPU:0;/job:…|TPU:0;/job:…|…": the TPU before the card before the CPU.
static const char *device_of_map(const char *map)
{
  static const char *const kinds[][2] = { { "TPU:", "TPU" },
                                          { "GPU:", "CUDA" },
                                          { "CPU:", "CPU" } };
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    for (const char *entry = map; entry != NULL;) {
      if (strncmp(entry, kinds[k][0], strlen(kinds[k][0])) == 0) {
        return kinds[k][1];
      }
      entry = strchr(entry, '|');
      if (entry != NULL) entry++;
    }
  }
  return NULL;
}

const char *cx_pjrt_xrt_device(const char **out_variable)
{
  static const char *const of_tpu[] = { "XRT_TPU_CONFIG", "COLAB_TPU_ADDR" };
  for (size_t i = 0; i < sizeof of_tpu / sizeof *of_tpu; i++) {
    *out_variable = of_tpu[i];
    if (cx_env_text(of_tpu[i]) != NULL) return "TPU";
  }
  *out_variable = "XRT_DEVICE_MAP";
  return device_of_map(cx_env_text("XRT_DEVICE_MAP"));
}

// The address of a TPU that another machine served, which is no plugin's; NULL:
// the configuration names this machine. It is "NAME;INDEX;HOST:PORT|…", and a
// pod's own workers are called c_localservice.
static const char *remote_address(const char *variable)
{
  const char *value = cx_env_text(variable);
  if (value == NULL || strcmp(variable, "COLAB_TPU_ADDR") == 0) return value;
  if (strcmp(variable, "XRT_TPU_CONFIG") != 0) return NULL;
  const char *address = strchr(value, ';');
  if (address != NULL) address = strchr(address + 1, ';');
  if (address == NULL || strstr(value, "localservice") != NULL) return NULL;
  address++;
  bool here = strncmp(address, "localhost:", 10) == 0 ||
              strncmp(address, "127.0.0.1:", 10) == 0;
  return here ? NULL : address;
}

static void note_device(const char *variable, const char *device, cx_text *out)
{
  cx_text_format(out,
                 "%s is of XRT, PyTorch/XLA's former runtime, and is taken as "
                 "PJRT_DEVICE=%s: set that instead",
                 variable, device);
  const char *address = remote_address(variable);
  if (address != NULL) {
    cx_text_format(out, " (its address %.*s has no effect: " BY_TPU_VM ")",
                   (int)strcspn(address, "|"), address);
  }
}

void cx_pjrt_xrt_note(bool chosen, cx_text *out)
{
  const char *translated = NULL;
  const char *device = chosen ? NULL : cx_pjrt_xrt_device(&translated);
  if (device != NULL) note_device(translated, device, out);
  const char *today = NULL;  // of the variable before, which is not closed
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    const struct old_variable *v = &variables[i];
    if (!is_set(v) || (chosen && !v->is_switch)) continue;
    if (device != NULL && strcmp(v->name, translated) == 0) continue;
    if (today != NULL && strcmp(today, v->today) != 0) {
      cx_text_format(out, " (today: %s)", today);
    }
    if (today != NULL) {
      cx_text_append(out, ", ");
    } else {
      cx_text_append(out, device != NULL ? "; without effect: "
                                         : "variables of PyTorch/XLA's former "
                                           "runtime without effect: ");
    }
    cx_text_append(out, v->name);
    today = v->today;
  }
  if (today != NULL) cx_text_format(out, " (today: %s)", today);
}
