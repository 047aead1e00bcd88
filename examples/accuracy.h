// How often a classifier is right, over all ranks.
#ifndef EXAMPLES_ACCURACY_H
#define EXAMPLES_ACCURACY_H

#include <calx/calx.h>

static inline void accuracy_add(const double *const *values, size_t ranks,
                                size_t count, double *out)
{
  for (size_t k = 0; k < count; k++) {
    out[k] = 0;
    for (size_t r = 0; r < ranks; r++) out[k] += values[r][k];
  }
}

// In percent. Each rank calls it with its part of the samples.
static inline calx_status *accuracy_of(calx_module *model, calx_loader *loader,
                                       double *accuracy)
{
  calx_batch batch;
  double seen[2] = { 0, 0 };  // right, all
  calx_module_train(model, false);
  while (calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_no_grad_begin();  // ends with the scope
    calx_tensor *output = calx_forward(model, batch.data);
    calx_tensor *guess = calx_argmax(output, .dims = CALX_DIMS(1));
    seen[0] += calx_item(calx_sum(calx_eq(guess, batch.target)));
    seen[1] += (double)batch.size;
    CALX_TRY(calx_scope_end(scope));
  }
  CALX_TRY(calx_scope_take_error());
  CALX_TRY(calx_mesh_reduce("accuracy", seen, 2, accuracy_add, seen));
  *accuracy = 100 * seen[0] / seen[1];
  return NULL;
}

#endif
