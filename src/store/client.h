// store/client: a process's connection to the store's server.
//
// Thread-safe: a call sends its request itself and sleeps. One thread (watch.c)
// reads what comes and is the heartbeat; news of any kind, also that the server
// has gone, ends every call that waits.
#ifndef CX_STORE_CLIENT_H
#define CX_STORE_CLIENT_H

#include "store/wire.h"

typedef struct cx_store_client cx_store_client;

typedef struct cx_store_client_options {
  const char *url, *token;  // token NULL: nothing
  int process, processes;   // process -1 - H: the launcher of host H
  cx_store_origin origin;   // where this process comes from
  int64_t heartbeat_ms;
  // From the watching thread, once each; may call nothing of the client.
  void (*on_news)(void *user, calx_code code, const char *news);
  void (*on_event)(void *user, const char *bytes, size_t size);
  void *user;
} cx_store_client_options;

// Dials until the server is there, and says who this is.
calx_status *cx_store_client_open(const cx_store_client_options *options,
                                  int64_t timeout_ms,
                                  cx_store_client **out) CALX_MUST_USE;
// `bye`: this process leaves in good order; else its end is news.
void cx_store_client_close(cx_store_client *client, bool bye);

// One request and its answer: OK gives the value (cx_free() it; zero-terminated
// past its size; out may be NULL), else the server's status or the news.
calx_status *cx_store_client_call(cx_store_client *client,
                                  const cx_store_request *request, char **out,
                                  size_t *out_size) CALX_MUST_USE;
// Tells everybody that the job has failed, and returns what the job has heard
// first: a status, never NULL.
calx_status *cx_store_client_fail(cx_store_client *client, calx_code code,
                                  const char *news) CALX_MUST_USE;
// NULL while there are none.
calx_status *cx_store_client_failure(cx_store_client *client) CALX_MUST_USE;

// Fills in a request; the name is checked.
calx_status *cx_store_client_request(cx_store_op op, const char *name,
                                     cx_store_request *out) CALX_MUST_USE;

#endif
