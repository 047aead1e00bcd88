// data/dataset: what all datasets are made of.
#ifndef CX_DATA_DATASET_H
#define CX_DATA_DATASET_H

#include "base/status.h"
#include "calx/data.h"
#include "calx/iterable.h"

struct calx_dataset {
  calx_status *error;  // set: there are no samples and no fields
  int64_t size;
  size_t n_fields;
  calx_field fields[CALX_MAX_FIELDS];   // their names are owned
  size_t field_bytes[CALX_MAX_FIELDS];  // of one sample
  calx_dataset_get_fn *get;
  void *user;
  void (*free)(void *user);
  calx_iterable *iterable;  // owned; NULL: samples have numbers
};

// A dataset that only carries an error, which it takes.
calx_dataset *cx_data_failed(calx_status *error);

// calx_dataset_tensors(). Not copied: the tensors are retained, and their
// elements must stay as they are.
calx_dataset *cx_data_of_tensors(calx_tensor *const *tensors, size_t count,
                                 bool copied);

// Whether there are datasets, all without an error, whose samples look alike.
calx_status *cx_data_same_fields(const char *whose,
                                 calx_dataset *const *datasets,
                                 size_t count) CALX_MUST_USE;

// INVALID_ARGUMENT for an iterable dataset, which `whose` cannot use.
calx_status *cx_data_not_iterable(const char *whose,
                                  const calx_dataset *dataset) CALX_MUST_USE;

#endif
