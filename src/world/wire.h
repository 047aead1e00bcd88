// world/wire: what processes and the store say to each other.
//
// One request, one reply, both a fixed head in little endian and then bytes.
// What arrives may come from anybody who can reach the port: every size is
// checked against what is there and against a limit, and nothing is allocated
// for what a head claims.
#ifndef CX_WORLD_WIRE_H
#define CX_WORLD_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/text.h"
#include "world/table.h"

typedef enum cx_op {
  CX_OP_HELLO = 1,  // name: token; a: process, or -1 - a launcher's host; b:
                    // processes; value: its origin
  CX_OP_PUT,        // name, value
  CX_OP_GET,        // name; wait_ms
  CX_OP_TRY,        // name
  CX_OP_DROP,       // name
  CX_OP_MEET,       // name; a: which one of b; value; wait_ms
  CX_OP_MEET_ALL,   // the same by processes: one that has left ends it
  CX_OP_ABORT,      // a: code; value: the news
  CX_OP_END,        // value: an event for those that watch
  CX_OP_WATCH,      // a: events seen so far; wait_ms
  CX_OP_BYE
} cx_op;

enum {
  CX_REQUEST_HEAD = 28,
  CX_REPLY_HEAD = 12,
  CX_MEET_VALUE = 4096,  // most bytes that one brings to a meeting
  CX_EVENT_VALUE = 512,
  CX_NEWS_TEXT = 1000
};
// A whole HELLO, which is taken from anybody.
#define CX_HELLO_BYTES ((size_t)1024)
#define CX_TOKEN_BYTES 256
#define CX_MESSAGE_BYTES (CX_REQUEST_HEAD + CX_TABLE_KEY + CX_TABLE_VALUE)

// Where a process comes from. Two starts of one host's command differ in their
// launches; two jobs that have one token may differ in their names.
typedef struct cx_origin {
  int32_t host;    // -1: not known
  cx_hash launch;  // of this host's launcher; 0: not known
  cx_hash job;     // of the job's name, on all hosts; 0: it has none
} cx_origin;

enum { CX_ORIGIN_BYTES = 36 };

typedef struct cx_request {
  cx_op op;
  int32_t a, b;
  int64_t wait_ms;
  char name[CX_TABLE_KEY + 1];
  const char *value;  // borrowed from the bytes that were decoded
  size_t size;
} cx_request;

typedef enum cx_reply_kind {
  CX_REPLY_RESULT,  // of the request; a code other than OK: value says why
  CX_REPLY_NEWS,    // the job has failed: code and value are the news
  CX_REPLY_EVENT    // to a watch: the next event
} cx_reply_kind;

typedef struct cx_reply {
  cx_reply_kind kind;
  calx_code code;
  const char *value;  // borrowed
  size_t size;
} cx_reply;

// The head alone: the value follows it as it is. `name` is at most CX_TABLE_KEY
// bytes.
size_t cx_wire_request(const cx_request *r,
                       unsigned char out[CX_REQUEST_HEAD + CX_TABLE_KEY]);
void cx_wire_reply(const cx_reply *r, unsigned char out[CX_REPLY_HEAD]);
// False: the bytes are no message.
bool cx_wire_read_request(const void *bytes, size_t size, cx_request *out);
bool cx_wire_read_reply(const void *bytes, size_t size, cx_reply *out);

void cx_wire_origin(const cx_origin *o, unsigned char out[CX_ORIGIN_BYTES]);
bool cx_wire_read_origin(const void *bytes, size_t size, cx_origin *out);

// A list of values in one: of a meeting, in the order of those that met.
void cx_wire_append(cx_text *list, const void *value, size_t size);
// The next value; moves on. False at the end, or where the list is damaged.
bool cx_wire_next(const char **list, size_t *left, const char **out_value,
                  size_t *out_size);

void cx_wire_put32(unsigned char *out, uint32_t value);
void cx_wire_put64(unsigned char *out, uint64_t value);
uint32_t cx_wire_get32(const unsigned char *in);
uint64_t cx_wire_get64(const unsigned char *in);

#endif
