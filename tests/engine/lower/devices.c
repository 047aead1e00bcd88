#include "devices.h"

#include <unistd.h>

#include "base/metrics.h"

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
  CHECK_STATUS_OK(cx_pool_new(1, &d->pool));
  CHECK_STATUS_OK(cx_run_context_new(d->pool, &d->context));
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
  cx_pool *pool = NULL;
  CHECK_STATUS_OK(cx_pool_new(1, &pool));
  cx_compile_options options = { .n_replicas = n, .pool = pool };
  cx_program *p = NULL;
  CHECK_STATUS_OK(cx_lower_compile(text, strlen(text), &options, &p));
  cx_text bytes = { 0 };
  CHECK_STATUS_OK(cx_program_save(p, &bytes));
  cx_program_free(p);
  CHECK_STATUS_OK(cx_program_load(bytes.data, bytes.size, pool, &w->program));
  cx_text_free(&bytes);
  cx_pool_free(pool);
  w->info = cx_program_info_of(w->program);
  assert_true(w->info->n_params <= DEVICES_VALUES);
  assert_true(w->info->n_results <= DEVICES_VALUES);
  CHECK_STATUS_OK(cx_coll_new(&w->coll));
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
    cx_run_context_free(d->context);
    cx_pool_free(d->pool);
    calx_status_free(d->status);
  }
  cx_program_free(w->program);
  cx_coll_free(w->coll);
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
  cx_coll_launch launch = { .coll = w->coll,
                            .executable = 1,
                            .run = w->run,
                            .replica = d->number,
                            .n_replicas = w->n,
                            .n_partitions = 1,
                            .timeout_ms = w->timeout_ms };
  calx_status *status = d->dies != NULL
                            ? cx_error(CALX_ABORTED, "%s", d->dies)
                            : cx_program_run(w->program, d->context, &launch,
                                             d->args, d->results);
  cx_coll_end(&launch, status);
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

void devices_same(const devices *a, const devices *b)
{
  for (uint32_t i = 0; i < a->n; i++) {
    for (size_t k = 0; k < a->info->n_results; k++) {
      const size_t bytes = bytes_of(&a->info->results[k]);
      assert_memory_equal(a->d[i].results[k], b->d[i].results[k], bytes);
    }
  }
}

// ---- texts ----

#define M "tensor<128x128xf32>"
#define H "tensor<256x128xf32>"

static void put_groups(cx_text *out, uint32_t n_devices)
{
  for (uint32_t i = 0; i < n_devices; i++) {
    cx_text_format(out, "%s%u", i == 0 ? "[[" : ", ", i);
  }
  cx_text_format(out, "]]> : tensor<1x%uxi64>", n_devices);
}

static void put_collective(cx_text *out, const char *op, const char *to,
                           const char *from, const char *attrs, bool sums,
                           const char *types, uint32_t n_devices)
{
  cx_text_format(out, "%s = \"stablehlo.%s\"(%s) <{%sreplica_groups = dense<",
                 to, op, from, attrs);
  put_groups(out, n_devices);
  cx_text_append(out, "}>");
  if (sums) {
    cx_text_append(out,
                   " ({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
                   "%z = stablehlo.add %x, %y : tensor<f32>\n"
                   "stablehlo.return %z : tensor<f32> })");
  }
  cx_text_format(out, " : %s\n", types);
}

void chain_all_reduce(cx_text *out, const char *to, const char *from,
                      const char *type, uint32_t n_devices)
{
  char types[160];
  snprintf(types, sizeof types, "(%s) -> %s", type, type);
  put_collective(out, "all_reduce", to, from, "", true, types, n_devices);
}

