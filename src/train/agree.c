// train/agree: numbers on which the ranks of a run agree.
#include "train/internal.h"

static void first(const double *const *values, size_t ranks, size_t count,
                  double *out)
{
  (void)ranks, (void)count;
  *out = values[0][0];
}

static void greatest(const double *const *values, size_t ranks, size_t count,
                     double *out)
{
  (void)count;
  *out = values[0][0];
  for (size_t i = 1; i < ranks; i++) *out = fmax(*out, values[i][0]);
}

calx_status *cx_train_agree_first(const char *tag, double *value)
{
  if (calx_world_size() == 1) return NULL;
  const double mine = *value;
  return calx_mesh_reduce(tag, &mine, 1, first, value);
}

calx_status *cx_train_agree_any(const char *tag, bool *value)
{
  if (calx_world_size() == 1) return NULL;
  const double mine = *value;
  double any;
  CALX_TRY(calx_mesh_reduce(tag, &mine, 1, greatest, &any));
  *value = any != 0;
  return NULL;
}
