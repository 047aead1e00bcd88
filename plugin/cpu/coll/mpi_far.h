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
#ifndef CX_COLL_MPI_FAR_H
#define CX_COLL_MPI_FAR_H

#include "coll/mpi_link.h"
#include "coll/window.h"

// The members of a group that are of one host, by their places in the group.
typedef struct cx_coll_side {
  uint32_t host, n;
  const uint32_t *members;
} cx_coll_side;

// Meets the other processes; the window is complete but for this.
calx_status *cx_mpi_far_open(cx_coll_window *window) CALX_MUST_USE;

// Sorts a visit's group by hosts.
calx_status *cx_mpi_far_sides(cx_coll_visit *visit) CALX_MUST_USE;
// Tells the other hosts of the group that the device has come.
void cx_mpi_far_come(const cx_coll_visit *visit);
// … and those of the launch that it has ended, as its state says.
void cx_mpi_far_end(cx_coll_window *window, const cx_coll_launch *launch,
                    bool failed);

// What goes with what between two devices.
typedef enum cx_mpi_channel {
  CX_MPI_FIRST,   // operands; the parts that somebody combines
  CX_MPI_SECOND,  // what came of them
  CX_MPI_LEAVE,   // nothing: the other may finish
  CX_MPI_CHANNELS
} cx_mpi_channel;
// A transfer between this device and member i of the group.
cx_mpi_transfer cx_mpi_far_transfer(const cx_coll_visit *visit, uint32_t i,
                                    cx_mpi_channel channel, bool sends,
                                    void *data, size_t bytes);

// A wait for transfers, which begins anew, with zeros, when something moved.
typedef struct cx_mpi_wait {
  uint32_t tries;
  int64_t until_ns;
} cx_mpi_wait;
// One turn of it: lets others run, looks for what would make it vain, and ends
// it when the time is over.
calx_status *cx_mpi_far_pause(const cx_coll_visit *visit, cx_mpi_wait *wait,
                              uint32_t bell) CALX_MUST_USE;
// Transfers of the visit were begun and will not be waited for.
void cx_mpi_far_lose(const cx_coll_visit *visit);

#endif
