// Programs that are compiled for a pool of two threads.
#ifndef TESTS_ENGINE_LOWER_COMPILED_H
#define TESTS_ENGINE_LOWER_COMPILED_H

#include "lower/compile.h"
#include "support/support.h"

extern cpu_threads *pool;  // from pool_begin() to pool_end(), for cmocka

int pool_begin(void **state);
int pool_end(void **state);

// Frees the text. Nothing of the program is interpreted.
cpu_run_program *compiled(cx_text *text);

#endif
