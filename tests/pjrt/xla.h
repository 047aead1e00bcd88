// xla: what the parts of the test on real plugins share. Each test gets a
// client of four devices.
#ifndef CX_TESTS_PJRT_XLA_H
#define CX_TESTS_PJRT_XLA_H

#include <stdatomic.h>

#include "check.h"
#include "pjrt/internal.h"
#include "programs.h"

#define XLA_DEVICES 4

extern cx_pjrt_plugin *xla_plugin;
extern cx_pjrt_client *xla_client;

cx_pjrt_shape xla_shape(calx_dtype d, size_t rank, int64_t a, int64_t b);
cx_pjrt_buffer *xla_upload(size_t device, const cx_pjrt_shape *s,
                           const void *data);
// first, first + 1, …
cx_pjrt_buffer *xla_floats(size_t device, size_t n, float first);
void xla_check_floats(cx_pjrt_buffer *b, size_t n, float first, float step);

// A signature of equal shapes.
typedef struct xla_uniform {
  cx_pjrt_shape shapes[4];
  bool donated[4];
  cx_pjrt_signature signature;
} xla_uniform;
const cx_pjrt_signature *xla_like(xla_uniform *u, cx_pjrt_shape s,
                                  size_t n_params);
cx_pjrt_executable *xla_compile(const char *text,
                                const cx_pjrt_compile_options *options,
                                const cx_pjrt_signature *signature);
// f32[4] + f32[4]; the first may be donated.
cx_pjrt_executable *xla_compile_add(bool donate);
calx_status *xla_run2(cx_pjrt_executable *e, cx_pjrt_buffer *a,
                      cx_pjrt_buffer *b, cx_pjrt_buffer **out);

// Callbacks that count, and the wait for the first.
void xla_count_done(void *user);
void xla_wait_for(atomic_int *count);

#define XLA_TESTS(T)                    \
  T(test_devices)                       \
  T(test_description)                   \
  T(test_memory_stats)                  \
  T(test_device_count_from_environment) \
  T(test_transfers)                     \
  T(test_small_shapes)                  \
  T(test_zero_copy)                     \
  T(test_zero_copy_unaligned)           \
  T(test_borrow)                        \
  T(test_copy_between_devices)          \
  T(test_compile_error_has_a_line)      \
  T(test_signature_is_compared)         \
  T(test_too_many_replicas)             \
  T(test_overrides)                     \
  T(test_add)                           \
  T(test_donation)                      \
  T(test_wrong_arguments)               \
  T(test_two_clients)                   \
  T(test_any_device)                    \
  T(test_chosen_device)                 \
  T(test_release_while_running)         \
  T(test_events)                        \
  T(test_all_reduce_in_one_call)        \
  T(test_all_reduce_with_threads)       \
  T(test_serialize)                     \
  T(test_executable_memory)             \
  T(test_no_topology)
#define XLA_DECLARE(name) void name(void **state);
XLA_TESTS(XLA_DECLARE)

#endif