static void put_products(cx_text *out, int layers)
{
  for (int i = 0; i < layers; i++) {
    cx_text_format(out,
                   "%%h%d = stablehlo.dot_general %%h%d, %%w%d, "
                   "contracting_dims = [1] x [0] : (" H ", " M ") -> " H "\n",
                   i + 1, i, i);
  }
  for (int i = layers; i-- > 0;) {
    const char *d = i == layers - 1 ? "h" : "d";
    cx_text_format(out,
                   "%%g%d = stablehlo.dot_general %%h%d, %%%s%d, "
                   "contracting_dims = [0] x [0] : (" H ", " H ") -> " M "\n",
                   i, i, d, i + 1);
    if (i == 0) break;
    cx_text_format(out,
                   "%%d%d = stablehlo.dot_general %%%s%d, %%w%d, "
                   "contracting_dims = [1] x [1] : (" H ", " M ") -> " H "\n",
                   i, d, i + 1, i);
  }
}

// Two gradients as one bucket, whose halves change two matrices.
static void put_updates(cx_text *out, int layers, uint32_t n_devices)
{
  for (int i = layers - 2; i >= 0; i -= 2) {
    char to[16], from[16];
    snprintf(to, sizeof to, "%%b%d", i);
    snprintf(from, sizeof from, "%%c%d", i);
    cx_text_format(out,
                   "%s = stablehlo.concatenate %%g%d, %%g%d, dim = 0 : (" M
                   ", " M ") -> " H "\n",
                   from, i + 1, i);
    chain_all_reduce(out, to, from, H, n_devices);
  }
  for (int i = 0; i < layers; i++) {
    const int at = i % 2 == 0 ? WIDTH : 0;
    cx_text_format(out,
                   "%%p%d = stablehlo.slice %%b%d [%d:%d, 0:%d] : (" H ") -> " M
                   "\n%%s%d = stablehlo.subtract %%w%d, %%p%d : " M "\n",
                   i, i / 2 * 2, at, at + WIDTH, WIDTH, i, i, i);
  }
}

static void put_shares(cx_text *out, int layers, uint32_t n_devices)
{
  char share[48], scatter[120], gather[120], to[16], from[16];
  snprintf(share, sizeof share, "tensor<%ux128xf32>", WIDTH / n_devices);
  snprintf(scatter, sizeof scatter, "(" M ") -> %s", share);
  snprintf(gather, sizeof gather, "(%s) -> " M, share);
  for (int i = layers; i-- > 0;) {
    snprintf(to, sizeof to, "%%b%d", i);
    snprintf(from, sizeof from, "%%g%d", i);
    put_collective(out, "reduce_scatter", to, from,
                   "scatter_dimension = 0 : i64, ", true, scatter, n_devices);
  }
  for (int i = layers; i-- > 0;) {
    snprintf(to, sizeof to, "%%s%d", i);
    snprintf(from, sizeof from, "%%b%d", i);
    put_collective(out, "all_gather", to, from, "all_gather_dim = 0 : i64, ",
                   false, gather, n_devices);
  }
}

static void put_each(cx_text *out, int layers, const char *format)
{
  for (int i = 0; i < layers; i++) {
    if (i > 0) cx_text_append(out, ", ");
    cx_text_format(out, format, i, i);
  }
}

void chain_text(cx_text *out, int layers, uint32_t n_devices, chain_end end)
{
  cx_text_append(out, "func.func @main(%h0: " H ", ");
  put_each(out, layers,
           end == CHAIN_UPDATES ? "%%w%d: " M " {tf.aliasing_output = %d : i32}"
                                : "%%w%d: " M);
  cx_text_append(out, ") -> (");
  put_each(out, layers, M);
  cx_text_append(out, ") {\n");
  put_products(out, layers);
  char to[16], from[16];
  switch (end) {
    case CHAIN_SUMS:
      for (int i = layers; i-- > 0;) {
        snprintf(to, sizeof to, "%%s%d", i);
        snprintf(from, sizeof from, "%%g%d", i);
        chain_all_reduce(out, to, from, M, n_devices);
      }
      break;
    case CHAIN_UPDATES: put_updates(out, layers, n_devices); break;
    case CHAIN_SHARES: put_shares(out, layers, n_devices); break;
  }
  cx_text_append(out, "return ");
  put_each(out, layers, "%%s%d");
  cx_text_append(out, " : ");
  put_each(out, layers, M);
  cx_text_append(out, " }");
}
