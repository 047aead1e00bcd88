// coll/segment: the memory in which devices exchange states and operands.
//
// Devices of several processes use a shared segment, a file that each process
// maps. A process whose devices are the whole world uses private memory, which
// holds states only, because its devices work on each other's operands in
// place.
#ifndef CPU_COLL_SEGMENT_H
#define CPU_COLL_SEGMENT_H

#include "coll/participant.h"

// Bytes of a staging buffer. A device has two for chunks of its operands and
// CPU_COLL_STAGING_OUTS for chunks of its results, of which it uses two unless
// several hosts take part.
#define CPU_COLL_STAGING_BYTES ((size_t)512 << 10)
#define CPU_COLL_STAGING_OUTS 6

// A staging buffer of the i-th member of this host: 0 and 1 are for operands, 2
// and on for results.
unsigned char *cpu_coll_staging(const cpu_coll_participant *participant,
                                uint32_t i, unsigned which);
// Member i's memory for whole operands, mapped up to `bytes`. The memory of
// large ones returns to the system when all members have left.
calx_status *cpu_coll_operand_buffer(const cpu_coll_participant *participant,
                                     uint32_t i, size_t bytes,
                                     unsigned char **out) CALX_MUST_USE;

#endif
