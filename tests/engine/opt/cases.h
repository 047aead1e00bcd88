// Cases of the passes: a program before and after, in files of the form
//
//   // ==== pass: what the case shows
//   func.func @main(…) …
//   // ->
//   func.func @main(…) …
//
// `// -> same` says that nothing changes. Dead code is removed before the
// comparison, and both programs must give equal results on the interpreter.
#ifndef TESTS_ENGINE_OPT_CASES_H
#define TESTS_ENGINE_OPT_CASES_H

#include "../../hlo/check.h"
#include "hlo/module.h"

// Runs all cases of a file in this folder; returns how many.
size_t run_cases(const char *file);

// Runs both modules' entries on the same arguments. The results must be equal,
// floats within a relative 1e-5. False: they differ, and a line says where.
bool run_equal(const cx_hlo_module *a, const cx_hlo_module *b);

#endif
