// abi/calx_window: memory that the processes of one host share, and what the
// library tells the embedded engine of the world.
//
// The library's world makes the window (an anonymous file that its launcher
// hands down, or that the host's first process shares) and maps its first part;
// the engine gets the file's number with its client's options and maps the
// rest. Both watch `news`. Nothing of it outlives the processes.
#ifndef CX_ABI_CALX_WINDOW_H
#define CX_ABI_CALX_WINDOW_H

#include <stdatomic.h>
#include <stdint.h>

#define CALX_WINDOW_MAGIC 0x31574c43u  // "CLW1"
// Where the parts begin, in bytes. The engine's part is sparse: it may use any
// offset up to CALX_WINDOW_BYTES, and pages exist once they are touched.
#define CALX_WINDOW_BOARD (64u << 10)
#define CALX_WINDOW_ENGINE (1u << 20)
#define CALX_WINDOW_BYTES (UINT64_C(1) << 44)
#define CALX_WINDOW_NEWS 1000

typedef struct calx_window {
  uint32_t magic;
  uint32_t processes;  // of this host
  // 0: all is well. Else the job has failed: `news` is written before it is
  // set, and those that wait on it as a futex are woken.
  _Atomic uint32_t failed;
  _Atomic uint32_t writing;  // who writes the news: the first only
  char news[CALX_WINDOW_NEWS];
} calx_window;

// Names of the client's creation options (PJRT_NamedValue) beside the field's
// own "node_id", "num_nodes" (processes in all, and this one) and
// "cpu_device_count" (devices of this process, equal on all). Integers.
#define CALX_OPTION_WINDOW_FD "calx_window_fd"  // absent: no window
#define CALX_OPTION_HOST "calx_host"            // this host, of
#define CALX_OPTION_HOSTS "calx_hosts"          // so many
// The processes of this host, one after another; absent: as many on each host.
#define CALX_OPTION_HOST_FIRST "calx_host_first"
#define CALX_OPTION_HOST_PROCESSES "calx_host_processes"

#endif
