// fuzz/store_wire: any bytes as messages between processes and the store.
//
// As a reply and as a list they must be read within their bounds or refused. As
// a row of requests (each with a length of two bytes before it, from one of two
// connections that have sent their HELLO and one that has not) they go to a
// core, which must answer each at most once and hold nothing when it is freed.
// Built with -fsanitize=fuzzer this is libFuzzer's entry;
// fuzz/store_wire_main.c runs it over a corpus without one.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "store/core.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int right)
{
  if (!right) abort();
}

typedef struct talk {
  long asked, answered;
} talk;

static void answer(void *user, const cx_store_reply_address *to,
                   const cx_store_reply *reply)
{
  talk *t = user;
  unsigned char head[CX_STORE_REPLY_HEAD];
  check(to->number == 4 && reply->size <= CX_STORE_MESSAGE_BYTES);
  cx_store_wire_reply(reply, head);
  t->answered++;
  check(t->answered <= t->asked);
}

static void ask(cx_store_core *core, talk *t, uint32_t connection,
                const void *bytes, size_t size, int64_t now)
{
  cx_store_reply_address from = { .connection = connection, .number = 4 };
  t->asked++;
  cx_store_core_receive(core, &from, bytes, size, false, now);
}

static void greet(cx_store_core *core, talk *t, int process)
{
  unsigned char head[CX_STORE_REQUEST_HEAD + CX_STORE_TABLE_KEY];
  cx_store_request r = {
    .op = CX_STORE_OP_HELLO, .a = process, .b = 2, .size = CX_STORE_ORIGIN_BYTES
  };
  size_t size = cx_store_wire_request(&r, head);
  cx_store_wire_origin(&(cx_store_origin){ .host = -1 }, head + size);
  size += r.size;
  ask(core, t, (uint32_t)process, head, size, 0);
  check(t->answered == t->asked);
}

static void send_to_core(const uint8_t *data, size_t size)
{
  cx_store_server_options options = {
    .name = "a test", .processes = 2, .hosts = 2, .heartbeat_ms = 5000
  };
  talk t = { 0 };
  cx_store_core *core = cx_store_core_new(&options, answer, &t);
  check(core != NULL);
  for (int i = 0; i < 2; i++) greet(core, &t, i);
  for (int64_t now = 0; size >= 3; now += 40) {
    size_t length = (size_t)data[0] | (size_t)(data[1] & 0x0f) << 8;
    uint32_t connection = data[1] >> 4;
    data += 2;
    size -= 2;
    if (length > size) length = size;
    ask(core, &t, connection % 3, data, length, now);
    if (connection == 15) cx_store_core_closed(core, 1, now);
    check(cx_store_core_tick(core, now) >= 0);
    data += length;
    size -= length;
  }
  cx_store_core_fail(core, CALX_ABORTED, "the end");
  check(t.answered <= t.asked);
  cx_store_core_free(core);
}

static void read_as_origin(const uint8_t *data, size_t size)
{
  unsigned char back[CX_STORE_ORIGIN_BYTES];
  cx_store_origin origin;
  if (!cx_store_wire_read_origin(data, size, &origin)) return;
  cx_store_wire_origin(&origin, back);
  check(memcmp(back, data, size) == 0);
}

static void read_as_reply(const uint8_t *data, size_t size)
{
  cx_store_reply reply;
  volatile char last = 0;
  if (cx_store_wire_read_reply(data, size, &reply)) {
    check(reply.size == size - CX_STORE_REPLY_HEAD);
    for (size_t i = 0; i < reply.size; i++) last = reply.value[i];
  }
  const char *list = (const char *)data, *value;
  size_t left = size, n;
  while (cx_store_wire_next(&list, &left, &value, &n)) {
    for (size_t i = 0; i < n; i++) last = value[i];
  }
  (void)last;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  long blocks = cx_alloc_live();
  if (size == 0) return 0;
  read_as_reply(data, size);
  read_as_origin(data, size);
  send_to_core(data, size);
  check(cx_alloc_live() == blocks);
  return 0;
}
