// kernels/library: where the engine's own shared objects are: beside the file
// that the engine is in, or in the folder of libraries that it was built for.
#ifndef CX_KERNELS_LIBRARY_H
#define CX_KERNELS_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

// The i-th path at which to look for `file`, in the order in which it is looked
// for; one without a '/' is the system's to find. False: no more.
bool cx_library_path(size_t i, const char *folder, const char *file,
                     cx_text *out);
// Loads it, with its names for itself (RTLD_LOCAL) or for all (RTLD_GLOBAL).
// NULL: it does not load, and `looked` has why, behind what it had.
void *cx_library_open(const cx_text *path, int scope, cx_text *looked);

#endif
