// run/object: loads compiled code: a relocatable ELF object for x86-64 becomes
// callable memory.
//
// Takes what plugin/cpu/jit makes: position-independent code with read-only
// data that calls nothing but memset, memcpy and memmove. The bytes may come
// from a file: sizes, offsets and relocations are checked. What the code does
// is trusted, as that of any program that its owner can write.
#ifndef CX_RUN_OBJECT_H
#define CX_RUN_OBJECT_H

#include <stddef.h>

#include "base/status.h"

typedef struct cx_object cx_object;

calx_status *cx_object_load(const void *data, size_t size,
                            cx_object **out) CALX_MUST_USE;
void cx_object_free(cx_object *object);  // NULL is accepted
// NULL: it has no such symbol.
void *cx_object_find(const cx_object *object, const char *symbol);
size_t cx_object_bytes(const cx_object *object);  // of mapped memory

#endif
