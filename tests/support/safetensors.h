// safetensors: a reader for the expected values that tests compare with.
//
// The format: eight bytes with the header's length, little-endian, a JSON
// header {"name": {"dtype", "shape", "data_offsets"}}, the elements row-major
// (https://github.com/huggingface/safetensors). A file that is not one fails
// the test.
#ifndef CX_TESTS_SUPPORT_SAFETENSORS_H
#define CX_TESTS_SUPPORT_SAFETENSORS_H

#include <jansson.h>

#include "calx/nn.h"
#include "calx/tensor.h"

typedef struct safetensors safetensors;

typedef struct safetensors_entry {
  calx_dtype dtype;
  size_t rank;
  int64_t dims[CALX_MAX_RANK];
  int64_t numel;
  size_t bytes;
  const unsigned char *data;  // lives as long as the file; not aligned
} safetensors_entry;

// A file of the folder CALX_SHARED, "oracle/train.safetensors".
safetensors *safetensors_open(const char *name);
void safetensors_close(safetensors *file);
bool safetensors_find(const safetensors *file, const char *name,
                      safetensors_entry *out);
// The tensor of this name, which must be there, on the current device and in
// the current scope; CALX_DTYPE_DEFAULT: as stored.
calx_tensor *safetensors_tensor(const safetensors *file, const char *name,
                                calx_dtype as);
// Gives all entries of a model the tensors that are stored under their paths
// with a prefix, "init/".
calx_status *safetensors_load(const safetensors *file, const char *prefix,
                              calx_module *root);
// Greatest |t - stored| over the elements; the shapes must be equal. NaN is far
// from everything but NaN.
double safetensors_distance(const safetensors *file, const char *name,
                            calx_tensor *t);

// A JSON file of the folder CALX_SHARED; the caller calls json_decref().
json_t *safetensors_json(const char *name);

#endif
