// store/wire: the format of messages between processes and the store.
//
// A request and its reply each have a fixed head in little endian, followed by
// bytes. Anybody who can reach the port can send a message, so every size is
// checked against the bytes received and against a limit, and no memory is
// allocated for a size that a head only claims.
#ifndef CX_STORE_WIRE_H
#define CX_STORE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/text.h"
#include "store/table.h"

typedef enum cx_store_op {
  // Behind each operation: the fields of its request.
  CX_STORE_OP_HELLO = 1,     // name: token; a: process, or -1 - a launcher's
                             // host; b: processes; value: the origin
  CX_STORE_OP_PUT,           // name, value
  CX_STORE_OP_GET,           // name; wait_ms
  CX_STORE_OP_TRY,           // name
  CX_STORE_OP_DROP,          // name
  CX_STORE_OP_EXCHANGE,      // name; a: the member, of b; value; wait_ms
  CX_STORE_OP_EXCHANGE_ALL,  // the members are all processes: fails if one left
  CX_STORE_OP_ABORT,         // a: code; value: the failure's message
  CX_STORE_OP_EVENT,         // value: an event for all processes that watch
  CX_STORE_OP_WATCH,         // a: events received so far; wait_ms
  CX_STORE_OP_BYE
} cx_store_op;

enum {
  CX_STORE_REQUEST_HEAD = 28,
  CX_STORE_REPLY_HEAD = 12,
  CX_STORE_EXCHANGE_BYTES = 4096,  // of one member's value
  CX_STORE_EVENT_BYTES = 512,
  CX_STORE_FAILURE_BYTES = 1000,
  CX_STORE_LOSS_BYTES = 80
};
// The limit of a HELLO, which anybody may send.
#define CX_STORE_HELLO_BYTES ((size_t)1024)
#define CX_STORE_TOKEN_BYTES 256
#define CX_STORE_MESSAGE_BYTES \
  (CX_STORE_REQUEST_HEAD + CX_STORE_TABLE_KEY + CX_STORE_TABLE_VALUE)

// What distinguishes a process from one of another job or launch. Two starts of
// one host's command differ in `launch`; two jobs with one token may differ in
// their names.
typedef struct cx_store_origin {
  int32_t host;    // -1: not known
  cx_hash launch;  // hash of CALX_LAUNCH; 0: not known
  cx_hash job;     // hash of the job's name; 0: it has none
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
  CX_STORE_REPLY_RESULT,   // value: the result, or the error's message
  CX_STORE_REPLY_FAILURE,  // the job has failed with this code and message
  CX_STORE_REPLY_EVENT     // to a WATCH: the next event
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
// False: the bytes are not a valid message.
bool cx_store_wire_read_request(const void *bytes, size_t size,
                                cx_store_request *out);
bool cx_store_wire_read_reply(const void *bytes, size_t size,
                              cx_store_reply *out);

void cx_store_wire_origin(const cx_store_origin *o,
                          unsigned char out[CX_STORE_ORIGIN_BYTES]);
bool cx_store_wire_read_origin(const void *bytes, size_t size,
                               cx_store_origin *out);

// Appends to a list of values: an exchange's reply holds those of all members,
// in their order.
void cx_store_wire_append(cx_text *list, const void *value, size_t size);
// Reads the next value. False at the end, or where the list is damaged.
bool cx_store_wire_next(const char **list, size_t *left, const char **out_value,
                        size_t *out_size);

// Copies a message's text, cut to the buffer, with a zero byte.
void cx_store_wire_copy_text(const char *value, size_t size, char *out,
                             size_t out_size);

// Why the other side was lost. silent_ms: the limit that it exceeded; 0: its
// connection closed.
void cx_store_wire_format_loss(int64_t silent_ms,
                               char out[CX_STORE_LOSS_BYTES]);

void cx_store_wire_put32(unsigned char *out, uint32_t value);
void cx_store_wire_put64(unsigned char *out, uint64_t value);
uint32_t cx_store_wire_get32(const unsigned char *in);
uint64_t cx_store_wire_get64(const unsigned char *in);

#endif
