// lazy/lifecycle/shutdown: waiting for a device, and the end of all of them.
#include "calx/device.h"
#include "lazy/cache/cache.h"
#include "lazy/internal.h"
#include "lazy/sync/closure.h"
#include "profiler/profiler.h"

calx_status *calx_device_wait(calx_device *device)
{
  if (device == NULL) device = cx_lazy_self.device;
  if (device == NULL) device = cx_lazy_device_at(0);
  if (device == NULL) return NULL;
  return cx_lazy_flight_poll(device, true);
}

// Executables belong to the client: they are released before it is closed.
static void release_programs(void)
{
  cx_profiler_close();
  cx_lazy_programs_free();
}

void calx_shutdown(void)
{
  if (cx_lazy_closures_is_worker()) {
    cx_log(
        "calx_shutdown: called in an asynchronous step closure, which uses "
        "what it ends: nothing is shut down");
    return;
  }
  cx_lazy_closures_end();
  cx_lazy_scope_end_root();
  cx_lazy_devices_close(release_programs);
  cx_lazy_cache_forget();
  cx_lazy_self.device = cx_lazy_self.steps = NULL;
}
