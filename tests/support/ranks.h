// ranks: threads that are ranks, each with a device of the test's plugin.
//
// A rank's function runs in a thread of its own, where cmocka's asserts must
// not be used: RANK_CHECK and RANK_VALUES note what is wrong, and the test
// fails when all have come back. What a rank returns is how it ended, told to
// the others.
#ifndef CX_TESTS_SUPPORT_RANKS_H
#define CX_TESTS_SUPPORT_RANKS_H

#include <pthread.h>
#include <stdatomic.h>

#include "calx/collective.h"
#include "support/support.h"
#include "support/wait.h"
#include "world/world.h"

enum { RANKS_MOST = 8, RANKS_ELEMENTS = 512 };

typedef struct ranks_one {
  int rank, n;
  void *user;
  calx_device *device;
  calx_status *(*fn)(struct ranks_one *r);
  calx_status *status;  // that fn returned
  bool wrong;
  bool fails;  // what fn returns is meant to be an error
  pthread_t thread;
} ranks_one;

typedef calx_status *ranks_fn(ranks_one *r);

// ---- in a rank --------------------------------------------------------------

#define RANK_CHECK(r, condition)                                      \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: rank %d of %d: not so: %s\n", __FILE__, \
              __LINE__, (r)->rank, (r)->n, #condition);               \
      (r)->wrong = true;                                              \
    }                                                                 \
  } while (0)

// Takes the status.
#define RANK_OK(r, status) rank_ok_at((r), (status), __FILE__, __LINE__)
static inline void rank_ok_at(ranks_one *r, calx_status *status,
                              const char *file, int line)
{
  if (status == NULL) return;
  fprintf(stderr, "%s:%d: rank %d of %d: %s\n", file, line, r->rank, r->n,
          calx_status_message(status));
  r->wrong = true;
  calx_status_free(status);
}

// All elements of a tensor are these doubles.
static inline void rank_values_at(ranks_one *r, calx_tensor *t,
                                  const double *wanted, size_t n,
                                  double tolerance, const char *file, int line)
{
  unsigned char bytes[RANKS_ELEMENTS * 8];
  calx_dtype d = calx_tensor_dtype(t);
  size_t size = calx_dtype_size(d);
  if ((size_t)calx_tensor_numel(t) != n) {
    fprintf(stderr, "%s:%d: rank %d of %d: %lld elements, %zu wanted\n", file,
            line, r->rank, r->n, (long long)calx_tensor_numel(t), n);
    r->wrong = true;
    return;
  }
  calx_status *status = calx_tensor_read(t, bytes, n * size);
  if (status != NULL) {
    fprintf(stderr, "%s:%d: rank %d of %d: %s\n", file, line, r->rank, r->n,
            calx_status_message(status));
    calx_status_free(status);
    r->wrong = true;
    return;
  }
  for (size_t i = 0; i < n; i++) {
    double v = cx_load_double(d, bytes + i * size);
    if (support_is_close(v, wanted[i], tolerance)) continue;
    fprintf(stderr, "%s:%d: rank %d of %d: element %zu is %.9g, not %.9g\n",
            file, line, r->rank, r->n, i, v, wanted[i]);
    r->wrong = true;
    return;
  }
}

#define RANK_VALUES_OF(r, t, tolerance, wanted, n) \
  rank_values_at((r), (t), (wanted), (n), (tolerance), __FILE__, __LINE__)
#define RANK_VALUES(r, t, tolerance, ...)                                  \
  RANK_VALUES_OF((r), (t), (tolerance), ((const double[]){ __VA_ARGS__ }), \
                 sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double))

// In the current scope.
static inline calx_tensor *rank_tensor(calx_dtype dtype, calx_dims shape,
                                       const double *values)
{
  unsigned char bytes[RANKS_ELEMENTS * 8];
  size_t n = 1, size = calx_dtype_size(dtype);
  for (size_t i = 0; i < shape.count; i++) n *= (size_t)shape.values[i];
  for (size_t i = 0; i < n && i < RANKS_ELEMENTS; i++) {
    cx_store_double(dtype, bytes + i * size, values[i]);
  }
  return calx_tensor_from(bytes, dtype, shape);
}

