// abi/calx_cpu: the table of the CPU engine that is part of the library.
#ifndef CX_ABI_CALX_CPU_H
#define CX_ABI_CALX_CPU_H

#include "abi/pjrt.h"

// What libcalx_cpu.so exports as GetPjrtApi.
const PJRT_Api *calx_cpu_api(void);

#endif
