// metrics/totals: states on the host, of this rank and of all ranks.
//
// One exchange has all states of a metric: a header of shapes, and behind it
// the elements as doubles, which hold counts up to 2^53.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "calx/dist.h"
#include "metrics/metrics.h"
#include "profiler/profiler.h"

void cx_metrics_totals_free(cx_metrics_totals *t)
{
  for (size_t i = 0; i < CX_METRICS_STATES; i++) cx_free(t->states[i].values);
  *t = (cx_metrics_totals){ 0 };
}

// ---- one state --------------------------------------------------------------

static bool numel(calx_dims shape, size_t *out)
{
  int64_t n = 0;
  size_t bytes;
  bool fits = cx_dims_bytes(CALX_F64, shape.values, shape.count, &n, &bytes);
  *out = (size_t)n;
  return fits;
}

// Room for further elements, behind those that are there; NULL: no memory.
static double *extend(cx_metrics_total *t, size_t n)
{
  size_t need;
  if (!cx_add_size(t->count, n, &need) ||
      !cx_grow(&t->values, &t->capacity, need + 1, sizeof *t->values)) {
    return NULL;
  }
  t->count = need;
  return t->values + need - n;
}

// A list's shape with further rows; the first ones bring it.
static bool add_rows(cx_metrics_total *t, calx_dims rows)
{
  if (t->count == 0) {
    t->shape = rows;
    return true;
  }
  if (rows.count != t->shape.count || rows.count == 0 ||
      memcmp(rows.values + 1, t->shape.values + 1,
             (rows.count - 1) * sizeof *rows.values) != 0) {
    return false;
  }
  t->shape.values[0] += rows.values[0];
  return true;
}

// False: no memory, or other rows than before.
static bool append(cx_metrics_total *t, calx_dims shape, const double *values,
                   size_t n)
{
  if (!add_rows(t, shape)) return false;
  double *to = extend(t, n);
  if (to != NULL && n > 0) memcpy(to, values, n * sizeof *values);
  return to != NULL;
}

calx_status *cx_metrics_total_read(cx_metrics_total *total, calx_tensor *tensor)
{
  const calx_dtype dtype = calx_tensor_dtype(tensor);
  const size_t n = (size_t)calx_tensor_numel(tensor),
               size = calx_dtype_size(dtype);
  unsigned char *bytes = cx_alloc(n * size);
  cx_profiler_own_read();  // the value that a program reads of it counts
  calx_status *status = bytes == NULL
                            ? cx_out_of_memory()
                            : calx_tensor_read(tensor, bytes, n * size);
  if (status == NULL && !add_rows(total, calx_tensor_shape(tensor))) {
    status = cx_error(CALX_INTERNAL, "metrics: rows of different sizes");
  }
  double *values = status == NULL ? extend(total, n) : NULL;
  if (status == NULL && values == NULL) status = cx_out_of_memory();
  for (size_t i = 0; i < n && status == NULL; i++) {
    values[i] = cx_load_double(dtype, bytes + i * size);
  }
  cx_free(bytes);
  return status;
}

// ---- this rank --------------------------------------------------------------

// The states that are one tensor, in one program and one transfer.
static calx_status *read_tensors(const calx_metric *m, cx_metrics_totals *out)
{
  calx_tensor *parts[CX_METRICS_STATES];
  size_t n = 0;
  const calx_dims flat = calx_dims_of((int64_t[]){ -1 }, 1);
  for (size_t i = 0; i < m->n_states; i++) {
    calx_tensor *t = m->states[i].tensor;
    if (t == NULL) continue;
    parts[n++] = calx_reshape(calx_to_dtype(t, CALX_F64), flat);
  }
  cx_metrics_total all = { .values = NULL };
  calx_status *status = cx_metrics_total_read(&all, calx_cat(parts, n, 0));
  const double *from = all.values;
  for (size_t i = 0; i < m->n_states && status == NULL; i++) {
    if (m->states[i].tensor == NULL) continue;
    const calx_dims shape = calx_tensor_shape(m->states[i].tensor);
    const size_t count = (size_t)calx_tensor_numel(m->states[i].tensor);
    if (!append(&out->states[i], shape, from, count)) {
      status = cx_out_of_memory();
    }
    from += count;
  }
  cx_free(all.values);
  return status;
}

// Of a step that failed, which changes nothing.
static bool is_lost(const calx_metric *m, size_t update)
{
  for (size_t i = 0; i < m->n_states; i++) {
    const cx_metrics_state *s = &m->states[i];
    if (update < s->n_list && calx_tensor_error(s->list[update]) != NULL) {
      return true;
    }
  }
  return false;
}

static calx_status *read_list(const calx_metric *m, const cx_metrics_state *s,
                              cx_metrics_total *out)
{
  for (size_t k = 0; k < s->n_list; k++) {
    if (!is_lost(m, k)) CALX_TRY(cx_metrics_total_read(out, s->list[k]));
  }
  return NULL;
}

