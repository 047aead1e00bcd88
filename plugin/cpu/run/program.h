// run/program: an executable in memory, and how it is run.
//
// A program is immutable after it was made and may run on many devices at
// once; what a run needs (memory, threads, counters) is its context's.
#ifndef CPU_RUN_PROGRAM_H
#define CPU_RUN_PROGRAM_H

#include "base/hash.h"
#include "base/text.h"
#include "coll/coll.h"
#include "hlo/module.h"
#include "threads/threads.h"

typedef struct cpu_run_program cpu_run_program;

// What others may know of a program.
typedef struct cpu_run_program_info {
  const char *name;  // of the module
  const cx_hlo_type *params, *results;
  size_t n_params, n_results;
  uint32_t n_replicas, n_partitions;
  // Of each result: the parameter whose memory it takes, or -1. No two results
  // name the same parameter.
  const int32_t *alias;
  size_t arena_bytes, constant_bytes, code_bytes;
  bool has_collectives;
  size_t n_overlapped;  // collectives that other steps run beside
  // An estimate of one run's time on one thread, in nanoseconds: whether a
  // launch is worth a thread of its own.
  double cost_ns;
  size_t n_compiled, n_library, n_interpreted;  // operations, by who runs them
  cx_hash fingerprint;
} cpu_run_program_info;

// A device's state between runs. One run at a time.
typedef struct cpu_run_context cpu_run_context;
calx_status *cpu_run_context_new(cpu_threads *pool,
                                 cpu_run_context **out) CALX_MUST_USE;
void cpu_run_context_free(cpu_run_context *context);

const cpu_run_program_info *cpu_run_program_info_of(const cpu_run_program *p);
void cpu_run_program_free(cpu_run_program *p);  // NULL is accepted

// args[i]: the i-th parameter's elements; results[i]: memory for the i-th
// result. results[r] == args[alias[r]] where the argument is given away; else
// they do not overlap. Memory is aligned to 16 bytes at least. `launch` is
// needed only where the program has collectives or asks for its replica.
calx_status *cpu_run_program_run(const cpu_run_program *p,
                                 cpu_run_context *context,
                                 cpu_coll_launch *launch, void *const *args,
                                 void *const *results) CALX_MUST_USE;

// The executable's bytes (objects, choices, constants, what is interpreted),
// and back: damage and other versions are an error.
calx_status *cpu_run_program_save(const cpu_run_program *p,
                                  cx_text *out) CALX_MUST_USE;
calx_status *cpu_run_program_load(const void *data, size_t size,
                                  cpu_threads *pool,
                                  cpu_run_program **out) CALX_MUST_USE;

#endif
