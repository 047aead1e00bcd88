// train/accelerator: whether the accelerator that was asked for is there, and
// the lines about what is there at the start of a run.
#include <string.h>

#include "base/env.h"
#include "base/text.h"
#include "base/thread.h"
#include "lazy/lazy.h"
#include "pjrt/pjrt.h"
#include "train/internal.h"

static const char *current_platform(void)
{
  const char *platform = calx_device_platform(calx_device_current());
  return strstr(platform, "cpu") != NULL ? "cpu" : platform;
}

// The platform is the plugin's, which the environment chooses.
static calx_status *check_platform(const cx_train_config *c, const char *here)
{
  static const char *const names[] = { "cpu", "tpu", "cuda" };
  const int wanted = c->accelerator;
  if (wanted == CX_TRAIN_ANY || strcmp(here, names[wanted]) == 0) return NULL;
  if (c->is_tpu_cores) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "No TPU devices were found. `tpu_cores` wants a TPU, and "
                    "the plugin is of '%s': `devices` takes any device, "
                    "PJRT_DEVICE or CALX_PLUGIN choose another plugin",
                    here);
  }
  return cx_error(
      CALX_FAILED_PRECONDITION,
      "`accelerator='%s'` can not run on your system since the accelerator is "
      "not available. The following accelerator(s) is available and can be "
      "passed into `accelerator` argument of `Trainer`: ['%s']. PJRT_DEVICE or "
      "CALX_PLUGIN choose another plugin",
      names[wanted], here);
}

calx_status *cx_train_check_expected(const calx_trainer *t)
{
  const char *expected = cx_lazy_devices_are_open() ? current_platform()
                                                    : cx_pjrt_plugin_expected();
  return expected != NULL ? check_platform(&t->config, expected) : NULL;
}

calx_status *cx_train_check_accelerator(const calx_trainer *t)
{
  const char *here = current_platform();
  if (strcmp(here, "tpu") == 0) {
    CALX_TRY(cx_train_check_tpu_devices(&t->config, calx_device_count()));
    if (t->config.dtype == CALX_F64) return cx_train_refuse_f64();
  }
  return check_platform(&t->config, here);
}

// ---- what is there ----------------------------------------------------------

static void describe_gpu(cx_text *out, const char *here)
{
  const bool is_used = strcmp(here, "cuda") == 0;
  const bool is_there = is_used || cx_pjrt_machine_has("cuda");
  cx_text_format(out, "GPU available: %s, used: %s",
                 is_there ? "True (cuda)" : "False",
                 is_used ? "True" : "False");
  if (is_used || !is_there) return;
  cx_text_append(out,
                 "\nGPU available but not used. You can set it by doing "
                 "`Trainer(accelerator='gpu')`; PJRT_DEVICE=CUDA chooses its "
                 "plugin.");
}

static void describe_tpu(cx_text *out, const char *here)
{
  const bool is_used = strcmp(here, "tpu") == 0;
  const bool is_there = is_used || cx_pjrt_machine_has("tpu");
  cx_text_format(out, "\nTPU available: %s, using: %d TPU cores",
                 is_there ? "True" : "False",
                 is_used ? calx_local_world_size() : 0);
  if (is_used || !is_there) return;
  cx_text_append(out,
                 "\nTPU available but not used. You can set it by doing "
                 "`Trainer(accelerator='tpu')`; PJRT_DEVICE=TPU chooses its "
                 "plugin.");
}

// Whether it differs from what was said last.
static bool is_new(const char *text)
{
  static cx_mutex lock = CX_MUTEX_INIT;
  static char last[512];
  cx_lock(&lock);
  const bool differs = strncmp(last, text, sizeof last - 1) != 0;
  strncpy(last, text, sizeof last - 1);
  cx_unlock(&lock);
  return differs;
}

void cx_train_announce(const calx_trainer *t)
{
  const char *quiet = cx_env_text("CALX_QUIET");
  if (t->config.barebones || !calx_trainer_is_global_zero(t)) return;
  if (quiet != NULL && *quiet != '0') return;
  cx_text text = { 0 };
  const char *here = current_platform();
  describe_gpu(&text, here);
  describe_tpu(&text, here);
  if (!cx_text_failed(&text) && is_new(cx_text_str(&text))) {
    for (char *line = text.data, *end; line != NULL; line = end) {
      end = strchr(line, '\n');
      if (end != NULL) *end++ = '\0';
      cx_log("%s", line);
    }
  }
  cx_text_free(&text);
}
