// world/client_parts: what the client's two files share.
#ifndef CX_WORLD_CLIENT_PARTS_H
#define CX_WORLD_CLIENT_PARTS_H

#include <nng/nng.h>

#include "base/thread.h"
#include "world/client.h"

// A call that is under way: its context is closed to end it.
typedef struct call {
  struct call *next, **at;
  nng_ctx context;
} call;

struct cx_client {
  cx_client_options options;
  nng_socket socket;
  nng_dialer dialer;
  char *url, *served_by;
  cx_mutex lock;  // for all below
  cx_cond changed;
  call *calls;
  uint32_t pipe;     // of the greeting
  uint32_t removed;  // the last that closed
  bool greeted, lost, stranger;
  bool bye;          // said, or about to be: a loss is no news any more
  bool leaving;      // the watch ends
  calx_code failed;  // CALX_OK: no news
  char news[CX_NEWS_TEXT];
  // the watch
  cx_thread thread;
  nng_ctx context;
  nng_aio *aio;
  bool sending;  // its request; set from nng's threads, as the next
  bool answered, told;
  int result;  // of the exchange; then `answer`
  nng_msg *answer;
  int32_t seen;
};

// How long the server may keep a watch that has nothing to tell, and how long
// its silence may be; 0: no limit.
int64_t cx_watch_pause_ms(const cx_client *client);

calx_status *cx_watch_start(cx_client *client) CALX_MUST_USE;
void cx_watch_stop(cx_client *client);

// Ends all calls. Under the lock.
void cx_client_end_calls(cx_client *client);
// Writes the first news; whether these were the first.
bool cx_client_note(cx_client *client, calx_code code, const char *news);

nng_msg *cx_client_message(const cx_request *request);  // NULL: no memory

#endif
