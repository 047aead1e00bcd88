// coll/mpi_far: devices of other hosts, as a window shows them.
//
// The window of each host has states of all the world's devices. Those of other
// hosts are copies: a device that comes to a collective with members elsewhere,
// or ends a launch, tells one process of each of their hosts, which writes the
// copy. So whoever waits looks at states, wherever the device is.
//
// A copy must not change before all who looked at it have gone on. So in a
// collective no device can finish before each other host with members has sent
// it something, which it does when all its members have seen all.
#ifndef CPU_COLL_MPI_FAR_H
#define CPU_COLL_MPI_FAR_H

#include "coll/mpi_link.h"
#include "coll/window.h"

// The members of a group that are of one host, by their places in the group.
typedef struct cpu_coll_side {
  uint32_t host, n;
  const uint32_t *members;
} cpu_coll_side;

// Meets the other processes; the window is complete but for this.
calx_status *cpu_coll_mpi_far_open(cpu_coll *window) CALX_MUST_USE;

// Sorts a visit's group by hosts.
calx_status *cpu_coll_mpi_far_sides(cpu_coll_visit *visit) CALX_MUST_USE;
// Tells the other hosts of the group that the device has come.
void cpu_coll_mpi_far_come(const cpu_coll_visit *visit);
// … and those of the launch that it has ended, as its state says.
void cpu_coll_mpi_far_end(cpu_coll *window, const cpu_coll_launch *launch,
                          bool failed);

// What goes with what between two devices.
typedef enum cpu_coll_mpi_channel {
  CPU_COLL_MPI_FIRST,   // operands; the parts that somebody combines
  CPU_COLL_MPI_SECOND,  // what came of them
  CPU_COLL_MPI_LEAVE,   // nothing: the other may finish
  CPU_COLL_MPI_CHANNELS
} cpu_coll_mpi_channel;
// A transfer between this device and member i of the group.
cpu_coll_mpi_transfer cpu_coll_mpi_far_transfer(const cpu_coll_visit *visit,
                                                uint32_t i,
                                                cpu_coll_mpi_channel channel,
                                                bool sends, void *data,
                                                size_t bytes);

// A wait for transfers, which begins anew, with zeros, when something moved.
typedef struct cpu_coll_mpi_wait {
  uint32_t tries;
  int64_t until_ns;
} cpu_coll_mpi_wait;
// One turn of it: lets others run, looks for what would make it vain, and ends
// it when the time is over.
calx_status *cpu_coll_mpi_far_pause(const cpu_coll_visit *visit,
                                    cpu_coll_mpi_wait *wait,
                                    uint32_t bell) CALX_MUST_USE;
// Transfers of the visit were begun and will not be waited for.
void cpu_coll_mpi_far_lose(const cpu_coll_visit *visit);

#endif
