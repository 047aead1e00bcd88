// store/connection: see link.h.
#include "store/connection.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "store/wire.h"

enum { HEAD = 8, SMALL = 4096, KEPT = 1 << 16 };

void cx_store_connection_init(cx_store_connection *l, int fd, size_t limit)
{
  *l = (cx_store_connection){ .fd = fd, .limit = limit };
}

void cx_store_connection_free(cx_store_connection *l)
{
  if (l->fd >= 0) close(l->fd);
  cx_free(l->in);
  cx_free(l->out);
  *l = (cx_store_connection){ .fd = -1, .lost = true };
}

// ---- out --------------------------------------------------------------------

size_t cx_store_connection_pending(const cx_store_connection *l)
{
  return l->out_size - l->out_written;
}

void cx_store_connection_flush(cx_store_connection *l)
{
  while (!l->lost && cx_store_connection_pending(l) > 0) {
    ssize_t n =
        send(l->fd, l->out + l->out_written, cx_store_connection_pending(l),
             MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (n < 0) {
      l->lost = true;
      return;
    }
    l->out_written += (size_t)n;
  }
  if (cx_store_connection_pending(l) > 0) return;
  l->out_size = l->out_written = 0;
  if (l->out_capacity <= KEPT) return;
  cx_free(l->out);
  l->out = NULL;
  l->out_capacity = 0;
}

static void append(cx_store_connection *l, const void *bytes, size_t size)
{
  if (size != 0) memcpy(l->out + l->out_size, bytes, size);
  l->out_size += size;
}

void cx_store_connection_send(cx_store_connection *l, uint32_t number,
                              const void *head, size_t head_size,
                              const void *value, size_t size)
{
  unsigned char frame[HEAD];
  const bool idle = cx_store_connection_pending(l) == 0;
  if (l->lost) return;
  if (l->out_written > l->out_size / 2) {
    memmove(l->out, l->out + l->out_written, cx_store_connection_pending(l));
    l->out_size -= l->out_written;
    l->out_written = 0;
  }
  if (!cx_grow(&l->out, &l->out_capacity, l->out_size + HEAD + head_size + size,
               1)) {
    l->lost = true;
    return;
  }
  cx_store_wire_put32(frame, (uint32_t)(head_size + size));
  cx_store_wire_put32(frame + 4, number);
  append(l, frame, HEAD);
  append(l, head, head_size);
  append(l, value, size);
  if (idle) cx_store_connection_flush(l);
}

// ---- in ---------------------------------------------------------------------

// The size of the message that begins at in_taken; 0: not known yet.
static size_t whole_size(const cx_store_connection *l)
{
  if (l->in_size - l->in_taken < HEAD) return 0;
  return HEAD + (size_t)cx_store_wire_get32(l->in + l->in_taken);
}

static void drop_taken(cx_store_connection *l)
{
  l->in_size -= l->in_taken;
  if (l->in_size != 0) memmove(l->in, l->in + l->in_taken, l->in_size);
  l->in_taken = 0;
  if (l->in_size != 0 || l->in_capacity <= KEPT) return;
  cx_free(l->in);
  l->in = NULL;
  l->in_capacity = 0;
}

// Doubles the buffer, up to the size of the longest message.
static bool make_space(cx_store_connection *l)
{
  const size_t limit = HEAD + l->limit;
  size_t capacity = l->in_capacity == 0 ? SMALL : 2 * l->in_capacity;
  if (l->in_size < l->in_capacity) return true;
  if (capacity > limit) capacity = limit;
  if (capacity <= l->in_capacity) return false;
  unsigned char *in = cx_realloc(l->in, capacity);
  if (in == NULL) return false;
  l->in = in;
  l->in_capacity = capacity;
  return true;
}

size_t cx_store_connection_receive(cx_store_connection *l)
{
  drop_taken(l);
  if (l->lost) return 0;
  if (!make_space(l)) {
    l->lost = true;
    return 0;
  }
  ssize_t n = recv(l->fd, l->in + l->in_size, l->in_capacity - l->in_size,
                   MSG_DONTWAIT);
  if (n > 0) {
    l->in_size += (size_t)n;
    return (size_t)n;
  }
  l->lost =
      n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
  return 0;
}

cx_store_connection_state cx_store_connection_next(cx_store_connection *l,
                                                   uint32_t *out_number,
                                                   const void **out,
                                                   size_t *out_size)
{
  size_t size = whole_size(l);
  if (size == 0) return CX_STORE_CONNECTION_NOTHING;
  if (size - HEAD > l->limit) return CX_STORE_CONNECTION_TOO_LONG;
  if (l->in_size - l->in_taken < size) return CX_STORE_CONNECTION_NOTHING;
  *out_number = cx_store_wire_get32(l->in + l->in_taken + 4);
  *out = l->in + l->in_taken + HEAD;
  *out_size = size - HEAD;
  l->in_taken += size;
  return CX_STORE_CONNECTION_MESSAGE;
}
