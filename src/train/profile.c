// train/profile: where the time of a run goes, by action.
#include "train/internal.h"

calx_status *cx_train_profile_new(calx_trainer *t)
{
  (void)t;
  return NULL;
}

void cx_train_profile_begin(calx_trainer *t, const char *who, const char *what)
{
  (void)t, (void)who, (void)what;
}

void cx_train_profile_end(calx_trainer *t)
{
  (void)t;
}

void cx_train_profile_report(calx_trainer *t)
{
  (void)t;
}
