// api/queue: the launches of a device. They run one after the other, in the
// order in which they were queued.
//
// The thread that has set `busy` owns the device's context. This is the
// device's thread, a caller that found the device idle and whose launch takes
// less time than waking a thread, or a caller that waits for a queued launch.
// The device's thread starts at the first launch that needs it. In a forked
// child, the first launch starts a new thread and initializes the locks again,
// because they may have been held during the fork.
//
// After a launch the device's thread spins for some microseconds before it
// sleeps: a caller that launches one program after the other does not wait for
// it to wake up. Nothing is locked meanwhile; `posted` says that there is
// something to look at.
#include "api/launch.h"
#include "base/alloc.h"

#define SPIN_NS 30000
// A caller that waits for a launch within PROMPT_NS of its push is expected to
// do so again. So the device's thread leaves the next launch to it for
// GRACE_NS: a caller that runs what it waits for need not be woken.
#define PROMPT_NS 50000
#define GRACE_NS 5000
// To wake the device's thread costs the caller tens of microseconds. After
// STREAK launches in turn that their callers ran, each within WATCH_MS, a push
// does not wake it. The thread looks at the queue every WATCH_MS instead.
#define STREAK 8
#define WATCH_MS 1
#define WATCH_NS (WATCH_MS * 1000000)

void cpu_api_queue_init(PJRT_Device *device)
{
  cx_mutex_init(&device->lock);
  cx_cond_init(&device->changed);
  device->last = &device->first;
  device->generation = cpu_threads_generation();
}

static void lock_device(PJRT_Device *device)
{
  const uint32_t now = cpu_threads_generation();
  if (device->generation != now) {
    device->generation = now;
    device->busy = device->watching = false;
    device->thread.running = false;
    cx_mutex_init(&device->lock);
    cx_cond_init(&device->changed);
  }
  cx_lock(&device->lock);
}

// Something that the device's thread waits for has changed. The caller holds
// the lock.
static void notify(PJRT_Device *d)
{
  atomic_fetch_add(&d->posted, 1);
  cx_cond_broadcast(&d->changed);
}

// Waits for a short time without the lock, which the caller holds.
static void spin(PJRT_Device *d)
{
  const uint32_t seen = atomic_load(&d->posted);
  if (d->first != NULL || d->stopping) return;
  cx_unlock(&d->lock);
  const int64_t until = cx_now_ns() + SPIN_NS;
  while (atomic_load_explicit(&d->posted, memory_order_relaxed) == seen &&
         cx_now_ns() < until) {
    for (int i = 0; i < 16; i++) cpu_threads_pause();
  }
  cx_lock(&d->lock);
}

// Runs the first launch of an idle device. The caller holds the lock.
static void run_first(PJRT_Device *d)
{
  cpu_api_launch *launch = d->first;
  d->first = launch->next;
  if (d->first == NULL) d->last = &d->first;
  d->busy = true;
  cx_unlock(&d->lock);
  calx_status *status = cpu_api_launch_run(launch);
  // The end is signalled when the device is no longer busy, so that the caller
  // that waits for it can run the next launch itself.
  cx_lock(&d->lock);
  d->busy = false;
  cx_unlock(&d->lock);
  cpu_api_launch_end(launch, status);
  cx_lock(&d->lock);
}

// Lets the caller take the first launch if it is new. The lock is held.
static void leave_to_caller(PJRT_Device *d)
{
  const int64_t until = d->pushed + GRACE_NS;
  if (d->first->next != NULL || cx_now_ns() >= until) return;
  cx_unlock(&d->lock);
  while (cx_now_ns() < until) cpu_threads_pause();
  cx_lock(&d->lock);
}

// Waits until something has changed, or for WATCH_MS if callers run what they
// launch. The caller holds the lock.
static void wait_for_change(PJRT_Device *d)
{
  if (d->streak < STREAK || cx_now_ns() - d->pushed > WATCH_NS) {
    cx_cond_wait(&d->changed, &d->lock);
    return;
  }
  d->watching = true;
  (void)cx_cond_wait_ms(&d->changed, &d->lock, WATCH_MS);
  d->watching = false;
}

static void work(void *user)
{
  PJRT_Device *d = user;
  // The callers of the other devices have no core to spare.
  const bool spins = d->client->n_local < (size_t)cpu_threads_cores();
  cx_lock(&d->lock);
  for (;;) {
    if (d->first != NULL && d->prompt) leave_to_caller(d);
    while (d->busy || (d->first == NULL && !d->stopping)) {
      wait_for_change(d);
    }
    if (d->first == NULL) break;  // it is stopping
    d->streak = 0;
    run_first(d);
    if (spins) spin(d);
  }
  cx_unlock(&d->lock);
  cpu_api_client_release(d->client);
}

// Gives the launch its number in its device group. The caller holds the lock,
// so launches are queued in the order of their numbers.
static void number(PJRT_Device *device, cpu_api_launch *launch)
{
  if (launch->coll.devices == NULL) return;
  launch->coll.number = cpu_coll_next_launch(
      launch->coll.coll, launch->coll.device_group,
      (uint32_t)device->description.id, launch->least_number);
}

