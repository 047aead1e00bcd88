// api/shardings: the extension that tells how a partitioned program splits its
// parameters and results.
#include "api/api.h"
#include "spmd/spmd.h"

// Reads n sharding texts, each behind its size in 4 bytes; see spmd/spmd.h.
static calx_status *take(cpu_api_code *c, size_t *at, size_t n,
                         const char ***out, size_t **out_sizes)
{
  const cx_text *text = &c->shardings;
  const char **list = CX_ARENA_ARRAY(&c->arena, const char *, n + 1);
  size_t *sizes = CX_ARENA_ARRAY(&c->arena, size_t, n + 1);
  if (list == NULL || sizes == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    cx_hlo_str one;
    if (!cx_spmd_next_written(text, at, &one)) {
      return cx_error(
          CALX_DATA_LOSS,
          "an executable with %zu bytes of shardings, which are too few",
          text->size);
    }
    list[i] = one.s;
    sizes[i] = one.n;
  }
  *out = list;
  *out_sizes = sizes;
  return NULL;
}

calx_status *cpu_api_shardings_fill(cpu_api_code *c)
{
  size_t at = 0;
  if (cx_text_failed(&c->shardings)) return cx_out_of_memory();
  if (c->shardings.size == 0) return NULL;
  CALX_TRY(take(c, &at, c->info->n_params, &c->param_shardings,
                &c->param_sharding_sizes));
  CALX_TRY(take(c, &at, c->info->n_results, &c->result_shardings,
                &c->result_sharding_sizes));
  if (at == c->shardings.size) return NULL;
  return cx_error(CALX_DATA_LOSS,
                  "an executable with %zu bytes of shardings, of which %zu "
                  "belong to no parameter and no result",
                  c->shardings.size, c->shardings.size - at);
}

static PJRT_Error *of_parameters(
    PJRT_Shardings_PJRT_Executable_ParameterShardings_Args *args)
{
  CPU_API_ENTER(PJRT_Shardings_PJRT_Executable_ParameterShardings, executable);
  const cpu_api_code *code = args->executable->code;
  args->num_parameters = code->info->n_params;
  args->shardings = code->param_shardings;
  args->sharding_sizes = code->param_sharding_sizes;
  return NULL;
}

static PJRT_Error *of_outputs(
    PJRT_Shardings_PJRT_Executable_OutputShardings_Args *args)
{
  CPU_API_ENTER(PJRT_Shardings_PJRT_Executable_OutputShardings, executable);
  // XLA gives an empty tuple of results one sharding, and its clients insist on
  // it. Without bytes a sharding is REPLICATED.
  static const char *const of_none[] = { "" };
  static const size_t of_none_sizes[] = { 0 };
  const cpu_api_code *code = args->executable->code;
  const bool none = code->info->n_results == 0 && code->shardings.size != 0;
  args->num_outputs = none ? 1 : code->info->n_results;
  args->shardings = none ? of_none : code->result_shardings;
  args->sharding_sizes = none ? of_none_sizes : code->result_sharding_sizes;
  return NULL;
}

PJRT_Shardings_Extension cpu_api_shardings = {
  .base = { CX_PJRT_ARGS(PJRT_Shardings_Extension),
            .type = PJRT_Extension_Type_Shardings },
  .PJRT_Shardings_PJRT_Executable_ParameterShardings = of_parameters,
  .PJRT_Shardings_PJRT_Executable_OutputShardings = of_outputs
};
