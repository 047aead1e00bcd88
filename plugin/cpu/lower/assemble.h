// lower/assemble: appends to a program that is being made. The functions that
// return an index fail only when memory runs out: they return UINT32_MAX and
// set `failed`. Appending after a failure is harmless, so `failed` may be
// checked once at the end.
#ifndef CPU_LOWER_ASSEMBLE_H
#define CPU_LOWER_ASSEMBLE_H

#include "run/layout.h"

typedef struct cpu_lower_assembly {
  cpu_run_program *program;
  size_t slots_room, uses_room, steps_room, blocks_room, loops_room, descs_room,
      kernels_room;
  size_t constants_room;
  bool failed;
} cpu_lower_assembly;

uint32_t cpu_lower_assemble_slot(cpu_lower_assembly *a, cpu_run_slot_kind kind,
                                 int64_t at, int64_t bytes);
// A slot that may begin inside an argument or a result.
uint32_t cpu_lower_assemble_part(cpu_lower_assembly *a,
                                 const cpu_run_slot *part);
// A constant of `bytes` bytes: `size` bytes of data, repeated as often as they
// fit. Equal constants are not shared.
uint32_t cpu_lower_assemble_constant(cpu_lower_assembly *a, const void *data,
                                     size_t size, int64_t bytes);
// A step behind the last one; `slots` are copied.
void cpu_lower_assemble_step(cpu_lower_assembly *a, cpu_run_step_kind kind,
                             uint32_t index, uint32_t n, const uint32_t *slots,
                             size_t n_slots);
// n consecutive empty blocks; returns the first one's index.
uint32_t cpu_lower_assemble_blocks(cpu_lower_assembly *a, size_t n);
uint32_t cpu_lower_assemble_loop(cpu_lower_assembly *a,
                                 const cpu_run_loop *loop);
// Takes over the kernel, which was made from the description; on failure too.
uint32_t cpu_lower_assemble_kernel(cpu_lower_assembly *a,
                                   const cpu_kernel_desc *desc,
                                   cpu_kernel *kernel);

// Sets the module that the program interprets functions of.
calx_status *cpu_lower_assemble_outlined(
    cpu_lower_assembly *a, const cx_hlo_module *module) CALX_MUST_USE;
// Sets the parameters and results, and which of them share memory.
calx_status *cpu_lower_assemble_signature(
    cpu_lower_assembly *a, const cx_hlo_func *entry) CALX_MUST_USE;

#endif
