// coll/messages: the text of all errors of a wait.
#ifndef CPU_COLL_MESSAGES_H
#define CPU_COLL_MESSAGES_H

#include "coll/participant.h"

typedef enum cpu_coll_cause {
  CPU_COLL_LATE,     // `devices` have not arrived in time
  CPU_COLL_STUCK,    // all have arrived, but no data moves between the hosts
  CPU_COLL_ENDED,    // devices[0] ended its launch without arriving
  CPU_COLL_FAILED,   // devices[0] failed: `reason`
  CPU_COLL_DIFFERS,  // devices[0] and [1] submitted headers[0] and [1]
  CPU_COLL_REPORTED  // `reason` says all, and `code`
} cpu_coll_cause;

typedef struct cpu_coll_report {
  cpu_coll_cause cause;
  const cpu_coll_launch *launch;
  const cpu_coll_submission *submission;  // NULL: the text does not name it
  const uint32_t *devices;                // numbers in the program
  uint32_t n_devices;
  const uint64_t *headers[2];  // [CPU_COLL_FIELDS]
  const char *reason;
  calx_code code;
} cpu_coll_report;

calx_status *cpu_coll_error(const cpu_coll_report *report) CALX_MUST_USE;

#endif
