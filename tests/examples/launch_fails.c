// Stands in front of calx_launch: it fails as a dataset does that is asked for
// a sample that is not there.
#include "calx/dist.h"

calx_status *__wrap_calx_launch_with(calx_rank_fn *fn, void *user,
                                     const calx_launch_options *options);

calx_status *__wrap_calx_launch_with(calx_rank_fn *fn, void *user,
                                     const calx_launch_options *options)
{
  (void)fn, (void)user, (void)options;
  return calx_status_new(CALX_OUT_OF_RANGE,
                         "dataset: sample 7 was asked for, there are 7");
}
