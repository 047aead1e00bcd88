// store/connection: sends and receives messages on one socket, without waiting.
//
// A message is its size and a number, 4 bytes each in little endian, and then
// its bytes. A reply has the number of its request. Memory grows with the bytes
// that have arrived, never by the size that a message claims.
#ifndef CX_STORE_CONNECTION_H
#define CX_STORE_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cx_store_connection {
  int fd;
  size_t limit;  // bytes of the longest message that is accepted
  bool lost;     // the other side closed it, or it failed
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

void cx_store_connection_init(cx_store_connection *link, int fd, size_t limit);
void cx_store_connection_free(cx_store_connection *link);  // closes it

// Sends what the socket takes at once, and keeps the rest for
// cx_store_connection_flush(). Without memory for it the connection is lost.
void cx_store_connection_send(cx_store_connection *link, uint32_t number,
                              const void *head, size_t head_size,
                              const void *value, size_t size);
void cx_store_connection_flush(cx_store_connection *link);
// The number of bytes that are not sent yet.
size_t cx_store_connection_pending(const cx_store_connection *link);

// Reads once, and returns the number of bytes. Messages that arrived before a
// loss can still be read.
size_t cx_store_connection_receive(cx_store_connection *link);
// Gets the next whole message. Its bytes are valid until the next receive.
cx_store_connection_state cx_store_connection_next(cx_store_connection *link,
                                                   uint32_t *out_number,
                                                   const void **out,
                                                   size_t *out_size);

#endif
