// run/program: an executable in memory, and how it is run.
//
// A program does not change after it was made, and may run on many devices at
// the same time. A run keeps its memory, threads and counters in a context.
#ifndef CPU_RUN_PROGRAM_H
#define CPU_RUN_PROGRAM_H

#include "base/hash.h"
#include "base/text.h"
#include "coll/coll.h"
#include "hlo/module.h"
#include "ref/ref.h"
#include "threads/threads.h"

typedef struct cpu_run_program cpu_run_program;

// The kinds of memory that a program's parameters and results may name, in the
// order of PJRT's kind ids. All are the same memory here.
typedef enum cpu_run_memory {
  CPU_RUN_MEMORY_DEVICE,
  CPU_RUN_MEMORY_PINNED_HOST,
  CPU_RUN_MEMORY_UNPINNED_HOST,
  CPU_RUN_MEMORIES
} cpu_run_memory;
const char *cpu_run_memory_name(cpu_run_memory kind);  // "pinned_host"

// An estimate of what one run does, as XLA's cost analysis counts: functions
// like exp are transcendentals and no flops; bytes are those that the steps
// read and write, so a fused loop's values between its operations are none.
typedef struct cpu_run_work {
  double flops, transcendentals, bytes;
} cpu_run_work;

// What other modules may know of a program.
typedef struct cpu_run_program_info {
  const char *name;  // of the module
  const cx_hlo_type *params, *results;
  size_t n_params, n_results;
  const uint8_t *param_memory, *result_memory;  // a cpu_run_memory for each
  uint32_t n_replicas, n_partitions;
  // For each result, the parameter whose memory it takes, or -1. No two results
  // name the same parameter.
  const int32_t *alias;
  size_t arena_bytes, constant_bytes, code_bytes;
  bool has_collectives;
  size_t n_overlapped;  // collectives in background
  // An estimate of the time of one run on one thread, in nanoseconds. It
  // decides whether the device's thread runs the program or the caller's.
  double cost_ns;
  cpu_run_work work;
  size_t n_compiled, n_library, n_interpreted;  // operations, by what runs them
  size_t n_attention;  // steps that are attention's kernel
  cx_hash fingerprint;
} cpu_run_program_info;

// A device's state between runs. One run at a time uses it.
typedef struct cpu_run_context cpu_run_context;
calx_status *cpu_run_context_new(cpu_threads *threads,
                                 cpu_run_context **out) CALX_MUST_USE;
void cpu_run_context_free(cpu_run_context *context);
// What the custom calls of the next run see. The list is the caller's, and must
// live until that run has ended.
void cpu_run_context_set_data(cpu_run_context *context,
                              const cpu_ref_user_data *data, size_t n);

const cpu_run_program_info *cpu_run_program_info_of(const cpu_run_program *p);
void cpu_run_program_free(cpu_run_program *p);  // NULL is accepted

// args[i] has the i-th parameter's elements; results[i] is memory for the i-th
// result. Where alias[r] is not -1, results[r] == args[alias[r]]; other memory
// does not overlap. All memory is aligned to at least 16 bytes. `launch` may be
// NULL for a program that has no collectives and does not read its replica's
// number.
calx_status *cpu_run_program_run(const cpu_run_program *p,
                                 cpu_run_context *context,
                                 cpu_coll_launch *launch, void *const *args,
                                 void *const *results) CALX_MUST_USE;

// Writes the executable as bytes: the objects, the choices of kernels, the
// constants and the outlined functions.
calx_status *cpu_run_program_save(const cpu_run_program *p,
                                  cx_text *out) CALX_MUST_USE;
// Reads these bytes. Damaged bytes and other versions are an error.
calx_status *cpu_run_program_load(const void *data, size_t size,
                                  cpu_threads *threads,
                                  cpu_run_program **out) CALX_MUST_USE;

#endif
