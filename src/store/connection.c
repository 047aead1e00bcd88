// store/connection: see connection.h.
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
  cx_free(l->in.bytes);
  cx_free(l->out.bytes);
  *l = (cx_store_connection){ .fd = -1, .lost = true };
}

// Moves what is left to the front. An empty queue keeps little memory.
static void drop_done(cx_store_queue *q)
{
  q->size -= q->done;
  if (q->size != 0) memmove(q->bytes, q->bytes + q->done, q->size);
  q->done = 0;
  if (q->size != 0 || q->capacity <= KEPT) return;
  cx_free(q->bytes);
  *q = (cx_store_queue){ 0 };
}

// Whether a failed transfer may be tried again later.
static bool is_later(void)
{
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

// ---- out --------------------------------------------------------------------

size_t cx_store_connection_pending(const cx_store_connection *l)
{
  return l->out.size - l->out.done;
}

void cx_store_connection_flush(cx_store_connection *l)
{
  cx_store_queue *q = &l->out;
  while (!l->lost && q->done < q->size) {
    ssize_t n = send(l->fd, q->bytes + q->done, q->size - q->done,
                     MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    l->lost = n < 0 && !is_later();
    if (n < 0) return;
    q->done += (size_t)n;
  }
  if (q->done == q->size) drop_done(q);
}

static void append(cx_store_queue *q, const void *bytes, size_t size)
{
  if (size != 0) memcpy(q->bytes + q->size, bytes, size);
  q->size += size;
}

void cx_store_connection_send(cx_store_connection *l, uint32_t number,
                              const void *head, size_t head_size,
                              const void *value, size_t size)
{
  unsigned char frame[HEAD];
  cx_store_queue *q = &l->out;
  const bool idle = cx_store_connection_pending(l) == 0;
  if (l->lost) return;
  if (q->done > q->size / 2) drop_done(q);
  if (!cx_grow(&q->bytes, &q->capacity, q->size + HEAD + head_size + size, 1)) {
    l->lost = true;
    return;
  }
  cx_store_wire_put32(frame, (uint32_t)(head_size + size));
  cx_store_wire_put32(frame + 4, number);
  append(q, frame, HEAD);
  append(q, head, head_size);
  append(q, value, size);
  if (idle) cx_store_connection_flush(l);
}

// ---- in ---------------------------------------------------------------------

// Doubles the buffer, up to the size of the longest message.
static bool make_space(cx_store_queue *q, size_t limit)
{
  size_t capacity = q->capacity == 0 ? SMALL : 2 * q->capacity;
  if (q->size < q->capacity) return true;
  if (capacity > limit) capacity = limit;
  if (capacity <= q->capacity) return false;
  unsigned char *bytes = cx_realloc(q->bytes, capacity);
  if (bytes == NULL) return false;
  q->bytes = bytes;
  q->capacity = capacity;
  return true;
}

size_t cx_store_connection_receive(cx_store_connection *l)
{
  cx_store_queue *q = &l->in;
  drop_done(q);
  l->lost = l->lost || !make_space(q, HEAD + l->limit);
  if (l->lost) return 0;
  ssize_t n =
      recv(l->fd, q->bytes + q->size, q->capacity - q->size, MSG_DONTWAIT);
  l->lost = n == 0 || (n < 0 && !is_later());
  if (n <= 0) return 0;
  q->size += (size_t)n;
  return (size_t)n;
}

bool cx_store_connection_next(cx_store_connection *l, cx_store_message *out)
{
  size_t left = l->in.size - l->in.done;
  if (left < HEAD) return false;
  const unsigned char *at = l->in.bytes + l->in.done;
  size_t size = cx_store_wire_get32(at);
  l->lost = l->lost || size > l->limit;
  if (size > l->limit || left - HEAD < size) return false;
  *out = (cx_store_message){ cx_store_wire_get32(at + 4),
                             (const char *)at + HEAD, size };
  l->in.done += HEAD + size;
  return true;
}
