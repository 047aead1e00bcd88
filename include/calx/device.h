/**
 * calx/device.h: the devices that programs run on.
 *
 * The device is chosen as PyTorch/XLA users expect: PJRT_DEVICE=CPU|TPU|CUDA,
 * or a plugin by name or path in CALX_PLUGIN. The CPU is calx's own engine,
 * which is part of the library. The first use of a device opens its plugin; a
 * failure is reported through the scope like that of any op.
 */
#ifndef CALX_DEVICE_H
#define CALX_DEVICE_H

#include <stdbool.h>

#include "calx/dtype.h"
#include "calx/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One XLA device. Lives until calx_shutdown(). @threads thread-safe */
typedef struct calx_device calx_device;

/**
 * The calling thread's device: the one it was given with
 * calx_device_set_current(), else the first. Opens the plugin at the first
 * call. NULL when that failed; the scope then holds the reason, and every
 * operation that is given NULL means this device and reports it.
 * @errors  NOT_FOUND no plugin  FAILED_PRECONDITION not a plugin, too old
 */
CALX_API calx_device *calx_device_current(void);

/**
 * A device by name: "xla" (the current one), "xla:1" (by index).
 * @errors  INVALID_ARGUMENT a name that is none  OUT_OF_RANGE no such index;
 *          and those of opening the plugin
 */
CALX_API calx_status *calx_device_open(const char *name,
                                       calx_device **out_device) CALX_MUST_USE;

/** Makes a device the calling thread's own; NULL: back to the first.
 *  @threads thread-local */
CALX_API void calx_device_set_current(calx_device *device);

/** How many devices the plugin offers this process; 0 when it can't be opened.
 */
CALX_API int calx_device_count(void);

/** "xla:0". NULL gives "xla". Lives as long as the device. */
CALX_API const char *calx_device_name(const calx_device *device);

/** The plugin's platform: "calx_cpu" (calx's own engine), "cpu" (XLA's),
 * "cuda", "tpu"; "?" for NULL. */
CALX_API const char *calx_device_platform(const calx_device *device);

/** What the device says of its memory, in bytes; -1 where it says nothing. */
typedef struct calx_memory_info {
  int64_t bytes_in_use;
  int64_t peak_bytes_in_use;
  int64_t bytes_limit;
} calx_memory_info;

/** After calx_use_spmd() that of the device with the most bytes in use.
 *  @errors  UNIMPLEMENTED the plugin keeps no statistics */
CALX_API calx_status *calx_device_memory(
    calx_device *device, calx_memory_info *out_info) CALX_MUST_USE;

/**
 * Waits until all that was launched on the device is done, and returns the
 * first failure among it.
 */
CALX_API calx_status *calx_device_wait(calx_device *device) CALX_MUST_USE;

/**
 * Chooses the folder that keeps compiled programs from process to process, in
 * place of CALX_CACHE_DIR (xr.initialize_cache). Must come before the first
 * program is compiled. All ranks, threads and processes, share one folder: of
 * those that want the same program one compiles it, the others wait for it
 * (CALX_CACHE_WAIT_S, 600 seconds, then they compile too). Each may make this
 * call. The choice holds until calx_shutdown(). CALX_CACHE_DIR=off wins.
 * @param path      made for its owner only, where it is not there
 * @param readonly  what is there is used, nothing in the folder changes; it may
 *                  be root's
 * @errors  FAILED_PRECONDITION something was compiled, or another folder chosen
 *          before  PERMISSION_DENIED it belongs to another user, or others may
 *          write it: it could hold their code  NOT_FOUND no folder
 * @source  torch_xla initialize_cache, which wants a folder for each process
 */
CALX_API calx_status *calx_cache_open(const char *path,
                                      bool readonly) CALX_MUST_USE;

/**
 * Closes the plugin's client and frees the compiled programs; the next use
 * opens it again. Tensors, modules and optimisers must be gone before.
 * @threads no other thread may be inside the library
 */
CALX_API void calx_shutdown(void);

/** The library's version, "0.1.0". */
CALX_API const char *calx_version(void);

#ifdef __cplusplus
}
#elif !defined(CALX_NO_SITES)
#define calx_device_current() (calx_at_(CALX_HERE), calx_device_current())
#define calx_device_open(name, out_device) \
  (calx_at_(CALX_HERE), calx_device_open(name, out_device))
#define calx_device_count() (calx_at_(CALX_HERE), calx_device_count())
#define calx_device_memory(device, out_info) \
  (calx_at_(CALX_HERE), calx_device_memory(device, out_info))
#define calx_device_wait(device) (calx_at_(CALX_HERE), calx_device_wait(device))
#define calx_cache_open(path, readonly) \
  (calx_at_(CALX_HERE), calx_cache_open(path, readonly))
#endif
#endif
