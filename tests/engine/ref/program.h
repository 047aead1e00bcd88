// Programs as text, run by the interpreter.
//
// A program's main returns pairs: what was computed, and what it should be.
#ifndef CX_TESTS_ENGINE_REF_PROGRAM_H
#define CX_TESTS_ENGINE_REF_PROGRAM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/module.h"
#include "ref/ref.h"

typedef struct program {
  cx_hlo_module *module;
  cx_hlo_func *main;
} program;

// Fails the test where the text is no program. `verified` false: it has
// operations that no shape rule knows.
program program_open(const char *text, bool verified);
void program_close(program *p);
// Runs it and writes the results, `out[i]` as large as its type says.
calx_status *program_run(const program *p, const void *const *in,
                         void *const *out, const cpu_ref_context *context);

// Runs main, without arguments, and compares its results in pairs: equal bits,
// or both NaN; with a tolerance, floats may differ by that much of the larger.
void agrees(const char *text);
void agrees_within(const char *text, double tolerance);
void agrees_unverified(const char *text);
// It must fail with this code, and a message that has these words.
void fails(const char *text, calx_code code, const char *words);
void fails_with(const char *text, const cpu_ref_context *context,
                calx_code code, const char *words);
// main of one result is this tensor: "tensor<2xf32>", and its elements as in
// dense<…>. The body uses %0 to %n and returns the value %r.
void gives(const char *body, const char *type, const char *elements);

#endif
