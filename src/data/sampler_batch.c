// data/sampler_batch: samplers of the caller's, and those that decide which
// samples make a batch.
#include "base/alloc.h"
#include "base/options.h"
#include "data/sampler.h"

calx_sampler *calx_sampler_new(int64_t count, calx_sampler_order_fn *order,
                               void *user, void (*free)(void *user))
{
  calx_status *error = NULL;
  if (count < 0) {
    error = cx_invalid("sampler: a count of %lld", (long long)count);
  } else if (order == NULL) {
    error = cx_invalid("sampler: order is NULL");
  }
  return cx_data_sampler_custom(error, 0, count, order, user, free);
}

// ---- another sampler's samples ----------------------------------------------

typedef struct grouped {
  const calx_sampler *sampler;
  int64_t batch_size, batches;
  bool drop_last;
} grouped;

static calx_status *write_groups(void *user, int64_t epoch, int64_t *out_order,
                                 int64_t *out_sizes)
{
  const grouped *g = user;
  int64_t count = g->sampler->count;
  int64_t kept = g->drop_last ? g->batches * g->batch_size : count;
  int64_t *all = out_order;
  if (kept < count) {  // the last ones are left out
    all = cx_calloc((size_t)count, sizeof *all);
    if (all == NULL) return cx_out_of_memory();
  }
  calx_status *status = cx_data_sampler_order(g->sampler, epoch, all);
  for (int64_t i = 0; all != out_order && i < kept; i++) out_order[i] = all[i];
  if (all != out_order) cx_free(all);
  for (int64_t b = 0; b < g->batches; b++, count -= g->batch_size) {
    out_sizes[b] = count < g->batch_size ? count : g->batch_size;
  }
  return status;
}

static calx_status *group(const calx_sampler *sampler, int64_t batch_size,
                          const calx_batch_sampler_options *given,
                          grouped **out)
{
  calx_batch_sampler_options o;
  CALX_TRY(cx_options_take("batch sampler", given, &o, sizeof o));
  const calx_status *error = calx_sampler_error(sampler);
  if (error != NULL) return cx_status_copy(error);
  if (sampler->write_batches != NULL) {
    return cx_invalid("batch sampler: the sampler is a batch sampler already");
  }
  if (batch_size <= 0) {
    return cx_invalid("batch sampler: a batch size of %lld",
                      (long long)batch_size);
  }
  *out = cx_alloc(sizeof **out);
  if (*out == NULL) return cx_out_of_memory();
  **out = (grouped){ .sampler = sampler,
                     .batch_size = batch_size,
                     .batches = cx_data_batch_count(sampler->count, batch_size,
                                                    o.drop_last),
                     .drop_last = o.drop_last };
  return NULL;
}

static void set_batches(calx_sampler *s, int64_t batches, int64_t largest,
                        calx_batch_order_fn *write)
{
  if (calx_sampler_error(s) != NULL) return;
  s->write_batches = write;
  s->batches = batches;
  s->largest = largest;
}

calx_sampler *calx_batch_sampler_with(const calx_sampler *sampler,
                                      int64_t batch_size,
                                      const calx_batch_sampler_options *options)
{
  grouped *g = NULL;
  int64_t size = 0, count = 0, batches = 0;
  calx_status *error = group(sampler, batch_size, options, &g);
  if (error == NULL) {
    size = sampler->size;
    batches = g->batches;
    count = g->drop_last ? batches * batch_size : sampler->count;
  }
  calx_sampler *s =
      cx_data_sampler_custom(error, size, count, NULL, g, cx_free);
  set_batches(s, batches, batch_size, write_groups);
  return s;
}

// ---- the caller's -----------------------------------------------------------

calx_sampler *calx_batch_sampler_new(int64_t count, int64_t batches,
                                     int64_t largest,
                                     calx_batch_order_fn *order, void *user,
                                     void (*free)(void *user))
{
  calx_status *error = NULL;
  if (order == NULL) {
    error = cx_invalid("batch sampler: order is NULL");
  } else if (count < 0 || batches < 0 || largest < 0 || batches > count ||
             (batches == 0) != (count == 0) ||
             (count > 0 && (largest < 1 || (count - 1) / largest >= batches))) {
    error = cx_invalid(
        "batch sampler: %lld samples in %lld batches of at most %lld",
        (long long)count, (long long)batches, (long long)largest);
  }
  calx_sampler *s = cx_data_sampler_custom(error, 0, count, NULL, user, free);
  set_batches(s, batches, largest, order);
  return s;
}

// ---- asking it --------------------------------------------------------------

int64_t calx_sampler_batches(const calx_sampler *sampler)
{
  return calx_sampler_error(sampler) == NULL ? sampler->batches : 0;
}

calx_status *cx_data_sampler_batch_order(const calx_sampler *s, int64_t epoch,
                                         int64_t *out_order, int64_t *out_sizes)
{
  CALX_TRY(s->write_batches(s->user, epoch, out_order, out_sizes));
  int64_t left = s->count;
  for (int64_t b = 0; b < s->batches; b++) {
    if (out_sizes[b] < 1 || out_sizes[b] > s->largest || out_sizes[b] > left) {
      return cx_invalid(
          "batch sampler: batch %lld of epoch %lld has %lld samples; at most "
          "%lld are possible, and %lld are left of the epoch",
          (long long)b, (long long)epoch, (long long)out_sizes[b],
          (long long)s->largest, (long long)left);
    }
    left -= out_sizes[b];
  }
  if (left == 0) return NULL;
  return cx_invalid(
      "batch sampler: the batches of epoch %lld have %lld samples, the epoch "
      "has %lld",
      (long long)epoch, (long long)(s->count - left), (long long)s->count);
}

calx_status *calx_sampler_batch_order(const calx_sampler *sampler,
                                      int64_t *out_order, int64_t *out_sizes)
{
  const calx_status *error = calx_sampler_error(sampler);
  if (error != NULL) return cx_status_copy(error);
  if (sampler->write_batches == NULL) {
    return cx_invalid("sampler: it is no batch sampler");
  }
  if (out_order == NULL || out_sizes == NULL) {
    return cx_invalid("sampler: there is no room for the %s: it is NULL",
                      out_order == NULL ? "order" : "sizes");
  }
  return cx_data_sampler_batch_order(sampler, calx_sampler_epoch(sampler),
                                     out_order, out_sizes);
}
