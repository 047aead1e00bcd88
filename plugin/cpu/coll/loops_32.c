// coll/loops_32: reductions in vectors of 32 bytes: AVX2.
#define LOOPS_NAME cpu_coll_loops_32
#include "coll/loops_width.h"
