// abi/calx_segment: the memory that the processes of one host share, and the
// options by which the library describes the world to the embedded engine.
//
// The shared segment is an anonymous file. The launcher creates it and the
// processes inherit it, or the host's first process creates it and sends the
// descriptor to the others. The library maps the first part; the engine gets
// the descriptor among its client's options and maps the rest. Both watch
// `failed`. Nothing of the segment outlives the processes. Under another
// caller, which has a key-value store instead, the engine makes it
// (plugin/cpu/api/meet.c).
#ifndef CX_ABI_CALX_SEGMENT_H
#define CX_ABI_CALX_SEGMENT_H

#include <stdatomic.h>
#include <stdint.h>

#define CALX_SEGMENT_MAGIC 0x31534c43u  // "CLS1"
// Offsets of the parts in bytes; this header's struct comes first. The engine's
// part is sparse: it may use any offset up to CALX_SEGMENT_BYTES, and a page
// exists once it is touched.
#define CALX_SEGMENT_AGREEMENT (64u << 10)
#define CALX_SEGMENT_ENGINE (1u << 20)
#define CALX_SEGMENT_BYTES (UINT64_C(1) << 44)
#define CALX_SEGMENT_MESSAGE 1000  // bytes of a failure's message

typedef struct calx_segment_head {
  uint32_t magic;
  uint32_t processes;  // of this host
  // 0, or the calx_code with which the job has failed. `message` is written
  // before; those that wait on this word as a futex are woken after.
  _Atomic uint32_t failed;
  _Atomic uint32_t writing;  // 1 once a process has begun to report a failure
  char message[CALX_SEGMENT_MESSAGE];
} calx_segment_head;

// Names of the client's creation options (PJRT_NamedValue) beside the field's
// own "node_id", "num_nodes" (processes in all, and this one) and
// "cpu_device_count" (devices of this process, equal on all). Integers.
#define CALX_OPTION_SEGMENT_FD "calx_segment_fd"  // absent: none
#define CALX_OPTION_HOST "calx_host"              // this host, of
#define CALX_OPTION_HOSTS "calx_hosts"            // so many
// The processes of this host, one after another; absent: as many on each host.
#define CALX_OPTION_HOST_FIRST "calx_host_first"
#define CALX_OPTION_HOST_PROCESSES "calx_host_processes"

#endif
