// harness: programs through the emitter and through the interpreter.
//
// A program's text becomes one kernel, whose inputs are main's arguments and
// whose outputs are what it returns. Its code runs in parts and in whole, at
// each number of lanes, on numbers that are the same each time, and must give
// what the interpreter gives.
#ifndef TESTS_ENGINE_JIT_HARNESS_H
#define TESTS_ENGINE_JIT_HARNESS_H

#include "hlo/check.h"
#include "jit/jit.h"
#include "ref/ref.h"

typedef struct harness_case {
  const char *text;  // the body of main and its signature, without `module`
  double tolerance;  // relative, of floats; 0: the same numbers
  int fill;          // HARNESS_…
} harness_case;

enum {
  HARNESS_PLAIN,     // small numbers of both signs
  HARNESS_SPECIAL,   // zeros, infinities, NaN, limits of integers too
  HARNESS_POSITIVE,  // 0.1 to 4; integers 0 to 7
  HARNESS_COUNT,     // integers 0 … 9
  HARNESS_EQUAL,     // 0.7 throughout
  HARNESS_BITS       // floats of any bits, half of them below the normal ones
};

void harness_check(const harness_case *c);
// In place: the first output lies in the memory of the first argument.
void harness_check_in_place(const char *text);
// The status of compiling it.
calx_status *harness_compile(const char *text);
// How many instructions of its code read ahead, and how many ask ahead for
// lines to write.
size_t harness_prefetches(const char *text);
size_t harness_prefetches_to_write(const char *text);
// Kernels of these texts in one object: each has its symbol, and the first two
// are the same code.
void harness_check_shared(const char *text, const char *equal,
                          const char *other);

#endif
