#include "parts.h"

#include <stdlib.h>

#include "base/thread.h"

static const uint32_t numbers[PARTS_DEVICES] = { 0, 1, 2, 3, 4, 5, 6, 7 };

size_t parts_n_split;

// ---- shardings ----

enum { RANK = 4 };

typedef struct tiling {
  size_t rank;
  int64_t tiles[RANK], part[RANK];  // how many in each dimension; their sizes
  int64_t tile[PARTS_DEVICES];      // each device's, row-major
} tiling;

static uint64_t varint(const unsigned char **at)
{
  uint64_t v = 0;
  for (int shift = 0;; shift += 7) {
    const unsigned char byte = *(*at)++;
    v |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) return v;
  }
}

// Reads one xla.OpSharding behind its size; returns the end. A last dimension
// of tiles beyond the tensor's is that of the copies.
static const unsigned char *read_tiling(const unsigned char *at, uint32_t n,
                                        const cx_hlo_type *part, tiling *out)
{
  const unsigned char *end =
      at + 4 + (at[0] | at[1] << 8 | at[2] << 16 | at[3] << 24);
  int64_t tiles[RANK + 1] = { 1, 1, 1, 1, 1 };
  size_t n_tiles = 0, n_devices = 0, devices[PARTS_DEVICES] = { 0 };
  for (at += 4; at < end;) {
    const uint64_t field = varint(&at) >> 3, v = varint(&at);
    if (field == 3) tiles[n_tiles++] = (int64_t)v;
    if (field == 4) devices[n_devices++] = (size_t)v;
  }
  assert_true(n_devices == 0 || n_devices == n);
  assert_true(part->rank <= RANK);
  *out = (tiling){ .rank = part->rank };
  for (size_t d = 0; d < part->rank; d++) {
    out->tiles[d] = tiles[d];
    out->part[d] = part->dims[d];
  }
  const int64_t copies = n_tiles > part->rank ? tiles[part->rank] : 1;
  for (size_t i = 0; i < n_devices; i++) {
    out->tile[devices[i]] = (int64_t)i / copies;
  }
  return end;
}

static bool is_split(const tiling *t)
{
  for (size_t d = 0; d < t->rank; d++) {
    if (t->tiles[d] > 1) return true;
  }
  return false;
}

// The index in the whole of element e of this tile, both row-major.
static int64_t index_of(const tiling *t, int64_t tile, int64_t e)
{
  int64_t at = 0, stride = 1;
  for (size_t d = t->rank; d-- > 0;) {
    at += (tile % t->tiles[d] * t->part[d] + e % t->part[d]) * stride;
    tile /= t->tiles[d];
    e /= t->part[d];
    stride *= t->tiles[d] * t->part[d];
  }
  return at;
}

// ---- devices ----

typedef struct device {
  cpu_run_program *program;
  cpu_coll *coll;
  uint32_t group, number, n;
  void *args[PARTS_VALUES], *results[PARTS_VALUES];
  calx_status *status;
} device;

static void run(void *user)
{
  device *d = user;
  cpu_threads *pool = NULL;
  cpu_run_context *context = NULL;
  CHECK_STATUS_OK(cpu_threads_new(1, &pool));
  CHECK_STATUS_OK(cpu_run_context_new(pool, &context));
  cpu_coll_launch launch = { .coll = d->coll,
                             .devices = d->n == 1 ? NULL : numbers,
                             .device_group = d->group,
                             .number = 1,
                             .partition = d->number,
                             .n_replicas = 1,
                             .n_partitions = d->n,
                             .timeout_ms = 60000 };
  d->status =
      cpu_run_program_run(d->program, context, &launch, d->args, d->results);
  if (d->n > 1) cpu_coll_end(&launch, d->status);
  cpu_run_context_free(context);
  cpu_threads_free(pool);
}

static void run_all(device *d, uint32_t n)
{
  const cpu_coll_topology topology = { .fd = -1, .n_host = n, .n_own = n };
  cx_thread threads[PARTS_DEVICES];
  cpu_coll *coll = NULL;
  uint32_t group = 0;
  CHECK_STATUS_OK(cpu_coll_new(&topology, &coll));
  CHECK_STATUS_OK(cpu_coll_device_group(coll, numbers, n, &group));
  for (uint32_t i = 0; i < n; i++) {
    d[i].coll = coll;
    d[i].group = group;
    CHECK_STATUS_OK(cx_thread_start(&threads[i], run, &d[i]));
  }
  for (uint32_t i = 0; i < n; i++) cx_thread_join(&threads[i]);
  for (uint32_t i = 0; i < n; i++) CHECK_STATUS_OK(d[i].status);
  cpu_coll_free(coll);
}

