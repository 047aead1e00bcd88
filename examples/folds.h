// Parts of a dataset for cross-validation.
#ifndef EXAMPLES_FOLDS_H
#define EXAMPLES_FOLDS_H

#include <calx/calx.h>
#include <stdlib.h>

enum { FOLDS = 5 };

// The samples of a fold, or those of the others.
static inline calx_dataset *fold_of(calx_dataset *set, int64_t fold,
                                    bool inside)
{
  int64_t n = calx_dataset_size(set), count = 0;
  int64_t *indices = malloc((size_t)(n + 1) * sizeof *indices);
  for (int64_t i = 0; indices != NULL && i < n; i++) {
    if ((i % FOLDS == fold) == inside) indices[count++] = i;
  }
  calx_dataset *chosen = calx_dataset_subset(set, indices, count);
  free(indices);
  return chosen;
}

#endif
