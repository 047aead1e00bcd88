// store/client_internal: what the client's two files share.
#ifndef CX_STORE_CLIENT_INTERNAL_H
#define CX_STORE_CLIENT_INTERNAL_H

#include "base/thread.h"
#include "store/client.h"
#include "store/connection.h"

// A request that waits for its answer.
typedef struct call {
  struct call *next, **at;
  uint32_t number;
  bool ended;     // nobody will answer it
  bool answered;  // `bytes` are the answer, or NULL: no memory for it
  char *bytes;
  size_t size;
} call;

struct cx_store_client {
  cx_store_client_options options;
  char *url, *served_by;
  int wake;       // an eventfd: there is something to send, or to end
  cx_mutex lock;  // for all below
  cx_cond changed;
  cx_store_connection link;
  uint32_t number;  // of the last request
  call *calls;
  bool bye;          // said, or about to be: a loss is no news any more
  bool leaving;      // the watch ends
  calx_code failed;  // CALX_OK: no news
  char news[CX_STORE_FAILURE_BYTES];
  // the watch
  cx_thread thread;
  call asked;  // its own request
  bool told;
  int32_t seen;
};

// How long the server may keep a watch that has nothing to tell, and how long
// its silence may be; 0: no limit.
int64_t cx_store_watch_pause_ms(const cx_store_client *client);

calx_status *cx_store_watch_start(cx_store_client *client) CALX_MUST_USE;
void cx_store_watch_stop(cx_store_client *client);

// All of these under the lock.
void cx_store_client_send(cx_store_client *client, call *call,
                          const cx_store_request *request);
void cx_store_client_drop(call *call);  // takes it out of the list
void cx_store_client_end_calls(cx_store_client *client);
// Writes the first news, without the lock; whether these were the first.
bool cx_store_client_note_failure(cx_store_client *client, calx_code code,
                                  const char *news);

#endif
