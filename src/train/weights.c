// train/weights: the weights of a run, or of a checkpoint's file, in a model of
// the program's own.
#include "base/options.h"
#include "train/internal.h"

calx_status *calx_trainer_load_weights(const calx_trainer *t,
                                       calx_module *model)
{
  if (t == NULL || t->checkpoint == NULL) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "trainer_load_weights: the trainer %s",
                    t == NULL ? "is NULL" : "has trained nothing yet");
  }
  return calx_module_load_state_dict(
      model, calx_value_get(t->checkpoint, "state_dict"));
}

calx_status *calx_module_load_from_checkpoint_with(
    calx_module *model, const char *path,
    const calx_load_state_dict_options *options)
{
  calx_value *loaded;
  CALX_TRY(calx_load(path, &loaded));
  const calx_value *weights = calx_value_get(loaded, "state_dict");
  calx_status *status = calx_module_load_state_dict_with(
      model, weights != NULL ? weights : loaded, options);
  calx_value_free(loaded);
  return status;
}
