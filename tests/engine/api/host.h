// host: the other side of the table, as short as the tests need it.
#ifndef CX_TESTS_ENGINE_API_HOST_H
#define CX_TESTS_ENGINE_API_HOST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "abi/calx_cpu.h"
#include "pjrt/programs.h"

extern const PJRT_Api *api;

// The code of an error, its words (kept until the next call); destroys it.
int host_take(PJRT_Error *error);
const char *host_words(void);

#define HOST_OK(call) host_ok((call), __FILE__, __LINE__)
void host_ok(PJRT_Error *error, const char *file, int line);
// Fails with this code and words that hold the given ones.
#define HOST_FAILS(code, call, text) \
  host_fails((code), (call), (text), __FILE__, __LINE__)
void host_fails(int code, PJRT_Error *error, const char *text, const char *file,
                int line);

// A function of the table with the fields of its arguments; evaluates to the
// error, and leaves the arguments in `name`.
#define ARGS(name, function, ...) \
  function##_Args name = { CX_PJRT_ARGS(function##_Args), __VA_ARGS__ }
#define CALL(function, ...) \
  api->function(            \
      &(function##_Args){ CX_PJRT_ARGS(function##_Args), __VA_ARGS__ })

PJRT_Client *host_client(int64_t n_devices);
void host_client_free(PJRT_Client *client);
PJRT_Device *host_device(PJRT_Client *client, size_t i);

PJRT_Buffer *host_buffer(PJRT_Device *device, PJRT_Buffer_Type type,
                         const void *data, size_t rank, const int64_t *dims);
// f32[n]: first, first + 1, …
PJRT_Buffer *host_floats(PJRT_Device *device, size_t n, float first);
// Whether the buffer is complete or has failed; does not wait.
bool host_is_ready(PJRT_Buffer *buffer);
void host_free(PJRT_Buffer *buffer);
bool host_is_deleted(PJRT_Buffer *buffer);
void host_read(PJRT_Buffer *buffer, void *dst, size_t size);
void host_check_floats(PJRT_Buffer *buffer, size_t n, float first, float step);
PJRT_Error *host_ready(PJRT_Buffer *buffer);  // waits; its error
PJRT_Error *host_wait(PJRT_Event *event);     // and destroys

// Compile options of so many replicas and partitions.
typedef struct host_options {
  char bytes[64];
  size_t size;
} host_options;
host_options host_replicas(int replicas, int partitions);
PJRT_Error *host_compile(PJRT_Client *client, const char *text,
                         const char *options, size_t size,
                         PJRT_LoadedExecutable **out);
PJRT_LoadedExecutable *host_program(PJRT_Client *client, const char *text);
void host_program_free(PJRT_LoadedExecutable *executable);
// One list of arguments, one result.
PJRT_Error *host_run(PJRT_LoadedExecutable *executable, PJRT_Device *device,
                     PJRT_Buffer *const *args, size_t n, PJRT_Buffer **out);

// An f32[n] buffer that is pending until host_fulfil().
typedef struct host_pending {
  PJRT_AsyncHostToDeviceTransferManager *manager;
  PJRT_Buffer *buffer;
  size_t n;
} host_pending;
host_pending host_promise(PJRT_Client *client, size_t device, size_t n);
void host_fulfil(host_pending *pending, float first);
void host_break(host_pending *pending, const char *why);

// Nothing is left of statuses and blocks of memory.
int host_begin(void **state);
int host_end(void **state);
#define HOST_TEST(function) \
  cmocka_unit_test_setup_teardown(function, host_begin, host_end)

#endif
