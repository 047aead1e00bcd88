// api/layouts: the extension for the layouts of tensors in memory. All tensors
// are row-major, so a layout is given by its rank, and there is one static
// object for each rank.
#include <stdio.h>
#include <string.h>

#include "api/api.h"

struct PJRT_Layouts_MemoryLayout {
  char text[3 * CPU_API_MAX_RANK + 3];  // "{1,0}"
};

static PJRT_Layouts_MemoryLayout layouts[CPU_API_MAX_RANK + 1];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void write_all(void)
{
  for (int rank = 0; rank <= CPU_API_MAX_RANK; rank++) {
    char *at = layouts[rank].text;
    *at++ = '{';
    for (int i = rank - 1; i >= 0; i--) {
      at += sprintf(at, i > 0 ? "%d," : "%d", i);
    }
    strcpy(at, "}");
  }
}

PJRT_Layouts_MemoryLayout *cpu_api_layout_of(size_t rank)
{
  (void)pthread_once(&once, write_all);
  return rank <= CPU_API_MAX_RANK ? &layouts[rank] : NULL;
}

static PJRT_Error *destroy(PJRT_Layouts_MemoryLayout_Destroy_Args *args)
{
  CPU_API_ENTER(PJRT_Layouts_MemoryLayout_Destroy, struct_size);
  return NULL;
}

static void keep(PJRT_Layouts_SerializedLayout *layout)
{
  (void)layout;
}

static PJRT_Error *serialize(PJRT_Layouts_MemoryLayout_Serialize_Args *args)
{
  CPU_API_ENTER(PJRT_Layouts_MemoryLayout_Serialize, layout);
  args->serialized_bytes = args->layout->text;
  args->serialized_bytes_size = strlen(args->layout->text);
  args->serialized_layout = (PJRT_Layouts_SerializedLayout *)args->layout;
  args->serialized_layout_deleter = keep;
  return NULL;
}

static PJRT_Error *of_rank(size_t rank, PJRT_Layouts_MemoryLayout **out)
{
  *out = cpu_api_layout_of(rank);
  if (*out != NULL) return NULL;
  return cpu_api_error(
      cx_invalid("a tensor of %zu dimensions, at most %d are supported", rank,
                 CPU_API_MAX_RANK));
}

static PJRT_Error *of_client(
    PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args *args)
{
  CPU_API_ENTER(PJRT_Layouts_PJRT_Client_GetDefaultLayout, client);
  return of_rank(args->num_dims, &args->layout);
}

static PJRT_Error *of_topology(
    PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args *args)
{
  CPU_API_ENTER(PJRT_Layouts_PJRT_Topology_GetDefaultLayout,
                topology_description);
  return of_rank(args->num_dims, &args->layout);
}

static PJRT_Error *of_buffer(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args *args)
{
  CPU_API_ENTER(PJRT_Layouts_PJRT_Buffer_MemoryLayout, buffer);
  return of_rank(args->buffer->shape.rank, &args->layout);
}

static PJRT_Error *of_outputs(
    PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args *args)
{
  CPU_API_ENTER(PJRT_Layouts_PJRT_Executable_GetOutputLayouts, executable);
  const cpu_api_code *code = args->executable->code;
  args->num_outputs = code->info->n_results;
  args->layouts = code->result_layouts;
  return NULL;
}

static PJRT_Error *of_parameters(
    PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args *args)
{
  CPU_API_ENTER(PJRT_Layouts_PJRT_Executable_GetParameterLayouts, executable);
  const cpu_api_code *code = args->executable->code;
  args->num_parameters = code->info->n_params;
  args->layouts = code->param_layouts;
  return NULL;
}

PJRT_Layouts_Extension cpu_api_layouts = {
  .base = { CX_PJRT_ARGS(PJRT_Layouts_Extension),
            .type = PJRT_Extension_Type_Layouts,
            .next = &cpu_api_shardings.base },
  .PJRT_Layouts_MemoryLayout_Destroy = destroy,
  .PJRT_Layouts_MemoryLayout_Serialize = serialize,
  .PJRT_Layouts_PJRT_Client_GetDefaultLayout = of_client,
  .PJRT_Layouts_PJRT_Buffer_MemoryLayout = of_buffer,
  .PJRT_Layouts_PJRT_Topology_GetDefaultLayout = of_topology,
  .PJRT_Layouts_PJRT_Executable_GetOutputLayouts = of_outputs,
  .PJRT_Layouts_PJRT_Executable_GetParameterLayouts = of_parameters
};
