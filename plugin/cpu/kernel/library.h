// kernel/library: finds the engine's own shared objects. It searches in this
// order: the folder of the file that the engine is in; the build's folder, if
// that file is part of the build; the file's search path (RUNPATH,
// LD_LIBRARY_PATH); the folder that calx is installed to; the system's search
// path; the build's folder.
#ifndef CPU_KERNEL_LIBRARY_H
#define CPU_KERNEL_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

// The i-th path to try for `file`; without a '/', the system searches for it.
// False: no more.
bool cpu_kernel_library_path(size_t i, const char *file, cx_text *out);
// Loads it with dlopen's RTLD_LOCAL or RTLD_GLOBAL. NULL: it does not load, and
// the reason is appended to `looked`.
void *cpu_kernel_library_open(const cx_text *path, int scope, cx_text *looked);

#endif
