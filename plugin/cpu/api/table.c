// api/table: the functions in PJRT's order, and the plugin itself.
//
// The table has the length of version 0.104. The slots behind its end are
// filled as well, for clients that read beyond it. Frameworks send StableHLO of
// the smaller of their own version and the current version here, so the reader
// of programs must know this version.
#include "abi/calx_cpu.h"

#include <string.h>

#include "api/api.h"

CPU_API_ACCEPT(PJRT_Plugin_Initialize, struct_size)

static const int64_t stablehlo_current[] = { 1, 13, 0 };
static const int64_t stablehlo_minimum[] = { 0, 9, 0 };

#define NAME(text) .name = text, .name_size = sizeof(text) - 1

static const PJRT_NamedValue attributes[] = {
  { CX_PJRT_ARGS(PJRT_NamedValue), NAME("stablehlo_current_version"),
    .type = PJRT_NamedValue_kInt64List, .int64_array_value = stablehlo_current,
    .value_size = 3 },
  { CX_PJRT_ARGS(PJRT_NamedValue), NAME("stablehlo_minimum_version"),
    .type = PJRT_NamedValue_kInt64List, .int64_array_value = stablehlo_minimum,
    .value_size = 3 },
  { CX_PJRT_ARGS(PJRT_NamedValue), NAME("calx_version"),
    .type = PJRT_NamedValue_kString, .string_value = CALX_VERSION,
    .value_size = sizeof(CALX_VERSION) - 1 },
};

CPU_API_GET_LIST(PJRT_Plugin_Attributes, struct_size, attributes, attributes,
                 num_attributes, sizeof attributes / sizeof *attributes)

#define SLOT(slot) .slot = cpu_api_##slot,
static const PJRT_Api table = {
  .struct_size = offsetof(PJRT_Api, PJRT_Device_ClearMemoryStats),
  .extension_start = &cpu_api_ffi.base,
  .pjrt_api_version = { CX_PJRT_ARGS(PJRT_Api_Version),
                        .major_version = PJRT_API_MAJOR,
                        .minor_version = CPU_API_MINOR },
  CX_PJRT_FUNCTIONS(SLOT, SLOT)
};

const PJRT_Api *calx_cpu_api(void)
{
  return &table;
}
