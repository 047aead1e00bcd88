// dist/post: see post.c.
#ifndef CX_DIST_POST_H
#define CX_DIST_POST_H

#include "calx/status.h"

typedef struct cx_dist_post {
  int in, out;
} cx_dist_post;

calx_status *cx_dist_post_open(cx_dist_post *post) CALX_MUST_USE;
void cx_dist_post_close(cx_dist_post *post);
void cx_dist_post_write(const cx_dist_post *post, const calx_status *status);
// The first that was written; NULL: none. Waits for nothing.
calx_status *cx_dist_post_read(const cx_dist_post *post) CALX_MUST_USE;

#endif
