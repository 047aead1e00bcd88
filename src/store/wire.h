// store/wire: what processes and the store say to each other.
//
// One request, one reply, both a fixed head in little endian and then bytes.
// What arrives may come from anybody who can reach the port: every size is
// checked against what is there and against a limit, and nothing is allocated
// for what a head claims.
#ifndef CX_STORE_WIRE_H
#define CX_STORE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/text.h"
#include "store/table.h"

typedef enum cx_store_op {
  CX_STORE_OP_HELLO = 1,  // name: token; a: process, or -1 - a launcher's host;
                          // b: processes; value: its origin
  CX_STORE_OP_PUT,        // name, value
  CX_STORE_OP_GET,        // name; wait_ms
  CX_STORE_OP_TRY,        // name
  CX_STORE_OP_DROP,       // name
  CX_STORE_OP_EXCHANGE,   // name; a: which one of b; value; wait_ms
  CX_STORE_OP_EXCHANGE_ALL,  // the same by processes: one that has left ends it
  CX_STORE_OP_ABORT,         // a: code; value: the news
  CX_STORE_OP_EVENT,         // value: an event for those that watch
  CX_STORE_OP_WATCH,         // a: events seen so far; wait_ms
  CX_STORE_OP_BYE
} cx_store_op;

enum {
  CX_STORE_REQUEST_HEAD = 28,
  CX_STORE_REPLY_HEAD = 12,
  CX_STORE_EXCHANGE_BYTES = 4096,  // most bytes that one brings to a meeting
  CX_STORE_EVENT_BYTES = 512,
  CX_STORE_FAILURE_BYTES = 1000
};
// A whole HELLO, which is taken from anybody.
#define CX_STORE_HELLO_BYTES ((size_t)1024)
#define CX_STORE_TOKEN_BYTES 256
#define CX_STORE_MESSAGE_BYTES \
  (CX_STORE_REQUEST_HEAD + CX_STORE_TABLE_KEY + CX_STORE_TABLE_VALUE)

// Where a process comes from. Two starts of one host's command differ in their
// launches; two jobs that have one token may differ in their names.
typedef struct cx_store_origin {
  int32_t host;    // -1: not known
  cx_hash launch;  // of this host's launcher; 0: not known
  cx_hash job;     // of the job's name, on all hosts; 0: it has none
} cx_store_origin;

enum { CX_STORE_ORIGIN_BYTES = 36 };

typedef struct cx_store_request {
  cx_store_op op;
  int32_t a, b;
  int64_t wait_ms;
  char name[CX_STORE_TABLE_KEY + 1];
  const char *value;  // borrowed from the bytes that were decoded
  size_t size;
} cx_store_request;

typedef enum cx_store_reply_kind {
  CX_STORE_REPLY_RESULT,   // of the request; a code other than OK: value says
                           // why
  CX_STORE_REPLY_FAILURE,  // the job has failed: code and value are the news
  CX_STORE_REPLY_EVENT     // to a watch: the next event
} cx_store_reply_kind;

typedef struct cx_store_reply {
  cx_store_reply_kind kind;
  calx_code code;
  const char *value;  // borrowed
  size_t size;
} cx_store_reply;

// The head alone: the value follows it as it is. `name` is at most
// CX_STORE_TABLE_KEY bytes.
size_t cx_store_wire_request(
    const cx_store_request *r,
    unsigned char out[CX_STORE_REQUEST_HEAD + CX_STORE_TABLE_KEY]);
void cx_store_wire_reply(const cx_store_reply *r,
                         unsigned char out[CX_STORE_REPLY_HEAD]);
// False: the bytes are no message.
bool cx_store_wire_read_request(const void *bytes, size_t size,
                                cx_store_request *out);
bool cx_store_wire_read_reply(const void *bytes, size_t size,
                              cx_store_reply *out);

void cx_store_wire_origin(const cx_store_origin *o,
                          unsigned char out[CX_STORE_ORIGIN_BYTES]);
bool cx_store_wire_read_origin(const void *bytes, size_t size,
                               cx_store_origin *out);

// A list of values in one: of a meeting, in the order of those that met.
void cx_store_wire_append(cx_text *list, const void *value, size_t size);
// The next value; moves on. False at the end, or where the list is damaged.
bool cx_store_wire_next(const char **list, size_t *left, const char **out_value,
                        size_t *out_size);

void cx_store_wire_put32(unsigned char *out, uint32_t value);
void cx_store_wire_put64(unsigned char *out, uint64_t value);
uint32_t cx_store_wire_get32(const unsigned char *in);
uint64_t cx_store_wire_get64(const unsigned char *in);

#endif