calx_status *cx_metrics_totals_of(const calx_metric *m, cx_metrics_totals *out)
{
  out->updates = m->updates;
  out->is_wide = m->is_wide;
  for (size_t i = 0; i < m->n_states; i++) {
    CALX_TRY(read_list(m, &m->states[i], &out->states[i]));
  }
  return read_tensors(m, out);
}

// ---- all ranks --------------------------------------------------------------

typedef struct rank_states {
  int64_t updates, is_wide;
  struct {
    int64_t rank, dims[CALX_MAX_RANK];
  } shapes[CX_METRICS_STATES];
} rank_states;  // what a payload begins with

// The payload; NULL without memory.
static char *pack(const calx_metric *m, const cx_metrics_totals *t,
                  size_t *out_bytes)
{
  rank_states head = { .updates = t->updates, .is_wide = t->is_wide };
  size_t bytes = sizeof head;
  for (size_t i = 0; i < m->n_states; i++) {
    const calx_dims *shape = &t->states[i].shape;
    head.shapes[i].rank = (int64_t)shape->count;
    memcpy(head.shapes[i].dims, shape->values, sizeof shape->values);
    bytes += t->states[i].count * sizeof(double);
  }
  char *payload = cx_alloc(bytes), *to = payload;
  if (payload == NULL) return NULL;
  memcpy(to, &head, sizeof head);
  to += sizeof head;
  for (size_t i = 0; i < m->n_states; i++) {
    const size_t n = t->states[i].count * sizeof(double);
    if (n > 0) memcpy(to, t->states[i].values, n);
    to += n;
  }
  *out_bytes = bytes;
  return payload;
}

static void reduce(cx_metrics_reduction reduction, double *total,
                   const double *other, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    const double v = other[i];
    if (reduction == CX_METRICS_SUM) {
      total[i] += v;
    } else if (isnan(v) ||
               (reduction == CX_METRICS_MIN ? v < total[i] : v > total[i])) {
      total[i] = v;  // and NaN stays, as in an update
    }
  }
}

// Of a rank whose elements are the first, or further ones. False: they do not
// fit, or there is no memory.
static bool join_state(cx_metrics_reduction reduction, bool is_first,
                       calx_dims shape, const double *from, size_t n,
                       cx_metrics_total *t)
{
  if (!is_first && reduction != CX_METRICS_CAT) {
    if (n != t->count) return false;
    reduce(reduction, t->values, from, n);
    return true;
  }
  if (is_first) t->count = 0;
  return append(t, shape, from, n);
}

// Adds a rank's payload. The first one with an update replaces what is there.
static bool join(const calx_metric *m, const char *payload, size_t size,
                 bool *is_first, cx_metrics_totals *t)
{
  rank_states head;
  if (size < sizeof head) return false;
  memcpy(&head, payload, sizeof head);
  if (head.updates == 0) return true;
  const double *from = (const double *)(const void *)(payload + sizeof head);
  size_t left = (size - sizeof head) / sizeof *from;
  for (size_t i = 0; i < m->n_states; i++) {
    const int64_t rank = head.shapes[i].rank;
    if (rank < 0 || rank > CALX_MAX_RANK) return false;
    const calx_dims shape = calx_dims_of(head.shapes[i].dims, (size_t)rank);
    size_t n;
    if (!numel(shape, &n) || n > left) return false;
    if (!join_state(m->states[i].reduction, *is_first, shape, from, n,
                    &t->states[i])) {
      return false;
    }
    from += n;
    left -= n;
  }
  t->updates = (*is_first ? 0 : t->updates) + head.updates;
  t->is_wide = (!*is_first && t->is_wide) || head.is_wide != 0;
  *is_first = false;
  return true;
}

static calx_status *meet(const calx_metric *m, const char *payload,
                         size_t bytes, char **payloads, size_t *sizes)
{
  char tag[64];
  if (payload == NULL || payloads == NULL || sizes == NULL) {
    return cx_out_of_memory();
  }
  snprintf(tag, sizeof tag, "metric %s", m->name);
  return calx_rendezvous(tag, payload, bytes, payloads, sizes);
}

calx_status *cx_metrics_totals_exchange(const calx_metric *m,
                                        cx_metrics_totals *t)
{
  const size_t ranks = (size_t)calx_world_size();
  size_t bytes = 0;
  char *payload = pack(m, t, &bytes);
  char **payloads = cx_calloc(ranks, sizeof *payloads);
  size_t *sizes = cx_calloc(ranks, sizeof *sizes);
  calx_status *status = meet(m, payload, bytes, payloads, sizes);
  bool is_first = true;
  for (size_t r = 0; r < ranks && status == NULL; r++) {
    if (join(m, payloads[r], sizes[r], &is_first, t)) continue;
    status = cx_invalid(
        "%s: the states of rank %zu do not fit to those of the ranks before: "
        "all ranks want the same options and outputs",
        m->name, r);
  }
  for (size_t r = 0; payloads != NULL && r < ranks; r++) {
    calx_string_free(payloads[r]);
  }
  cx_free(payloads);
  cx_free(sizes);
  cx_free(payload);
  return status;
}
