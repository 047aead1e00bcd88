// run/object: loads compiled code: a relocatable ELF object for x86-64 becomes
// callable memory.
//
// It takes what plugin/cpu/jit makes: position-independent code with read-only
// data, which calls only memset, memcpy and memmove. The bytes may come from a
// file, so sizes, offsets and relocations are checked. The code itself is
// trusted, like any program that the owner of the file can write.
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
