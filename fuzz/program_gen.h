// fuzz/program_gen: random well-typed StableHLO programs, from a seed.
//
// A program takes a few tensors, does a number of operations on what there is,
// and returns some of it. Two right implementations of it agree: integers and
// whatever is only moved exactly, the other floats within a bound that the
// generator keeps for each value while it builds. An operation that jumps
// (floor, compare, sort, conversion to integers) takes only what is exact. The
// same seed with fewer operations makes the beginning of the same program.
#ifndef CX_FUZZ_PROGRAM_GEN_H
#define CX_FUZZ_PROGRAM_GEN_H

#include "base/arena.h"
#include "hlo/module.h"

typedef struct cx_gen_options {
  uint64_t seed;
  size_t n_ops;  // 0: the seed decides
  bool all;      // every value is a result, so that the first wrong one shows
  int64_t only;  // >= 0: only this value, and what it needs
  // Nothing of what XLA is known to do otherwise: it counts the start of a
  // reduction not at all or more than once, drops windows of a scatter that are
  // half outside, takes another of equals in select_and_scatter, computes
  // convolutions of integers in floats, reads ui8 indices as signed, takes
  // squares of integers for positive, clamps as it likes where the bounds have
  // changed places, and ends the process over some divisions of constants.
  bool portable;
} cx_gen_options;

typedef struct cx_gen_result {
  cx_hlo_type type;
  size_t value;      // its number, for `only`
  double magnitude;  // a bound of its finite elements
  double error;      // how far two right implementations may be apart
} cx_gen_result;

typedef struct cx_gen_program {
  cx_hlo_module *module;
  size_t n_params, n_results, n_ops;
  const cx_hlo_type *params;
  void **args;  // of the parameters, as cx_hlo_elements keeps them
  const cx_gen_result *results;
  cx_arena arena;  // of all that is not the module's
} cx_gen_program;

calx_status *cx_gen_program_new(const cx_gen_options *options,
                                cx_gen_program *out) CALX_MUST_USE;
void cx_gen_program_free(cx_gen_program *p);

#endif
