// train/data_notes: what the first rank says of data that a fit does not read,
// with Lightning's texts.
#include "lazy/lazy.h"
#include "train/internal.h"

static void report_empty(const cx_train_loader *l)
{
  if (l->from == NULL || l->samples != 0) return;
  cx_log(
      "Total length of `DataLoader` across ranks is zero. Please make sure this "
      "was your intention.");
}

void cx_train_report_data(const calx_trainer *t, bool has_val_loaders)
{
  if (!calx_trainer_is_global_zero(t)) return;
  const bool has_step = t->module->validation_step != NULL;
  if (t->asked == CX_TRAIN_FITTING) {
    report_empty(&t->train);
    if (has_val_loaders && !has_step) {
      cx_log(
          "You passed in a `val_dataloader` but have no `validation_step`. "
          "Skipping val loop.");
    } else if (has_step && !has_val_loaders) {
      cx_log(
          "You defined a `validation_step` but have no `val_dataloader`. "
          "Skipping val loop.");
    }
  }
  for (size_t i = 0; i < t->n_evaluated; i++) report_empty(&t->evaluated[i]);
}
