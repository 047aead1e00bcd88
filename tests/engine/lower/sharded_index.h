// Gathers, scatters, dynamic slices and windows for random programs of 16x16
// values: gather and scatter along cut dimensions, and with cut indices.
#ifndef TESTS_ENGINE_LOWER_SHARDED_INDEX_H
#define TESTS_ENGINE_LOWER_SHARDED_INDEX_H

#include "base/text.h"

// Appends the lines of %rN, of the values %vX and %vY, which are whole numbers
// from -6 to 6. Any `what` names one of the operations.
void sharded_index_put(cx_text *t, uint32_t n, uint32_t x, uint32_t y,
                       uint32_t what);

#endif
