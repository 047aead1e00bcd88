// store/core_hello: which connections are accepted.
//
// Only a HELLO with the token is believed, and it never replaces another
// process: the process that connected first stays, the second one is refused.
#include <stdio.h>
#include <string.h>

#include "store/core_internal.h"

bool cx_store_core_is_token(const char *ours, const char *theirs)
{
  unsigned char a[CX_STORE_TOKEN_BYTES] = { 0 };
  unsigned char b[CX_STORE_TOKEN_BYTES] = { 0 };
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

// Whether the sender's number and its number of processes fit the job.
static calx_status *check_numbers(const cx_store_core *c, const char *name,
                                  const cx_store_request *r)
{
  int processes = c->options.processes;
  if (r->b != processes) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "%s expects a job of %d processes, the store serves one "
                    "of %d",
                    name, (int)r->b, processes);
  }
  if (r->a < -c->options.hosts) {
    return cx_invalid("there is no %s, the store's job has %d hosts", name,
                      c->options.hosts);
  }
  if (r->a < processes) return NULL;
  return cx_invalid("there is no %s of %d", name, processes);
}

// A number is used once: nothing connects twice, or again after it has left.
static calx_status *check_presence(cx_store_presence p, const char *name)
{
  if (p == CX_STORE_AWAITED) return NULL;
  if (p == CX_STORE_PRESENT) {
    return cx_error(CALX_ALREADY_EXISTS,
                    "there is a %s already: two have the same number", name);
  }
  return cx_error(CALX_FAILED_PRECONDITION,
                  "%s %s this job before, and cannot join it again", name,
                  p == CX_STORE_LEFT ? "left" : "was lost to");
}

static bool is_zero(cx_hash hash)
{
  return cx_hash_equal(hash, (cx_hash){ 0 });
}

cx_store_peer *cx_store_core_launcher(const cx_store_core *c,
                                      const cx_store_origin *o)
{
  bool ours = o->host >= 0 && o->host < c->options.hosts;
  return ours && !is_zero(o->launch) ? cx_store_core_peer(c, -1 - o->host)
                                     : NULL;
}

// Whether the sender belongs to this job, and to the host's first start.
static calx_status *check_origin(cx_store_core *c, const char *name,
                                 const cx_store_origin *o)
{
  if (!cx_hash_equal(o->job, c->options.job)) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "%s belongs to another job than the store: they have one "
                    "address and one token, and different names (CALX_JOB, or "
                    "their launcher's)",
                    name);
  }
  const cx_store_peer *launcher = cx_store_core_launcher(c, o);
  if (launcher == NULL || is_zero(launcher->launch) ||
      cx_hash_equal(launcher->launch, o->launch)) {
    return NULL;
  }
  return cx_error(CALX_ALREADY_EXISTS,
                  "host %d has joined already: its command was started twice, "
                  "and %s of the second start is refused; the first continues",
                  (int)o->host, name);
}

static calx_status *check_hello(cx_store_core *c, const cx_store_incoming *in,
                                cx_store_origin *out)
{
  const cx_store_request *r = &in->r;
  char name[64];
  if (in->other_user || !cx_store_core_is_token(c->options.token, r->name)) {
    return cx_error(CALX_UNAUTHENTICATED, "the store refuses this process: %s",
                    in->other_user ? "it belongs to another user"
                                   : "its CALX_TOKEN is not the store's, so it "
                                     "belongs to another job");
  }
  snprintf(name, sizeof name, r->a < 0 ? "launcher of host %d" : "process %d",
           r->a < 0 ? -1 - (int)r->a : (int)r->a);
  CALX_TRY(check_numbers(c, name, r));
  if (!cx_store_wire_read_origin(r->value, r->size, out)) {
    return cx_invalid("%s does not send its origin: another version?", name);
  }
  if (r->a < 0) out->host = -1 - r->a;
  CALX_TRY(check_origin(c, name, out));
  return check_presence(cx_store_core_peer(c, r->a)->presence, name);
}

calx_status *cx_store_core_check_hello(cx_store_core *c,
                                       const cx_store_incoming *in,
                                       cx_store_origin *out)
{
  calx_status *status = check_hello(c, in, out);
  if (status == NULL) return NULL;
  c->refused++;
  snprintf(c->refusal, sizeof c->refusal, "%s", cx_status_sentence(status));
  return status;
}

void cx_store_core_format_refused(const cx_store_core *c, cx_text *out)
{
  bool complete = true;
  for (int i = 0; i < c->options.processes; i++) {
    complete =
        complete && cx_store_core_peer(c, i)->presence != CX_STORE_AWAITED;
  }
  if (complete || c->refused == 0) return;
  cx_text_format(
      out, "; %ld %s refused", c->refused,
      c->refused == 1 ? "attempt to join was" : "attempts to join were");
  cx_text_format(out, "%s: %s", c->refused == 1 ? "" : ", the last one",
                 c->refusal);
}
