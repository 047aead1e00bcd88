// data/sampler_random: samples of a list, and samples drawn by weights.
//
// With replacement a sample is found in the running sums of the weights.
// Without, each sample waits for a time that is exponential with its weight as
// rate, and the first ones are taken: that is drawing one after the other, each
// time by the weights of those that are left.
//
// Source: P. Efraimidis, P. Spirakis, "Weighted random sampling with a
// reservoir", Information Processing Letters 97 (2006).
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "data/sampler.h"

// ---- a list -----------------------------------------------------------------

typedef struct listed {
  uint64_t seed;
  int64_t count;
  int64_t indices[];
} listed;

static calx_status *shuffle_list(void *user, int64_t epoch, int64_t *out_order)
{
  const listed *l = user;
  cx_data_permutation(l->seed, epoch, l->count, out_order);
  for (int64_t i = 0; i < l->count; i++) {
    out_order[i] = l->indices[out_order[i]];
  }
  return NULL;
}

static calx_status *make_list(const int64_t *indices, int64_t count,
                              const calx_subset_random_sampler_options *given,
                              listed **out_list, int64_t *out_size)
{
  static const char whose[] = "subset random sampler";
  calx_subset_random_sampler_options o;
  CALX_TRY(cx_options_take(whose, given, &o, sizeof o));
  if (count < 0 || (indices == NULL && count > 0)) {
    return cx_invalid("%s: %lld indices%s", whose, (long long)count,
                      indices == NULL ? ", which are NULL" : "");
  }
  for (int64_t i = 0; i < count; i++) {
    if (indices[i] < 0) {
      return cx_invalid("%s: index %lld is %lld", whose, (long long)i,
                        (long long)indices[i]);
    }
    if (indices[i] >= *out_size) *out_size = indices[i] + 1;
  }
  if ((uint64_t)count > (SIZE_MAX - sizeof **out_list) / sizeof *indices) {
    return cx_out_of_memory();
  }
  size_t bytes = (size_t)count * sizeof *indices;
  listed *l = *out_list = cx_alloc(sizeof *l + bytes);
  if (l == NULL) return cx_out_of_memory();
  l->seed = o.seed;
  l->count = count;
  if (bytes > 0) memcpy(l->indices, indices, bytes);
  return NULL;
}

calx_sampler *calx_subset_random_sampler_with(
    const int64_t *indices, int64_t count,
    const calx_subset_random_sampler_options *options)
{
  listed *l = NULL;
  int64_t size = 0;
  calx_status *error = make_list(indices, count, options, &l, &size);
  return cx_data_sampler_custom(error, size, count, shuffle_list, l, cx_free);
}

// ---- weights ----------------------------------------------------------------

typedef struct weighted {
  uint64_t seed;
  int64_t num_samples;
  int64_t count;
  double values[];  // running sums; without replacement the weights
} weighted;

// Uniform in (0, 1].
static double draw_uniform(cx_data_random *r)
{
  return (double)((cx_data_random_next(r) >> 11) + 1) * 0x1p-53;
}

static calx_status *draw_by_sums(void *user, int64_t epoch, int64_t *out_order)
{
  const weighted *w = user;
  cx_data_random r = cx_data_random_new(w->seed, (uint64_t)epoch);
  for (int64_t i = 0; i < w->num_samples; i++) {
    double at = draw_uniform(&r) * w->values[w->count - 1];
    int64_t low = 0, high = w->count - 1;  // the first sum not below `at`
    while (low < high) {
      int64_t middle = low + (high - low) / 2;
      if (w->values[middle] >= at) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    out_order[i] = low;
  }
  return NULL;
}

typedef struct arrival {
  double time;
  int64_t sample;
} arrival;

static int by_time(const void *left, const void *right)
{
  const arrival *x = left, *y = right;
  if (x->time != y->time) return x->time < y->time ? -1 : 1;
  return x->sample < y->sample ? -1 : x->sample > y->sample;
}

static calx_status *draw_once(void *user, int64_t epoch, int64_t *out_order)
{
  const weighted *w = user;
  arrival *all = cx_calloc((size_t)w->count, sizeof *all);
  if (all == NULL) return cx_out_of_memory();
  cx_data_random r = cx_data_random_new(w->seed, (uint64_t)epoch);
  for (int64_t i = 0; i < w->count; i++) {
    double wait = -log(draw_uniform(&r));
    all[i].time = w->values[i] > 0 ? wait / w->values[i] : (double)INFINITY;
    all[i].sample = i;
  }
  qsort(all, (size_t)w->count, sizeof *all, by_time);
  for (int64_t i = 0; i < w->num_samples; i++) out_order[i] = all[i].sample;
  cx_free(all);
  return NULL;
}

static const char whose_weights[] = "weighted random sampler";

static calx_status *check_weights(const double *weights, int64_t count,
                                  int64_t num_samples, bool once)
{
  double sum = 0;
  int64_t positive = 0;
  if (weights == NULL || count <= 0) {
    return cx_invalid("%s: %lld weights%s", whose_weights, (long long)count,
                      weights == NULL ? ", which are NULL" : "");
  }
  for (int64_t i = 0; i < count; i++) {
    if (!(weights[i] >= 0) || isinf(weights[i])) {
      return cx_invalid("%s: weight %lld is %g", whose_weights, (long long)i,
                        weights[i]);
    }
    sum += weights[i];
    positive += weights[i] > 0;
  }
  if (sum == 0 || isinf(sum)) {
    return cx_invalid("%s: the sum of the weights is %g", whose_weights, sum);
  }
  if (num_samples > 0 && !(once && num_samples > positive)) return NULL;
  return cx_invalid(
      "%s: num_samples is %lld%s; %lld of %lld weights are "
      "above 0",
      whose_weights, (long long)num_samples,
      once ? ", without replacement" : "", (long long)positive,
      (long long)count);
}

static calx_status *make_weights(
    const double *weights, int64_t count, int64_t num_samples,
    const calx_weighted_random_sampler_options *given, weighted **out,
    bool *out_once)
{
  calx_weighted_random_sampler_options o;
  CALX_TRY(cx_options_take(whose_weights, given, &o, sizeof o));
  CALX_TRY(check_weights(weights, count, num_samples, o.no_replacement));
  size_t bytes;
  if (!cx_mul_size((size_t)count, sizeof *weights, &bytes) ||
      !cx_add_size(bytes, sizeof **out, &bytes) ||
      (*out = cx_alloc(bytes)) == NULL) {
    return cx_out_of_memory();
  }
  weighted *w = *out;
  *w = (weighted){ o.seed, num_samples, count };
  double sum = 0;
  for (int64_t i = 0; i < count; i++) {
    sum += weights[i];
    w->values[i] = o.no_replacement ? weights[i] : sum;
  }
  *out_once = o.no_replacement;
  return NULL;
}

calx_sampler *calx_weighted_random_sampler_with(
    const double *weights, int64_t count, int64_t num_samples,
    const calx_weighted_random_sampler_options *options)
{
  weighted *w = NULL;
  bool once = false;
  calx_status *error =
      make_weights(weights, count, num_samples, options, &w, &once);
  return cx_data_sampler_custom(error, count, num_samples,
                                once ? draw_once : draw_by_sums, w, cx_free);
}
