// data/image_list: a list of image files with a target for each, as a dataset.
#ifndef CX_DATA_IMAGE_LIST_H
#define CX_DATA_IMAGE_LIST_H

#include "calx/image_dataset.h"
#include "image/image.h"

// All memory is cx_alloc's.
typedef struct cx_data_image_list {
  int64_t size;
  calx_image_dataset_options options;
  char **paths;                       // [size]
  size_t path_room;                   // of paths
  int64_t target_rank, target_count;  // numbers of a target; rank 0 or 1
  int64_t *classes;                   // [size], or
  float *numbers;                     // [size][target_count]
  char **class_names;                 // [n_classes]
  int64_t n_classes;
  int64_t channels, height, width;  // of all samples
  bool is_float;
} cx_data_image_list;

// Checks and stores the options.
calx_status *cx_data_image_options(const char *call,
                                   const calx_image_dataset_options *given,
                                   cx_data_image_list *list) CALX_MUST_USE;
// Adds a path, which it takes, also on failure.
calx_status *cx_data_image_add(cx_data_image_list *list,
                               char *path) CALX_MUST_USE;
void cx_data_image_list_free(cx_data_image_list *list);

// The list as a dataset; takes it and the status of making it.
calx_dataset *cx_data_image_dataset(calx_status *status,
                                    cx_data_image_list *list);

#endif
