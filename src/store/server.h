// store/server: serves keys, exchanges, events and the job's failure.
#ifndef CX_STORE_SERVER_H
#define CX_STORE_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"

typedef struct cx_store_server cx_store_server;

typedef struct cx_store_server_options {
  const char *url;    // it listens at this address only (store/socket)
  const char *token;  // what every HELLO must bring; NULL: nothing
  const char *name;   // "process 0", "the launcher": for clients' messages
  cx_hash job;        // hash of the job's name; 0: it has none
  int processes;
  int hosts;             // how many hosts' launchers connect; 0: none
  int64_t heartbeat_ms;  // a process silent for so long is lost; 0: no limit
  // The loss of a connection is reported after this time only, so that a
  // launcher can first report how the process ended.
  int64_t grace_ms;
} cx_store_server_options;

// Starts a thread, so the process must not fork after it.
calx_status *cx_store_server_start(const cx_store_server_options *options,
                                   cx_store_server **out) CALX_MUST_USE;
// Waits until every process has left or was lost, or the time is over; returns
// whether all have. Once the job has failed it does not wait for processes that
// never connected.
bool cx_store_server_drain(cx_store_server *server, int64_t timeout_ms);
void cx_store_server_stop(cx_store_server *server);

// CALX_HEARTBEAT_S in ms; 5 s where it is not set; 0: no heartbeat.
int64_t cx_store_heartbeat_ms(void);

#endif
