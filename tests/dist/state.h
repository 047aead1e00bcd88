// state: all that a model keeps, as numbers, to be compared between ranks and
// runs.
#ifndef CX_TESTS_DIST_STATE_H
#define CX_TESTS_DIST_STATE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>

#include "base/dtype.h"
#include "calx/nn.h"

typedef struct state_numbers {
  double *values;
  size_t n, capacity;  // capacity: of values that are not the state's own
  calx_status *status;
} state_numbers;

// Memory, all zero, that processes started after it have too; it stays.
static inline void *state_shared(size_t size)
{
  void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

static inline void state_add(state_numbers *s, calx_tensor *t)
{
  calx_dtype d = calx_tensor_dtype(t);
  size_t count = (size_t)calx_tensor_numel(t), size = calx_dtype_size(d);
  if (s->capacity == 0) {
    s->values = realloc(s->values, (s->n + count) * sizeof *s->values);
  } else if (count > s->capacity - s->n) {
    calx_status_free(s->status);
    s->status =
        calx_status_new(CALX_INTERNAL, "no room for %zu numbers", s->n + count);
    return;
  }
  unsigned char *bytes = malloc(count * size + 1);
  if (s->status == NULL) s->status = calx_tensor_read(t, bytes, count * size);
  for (size_t i = 0; i < count; i++) {
    s->values[s->n++] = cx_load_double(d, bytes + i * size);
  }
  free(bytes);
}

static inline void state_visit(void *user, const char *path,
                               calx_entry_kind kind, calx_tensor *t)
{
  (void)path;
  (void)kind;
  state_add(user, t);
}

// Adds every parameter and buffer of a model.
static inline void state_add_model(state_numbers *s, calx_module *model)
{
  calx_module_visit(model, state_visit, s);
}

// Every parameter and buffer of a model; free() the values.
static inline state_numbers state_of(calx_module *model)
{
  state_numbers s = { .n = 0 };
  state_add_model(&s, model);
  return s;
}

static inline bool state_same_bits(const state_numbers *a,
                                   const state_numbers *b)
{
  return a->n == b->n &&
         memcmp(a->values, b->values, a->n * sizeof(double)) == 0;
}

// The greatest difference; infinite for other sizes and for NaN.
static inline double state_distance(const state_numbers *a,
                                    const state_numbers *b)
{
  double most = a->n == b->n ? 0 : HUGE_VAL;
  for (size_t i = 0; i < a->n && i < b->n; i++) {
    double d = fabs(a->values[i] - b->values[i]);
    if (!(d <= most)) most = d == d ? d : HUGE_VAL;
  }
  return most;
}

#endif
