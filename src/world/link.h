// world/link: one connection of the store: messages in and out, without
// waiting.
//
// A message goes as its size and a number, 4 bytes each in little endian, and
// then its bytes; an answer has the number of its request. Memory follows what
// has arrived, never what a size announces.
#ifndef CX_WORLD_LINK_H
#define CX_WORLD_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cx_link {
  int fd;
  size_t most;  // bytes of a message that is taken
  bool lost;    // closed by the other side, or broken
  unsigned char *in;
  size_t in_size, in_taken, in_capacity;
  char *out;
  size_t out_size, out_written, out_capacity;
} cx_link;

typedef enum cx_link_word {
  CX_LINK_NOTHING,  // no whole message yet
  CX_LINK_MESSAGE,
  CX_LINK_TOO_LONG
} cx_link_word;

void cx_link_init(cx_link *link, int fd, size_t most);
void cx_link_free(cx_link *link);  // closes it

// Sends what goes at once and keeps the rest for cx_link_flush(). Without
// memory the connection is lost.
void cx_link_send(cx_link *link, uint32_t number, const void *head,
                  size_t head_size, const void *value, size_t size);
void cx_link_flush(cx_link *link);
// Bytes that are still to be sent.
size_t cx_link_waits(const cx_link *link);

// Reads once; how many bytes came. What came before a loss is still there.
size_t cx_link_receive(cx_link *link);
// The next message; its bytes are valid until the next call.
cx_link_word cx_link_next(cx_link *link, uint32_t *out_number, const void **out,
                          size_t *out_size);

#endif
