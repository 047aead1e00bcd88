// run/layout: what a program consists of. lower fills it, execute.c runs it,
// save.c writes it.
//
// A program is a flat list of steps in blocks; block 0 is the entry's. A step
// works on places: pieces of the arena, of the constants, or whole arguments
// and results. Which place each value has was decided when it was compiled, so
// a run only turns places into pointers, once, and then calls functions.
#ifndef CPU_RUN_LAYOUT_H
#define CPU_RUN_LAYOUT_H

#include "base/hash.h"
#include "jit/jit.h"
#include "kernel/kernel.h"
#include "run/object.h"
#include "run/program.h"

#define CPU_RUN_PLACE_ALIGN 64
// Of one value, and of all temporary memory, in bytes: more than a process can
// address, and small enough that offsets and their sums do not overflow.
#define CPU_RUN_MEMORY_LIMIT ((int64_t)1 << 47)

typedef enum cpu_run_place_kind {
  CPU_RUN_PLACE_ARENA,     // `at` is the offset
  CPU_RUN_PLACE_CONSTANT,  // `at` is the offset
  CPU_RUN_PLACE_PARAM,     // `at` is its number
  CPU_RUN_PLACE_RESULT,    // `at` is its number
  CPU_RUN_PLACE_KINDS
} cpu_run_place_kind;

typedef struct cpu_run_place {
  int64_t kind, at, bytes;
} cpu_run_place;

// An offset or a size, up to where the next place may begin.
static inline int64_t cpu_run_align_up(int64_t n)
{
  return (n + CPU_RUN_PLACE_ALIGN - 1) / CPU_RUN_PLACE_ALIGN *
         CPU_RUN_PLACE_ALIGN;
}

typedef enum cpu_run_step_kind {
  CPU_RUN_STEP_CODE,        // index: of codes; places: as the kernel's buffers
  CPU_RUN_STEP_KERNEL,      // index: of kernels; places: lhs, rhs, out, scratch
  CPU_RUN_STEP_INTERPRET,   // index: function of the side module; places: its
                            // parameters, its results
  CPU_RUN_STEP_COLLECTIVE,  // the same; the function holds the one operation
  CPU_RUN_STEP_BEGIN,       // a collective that goes on beside the steps that
                       // follow, up to its END; n: its number among such ones
  CPU_RUN_STEP_END,    // n: the number of what is waited for
  CPU_RUN_STEP_COPY,   // places: from, to; of equal size
  CPU_RUN_STEP_WHILE,  // index: block of the condition, the body's follows;
                       // places: the condition's result
  CPU_RUN_STEP_IF,     // index: block when true, when false follows; places:
                       // the predicate
  CPU_RUN_STEP_CASE,   // index: first of n blocks; places: the i32 selector
  CPU_RUN_STEP_KINDS
} cpu_run_step_kind;

typedef struct cpu_run_step {
  uint32_t kind;
  uint32_t index, n;
  uint32_t first, n_places;  // in the program's list of uses
} cpu_run_step;

typedef struct cpu_run_step_block {
  uint32_t first, n;  // steps
} cpu_run_step_block;

typedef void cpu_run_code_fn(void *const *buffers, int64_t lo, int64_t hi);

// The function k<symbol>_<phase> of an object.
typedef struct cpu_run_code {
  int64_t object, symbol;
  int64_t n_phases;
  cpu_jit_phase phases[CPU_JIT_PHASES];
} cpu_run_code;

// What one thread compiled.
#define CPU_RUN_OBJECTS 8
typedef struct cpu_run_object_part {
  char *bytes;  // as the compiler gave them
  size_t size;
  cpu_run_object *loaded;
} cpu_run_object_part;

struct cpu_run_program {
  cpu_run_program_info info;
  cx_arena arena;  // of the types and names in info

  cpu_run_place *places;
  size_t n_places;
  uint32_t *uses;  // indices of places
  size_t n_uses;
  cpu_run_step *steps;
  size_t n_steps;
  cpu_run_step_block *blocks;
  size_t n_blocks;

  cpu_run_code *codes;
  cpu_run_code_fn *(*functions)[CPU_JIT_PHASES];  // of each code
  size_t n_codes;
  cpu_run_object_part objects[CPU_RUN_OBJECTS];
  size_t n_objects;

  cpu_kernel_desc *descs;
  cpu_kernel **kernels;  // of the descriptions; NULL: not made yet
  size_t n_kernels;

  unsigned char *constants;  // aligned to CPU_RUN_PLACE_ALIGN
  size_t constant_bytes;
  size_t arena_bytes;

  char *side_text;  // generic text of `side`; NULL: nothing is interpreted
  size_t side_size;
  cx_hlo_module *side;
  cx_hlo_func **side_funcs;
};

// A program without anything; the name is copied.
calx_status *cpu_run_program_new(cx_hlo_str name,
                                 cpu_run_program **out) CALX_MUST_USE;

// Makes the hash of a saved program's bytes right; also, in tests, of damaged
// ones, so that what lies behind it is read.
void cpu_run_program_seal(void *data, size_t size);

// Loads the objects, makes the kernels that only are described, reads the side
// module from its bytes, and checks that every index is inside: the last thing
// before a program can be run, whether it was compiled or read.
calx_status *cpu_run_program_finish(cpu_run_program *p,
                                    cpu_threads *pool) CALX_MUST_USE;

#endif
