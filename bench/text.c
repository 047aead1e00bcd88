// bench/text: see text.h.
#include "text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "hlo/number.h"
#include "hlo/parse.h"
#include "measure.h"

static void *need_memory(size_t n, size_t each)
{
  void *p = calloc(n + 1, each);
  if (p == NULL) {
    fprintf(stderr, "no memory for %zu bytes\n", n * each);
    exit(1);
  }
  return p;
}

// ---- reading ----

static void shape_of(const cx_hlo_any *type, cx_pjrt_shape *out)
{
  if (!cx_pjrt_shape_make(cx_hlo_elem_dtype(type->tensor.elem),
                          type->tensor.dims, type->tensor.rank, out)) {
    fprintf(stderr, "a type of the entry's is none of calx's\n");
    exit(1);
  }
}

static int64_t alias_of(const cx_hlo_func *f, size_t param)
{
  if (f->param_attrs == NULL) return -1;
  const cx_hlo_named_list *list = &f->param_attrs[param];
  for (size_t i = 0; i < list->n; i++) {
    if (cx_hlo_str_equal(list->items[i].name, "tf.aliasing_output")) {
      return list->items[i].attr->as.integer;
    }
  }
  return -1;
}

static void read_ranges(bench_text *p)
{
  static const char mark[] = "// arguments:";
  const size_t n = p->signature.n_params;
  p->ranges = need_memory(n, sizeof *p->ranges);
  for (size_t i = 0; i < n; i++) {
    const calx_dtype d = cx_pjrt_dtype_of(p->params[i].type);
    const bool is_float = d >= CALX_BF16;
    p->ranges[i] = (bench_range){ 0, is_float ? 0.1 : 10 };
  }
  if (strncmp(p->text, mark, sizeof mark - 1) != 0) return;
  const char *at = p->text + sizeof mark - 1;
  for (size_t i = 0; i < n; i++) {
    char *end = NULL;
    p->ranges[i].least = strtod(at, &end);
    if (*end == ':') p->ranges[i].most = strtod(end + 1, &end);
    if (end == at || (*end != ' ' && *end != '\n')) {
      fprintf(stderr, "the range of argument %zu is not LEAST:MOST\n", i);
      exit(1);
    }
    at = end;
  }
}

void bench_text_read(const char *path, bench_text *p)
{
  *p = (bench_text){ 0 };
  bench_need(cx_file_read(path, 0, &p->text, &p->size));
  const int64_t start = bench_now();
  bench_need(cx_hlo_parse(p->text, p->size, path, &p->module));
  p->parse_ms = (double)(bench_now() - start) / 1e6;
  const cx_hlo_func *f = cx_hlo_entry(p->module);
  p->params = need_memory(f->n_params, sizeof *p->params);
  p->results = need_memory(f->n_results, sizeof *p->results);
  p->donated = need_memory(f->n_params, sizeof *p->donated);
  p->feeds = need_memory(f->n_params, sizeof *p->feeds);
  for (size_t i = 0; i < f->n_params; i++) {
    shape_of(&f->params[i], &p->params[i]);
    p->feeds[i] = alias_of(f, i);
    p->donated[i] = p->feeds[i] >= 0;
  }
  for (size_t i = 0; i < f->n_results; i++) {
    shape_of(&f->results[i], &p->results[i]);
  }
  p->signature = (cx_pjrt_signature){ .params = p->params,
                                      .donated = p->donated,
                                      .n_params = f->n_params,
                                      .results = p->results,
                                      .n_results = f->n_results };
  read_ranges(p);
}

void bench_text_free(bench_text *p)
{
  free(p->params);
  free(p->results);
  free(p->donated);
  free(p->feeds);
  free(p->ranges);
  cx_hlo_module_free(p->module);
  cx_free(p->text);
}

// ---- arguments ----

size_t bench_shape_elements(const cx_pjrt_shape *s)
{
  size_t n = 1;
  for (size_t i = 0; i < s->rank; i++) n *= (size_t)s->dims[i];
  return n;
}

