// ranks: what the tests of ranks share. No cmocka in a rank's thread: it
// returns a status, or counts.
#ifndef CX_TESTS_DIST_RANKS_H
#define CX_TESTS_DIST_RANKS_H

#include <stdatomic.h>

#include "calx/dist.h"
#include "pjrt/fake.h"
#include "support/support.h"

// "launch.c:12: WHAT is not so", to be returned by a rank.
#define RANK_CHECK(condition)                                              \
  do {                                                                     \
    if (!(condition)) {                                                    \
      return calx_status_new(CALX_INTERNAL, "%s:%d: not so: %s", __FILE__, \
                             __LINE__, #condition);                        \
    }                                                                      \
  } while (0)

// A rank's own check of a status: its code, and a piece of its message.
static inline calx_status *rank_wants(calx_status *got, calx_code code,
                                      const char *piece)
{
  calx_status *wrong = NULL;
  if (calx_status_code(got) != code ||
      strstr(calx_status_message(got), piece) == NULL) {
    wrong = calx_status_new(
        CALX_INTERNAL, "wanted %s with '%s', got %s: %s", calx_code_name(code),
        piece, calx_code_name(calx_status_code(got)), calx_status_message(got));
  }
  calx_status_free(got);
  return wrong;
}

// The devices of the client to come.
#ifdef CX_FAKE_PLUGIN
static fake ranks_fake;

static inline void set_devices(int n)
{
  char text[64];
  snprintf(text, sizeof text, "reset;devices=%d;platform=cpu", n);
  assert_true(ranks_fake.set(text));
}
#else
static inline void set_devices(int n)
{
  char text[16];
  snprintf(text, sizeof text, "%d", n);
  setenv("CPU_NUM_DEVICES", text, 1);
}
#endif

// On 1, 2, 3, 4 and 8 ranks that are threads, as far as `most`.
static inline void ranks_up_to(int most, calx_rank_fn *fn)
{
  for (int n = 1; n <= most; n += n < 4 ? 1 : 4) {
    set_devices(n);
    CHECK_STATUS_OK(calx_launch(fn, NULL));
    calx_shutdown();
  }
}

enum { RANKS_WORLDS = 4 };
static const int ranks_worlds[RANKS_WORLDS] = { 2, 3, 4, 8 };

// On so many ranks: threads, or processes and twice two of each. A
// process with threads starts no others, so processes come first in a test
// program.
static inline void ranks_on_all_worlds(calx_rank_fn *fn, bool processes)
{
  if (processes && !support_own_engine()) {
    print_message("  processes work together on our engine only\n");
    return;
  }
  for (int i = 0; i < RANKS_WORLDS; i++) {
    int n = ranks_worlds[i];
    set_devices(processes ? 1 : n);
    CHECK_STATUS_OK(calx_launch(fn, NULL, .processes = processes ? n : 1));
    if (!processes) calx_shutdown();
  }
  if (!processes) return;
  set_devices(2);
  CHECK_STATUS_OK(calx_launch(fn, NULL, .processes = 2));
}

static inline calx_status *rank_nothing(int index, void *user)
{
  (void)index;
  (void)user;
  return NULL;
}

#ifdef CX_FAKE_PLUGIN
static inline int ranks_setup_fake(void **state)
{
  ranks_fake = fake_open(CX_FAKE_PLUGIN);
  assert_non_null(ranks_fake.set);
  return support_setup_fake(state);
}
#endif

#endif
