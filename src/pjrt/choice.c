// pjrt/choice: what is said about the plugin that was chosen.
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/status.h"
#include "pjrt/internal.h"
#include "world/world.h"

void cx_pjrt_choice_free(cx_pjrt_choice *choice)
{
  cx_free(choice->path);
  cx_free(choice->name);
  cx_free(choice->unused);
  cx_free(choice->old);
  *choice = (cx_pjrt_choice){ 0 };
}

calx_status *cx_pjrt_annotate_automatic(const char *name, calx_status *why)
{
  return cx_annotate(why,
                     "plugin '%s' was chosen for the accelerator that this "
                     "machine has, and cannot be used (CALX_PLUGIN=calx: run "
                     "on the CPU)",
                     name);
}

void cx_pjrt_report_unused(const cx_pjrt_choice *choice)
{
  static atomic_flag reported = ATOMIC_FLAG_INIT;
  if (choice->unused == NULL || cx_world_self()->local_process != 0 ||
      atomic_flag_test_and_set(&reported)) {
    return;
  }
  cx_log("device: %s", choice->unused);
}

void cx_pjrt_report_old(const cx_pjrt_choice *choice)
{
  static atomic_flag reported = ATOMIC_FLAG_INIT;
  if (choice->old == NULL || cx_pjrt_is_quiet() ||
      atomic_flag_test_and_set(&reported)) {
    return;
  }
  cx_log("device: %s", choice->old);
}

// The first process of a host speaks for all.
bool cx_pjrt_is_quiet(void)
{
  const char *quiet = cx_env_text("CALX_QUIET");
  return (quiet != NULL && *quiet != '0') ||
         cx_world_self()->local_process != 0;
}