// ---- the whole ----

static void *memory_of(const cx_hlo_type *t)
{
  assert_int_equal(t->elem, CX_HLO_F32);
  return aligned_alloc(64, (size_t)(cx_hlo_type_bytes(t) + 64) / 64 * 64);
}

static cpu_run_program *compile(const char *text, uint32_t n, bool interpret,
                                cx_text *shardings)
{
  cpu_threads *pool = NULL;
  cpu_run_program *p = NULL;
  setenv("CALX_CPU_REF", interpret ? "1" : "0", 1);
  CHECK_STATUS_OK(cpu_threads_new(1, &pool));
  const cpu_lower_compile_options options = {
    .n_replicas = 1, .n_partitions = n, .shardings = shardings, .threads = pool
  };
  calx_status *status = cpu_lower_compile(text, strlen(text), &options, &p);
  if (status != NULL) print_error("%s", text);
  CHECK_STATUS_OK(status);
  cpu_threads_free(pool);
  return p;
}

static void cut(device *d, const cx_hlo_type *part, const tiling *t, size_t k,
                const float *whole)
{
  float *to = d->args[k] = memory_of(part);
  const int64_t n = cx_hlo_type_elements(part);
  for (int64_t e = 0; e < n; e++)
    to[e] = whole[index_of(t, t->tile[d->number], e)];
}

static void join(const device *d, const cx_hlo_type *part, const tiling *t,
                 size_t k, float *whole)
{
  const int64_t n = cx_hlo_type_elements(part);
  bool *seen = calloc((size_t)n * PARTS_DEVICES, sizeof *seen);
  for (uint32_t i = 0; i < d->n; i++) {
    const float *from = d[i].results[k];
    for (int64_t e = 0; e < n; e++) {
      const int64_t at = index_of(t, t->tile[i], e);
      if (seen[at] && memcmp(&whole[at], &from[e], sizeof *from) != 0) {
        fail_msg("result %zu: device %u has another copy of element %d", k, i,
                 (int)at);
      }
      seen[at] = true;
      whole[at] = from[e];
    }
  }
  free(seen);
}

// Reads the next sharding; without any, the whole is the part.
static tiling next_tiling(const unsigned char **at, uint32_t n,
                          const cx_hlo_type *part)
{
  static const unsigned char whole[4] = { 0 };
  tiling t;
  const unsigned char *end =
      read_tiling(*at == NULL ? whole : *at, n, part, &t);
  if (*at != NULL) *at = end;
  return t;
}

static void devices_free(device *d, const cpu_run_program_info *info)
{
  for (uint32_t i = 0; i < d->n; i++) {
    for (size_t k = 0; k < info->n_params; k++) free(d[i].args[k]);
    for (size_t k = 0; k < info->n_results; k++) free(d[i].results[k]);
  }
}

void parts_run(const char *text, uint32_t n, bool interpret,
               const float *const *args, float *const *results)
{
  cx_text shardings = { 0 };
  device d[PARTS_DEVICES] = { 0 };
  cpu_run_program *p = compile(text, n, interpret, &shardings);
  const cpu_run_program_info *info = cpu_run_program_info_of(p);
  const unsigned char *at = (const unsigned char *)shardings.data;
  assert_true(info->n_params <= PARTS_VALUES);
  assert_true(info->n_results <= PARTS_VALUES);
  assert_true(n == 1 || at != NULL);
  for (uint32_t i = 0; i < n; i++) {
    d[i] = (device){ .program = p, .number = i, .n = n };
    for (size_t k = 0; k < info->n_results; k++) {
      d[i].results[k] = memory_of(&info->results[k]);
    }
  }
  for (size_t k = 0; k < info->n_params; k++) {
    const tiling t = next_tiling(&at, n, &info->params[k]);
    if (is_split(&t)) parts_n_split++;
    for (uint32_t i = 0; i < n; i++)
      cut(&d[i], &info->params[k], &t, k, args[k]);
  }
  run_all(d, n);
  for (size_t k = 0; k < info->n_results; k++) {
    const tiling t = next_tiling(&at, n, &info->results[k]);
    join(d, &info->results[k], &t, k, results[k]);
  }
  devices_free(d, info);
  cpu_run_program_free(p);
  cx_text_free(&shardings);
}
