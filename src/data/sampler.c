// data/sampler: a permutation of the samples for each epoch.
//
// Fisher-Yates with the room's counter-based generator: every order is equally
// likely, and the same (seed, epoch) gives the same order on every machine and
// whatever was drawn before.
//
// Source: D. Knuth, "The Art of Computer Programming" 2, 3.4.2, algorithm P.
#include "data/sampler.h"

#include "data/random.h"

void cx_data_permutation(uint64_t seed, int64_t epoch, int64_t n,
                         int64_t *out_order)
{
  cx_data_random random = cx_data_random_new(seed, (uint64_t)epoch);
  for (int64_t i = 0; i < n; i++) out_order[i] = i;
  for (int64_t left = n; left > 1; left--) {
    int64_t j = (int64_t)cx_data_random_below(&random, (uint64_t)left);
    int64_t last = out_order[left - 1];
    out_order[left - 1] = out_order[j];
    out_order[j] = last;
  }
}

int64_t cx_data_batch_count(int64_t n, int64_t batch_size, bool drop_last)
{
  int64_t whole = n / batch_size;
  return whole + (!drop_last && n % batch_size != 0 ? 1 : 0);
}