void cpu_api_queue_follow(PJRT_Device *device, cpu_api_launch *launch)
{
  lock_device(device);
  if (launch->coll.devices != NULL) {
    const uint64_t n =
        cpu_coll_launch_count(launch->coll.coll, launch->coll.device_group,
                              (uint32_t)device->description.id);
    if (launch->least_number < n) launch->least_number = n;
  }
  cx_unlock(&device->lock);
}

bool cpu_api_queue_enter(PJRT_Device *device, cpu_api_launch *launch)
{
  lock_device(device);
  bool entered = !device->busy && device->first == NULL && !device->stopping;
  if (entered) {
    device->busy = true;
    number(device, launch);
  }
  cx_unlock(&device->lock);
  return entered;
}

// Whether the launch that sets the event is queued, and none up to it waits for
// other devices, whose launches the same caller may have to start.
static bool may_run_until(const PJRT_Device *d, const PJRT_Event *done)
{
  for (const cpu_api_launch *l = d->first; l != NULL; l = l->next) {
    if (l->executable->code->info->has_collectives) return false;
    if (l->done == done) return true;
  }
  return false;
}

void cpu_api_queue_run_until(PJRT_Device *device, const PJRT_Event *done)
{
  lock_device(device);
  // A caller that waits for an older launch has more to do meanwhile.
  const bool latest = done == device->latest;
  device->prompt = latest && cx_now_ns() - device->pushed < PROMPT_NS;
  bool ran = false;
  while (latest && !device->busy && may_run_until(device, done)) {
    run_first(device);
    ran = true;
  }
  if (!device->prompt || cx_now_ns() - device->pushed > WATCH_NS) {
    device->streak = 0;
  } else if (ran && device->streak < STREAK) {
    device->streak++;
  }
  if (ran && (device->first != NULL || device->stopping)) notify(device);
  cx_unlock(&device->lock);
}

void cpu_api_queue_miss(PJRT_Device *device, cpu_api_launch *launch,
                        const calx_status *why)
{
  lock_device(device);
  const bool idle = !device->busy && device->first == NULL;
  if (idle) device->busy = true;
  number(device, launch);
  cx_unlock(&device->lock);
  if (!idle) return;
  cpu_coll_end(&launch->coll, why);
  cpu_api_queue_leave(device);
}

void cpu_api_queue_leave(PJRT_Device *device)
{
  cx_lock(&device->lock);
  device->busy = false;
  if (device->first != NULL || device->stopping) notify(device);
  cx_unlock(&device->lock);
}

static calx_status *start_thread(PJRT_Device *device)
{
  if (device->thread.running) return NULL;
  cpu_api_client_retain(device->client);  // for the thread
  calx_status *status = cx_thread_start(&device->thread, work, device);
  if (status != NULL) cpu_api_client_release(device->client);
  return status;
}

void cpu_api_queue_push(PJRT_Device *device, cpu_api_launch *launch)
{
  calx_status *status = NULL;
  lock_device(device);
  number(device, launch);
  if (device->stopping) {
    status =
        cx_error(CALX_FAILED_PRECONDITION,
                 "device %d: its client was destroyed", device->description.id);
  } else {
    status = start_thread(device);
  }
  if (status == NULL) {
    // Callers do not run launches with collectives, and one that launches again
    // before it waits has more to do.
    const bool leave = device->watching && device->first == NULL &&
                       launch->coll.devices == NULL;
    launch->next = NULL;
    device->pushed = cx_now_ns();
    device->latest = launch->done;
    *device->last = launch;
    device->last = &launch->next;
    if (!leave) notify(device);
  }
  cx_unlock(&device->lock);
  if (status == NULL) return;
  // The other devices of the launch must not wait for this one.
  cpu_coll_end(&launch->coll, status);
  cpu_api_launch_end(launch, status);
}

bool cpu_api_queue_poison(PJRT_Device *device, int launch_id,
                          calx_status *error)
{
  lock_device(device);
  cpu_api_launch *launch = launch_id == 0 ? NULL : device->first;
  while (launch != NULL &&
         (launch->launch_id != launch_id || launch->failure != NULL)) {
    launch = launch->next;
  }
  if (launch != NULL) launch->failure = error;
  cx_unlock(&device->lock);
  if (launch == NULL) calx_status_free(error);
  return launch != NULL;
}

void cpu_api_queue_stop(PJRT_Device *device)
{
  lock_device(device);
  device->stopping = true;
  notify(device);
  cx_unlock(&device->lock);
  if (!device->thread.running) return;
  if (pthread_equal(device->thread.handle, pthread_self())) {
    // The client was destroyed in a callback: the thread cannot join itself.
    (void)pthread_detach(device->thread.handle);
    device->thread.running = false;
  } else {
    cx_thread_join(&device->thread);
  }
}
