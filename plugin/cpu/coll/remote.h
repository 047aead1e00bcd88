// coll/remote: devices of other hosts.
//
// The segment of each host has states of all devices of the world. The states
// of devices of other hosts are copies. A device that arrives at a collective
// with members on other hosts, or ends a launch, sends a message to one process
// of each of those hosts, which writes the copy. So a member waits in the same
// way for all devices.
//
// A copy must not change before all members that wait for it have seen it. So a
// member never finishes a collective before it has received something from each
// other host with members. A host sends only when all of its members have seen
// all arrivals.
#ifndef CPU_COLL_REMOTE_H
#define CPU_COLL_REMOTE_H

#include "coll/link.h"
#include "coll/segment.h"

// Opens the link to the other processes and learns their hosts. Called last,
// when `coll` is complete otherwise.
calx_status *cpu_coll_remote_open(cpu_coll *coll) CALX_MUST_USE;

// Sends the device's arrival to the other hosts of its group.
void cpu_coll_remote_arrived(const cpu_coll_participant *participant);
// Sends the end of the launch, as the device's state shows it, to the other
// hosts of its device group.
void cpu_coll_remote_ended(const cpu_coll_launch *launch, bool failed);

// Transfers between two devices are matched within a channel.
typedef enum cpu_coll_channel {
  CPU_COLL_CHANNEL_FIRST,   // operands, or parts of them to combine
  CPU_COLL_CHANNEL_SECOND,  // combined parts
  CPU_COLL_CHANNEL_LEAVE,   // no data: the receiver may finish
  CPU_COLL_CHANNELS
} cpu_coll_channel;
// A transfer between this device and member i of the group, not yet posted.
cpu_coll_transfer cpu_coll_remote_transfer(
    const cpu_coll_participant *participant, uint32_t i,
    cpu_coll_channel channel, bool sends, void *data, size_t bytes);

// A wait for transfers, in turns: begin, test the transfers, end.
typedef struct cpu_coll_remote_wait {
  const cpu_coll_participant *participant;
  uint32_t tries, wake_word;
  int64_t until_ns;
} cpu_coll_remote_wait;
void cpu_coll_remote_wait_begin(cpu_coll_remote_wait *wait);
// `moved`: a transfer was done, and the time limit starts anew. Else pauses,
// and checks for failures and for the time limit.
calx_status *cpu_coll_remote_wait_end(cpu_coll_remote_wait *wait,
                                      bool moved) CALX_MUST_USE;
// The participant gives up transfers that it has posted.
void cpu_coll_remote_abandon(const cpu_coll_participant *participant);

#endif
