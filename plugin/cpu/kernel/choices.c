// kernel/choices: the table of choices.
#include "kernel/choices.h"

#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"

enum {
  KEPT = 512,                     // the oldest go when it is full
  CHOICE = 1,                     // its word in a description
  NUMBERS = 1 + CPU_KERNEL_WORDS  // of an entry: threads, description
};

typedef struct choice {
  int threads;  // that it was measured on
  cpu_kernel_desc chosen;
} choice;

static cx_mutex lock = CX_MUTEX_INIT;
static choice choices[KEPT];
static size_t n_choices;  // ever

static size_t kept(void)
{
  return n_choices < KEPT ? n_choices : KEPT;
}

static cpu_kernel_desc without_choice(const cpu_kernel_desc *desc)
{
  cpu_kernel_desc d = *desc;
  d.words[CHOICE] = 0;
  return d;
}

static const choice *find(int threads, const cpu_kernel_desc *desc)
{
  const cpu_kernel_desc asked = without_choice(desc);
  for (size_t i = 0; i < kept(); i++) {
    const cpu_kernel_desc known = without_choice(&choices[i].chosen);
    if (choices[i].threads == threads &&
        memcmp(&known, &asked, sizeof asked) == 0) {
      return &choices[i];
    }
  }
  return NULL;
}

void cpu_kernel_times_add(cpu_kernel_times *times, int64_t ns)
{
  if (ns < times->least) {
    times->second = times->least;
    times->least = ns;
  } else if (ns < times->second) {
    times->second = ns;
  }
}

int cpu_kernel_times_choose(const cpu_kernel_times *times, int n)
{
  int best = 0;
  for (int i = 1; i < n; i++) {
    const int64_t other = times[best].least;
    // A smaller difference is noise.
    const int64_t clearly = other - other / 16;
    if (times[i].second < clearly) best = i;
  }
  return best;
}

bool cpu_kernel_choice_recall(int threads, cpu_kernel_desc *desc)
{
  cx_lock(&lock);
  const choice *found = find(threads, desc);
  if (found != NULL) *desc = found->chosen;
  cx_unlock(&lock);
  return found != NULL;
}

bool cpu_kernel_choice_remember(int threads, const cpu_kernel_desc *chosen)
{
  if (chosen->words[CHOICE] == 0) return false;
  cx_lock(&lock);
  if (find(threads, chosen) == NULL) {
    choices[n_choices++ % KEPT] = (choice){ threads, *chosen };
  }
  cx_unlock(&lock);
  return true;
}

calx_status *cpu_kernel_choices_save(int64_t **out, size_t *out_count)
{
  *out = cx_calloc(KEPT * NUMBERS, sizeof **out);
  if (*out == NULL) return cx_out_of_memory();
  cx_lock(&lock);
  *out_count = kept() * NUMBERS;
  for (size_t i = 0; i < kept(); i++) {
    int64_t *entry = *out + i * NUMBERS;
    entry[0] = choices[i].threads;
    memcpy(&entry[1], choices[i].chosen.words, sizeof choices[i].chosen.words);
  }
  cx_unlock(&lock);
  return NULL;
}

calx_status *cpu_kernel_choices_load(const int64_t *numbers, size_t count)
{
  if (count % NUMBERS != 0 || count / NUMBERS > KEPT) {
    return cx_invalid("%zu numbers are no choices of kernels", count);
  }
  for (size_t i = 0; i < count; i += NUMBERS) {
    cpu_kernel_desc desc;
    if (numbers[i] < 1 || numbers[i] > INT_MAX) continue;
    memcpy(desc.words, &numbers[i + 1], sizeof desc.words);
    (void)cpu_kernel_choice_remember((int)numbers[i], &desc);
  }
  return NULL;
}
