// data/split: a dataset in parts that have no sample in common, as PyTorch
// draws them.
//
// Source: torch.utils.data.random_split (lengths from fractions; which sample
// goes to which part).
#include <math.h>

#include "base/alloc.h"
#include "base/options.h"
#include "data/dataset.h"
#include "data/randperm.h"

// Sums that are this close to 1 are of fractions, relatively.
#define CLOSE 1e-9

static calx_status *check_length(size_t k, double length, double most)
{
  if (length >= 0 && length <= most) return NULL;
  return cx_invalid("random split: length %zu is %g, it must be 0 to %g", k,
                    length, most);
}

// Samples of each part where the lengths are fractions of all of them: rounded
// down, and what is left is spread over the first parts.
static calx_status *take_fractions(const double *lengths, size_t n,
                                   int64_t size, int64_t *out)
{
  int64_t left = size;
  for (size_t k = 0; k < n; k++) {
    CALX_TRY(check_length(k, lengths[k], 1));
    out[k] = (int64_t)floor((double)size * lengths[k]);
    if (out[k] > left) out[k] = left;
    left -= out[k];
  }
  for (size_t k = 0; left > 0; left--, k = (k + 1) % n) out[k]++;
  return NULL;
}

static calx_status *take_lengths(const double *lengths, size_t n, int64_t size,
                                 int64_t *out)
{
  double sum = 0;
  if (lengths == NULL || n == 0) {
    return cx_invalid("random split: there are no lengths");
  }
  for (size_t k = 0; k < n; k++) sum += lengths[k];
  if (fabs(sum - 1) <= CLOSE) return take_fractions(lengths, n, size, out);
  int64_t left = size;
  for (size_t k = 0; k < n; k++) {
    CALX_TRY(check_length(k, lengths[k], (double)size));
    out[k] = (int64_t)lengths[k];
    if ((double)out[k] != lengths[k]) {
      return cx_invalid(
          "random split: length %zu is %g: lengths are whole numbers, or "
          "fractions whose sum is 1",
          k, lengths[k]);
    }
    left -= out[k];
  }
  if (left == 0) return NULL;
  return cx_invalid(
      "random split: the sum of the lengths is %lld, the dataset has %lld "
      "samples; they must be equal, or the lengths fractions whose sum is 1",
      (long long)(size - left), (long long)size);
}

static calx_status *make_parts(calx_dataset *dataset, const int64_t *lengths,
                               size_t n, const int64_t *order,
                               calx_dataset **out_parts)
{
  calx_status *status = NULL;
  for (size_t k = 0; k < n && status == NULL; k++) {
    out_parts[k] = calx_dataset_subset(dataset, order, lengths[k]);
    order += lengths[k];
    const calx_status *error = calx_dataset_error(out_parts[k]);
    if (error != NULL) status = cx_status_copy(error);
  }
  for (size_t k = 0; k < n && status != NULL; k++) {
    calx_dataset_free(out_parts[k]);
    out_parts[k] = NULL;
  }
  return status;
}

static calx_status *split(calx_dataset *dataset, const double *lengths,
                          size_t n, uint64_t seed, calx_dataset **out_parts)
{
  int64_t size = dataset->size;
  int64_t *parts = cx_calloc(n, sizeof *parts);
  int64_t *order = cx_calloc((size_t)size + 1, sizeof *order);
  calx_status *status =
      parts == NULL || order == NULL ? cx_out_of_memory() : NULL;
  if (status == NULL) status = take_lengths(lengths, n, size, parts);
  if (status == NULL) {
    cx_data_randperm(seed, size, order);
    status = make_parts(dataset, parts, n, order, out_parts);
  }
  cx_free(order);
  cx_free(parts);
  return status;
}

calx_status *calx_random_split_with(calx_dataset *dataset,
                                    const double *lengths, size_t n,
                                    const calx_random_split_options *options,
                                    calx_dataset **out_parts)
{
  calx_random_split_options o;
  CALX_TRY(cx_options_take("random split", options, &o, sizeof o));
  if (out_parts == NULL) {
    return cx_invalid("random split: there is no room for the parts");
  }
  for (size_t k = 0; k < n; k++) out_parts[k] = NULL;
  const calx_status *error = calx_dataset_error(dataset);
  if (error != NULL) return cx_status_copy(error);
  CALX_TRY(cx_data_not_iterable("random split", dataset));
  return split(dataset, lengths, n, o.seed, out_parts);
}
