// store/core: what the store's server does with requests, without a network.
//
// It is told of requests, of connections that closed and of the time; it
// answers through a function, at once or later. Requests that wait stand in one
// list. One thread at a time.
#ifndef CX_STORE_CORE_H
#define CX_STORE_CORE_H

#include "store/server.h"
#include "store/wire.h"

// Where an answer goes: the connection, and the number of its request.
typedef struct cx_store_reply_address {
  uint32_t pipe, number;
} cx_store_reply_address;

// The key that says how many ranks each process has.
#define CX_STORE_DEVICES_KEY "world/devices"

typedef void cx_store_core_send(void *user, const cx_store_reply_address *to,
                                const cx_store_reply *reply);

typedef struct cx_store_core cx_store_core;

cx_store_core *cx_store_core_new(const cx_store_server_options *options,
                                 cx_store_core_send *send,
                                 void *user);  // NULL: no memory
void cx_store_core_free(cx_store_core *desk);

// `stranger`: the connection is another user's, as far as that can be known.
void cx_store_core_receive(cx_store_core *desk,
                           const cx_store_reply_address *from,
                           const void *bytes, size_t size, bool stranger,
                           int64_t now_ms);
// Whether the connection has said who it is, and was believed.
bool cx_store_core_is_known(const cx_store_core *desk, uint32_t pipe);
// A sign of life: part of a message.
void cx_store_core_note_alive(cx_store_core *desk, uint32_t pipe,
                              int64_t now_ms);
void cx_store_core_closed(cx_store_core *desk, uint32_t pipe, int64_t now_ms);
// What is due by now; returns in how many ms the next thing is, at most 500.
int64_t cx_store_core_tick(cx_store_core *desk, int64_t now_ms);
void cx_store_core_fail(cx_store_core *desk, calx_code code, const char *news);
// Processes that are expected and have neither left nor gone.
int cx_store_core_count_open(const cx_store_core *desk);

#endif
