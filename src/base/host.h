// base/host: which host this process is on.
#ifndef CX_BASE_HOST_H
#define CX_BASE_HOST_H

#include "base/hash.h"

// Equal for processes that can reach each other's memory through /proc: those
// of one boot of a kernel and one PID namespace. The initial namespace has the
// same number on every host, so the boot and the host's name are part of it.
cx_hash cx_host_identity(void);

#endif
