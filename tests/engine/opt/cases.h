// Cases of the passes: a program before and after, in files of the form
//
//   // ==== pass: what the case shows
//   func.func @main(…) …
//   // ->
//   func.func @main(…) …
//
// `// -> same` says that nothing changes. Dead code is taken out before the
// comparison, and both programs give equal results on the interpreter.
#ifndef TESTS_ENGINE_OPT_CASES_H
#define TESTS_ENGINE_OPT_CASES_H

#include "../../hlo/check.h"
#include "hlo/module.h"

// Runs all cases of a file in this folder; returns how many.
size_t run_cases(const char *file);

// Both modules' entries on the same made-up arguments: results are equal but
// for a relative 1e-5 in floats. False with a line that says where they differ.
bool run_equal(const cx_hlo_module *a, const cx_hlo_module *b);

#endif
