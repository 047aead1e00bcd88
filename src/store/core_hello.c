// store/core_hello: who may come. What a HELLO says is believed only from those
// who bring the token, and even then nobody takes another's place: whoever was
// there first goes on, and the other is told.
#include <stdio.h>
#include <string.h>

#include "store/core_internal.h"

bool cx_store_core_is_token(const char *ours, const char *theirs)
{
  unsigned char a[CX_STORE_TOKEN_BYTES] = { 0 },
                b[CX_STORE_TOKEN_BYTES] = { 0 };
  const size_t n = strlen(ours), m = strlen(theirs);
  if (n > CX_STORE_TOKEN_BYTES || m > CX_STORE_TOKEN_BYTES) return false;
  memcpy(a, ours, n);
  memcpy(b, theirs, m);
  volatile unsigned different = n != m;
  for (size_t i = 0; i < CX_STORE_TOKEN_BYTES; i++) {
    different |= (unsigned)a[i] ^ (unsigned)b[i];
  }
  return different == 0;
}

// Of a launcher, or of a process whose number can be right.
static calx_status *check_numbers(const cx_store_core *d,
                                  const cx_store_request *r)
{
  int processes = d->options.processes;
  if (r->b != processes && r->a < 0) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "a launcher says that the job has %d processes, the "
                    "store's has %d",
                    (int)r->b, processes);
  }
  if (r->b != processes) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "process %d says that they are %d, the store's are %d",
                    (int)r->a, (int)r->b, processes);
  }
  if (r->a < -d->options.hosts) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "there is no launcher of host %d, the store's job has %d",
                    -1 - (int)r->a, d->options.hosts);
  }
  if (r->a < processes) return NULL;
  return cx_error(CALX_INVALID_ARGUMENT, "there is no process %d of %d",
                  (int)r->a, processes);
}

// Nobody comes twice, and nobody comes back.
static calx_status *check_presence(presence p, const char *who)
{
  if (p == AWAITED) return NULL;
  if (p == PRESENT) {
    return cx_error(CALX_ALREADY_EXISTS,
                    "there is a %s already: two have the same number", who);
  }
  return cx_error(CALX_FAILED_PRECONDITION,
                  "%s was here and has %s: nobody comes back to a job", who,
                  p == LEFT ? "left" : "gone");
}

static bool is_zero(cx_hash hash)
{
  return cx_hash_equal(hash, (cx_hash){ 0 });
}

host *cx_store_core_host(cx_store_core *d, const cx_store_origin *o)
{
  bool ours = o->host >= 0 && o->host < d->options.hosts;
  return ours && !is_zero(o->launch) ? &d->hosts[o->host] : NULL;
}

// Of the job, and of the host's first start.
static calx_status *check_origin(cx_store_core *d, const char *who,
                                 const cx_store_origin *o)
{
  if (!cx_hash_equal(o->job, d->options.job)) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "%s is of another job than the store: they have one "
                    "address and one token, and different names (CALX_JOB, or "
                    "their launcher's)",
                    who);
  }
  const host *h = cx_store_core_host(d, o);
  if (h == NULL || is_zero(h->launch) || cx_hash_equal(h->launch, o->launch)) {
    return NULL;
  }
  return cx_error(CALX_ALREADY_EXISTS,
                  "host %d is there already: its command was started twice, "
                  "and %s of the second start is refused; the first goes on",
                  (int)o->host, who);
}

calx_status *cx_store_core_check_hello(cx_store_core *d,
                                       const cx_store_request *r, bool stranger,
                                       cx_store_origin *out)
{
  char who[64];
  if (stranger || !cx_store_core_is_token(d->options.token, r->name)) {
    return cx_error(CALX_UNAUTHENTICATED,
                    "the store refuses this process: it is %s",
                    stranger ? "another user's"
                             : "of another job, its CALX_TOKEN is not the "
                               "store's");
  }
  CALX_TRY(check_numbers(d, r));
  if (!cx_store_wire_read_origin(r->value, r->size, out)) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "process %d does not say where it comes from: another "
                    "version?",
                    (int)r->a);
  }
  if (r->a < 0) out->host = -1 - r->a;
  snprintf(who, sizeof who, r->a < 0 ? "launcher of host %d" : "process %d",
           r->a < 0 ? -1 - (int)r->a : (int)r->a);
  CALX_TRY(check_origin(d, who, out));
  return check_presence(cx_store_core_presence(d, r->a), who);
}
