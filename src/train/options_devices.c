// train/options_devices: on what a trainer runs: devices, accelerator, strategy
// and precision, whose options depend on each other.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "pjrt/pjrt.h"
#include "train/internal.h"

// ---- lists of devices -------------------------------------------------------

// What a text says of devices: how many, or which.
typedef struct device_list {
  bool is_list;
  size_t count;  // of `first` and what follows
  int64_t first;
} device_list;

static const char *skip_blanks(const char *p)
{
  while (*p == ' ' || *p == '\t') p++;
  return p;
}

// "8" is a number, "[5]", "5,", "1, 8" and "[]" are lists. False: neither.
static bool read_list(const char *text, device_list *out)
{
  *out = (device_list){ 0 };
  const char *p = skip_blanks(text);
  const bool bracket = *p == '[';
  out->is_list = bracket || strchr(p, ',') != NULL;
  if (bracket) p = skip_blanks(p + 1);
  while (*p != '\0' && *p != ']') {
    char *end;
    const long long id = strtoll(p, &end, 10);
    if (end == p || id < INT_MIN || id > INT_MAX) return false;
    if (out->count++ == 0) out->first = id;
    p = skip_blanks(end);
    if (*p == ',') {
      p = skip_blanks(p + 1);
    } else if (*p != ']' && *p != '\0') {
      return false;
    }
  }
  if ((*p == ']') != bracket) return false;
  if (bracket) p = skip_blanks(p + 1);
  return *p == '\0' && (bracket || out->count > 0);
}

static calx_status *refuse_cores(const calx_trainer_options *o)
{
  char number[16];
  snprintf(number, sizeof number, "%d", o->tpu_cores);
  return cx_invalid("`tpu_cores` can only be 1, 8 or [<1-8>]. Got '%s'",
                    o->tpu_core_ids != NULL ? o->tpu_core_ids : number);
}

// Lightning 1.x: a text other than "1" and "8" is a list of one core, counted
// from 1. Source: pytorch_lightning 1.5.10, device_parser.parse_tpu_cores.
static calx_status *take_cores(const calx_trainer_options *o,
                               cx_train_config *out)
{
  device_list list = { .count = 1, .first = o->tpu_cores };
  if (o->tpu_core_ids != NULL && !read_list(o->tpu_core_ids, &list)) {
    return cx_invalid(
        "Device ID's (GPU/TPU) must be int, string or sequence of ints or None. "
        "`tpu_cores` is '%s'",
        o->tpu_core_ids);
  }
  out->is_tpu_cores = true;
  if (list.count != 1) return refuse_cores(o);
  if (!list.is_list && (list.first == 1 || list.first == 8)) {
    out->devices = (int)list.first;
    return NULL;
  }
  if (o->tpu_core_ids == NULL || list.first < 1 || list.first > 8) {
    return refuse_cores(o);
  }
  out->devices = 1;
  out->device_index = (int)list.first - 1;
  return NULL;
}

static calx_status *refuse_devices(const char *given)
{
  return cx_invalid(
      "`devices` can only be 'auto', 1, a number of devices or a list of one "
      "device, counted from 0, as '[2]' or '2,'. Got '%s'",
      given);
}

static calx_status *take_device_ids(const calx_trainer_options *o,
                                    cx_train_config *out)
{
  const char *text = o->device_ids;
  device_list list;
  if (strcmp(text, "auto") == 0) return NULL;
  if (!read_list(text, &list)) {
    return cx_invalid("Could not parse the selected TPU devices: '%s'", text);
  }
  if (!list.is_list && list.first == 0) {
    return cx_invalid(
        "`Trainer(devices=%s)` value is not a valid input using %s accelerator.",
        text, cx_train_accelerator_text(o));
  }
  if (!list.is_list && list.first >= -1) {
    out->devices = list.first > 0 ? (int)list.first : 0;
    return NULL;
  }
  if (!list.is_list || list.count != 1 || list.first < 0) {
    return refuse_devices(text);
  }
  out->devices = 1;
  out->device_index = (int)list.first;
  return NULL;
}

static calx_status *take_devices(const calx_trainer_options *o,
                                 cx_train_config *out)
{
  const bool has_cores = o->tpu_cores != 0 || o->tpu_core_ids != NULL;
  out->device_index = -1;
  if (o->num_nodes < 0) {
    return cx_invalid("`num_nodes` must be 1 or more, got %d", o->num_nodes);
  }
  out->num_nodes = o->num_nodes;
  if (has_cores) return take_cores(o, out);
  if (o->device_ids != NULL) return take_device_ids(o, out);
  if (o->devices < -1) {
    char given[16];
    snprintf(given, sizeof given, "%d", o->devices);
    return refuse_devices(given);
  }
  out->devices = o->devices > 0 ? o->devices : 0;
  return NULL;
}

calx_status *cx_train_check_tpu_devices(const cx_train_config *c, int n)
{
  const bool fits = c->device_index >= 0 ? c->device_index < n
                                         : c->devices <= 1 || c->devices == n;
  if (fits) return NULL;
  char got[32];
  snprintf(got, sizeof got, c->device_index >= 0 ? "[%d]" : "%d",
           c->device_index >= 0 ? c->device_index : c->devices);
  return cx_invalid(
      "`devices` can only be 'auto', 1, %d or [<0-%d>] for TPUs. Got %s", n,
      n - 1, got);
}

