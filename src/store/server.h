// store/server: the store's server: keys, meetings, events and the job's news.
#ifndef CX_STORE_SERVER_H
#define CX_STORE_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"

typedef struct cx_store_server cx_store_server;

typedef struct cx_store_server_options {
  const char *url;    // as cx_world_endpoint's: where it listens, nowhere else
  const char *token;  // what every HELLO must bring; NULL: nothing
  const char *who;    // "process 0", "the launcher": whom others miss
  cx_hash job;        // of the job's name; 0: it has none
  int processes;
  int hosts;             // whose launchers come too; 0: none do
  int64_t heartbeat_ms;  // who is silent for so long has gone; 0: no limit
  // A process whose connection closed is news only after this, so that a
  // launcher that saw how it ended can tell first.
  int64_t grace_ms;
} cx_store_server_options;

// Starts a thread: fork before it.
calx_status *cx_store_server_start(const cx_store_server_options *options,
                                   cx_store_server **out) CALX_MUST_USE;
// Until every process has left or gone, or the time is over; whether all have.
// With news, processes that never came are not waited for.
bool cx_store_server_drain(cx_store_server *server, int64_t timeout_ms);
void cx_store_server_stop(cx_store_server *server);

// CALX_HEARTBEAT_S in ms, 5 s where it is not set, 0: off.
int64_t cx_store_heartbeat_ms(void);

#endif
