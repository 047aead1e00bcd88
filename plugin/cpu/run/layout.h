// run/layout: what a program consists of. lower fills it, execute.c runs it,
// save.c writes it.
//
// A program is a flat list of steps in blocks; block 0 is the entry's. A step
// works on places: pieces of the arena, of the constants, or whole arguments
// and results. Which place each value has was decided when it was compiled, so
// a run only turns places into pointers, once, and then calls functions.
#ifndef CX_RUN_LAYOUT_H
#define CX_RUN_LAYOUT_H

#include "base/hash.h"
#include "jit/jit.h"
#include "kernels/kernels.h"
#include "run/object.h"
#include "run/program.h"

#define CX_PLACE_ALIGN 64
// Of one value, and of all temporary memory, in bytes: more than a process can
// address, and small enough that offsets and their sums do not overflow.
#define CX_MEMORY_LIMIT ((int64_t)1 << 47)

typedef enum cx_place_kind {
  CX_PLACE_ARENA,     // `at` is the offset
  CX_PLACE_CONSTANT,  // `at` is the offset
  CX_PLACE_PARAM,     // `at` is its number
  CX_PLACE_RESULT,    // `at` is its number
  CX_PLACE_KINDS
} cx_place_kind;

typedef struct cx_place {
  int64_t kind, at, bytes;
} cx_place;

// An offset or a size, up to where the next place may begin.
static inline int64_t cx_place_align_up(int64_t n)
{
  return (n + CX_PLACE_ALIGN - 1) / CX_PLACE_ALIGN * CX_PLACE_ALIGN;
}

typedef enum cx_step_kind {
  CX_STEP_CODE,        // index: of codes; places: as the kernel's buffers
  CX_STEP_KERNEL,      // index: of kernels; places: lhs, rhs, out, scratch
  CX_STEP_INTERPRET,   // index: function of the side module; places: its
                       // parameters, its results
  CX_STEP_COLLECTIVE,  // the same; the function holds the one operation
  CX_STEP_BEGIN,  // a collective that goes on beside the steps that follow,
                  // up to its END; n: its number among such ones
  CX_STEP_END,    // n: the number of what is waited for
  CX_STEP_COPY,   // places: from, to; of equal size
  CX_STEP_WHILE,  // index: block of the condition, the body's follows;
                  // places: the condition's result
  CX_STEP_IF,     // index: block when true, when false follows; places:
                  // the predicate
  CX_STEP_CASE,   // index: first of n blocks; places: the i32 selector
  CX_STEP_KINDS
} cx_step_kind;

typedef struct cx_step {
  uint32_t kind;
  uint32_t index, n;
  uint32_t first, n_places;  // in the program's list of uses
} cx_step;

typedef struct cx_step_block {
  uint32_t first, n;  // steps
} cx_step_block;

typedef void cx_code_fn(void *const *buffers, int64_t lo, int64_t hi);

// The function k<symbol>_<phase> of an object.
typedef struct cx_code {
  int64_t object, symbol;
  int64_t n_phases;
  cx_jit_phase phases[CX_JIT_PHASES];
} cx_code;

// What one thread compiled.
#define CX_OBJECTS 8
typedef struct cx_object_part {
  char *bytes;  // as the compiler gave them
  size_t size;
  cx_object *loaded;
} cx_object_part;

struct cx_program {
  cx_program_info info;
  cx_arena arena;  // of the types and names in info

  cx_place *places;
  size_t n_places;
  uint32_t *uses;  // indices of places
  size_t n_uses;
  cx_step *steps;
  size_t n_steps;
  cx_step_block *blocks;
  size_t n_blocks;

  cx_code *codes;
  cx_code_fn *(*functions)[CX_JIT_PHASES];  // of each code
  size_t n_codes;
  cx_object_part objects[CX_OBJECTS];
  size_t n_objects;

  cx_kernel_desc *descs;
  cx_kernel **kernels;  // of the descriptions; NULL: not made yet
  size_t n_kernels;

  unsigned char *constants;  // aligned to CX_PLACE_ALIGN
  size_t constant_bytes;
  size_t arena_bytes;

  char *side_text;  // generic text of `side`; NULL: nothing is interpreted
  size_t side_size;
  cx_hlo_module *side;
  cx_hlo_func **side_funcs;
};

// A program without anything; the name is copied.
calx_status *cx_program_new(cx_hlo_str name, cx_program **out) CALX_MUST_USE;

// Makes the hash of a saved program's bytes right; also, in tests, of damaged
// ones, so that what lies behind it is read.
void cx_program_seal(void *data, size_t size);

// Loads the objects, makes the kernels that only are described, reads the side
// module from its bytes, and checks that every index is inside: the last thing
// before a program can be run, whether it was compiled or read.
calx_status *cx_program_finish(cx_program *p, cx_pool *pool) CALX_MUST_USE;

#endif