// ---- names ------------------------------------------------------------------

static bool is_one_of(const char *name, const char *const *names)
{
  for (; *names != NULL; names++) {
    if (strcmp(name, *names) == 0) return true;
  }
  return false;
}

static calx_status *take_accelerator(const char *name, cx_train_config *out)
{
  static const struct {
    const char *name;
    cx_train_accelerator accelerator;
  } all[] = { { "auto", CX_TRAIN_ANY },    { "cpu", CX_TRAIN_CPU },
              { "ddp_cpu", CX_TRAIN_CPU }, { "tpu", CX_TRAIN_TPU },
              { "gpu", CX_TRAIN_CUDA },    { "cuda", CX_TRAIN_CUDA } };
  out->accelerator = out->is_tpu_cores ? CX_TRAIN_TPU : CX_TRAIN_ANY;
  if (name == NULL) return NULL;
  if (strcmp(name, "ddp_cpu") == 0 && cx_pjrt_machine_has("tpu")) {
    return cx_invalid(
        "`accelerator='ddp_cpu'` is not supported on TPU machines.");
  }
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (strcmp(name, all[i].name) != 0) continue;
    if (!out->is_tpu_cores) out->accelerator = all[i].accelerator;
    return NULL;
  }
  return cx_invalid(
      "You selected an invalid accelerator name: `accelerator='%s'`. Available "
      "names are: auto, cpu, cuda, gpu, tpu.",
      name);
}

static calx_status *take_strategy(const char *name, cx_train_config *out)
{
  static const char *const names[] = {
    "auto",      "xla",        "single_xla",      "xla_debug", "ddp",
    "tpu_spawn", "single_tpu", "tpu_spawn_debug", NULL
  };
  if (name == NULL) return NULL;
  if (!is_one_of(name, names)) {
    return cx_invalid(
        "You selected an invalid strategy name: `strategy='%s'`. Example "
        "choices: auto, xla, xla_debug, single_xla, ddp.",
        name);
  }
  if (strcmp(name, "ddp") == 0 && out->accelerator == CX_TRAIN_TPU) {
    return cx_invalid(
        "The `XLAAccelerator` can only be used with a `SingleDeviceXLAStrategy` "
        "or `XLAStrategy`, found DDPStrategy.");
  }
  out->is_debug = strstr(name, "debug") != NULL;
  if (strncmp(name, "single", 6) != 0) return NULL;
  if (out->devices > 1) {
    return cx_invalid(
        "`strategy='%s'` runs on a single device, devices=%d were asked for",
        name, out->devices);
  }
  out->devices = 1;
  return NULL;
}

calx_status *cx_train_refuse_f64(void)
{
  return cx_invalid(
      "`Trainer(accelerator='tpu', precision=64)` is not implemented: a TPU has "
      "no 64-bit floats");
}

static calx_status *take_precision(const char *name, const char *accelerator,
                                   cx_train_config *out)
{
  static const struct {
    const char *name;
    calx_dtype dtype, autocast;
  } all[] = {
    { "32-true", CALX_DTYPE_DEFAULT, CALX_DTYPE_DEFAULT },
    { "32", CALX_DTYPE_DEFAULT, CALX_DTYPE_DEFAULT },
    { "64-true", CALX_F64, CALX_DTYPE_DEFAULT },
    { "64", CALX_F64, CALX_DTYPE_DEFAULT },
    { "bf16-true", CALX_BF16, CALX_DTYPE_DEFAULT },
    { "bf16-mixed", CALX_DTYPE_DEFAULT, CALX_BF16 },
    { "bf16", CALX_DTYPE_DEFAULT, CALX_BF16 },
    { "16", CALX_DTYPE_DEFAULT, CALX_BF16 },
    { "16-mixed", CALX_DTYPE_DEFAULT, CALX_BF16 },
  };
  if (name == NULL) return NULL;
  if (strcmp(accelerator, "tpu") == 0 && strncmp(name, "64", 2) == 0) {
    return cx_train_refuse_f64();
  }
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (strcmp(name, all[i].name) != 0) continue;
    out->dtype = all[i].dtype;
    out->autocast = all[i].autocast;
    return NULL;
  }
  return cx_invalid(
      "Precision %s is invalid. Allowed precision values: ['32-true', '64-true', "
      "'bf16-true', 'bf16-mixed', '16', '32', '64', 'bf16']",
      name);
}

const char *cx_train_accelerator_text(const calx_trainer_options *o)
{
  if (o->tpu_cores != 0 || o->tpu_core_ids != NULL) return "tpu";
  return o->accelerator != NULL ? o->accelerator : "auto";
}

calx_status *cx_train_configure_devices(const calx_trainer_options *o,
                                        cx_train_config *out)
{
  CALX_TRY(take_devices(o, out));
  CALX_TRY(take_accelerator(o->accelerator, out));
  CALX_TRY(take_strategy(o->strategy, out));
  return take_precision(o->precision, cx_train_accelerator_text(o), out);
}
