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

// Bytes to be sent, or received ones. Those before `done` are dealt with.
typedef struct cx_store_queue {
  unsigned char *bytes;
  size_t size, done, capacity;
} cx_store_queue;

typedef struct cx_store_connection {
  int fd;
  size_t limit;  // bytes of the longest message that is accepted
  bool lost;     // the other side closed it or sent too much, or it failed
  cx_store_queue in, out;
} cx_store_connection;

typedef struct cx_store_message {
  uint32_t number;
  const char *bytes;  // borrowed
  size_t size;
} cx_store_message;

void cx_store_connection_init(cx_store_connection *connection, int fd,
                              size_t limit);
void cx_store_connection_free(cx_store_connection *connection);  // closes it

// Sends what the socket takes at once, and keeps the rest for
// cx_store_connection_flush(). Without memory for it the connection is lost.
void cx_store_connection_send(cx_store_connection *connection, uint32_t number,
                              const void *head, size_t head_size,
                              const void *value, size_t size);
void cx_store_connection_flush(cx_store_connection *connection);
// The number of bytes that are not sent yet.
size_t cx_store_connection_pending(const cx_store_connection *connection);

// Reads once, and returns the number of bytes. Messages that arrived before a
// loss can still be read.
size_t cx_store_connection_receive(cx_store_connection *connection);
// Gets the next whole message, whose bytes are valid until the next receive.
// False: there is none. A message that is too long loses the connection.
bool cx_store_connection_next(cx_store_connection *connection,
                              cx_store_message *out);

#endif
