// lazy/sync/closure: what runs after a step, for those that run steps.
#ifndef CX_LAZY_CLOSURE_H
#define CX_LAZY_CLOSURE_H

#include "lazy/lazy.h"

// After a sync of the device, on the thread that synced: runs what was added
// before it, or drops it where the scope holds an error.
void cx_lazy_closures_run(calx_device *device);
// Of all devices, before they go: what is queued runs, what waits for a sync is
// dropped. On a thread that runs asynchronous closures (one of them calls
// exit()) those queued behind it are left.
void cx_lazy_closures_end(void);
// What waits for the device's next sync is dropped: there is none.
void cx_lazy_closures_drop(calx_device *device);
// Whether the calling thread runs asynchronous closures.
bool cx_lazy_closures_is_worker(void);

#endif
