#include "devices.h"

#include <unistd.h>

#include "base/metrics.h"

const uint32_t devices_numbers[DEVICES_MOST] = { 0, 1, 2, 3 };

#define ROWS 256

int64_t devices_beside(void)
{
  const cx_counter *c = cx_counter_find("CpuStepsBesideCollectives");
  return c == NULL ? 0 : cx_counter_total(c);
}

static size_t bytes_of(const cx_hlo_type *t)
{
  return (size_t)cx_hlo_type_elements(t) * cx_hlo_elem_bytes(t->elem);
}

static void *memory_of(const cx_hlo_type *t)
{
  void *memory = aligned_alloc(64, (bytes_of(t) + 64) / 64 * 64);
  memset(memory, 0, bytes_of(t));
  return memory;
}

static void device_new(devices *w, uint32_t i)
{
  device *d = &w->d[i];
  d->of = w;
  d->number = i;
  CHECK_STATUS_OK(cpu_threads_new(1, &d->pool));
  CHECK_STATUS_OK(cpu_run_context_new(d->pool, &d->context));
  for (size_t k = 0; k < w->info->n_params; k++) {
    d->args[k] = memory_of(&w->info->params[k]);
  }
  for (size_t k = 0; k < w->info->n_results; k++) {
    const int32_t from = w->info->alias[k];
    d->results[k] = from >= 0 ? d->args[from] : memory_of(&w->info->results[k]);
  }
}

void devices_new(devices *w, uint32_t n, const char *text, bool blocking)
{
  *w = (devices){ .n = n, .timeout_ms = 600000 };
  setenv("CALX_DETERMINISTIC", "1", 1);
  setenv("CALX_COLLECTIVES", blocking ? "blocking" : "", 1);
  cpu_threads *pool = NULL;
  CHECK_STATUS_OK(cpu_threads_new(1, &pool));
  cpu_lower_compile_options options = { .n_replicas = n, .threads = pool };
  cpu_run_program *p = NULL;
  CHECK_STATUS_OK(cpu_lower_compile(text, strlen(text), &options, &p));
  cx_text bytes = { 0 };
  CHECK_STATUS_OK(cpu_run_program_save(p, &bytes));
  cpu_run_program_free(p);
  CHECK_STATUS_OK(
      cpu_run_program_load(bytes.data, bytes.size, pool, &w->program));
  cx_text_free(&bytes);
  cpu_threads_free(pool);
  w->info = cpu_run_program_info_of(w->program);
  assert_true(w->info->n_params <= DEVICES_VALUES);
  assert_true(w->info->n_results <= DEVICES_VALUES);
  const cpu_coll_topology topology = { .fd = -1, .n_host = n, .n_own = n };
  CHECK_STATUS_OK(cpu_coll_new(&topology, &w->coll));
  CHECK_STATUS_OK(
      cpu_coll_device_group(w->coll, devices_numbers, n, &w->device_group));
  for (uint32_t i = 0; i < n; i++) device_new(w, i);
  devices_fill(w);
}

void devices_free(devices *w)
{
  for (uint32_t i = 0; i < w->n; i++) {
    device *d = &w->d[i];
    for (size_t k = 0; k < w->info->n_results; k++) {
      if (w->info->alias[k] < 0) free(d->results[k]);
    }
    for (size_t k = 0; k < w->info->n_params; k++) free(d->args[k]);
    cpu_run_context_free(d->context);
    cpu_threads_free(d->pool);
    calx_status_free(d->status);
  }
  cpu_run_program_free(w->program);
  cpu_coll_free(w->coll);
}

void devices_fill(devices *w)
{
  for (uint32_t i = 0; i < w->n; i++) {
    for (size_t k = 0; k < w->info->n_params; k++) {
      const cx_hlo_type *t = &w->info->params[k];
      const int64_t n = cx_hlo_type_elements(t);
      for (int64_t e = 0; e < n; e++) {
        // Matrices are equal on all devices.
        const int64_t of = k == 0 ? i : 0;
        const int64_t v = (e * 7 + (int64_t)k * 5 + of * 3) % 13 - 6;
        if (t->elem == CX_HLO_F32) {
          ((float *)w->d[i].args[k])[e] = (float)v / 64;
        } else {
          ((int32_t *)w->d[i].args[k])[e] = (int32_t)v;
        }
      }
    }
  }
}

static calx_status *run_device(device *d)
{
  const devices *w = d->of;
  for (int i = 0; devices_beside() < d->after_beside; i++) {
    if (i == 60000) return cx_error(CALX_INTERNAL, "nothing runs beside");
    usleep(1000);
  }
  cpu_coll_launch launch = { .coll = w->coll,
                             .devices = devices_numbers,
                             .device_group = w->device_group,
                             .number = w->run,
                             .replica = d->number,
                             .n_replicas = w->n,
                             .n_partitions = 1,
                             .timeout_ms = w->timeout_ms };
  calx_status *status = d->dies != NULL
                            ? cx_error(CALX_ABORTED, "%s", d->dies)
                            : cpu_run_program_run(w->program, d->context,
                                                  &launch, d->args, d->results);
  cpu_coll_end(&launch, status);
  return status;
}

static void run_thread(void *user)
{
  device *d = user;
  d->status = run_device(d);
}

void devices_run(devices *w)
{
  cx_thread threads[DEVICES_MOST];
  w->run++;
  for (uint32_t i = 0; i < w->n; i++) {
    calx_status_free(w->d[i].status);
    w->d[i].status = NULL;
    CHECK_STATUS_OK(cx_thread_start(&threads[i], run_thread, &w->d[i]));
  }
  for (uint32_t i = 0; i < w->n; i++) cx_thread_join(&threads[i]);
}

void devices_run_well(devices *w)
{
  devices_run(w);
  for (uint32_t i = 0; i < w->n; i++) {
    calx_status *status = w->d[i].status;
    w->d[i].status = NULL;
    CHECK_STATUS_OK(status);
  }
}

bool devices_equal(const devices *a, const devices *b)
{
  for (uint32_t i = 0; i < a->n; i++) {
    for (size_t k = 0; k < a->info->n_results; k++) {
      const size_t bytes = bytes_of(&a->info->results[k]);
      if (memcmp(a->d[i].results[k], b->d[i].results[k], bytes) != 0) {
        return false;
      }
    }
  }
  return true;
}

void twins_new(twins *t, uint32_t n, const cx_text *text)
{
  devices_new(&t->plain, n, cx_text_str(text), true);
  devices_new(&t->beside, n, cx_text_str(text), false);
  assert_int_equal(t->plain.info->n_overlapped, 0);
}

void twins_free(twins *t)
{
  devices_free(&t->plain);
  devices_free(&t->beside);
}

bool twins_run(twins *t)
{
  devices_run_well(&t->plain);
  devices_run_well(&t->beside);
  return devices_equal(&t->plain, &t->beside);
}
