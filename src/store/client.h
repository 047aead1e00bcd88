// store/client: a process's connection to the store's server.
//
// Thread-safe: each call sends its own request and sleeps until the reply. One
// thread (watch.c) reads the replies and sends heartbeats. A failure of the
// job, such as the loss of the server, ends every call that waits.
#ifndef CX_STORE_CLIENT_H
#define CX_STORE_CLIENT_H

#include "store/wire.h"

typedef struct cx_store_client cx_store_client;

typedef struct cx_store_client_options {
  const char *url, *token;  // token NULL: none
  int process, processes;   // process -1 - H: the launcher of host H
  cx_store_origin origin;
  int64_t heartbeat_ms;
  // Both are called by the watch thread, and must not call the client. The
  // first is called once.
  void (*on_failure)(void *user, calx_code code, const char *message);
  void (*on_event)(void *user, const char *bytes, size_t size);
  void *user;
} cx_store_client_options;

// Connects, repeatedly until the server answers, and sends the HELLO.
calx_status *cx_store_client_open(const cx_store_client_options *options,
                                  int64_t timeout_ms,
                                  cx_store_client **out) CALX_MUST_USE;
// bye: the process leaves in good order. Without it the loss of the connection
// fails the job.
void cx_store_client_close(cx_store_client *client, bool bye);

// Sends a request and returns its reply: OK with the value (the caller frees it
// with cx_free(); a zero byte follows it; out may be NULL), the server's error,
// or the job's failure.
calx_status *cx_store_client_call(cx_store_client *client,
                                  const cx_store_request *request, char **out,
                                  size_t *out_size) CALX_MUST_USE;
// Fails the job. Returns the job's first failure, which may be another one;
// never NULL.
calx_status *cx_store_client_fail(cx_store_client *client, calx_code code,
                                  const char *message) CALX_MUST_USE;
// NULL while the job has not failed.
calx_status *cx_store_client_failure(cx_store_client *client) CALX_MUST_USE;

// Fills in a request, after a check of the name.
calx_status *cx_store_client_request(cx_store_op op, const char *name,
                                     cx_store_request *out) CALX_MUST_USE;

#endif
