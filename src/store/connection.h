// store/connection: one connection of the store: messages in and out, without
// waiting.
//
// A message goes as its size and a number, 4 bytes each in little endian, and
// then its bytes; an answer has the number of its request. Memory follows what
// has arrived, never what a size announces.
#ifndef CX_STORE_CONNECTION_H
#define CX_STORE_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cx_store_connection {
  int fd;
  size_t most;  // bytes of a message that is taken
  bool lost;    // closed by the other side, or broken
  unsigned char *in;
  size_t in_size, in_taken, in_capacity;
  char *out;
  size_t out_size, out_written, out_capacity;
} cx_store_connection;

typedef enum cx_store_connection_state {
  CX_STORE_CONNECTION_NOTHING,  // no whole message yet
  CX_STORE_CONNECTION_MESSAGE,
  CX_STORE_CONNECTION_TOO_LONG
} cx_store_connection_state;

void cx_store_connection_init(cx_store_connection *link, int fd, size_t most);
void cx_store_connection_free(cx_store_connection *link);  // closes it

// Sends what goes at once and keeps the rest for cx_store_connection_flush().
// Without memory the connection is lost.
void cx_store_connection_send(cx_store_connection *link, uint32_t number,
                              const void *head, size_t head_size,
                              const void *value, size_t size);
void cx_store_connection_flush(cx_store_connection *link);
// Bytes that are still to be sent.
size_t cx_store_connection_pending(const cx_store_connection *link);

// Reads once; how many bytes came. What came before a loss is still there.
size_t cx_store_connection_receive(cx_store_connection *link);
// The next message; its bytes are valid until the next call.
cx_store_connection_state cx_store_connection_next(cx_store_connection *link,
                                                   uint32_t *out_number,
                                                   const void **out,
                                                   size_t *out_size);

#endif
