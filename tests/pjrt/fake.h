// fake: the PJRT plugin of the tests, a shared object that does as it is told.
//
// It runs no mathematics: a result is a copy of the first argument of its type
// and size (that of the same place first), or zeros. Its settings are text,
// "name=value;name=value", given to set() at any time or in the environment
// FAKE_PJRT before loading:
//
//   reset                   all that follows as it was at first; must be first
//   major=N minor=N         the version told; the table stays as it is
//   cut=FUNCTION            the table ends before this slot
//   null=FUNCTION           this slot is NULL
//   fail=FUNCTION@K:CODE:TEXT   its K-th call from now (1: the next) fails
//   stop=FUNCTION           its next call stops the process until SIGCONT
//   late=K:CODE:TEXT        the K-th launch from now fails when it is done
//   async=1                 launches and transfers happen on a thread
//   hold=1                  … which waits until hold=0
//   devices=N platform=NAME of the clients to come (default 1, "fake")
//   xla=1                   has the attribute xla_version
//   outputs=N               the number of results told of any program
//   lose=output             launches leave result 0 NULL
//   lose=event              launches and transfers give no event
//   refuse=KEY              programs whose options override KEY are refused
//
// A file is one plugin: for two settings of what is read while loading, copy
// the file. calls() counts the calls of a function, live() the objects that the
// client has not destroyed, options() tells what the last client was made with,
// launch() the number that the last launch was given.
#ifndef CX_TESTS_PJRT_FAKE_H
#define CX_TESTS_PJRT_FAKE_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

// A call of the callbacks that the last client was given. bytes: the value, or
// the error's text.
typedef struct fake_value {
  enum { FAKE_GET, FAKE_TRY_GET, FAKE_PUT } what;
  const char *key;
  size_t key_size, size;
  int timeout_ms;
  char bytes[512];
} fake_value;

typedef struct fake {
  bool (*set)(const char *settings);  // false: not understood
  long (*calls)(const char *function);
  long (*live)(void);
  const char *(*options)(void);
  int (*launch)(void);
  bool (*has_store)(void);
  int (*store)(fake_value *v);  // the error's code
} fake;

// Also loads it. The functions are NULL when that fails.
static inline fake fake_open(const char *path)
{
  fake f = { NULL, NULL, NULL, NULL, NULL, NULL, NULL };
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    fprintf(stderr, "fake plugin: %s\n", dlerror());
    return f;
  }
  void *symbols[] = {
    dlsym(handle, "fake_pjrt_set"),    dlsym(handle, "fake_pjrt_calls"),
    dlsym(handle, "fake_pjrt_live"),   dlsym(handle, "fake_pjrt_options"),
    dlsym(handle, "fake_pjrt_launch"), dlsym(handle, "fake_pjrt_has_store"),
    dlsym(handle, "fake_pjrt_store")
  };
  memcpy(&f.set, &symbols[0], sizeof symbols[0]);
  memcpy(&f.calls, &symbols[1], sizeof symbols[1]);
  memcpy(&f.live, &symbols[2], sizeof symbols[2]);
  memcpy(&f.options, &symbols[3], sizeof symbols[3]);
  memcpy(&f.launch, &symbols[4], sizeof symbols[4]);
  memcpy(&f.has_store, &symbols[5], sizeof symbols[5]);
  memcpy(&f.store, &symbols[6], sizeof symbols[6]);
  return f;
}

#endif
