// world/desk: what the store's server does with requests, without a network.
//
// It is told of requests, of connections that closed and of the time; it
// answers through a function, at once or later. Requests that wait stand in one
// list. One thread at a time.
#ifndef CX_WORLD_DESK_H
#define CX_WORLD_DESK_H

#include "world/server.h"
#include "world/wire.h"

// Where an answer goes: the connection, and the number of its request.
typedef struct cx_ticket {
  uint32_t pipe, number;
} cx_ticket;

// The key that says how many ranks each process has.
#define CX_DEVICES_KEY "world/devices"

typedef void cx_desk_send(void *user, const cx_ticket *to,
                          const cx_reply *reply);

typedef struct cx_desk cx_desk;

cx_desk *cx_desk_new(const cx_server_options *options, cx_desk_send *send,
                     void *user);  // NULL: no memory
void cx_desk_free(cx_desk *desk);

// `stranger`: the connection is another user's, as far as that can be known.
void cx_desk_take(cx_desk *desk, const cx_ticket *from, const void *bytes,
                  size_t size, bool stranger, int64_t now_ms);
// Whether the connection has said who it is, and was believed.
bool cx_desk_knows(const cx_desk *desk, uint32_t pipe);
// A sign of life: part of a message.
void cx_desk_heard(cx_desk *desk, uint32_t pipe, int64_t now_ms);
void cx_desk_closed(cx_desk *desk, uint32_t pipe, int64_t now_ms);
// What is due by now; returns in how many ms the next thing is, at most 500.
int64_t cx_desk_tick(cx_desk *desk, int64_t now_ms);
void cx_desk_fail(cx_desk *desk, calx_code code, const char *news);
// Processes that are expected and have neither left nor gone.
int cx_desk_open(const cx_desk *desk);

#endif
