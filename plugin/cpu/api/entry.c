// api/entry: the one name that libcalx_cpu.so exports.
#include "abi/calx_cpu.h"

__attribute__((visibility("default"))) const PJRT_Api *GetPjrtApi(void);

const PJRT_Api *GetPjrtApi(void)
{
  return calx_cpu_api();
}
