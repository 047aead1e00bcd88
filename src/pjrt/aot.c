// pjrt/aot: compiles for devices that are not here.
//
// A topology describes them; the plugin needs no hardware for that. libtpu
// takes a name ("v5e:2x2"), CUDA the text of a target and a size.
#include <string.h>

#include "base/alloc.h"
#include "pjrt/internal.h"

static calx_status *topology_create(cx_pjrt_plugin *p, const char *name,
                                    const cx_pjrt_option *options, size_t n,
                                    PJRT_TopologyDescription **out)
{
  PJRT_NamedValue *values = NULL;
  CALX_TRY(cx_pjrt_values_make(options, n, &values));
  CX_PJRT_DECLARE(args, PJRT_TopologyDescription_Create, .topology_name = name,
                  .topology_name_size = strlen(name), .create_options = values,
                  .num_options = n);
  calx_status *status = CX_PJRT_CALL(p, PJRT_TopologyDescription_Create, &args);
  cx_free(values);
  if (status != NULL) return cx_annotate(status, "topology '%s'", name);
  *out = args.topology;
  return cx_pjrt_check_object(p, *out, "topology");
}

static calx_status *compile(cx_pjrt_plugin *p, PJRT_TopologyDescription *t,
                            const PJRT_Program *program,
                            const cx_pjrt_compile_options *options,
                            PJRT_Executable **out)
{
  char *bytes = NULL;
  size_t size = 0;
  CALX_TRY(cx_pjrt_options_encode(options, NULL, &bytes, &size));
  CX_PJRT_DECLARE(args, PJRT_Compile, .topology = t, .program = program,
                  .compile_options = bytes, .compile_options_size = size);
  calx_status *status = CX_PJRT_CALL(p, PJRT_Compile, &args);
  cx_free(bytes);
  CALX_TRY(status);
  *out = args.executable;
  return cx_pjrt_check_object(p, *out, "executable");
}

calx_status *cx_pjrt_compile_for(cx_pjrt_plugin *p, const char *topology,
                                 const cx_pjrt_option *options,
                                 size_t n_options, const char *text,
                                 size_t size,
                                 const cx_pjrt_compile_options *compile_options,
                                 char **out_serialized, size_t *out_size,
                                 cx_pjrt_executable_stats *out_stats)
{
  if (out_serialized != NULL) {
    *out_serialized = NULL;
    *out_size = 0;
  }
  if (out_stats != NULL) {
    *out_stats = (cx_pjrt_executable_stats){ -1, -1, -1, -1, -1, -1 };
  }
  PJRT_TopologyDescription *t = NULL;
  PJRT_Executable *raw = NULL;
  PJRT_Program program = cx_pjrt_program(text, size);
  calx_status *status = topology_create(p, topology, options, n_options, &t);
  if (status == NULL) {
    status = compile(p, t, &program, compile_options, &raw);
  }
  if (status == NULL && out_stats != NULL) {
    // A plugin need not know; then the numbers stay "not told".
    cx_pjrt_ignore(cx_pjrt_program_memory(p, raw, out_stats));
  }
  if (status == NULL && out_serialized != NULL) {
    status = cx_pjrt_program_serialize(p, raw, out_serialized, out_size);
  }
  cx_pjrt_program_destroy(p, raw);
  if (t != NULL) CX_PJRT_DESTROY(p, PJRT_TopologyDescription, .topology = t);
  return status;
}
