// skip: what this machine or user does not allow a case. tools/run-test takes a
// skip without this line for a failure.
#ifndef CX_TESTS_SUPPORT_SKIP_H
#define CX_TESTS_SUPPORT_SKIP_H

#include <stdio.h>

#define SKIP_HERE(why)                        \
  do {                                        \
    printf("not possible here: %s\n", (why)); \
    fflush(stdout);                           \
    skip();                                   \
  } while (0)

#endif
