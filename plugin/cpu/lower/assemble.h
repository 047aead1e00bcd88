// lower/assemble: appends to a program that is being made. All of these fail
// only for want of memory, and give UINT32_MAX then; appending after a failure
// is harmless, and `failed` tells at the end.
#ifndef CPU_LOWER_ASSEMBLE_H
#define CPU_LOWER_ASSEMBLE_H

#include "run/layout.h"

typedef struct cpu_lower_assembly {
  cpu_run_program *program;
  size_t places_room, uses_room, steps_room, blocks_room, codes_room,
      descs_room, kernels_room;
  size_t constants_room;
  bool failed;
} cpu_lower_assembly;

uint32_t cpu_lower_assemble_place(cpu_lower_assembly *a,
                                  cpu_run_place_kind kind, int64_t at,
                                  int64_t bytes);
// `size` bytes, copied to an aligned place; bytes equal to those of an earlier
// constant are not shared.
uint32_t cpu_lower_assemble_constant(cpu_lower_assembly *a, const void *data,
                                     size_t size, int64_t bytes);
// A step at the end of the block that was begun last; `places` are copied.
void cpu_lower_assemble_step(cpu_lower_assembly *a, cpu_run_step_kind kind,
                             uint32_t index, uint32_t n, const uint32_t *places,
                             size_t n_places);
// Blocks that stand behind each other, empty yet. The first one's index.
uint32_t cpu_lower_assemble_blocks(cpu_lower_assembly *a, size_t n);
uint32_t cpu_lower_assemble_code(cpu_lower_assembly *a,
                                 const cpu_run_code *code);
// Takes the kernel that was made from it, on failure too.
uint32_t cpu_lower_assemble_kernel(cpu_lower_assembly *a,
                                   const cpu_kernel_desc *desc,
                                   cpu_kernel *kernel);

// What others may know of the program, from its entry function.
calx_status *cpu_lower_assemble_signature(
    cpu_lower_assembly *a, const cx_hlo_func *entry) CALX_MUST_USE;

#endif
