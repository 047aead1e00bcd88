// kernel/library: where the engine's own shared objects are. In this order:
// beside the file that the engine is in; in the build's folder, where that file
// is part of the build; where that file has the linker look (RUNPATH,
// LD_LIBRARY_PATH); in the folder that calx is installed to; wherever the
// system looks; in the build's folder.
#ifndef CPU_KERNEL_LIBRARY_H
#define CPU_KERNEL_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

// The i-th path at which to look for `file`, in the order in which it is looked
// for; one without a '/' is the system's to find. False: no more.
bool cpu_kernel_library_path(size_t i, const char *file, cx_text *out);
// Loads it, with its names for itself (RTLD_LOCAL) or for all (RTLD_GLOBAL).
// NULL: it does not load, and `looked` has why, behind what it had.
void *cpu_kernel_library_open(const cx_text *path, int scope, cx_text *looked);

#endif
