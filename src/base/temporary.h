// base/temporary: names of temporary files, which tell whose they are.
#ifndef CX_BASE_TEMPORARY_H
#define CX_BASE_TEMPORARY_H

#include <limits.h>

// Another name beside the path at each call: "PATH.calx-WHERE-PID-N.tmp", where
// WHERE is a hash of the machine's start and of the process's id namespace.
void cx_temporary_name(const char *path, char out[PATH_MAX]);

// Removes the folder's files of that form whose writer has ended. Those of
// another WHERE stay: whether their writer has ended is not known here.
void cx_temporary_sweep(const char *folder);

#endif
