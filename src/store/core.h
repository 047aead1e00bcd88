// store/core: how the store's server handles requests, without a network.
//
// The caller reports requests, closed connections and the time. The core
// replies through a function, at once or later; requests that wait are kept in
// one list. Only one thread at a time may call it.
#ifndef CX_STORE_CORE_H
#define CX_STORE_CORE_H

#include "store/server.h"
#include "store/wire.h"

// The connection of a request, and the request's number on it.
typedef struct cx_store_reply_address {
  uint32_t connection, number;
} cx_store_reply_address;

// The key whose value is the number of ranks of each process.
#define CX_STORE_DEVICES_KEY "world/devices"

typedef void cx_store_core_send(void *user, const cx_store_reply_address *to,
                                const cx_store_reply *reply);

typedef struct cx_store_core cx_store_core;

cx_store_core *cx_store_core_new(const cx_store_server_options *options,
                                 cx_store_core_send *send,
                                 void *user);  // NULL: no memory
void cx_store_core_free(cx_store_core *core);

// Handles one request. other_user: the connection is known to belong to another
// user.
void cx_store_core_receive(cx_store_core *core,
                           const cx_store_reply_address *from,
                           const void *bytes, size_t size, bool other_user,
                           int64_t now_ms);
// Whether the connection has sent a HELLO that was accepted.
bool cx_store_core_is_known(const cx_store_core *core, uint32_t connection);
// Part of a message has arrived, so the process is alive.
void cx_store_core_note_alive(cx_store_core *core, uint32_t connection,
                              int64_t now_ms);
void cx_store_core_closed(cx_store_core *core, uint32_t connection,
                          int64_t now_ms);
// Handles all that is due, and returns the time until the next call: at most
// 500 ms.
int64_t cx_store_core_tick(cx_store_core *core, int64_t now_ms);
void cx_store_core_fail(cx_store_core *core, calx_code code,
                        const char *message);
// The number of processes that the server still has to serve: those that are
// connected and, unless the job has failed, those that have yet to connect.
int cx_store_core_count_open(const cx_store_core *core);

#endif
