// The programs of the tests: together they use every function of hlo/build.h.
#ifndef TESTS_HLO_PROGRAMS_H
#define TESTS_HLO_PROGRAMS_H

#include "hlo/build.h"

typedef struct program {
  const char *name;
  // Writes at most 32 results and says how many.
  size_t (*build)(cx_hlo_builder *b, cx_hlo_value **out);
} program;

extern const program programs[];
extern const size_t n_programs;

// The module, with a function main without parameters.
calx_status *program_module(const program *p, cx_hlo_module **out);

// tensor<…xf32> with these sizes; the array lives where it stands.
#define TYPE(elem, ...)                                                 \
  ((cx_hlo_type){ CX_HLO_##elem,                                        \
                  sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), \
                  (const int64_t[]){ __VA_ARGS__ } })
#define SCALAR(elem) ((cx_hlo_type){ CX_HLO_##elem, 0, NULL })
#define LIST(...) ((const int64_t[]){ __VA_ARGS__ })

#endif
