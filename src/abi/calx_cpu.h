// abi/calx_cpu: the table of the CPU engine that is part of the library.
#ifndef CX_ABI_CALX_CPU_H
#define CX_ABI_CALX_CPU_H

#include "abi/pjrt.h"
#include "base/hash.h"

// What libcalx_cpu.so exports as GetPjrtApi.
const PJRT_Api *calx_cpu_api(void);

// The file that the engine is in.
const char *calx_cpu_path(void);
// Of the build: what it compiled is good for the same one only.
calx_status *calx_cpu_identity(cx_hash *out) CALX_MUST_USE;

#endif
