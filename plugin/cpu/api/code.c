// api/code: a compiled program and its properties.
//
// The handles of an executable and of a loaded executable point to the same
// counted object. It is made with all lists that a caller may ask for.
#include <string.h>

#include "api/api.h"
#include "base/alloc.h"

static void code_free(cpu_api_code *c)
{
  cpu_run_program_free(c->program);
  cpu_threads_free(c->threads);
  cx_text_free(&c->source);
  cx_text_free(&c->shardings);
  cx_arena_free(&c->arena);
  cx_free(c);
}

void cpu_api_code_retain(cpu_api_code *code)
{
  cpu_api_ref(&code->refs);
}

void cpu_api_code_release(cpu_api_code *code)
{
  if (code != NULL && cpu_api_unref(&code->refs)) code_free(code);
}

static calx_status *read_types(const cx_hlo_type *types, size_t n,
                               const char *what, cpu_api_shape *shapes,
                               size_t *bytes,
                               PJRT_Layouts_MemoryLayout **layouts)
{
  for (size_t i = 0; i < n; i++) {
    shapes[i] = (cpu_api_shape){ .type = cpu_api_type_of(types[i].elem),
                                 .rank = types[i].rank,
                                 .dims = types[i].dims };
    if (shapes[i].type == PJRT_Buffer_Type_INVALID) {
      return cx_error(CALX_UNIMPLEMENTED,
                      "%s %zu has type %s, which no buffer can have", what, i,
                      cx_hlo_shape(&types[i]).s);
    }
    CALX_TRY(cx_annotate(cpu_api_shape_check(&shapes[i], &bytes[i]), "%s %zu",
                         what, i));
    layouts[i] = cpu_api_layout_of(types[i].rank);
  }
  return NULL;
}

static void *list(cpu_api_code *c, size_t n, size_t bytes, bool *ok)
{
  void *p = cx_arena_alloc_array(&c->arena, bytes, n);
  *ok = *ok && p != NULL;
  return p;
}

static void name_kinds(const uint8_t *kinds, size_t n, const char **out,
                       size_t *out_sizes)
{
  for (size_t i = 0; i < n; i++) {
    out[i] = cpu_run_memory_name((cpu_run_memory)kinds[i]);
    out_sizes[i] = strlen(out[i]);
  }
}

static calx_status *make_lists(cpu_api_code *c)
{
  const cpu_run_program_info *info = c->info;
  const size_t n = info->n_params;
  const size_t m = info->n_results;
  size_t dims = 0;
  for (size_t i = 0; i < m; i++) dims += info->results[i].rank;
  bool ok = true;
  c->params = list(c, n, sizeof *c->params, &ok);
  c->results = list(c, m, sizeof *c->results, &ok);
  c->param_bytes = list(c, n, sizeof *c->param_bytes, &ok);
  c->result_bytes = list(c, m, sizeof *c->result_bytes, &ok);
  c->may_donate = list(c, n, sizeof *c->may_donate, &ok);
  c->result_types = list(c, m, sizeof *c->result_types, &ok);
  c->result_dims = list(c, dims, sizeof *c->result_dims, &ok);
  c->result_ranks = list(c, m, sizeof *c->result_ranks, &ok);
  c->param_kinds = list(c, n, sizeof *c->param_kinds, &ok);
  c->param_kind_sizes = list(c, n, sizeof *c->param_kind_sizes, &ok);
  c->result_kinds = list(c, m, sizeof *c->result_kinds, &ok);
  c->result_kind_sizes = list(c, m, sizeof *c->result_kind_sizes, &ok);
  c->param_layouts = list(c, n, sizeof *c->param_layouts, &ok);
  c->result_layouts = list(c, m, sizeof *c->result_layouts, &ok);
  if (!ok) return cx_out_of_memory();
  name_kinds(info->param_memory, n, c->param_kinds, c->param_kind_sizes);
  name_kinds(info->result_memory, m, c->result_kinds, c->result_kind_sizes);
  return NULL;
}

// By the names of XLA's cost analysis.
static void set_costs(cpu_api_code *c)
{
  const struct {
    const char *name;
    double value;
  } costs[CPU_API_COSTS] = {
    { "flops", c->info->work.flops },
    { "transcendentals", c->info->work.transcendentals },
    { "bytes accessed", c->info->work.bytes },
    { "optimal_seconds", c->info->cost_ns * 1e-9 },
  };
  for (size_t i = 0; i < CPU_API_COSTS; i++) {
    c->costs[i] = (PJRT_NamedValue){
      CX_PJRT_ARGS(PJRT_NamedValue),        .name = costs[i].name,
      .name_size = strlen(costs[i].name),   .type = PJRT_NamedValue_kFloat,
      .float_value = (float)costs[i].value, .value_size = 1
    };
  }
}

static calx_status *fill(cpu_api_code *c)
{
  const cpu_run_program_info *info = c->info;
  CALX_TRY(make_lists(c));
  CALX_TRY(read_types(info->params, info->n_params, "parameter", c->params,
                      c->param_bytes, c->param_layouts));
  CALX_TRY(read_types(info->results, info->n_results, "result", c->results,
                      c->result_bytes, c->result_layouts));
  int64_t *dims = c->result_dims;
  for (size_t i = 0; i < info->n_results; i++) {
    c->result_types[i] = (PJRT_Buffer_Type)c->results[i].type;
    c->result_ranks[i] = c->results[i].rank;
    for (size_t k = 0; k < c->results[i].rank; k++) {
      *dims++ = c->results[i].dims[k];
    }
    int32_t from = info->alias == NULL ? -1 : info->alias[i];
    if (from >= 0 && (size_t)from < info->n_params) c->may_donate[from] = true;
  }
  cx_hash_hex(info->fingerprint, c->fingerprint);
  set_costs(c);
  return cpu_api_shardings_fill(c);
}

calx_status *cpu_api_code_new(cpu_run_program *program,
                              const PJRT_Program *source, const char *options,
                              size_t options_size, cx_text *shardings,
                              cpu_api_code **out)
{
  *out = NULL;
  cpu_api_code *c = cx_calloc(1, sizeof *c);
  if (c == NULL) {
    cpu_run_program_free(program);
    return cx_out_of_memory();
  }
  atomic_init(&c->refs, 1);
  c->program = program;
  c->info = cpu_run_program_info_of(program);
  c->options = cx_arena_strndup(&c->arena, options, options_size);
  c->options_size = options_size;
  c->shardings = *shardings;
  *shardings = (cx_text){ 0 };
  if (source != NULL) {
    cx_text_append_n(&c->source, source->code, source->code_size);
  }
  bool ok = c->options != NULL && !cx_text_failed(&c->source);
  calx_status *status = ok ? fill(c) : cx_out_of_memory();
  if (status != NULL) {
    code_free(c);
    return status;
  }
  *out = c;
  return NULL;
}
