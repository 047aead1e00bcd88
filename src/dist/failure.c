// dist/failure: a child process reports to its launcher why its rank failed. It
// writes a record into a pipe: the first failure is read first, and a write of
// at most PIPE_BUF bytes is never mixed with another.
#include "dist/failure.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"

typedef struct failure_record {
  calx_code code;
  char text[2048];  // zero-terminated
} failure_record;

_Static_assert(sizeof(failure_record) <= PIPE_BUF, "written as a whole");

calx_status *cx_dist_failure_open(cx_dist_failure *failure)
{
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    return cx_error(CALX_RESOURCE_EXHAUSTED, "cannot make a pipe: %s",
                    strerror(errno));
  }
  *failure = (cx_dist_failure){ ends[0], ends[1] };
  return NULL;
}

void cx_dist_failure_close(cx_dist_failure *failure)
{
  close(failure->in);
  close(failure->out);
}

void cx_dist_failure_write(const cx_dist_failure *failure,
                           const calx_status *status)
{
  failure_record r;
  memset(&r, 0, sizeof r);
  r.code = calx_status_code(status);
  snprintf(r.text, sizeof r.text, "%s", calx_status_message(status));
  // A full pipe has enough of them; the launch fails anyhow.
  if (write(failure->out, &r, sizeof r) < 0) return;
}

calx_status *cx_dist_failure_read(const cx_dist_failure *failure)
{
  failure_record r;
  ssize_t n = read(failure->in, &r, sizeof r);
  if (n != (ssize_t)sizeof r || r.code == CALX_OK) return NULL;
  r.text[sizeof r.text - 1] = '\0';
  return cx_error_at(NULL, r.code, "%s", r.text);
}
