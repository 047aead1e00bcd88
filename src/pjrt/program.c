// pjrt/program: a program's text for the plugin, and what a compiled program is
// asked, whether it is bound to devices or not.
#include <string.h>

#include "base/alloc.h"
#include "pjrt/internal.h"

PJRT_Program cx_pjrt_program(const char *text, size_t size)
{
  // Compiling only reads the code; the same struct is written elsewhere.
  union {
    const char *in;
    char *out;
  } code = { .in = text };
  return (PJRT_Program){ CX_PJRT_ARGS(PJRT_Program), .code = code.out,
                         .code_size = size, .format = "mlir",
                         .format_size = 4 };
}

void cx_pjrt_program_destroy(cx_pjrt_plugin *p, PJRT_Executable *raw)
{
  if (raw == NULL) return;
  CX_PJRT_DESTROY(p, PJRT_Executable, .executable = raw);
}

calx_status *cx_pjrt_program_serialize(cx_pjrt_plugin *p, PJRT_Executable *raw,
                                       char **out_bytes, size_t *out_size)
{
  CX_PJRT_DECLARE(args, PJRT_Executable_Serialize, .executable = raw);
  CALX_TRY(CX_PJRT_CALL(p, PJRT_Executable_Serialize, &args));
  size_t size = args.serialized_bytes == NULL ? 0 : args.serialized_bytes_size;
  char *bytes = cx_alloc(size);
  if (bytes != NULL && size > 0) memcpy(bytes, args.serialized_bytes, size);
  if (args.serialized_executable_deleter != NULL) {
    args.serialized_executable_deleter(args.serialized_executable);
  }
  if (bytes == NULL) return cx_out_of_memory();
  *out_bytes = bytes;
  *out_size = size;
  return NULL;
}

calx_status *cx_pjrt_program_memory(cx_pjrt_plugin *p, PJRT_Executable *raw,
                                    cx_pjrt_executable_stats *out)
{
  // A number that the plugin does not write stays -1, unknown.
  CX_PJRT_DECLARE(args, PJRT_Executable_GetCompiledMemoryStats,
                  .executable = raw, .generated_code_size_in_bytes = -1,
                  .argument_size_in_bytes = -1, .output_size_in_bytes = -1,
                  .alias_size_in_bytes = -1, .temp_size_in_bytes = -1,
                  .peak_memory_in_bytes = -1);
  CALX_TRY(CX_PJRT_CALL(p, PJRT_Executable_GetCompiledMemoryStats, &args));
  *out = (cx_pjrt_executable_stats){
    .code = args.generated_code_size_in_bytes,
    .arguments = args.argument_size_in_bytes,
    .outputs = args.output_size_in_bytes,
    .aliased = args.alias_size_in_bytes,
    .temporaries = args.temp_size_in_bytes,
    .peak = args.peak_memory_in_bytes,
  };
  return NULL;
}

calx_status *cx_pjrt_program_cost(cx_pjrt_plugin *p, PJRT_Executable *raw,
                                  const char *name, double *out)
{
  CX_PJRT_DECLARE(args, PJRT_Executable_GetCostAnalysis, .executable = raw);
  CALX_TRY(CX_PJRT_CALL(p, PJRT_Executable_GetCostAnalysis, &args));
  for (size_t i = 0; i < args.num_properties; i++) {
    const PJRT_NamedValue *at = &args.properties[i];
    if (at->type == PJRT_NamedValue_kFloat && at->name_size == strlen(name) &&
        memcmp(at->name, name, at->name_size) == 0) {
      *out = (double)at->float_value;
      return NULL;
    }
  }
  return cx_error(CALX_NOT_FOUND,
                  "the cost analysis of plugin '%s' has no '%s' among its %zu "
                  "numbers",
                  p->name, name, args.num_properties);
}
