// coll/loops_64: reductions in vectors of 64 bytes: AVX-512.
#define LOOPS_NAME cpu_coll_loops_64
#include "coll/loops_width.h"
