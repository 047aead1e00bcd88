// devices: runs one program on several devices. Each is a thread with its own
// thread pool and context, as in a client.
#ifndef TESTS_ENGINE_LOWER_DEVICES_H
#define TESTS_ENGINE_LOWER_DEVICES_H

#include "base/thread.h"
#include "chain.h"
#include "lower/compile.h"
#include "support/support.h"

enum { DEVICES_MOST = 4, DEVICES_VALUES = 24 };

// The device of each replica: 0, 1, …
extern const uint32_t devices_numbers[DEVICES_MOST];

typedef struct device {
  struct devices *of;
  uint32_t number;
  cpu_threads *pool;
  cpu_run_context *context;
  void *args[DEVICES_VALUES], *results[DEVICES_VALUES];
  // For the next run:
  int64_t after_beside;  // start after so many steps ran beside collectives
  const char *dies;      // fail with this message, without running
  calx_status *status;   // of the last run
} device;

typedef struct devices {
  cpu_run_program *program;
  const cpu_run_program_info *info;
  cpu_coll *coll;
  uint32_t n;
  int64_t timeout_ms;
  uint64_t run;
  uint32_t device_group;
  device d[DEVICES_MOST];
} devices;

// Compiles, saves and loads the program. Compiling is deterministic, so the
// bits of two programs' results are comparable.
void devices_new(devices *w, uint32_t n, const char *text, bool blocking);
void devices_free(devices *w);
// Runs all devices once, and sets their `status`.
void devices_run(devices *w);
void devices_run_well(devices *w);
// Sets the arguments to small numbers, different ones on each device.
void devices_fill(devices *w);
// The bits of all results.
bool devices_equal(const devices *a, const devices *b);

// A program compiled twice: with and without collectives in background.
typedef struct twins {
  devices plain, beside;
} twins;
void twins_new(twins *t, uint32_t n, const cx_text *text);
void twins_free(twins *t);
// Runs both once, without failures; whether the results have the same bits.
bool twins_run(twins *t);

// The number of steps that ran beside collectives so far.
int64_t devices_beside(void);

#endif
