// dist/failure: see failure.c.
#ifndef CX_DIST_FAILURE_H
#define CX_DIST_FAILURE_H

#include "calx/status.h"

typedef struct cx_dist_failure {
  int in, out;
} cx_dist_failure;

calx_status *cx_dist_failure_open(cx_dist_failure *failure) CALX_MUST_USE;
void cx_dist_failure_close(cx_dist_failure *failure);
void cx_dist_failure_write(const cx_dist_failure *failure,
                           const calx_status *status);
// The first that was written; NULL: none. Waits for nothing.
calx_status *cx_dist_failure_read(const cx_dist_failure *failure) CALX_MUST_USE;

#endif