#define RANK_VECTOR(...)                                                    \
  rank_tensor(                                                              \
      CALX_F32,                                                             \
      CALX_SHAPE(sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double)), \
      (const double[]){ __VA_ARGS__ })

// Whether a status is an error that says all of these pieces; frees it.
static inline bool rank_says(calx_status *status, calx_code code,
                             const char *const *pieces)
{
  bool right = calx_status_code(status) == code;
  for (; right && *pieces != NULL; pieces++) {
    right = strstr(calx_status_message(status), *pieces) != NULL;
  }
  if (!right) {
    fprintf(stderr, "%s: %s\n", calx_code_name(calx_status_code(status)),
            calx_status_message(status));
  }
  calx_status_free(status);
  return right;
}

#define RANK_STATUS(r, code, status, ...)     \
  RANK_CHECK((r), rank_says((status), (code), \
                            (const char *const[]){ __VA_ARGS__, NULL }))

// ---- all of them ------------------------------------------------------------

static inline void *ranks_thread(void *user)
{
  ranks_one *r = user;
  calx_device_set_current(r->device);
  r->status = r->fn(r);
  calx_status *late = cx_lazy_scope_end_thread();
  if (r->status == NULL) {
    r->status = late;
  } else {
    calx_status_free(late);
  }
  cx_world_rank_end(r->rank, r->status);
  return NULL;
}

// Runs fn on n ranks. Fails when a check did, or a rank returned an error.
static inline void ranks_run(int n, ranks_fn *fn, void *user)
{
  ranks_one all[RANKS_MOST] = { 0 };
  CHECK_STATUS_OK(cx_world_ranks(n));
  cx_lazy_ranks_reset();
  for (int i = 0; i < n; i++) {
    char name[16];
    snprintf(name, sizeof name, "xla:%d", i);
    all[i] = (ranks_one){ .rank = i, .n = n, .user = user, .fn = fn };
    CHECK_STATUS_OK(calx_device_open(name, &all[i].device));
  }
  for (int i = 0; i < n; i++) {
    assert_int_equal(
        pthread_create(&all[i].thread, NULL, ranks_thread, &all[i]), 0);
  }
  for (int i = 0; i < n; i++) pthread_join(all[i].thread, NULL);
  cx_world_agreement_reset();
  CHECK_STATUS_OK(cx_world_ranks(1));
  bool right = true;
  for (int i = 0; i < n; i++) {
    if (all[i].status != NULL && !all[i].fails) {
      fprintf(stderr, "rank %d of %d: %s\n", i, n,
              calx_status_message(all[i].status));
    }
    right &= (all[i].status != NULL) == all[i].fails && !all[i].wrong;
    calx_status_free(all[i].status);
  }
  assert_true(right);
}

static const int ranks_worlds[] = { 2, 3, 4, RANKS_MOST };

static inline void ranks_run_worlds(ranks_fn *fn, void *user)
{
  for (size_t i = 0; i < sizeof ranks_worlds / sizeof *ranks_worlds; i++) {
    ranks_run(ranks_worlds[i], fn, user);
  }
}

static inline int ranks_setup(void **state)
{
  setenv("CALX_CACHE_DIR", "off", 1);
  setenv("CPU_NUM_DEVICES", "8", 1);
  setenv("CALX_COLLECTIVE_TIMEOUT_S", "60", 1);
  if (getenv("CALX_PLUGIN") == NULL) setenv("CALX_PLUGIN", "calx", 1);
  // The world's agreement stays.
  support_ok(cx_world_ranks(RANKS_MOST), __FILE__, __LINE__);
  support_ok(cx_world_ranks(1), __FILE__, __LINE__);
  return support_setup(state);
}

// A plugin's callbacks may come a moment after what they tell of.
static inline int ranks_end(void **state)
{
  calx_shutdown();
  WAIT_UNTIL(cx_alloc_live() == support_kept);
  return support_nothing_left(state);
}

#define RANKS_TEST(function) \
  cmocka_unit_test_setup_teardown(function, NULL, ranks_end)

#endif
