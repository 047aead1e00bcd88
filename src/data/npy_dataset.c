// data/npy_dataset: rows of numpy's arrays.
#include "calx/io.h"
#include "data/dataset.h"

static calx_dataset *check(const void *path, const char *const *names,
                           size_t count)
{
  if (path == NULL || names == NULL || count == 0 || count > CALX_MAX_FIELDS) {
    return cx_data_failed(cx_invalid(
        "npy dataset: %s of %zu arrays, there must be 1 to %d",
        path == NULL || names == NULL ? "NULL in the place" : "names", count,
        CALX_MAX_FIELDS));
  }
  for (size_t k = 0; k < count; k++) {
    if (names[k] != NULL) continue;
    return cx_data_failed(cx_invalid("npy dataset: name %zu is NULL", k));
  }
  return NULL;
}

static calx_status *not_an_array(const char *path, const char *key,
                                 const calx_value *v)
{
  return v == NULL
             ? cx_error(CALX_NOT_FOUND,
                        "npy dataset: '%s' has no array '%.100s'", path, key)
             : cx_invalid("npy dataset: '%s' of '%s' is %s, no array", key,
                          path, calx_kind_name(calx_value_kind(v)));
}

calx_dataset *calx_dataset_npy(const char *const *paths, size_t count)
{
  calx_dataset *failed = check(paths, paths, count);
  if (failed != NULL) return failed;
  calx_value *values[CALX_MAX_FIELDS] = { NULL };
  calx_tensor *tensors[CALX_MAX_FIELDS];
  calx_status *status = NULL;
  for (size_t k = 0; k < count && status == NULL; k++) {
    status = calx_load(paths[k], &values[k], .format = CALX_FORMAT_NPY);
    tensors[k] = calx_value_as_tensor(values[k]);
  }
  calx_dataset *dataset = status != NULL
                              ? cx_data_failed(status)
                              : cx_data_of_tensors(tensors, count, false);
  for (size_t k = 0; k < count; k++) calx_value_free(values[k]);
  return dataset;
}

calx_dataset *calx_dataset_npz(const char *path, const char *const *keys,
                               size_t count)
{
  calx_dataset *failed = check(path, keys, count);
  if (failed != NULL) return failed;
  calx_value *dict;
  calx_tensor *tensors[CALX_MAX_FIELDS];
  calx_status *status = calx_load(path, &dict, .format = CALX_FORMAT_NPZ);
  for (size_t k = 0; k < count && status == NULL; k++) {
    const calx_value *v = calx_value_get(dict, keys[k]);
    tensors[k] = calx_value_as_tensor(v);
    if (tensors[k] == NULL) status = not_an_array(path, keys[k], v);
  }
  calx_dataset *dataset = status != NULL
                              ? cx_data_failed(status)
                              : cx_data_of_tensors(tensors, count, false);
  calx_value_free(dict);
  return dataset;
}
