// api/launch: launches, and the queue of a device.
#ifndef CPU_API_LAUNCH_H
#define CPU_API_LAUNCH_H

#include "api/api.h"

// One device's part in an execution. It is one allocation with its lists.
struct cpu_api_launch {
  cpu_api_launch *next;
  PJRT_LoadedExecutable *executable;  // held
  PJRT_Device *device;
  // Set when all results are complete. NULL: the caller runs the launch, or it
  // only reports `failure`.
  PJRT_Event *done;
  calx_status *failure;  // NULL: it runs; else it fails with this error
  int launch_id;         // the caller's; 0: none
  cpu_coll_launch coll;
  uint64_t least_number;  // its number in the device group is higher than this
  size_t n_args, n_results;
  cpu_api_value **args;          // held; NULL: none yet
  PJRT_Buffer **donors;          // of donated arguments; else NULL
  cpu_api_value **results;       // held; NULL: none yet
  void **pointers;               // of arguments, then results
  bool *keeps;                   // arguments that must not be donated
  cpu_ref_user_data *user_data;  // a copy of the caller's; NULL: none
  size_t n_user_data;
};

// ---- making ----

// An empty launch; NULL: no memory. `slot` is the index among the executable's
// local devices.
cpu_api_launch *cpu_api_launch_new(PJRT_LoadedExecutable *executable,
                                   size_t slot, PJRT_Device *device);
// The part of the launch that the collectives need.
cpu_coll_launch cpu_api_launch_coll(const PJRT_LoadedExecutable *executable,
                                    size_t slot);
// A launch with its arguments, which are checked.
calx_status *cpu_api_launch_prepare(PJRT_LoadedExecutable *executable,
                                    size_t slot, PJRT_Device *device,
                                    PJRT_Buffer *const *args,
                                    const PJRT_ExecuteOptions *options,
                                    cpu_api_launch **out) CALX_MUST_USE;
// Returns donated values to their buffers.
void cpu_api_launch_return_args(cpu_api_launch *launch);

// ---- the queue of a device ----

// If the device is idle, makes the caller its owner until
// cpu_api_queue_leave(), to run this launch. False: it is not idle.
bool cpu_api_queue_enter(PJRT_Device *device, cpu_api_launch *launch);
void cpu_api_queue_leave(PJRT_Device *device);
// For a launch that could not be allocated: the device counts it and gives it a
// number. Other devices learn the failure now if the device is idle, else with
// the device's next launch.
void cpu_api_queue_miss(PJRT_Device *device, cpu_api_launch *launch,
                        const calx_status *why);
// Appends the launch; the device's thread runs and ends it, or a caller that
// waits for it. If the device cannot, the launch ends with the error, which its
// results report.
void cpu_api_queue_push(PJRT_Device *device, cpu_api_launch *launch);
// Runs the queued launches up to that which sets the event, on the calling
// thread. Does nothing while another thread runs one, if a later launch is
// queued, or if one of them has collectives.
void cpu_api_queue_run_until(PJRT_Device *device, const PJRT_Event *done);
// Raises the launch's least number to that of the device's latest launch.
void cpu_api_queue_follow(PJRT_Device *device, cpu_api_launch *launch);
// Makes the first queued launch of this id fail with the error, which is taken.
// False: no launch of this id is queued.
bool cpu_api_queue_poison(PJRT_Device *device, int launch_id,
                          calx_status *error);
// Runs the queued launches, then ends the thread.
void cpu_api_queue_stop(PJRT_Device *device);
void cpu_api_queue_init(PJRT_Device *device);

// ---- running ----

// Runs on the calling thread, which owns the device.
calx_status *cpu_api_launch_run(cpu_api_launch *launch) CALX_MUST_USE;
// Releases everything, sets the event and frees the launch. Takes the status.
void cpu_api_launch_end(cpu_api_launch *launch, calx_status *status);
// Releases everything and frees the launch. Only the buffers hold the results'
// values then.
void cpu_api_launch_free(cpu_api_launch *launch);

#endif
