// run/object: loads compiled code: a relocatable ELF object for x86-64 becomes
// callable memory.
//
// Takes what plugin/cpu/jit makes: position-independent code with read-only
// data that calls nothing but memset, memcpy and memmove. The bytes may come
// from a file: sizes, offsets and relocations are checked. What the code does
// is trusted, as that of any program that its owner can write.
#ifndef CPU_RUN_OBJECT_H
#define CPU_RUN_OBJECT_H

#include <stddef.h>

#include "base/status.h"

typedef struct cpu_run_object cpu_run_object;

calx_status *cpu_run_object_load(const void *data, size_t size,
                                 cpu_run_object **out) CALX_MUST_USE;
void cpu_run_object_free(cpu_run_object *object);  // NULL is accepted
// NULL: it has no such symbol.
void *cpu_run_object_find(const cpu_run_object *object, const char *symbol);
size_t cpu_run_object_bytes(const cpu_run_object *object);  // of mapped memory

#endif
