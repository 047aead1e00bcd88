// loggers/machine: where a run takes place.
#ifndef CX_LOGGERS_MACHINE_H
#define CX_LOGGERS_MACHINE_H

#include "base/text.h"

// The devices, as they were when the process had them open.
typedef struct cx_loggers_devices {
  bool are_known;
  size_t count;  // of the process
  int ranks;     // of the run
  char kind[64], platform[64], platform_version[128], plugin[64];
} cx_loggers_devices;

// Opens no device: it does nothing where none is open, or they are known.
void cx_loggers_devices_find(cx_loggers_devices *devices);

// Rows of a table of a page: devices, program, host, processor, system, calx.
void cx_loggers_put_machine(cx_text *out, const cx_loggers_devices *devices);

#endif
