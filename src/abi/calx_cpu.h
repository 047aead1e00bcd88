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

// How this process runs the kernels that it measured, for a later one of the
// same build that is to compute the same bits. The numbers are freed with
// cx_free(), and are checked when they are loaded.
calx_status *calx_cpu_choices_save(int64_t **out,
                                   size_t *out_count) CALX_MUST_USE;
calx_status *calx_cpu_choices_load(const int64_t *numbers,
                                   size_t count) CALX_MUST_USE;

#endif
