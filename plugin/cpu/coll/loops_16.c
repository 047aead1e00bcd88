// coll/loops_16: reductions in vectors of 16 bytes: any x86-64, and other
// processors.
#define LOOPS_NAME cpu_coll_loops_16
#define LOOPS_COMPLEX
#include "coll/loops_width.h"