static double uniform(uint64_t *state)  // xorshift64 (Marsaglia 2003)
{
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return (double)(*state >> 11) / 9007199254740992.0;
}

static void fill(char *data, calx_dtype d, size_t n, const bench_range *range,
                 uint64_t *state)
{
  const cx_hlo_elem elem = cx_hlo_elem_of(d);
  const size_t each = calx_dtype_size(d);
  const double width = range->most - range->least;
  for (size_t i = 0; i < n; i++) {
    const double v = range->least + width * uniform(state);
    char *at = data + i * each;
    if (d == CALX_F32) {
      ((float *)(void *)data)[i] = (float)v;
    } else if (d == CALX_C64) {
      ((float *)(void *)data)[2 * i] = (float)v;
      ((float *)(void *)data)[2 * i + 1] =
          (float)(range->least + width * uniform(state));
    } else if (cx_hlo_elem_is_float(elem)) {
      cx_hlo_store_real(elem, at, v);
    } else {
      cx_hlo_store_int(elem, at, (int64_t)floor(v));
    }
  }
}

static calx_status *make_argument(const bench_run *r, size_t i, uint64_t *state)
{
  const cx_pjrt_shape *s = &r->program->params[i];
  const calx_dtype d = cx_pjrt_dtype_of(s->type);
  const size_t n = bench_shape_elements(s);
  char *data = need_memory(n, calx_dtype_size(d));
  fill(data, d, n, &r->program->ranges[i], state);
  calx_status *status = cx_pjrt_buffer_from_host(
      r->client, 0, s, data, CX_PJRT_COPY, NULL, NULL, &r->args[i]);
  free(data);
  return status;
}

// ---- running ----

calx_status *bench_run_open(const bench_text *p, cx_pjrt_client *client,
                            bench_run *out)
{
  *out = (bench_run){ .program = p, .client = client };
  const cx_pjrt_compile_options options = { .num_replicas = 1 };
  const int64_t start = bench_now();
  CALX_TRY(cx_pjrt_compile(client, p->text, p->size, &options, &p->signature,
                           &out->executable));
  out->compile_ms = (double)(bench_now() - start) / 1e6;
  out->args = need_memory(p->signature.n_params, sizeof(cx_pjrt_buffer *));
  out->results = need_memory(p->signature.n_results, sizeof(cx_pjrt_buffer *));
  uint64_t state = 88172645463325252u;
  for (size_t i = 0; i < p->signature.n_params; i++) {
    CALX_TRY(make_argument(out, i, &state));
  }
  return NULL;
}

calx_status *bench_run_step(bench_run *r, double *out_ms)
{
  const cx_pjrt_signature *s = &r->program->signature;
  const int64_t start = bench_now();
  CALX_TRY(cx_pjrt_execute(r->executable, 0, r->args, s->n_params, r->results,
                           NULL));
  for (size_t i = 0; i < s->n_results; i++) {
    CALX_TRY(cx_pjrt_buffer_await(r->results[i]));
  }
  *out_ms = (double)(bench_now() - start) / 1e6;
  return NULL;
}

void bench_run_feed(bench_run *r)
{
  const bench_text *p = r->program;
  for (size_t i = 0; i < p->signature.n_params; i++) {
    if (p->feeds[i] < 0) continue;
    cx_pjrt_buffer_release(r->args[i]);
    r->args[i] = r->results[p->feeds[i]];
    r->results[p->feeds[i]] = NULL;
  }
  for (size_t i = 0; i < p->signature.n_results; i++) {
    cx_pjrt_buffer_release(r->results[i]);
    r->results[i] = NULL;
  }
}

void bench_run_close(bench_run *r)
{
  const cx_pjrt_signature *s = &r->program->signature;
  for (size_t i = 0; r->args != NULL && i < s->n_params; i++) {
    cx_pjrt_buffer_release(r->args[i]);
  }
  for (size_t i = 0; r->results != NULL && i < s->n_results; i++) {
    cx_pjrt_buffer_release(r->results[i]);
  }
  free(r->args);
  free(r->results);
  cx_pjrt_executable_release(r->executable);
}
