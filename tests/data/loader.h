// loader: what the parts of the loader's test share: a dataset that counts and
// fails on demand, and the fake plugin as the device.
#ifndef CX_TESTS_DATA_LOADER_H
#define CX_TESTS_DATA_LOADER_H

#include <stdatomic.h>

#include "check.h"
#include "pjrt/fake.h"

extern fake loader_fake;

// Sample i is the two floats i and -i, and the label i.
typedef struct source {
  int64_t bad;        // this sample fails; -1: none
  atomic_llong gets;  // calls so far
  atomic_llong last;  // the highest sample asked for
  atomic_int hold;    // 1: a call waits until it is 0
} source;

#define SOURCE            \
  {                       \
    .bad = -1, .last = -1 \
  }

calx_dataset *source_dataset(source *s, int64_t size);

// The batch's labels, after a look at its tensors.
void source_labels(const calx_batch *batch, int64_t *out_labels);

// Runs the loader to the end of the epoch; the labels in order. @return batches
int64_t source_epoch(calx_loader *loader, int64_t *out_labels,
                     int64_t *out_count);

// Waits until nothing but what was there before the test is allocated.
void source_wait_home(void **state);

void test_batches(void **state);
void test_options(void **state);
void test_workers(void **state);
void test_shuffle(void **state);
void test_epochs(void **state);
void test_one_field(void **state);
void test_empty(void **state);
void test_kept_tensors(void **state);
void test_bounds(void **state);
void test_slow_transfers(void **state);
void test_late_transfers(void **state);

void test_bad_sample(void **state);
void test_bad_sample_shuffled(void **state);
void test_error_in_scope(void **state);
void test_tensors_in_get(void **state);
void test_failed_scope(void **state);
void test_failed_upload(void **state);
void test_failed_dataset(void **state);
void test_refused_options(void **state);
void test_leaving_early(void **state);
void test_closing_early(void **state);
void test_no_memory(void **state);
void test_absent(void **state);
void test_no_room(void **state);

void test_sampler(void **state);
void test_sampler_meanwhile(void **state);
void test_even_ranks(void **state);
void test_sampler_refused(void **state);
void test_position(void **state);
void test_resume(void **state);
void test_resume_other_size(void **state);
void test_late_device(void **state);

void test_sync(void **state);
void test_sync_at_end(void **state);
void test_failed_step(void **state);
void test_late_failure(void **state);

void test_generator(void **state);
void test_generator_small(void **state);
void test_generator_places(void **state);
void test_generator_refused(void **state);

#endif
