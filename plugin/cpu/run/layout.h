// run/layout: what a program consists of. lower fills it in, execute.c runs it
// and save.c writes it to a file.
//
// A program is a flat list of steps in blocks; block 0 is the entry's. A step
// works on slots. A slot is a range of the arena, of the constants, or of an
// argument or result. The compiler has decided which slot each value has.
// A run turns the slots into pointers once, and then calls functions.
#ifndef CPU_RUN_LAYOUT_H
#define CPU_RUN_LAYOUT_H

#include "base/hash.h"
#include "jit/jit.h"
#include "kernel/kernel.h"
#include "run/object.h"
#include "run/program.h"

#define CPU_RUN_SLOT_ALIGN 64
// The most bytes of one value, and of all temporary memory. A process cannot
// address so much, and offsets and their sums do not overflow.
#define CPU_RUN_MEMORY_LIMIT ((int64_t)1 << 47)

typedef enum cpu_run_slot_kind {
  CPU_RUN_SLOT_ARENA,     // `at` is the offset
  CPU_RUN_SLOT_CONSTANT,  // `at` is the offset
  CPU_RUN_SLOT_PARAM,   // `at` is its number, `offset` that of the range in it
  CPU_RUN_SLOT_RESULT,  // likewise
  // A row of a tensor, which a ROW step says. Before, it is the range of the
  // arena at the offset `at`.
  CPU_RUN_SLOT_ROW,
  CPU_RUN_SLOT_KINDS
} cpu_run_slot_kind;

typedef struct cpu_run_slot {
  int64_t kind, at, bytes;
  int64_t offset;  // PARAM and RESULT; else 0
} cpu_run_slot;

// Rounds an offset or a size up to where the next slot may begin.
static inline int64_t cpu_run_align_up(int64_t n)
{
  return (n + CPU_RUN_SLOT_ALIGN - 1) / CPU_RUN_SLOT_ALIGN * CPU_RUN_SLOT_ALIGN;
}

// What `index`, `n` and the slots of each kind of step are.
typedef enum cpu_run_step_kind {
  // index: of the loop. Slots: the loop's buffers.
  CPU_RUN_STEP_LOOP,
  // index: of the kernel. Slots: lhs, rhs, result, scratch and, where it has
  // one, a second result.
  CPU_RUN_STEP_KERNEL,
  // index: of the outlined function. Slots: its parameters, then its results.
  CPU_RUN_STEP_INTERPRET,
  // Like INTERPRET. The function has the one operation.
  CPU_RUN_STEP_COLLECTIVE,
  // Like COLLECTIVE. It runs in background until its END step. n: its number
  // among the collectives in background.
  CPU_RUN_STEP_BEGIN,
  // n: the number of the collective that is waited for. No slots.
  CPU_RUN_STEP_END,
  // Slots: source, destination, of the same size.
  CPU_RUN_STEP_COPY,
  // index: the condition's block; the body's follows. Slot: the condition's
  // result.
  CPU_RUN_STEP_WHILE,
  // index: the block when true; the block when false follows. Slot: the
  // predicate.
  CPU_RUN_STEP_IF,
  // index: the first of n blocks. Slot: the selector, an i32.
  CPU_RUN_STEP_CASE,
  // A WHILE and all inside of it as one function. index: of the loop.
  CPU_RUN_STEP_NATIVE,
  // Slots: a tensor, an index (i32 or i64, which is clamped) and a ROW of the
  // tensor, which from now on is the row of this index.
  CPU_RUN_STEP_ROW,
  CPU_RUN_STEP_KINDS
} cpu_run_step_kind;

typedef struct cpu_run_step {
  uint32_t kind;
  uint32_t index, n;
  uint32_t first, n_slots;  // a range of the program's uses
} cpu_run_step;

typedef struct cpu_run_step_block {
  uint32_t first, n;  // a range of the program's steps
} cpu_run_step_block;

typedef void cpu_run_loop_fn(void *const *buffers, int64_t lo, int64_t hi);

// A compiled loop. Its phases are the functions k<symbol>_<phase> of an object.
typedef struct cpu_run_loop {
  int64_t object, symbol;
  int64_t n_phases;
  cpu_jit_phase phases[CPU_JIT_PHASES];
} cpu_run_loop;

// The code that one thread of the compiler has made.
#define CPU_RUN_OBJECTS 9
typedef struct cpu_run_object_part {
  char *bytes;  // an ELF object
  size_t size;
  cpu_run_object *loaded;
} cpu_run_object_part;

struct cpu_run_program {
  cpu_run_program_info info;
  cx_arena arena;  // of the types and names in info

  cpu_run_slot *slots;
  size_t n_slots;
  uint32_t *uses;  // indices of slots
  size_t n_uses;
  cpu_run_step *steps;
  size_t n_steps;
  // By slot: the first of the uses that are this ROW, each the next one's
  // number; n_uses: there is none.
  uint32_t *row_uses, *next_use;
  cpu_run_step_block *blocks;
  size_t n_blocks;

  cpu_run_loop *loops;
  cpu_run_loop_fn *(*functions)[CPU_JIT_PHASES];  // of each loop
  size_t n_loops;
  cpu_run_object_part objects[CPU_RUN_OBJECTS];
  size_t n_objects;

  cpu_kernel_desc *descs;
  cpu_kernel **kernels;  // of the descriptions; NULL: not made yet
  size_t n_kernels;

  unsigned char *constants;  // aligned to CPU_RUN_SLOT_ALIGN

  // The module of the functions that are interpreted, and its text. NULL: there
  // are none.
  char *outlined_text;
  size_t outlined_size;
  cx_hlo_module *outlined;
  cx_hlo_func **outlined_funcs;
};

// Makes a program without steps; copies the name.
calx_status *cpu_run_program_new(cx_hlo_str name,
                                 cpu_run_program **out) CALX_MUST_USE;

// Computes the hash of a saved program anew. Tests damage such a program and
// call this, so that the checks behind the hash are tested too.
void cpu_run_program_seal(void *data, size_t size);

// Makes a program runnable, whether it was compiled or read from a file: loads
// the objects, makes the kernels that are described, parses the outlined module
// and checks every index and size.
calx_status *cpu_run_program_finish(cpu_run_program *p,
                                    cpu_threads *threads) CALX_MUST_USE;

#endif
