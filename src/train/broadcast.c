// train/broadcast: what the first rank of a run decides reaches the others, so
// that all of them go the same way.
#include <string.h>

#include "base/alloc.h"
#include "train/internal.h"

// After a failure the ranks do not meet any more: each is for itself.
static bool meets(const calx_trainer *t)
{
  return calx_world_size() > 1 && t->exception == NULL;
}

static void first(const double *const *values, size_t ranks, size_t count,
                  double *out)
{
  (void)ranks;
  memcpy(out, values[0], count * sizeof *out);
}

calx_status *cx_train_broadcast_numbers(const calx_trainer *t, const char *tag,
                                        double *values, size_t count)
{
  return meets(t) ? calx_mesh_reduce(tag, values, count, first, values) : NULL;
}

// The answer of all is beside the first one's numbers.
static void decide(const double *const *values, size_t ranks, size_t count,
                   double *out)
{
  memcpy(out, values[0], count * sizeof *out);
  for (size_t r = 1; r < ranks; r++) {
    if (values[r][0] == 0) out[0] = 0;
  }
}

calx_status *cx_train_agree(const calx_trainer *t, const char *tag, bool *yes,
                            double *number)
{
  double pair[] = { *yes, *number };
  if (meets(t)) CALX_TRY(calx_mesh_reduce(tag, pair, 2, decide, pair));
  *yes = pair[0] != 0;
  *number = pair[1];
  return NULL;
}

// A text is sent with its end, so that none is not the empty one.
static calx_status *take_first(char *const *all, const size_t *sizes,
                               char **text)
{
  cx_free(*text);
  *text = sizes[0] == 0 ? NULL : cx_strndup(all[0], sizes[0] - 1);
  return sizes[0] == 0 || *text != NULL ? NULL : cx_out_of_memory();
}

calx_status *cx_train_broadcast_text(const calx_trainer *t, const char *tag,
                                     char **text)
{
  if (!meets(t)) return NULL;
  const size_t ranks = (size_t)calx_world_size();
  const size_t size = *text != NULL ? strlen(*text) + 1 : 0;
  char **all = cx_calloc(ranks, sizeof *all);
  size_t *sizes = cx_calloc(ranks, sizeof *sizes);
  calx_status *status = all == NULL || sizes == NULL
                            ? cx_out_of_memory()
                            : calx_rendezvous(tag, *text, size, all, sizes);
  if (status == NULL && !calx_trainer_is_global_zero(t)) {
    status = take_first(all, sizes, text);
  }
  for (size_t i = 0; all != NULL && i < ranks; i++) calx_string_free(all[i]);
  cx_free(all);
  cx_free(sizes);
  return status;
}
