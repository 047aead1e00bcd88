// store/client_internal: what the client's files share.
#ifndef CX_STORE_CLIENT_INTERNAL_H
#define CX_STORE_CLIENT_INTERNAL_H

#include "base/thread.h"
#include "store/client.h"
#include "store/connection.h"

// A request that waits for its reply, in a list.
typedef struct cx_store_call {
  struct cx_store_call *next, **at;
  uint32_t number;
  bool ended;     // no reply will arrive
  bool answered;  // `bytes` is the reply; NULL: there was no memory for it
  char *bytes;
  size_t size;
} cx_store_call;

struct cx_store_client {
  cx_store_client_options options;
  char *url;
  char *server;   // the server's name, from its reply to the HELLO
  int wake;       // an eventfd that wakes the watch thread
  cx_mutex lock;  // protects all fields below
  cx_cond changed;
  cx_store_connection connection;
  uint32_t number;  // of the last request
  cx_store_call *calls;
  bool bye;          // the BYE is sent or about to be: a loss is no failure
  bool stopping;     // the watch thread is to end
  calx_code failed;  // CALX_OK: the job has not failed
  char failure[CX_STORE_FAILURE_BYTES];
  // Used by the watch thread only.
  cx_thread thread;
  cx_store_call watch;  // its own request
  bool reported;
  bool silent;  // the server was, for longer than the limit
  int32_t events_received;
};

// The watch thread, which ends once `stopping` is set and `wake` is written.
void cx_store_watch(void *client);

// The caller holds the lock for these three.
void cx_store_client_send(cx_store_client *client, cx_store_call *call,
                          const cx_store_request *request);
void cx_store_client_remove(cx_store_call *call);  // from the list
void cx_store_client_end_calls(cx_store_client *client);
// Records the job's failure; takes the lock. Returns whether it is the first.
bool cx_store_client_note_failure(cx_store_client *client, calx_code code,
                                  const char *message);

#endif
