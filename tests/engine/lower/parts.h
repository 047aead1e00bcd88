// parts: runs a program with shardings on several devices, each a thread with
// its part of the arguments, and puts the parts of the results together.
//
// How parameters and results are split is read from the shardings that the
// compiler reports, by a decoder of the tests' own. All values are f32.
#ifndef TESTS_ENGINE_LOWER_PARTS_H
#define TESTS_ENGINE_LOWER_PARTS_H

#include "lower/compile.h"
#include "support/support.h"

enum { PARTS_DEVICES = 8, PARTS_VALUES = 8 };

// How many parameters were cut as yet.
extern size_t parts_n_split;

// The arguments and results are whole. Devices that have the same part of a
// result must have the same bits. One device: a program without shardings.
void parts_run(const char *text, uint32_t n_devices, bool interpret,
               const float *const *args, float *const *results);

#endif
