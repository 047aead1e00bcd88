// lazy/lifecycle/ranks: the start and the end of ranks that are threads.
#include "lazy/internal.h"
#include "lazy/sync/closure.h"

calx_status *cx_lazy_devices_open_for_ranks(int *out_count)
{
  calx_status *status = cx_lazy_devices_claim(out_count);
  cx_lazy_ranks_reset();
  return status;
}

void cx_lazy_rank_end(calx_device *device)
{
  cx_lazy_closures_drop(device);
  atomic_store(&device->rank_ended, true);
}

bool cx_lazy_rank_has_ended(const calx_device *device)
{
  return atomic_load(&device->rank_ended);
}
